package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// weightGrad is dw = Σ g·unfold(x)ᵀ over images. A unit is a group, a block of its input channels and a range of
// images. With several ranges each has its own sum in the workspace, and the sums are added in the order of the images.
type weightGrad[T kernels.Float] struct {
	*convolution
	block  int // channels
	blocks int
	ranges int
	images int // in a range
	rows   int
	space  *spare[[]T]
	units  *loop[convArgs[T]]
	join   *loop[convArgs[T]]
}

const (
	weightColumns = 144 // of dw that a unit computes, roughly
	weightUnits   = 16  // to aim at
)

func newWeightGrad[T kernels.Float](g *convolution) *weightGrad[T] {
	f := &weightGrad[T]{convolution: g, block: max(min(weightColumns/max(g.kh*g.kw, 1), g.cg), 1)}
	f.blocks = (g.cg + f.block - 1) / f.block
	f.ranges = max(min((weightUnits+g.Groups*f.blocks-1)/max(g.Groups*f.blocks, 1), g.n), 1)
	f.images = (g.n + f.ranges - 1) / f.ranges
	f.ranges = max((g.n+f.images-1)/max(f.images, 1), 1)
	f.rows = g.oh
	if !g.plain() {
		f.rows = g.tile(f.block * g.kh * g.kw)
		f.space = newBuffers[T](f.block * g.kh * g.kw * f.rows * g.ow)
	}
	f.units = newLoop(f.chunk)
	f.join = newLoop(f.add)
	return f
}

func prepareConvGradWeight[T kernels.Float](k *device.Kernel) (run, error) {
	g, x, w := k.Op.In(0), k.Op.In(1), k.Out[0]
	f := newWeightGrad[T](newConvolution(x, w, g, &k.Op.Attr))
	var zero T
	if f.ranges > 1 {
		k.Workspace = int64(f.ranges) * int64(w.Size()) * int64(unsafe.Sizeof(zero))
	}
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[T]{w: elems[T](args[0], w), y: elems[T](args[1], g), x: elems[T](args[2], x)}
		switch {
		case w.Size() == 0:
		case f.n == 0:
			clear(a.w)
		case f.ranges == 1:
			f.units.run(f.Groups*f.blocks, 1, a)
		default:
			parts := a
			parts.w = workspace[T](args[3], 0, f.ranges*w.Size())
			f.units.run(f.Groups*f.blocks*f.ranges, 1, parts)
			f.join.run(w.Size(), 1<<13, convArgs[T]{w: a.w, x: parts.w})
		}
		return nil
	}, nil
}

func (f *weightGrad[T]) chunk(a *convArgs[T], lo, hi int) {
	var col []T
	if f.space != nil {
		b := f.space.get()
		defer f.space.put(b)
		col = *b
	}
	for u := lo; u < hi; u++ {
		part, blk, grp := u/(f.blocks*f.Groups), u%f.blocks, u/f.blocks%f.Groups
		first := part * f.images
		for img := first; img < min(first+f.images, f.n); img++ {
			f.image(a, col, part, grp, blk*f.block, img, img > first)
		}
	}
}

// image adds what one image gives to a block of channels from c on.
func (f *weightGrad[T]) image(a *convArgs[T], col []T, part, grp, c, img int, add bool) {
	channels := min(f.block, f.cg-c)
	area, plane := f.kh*f.kw, f.oh*f.ow
	x := a.x[(img*f.c+grp*f.cg+c)*f.h*f.w:][:channels*f.h*f.w]
	g := a.y[(img*f.o+grp*f.og)*plane:]
	dw := a.w[(part*f.o+grp*f.og)*f.taps+c*area:]
	for r0 := 0; r0 < f.oh; r0 += f.rows {
		r1 := min(r0+f.rows, f.oh)
		n := (r1 - r0) * f.ow
		in := rowsOf(x, f.h*f.w)
		if f.space != nil {
			unfold(f.convolution, col, x, channels, r0, r1)
			in = rowsOf(col, n)
		}
		gemm(f.og, channels*area, n, rowsOf(g[r0*f.ow:], plane), in.t(), dw, f.taps, add || r0 > 0)
	}
}

// add joins the sums of the ranges.
func (f *weightGrad[T]) add(a *convArgs[T], lo, hi int) {
	dw := a.w[lo:hi]
	copy(dw, a.x[lo:hi])
	for p := 1; p < f.ranges; p++ {
		for i, v := range a.x[p*len(a.w)+lo : p*len(a.w)+hi] {
			dw[i] += v
		}
	}
}
