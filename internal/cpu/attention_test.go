package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// attentionCase is one attention: the kind of mask is 0 for none, 1 for bool, 2 for one that is added.
type attentionCase struct {
	b, h, t, s, d, e int
	causal           bool
	mask             int
}

var attentionCases = []attentionCase{
	{1, 1, 1, 1, 1, 1, false, 0},
	{0, 2, 3, 3, 4, 4, false, 0},
	{1, 2, 0, 3, 4, 4, false, 0},
	{1, 2, 3, 0, 4, 4, false, 0},
	{2, 1, 5, 7, 3, 2, false, 0},
	{1, 2, 7, 5, 3, 4, true, 0},
	{1, 2, 5, 9, 4, 3, true, 1},
	{2, 2, 6, 7, 5, 5, false, 1},
	{1, 2, 7, 6, 3, 5, false, 2},
	{1, 1, 9, 9, 2, 3, true, 2},
}

// ref is the definition, with 0 for a query that sees nothing.
func (c attentionCase) ref(q, k, v, mask []float64, scale float64) (o, lse []float64) {
	o, lse = make([]float64, c.b*c.h*c.t*c.e), make([]float64, c.b*c.h*c.t)
	for i := range lse {
		head, row := i/c.t, i%c.t
		p, high, total := make([]float64, c.s), math.Inf(-1), 0.
		for j := range p {
			for l := range c.d {
				p[j] += scale * q[i*c.d+l] * k[(head*c.s+j)*c.d+l]
			}
			if c.mask == 2 {
				p[j] += mask[i*c.s+j]
			}
			if c.causal && j > row || c.mask == 1 && mask[i*c.s+j] == 0 {
				p[j] = math.Inf(-1)
			}
			high = max(high, p[j])
		}
		if lse[i] = math.Inf(-1); math.IsInf(high, -1) {
			continue
		}
		for _, v := range p {
			total += math.Exp(v - high)
		}
		lse[i] = high + math.Log(total)
		for j, u := range p {
			for l := range c.e {
				o[i*c.e+l] += math.Exp(u-lse[i]) * v[(head*c.s+j)*c.e+l]
			}
		}
	}
	return o, lse
}

// inputs are q, k, v and perhaps a mask, which hides some queries altogether.
func (c attentionCase) inputs(tb testing.TB, r *rand.Rand, dt dtype.DType) []value {
	in := []value{normals(tb, r, 1, ir.Dense(dt, c.b, c.h, c.t, c.d)), normals(tb, r, 1, ir.Dense(dt, c.b, c.h, c.s, c.d)), normals(tb, r, 1, ir.Dense(dt, c.b, c.h, c.s, c.e))}
	mt := ir.Dense(dt, c.b, c.h, c.t, c.s)
	var m value
	switch c.mask {
	case 0:
		return in
	case 1:
		m = whole(tb, r, 2, mt.As(dtype.Bool))
	case 2:
		m = normals(tb, r, 1, mt)
	}
	for i := range m.v {
		hidden := []float64{1: 0, 2: math.Inf(-1)}[c.mask]
		if row := i / c.s; row%5 == 2 || c.mask == 2 && r.IntN(4) == 0 {
			m.v[i] = hidden
		}
	}
	return append(in, m)
}

func TestAttention(t *testing.T) {
	r := testutil.Rand(t)
	long := []attentionCase{{1, 2, 130, 70, 8, 16, false, 0}, {1, 1, 70, 600, 16, 8, false, 1}, {1, 1, 150, 530, 4, 4, true, 2}, {1, 2, 200, 300, 8, 32, true, 0}}
	for _, dt := range floatTypes {
		cases := attentionCases
		if dt == dtype.F32 {
			cases = append(long, cases...)
		}
		for _, c := range cases {
			name, in, scale := fmt.Sprint(c), c.inputs(t, r, dt), 1/math.Sqrt(float64(c.d))
			var mask []float64
			if c.mask > 0 {
				mask = in[3].v
			}
			o, lse := c.ref(in[0].v, in[1].v, in[2].v, mask, scale)
			a, p := ir.Attr{Causal: c.causal}, ir.Scalars(scale)
			got := evaluate(t, ir.Attention, a, p, in...)
			near(t, name, got[0], o, 4e-6, 4, 0.51)
			near(t, name+" lse", got[1], lse, 4e-6, 4, 0)
			g := normals(t, r, 1, got[0].t)
			grads := evaluate(t, ir.AttentionGrad, a, p, append([]value{g, in[0], in[1], in[2], got[0], got[1]}, in[3:]...)...)
			if c.t > 10 {
				c.checkLong(t, name, grads, g, in, mask, scale)
				continue
			}
			for i, what := range []string{" dq", " dk", " dv"} {
				d := slope(func([]float64) []float64 { o, _ := c.ref(in[0].v, in[1].v, in[2].v, mask, scale); return o }, in[i].v, g.v)
				near(t, name+what, grads[i], d, 3e-4, 10, 4)
			}
		}
	}
}

// checkLong compares gradients, too many for finite differences, with the slope along their own direction and along a
// random one.
func (c attentionCase) checkLong(t *testing.T, name string, grads []value, g value, in []value, mask []float64, scale float64) {
	t.Helper()
	r := testutil.Rand(t)
	for i, d := range grads {
		dir := make([]float64, len(d.v))
		var along, norm float64
		for j, v := range d.v {
			dir[j] = r.NormFloat64()
			along += dir[j] * v
			norm += v * v
		}
		x := in[i].v
		f := func(h []float64) []float64 {
			moved := append([]float64(nil), x...)
			for j := range moved {
				moved[j] += h[0] * dir[j]
			}
			args := [][]float64{in[0].v, in[1].v, in[2].v}
			args[i] = moved
			o, _ := c.ref(args[0], args[1], args[2], mask, scale)
			return o
		}
		got := value{ir.Dense(d.t.DType, 1), []float64{along}}
		near(t, fmt.Sprint(name, " gradient ", i), got, slope(f, []float64{0}, g.v), 1e-3, 4*math.Sqrt(norm), 4)
	}
}

func BenchmarkAttention(b *testing.B) {
	q, lse := ir.Dense(dtype.F32, 8, 4, 256, 32), ir.Dense(dtype.F32, 8, 4, 256)
	p := ir.Scalars(0.17)
	work := 4 * 8 * 4 * 256 * 256 * 32
	for _, a := range []ir.Attr{{}, {Causal: true}} {
		w := work
		if a.Causal {
			w /= 2
		}
		b.Run(fmt.Sprintf("o/causal=%v", a.Causal), func(b *testing.B) { rate(b, "GFLOP/s", w, ir.Attention, a, p, q, q, q) })
		b.Run(fmt.Sprintf("grad/causal=%v", a.Causal), func(b *testing.B) {
			rate(b, "GFLOP/s", w*5/2, ir.AttentionGrad, a, p, q, q, q, q, q, lse)
		})
	}
}
