package tensor_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// pairs are two devices each that values move between: one engine's, with copies from device to device, and two engines.
var pairs = map[string][2]string{
	"cards":       {"sim:a100-80x2:0", "sim:a100-80x2:1"},
	"cpu to card": {"cpu", "sim:0"},
	"card to cpu": {"sim:0", "cpu"},
	"two cpus":    {"cpu", "cpu"},
}

// onPairs runs f on each of pairs.
func onPairs(t *testing.T, f func(t *testing.T, a, b *tensor.Env)) {
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) {
			f(t, fresh(t, p[0]), fresh(t, p[1]))
		})
	}
}

func fresh(t testing.TB, name string) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// twoLayers is a loss whose second layer is on b's device: there, back and there again.
func twoLayers(a, b *tensor.Env, w, v, u *tensor.Tensor) *tensor.Tensor {
	h := a.Full(0.5, 4, 3).MatMul(w).Tanh()
	g := h.To(b).MatMul(v).Tanh()
	return g.To(a).MatMul(u).Add(h).To(b).Square().Mean()
}

// weights are the same three matrices on given devices.
func weights(e ...*tensor.Env) []*tensor.Tensor {
	var ws []*tensor.Tensor
	for i, e := range e {
		v := make([]float64, 9)
		for j := range v {
			v[j] = float64((j*7+i*5)%11)/11 - 0.4
		}
		ws = append(ws, tensor.NewParam(tensor.From(e, v, 3, 3).Cast(dtype.F32)))
	}
	return ws
}

func gradsOf(ws []*tensor.Tensor) (all []float64) {
	for _, w := range ws {
		all = append(all, w.Grad().Floats()...)
	}
	return all
}

// TestGradientsCrossDevices compares gradients of a model on two devices with those of the same model on one.
func TestGradientsCrossDevices(t *testing.T) {
	onPairs(t, func(t *testing.T, a, b *tensor.Env) {
		ws, ref := weights(a, b, a), weights(a, a, a)
		for i := range 2 { // the second adds to the first
			turn(a, i, func(a *tensor.Env) {
				turn(b, i, func(b *tensor.Env) { twoLayers(a, b, ws[0], ws[1], ws[2]).Backward() })
				twoLayers(a, a, ref[0], ref[1], ref[2]).Backward()
			})
		}
		near(t, gradsOf(ws), gradsOf(ref))
		for _, e := range []*tensor.Env{a, b} {
			for _, w := range ws {
				if w.Env().Device() == e.Device() {
					w.DropGrad()
				}
			}
		}
		if m := a.Device().Memory(); m.Scopes != 1 {
			t.Errorf("%d scopes are open", m.Scopes)
		}
		if m := b.Device().Memory(); m.Scopes != 1 {
			t.Errorf("%d scopes are open on the second device", m.Scopes)
		}
	})
}

func near(t *testing.T, got, want []float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { d := a - b; return d < 1e-6 && d > -1e-6 }) || len(want) == 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBlocksCrossDevices: a graph that leaves a block's device inside the block, or a Recompute's, survives it.
func TestBlocksCrossDevices(t *testing.T) {
	onPairs(t, func(t *testing.T, a, b *tensor.Env) {
		ws, ref := weights(a, b, a), weights(a, a, a)
		turn(a, 1, func(a *tensor.Env) {
			turn(b, 1, func(b *tensor.Env) {
				x := a.Full(0.5, 4, 3).MatMul(ws[2])
				a.Do(func(e *tensor.Env) *tensor.Tensor { return twoLayers(e, b, ws[0], ws[1], ws[2]) }).To(a).
					Add(tensor.Recompute(x, func(x *tensor.Tensor) *tensor.Tensor {
						return x.Tanh().To(b).MatMul(ws[1]).Exp().To(a).MatMul(ws[0]).Tanh()
					}).Sum()).Backward()
			})
			x := a.Full(0.5, 4, 3).MatMul(ref[2])
			twoLayers(a, a, ref[0], ref[1], ref[2]).Add(x.Tanh().MatMul(ref[1]).Exp().MatMul(ref[0]).Tanh().Sum()).Backward()
		})
		near(t, gradsOf(ws), gradsOf(ref))
	})
}

