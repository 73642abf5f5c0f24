package examples

import (
	"fmt"
	"io"
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

// cube is x³ and x² with a gradient of its own.
var cube = tensor.Func{
	Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
		c.Save(in[0])
		square := in[0].Square()
		return []*tensor.Tensor{in[0].Mul(square), square}
	},
	Backward: func(c *tensor.Call, grads []*tensor.Tensor) []*tensor.Tensor {
		x := c.Saved()[0]
		sum := x.ZerosLike()
		if g := grads[0]; g != nil {
			sum = sum.Add(g.Mul(x.Square()).Scale(3))
		}
		if g := grads[1]; g != nil {
			sum = sum.Add(g.Mul(x).Scale(2))
		}
		return []*tensor.Tensor{sum}
	},
}

// OwnOperation uses an operation of one's own, with its own gradient and through it a second derivative.
func OwnOperation(env *tensor.Env, steps int, w io.Writer) error {
	at := []float64{0.5, -1, 2}
	p := tensor.NewParam(tensor.From(env, at, 3))
	worst := 0.0
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		x := p.In(b.Env)
		out := cube.Apply(x)
		out[0].Add(out[1]).Sum().Backward()
		for i, g := range p.Grad().Floats() { //warpline:ok R13
			worst = max(worst, math.Abs(g-(3*at[i]*at[i]+2*at[i])))
		}
		p.DropGrad()

		y := b.Env.Do(func(env *tensor.Env) *tensor.Tensor {
			slope := tensor.GradGraph(cube.Apply(p.In(env))[0].Sum(), p)[0]
			return tensor.Grad(slope.Sum(), p)[0]
		})
		for i, g := range y.Floats() { //warpline:ok R13
			worst = max(worst, math.Abs(g-6*at[i]))
		}
	}
	fmt.Fprintf(w, "first and second derivatives are exact: %v\n", worst < 1e-12)
	return nil
}
