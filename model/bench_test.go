package model_test

import (
	"testing"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// benchmarkStep measures one training step: forward, Backward, update.
func benchmarkStep(b *testing.B, samples int, build func(env *tensor.Env) any, loss func(model any, e *tensor.Env) *tensor.Tensor) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		b.Fatal(err)
	}
	m := build(env)
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
	i := 0
	for b.Loop() {
		e, s := env.Scope(uint64(i))
		loss(m, e).Backward()
		opt.Step()
		s.End()
		i++
	}
	b.ReportMetric(float64(samples*b.N)/b.Elapsed().Seconds(), "samples/s")
}

func BenchmarkConvnetStep(b *testing.B) {
	benchmarkStep(b, 128, func(env *tensor.Env) any { return model.NewConvnet(env, model.Digits) },
		func(m any, e *tensor.Env) *tensor.Tensor {
			return nn.CrossEntropy(m.(nn.Module).Forward(e.Rand(128, 1, 28, 28)), e.RandInt(0, 10, 128))
		})
}

func BenchmarkGPTStep(b *testing.B) {
	c := model.GPTConfig{Vocab: 65, Context: 128, Layers: 4, Heads: 4, Width: 128}
	benchmarkStep(b, 16*c.Context, func(env *tensor.Env) any { return model.NewGPT(env, c) },
		func(m any, e *tensor.Env) *tensor.Tensor {
			tokens := e.RandInt(0, c.Vocab, 16, c.Context)
			return m.(*model.GPT).Loss(tokens, tokens)
		})
}

func BenchmarkResNet18Step(b *testing.B) {
	benchmarkStep(b, 8, func(env *tensor.Env) any { return model.NewResNet(env, model.ResNet18(10)) },
		func(m any, e *tensor.Env) *tensor.Tensor {
			return nn.CrossEntropy(m.(nn.Module).Forward(e.Rand(8, 3, 64, 64)), e.RandInt(0, 10, 8))
		})
}