func TestGradAcrossDevices(t *testing.T) {
	onPairs(t, func(t *testing.T, a, b *tensor.Env) {
		x, unused := tensor.From(a, []float64{0.3, -0.7}, 2).RequireGrad(), tensor.From(a, []float64{1}, 1).RequireGrad()
		y := x.Exp().To(b).Mul(x.Sin().To(b)).Sum()
		g := tensor.GradGraph(y, x, unused)
		if g[0].Env().Device() != a.Device() || g[1].Env().Device() != a.Device() {
			t.Error("a gradient is on its leaf's device")
		}
		equal(t, "of what y does not depend on", g[1], 0)
		h := tensor.Grad(g[0].Sum().To(b), x)[0]
		equal(t, "d²(eˣ sin x) = 2 eˣ cos x", h, x.Exp().Mul(x.Cos()).Scale(2).Floats()...)
	})
}

func TestToRecords(t *testing.T) {
	a, b := open(t), open(t)
	w := param(a, 2, 3)
	for name, moved := range map[string]*tensor.Tensor{
		"without gradients here":  w.In(a.NoGrad()).To(b),
		"without gradients there": w.To(b.NoGrad()),
		"a constant":              a.Ones(2).To(b),
		"integers":                w.Cast(dtype.I64).To(b),
		"detached":                w.Detach().To(b),
	} {
		if moved.Recorded() {
			t.Errorf("%s: recorded", name)
		}
	}
	w.Scale(2).To(b.NoGrad()).Sum().Backward() // a graph is always continued
	equal(t, "gradient", w.Grad(), 2, 2)
	w.DropGrad()

	h := w.To(b)
	h.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Scale(10) })
	tied := h.Mul(w.To(b)).Sum()
	tied.Backward()
	equal(t, "through a hook, and to a weight that crosses twice", w.Grad(), 22, 33)
	fails(t, a, func() { tied.Backward() }, "already walked")

	lost := w.To(b).Sum()
	w.Replace(b.Ones(2))
	fails(t, a, func() { lost.Backward() }, "To", "before the model moves")
	y := w.Scale(2)
	w.Replace(a.Ones(2))
	fails(t, a, func() { y.Sum().Backward() }, "affine", "before the model moves")
}

// TestFuncStaysOnItsDevice: what Forward returns is on the operands' device.
func TestFuncStaysOnItsDevice(t *testing.T) {
	a, b := open(t), open(t)
	f := tensor.Func{Forward: func(_ *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].To(b)} }}
	fails(t, a, func() { f.Apply(a.Ones(2)) }, "Func", "Forward returned f32[2]", "To(env)")
	none := tensor.Func{Forward: func(*tensor.Call, []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{nil} }}
	fails(t, a, func() { none.Apply(a.Ones(2)) }, "Func", "result 0")
}

// TestCardsCopyWithoutTheHost: between two cards the host waits for no copy, and memory that a copy still reads is not
// used again before. The simulator's effects are late.
func TestCardsCopyWithoutTheHost(t *testing.T) {
	t.Setenv("WARPLINE_SIM", "late,check=all")
	a, b := fresh(t, "sim:a100-80x3:1"), fresh(t, "sim:a100-80x3:2")
	a.Device().OnWait(tensor.FailWaits)
	b.Device().OnWait(tensor.FailWaits)
	ws := weights(a, b, a)
	sum := a.Zeros(3, 3)
	for i := range 3 {
		turn(a, i, func(a *tensor.Env) {
			turn(b, i, func(b *tensor.Env) {
				twoLayers(a, b, ws[0], ws[1], ws[2]).Backward()
				x := b.Full(float64(i), 3, 3).To(a)
				sum.AddInPlace(x)
			})
		})
	}
	a.Device().OnWait(tensor.AllowWaits)
	equal(t, "sum", sum.Sum(), 27)
}

// TestCrossingLeavesNothing: what a batch computes on another device, in its root scope, goes with Backward.
func TestCrossingLeavesNothing(t *testing.T) {
	onPairs(t, func(t *testing.T, a, b *tensor.Env) {
		ws := weights(a, b, a)
		var before int64
		for i := range 3 {
			turn(a, i, func(a *tensor.Env) { twoLayers(a, b, ws[0], ws[1], ws[2]).To(a).Backward() })
			if used := b.Device().Memory().Used; i == 0 {
				before = used
			} else if used != before {
				t.Errorf("%d bytes in use after turn %d, %d after the first", used, i, before)
			}
		}
	})
}
