package model_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// benchmarkHost is what the host pays for a step of GPT-2 124M at 64×1024 in bfloat16, AdamW with clipping, as `train gpt --amp` runs it.
func benchmarkHost(b *testing.B, device string) {
	env, err := tensor.Fresh(device)
	if err != nil {
		b.Fatal(err)
	}
	c := model.GPTConfig{Vocab: 50257, Context: 1024, Layers: 12, Heads: 12, Width: 768}
	g := model.NewGPT(env, c)
	opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-3, Clip: 1})
	tokens := env.RandInt(0, c.Vocab, 64, c.Context)
	step := func() {
		e, s := env.Autocast(dtype.BF16).Scope()
		defer s.End()
		g.Loss(tokens.In(e), tokens.In(e)).Backward()
		opt.Step()
	}
	for range 3 {
		step()
	}
	env.Device().ResetPeak()
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(env.Device().Memory().Collections)/float64(b.N), "collections/op")
}

// BenchmarkStepWithoutDevice is on the device without arithmetic.
func BenchmarkStepWithoutDevice(b *testing.B) { benchmarkHost(b, "null:h200") }

// BenchmarkStepWithoutDriver is on the engine for GPUs, with a driver that does nothing.
func BenchmarkStepWithoutDriver(b *testing.B) {
	path, _ := shimtest.NoOp(b)
	b.Setenv(libcuda.PathEnv, path)
	benchmarkHost(b, "cuda:0")
}
