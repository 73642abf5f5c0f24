package nn

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestKVCache: positions that come in parts get what they get together, of both layers of attention, with and without windows
// and samples, and after a part is forgotten.
func TestKVCache(t *testing.T) {
	env := freshEnv(t).NoGrad()
	window := &tensor.Window{Left: 3, Right: 0}
	for name, forward := range map[string]func(x *tensor.Tensor, past *KVCache) *tensor.Tensor{
		"attention": cachedAttention(NewAttention(env, 12, AttentionConfig{Heads: 3, Causal: true})),
		"window":    cachedAttention(NewAttention(env, 12, AttentionConfig{Heads: 3, Causal: true, Window: window})),
		"multihead": cachedMultihead(NewMultiheadAttention(env, 12, MultiheadConfig{Heads: 2, BatchFirst: true}), Sight{Causal: true}, false),
		"weights":   cachedMultihead(NewMultiheadAttention(env, 12, MultiheadConfig{Heads: 2, BatchFirst: true}), Sight{Causal: true, Window: window}, true),
	} {
		x, past := env.Randn(2, 9, 12), NewKVCache(env, 9)
		want := forward(x, nil)
		forward(env.Randn(2, 4, 12), past)
		past.Truncate(0)
		for _, part := range [][2]int{{0, 3}, {3, 4}, {4, 4}, {4, 8}, {8, 9}, {6, 9}} {
			past.Truncate(part[0])
			got := forward(x.Slice(1, part[0], part[1]), past)
			if part[0] == part[1] {
				continue
			}
			if d := got.Sub(want.Slice(1, part[0], part[1])).Abs().Max().Item(); d > 2e-6 {
				t.Errorf("%s, positions %v: off by %v", name, part, d)
			}
		}
		if past.Len() != 9 || !strings.Contains(past.String(), "9 taken") {
			t.Errorf("%s: %v", name, past)
		}
	}
}

func cachedAttention(l *Attention) func(x *tensor.Tensor, past *KVCache) *tensor.Tensor {
	return func(x *tensor.Tensor, past *KVCache) *tensor.Tensor {
		if past == nil {
			return l.Forward(x)
		}
		return l.ForwardCached(x, past)
	}
}

func cachedMultihead(l *MultiheadAttention, s Sight, weights bool) func(x *tensor.Tensor, past *KVCache) *tensor.Tensor {
	return func(x *tensor.Tensor, past *KVCache) *tensor.Tensor {
		s.Cache = past
		if !weights {
			return l.Attend(x, x, x, s)
		}
		y, _ := l.AttendWeights(x, x, x, s)
		return y
	}
}

// TestKVCacheErrors tells what does not fit a cache.
func TestKVCacheErrors(t *testing.T) {
	env := freshEnv(t)
	quiet := env.NoGrad()
	x := quiet.Ones(1, 2, 3, 4)
	c := NewKVCache(env, 4)
	c.Add(x, x)
	extra := NewMultiheadAttention(quiet, 4, MultiheadConfig{Heads: 1, ZeroKey: true})
	for want, f := range map[string]func(){
		"0 positions":          func() { NewKVCache(env, 0) },
		"room for 4":           func() { c.Add(x, x) },
		"are to stay":          func() { c.Truncate(4) },
		"carry a graph":        func() { g := env.Ones(1, 2, 1, 4).RequireGrad().Scale(2); c.Add(g, g) },
		"keys [1 2 1 4]":       func() { c.Add(quiet.Ones(1, 2, 1, 4), quiet.Ones(1, 2, 2, 4)) },
		"width and dtype stay": func() { c.Add(quiet.Ones(2, 2, 1, 4), quiet.Ones(2, 2, 1, 4)) },
		"zero value":           func() { new(KVCache).Add(x, x) },
		"layer adds each time": func() { y := quiet.Ones(1, 1, 4); extra.Attend(y, y, y, Sight{Cache: NewKVCache(env, 3)}) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if c.Len() != 3 {
		t.Errorf("a refused call leaves %d positions", c.Len())
	}
}
