package optim

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestStochastic: every result is a neighbour in bfloat16 of what is rounded, found here by its bits, a value that bfloat16 has
// stays, and the mean over the draws is the value.
func TestStochastic(t *testing.T) {
	r := testutil.Rand(t)
	x := []float32{0, 1, -1, 1 + 0x1p-7, 1 + 0x1p-9, -1 - 0x1p-9, 1 - 0x1p-10, 2 - 0x1p-20, -2 + 0x1p-20, 0x1p-100 * (1 + 0x1p-8), 1.5 + 0x1p-8}
	for range 500 {
		x = append(x, float32(r.NormFloat64()*math.Exp2(float64(r.IntN(40)-20))))
	}
	const draws = 400
	for _, device := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		v := tensor.From(env, x, len(x))
		sums := make([]float64, len(x))
		for i := range draws {
			e, scope := env.Seed(uint64(i)).Scope()
			got := stochastic(v, e.Rand(len(x)))
			if got.DType() != dtype.BF16 {
				t.Fatal(got.DType())
			}
			for k, y := range got.Floats() {
				down := float64(math.Float32frombits(math.Float32bits(x[k]) &^ 0xffff)) // towards zero
				up := float64(math.Float32frombits(math.Float32bits(x[k])&^0xffff + 0x10000))
				if down == float64(x[k]) {
					up = down
				}
				if y != down && y != up {
					t.Fatalf("%s: %v becomes %v, and its neighbours are %v and %v", device, x[k], y, down, up)
				}
				if up != down {
					sums[k] += (y - float64(x[k])) / (up - down)
				}
			}
			scope.End()
		}
		for k, s := range sums {
			if mean := s / draws; math.Abs(mean) > 6*0.5/math.Sqrt(draws) { // of a deviation of half a gap at most
				t.Errorf("%s: %v is off by %v gaps in the mean", device, x[k], mean)
			}
		}
	}
}

// slow trains 64 equal parameters of a dtype by 200 equal gradients, with an optimizer loaded anew on the way if that is asked
// for. It tells their values after each step and the bytes of the optimizer's state.
func slow(t *testing.T, device string, dt dtype.DType, build func(m any) Optimizer, resume bool) (all [][]float64, state int64) {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]*tensor.Tensor{"w": tensor.NewParam(env.FullOf(dt, 1, 64))}
	opt := build(m)
	for i := range 200 {
		e, scope := env.Scope(uint64(i))
		m["w"].In(e).Cast(dtype.F32).Sum().Backward()
		opt.Step()
		scope.End()
		if i == 100 && resume {
			next := build(m)
			if err := next.Load(maps.Collect(opt.State()), opt.Counters()); err != nil {
				t.Fatal(err)
			}
			opt = next
		}
		all = append(all, m["w"].Floats())
	}
	for _, s := range opt.State() {
		state += s.Bytes()
	}
	return all, state
}

// TestRounding: updates of 1/4096 of a parameter are lost to bfloat16's nearest values, and not to Kahan's sums and stochastic
// rounding, which end where float32 does: within a unit of the last place, and in the mean. Resumed they give the same bits,
// and on a simulated card where its arithmetic is the CPU's.
func TestRounding(t *testing.T) {
	const gap = 0x1p-8 // of bfloat16 below 1
	for name, c := range map[string]struct {
		bytes [3]int64 // of state for an element, by rounding
		build func(m any, r Rounding, seed uint64) Optimizer
	}{
		"sgd": {[3]int64{0, 2, 0}, func(m any, r Rounding, seed uint64) Optimizer {
			return NewSGD(nn.Params(m), SGDConfig{LR: 1.0 / 4096, Rounding: r, Seed: seed})
		}},
		"momentum": {[3]int64{2, 6, 4}, func(m any, r Rounding, seed uint64) Optimizer {
			return NewSGD(nn.Params(m), SGDConfig{LR: 1.0 / 8192, Momentum: 0.5, Rounding: r, Seed: seed})
		}},
		"adamw": {[3]int64{4, 10, 8}, func(m any, r Rounding, seed uint64) Optimizer {
			return NewAdamW(nn.Params(m), AdamWConfig{LR: 1.0 / 4096, WeightDecay: -1, Rounding: r, Seed: seed})
		}},
	} {
		run := func(device string, dt dtype.DType, r Rounding, seed uint64, resume bool) ([][]float64, int64) {
			return slow(t, device, dt, func(m any) Optimizer { return c.build(m, r, seed) }, resume)
		}
		exact, _ := run("cpu", dtype.F32, Stochastic, 1, false)
		want := exact[199][0]
		for r := Nearest; r <= Stochastic; r++ {
			all, state := run("cpu", dtype.BF16, r, 1, false)
			got, mean := all[199], 0.0
			for _, v := range got {
				mean += v / 64
			}
			switch {
			case r == Nearest && mean != 1:
				t.Errorf("%s, nearest: %v, and nothing is lost", name, mean)
			case r == Kahan && math.Abs(got[0]-want) > gap:
				t.Errorf("%s, Kahan: %v, float32 comes to %v", name, got[0], want)
			case r == Stochastic && math.Abs(mean-want) > 6*math.Sqrt(200.0/16)*gap/8: // of a walk of 200 steps with 1/16 of a gap each
				t.Errorf("%s, stochastic: %v in the mean, float32 comes to %v", name, mean, want)
			}
			if state != 64*c.bytes[r] {
				t.Errorf("%s, %s: %d bytes of state, want %d for each of 64", name, r, state, c.bytes[r])
			}
			if again, _ := run("cpu", dtype.BF16, r, 1, true); !equal(again, all) {
				t.Errorf("%s, %s: other numbers when it is resumed", name, r)
			}
			if other, _ := run("cpu", dtype.BF16, r, 2, false); equal(other, all) != (r != Stochastic) {
				t.Errorf("%s, %s: the seed changes the numbers: %t", name, r, r != Stochastic)
			}
			if name == "sgd" {
				if card, _ := run("sim:0", dtype.BF16, r, 1, false); !equal(card, all) {
					t.Errorf("%s, %s: other numbers on a simulated card", name, r)
				}
			}
		}
	}
}

func equal(a, b [][]float64) bool {
	return slices.EqualFunc(a, b, func(x, y []float64) bool { return slices.Equal(x, y) })
}

// TestRoundingRefuses: a rounding that does not exist, and draws that a captured step would repeat.
func TestRoundingRefuses(t *testing.T) {
	env := freshEnv(t)
	m := map[string]*tensor.Tensor{"w": tensor.NewParam(env.FullOf(dtype.BF16, 1, 4))}
	_, err := tensor.Try(env, func(*tensor.Env) any { return NewAdamW(nn.Params(m), AdamWConfig{Rounding: 9}) })
	if err == nil || !strings.Contains(err.Error(), "rounding 9") {
		t.Error(err)
	}
	opt := NewSGD(nn.Params(m), SGDConfig{Rounding: Stochastic})
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		loss := m["w"].In(x.Env()).Cast(dtype.F32).Mul(x).Sum()
		loss.Backward()
		opt.Step()
		return loss.Detach()
	})
	_, err = tensor.Try(env, func(e *tensor.Env) any {
		for range 3 {
			step.Run(e.Ones(4))
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "stochastic rounding draws by the number of the step") {
		t.Error(err)
	}
}
