package cpu

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareCat, ir.Cat)
	offer(preparePad, ir.Pad)
}

// joining is Cat, as bytes: a row of the result is a row of each operand in turn.
type joining struct {
	chunks *loop[[]device.Arg]
	rows   int
	ends   []int // of the operands' rows in a row of the result, in bytes
}

func prepareCat(k *device.Kernel) (run, error) {
	j := &joining{}
	end := 0
	for _, t := range k.Op.Ins() {
		v := alongOf(t, k.Op.Attr.Axis)
		j.rows = v.outer
		end += v.n * v.inner * t.DType.Size()
		j.ends = append(j.ends, end)
	}
	j.chunks = newLoop(j.span)
	return j.run, nil
}

func (j *joining) run(args []device.Arg, _ *device.Params) error {
	const grain = 4 * grainCheap
	if n := j.rows * j.ends[len(j.ends)-1]; n > grain {
		j.chunks.run(n, grain, args)
	} else {
		j.span(&args, 0, n)
	}
	return nil
}

// span writes bytes [lo, hi) of the result.
func (j *joining) span(a *[]device.Arg, lo, hi int) {
	args := *a
	width := j.ends[len(j.ends)-1]
	out := values[byte](args[0], j.rows*width)
	for lo < hi {
		row := lo / width
		at := lo - row*width
		i, _ := slices.BinarySearch(j.ends, at+1)
		start := 0
		if i > 0 {
			start = j.ends[i-1]
		}
		n := j.ends[i] - start
		x := values[byte](args[1+i], j.rows*n)
		lo += copy(out[lo:hi], x[row*n+at-start:(row+1)*n])
	}
}

// padding is Pad.
type padding[T any] struct {
	chunks        *loop[padCall[T]]
	in, out       along
	before, every int // place of the first element, and distance of the next
}

type padCall[T any] struct {
	args  []device.Arg
	value T
}

func preparePad(k *device.Kernel) (run, error) {
	return bySize{padded[uint8], padded[uint16], padded[uint32], padded[uint64]}.prepare(k)
}

func padded[T bits](k *device.Kernel) run {
	dt := k.Out[0].DType
	a := &k.Op.Attr
	f := &padding[T]{in: alongOf(k.Op.In(0), a.Axis), out: alongOf(k.Out[0], a.Axis), before: int(a.Dims[0]), every: int(a.Dims[2]) + 1}
	f.chunks = newLoop(f.span)
	return func(args []device.Arg, p *device.Params) error {
		c := padCall[T]{args, T(dt.Encode(scalar(p, 0)))}
		if work := f.out.outer * f.out.n * f.out.inner; work > grainCheap {
			f.chunks.run(f.out.outer, max(1, grainCheap*f.out.outer/work), c)
		} else {
			f.span(&c, 0, f.out.outer)
		}
		return nil
	}
}

func (f *padding[T]) span(c *padCall[T], lo, hi int) {
	run, block := f.in.n*f.in.inner, f.out.n*f.out.inner
	out, x := values[T](c.args[0], f.out.outer*block), values[T](c.args[1], f.in.outer*run)
	for i := lo; i < hi; i++ {
		dst, src := out[i*block:(i+1)*block], x[i*run:(i+1)*run]
		fill(dst, c.value)
		switch {
		case run == 0:
		case f.every == 1:
			copy(dst[f.before*f.in.inner:], src)
		case f.in.inner == 1:
			place(dst[f.before:], src, f.every)
		default:
			for j := range f.in.n {
				copy(dst[(f.before+j*f.every)*f.in.inner:], src[j*f.in.inner:(j+1)*f.in.inner])
			}
		}
	}
}
