package tensor_test

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func Example() {
	env := tensor.Best()
	x := tensor.From(env, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	w := env.Ones(3, 2)
	fmt.Println(x.MatMul(w).AddScalar(-10).ReLU())
	fmt.Println(x.Mean(1))
	// Output:
	// [[0 0]
	//  [5 5]]  f32[2,2]
	// [2 5]  f32[2]
}

func ExampleCapture() {
	env := tensor.Best()
	x, y := make([]float32, 20*4), make([]int64, 20)
	for i := range y {
		y[i] = int64(i % 3)
		x[4*i+i%3] = 1 // one of three is set, and is the class
	}
	set := data.InMemory(x, []int{4}, y)
	model := nn.NewLinear(env, 4, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{Momentum: 0.9})
	schedule := optim.Linear(0.5, 0, 30)
	total := 0.0

	step := tensor.Capture(env, func(b *data.Pair) *tensor.Tensor {
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		return loss
	})
	for epoch := range 30 {
		total = 0
		for b, err := range data.Batches(env, set, data.Config{Size: 8, Epoch: epoch}) {
			if err != nil {
				log.Fatal(err)
			}
			opt.SetLR(schedule(epoch))
			total += step.Run(b).Item()
		}
	}
	runs, kinds := step.Replayed()
	fmt.Printf("loss below 0.05: %v; %d of 90 steps replayed, of %d kinds of batches\n", total/3 < 0.05, runs, kinds)
	// Output: loss below 0.05: true; 85 of 90 steps replayed, of 2 kinds of batches
}

func ExampleFrom() {
	env := tensor.Best()
	fmt.Println(tensor.From(env, []float64{0.5, 1.5}, 2).DType())
	fmt.Println(tensor.From(env, []int64{1, 2, 3}, 3, 1))
	fmt.Println(tensor.From(env, []bool{true, false}, 2))
	// Output:
	// f64
	// [[1]
	//  [2]
	//  [3]]  i64[3,1]
	// [true false]  bool[2]
}

func ExampleTensor_Slice() {
	x := tensor.Best().Arange(12).Reshape(3, 4)
	fmt.Println(x.Slice(1, 1, -1)) // x[:, 1:-1]
	fmt.Println(x.Select(0, -1))   // x[-1]
	// Output:
	// [[1 2]
	//  [5 6]
	//  [9 10]]  i64[3,2]
	// [8 9 10 11]  i64[4]
}

func ExampleTensor_Backward() {
	env := tensor.Best()
	w := tensor.NewParam(tensor.From(env, []float32{1, 2, 3}, 3))
	x := tensor.From(env, []float32{4, 5, 6}, 3)

	loss := x.Mul(w).Sum().Square() // (4·1 + 5·2 + 6·3)² = 32²
	loss.Backward()
	fmt.Println(loss.Item(), w.Grad()) // 2·32·x
	// Output: 1024 [256 320 384]  f32[3]
}

func ExampleGradGraph() {
	x := tensor.From(tensor.Best(), []float64{1, 2, 3}, 3).RequireGrad()
	slope := tensor.GradGraph(x.PowScalar(3).Sum(), x)[0] // 3x², recorded
	curve := tensor.Grad(slope.Sum(), x)[0]               // 6x
	fmt.Println(slope.Floats(), curve.Floats())
	// Output: [3 12 27] [6 12 18]
}

func ExampleEnv_NoGrad() {
	env := tensor.Best()
	w := tensor.NewParam(env.Ones(3, 2))
	x := env.Ones(1, 3)
	fmt.Println(x.MatMul(w).Recorded(), x.In(env.NoGrad()).MatMul(w).Recorded())
	// Output: true false
}

func ExampleEnv_Autocast() {
	env := tensor.Best()
	w := tensor.NewParam(env.Ones(4, 2))

	amp := env.Autocast(dtype.BF16)
	logits := env.Ones(3, 4).In(amp).MatMul(w) // products in bfloat16
	loss := logits.LogSoftmax(-1).Neg().Mean() // what needs range in float32
	loss.Backward()                            // gradients in the parameter's dtype
	fmt.Println(logits.DType(), loss.DType(), w.Grad().DType())
	// Output: bf16 f32 f32
}

func ExampleEnv_Products() {
	env := tensor.Best()

	x := tensor.From(env, []float32{1 + 1.0/2048}, 1, 1) // needs 11 bits after the point
	for _, p := range []tensor.Precision{tensor.Highest, tensor.High, tensor.Medium} {
		fmt.Println(p, x.In(env.Products(p)).MatMul(env.Ones(1, 1)).Item())
	}
	// Output:
	// highest 1.00048828125
	// high 1.0009765625
	// medium 1
}

func ExampleEnv_Seed() {
	a := tensor.Best().Seed(7).Randn(1000)
	b := tensor.Best().Seed(7).Randn(1000)
	c := tensor.Best().Seed(8).Randn(1000)
	fmt.Println(a.Eq(b).All().Item() == 1, a.Eq(c).All().Item() == 1)
	// Output: true false
}

func ExampleEnv_Do() {
	env := tensor.Best()
	before := env.Device().Memory().Used
	mean := env.Do(func(env *tensor.Env) *tensor.Tensor {
		return env.Ones(1000, 1000).Scale(3).Mean() // 4 MB twice, released at the end of the block
	})
	fmt.Println(mean.Item(), env.Device().Memory().Used-before < 1000)
	// Output: 3 true
}

func ExampleEnv_Try() {
	env := tensor.Best()
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
		return env.Ones(2, 3).MatMul(env.Ones(2, 3))
	})
	fmt.Println(err != nil)
	// Output: true
}

