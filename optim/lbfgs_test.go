package optim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLBFGSResumed: what is kept, loaded into another beside the weights, goes on to the same bytes, on every engine.
func TestLBFGSResumed(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		for _, c := range []LBFGSConfig{{LR: 0.1, Iterations: 2, History: 3}, {Iterations: 3, History: 2, Wolfe: true}} {
			t.Run(fmt.Sprint(device, c.Wolfe), func(t *testing.T) {
				made := func() (*LBFGS, *problem, *tensor.Env) {
					env, err := tensor.Fresh(device)
					if err != nil {
						t.Fatal(err)
					}
					p := newProblem(golden.Tensors(t, env, "testdata/rules.safetensors"), "net", dtype.F32)
					return NewLBFGS(p.params.all(), c), p, env
				}
				whole, all, _ := made()
				first, half, _ := made()
				second, rest, env := made()
				for range 8 {
					whole.Minimize(all.loss)
				}
				for range 4 {
					first.Minimize(half.loss)
				}
				if err := second.Load(maps.Collect(first.State()), first.Counters()); err != nil {
					t.Fatal(err)
				}
				for i, e := range half.params {
					rest.params[i].p.CopyInPlace(e.p.Detach().To(env))
				}
				for range 4 {
					second.Minimize(rest.loss)
				}
				for i, e := range all.params {
					if !slices.Equal(e.p.Floats(), rest.params[i].p.Floats()) {
						t.Errorf("%s is %v, in one go %v", e.name, rest.params[i].p.Floats(), e.p.Floats())
					}
				}
				if !maps.Equal(whole.Counters(), second.Counters()) {
					t.Errorf("counters %v, in one go %v", second.Counters(), whole.Counters())
				}
				if names := slices.Sorted(maps.Keys(maps.Collect(whole.State()))); len(names) != 3+2*c.History {
					t.Errorf("it keeps %q", names)
				}
			})
		}
	}
}

// TestLBFGSRefuses: what cannot be loaded is told, and changes nothing.
func TestLBFGSRefuses(t *testing.T) {
	env := freshEnv(t)
	made := func() (*LBFGS, *problem) {
		p := newProblem(golden.Tensors(t, env, "testdata/rules.safetensors"), "squares", dtype.F64)
		return NewLBFGS(p.params.all(), LBFGSConfig{Iterations: 4, Wolfe: true}), p
	}
	a, p := made()
	a.Minimize(p.loss)
	state := func() map[string]*tensor.Tensor { return maps.Collect(a.State()) }
	cut := func(name string, t *tensor.Tensor) map[string]*tensor.Tensor {
		s := state()
		if s[name] = t; t == nil {
			delete(s, name)
		}
		return s
	}
	b, _ := made()
	b.c.History = 1
	for _, c := range []struct {
		o     *LBFGS
		state map[string]*tensor.Tensor
		want  string
	}{
		{b, state(), "History is 1"},
		{a, cut("optimizer.d", nil), "optimizer.d is missing"},
		{a, cut("optimizer.old_dirs.0", env.Zeros(3)), "no vector of 35 numbers"},
		{a, cut("optimizer.numbers", nil), "optimizer.numbers is missing"},
		{a, cut("w.exp_avg", env.Zeros(3)), "w.exp_avg belongs to none"},
	} {
		before := fmt.Sprint(c.o.Counters(), len(maps.Collect(c.o.State())))
		if err := c.o.Load(c.state, a.Counters()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if after := fmt.Sprint(c.o.Counters(), len(maps.Collect(c.o.State()))); after != before {
			t.Errorf("%q: %s, before %s", c.want, after, before)
		}
	}
	for name, f := range map[string]func(){"Step": func() { a.Step() }, "Offload": a.Offload, "Iterations": func() { NewLBFGS(p.params.all(), LBFGSConfig{Iterations: -1}) }} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			f()
			t.Errorf("%s is taken", name)
		}()
	}
}
