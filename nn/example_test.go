package nn_test

import (
	"fmt"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func Example_predict() {
	env := tensor.Best()
	model := nn.Sequential{nn.NewLinear(env, 4, 16), nn.ReLU{}, nn.Dropout{P: 0.5}, nn.NewLinear(env, 16, 3)}
	x := env.Randn(2, 4)

	logits := model.Forward(x.In(env.NoGrad().Eval())) // no graph, no dropout
	classes := logits.ArgMax(-1)
	fmt.Println(logits.Recorded(), logits.Shape(), classes.Shape())
	// Output: false [2 3] [2]
}

func ExampleFreeze() {
	env := tensor.Best()
	backbone, head := nn.NewLinear(env, 4, 8), nn.NewLinear(env, 8, 2)
	model := nn.Sequential{backbone, nn.ReLU{}, head}

	nn.Freeze(backbone, true) // and false to let it learn again
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3})
	model.Forward(env.Ones(3, 4)).Sum().Backward()
	fmt.Println(backbone.Weight.Grad() == nil, head.Bias.Grad())
	opt.Step()
	// Output: true [3 3]  f32[2]
}

func ExampleFrozen() {
	env := tensor.Best()
	teacher := nn.Frozen(nn.NewLinear(env, 4, 2))
	fmt.Println(teacher.Forward(env.Ones(3, 4)).Recorded())
	// Output: false
}

func ExampleParams() {
	env := tensor.Best()
	model := nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 784, 128), nn.ReLU{}, nn.NewLinear(env, 128, 10)}
	for path, p := range nn.Params(model) {
		fmt.Println(path, p.Shape())
	}
	fmt.Println(nn.Count(model))
	// Output:
	// 1.weight [128 784]
	// 1.bias [128]
	// 3.weight [10 128]
	// 3.bias [10]
	// 101770
}

func ExampleState() {
	for name, t := range nn.State(nn.NewBatchNorm(tensor.Best(), 2)) {
		fmt.Println(name, t.IsParam())
	}
	// Output:
	// weight true
	// bias true
	// running_mean false
	// running_var false
	// num_batches_tracked false
}

func ExampleInit() {
	env := tensor.Best()
	layer := nn.NewLinear(env, 2, 2)
	nn.Init(layer, func(path string, p *tensor.Tensor) {
		if path == "bias" {
			p.FillInPlace(0.5)
		} else {
			p.CopyInPlace(env.Randn(p.Shape()...).Scale(0.02))
		}
	})
	fmt.Println(layer.Bias)
	// Output: [0.5 0.5]  f32[2]
}

func ExampleClone() {
	env := tensor.Best()
	model := nn.NewLinear(env, 2, 2)
	twin := nn.Clone(model)
	model.Bias.FillInPlace(1)
	twin.Bias.FillInPlace(2)
	fmt.Println(model.Bias.Floats(), twin.Bias.Floats())
	// Output: [1 1] [2 2]
}

func ExampleRecompute() {
	env := tensor.Best()
	block := nn.Sequential{nn.NewLinear(env, 4, 64), nn.GELU{}, nn.NewLinear(env, 64, 4)}
	x := env.Ones(2, 4)
	plain := block.Forward(x)
	again := nn.Recompute(block).Forward(x) // keeps x only, and computes the rest again in Backward
	fmt.Println(plain.Eq(again).All())
	// Output: true  bool[]
}

// The head of a language model and its loss, without the scores of all words at all positions.
func ExampleLinearCrossEntropy() {
	env := tensor.Best()
	hidden, words := env.Ones(2, 5, 8), env.Zeros(1000, 8) // all words alike: log 1000
	next := env.RandInt(0, 1000, 2, 5)
	loss := nn.LinearCrossEntropy(hidden.RequireGrad(), words, next)
	fmt.Printf("%.4f\n", loss.Item())
	// Output: 6.9078
}

func ExampleCrossEntropy() {
	env := tensor.Best()
	logits := env.Zeros(2, 4) // all classes alike: log 4
	labels := tensor.From(env, []int64{1, 3}, 2)
	fmt.Printf("%.4f\n", nn.CrossEntropy(logits, labels).Item())
	fmt.Printf("%.4f\n", nn.CrossEntropy(logits, labels, nn.Summed()).Item())
	// Output:
	// 1.3863
	// 2.7726
}

// A model's blocks are recomputed where the input's env asks for it; what they compute is the same.
func ExampleBlock() {
	env := tensor.Best()
	model := nn.Sequential{nn.NewLinear(env, 2, 8), nn.GELU{}, nn.Tanh{}, nn.NewLinear(env, 8, 1), nn.Sigmoid{}}
	nn.Init(model, func(_ string, p *tensor.Tensor) { p.FillInPlace(0.5) })
	x := env.Ones(3, 2)
	all := env.Recompute(tensor.PartsOf(tensor.PartBlock)) // of each block its input is kept
	some := env.Recompute(tensor.PartsAt("0"))             // those with these paths
	for _, e := range []*tensor.Env{env, all, some} {
		fmt.Printf("%.3f\n", model.Forward(x.In(e)).Square().Mean().Item())
	}
	// Output:
	// 0.966
	// 0.966
	// 0.966
}

// Positions that come one by one, behind a cache, get what they get together.
func ExampleKVCache() {
	env := tensor.Best().NoGrad()
	layer := nn.NewAttention(env, 8, nn.AttentionConfig{Heads: 2, Causal: true})
	x := env.Randn(1, 5, 8)
	want := layer.Forward(x)
	past := nn.NewKVCache(env, 5)
	for i := range 5 {
		y := layer.ForwardCached(x.Slice(1, i, i+1), past)
		fmt.Print(y.Sub(want.Slice(1, i, i+1)).Abs().Max().Item() < 1e-5, " ")
	}
	fmt.Println(past.Len())
	// Output: true true true true true 5
}
