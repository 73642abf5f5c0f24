package optim_test

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func Example() {
	env := tensor.Best()
	w := map[string]*tensor.Tensor{"w": nn.NewParam(env.Full(3))}
	opt := optim.NewSGD(nn.Params(w), optim.SGDConfig{LR: 0.1})
	for range 3 {
		w["w"].Square().Backward()
		opt.Step() // w -= 0.1 · 2w, and the gradient is gone
		fmt.Printf("%.3f\n", w["w"].Item())
	}
	// Output:
	// 2.400
	// 1.920
	// 1.536
}

func ExampleSchedule() {
	env := tensor.Best()
	model := nn.NewLinear(env, 4, 2)
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{
		Clip: 1,                       // largest norm of all gradients together
		Rule: optim.DecayMatricesOnly, // no weight decay for biases and norms
	})
	schedule := optim.WarmupCosine(1e-3, 1e-4, 2, 6)

	for step := range 7 {
		opt.SetLR(schedule(step))
		model.Forward(env.Ones(8, 4)).Square().Mean().Backward()
		opt.Step()
		fmt.Printf("%.6f ", opt.LR())
	}
	// Output: 0.000333 0.000667 0.001000 0.000868 0.000550 0.000232 0.000100
}

func ExampleRule() {
	env := tensor.Best()
	model := map[string]*tensor.Tensor{"body": nn.NewParam(env.Ones()), "head": nn.NewParam(env.Ones())}
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{
		LR: 0.1,
		Rule: func(path string, p *tensor.Tensor, r *optim.Rates) {
			if path == "body" {
				r.Scale = 0.1 // a tenth of the learning rate
			}
		},
	})
	model["body"].Add(model["head"]).Backward() // both gradients are 1
	opt.Step()
	fmt.Printf("%.2f %.2f\n", model["body"].Item(), model["head"].Item())
	// Output: 0.99 0.90
}

func ExampleReport() {
	env := tensor.Best()
	a, b := nn.NewParam(env.Full(3)), nn.NewParam(env.Full(4))
	opt := optim.NewSGD(nn.Params([]*tensor.Tensor{a, b}), optim.SGDConfig{LR: 0.1})
	a.Square().Backward()
	report := opt.Step()
	fmt.Println(report.Norm(), report.Finite(), report.Skipped)
	// Output: 6 true [1]
}

func ExampleLossScaler() {
	env := tensor.Best()
	w := nn.NewParam(env.Ones(4, 1))
	opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.SGDConfig{LR: 1e6})
	amp := env.Autocast(dtype.F16)
	scaler := optim.NewLossScaler(optim.LossScalerConfig{Init: 1 << 44}) // PyTorch's 65536 if it is not given

	for range 4 {
		y := env.Ones(1, 4).In(amp).MatMul(w) // a product in float16
		scaler.Backward(y.Sum().Scale(1e-8))  // as it is, float16 would round this gradient to 0
		report := scaler.Step(opt)            // divides it again; leaves the step out if it is not finite
		left := report.Overflow()             // waits for the device, which Step does not
		fmt.Printf("%v, left out %v, weight %.2f, scale 2^%v\n", report, left, w.Mean().Item(), math.Log2(scaler.Scale()))
	}
	// Output:
	// step 1: a gradient was not finite, nothing was updated, left out true, weight 1.00, scale 2^43
	// step 2: a gradient was not finite, nothing was updated, left out true, weight 1.00, scale 2^42
	// step 3: a gradient for every parameter that learns, left out false, weight 0.99, scale 2^42
	// step 4: a gradient for every parameter that learns, left out false, weight 0.98, scale 2^42
}

func ExampleStepInBackward() {
	env := tensor.Best()
	model := nn.NewLinear(env, 4, 4)

	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{})
	optim.StepInBackward(opt) // Backward lets go of each gradient as soon as it is applied
	model.Forward(env.Ones(2, 4)).Square().Mean().Backward()
	fmt.Println(model.Weight.Grad() == nil, opt.Step())
	// Output: true step 1: a gradient for every parameter that learns
}

// A loss of all data that does not change can be minimised with few evaluations.
func ExampleLBFGS() {
	env, err := tensor.Open("cpu")
	if err != nil {
		panic(err)
	}
	x := tensor.NewParam(tensor.From(env, []float64{-1.2, 1}, 2))
	opt := optim.NewLBFGS(func(yield func(string, *tensor.Tensor) bool) { yield("x", x) }, optim.LBFGSConfig{Wolfe: true, Iterations: 100})
	opt.Minimize(func(e *tensor.Env) *tensor.Tensor { // Rosenbrock's valley
		a, b := x.In(e).Select(0, 0), x.In(e).Select(0, 1)
		return a.Neg().AddScalar(1).Square().Add(b.Sub(a.Square()).Square().Scale(100))
	})
	fmt.Printf("%.3f\n", x.Floats())
	// Output: [1.000 1.000]
}
