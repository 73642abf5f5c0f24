package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L30 adds losses up without keeping them.
func L30(env *tensor.Env, n Numbers, w io.Writer) error {
	// A mean of one number and a count, on the device: nothing waits before Value.
	var mean metric.Mean
	grown := growth(env, n["steps"], func(loss, _ *tensor.Tensor) { mean.Add(loss, 1) })
	fmt.Fprintln(w, "bytes more from step to step:", grown)
	fmt.Fprintln(w, "a mean of", mean.Count())
	return nil
}

// L30Wrong keeps what each step made, to look at it later.
func L30Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// A slice that outlives the steps.
	var all []*tensor.Tensor
	// The mistake: Keep takes a value out of its step, and the slice holds every one of them. In PyTorch a loss in a list holds
	// its whole graph besides, unless it was detached.
	grown := growth(env, n["steps"], func(_, y *tensor.Tensor) { all = append(all, y.Keep()) })
	fmt.Fprintln(w, "bytes more from step to step:", grown)
	return nil
}

// growth is how much more memory is in use at the end of the last step than at the end of the second, for each step.
func growth(env *tensor.Env, steps int, each func(loss, y *tensor.Tensor)) int64 {
	model := nn.NewLinear(env, 64, 64)
	var early int64
	for step := range steps {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			y := model.Forward(env.Ones(256, 64))
			loss := y.Square().Mean()
			each(loss, y)
			loss.Backward()
			nn.Init(model, func(_ string, p *tensor.Tensor) { p.DropGrad() })
			return nil
		})
		if step == 1 {
			early = env.Device().Memory().Used
		}
	}
	return (env.Device().Memory().Used - early) / int64(steps-2)
}
