package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestDivide32 divides as the kernels do, by numbers of all sizes and next to powers of two.
func TestDivide32(t *testing.T) {
	r := testutil.Rand(t)
	check := func(n, i uint32) {
		d := divide32(int(n))
		if got := (uint32(uint64(i)*uint64(d.mul)>>32) + i) >> d.shift; got != i/n {
			t.Fatalf("%d / %d is %d, got %d", i, n, i/n, got)
		}
	}
	const most = 1<<31 - 1
	for bit := range 31 {
		for _, n := range []uint32{1 << bit, 1<<bit + 1, 1<<bit - 1, r.Uint32N(1<<bit) + 1} {
			if n == 0 {
				continue
			}
			for _, i := range []uint32{0, 1, n - 1, n, 2*n - 1, most / n * n, most/n*n - 1, most, r.Uint32N(most)} {
				check(n, min(i, most))
			}
		}
	}
}

// randomView is a type with strides of all kinds: broadcast, transposed, with gaps.
func randomView(r *rand.Rand, shape []int) *ir.Type {
	order := r.Perm(len(shape))
	strides, step := make([]int, len(shape)), 1
	for _, d := range order {
		switch r.IntN(4) {
		case 0: // repeated
		case 1:
			step += r.IntN(3)
			fallthrough
		default:
			strides[d] = step
			step *= shape[d]
		}
	}
	if r.IntN(3) == 0 {
		return ir.Dense(dtype.F32, shape...)
	}
	return ir.Strided(dtype.F32, shape, strides)
}

// offsets lists where each operand's elements are, in the order of a layout.
func (l *layout) offsets() (all [][]int) {
	all = make([][]int, len(l.strides))
	for i := range l.size() {
		for k, strides := range l.strides {
			rest, at := i, 0
			for d := l.inner(); d >= 0; d-- {
				at += rest % l.sizes[d] * strides[d]
				rest /= l.sizes[d]
			}
			all[k] = append(all[k], at)
		}
	}
	return all
}

// TestLayoutParts compares layouts, whole and in parts, with the offsets that the types' own shape and strides give.
func TestLayoutParts(t *testing.T) {
	r := testutil.Rand(t)
	for range 500 {
		shape := make([]int, r.IntN(6))
		for i := range shape {
			shape[i] = 1 + r.IntN(4)
		}
		x, y := randomView(r, shape), randomView(r, shape)
		plain := layout{slices.Concat([]int{1}, shape), [][]int{slices.Concat([]int{0}, x.Strides()), slices.Concat([]int{0}, y.Strides())}}
		want := plain.offsets()
		l := layoutOf(x, y)
		got := make([][]int, 2)
		most, out := 1+r.IntN(20), 0
		for _, p := range l.parts(most) {
			if p.out != out || p.size() > most {
				t.Fatalf("%v, %v: a part of %d elements begins at %d, not at %d", x, y, p.size(), p.out, out)
			}
			out += p.size()
			for k, list := range p.offsets() {
				for _, at := range list {
					got[k] = append(got[k], p.at[k]+at)
				}
			}
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v, %v in parts of %d: %v, want %v", x, y, most, got, want)
		}
	}
}

// TestLayoutMerges pins which dimensions are one.
func TestLayoutMerges(t *testing.T) {
	dense := ir.Dense(dtype.F32, 2, 3, 4, 5)
	for _, c := range []struct {
		operands []*ir.Type
		sizes    []int
	}{
		{[]*ir.Type{dense, dense}, []int{120}},
		{[]*ir.Type{ir.Dense(dtype.F32)}, []int{1}},
		{[]*ir.Type{ir.Dense(dtype.F32, 1, 7, 1)}, []int{7}},
		{[]*ir.Type{dense, ir.Strided(dtype.F32, dense.Shape(), []int{0, 0, 0, 1})}, []int{24, 5}},
		{[]*ir.Type{dense, ir.Strided(dtype.F32, dense.Shape(), []int{0, 1, 0, 0})}, []int{2, 3, 20}},
		{[]*ir.Type{dense, ir.Strided(dtype.F32, dense.Shape(), []int{0, 0, 0, 0})}, []int{120}},
		{[]*ir.Type{ir.Dense(dtype.U8, 1<<20, 1<<20)}, []int{1 << 40}},
	} {
		if l := layoutOf(c.operands...); !slices.Equal(l.sizes, c.sizes) {
			t.Errorf("%v: dimensions of sizes %v, want %v", c.operands, l.sizes, c.sizes)
		}
	}
}

// TestLargePlans plans operands of more elements than a launch counts: the launches cover them all, within the grid's
// limits.
func TestLargePlans(t *testing.T) {
	l := layoutOf(ir.Dense(dtype.F32, 3, 1<<31), ir.Strided(dtype.F32, []int{3, 1 << 31}, []int{1, 3}))
	total := 0
	for _, p := range l.parts(mostElements) {
		if p.out != total || p.at[0] != total {
			t.Fatalf("a part begins at %d and %d, want %d", p.out, p.at[0], total)
		}
		if all, _ := p.chunks(1); all > mostElements {
			t.Fatalf("a part has %d chunks", all)
		}
		if size := len(p.param(4).bytes); size != 16+16+2*8+7*(16+2*8) {
			t.Fatalf("a layout has %d bytes", size)
		}
		total += p.size()
	}
	if total != 3<<31 {
		t.Fatalf("the parts have %d elements", total)
	}
}
