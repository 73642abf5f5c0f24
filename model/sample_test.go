package model_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/tensor"
)

// TestGenerate: a loop may stop, and walk again over the same tokens; a prompt beyond the context is cut at its start, and
// nothing stays open.
func TestGenerate(t *testing.T) {
	env := open(t)
	g := model.NewGPT(env, model.GPTConfig{Vocab: 11, Context: 4, Layers: 1, Heads: 1, Width: 8})
	seq := g.Generate(env, []int64{1, 2, 3}, 6, model.SampleConfig{Temperature: 1, Seed: 5})
	all := slices.Collect(seq)
	var some []int64
	for id := range seq {
		if some = append(some, id); len(some) == 2 {
			break
		}
	}
	if len(all) != 6 || !slices.Equal(some, all[:2]) {
		t.Errorf("%v, then %v", all, some)
	}
	before := env.Device().Memory()
	for name, f := range map[string]func(){
		"there is no prompt": func() { g.Generate(env, nil, 6, model.SampleConfig{}) },
		"11": func() { // no such token
			for range g.Generate(env, []int64{11}, 1, model.SampleConfig{}) {
				t.Error("it was gone on from")
			}
		},
	} {
		err := try(f)
		if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := env.Device().Memory(); after.Scopes != before.Scopes {
		t.Errorf("%d scopes are open, %d before", after.Scopes, before.Scopes)
	}
}

// try gives what f panics with, without a block whose end would end what f left open.
func try(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}
