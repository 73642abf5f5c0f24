package ir

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// addresses lists where the elements of a view lie, in row-major order, counted in elements.
func addresses(shape, strides []int) []int {
	at := []int{0}
	for i, d := range shape {
		next := make([]int, 0, len(at)*d)
		for _, a := range at {
			for j := range d {
				next = append(next, a+j*strides[i])
			}
		}
		at = next
	}
	return at
}

func (t *Type) addresses() []int { return addresses(t.shape, t.strides) }

// anyStrides finds strides for a view of given addresses by looking at the neighbours of the first element, or reports
// that there are none.
func anyStrides(at, shape []int) bool {
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			strides[i] = at[step] - at[0]
		}
		step *= shape[i]
	}
	return slices.Equal(addresses(shape, strides), at)
}

// smallType is a random view of at most a few hundred elements, as slices, transposes and expansions make it.
func smallType(r *rand.Rand) *Type {
	shape := make([]int, r.IntN(6))
	for i := range shape {
		shape[i] = []int{1, 2, 2, 3, 4, 6}[r.IntN(6)]
		if r.IntN(30) == 0 {
			shape[i] = 0
		}
	}
	strides, step := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(shape[i], 1)
		switch r.IntN(8) {
		case 0:
			step *= 2
		case 1:
			strides[i] = 0
		}
	}
	if r.IntN(3) == 0 {
		r.Shuffle(len(shape), func(i, j int) {
			shape[i], shape[j], strides[i], strides[j] = shape[j], shape[i], strides[j], strides[i]
		})
	}
	return Strided(dtype.F32, shape, strides)
}

// regroup is another shape with as many elements.
func regroup(r *rand.Rand, shape []int) []int {
	var factors []int
	for _, d := range shape {
		for _, p := range []int{2, 3} {
			for d > 1 && d%p == 0 {
				factors = append(factors, p)
				d /= p
			}
		}
		if d == 0 {
			factors = append(factors, 0)
		}
	}
	if r.IntN(4) == 0 {
		r.Shuffle(len(factors), func(i, j int) { factors[i], factors[j] = factors[j], factors[i] })
	}
	out := []int{}
	for _, f := range factors {
		switch k := r.IntN(8); {
		case len(out) == 0 || k < 4 && len(out) < 5:
			out = append(out, f)
		case k == 7 && len(out) < 5:
			out = append(out, 1, f)
		default:
			out[len(out)-1] *= f
		}
	}
	return out
}

func TestReshapeStrides(t *testing.T) {
	r := testutil.Rand(t)
	views := 0
	for range 10000 {
		x := smallType(r)
		shape := regroup(r, x.shape)
		strides, ok := ReshapeStrides(x, shape)
		if x.size == 0 {
			if !ok {
				t.Fatalf("%s to %v: no view of nothing", x, shape)
			}
			continue
		}
		at := x.addresses()
		if want := anyStrides(at, shape); ok != want {
			t.Fatalf("%s to %v: a view is %v, want %v", x, shape, ok, want)
		}
		if ok && !slices.Equal(addresses(shape, strides), at) {
			t.Fatalf("%s to %v: strides %v give %v, want %v", x, shape, strides, addresses(shape, strides), at)
		}
		if ok && !x.dense {
			views++
		}
	}
	if views < 300 {
		t.Errorf("only %d views of strided values were tried", views)
	}
}

func TestTypeFacts(t *testing.T) {
	r := testutil.Rand(t)
	for range 5000 {
		x := smallType(r)
		at := x.addresses()
		span, dense := 0, true
		for i, a := range at {
			span = max(span, a+1)
			dense = dense && a == i
		}
		if x.Size() != len(at) || x.Span() != span || x.IsDense() != dense || x.Bytes() != int64(4*len(at)) {
			t.Fatalf("%s: size %d, span %d, dense %v; want %d, %d, %v", x, x.Size(), x.Span(), x.IsDense(), len(at), span, dense)
		}
		slices.Sort(at)
		if got, want := distinct(x), int64(4*len(slices.Compact(at))); x.size > 0 && got < want {
			t.Fatalf("%s: %d bytes, but %d are touched", x, got, want)
		}
	}
}

// TestViews compares every view op with a choice among the operand's addresses.
func TestViews(t *testing.T) {
	r := testutil.Rand(t)
	for range 5000 {
		x := smallType(r)
		if x.Rank() == 0 {
			continue
		}
		at, shape := x.addresses(), x.shape
		rowMajor := x.AsDense().strides
		axis := r.IntN(x.Rank())
		start := r.IntN(shape[axis] + 1)
		step := 1 + r.IntN(3)
		n := (shape[axis] - start + step - 1) / step
		sliced := New(Slice, Attr{Axis: int8(axis), Dims: [MaxRank]int32{int32(start), int32(n), int32(step)}}, x)
		cut, picked := slices.Clone(shape), slices.Clone(rowMajor)
		cut[axis], picked[axis] = n, rowMajor[axis]*step
		wantView(t, sliced, at, cut, picked, start*rowMajor[axis])

		var a Attr
		turned, places := make([]int, x.Rank()), make([]int, x.Rank())
		for i, d := range r.Perm(x.Rank()) {
			a.Dims[i] = int32(d)
			turned[i], places[i] = shape[d], rowMajor[d]
		}
		wantView(t, New(Permute, a, x), at, turned, places, 0)

		wide, repeated := append([]int{2}, shape...), append([]int{0}, rowMajor...)
		for i, d := range wide {
			if d == 1 {
				wide[i], repeated[i] = 3, 0
			}
		}
		wantView(t, New(Expand, Attr{Out: Dense(x.DType, wide...)}, x), at, wide, repeated, 0)
	}
}

