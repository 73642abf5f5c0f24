package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

var floatTypes = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16}

// value is an operand: its elements in row-major order, whatever the strides of its type.
type value struct {
	t *ir.Type
	v []float64
}

// of rounds numbers to the elements of t; where the type repeats an element, the last number counts.
func of(tb testing.TB, t *ir.Type, v []float64) value {
	b := newBuffer(tb, bytesOf(t))
	write(b.arg, t, v)
	return value{t, read(b.arg, t)}
}

// normals are normal numbers of a standard deviation.
func normals(tb testing.TB, r *rand.Rand, scale float64, t *ir.Type) value {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = scale * r.NormFloat64()
	}
	return of(tb, t, v)
}

// whole are integers below n.
func whole(tb testing.TB, r *rand.Rand, n int, t *ir.Type) value {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = float64(r.IntN(n))
	}
	return of(tb, t, v)
}

// evaluate runs an op as mustLaunch does.
func evaluate(tb testing.TB, code ir.Code, a ir.Attr, p ir.Params, in ...value) []value {
	tb.Helper()
	var types []*ir.Type
	var v [][]float64
	for _, x := range in {
		types, v = append(types, x.t), append(v, x.v)
	}
	op := ir.New(code, a, types...)
	outs, err := op.Infer()
	if err != nil {
		tb.Fatal(err)
	}
	got := mustLaunch(tb, op, p, v...).out
	var res []value
	for i, t := range outs {
		res = append(res, value{t, got[i]})
	}
	return res
}

// near compares with a float64 reference: an error of tol for f32 and of tol squared for f64, relative to the element
// plus size. The 16-bit types are computed in f32 and rounded, half times.
func near(tb testing.TB, what string, got value, want []float64, tol, size, half float64) {
	tb.Helper()
	switch dt := got.t.DType; dt {
	case dtype.F64:
		tol *= tol
	case dtype.F16, dtype.BF16:
		tol += half * dt.Epsilon()
	}
	if failed := tb.Failed(); !failed {
		if testutil.Close(tb, got.v, want, tol, tol*size); tb.Failed() {
			tb.Fatalf("%s: %s", what, got.t)
		}
	}
}

// slope is the gradient of Σ g·f(x) at x by central differences.
func slope(f func(x []float64) []float64, x, g []float64) []float64 {
	const h = 1e-4
	d := make([]float64, len(x))
	at := func(i int, v float64) (s float64) {
		old := x[i]
		x[i] = v
		for j, y := range f(x) {
			s += g[j] * y
		}
		x[i] = old
		return s
	}
	for i, v := range x {
		d[i] = (at(i, v+h) - at(i, v-h)) / (2 * h)
	}
	return d
}
