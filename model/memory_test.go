package model_test

import (
	"errors"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// trainer is a tiny GPT in a scope of its own.
type trainer struct {
	env    *tensor.Env
	gpt    *model.GPT
	tokens *tensor.Tensor
	opt    optim.Optimizer
}

func newTrainer(env *tensor.Env) *trainer {
	g := model.NewGPT(env, model.GPTConfig{Vocab: 31, Context: 16, Layers: 2, Heads: 2, Width: 32, Dropout: 0.1})
	return &trainer{env, g, env.RandInt(0, 31, 4, 16), optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-3, Clip: 1})}
}

// step is a whole step of training.
func (r *trainer) step(turn uint64) {
	e, scope := r.env.Scope(turn)
	defer scope.End()
	nn.CrossEntropy(r.gpt.Forward(r.tokens.In(e)), r.tokens.In(e)).Backward()
	r.opt.Step()
}

func (r *trainer) dropGrads() {
	for _, p := range nn.Params(r.gpt) {
		p.DropGrad()
	}
}

// TestStepMemory demands that what is requested of the allocator is what storages hold, that a step needs no collector,
// and that nothing is left in the end.
func TestStepMemory(t *testing.T) {
	env := open(t)
	dev := env.Device()
	r := newTrainer(env)
	peak := func() int64 {
		dev.ResetPeak()
		for turn := range uint64(4) {
			r.step(turn)
			if m := dev.Memory(); m.Requested.Current != m.Used || m.Active.Current != m.Allocated.Current {
				t.Errorf("%d bytes requested and %d active, storages hold %d and %d are allocated", m.Requested.Current, m.Active.Current, m.Used, m.Allocated.Current)
			}
		}
		return dev.Memory().Allocated.Peak
	}
	peak()
	normal := peak()
	percent := debug.SetGCPercent(-1)
	without := peak()
	debug.SetGCPercent(percent)
	if 4*without > 5*normal {
		t.Errorf("a peak of %d bytes without the collector, %d with it", without, normal)
	}
	r = nil
	dev.Collect()
	if err := dev.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	if m := dev.Memory(); m.Used != 0 || m.Reserved.Current != 0 {
		t.Errorf("nothing is reachable, but %v", m)
	}
}

// TestEveryAllocationOfAStepMayFail lets each allocation of a step of training fail in turn: a run takes one in three.
func TestEveryAllocationOfAStepMayFail(t *testing.T) {
	env := open(t)
	dev := env.Device()
	r := newTrainer(env)
	r.step(0)
	r.dropGrads()
	want := dev.Memory()
	spread := testutil.NewSpread(t, testutil.Seed(t), 3)
	for k := 1; ; k++ {
		if !spread.Takes(strconv.Itoa(k)) {
			continue
		}
		dev.FailAt(k)
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { r.step(uint64(k)); return nil })
		dev.FailAt(0)
		r.dropGrads()
		if err == nil {
			if k < 100 {
				t.Errorf("only %d allocations in a step", k)
			}
			return
		}
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			t.Fatalf("allocation %d: %v", k, err)
		}
		if m := dev.Memory(); m.Used != want.Used || m.Scopes != want.Scopes {
			t.Fatalf("after failure %d: %+v, want %+v", k, m, want)
		}
	}
}

// TestStepWaitsNowhere trains on a GPU on which every wait of the host is an error: uploads, clipping and a loss that is
// asked for without waiting need none.
func TestStepWaitsNowhere(t *testing.T) {
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	r := newTrainer(env)
	env.Sync()
	env.Device().OnWait(tensor.FailWaits)
	var losses []*tensor.Pending
	for turn := range uint64(3) {
		e, scope := env.Scope(turn)
		tokens := tensor.From(e, make([]int64, 4*16), 4, 16)
		loss := nn.CrossEntropy(r.gpt.Forward(tokens), tokens)
		loss.Backward()
		r.opt.Step()
		losses = append(losses, loss.Later())
		scope.End()
	}
	env.Sync() // a wait by its name
	first, last := losses[0].Value(), losses[2].Value()
	if !(last < first) {
		t.Errorf("losses %v and %v", first, last)
	}
	if waits := env.Device().Syncs(); len(waits) > 0 {
		t.Errorf("the host waited: %v", waits)
	}
	if _, err := env.Try(func(e *tensor.Env) *tensor.Tensor { e.Ones(1).Item(); return nil }); err == nil {
		t.Error("a read that waits is no error")
	}
}

// TestGPT2AsksForNoCollection trains and scores GPT-2 at its size, on a device without arithmetic. Once the first steps have
// shown how much lives, nothing is left to the collector, and passes without a graph hold a few values, not all.
func TestGPT2AsksForNoCollection(t *testing.T) {
	env, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	c := model.GPTConfig{Vocab: 50257, Context: 1024, Layers: 12, Heads: 12, Width: 768, Dropout: 0.1}
	g := model.NewGPT(env, c)
	opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{LR: 1e-3, Clip: 1})
	tokens := env.RandInt(0, 31, 2, 1024)
	dev := env.Device()
	train := func(e *tensor.Env) {
		nn.CrossEntropy(g.Forward(tokens.In(e)), tokens.In(e)).Backward()
		opt.Step()
	}
	score := func(e *tensor.Env) { g.Forward(tokens.In(e.NoGrad().Eval())) }
	turn := uint64(0)
	peak := func(f func(*tensor.Env)) int64 {
		dev.ResetPeak()
		e, scope := env.Scope(turn)
		f(e)
		scope.End()
		turn++
		return dev.Memory().ValuesPeak
	}
	for _, way := range []struct {
		name string
		env  *tensor.Env
	}{{"f32", env}, {"bf16", env.Autocast(dtype.BF16)}} {
		env = way.env
		for range 3 {
			peak(train)
		}
		want := peak(train)
		for range 5 {
			if got, m := peak(train), dev.Memory(); got != want || m.Collections > 0 {
				t.Errorf("%s: a step has a peak of %d bytes and asks for %d collections, one before had %d", way.name, got, m.Collections, want)
			}
		}
		used := dev.Memory().Used
		logits, hidden := int64(2*1024*c.Vocab*4), int64(2*1024*c.Width*4)
		cast := int64(c.Vocab * c.Width * 2) // of the token embedding
		if got, m := peak(score)-used, dev.Memory(); got > logits+cast+4*hidden || m.Collections > 0 {
			t.Errorf("%s: a pass without a graph takes %d bytes and asks for %d collections; the scores are %d", way.name, got, m.Collections, logits)
		}
	}
}
