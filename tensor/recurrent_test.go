package tensor_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestLSTMTo: a result is the same bits wherever it is written, over an operand of its own too.
func TestLSTMTo(t *testing.T) {
	env := fresh(t, testutil.Device())
	normal := func(wide int) *tensor.Tensor { return env.Randn(3, 5*wide) }
	gates := env.Rand(3, 20)
	ops := map[string]struct {
		in   []*tensor.Tensor
		over int // an operand of the first result's shape
		room *tensor.Tensor
		run  func(in []*tensor.Tensor, to *tensor.Tensor) []*tensor.Tensor
	}{
		"a step": {[]*tensor.Tensor{normal(4), normal(4), normal(1)}, 2, tensor.LSTMStateRoom(normal(1), dtype.F32, 2), func(in []*tensor.Tensor, to *tensor.Tensor) []*tensor.Tensor {
			h, c, gates := tensor.LSTMStep(in[0], in[1], in[2], to)
			return []*tensor.Tensor{h, c, gates}
		}},
		"its gradient": {[]*tensor.Tensor{normal(1), normal(1), gates, normal(1), normal(1)}, 2, tensor.LSTMGradRoom(gates, 2), func(in []*tensor.Tensor, to *tensor.Tensor) []*tensor.Tensor {
			dx, dc := tensor.LSTMStepGrad(in[0], in[1], in[2], in[3], in[4], to)
			return []*tensor.Tensor{dx, dc}
		}},
	}
	for name, op := range ops {
		want := op.run(op.in, nil)
		over := slices.Clone(op.in)
		over[op.over] = over[op.over].Clone()
		for where, in := range map[string][]*tensor.Tensor{"a part of the room": op.in, "an operand": over} {
			to := op.room.Select(0, 1)
			if where == "an operand" {
				to = in[op.over]
			}
			got := op.run(in, to)
			for i := range want {
				if !slices.Equal(got[i].Floats(), want[i].Floats()) {
					t.Errorf("%s to %s: result %d is %v, and %v where it is made", name, where, i, got[i], want[i])
				}
			}
			if !slices.Equal(to.Floats(), want[0].Floats()) {
				t.Errorf("%s to %s: there is %v", name, where, to)
			}
		}
	}
}

// TestLSTMToIsLookedAt: where anomalies are looked for, a result that is written where it is told is no exception.
func TestLSTMToIsLookedAt(t *testing.T) {
	env := fresh(t, testutil.Device())
	defer env.DetectAnomaly(nil)()
	x, zero := env.Full(-1e4, 3, 20), env.Zeros(3, 20)
	room := tensor.LSTMStateRoom(env.Ones(3, 5), dtype.F32, 1).Select(0, 0)
	for name, to := range map[string]*tensor.Tensor{"made": nil, "written": room} {
		_, err := env.Try(func(e *tensor.Env) *tensor.Tensor {
			tensor.LSTMStep(x, zero, e.Full(math.Inf(1), 3, 5), to) // 0·∞
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "lstm_step") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
