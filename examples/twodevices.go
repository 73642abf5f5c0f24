package examples

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TwoDevices halves each batch between a device and the next of its kind, "sim:0" and "sim:1": a copy of the model
// computes the second half's gradients, which join the first half's before the step. Where there is no next device, both
// copies are on the one.
func TwoDevices(env *tensor.Env, steps int, w io.Writer) error {
	other := neighbour(env)
	model := mlp(env, 4, 16, 3)
	twin := nn.Clone(model)
	nn.To(other, twin)
	pairs := map[*tensor.Tensor]*tensor.Tensor{}
	copies := map[string]*tensor.Tensor{}
	for name, q := range nn.Params(twin) {
		copies[name] = q
	}
	for name, p := range nn.Params(model) {
		pairs[p] = copies[name]
	}

	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	var last *tensor.Pending
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		e, scope := other.Scope(0)
		half := b.X.Dim(0) / 2
		there := nn.CrossEntropy(twin.Forward(b.X.Slice(0, half, 2*half).To(e)), b.Y.Slice(0, half, 2*half).To(e))
		here := nn.CrossEntropy(model.Forward(b.X.Slice(0, 0, half)), b.Y.Slice(0, 0, half))
		there.Scale(0.5).Backward() // queued there, while
		here.Scale(0.5).Backward()  // this is queued here
		for p, q := range pairs {
			p.Grad().AddInPlace(q.Grad().To(b.Env))
			q.DropGrad()
		}
		last = here.Later()
		opt.Step()
		for p, q := range pairs {
			q.CopyInPlace(p.Detach().To(e))
		}
		scope.End()
	}
	fmt.Fprintf(w, "loss below 0.1: %v\n", last.Value() < 0.1)
	return nil
}

// neighbour is the device after env's, or env's own where there is none.
func neighbour(env *tensor.Env) *tensor.Env {
	name := strings.TrimSuffix(env.Device().Name(), ":0")
	if other, err := tensor.Fresh(name + ":1"); err == nil {
		return other
	}
	return env
}
