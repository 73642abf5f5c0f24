package prof_test

import (
	"testing"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// BenchmarkHistory: a value that is made and let go of, which is three events of memory, and a step of a small GPT, both
// without a history, with one, and with one of whole stacks.
func BenchmarkHistory(b *testing.B) {
	for _, p := range []struct {
		name string
		of   func(env *tensor.Env) func(e *tensor.Env)
	}{
		{"value", func(*tensor.Env) func(e *tensor.Env) { return func(e *tensor.Env) { e.Ones(256) } }},
		{"gpt", func(env *tensor.Env) func(e *tensor.Env) {
			g := model.NewGPT(env, model.GPTConfig{Vocab: 256, Context: 64, Layers: 4, Heads: 4, Width: 128})
			opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{})
			return func(e *tensor.Env) {
				tokens := labels(e, 4, 64)
				g.Loss(tokens, tokens).Backward()
				opt.Step()
			}
		}},
	} {
		for _, c := range []struct {
			name string
			h    *prof.History
		}{{"without", nil}, {"with", prof.NewHistory(prof.HistoryConfig{Events: 1 << 16})}, {"stacks", prof.NewHistory(prof.HistoryConfig{Events: 1 << 16, Stacks: true})}} {
			b.Run(p.name+"/"+c.name, func(b *testing.B) { benchmarkSteps(b, p.of, c.h) })
		}
	}
}

func benchmarkSteps(b *testing.B, of func(env *tensor.Env) func(e *tensor.Env), h *prof.History) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		b.Fatal(err)
	}
	step := of(env)
	if h != nil {
		env.Profiled(h)
		defer h.Stop()
	}
	for b.Loop() {
		e, scope := env.Scope()
		step(e)
		scope.End()
	}
}
