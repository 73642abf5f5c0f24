package cpu

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// sparse is a type with holes between its elements and no element twice: a result that is a view.
func sparse(dt dtype.DType, shape []int, order []int) *ir.Type {
	strides := make([]int, len(shape))
	step := 2
	for _, d := range order {
		strides[d] = step
		step = step*max(shape[d], 1) + 1
	}
	return ir.Strided(dt, shape, strides)
}

func TestCopy(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for i := range 12 {
			shape := randomShape(r)
			if i < 2 {
				shape = []int{129, 3, 67}
			}
			x := randomView(r, dt, shape)
			attr := ir.Attr{}
			if i%2 == 1 {
				attr.Out = sparse(dt, shape, r.Perm(len(shape)))
			}
			op := ir.New(ir.Copy, attr, x)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, x))
			compare(t, op, got.out[0], got.in[0], 0, 0)
		}
	}
}

// A result with holes must leave what is in them alone.
func TestCopyLeavesHoles(t *testing.T) {
	x := ir.Dense(dtype.F32, 3, 4)
	y := ir.Strided(dtype.F32, []int{3, 4}, []int{2, 10})
	got := mustLaunch(t, ir.New(ir.Copy, ir.Attr{Out: y}, x), ir.Params{}, make([]float64, 12))
	used := map[int]bool{}
	eachPlace(y, func(_, off int) { used[off] = true })
	for i, b := range got.bytes[0] {
		if !used[i/4] && b != 0xa5 {
			t.Fatalf("byte %d between the elements was written", i)
		}
	}
}

// The reference knows nothing of dtype's conversions: toward zero and saturated for integers, the low byte for u8, and
// within half a unit in the last place for floats.
func TestCast(t *testing.T) {
	r := testutil.Rand(t)
	for _, from := range dtype.All() {
		for _, to := range dtype.All() {
			x := randomView(r, from, []int{7, 33, 3})
			v := numbersFor(r, x)
			op := ir.New(ir.Cast, ir.Attr{DType: to}, x)
			got := mustLaunch(t, op, ir.Params{}, v)
			want := make([]float64, len(v))
			for i, a := range got.in[0] {
				switch {
				case to == dtype.Bool:
					want[i] = truth(a != 0)
				case to.IsInt():
					want[i] = held(to, math.Trunc(a))
				default:
					want[i] = a
				}
			}
			tol := 0.
			if to.IsFloat() {
				tol = to.Epsilon() / 2
			}
			compare(t, op, got.out[0], want, tol, to.SmallestNormal())
		}
	}
}

func TestFull(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for _, y := range []*ir.Type{ir.Dense(dt), ir.Dense(dt, 0), ir.Dense(dt, 150, 150), sparse(dt, []int{3, 5}, r.Perm(2))} {
			op := ir.New(ir.Full, ir.Attr{Out: y}, nil...)
			got := mustLaunch(t, op, ir.Scalars(1))
			want := make([]float64, y.Size())
			for i := range want {
				want[i] = 1
			}
			compare(t, op, got.out[0], want, 0, 0)
		}
	}
}

func TestIota(t *testing.T) {
	for _, dt := range numberTypes {
		y := ir.Dense(dt, 5, 20)
		op := ir.New(ir.Iota, ir.Attr{Out: y})
		got := mustLaunch(t, op, ir.Scalars(3, 2))
		want := make([]float64, y.Size())
		for i := range want {
			want[i] = float64(3 + 2*i)
		}
		compare(t, op, got.out[0], want, 0, 0)
	}
	// float32 holds every integer of a long one below 2²⁴.
	y := ir.Dense(dtype.F32, 100003)
	op := ir.New(ir.Iota, ir.Attr{Out: y})
	if got := mustLaunch(t, op, ir.Scalars(0, 1)).out[0]; got[100002] != 100002 || got[65536] != 65536 {
		t.Errorf("long iota: %v, %v", got[100002], got[65536])
	}
}

func BenchmarkMove(b *testing.B) {
	x := ir.Dense(dtype.F32, 512, 512)
	turned := ir.Strided(dtype.F32, []int{512, 512}, []int{1, 512})
	heads := ir.Strided(dtype.F32, []int{8, 12, 128, 64}, []int{128 * 768, 64, 768, 1})
	b.Run("dense", func(b *testing.B) { bench(b, ir.New(ir.Copy, ir.Attr{}, x), ir.Params{}) })
	b.Run("transposed", func(b *testing.B) { bench(b, ir.New(ir.Copy, ir.Attr{}, turned), ir.Params{}) })
	b.Run("heads", func(b *testing.B) { bench(b, ir.New(ir.Copy, ir.Attr{}, heads), ir.Params{}) })
	b.Run("cast-bf16", func(b *testing.B) { bench(b, ir.New(ir.Cast, ir.Attr{DType: dtype.BF16}, x), ir.Params{}) })
	b.Run("full", func(b *testing.B) { bench(b, ir.New(ir.Full, ir.Attr{Out: x}), ir.Scalars(1)) })
}
