package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// cell is a plain recurrent network.
type cell struct {
	In  *nn.Linear `nn:"in"`
	Rec *nn.Linear `nn:"rec"`
	Out *nn.Linear `nn:"out"`
}

// run applies the cell n times to one input and returns the state after it.
func (c *cell) run(x, state *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		state = c.In.Forward(x).Add(c.Rec.Forward(state)).Tanh()
	}
	return state
}

// Recurrent carries a hidden state over batches: truncated back-propagation through time. The slot keeps the state's
// value beyond its batch, without its graph.
func Recurrent(env *tensor.Env, steps int, w io.Writer) error {
	net := &cell{In: nn.NewLinear(env, 4, 8), Rec: nn.NewLinear(env, 8, 8), Out: nn.NewLinear(env, 8, 3)}
	opt := optim.NewAdam(nn.Params(net), optim.AdamWConfig{LR: 1e-2})
	var hidden tensor.Slot
	hidden.Set(env.Zeros(10, 8))
	var first, last *tensor.Pending
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		state := net.run(b.X, hidden.Get(b.Env), 3)
		loss := nn.CrossEntropy(net.Out.Forward(state), b.Y)
		hidden.Set(state)
		loss.Backward()
		opt.Step()
		if last = loss.Later(); first == nil {
			first = last
		}
	}
	fmt.Fprintf(w, "the loss halved: %v; the state is kept: %v\n", last.Value() < first.Value()/2, hidden.Get(env).Shape())
	return nil
}
