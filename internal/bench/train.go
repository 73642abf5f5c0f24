package bench

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Digits are 784 numbers and 10 classes; the networks of the race of bench/cpu.
var (
	small = model.GPTConfig{Vocab: 65, Context: 256, Layers: 4, Heads: 4, Width: 128}
	wide  = model.GPTConfig{Vocab: 65, Context: 256, Layers: 6, Heads: 6, Width: 384}
	gpt2  = model.GPTConfig{Vocab: 50257, Context: 1024, Layers: 12, Heads: 12, Width: 768}
)

// steps are the cases of train: a step is forward, Backward and the optimizer.
var steps = []*Case{
	training("mlp", "784-512-512-10 with SGD, batches of n", 128, 1, classifier(mlp, sgd, 784)),
	training("mlp-adamw", "the same with AdamW", 128, 1, classifier(mlp, adamw, 784)),
	training("convnet", "two convolutions (32 and 64), pools and two linear layers on 28×28, batches of n, AdamW", 128, 1, classifier(convnet, adamw, 1, 28, 28)),
	training("gpt-128", "a GPT of width 128, 4 layers and 4 heads, n texts of 256, AdamW", 16, 256, language(small)),
	training("gpt-384", "a GPT of width 384, 6 layers and 6 heads, n texts of 256, AdamW", 16, 256, language(wide)),
	training("resnet18", "ResNet-18 on 64×64, batches of n, AdamW", 16, 1, classifier(resnet18, adamw, 3, 64, 64)),
	generating("generate-128", "n tokens of the first GPT, one by one", small),
	generating("generate-384", "n tokens of the second", wide),
	published(training("gpt2-124m", "GPT-2, n texts of 1024, AdamW with clipping: for cards", 64, 1024, language(gpt2))),
}

// A maker makes a network's loss, and what steps it.
type maker func(env *tensor.Env, n int) (loss func(e *tensor.Env) *tensor.Tensor, opt optim.Optimizer)

// training is a case of steps on n samples of so many units, in mixed precision for other dtypes than float32.
func training(name, help string, n, units int, of maker) *Case {
	unit := "samples/s"
	if units > 1 {
		unit = "tokens/s"
	}
	return &Case{Bench: "train", Name: name, Help: help, Sizes: []int{n}, Unit: unit, Only: mixed,
		Make: func(env *tensor.Env, n int, dt dtype.DType) (Work, error) {
			if dt != dtype.F32 {
				env = env.Autocast(dt)
			}
			loss, opt := of(env, n)
			return Work{Amount: float64(n * units), Turn: scoped(env, func(e *tensor.Env) {
				loss(e).Backward()
				opt.Step()
			})}, nil
		}}
}

// published is a case that is measured only by name: too large for most machines.
func published(c *Case) *Case {
	c.Asked = true
	return c
}

func sgd(m any) optim.Optimizer   { return optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: 1e-3}) }
func adamw(m any) optim.Optimizer { return optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3}) }

func mlp(env *tensor.Env) nn.Module {
	return nn.Sequential{nn.NewLinear(env, 784, 512), nn.ReLU{}, nn.NewLinear(env, 512, 512), nn.ReLU{}, nn.NewLinear(env, 512, 10)}
}

func convnet(env *tensor.Env) nn.Module {
	same := nn.ConvConfig{Padding: 1}
	half := nn.MaxPool2d{Kernel: 2}
	return nn.Sequential{
		nn.NewConv2d(env, 1, 32, 3, same), nn.ReLU{}, half,
		nn.NewConv2d(env, 32, 64, 3, same), nn.ReLU{}, half,
		nn.Flatten{}, nn.NewLinear(env, 64*7*7, 128), nn.ReLU{}, nn.NewLinear(env, 128, 10),
	}
}

func resnet18(env *tensor.Env) nn.Module { return model.NewResNet(env, model.ResNet18(10)) }

// classifier learns ten classes of random data of a shape.
func classifier(build func(*tensor.Env) nn.Module, opt func(any) optim.Optimizer, shape ...int) maker {
	return func(env *tensor.Env, n int) (func(*tensor.Env) *tensor.Tensor, optim.Optimizer) {
		m := build(env)
		x, y := env.Rand(append([]int{n}, shape...)...), env.RandInt(0, 10, n)
		return func(e *tensor.Env) *tensor.Tensor { return nn.CrossEntropy(m.Forward(x.In(e)), y.In(e)) }, opt(m)
	}
}

// language learns to foretell random tokens.
func language(c model.GPTConfig) maker {
	return func(env *tensor.Env, n int) (func(*tensor.Env) *tensor.Tensor, optim.Optimizer) {
		g := model.NewGPT(env, c)
		tokens := env.RandInt(0, c.Vocab, n, c.Context)
		o := optim.AdamWConfig{LR: 1e-3}
		if c.Vocab == gpt2.Vocab {
			o.Clip = 1
		}
		loss := func(e *tensor.Env) *tensor.Tensor { return g.Loss(tokens.In(e), tokens.In(e)) }
		return loss, optim.NewAdamW(nn.Params(g), o)
	}
}

// generating is a case of a model that writes.
func generating(name, help string, c model.GPTConfig) *Case {
	return &Case{Bench: "train", Name: name, Help: help, Sizes: []int{128}, Unit: "tokens/s", Only: mixed, Host: true, Own: true,
		Make: func(env *tensor.Env, n int, dt dtype.DType) (Work, error) {
			env = env.NoGrad().Eval()
			if dt != dtype.F32 {
				env = env.Autocast(dt)
			}
			g := model.NewGPT(env, c)
			return Work{Amount: float64(n), Turn: func() {
				for range g.Generate(env, []int64{1}, n, model.SampleConfig{}) {
				}
			}}, nil
		}}
}