func ExampleTensor_Keep() {
	env := tensor.Best()
	var kept *tensor.Tensor
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		kept = env.Arange(3).Keep() // outlives the block, as it would outlive a batch
		return nil
	})
	fmt.Println(kept)
	// Output: [0 1 2]  i64[3]
}

func ExampleFunc() {
	// The sign of x, with the gradient of x clamped to [-1, 1]: a straight-through estimator.
	sign := tensor.Func{
		Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
			c.Save(in[0])
			return []*tensor.Tensor{in[0].Sign()}
		},
		Backward: func(c *tensor.Call, grads []*tensor.Tensor) []*tensor.Tensor {
			inside := c.Saved()[0].Abs().Le(grads[0].FullLike(1))
			return []*tensor.Tensor{tensor.Where(inside, grads[0], grads[0].ZerosLike())}
		},
	}

	x := tensor.From(tensor.Best(), []float32{-3, -0.5, 0.5, 3}, 4).RequireGrad()
	y := sign.Apply(x)[0]
	fmt.Println(y.Floats(), tensor.Grad(y.Sum(), x)[0].Floats())
	// Output: [-1 -1 1 1] [0 1 1 0]
}

func ExampleGradCheck() {
	env := tensor.Best().Seed(1)
	at := []*tensor.Tensor{env.Rand(2, 3).Cast(dtype.F64), env.Rand(3, 2).Cast(dtype.F64)}
	err := tensor.GradCheck(func(in []*tensor.Tensor) *tensor.Tensor {
		return in[0].MatMul(in[1]).Tanh().Sum()
	}, at, tensor.GradCheckConfig{Second: true})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTensor_To() {
	here, err := tensor.Open("sim:a100-80x2:0")
	if err != nil {
		panic(err)
	}
	there, err := tensor.Open("sim:a100-80x2:1")
	if err != nil {
		panic(err)
	}
	w := tensor.NewParam(tensor.From(here, []float32{1, 2}, 2))
	v := tensor.NewParam(tensor.From(there, []float32{3, 4}, 2))

	loss := w.Square().To(there).Mul(v).Sum() // w²·v
	loss.Backward()
	fmt.Println(w.Grad(), w.Grad().Env().Device().Name()) // 2·w·v
	fmt.Println(v.Grad(), v.Grad().Env().Device().Name())
	// Output:
	// [6 16]  f32[2] sim:a100-80x2
	// [1 4]  f32[2] sim:a100-80x2:1
}

// How a function changes along a direction, and how its slope does.
func ExampleHVP() {
	env := tensor.Best()
	x, v := tensor.From(env, []float32{1, 2, 3}, 3), tensor.From(env, []float32{1, 0, -1}, 3)
	cubes := func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PowScalar(3).Sum() }
	y, along := tensor.JVP(cubes, []*tensor.Tensor{x}, []*tensor.Tensor{v})
	_, curved := tensor.HVP(cubes, []*tensor.Tensor{x}, []*tensor.Tensor{v})
	hessian := tensor.Hessian(cubes, x)[0][0]
	fmt.Println(y.Item(), along.Item(), curved[0].Floats(), hessian.Diagonal(0, 0, 1).Floats())
	// Output: 36 -24 [6 0 -18] [6 12 18]
}