// wantView demands that a view op gives those of the operand's addresses that strides over their list choose.
func wantView(t *testing.T, o Op, at, shape, strides []int, first int) {
	t.Helper()
	out, err := o.Infer()
	if err != nil {
		t.Fatalf("%s: %v", o, err)
	}
	if !slices.Equal(out[0].shape, shape) {
		t.Fatalf("%s: shape %v, want %v", o, out[0].shape, shape)
	}
	got := out[0].addresses()
	for i, j := range addresses(shape, strides) {
		if got[i]+o.ViewOffset() != at[first+j] {
			t.Fatalf("%s: element %d lies at %d, want %d", o, i, got[i]+o.ViewOffset(), at[first+j])
		}
	}
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct{ a, b, want []int }{ // NumPy's user guide
		{[]int{256, 256, 3}, []int{3}, []int{256, 256, 3}},
		{[]int{8, 1, 6, 1}, []int{7, 1, 5}, []int{8, 7, 6, 5}},
		{[]int{5, 4}, []int{1}, []int{5, 4}},
		{[]int{15, 3, 5}, []int{15, 1, 5}, []int{15, 3, 5}},
		{[]int{15, 3, 5}, []int{3, 1}, []int{15, 3, 5}},
		{[]int{3}, []int{4}, nil},
		{[]int{2, 1}, []int{8, 4, 3}, nil},
		{[]int{0, 1}, []int{1, 3}, []int{0, 3}},
		{[]int{}, []int{}, []int{}},
	} {
		for _, swap := range []bool{false, true} {
			if swap {
				c.a, c.b = c.b, c.a
			}
			got, err := Broadcast(c.a, c.b)
			if (err != nil) != (c.want == nil) || err == nil && !slices.Equal(got, c.want) {
				t.Errorf("%v with %v: %v, %v, want %v", c.a, c.b, got, err, c.want)
			}
		}
	}
	r := testutil.Rand(t)
	for range 5000 {
		a, b := smallType(r), smallType(r)
		before := slices.Clone(a.shape)
		shape, err := Broadcast(a.shape, b.shape)
		if !slices.Equal(a.shape, before) {
			t.Fatalf("Broadcast changed %v to %v", before, a.shape)
		}
		for _, x := range []*Type{a, b} {
			o := New(Expand, Attr{Out: Dense(x.DType, shape...)}, x)
			if err == nil {
				_, err = o.Infer()
				if err != nil {
					t.Fatalf("%v with %v gives %v: %v", a.shape, b.shape, shape, err)
				}
			}
		}
		if (err == nil) != broadcasts(a.shape, b.shape) {
			t.Fatalf("%v with %v: %v", a.shape, b.shape, err)
		}
	}
}

// broadcasts reads the rule from the right.
func broadcasts(a, b []int) bool {
	for i := 1; i <= min(len(a), len(b)); i++ {
		x, y := a[len(a)-i], b[len(b)-i]
		if x != y && x != 1 && y != 1 {
			return false
		}
	}
	return true
}

func TestInterning(t *testing.T) {
	r := testutil.Rand(t)
	for range 2000 {
		x, y := smallType(r), smallType(r)
		same := slices.Equal(x.shape, y.shape) && slices.Equal(x.strides, y.strides)
		if (x == y) != same {
			t.Fatalf("%s with strides %v and %s with strides %v: one pointer is %v", x, x.strides, y, y.strides, x == y)
		}
		if again := Strided(x.DType, slices.Clone(x.shape), slices.Clone(x.strides)); again != x {
			t.Fatalf("%s has two pointers", x)
		}
		if x.As(dtype.F64) == x || x.As(dtype.F64).DType != dtype.F64 {
			t.Fatalf("%s as f64 is %s", x, x.As(dtype.F64))
		}
	}
	var got [8]*Type
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for j := range 6000 { // more than the table sweeps at
				Dense(dtype.U8, i, j)
			}
			got[i] = Dense(dtype.I32, 3, 1, 4)
		})
	}
	wg.Wait()
	for _, x := range got {
		if x != got[0] {
			t.Fatal("goroutines got different pointers for one type")
		}
	}
	long := make([]*Type, 9)
	for i := range long {
		long[i] = Dense(dtype.F32, i%3)
	}
	if a, b := New(Cat, Attr{}, long...), New(Cat, Attr{}, slices.Clone(long)...); a != b || a.NumIn() != 9 || a.In(8) != long[8] {
		t.Error("equal ops with many operands differ")
	}
}

func TestCheckShape(t *testing.T) {
	for _, shape := range [][]int{{-1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1 << 48, 2}, {1 << 24, 1 << 24, 2}, {0, 1 << 48, 2}, {1 << 62, 1 << 62}} {
		if CheckShape(shape) == nil {
			t.Errorf("%v is accepted", shape)
		}
	}
	for _, shape := range [][]int{nil, {0}, {1 << 48}, {1 << 24, 1 << 24}, {1, 1, 1, 1, 1, 1, 1, 1}} {
		if err := CheckShape(shape); err != nil {
			t.Error(err)
		}
	}
}
