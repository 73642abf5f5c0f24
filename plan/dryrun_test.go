package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// steps is a program that makes two steps of a linear layer.
func steps(env *tensor.Env, batch int) {
	l := nn.NewLinear(env, 1000, 10)
	for range 2 {
		e, scope := env.Scope()
		l.Forward(e.Ones(batch, 1000)).Sum().Backward()
		scope.End()
	}
}

// TestDryRun: the names of cards, programs that read values, fail, panic, or need more than the card has.
func TestDryRun(t *testing.T) {
	odd := errors.New("odd")
	for _, c := range []struct {
		card string
		f    func(env *tensor.Env) error
		text string // of the error
		hint string
	}{
		{"h100-80", func(env *tensor.Env) error { steps(env, 4); return nil }, "", ""},
		{"null:h100-80", func(env *tensor.Env) error { steps(env, 4); return nil }, "", ""},
		{"h100-81", nil, `no card "h100-81"`, "did you mean h100-80? "},
		{"cuda:0", nil, `no card "cuda:0"`, "there are "},
		{"l4", func(*tensor.Env) error { return odd }, "odd", ""},
		{"l4", func(env *tensor.Env) error { env.Ones(2).Add(env.Ones(3)); return nil }, "shape", ""},
	} {
		r, err := plan.DryRun(c.card, c.f)
		switch {
		case c.text == "" && (err != nil || r.Card != "h100-80" || r.Requested < 80_000 || r.Allocated < r.Requested || r.Reserved < r.Allocated || len(r.Unknown) > 0):
			t.Errorf("%s: %+v, %v", c.card, r, err)
		case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(advice.HintOf(err), c.hint)):
			t.Errorf("%s: %v; %s", c.card, err, advice.HintOf(err))
		}
	}
	r, err := plan.DryRun("gtx-1650", func(env *tensor.Env) error {
		if env.Ones(5, 1<<30).Sum().Item() > 1 {
			return odd
		}
		return nil
	})
	if err != nil || r.Fits() || r.Requested < 20<<30 || len(r.Unknown) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for line := range r.Unknown {
		if !strings.Contains(line, "dryrun_test.go:") {
			t.Error(line)
		}
	}
}

// TestLargestBatch compares with what is found by trying each, where segments of the allocator are steps, and where a program
// refuses small batches.
func TestLargestBatch(t *testing.T) {
	few := errors.New("too few")
	for _, c := range []struct {
		device      string
		limit       int64
		least, most int
	}{
		{"cpu", 200_000, 1, 1000}, {"cpu", 200_000, 12, 1000}, {"cpu", 200_000, 1, 10}, {"cpu", 10_000, 1, 1000}, {"cpu", 200_000, 50, 1000},
		{"null:t4", 48 << 20, 1, 20000}, {"t4", 48 << 20, 1, 20000}, {"t4", 600 << 20, 1, 30},
	} {
		program := func(env *tensor.Env, batch int) error {
			if batch < c.least {
				return few
			}
			steps(env, batch)
			return nil
		}
		r, err := plan.LargestBatch(c.device, c.limit, c.most, program)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		fits := func(batch int) bool {
			if batch > c.most {
				return false
			}
			env, err := tensor.Rehearse("null:" + strings.TrimPrefix(c.device, "null:"))
			if c.device == "cpu" {
				env, err = tensor.Rehearse("cpu")
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := env.Device(); c.device == "cpu" {
				d.SetLimit(c.limit)
			} else if err := d.SetMemoryFraction(float64(c.limit) / float64(d.Properties().Memory)); err != nil {
				t.Fatal(err)
			}
			_, failed := tensor.Try(env, func(env *tensor.Env) int { err = program(env, batch); return 0 })
			return err == nil && failed == nil
		}
		n := r.LargestBatch
		if n > 0 && !fits(n) || fits(n+1) || (r.LimitedBy == "samples") != (n == c.most) {
			t.Errorf("%+v: %d, limited by %s; it fits: %v, one more: %v", c, n, r.LimitedBy, fits(n), fits(n+1))
		}
	}
	if _, err := plan.LargestBatch("cpu", -1, 8, nil); err == nil || !strings.Contains(err.Error(), "-1 bytes") {
		t.Errorf("a limit below zero: %v", err)
	}
	if _, err := plan.LargestBatch("cpu", 0, 0, nil); err == nil {
		t.Error("a batch of no samples is taken")
	}
}
