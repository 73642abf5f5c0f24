package tensor_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLSTMStepGradTo: a gradient is the same bits wherever it is written, over an operand of its own too.
func TestLSTMStepGradTo(t *testing.T) {
	env := fresh(t, testutil.Device())
	dh, dcell, c, cell := env.Randn(3, 5), env.Randn(3, 5), env.Randn(3, 5), env.Randn(3, 5)
	gates := env.Rand(3, 20)
	want, wantC := tensor.LSTMStepGrad(dh, dcell, gates, c, cell, nil)
	room := tensor.LSTMGradRoom(gates, 2).Select(0, 1)
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
