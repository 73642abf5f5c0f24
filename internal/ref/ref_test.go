package ref_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/rng"
)

func TestEveryCode(t *testing.T) {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if !ref.Has(code) {
			t.Errorf("%s has no reference", code)
		}
	}
	if ref.Has(ir.Invalid) || ref.Has(ir.Code(ir.Codes)) {
		t.Error("a code that is none has a reference")
	}
}

func eval(t *testing.T, code ir.Code, attr ir.Attr, p ir.Params, in ...ref.Array) []ref.Array {
	t.Helper()
	types := make([]*ir.Type, len(in))
	for i, a := range in {
		types[i] = a.Type
	}
	op := ir.New(code, attr, types...)
	out, err := ref.Eval(&op, &p, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestErrors(t *testing.T) {
	x := ref.Floats(ir.Dense(dtype.F32, 2), 1, 2)
	idx := ref.Ints(ir.Dense(dtype.I64, 1), 2)
	for _, c := range []struct {
		code  ir.Code
		types []*ir.Type
		in    []ref.Array
		words string
	}{
		{ir.Neg, []*ir.Type{x.Type}, nil, "takes 1 operands, got 0"},
		{ir.Neg, []*ir.Type{ir.Dense(dtype.F64, 2)}, []ref.Array{x}, "not f64[2]"},
		{ir.Neg, []*ir.Type{ir.Dense(dtype.F32, 3)}, []ref.Array{x}, "not f32[3]"},
		{ir.Neg, []*ir.Type{x.Type}, []ref.Array{{Type: x.Type, Data: []float64{1}}}, "with 1 elements"},
		{ir.Gather, []*ir.Type{x.Type, idx.Type}, []ref.Array{x, idx}, "index 2 is outside of [0, 2)"},
		{ir.Invalid, nil, nil, "no operation"},
	} {
		op := ir.New(c.code, ir.Attr{}, c.types...)
		if _, err := ref.Eval(&op, nil, c.in); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: error %v, want one with %q", c.code, err, c.words)
		}
	}
}

// TestIntegers pins what PyTorch leaves to the machine or computes as numbers.
func TestIntegers(t *testing.T) {
	lowest := int64(math.MinInt64)
	x, y := ir.Dense(dtype.I64, 4), ir.Dense(dtype.U8, 3)
	for _, c := range []struct {
		code ir.Code
		p    ir.Params
		in   []ref.Array
		want []int64
	}{
		{ir.Div, ir.Params{}, []ref.Array{ref.Ints(x, 7, -7, 7, lowest), ref.Ints(x, 2, 2, 0, -1)}, []int64{3, -3, 0, lowest}},
		{ir.Rem, ir.Params{}, []ref.Array{ref.Ints(x, 7, -7, 7, lowest), ref.Ints(x, -2, 2, 0, -1)}, []int64{-1, 1, 0, 0}},
		{ir.Abs, ir.Params{}, []ref.Array{ref.Ints(x, 1, -1, 0, lowest)}, []int64{1, 1, 0, lowest}},
		{ir.Neg, ir.Params{}, []ref.Array{ref.Ints(y, 0, 1, 255)}, []int64{0, 255, 1}},
		{ir.Affine, ir.Scalars(2.9, -1.9), []ref.Array{ref.Ints(x, 1, 1<<53+1, -1, 1<<62)}, []int64{1, 1<<54 + 1, -3, math.MaxInt64}},
		{ir.Clamp, ir.Scalars(-4, math.Inf(1)), []ref.Array{ref.Ints(y, 0, 7, 255)}, []int64{0, 7, 255}},
	} {
		if got := eval(t, c.code, ir.Attr{}, c.p, c.in...)[0].Int; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d, want %d", c.code, got, c.want)
		}
	}
}

// TestRandom demands that elements are those of package rng, whatever the shape, and that a 16-bit number stays below
// the bound that it would round to.
func TestRandom(t *testing.T) {
	const key, n = 0x1234567890abcdef, 4099
	p := ir.Scalars(0, 1)
	p.Value[2], p.N = key, 3
	want := make([]float32, n)
	rng.FillUniform32(want, key, 0, 0, 1)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16} {
		got := eval(t, ir.Uniform, ir.Attr{Out: ir.Dense(dt, n)}, p)[0].Data
		for i, v := range got {
			if v < 0 || v >= 1 || math.Abs(v-float64(want[i])) > dt.Epsilon() {
				t.Errorf("%s: element %d is %v, rng's %v", dt, i, v, want[i])
			}
		}
	}
	normal := make([]float64, n)
	rng.FillNormal64(normal, key, 0, 0, 1)
	if got := eval(t, ir.Normal, ir.Attr{Out: ir.Dense(dtype.F64, n)}, p)[0].Data; !slices.Equal(got, normal) {
		t.Error("normal numbers are not rng's")
	}
	x := ref.Floats(ir.Dense(dtype.F64, n), slices.Repeat([]float64{3}, n)...)
	drop := ir.Scalars(0.25)
	drop.Value[1], drop.N = key, 2
	for i, v := range eval(t, ir.Dropout, ir.Attr{}, drop, x)[0].Data {
		if keep := want[i] >= 0.25; keep && v != 4 || !keep && v != 0 {
			t.Errorf("element %d became %v with the number %v", i, v, want[i])
		}
	}
}

// TestBytes writes a strided view and reads it again; the gaps stay.
func TestBytes(t *testing.T) {
	for _, dt := range dtype.All() {
		typ := ir.Strided(dt, []int{2, 3}, []int{1, 4})
		a := ref.Ints(ir.Dense(dt, 2, 3), 0, 1, 1, 0, 1, 0)
		if dt.IsFloat() {
			a = ref.Floats(ir.Dense(dt, 2, 3), 0.5, -2, 3, math.Inf(1), 5, 6)
			if dt == dtype.F8E4M3 {
				a.Data[3] = dt.Max() // it has no infinity
			}
		}
		b := slices.Repeat([]byte{0xEE}, typ.Span()*dt.Size())
		ref.Encode(b, typ, a)
		if got := ref.Decode(b, typ); !slices.Equal(got.Data, a.Data) || !slices.Equal(got.Int, a.Int) {
			t.Errorf("%s: got %v, want %v", dt, got.Data, a.Data)
		}
		if gap := b[2*dt.Size():][:2*dt.Size()]; slices.ContainsFunc(gap, func(v byte) bool { return v != 0xEE }) {
			t.Errorf("%s: the gap holds % x", dt, gap)
		}
	}
}

// TestSumsAreExact adds what plain float64 addition loses.
func TestSumsAreExact(t *testing.T) {
	x := ref.Floats(ir.Dense(dtype.F64, 4), 1, 1e100, 1, -1e100)
	if got := eval(t, ir.Sum, ir.Attr{Axes: 1}, ir.Params{}, x)[0].Data[0]; got != 2 {
		t.Errorf("the sum is %v, want 2", got)
	}
}
