package tensor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLSTMStepInPlace: a step is the same bits in the place of its operand as in memory of its own, from cells that lie apart too.
func TestLSTMStepInPlace(t *testing.T) {
	env := fresh(t, testutil.Device())
	x, r := env.Randn(3, 20), env.Randn(3, 20)
	for name, c := range map[string]*tensor.Tensor{"rows": env.Randn(3, 5), "columns": env.Randn(5, 3).Transpose(0, 1)} {
		h, cell, gates := tensor.LSTMStep(x, r, c)
		over, to := x.Clone(), tensor.LSTMRoom(c, 2).Select(0, 1)
		next := tensor.LSTMStepInPlace(over, r, c, to)
		if !slices.Equal(over.Floats(), gates.Floats()) || !slices.Equal(to.Floats(), h.Floats()) || !slices.Equal(next.Floats(), cell.Floats()) {
			t.Errorf("%s: gates %v, state %v, cell %v", name, over, to, next)
		}
	}
}

// TestLSTMStepInPlaceShared: operands that share memory are refused, whichever they are, with no value changed; parts of one value
// that lie apart are not.
func TestLSTMStepInPlaceShared(t *testing.T) {
	env := fresh(t, testutil.Device())
	x, r, c, h := env.Randn(3, 20), env.Randn(3, 20), env.Randn(3, 5), env.Randn(3, 5)
	in := func(wide *tensor.Tensor) *tensor.Tensor { return wide.Flatten(0).Slice(0, 17, 32).Reshape(3, 5) }
	for name, step := range map[string]func(){
		"r is x":    func() { tensor.LSTMStepInPlace(x, x, c, h) },
		"c is of x": func() { tensor.LSTMStepInPlace(x, r, in(x), h) },
		"h is of x": func() { tensor.LSTMStepInPlace(x, r, c, in(x)) },
		"h is of r": func() { tensor.LSTMStepInPlace(x, r, c, in(r)) },
		"h is c":    func() { tensor.LSTMStepInPlace(x, r, h, h) },
		"rows shared": func() {
			both := env.Randn(4, 20)
			tensor.LSTMStepInPlace(both.Slice(0, 0, 3), both.Slice(0, 1, 4), c, h)
		},
	} {
		before := append(x.Floats(), h.Floats()...)
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { step(); return nil })
		if err == nil || !strings.Contains(err.Error(), "share memory") || !slices.Equal(before, append(x.Floats(), h.Floats()...)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	both := env.Randn(2, 3, 20)
	want, _, _ := tensor.LSTMStep(both.Select(0, 0), both.Select(0, 1), c)
	if tensor.LSTMStepInPlace(both.Select(0, 0), both.Select(0, 1), c, h); !slices.Equal(h.Floats(), want.Floats()) {
		t.Errorf("of parts: %v, want %v", h, want)
	}
}

// TestLSTMStepGradTo: a gradient is the same bits wherever it is written, over an operand of its own too.
func TestLSTMStepGradTo(t *testing.T) {
	env := fresh(t, testutil.Device())
	dh, dcell, c, cell := env.Randn(3, 5), env.Randn(3, 5), env.Randn(3, 5), env.Randn(3, 5)
	gates := env.Rand(3, 20)
	want, wantC := tensor.LSTMStepGrad(dh, dcell, gates, c, cell, nil)
	room := tensor.LSTMRoom(gates, 2).Select(0, 1)
	over := gates.Clone()
	for name, to := range map[string]*tensor.Tensor{"a part of the room": room, "the gates": over} {
		from := gates
		if to == over {
			from = over
		}
		dx, dc := tensor.LSTMStepGrad(dh, dcell, from, c, cell, to)
		if !slices.Equal(to.Floats(), want.Floats()) || !slices.Equal(dx.Floats(), want.Floats()) || !slices.Equal(dc.Floats(), wantC.Floats()) {
			t.Errorf("to %s: %v, %v", name, dx, dc)
		}
	}
}
