package lessons

import (
	"fmt"
	"io"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// L20 trains in float16: products of 16 bits, weights of 32, and a scale that keeps small gradients above zero.
func L20(env *tensor.Env, n Numbers, w io.Writer) error {
	// Four weights of 1 and plain SGD, so that gradients can be worked out by hand.
	model := nn.Sequential{nn.NewLinearNoBias(env, 4, 1)}
	nn.Init(model, func(_ string, p *tensor.Tensor) { nn.InitConstant(p, 1) })
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1})
	// A scale that is far too large, so that there is something to see; 65536 unless one is given.
	scaler := optim.NewLossScaler(optim.LossScalerConfig{Init: math.Ldexp(1, n["scale"])})
	// The policy belongs to the data: products in float16, what needs range in float32.
	x := env.Ones(1, 4).In(env.Autocast(dtype.F16))
	skipped := 0
	for range n["steps"] {
		loss := model.Forward(x).Sum().Scale(1e-8)
		// The loss goes backward times the scale. Gradients are of the float32 weights, in float32, and scaled.
		scaler.Backward(loss)
		// Step divides them again. If one is infinite or NaN the weights stay as they are, and the scale is halved.
		if report := scaler.Step(opt); report.Overflow() { //warpline:ok R13
			skipped++
		}
	}
	fmt.Fprintf(w, "%d of %d steps left out, scale 2^%.0f\n", skipped, n["steps"], math.Log2(scaler.Scale()))
	fmt.Fprintln(w, "weights are", model[0].(*nn.Linear).Weight.DType())
	return nil
}

// L20Wrong is the same without a scale.
func L20Wrong(env *tensor.Env, _ Numbers, w io.Writer) error {
	// Four weights, and an input under the policy of float16.
	model := nn.NewLinearNoBias(env, 4, 1)
	x := env.Ones(1, 4).In(env.Autocast(dtype.F16))
	// The mistake: 1e-8 is below the smallest float16, 6e-8, so that what reaches the product is zero.
	model.Forward(x).Sum().Scale(1e-8).Backward()
	fmt.Fprintln(w, "the largest gradient is", model.Weight.Grad().Abs().Max().Item())
	return nil
}
