package model

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestPast compares the scores that generating finds with those of the whole forward pass for the same tokens: with a prompt
// of several tokens and of one, within the context and beyond it, and where the policy is one of 16 bits.
func TestPast(t *testing.T) {
	for _, device := range []string{"cpu", "sim"} {
		root, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGPT(root, GPTConfig{Vocab: 13, Context: 7, Layers: 2, Heads: 2, Width: 16})
		for _, p := range nn.Params(g) {
			p.ScaleInPlace(8) // so that tokens depend on those before
		}
		for _, first := range []int{1, 5} {
			testPast(t, device, g, root, first, 1e-3)
		}
		testPast(t, device+" in bf16", g, root.Autocast(dtype.BF16), 3, 0.2)
	}
}

func testPast(t *testing.T, where string, g *GPT, env *tensor.Env, first int, allowed float64) {
	t.Helper()
	e, scope := env.NoGrad().Eval().Scope(0)
	defer scope.End()
	p := newPast(g, e)
	r := testutil.Rand(t)
	var tokens []int64
	for range 10 {
		tokens = append(tokens, r.Int64N(13))
		if len(tokens) < first {
			continue
		}
		got := p.last(uint64(len(tokens)), tokens)
		window := tokens[max(0, len(tokens)-7):]
		want := g.Forward(tensor.From(e, window, 1, len(window))).Select(1, -1).Floats()
		if testutil.Close(t, got, want, allowed, allowed); t.Failed() {
			t.Fatalf("%s: after %v, of which the first pass had %d", where, tokens, first)
		}
	}
}

// TestContinue: tokens that come in parts behind caches get the scores that they get together, of several samples.
func TestContinue(t *testing.T) {
	root, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	g := NewGPT(root, GPTConfig{Vocab: 13, Context: 8, Layers: 2, Heads: 2, Width: 16})
	for _, p := range nn.Params(g) {
		p.ScaleInPlace(8)
	}
	env := root.NoGrad().Eval()
	tokens, caches := env.RandInt(0, 13, 3, 8), g.Caches(env)
	want := g.Forward(tokens)
	for _, part := range [][2]int{{0, 3}, {3, 4}, {4, 8}} {
		got := g.Continue(tokens.Slice(1, part[0], part[1]), caches)
		if d := got.Sub(want.Slice(1, part[0], part[1])).Abs().Max().Item(); d > 1e-3 {
			t.Errorf("positions %v: off by %v", part, d)
		}
	}
	for name, f := range map[string]func(){
		"context": func() { g.Continue(tokens.Slice(1, 0, 1), caches) },
		"caches":  func() { g.Continue(tokens, caches[:1]) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
