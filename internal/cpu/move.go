package cpu

import (
	"slices"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareFull, ir.Full)
	offer(prepareIota, ir.Iota)
	offer(prepareCast, ir.Cast)
	offer(bySize{copied[uint8], copied[uint16], copied[uint32], copied[uint64]}.prepare, ir.Copy)
}

// bySize is a kernel that moves elements without looking at them, for each size an element may have.
type bySize struct {
	b1, b2, b4, b8 func(k *device.Kernel) run
}

func (f bySize) prepare(k *device.Kernel) (run, error) {
	switch k.Out[0].DType.Size() {
	case 1:
		return f.b1(k), nil
	case 2:
		return f.b2(k), nil
	case 4:
		return f.b4(k), nil
	case 8:
		return f.b8(k), nil
	}
	return nil, unsupported(&k.Op, k.Out[0].DType)
}

// producer writes a result without operands.
type producer[T any] struct {
	chunks *loop[production]
	n      int
	grain  int
	out    sink[T]
	write  func(dst []T, lo int, p *device.Params) // elements lo, lo+1, …
}

type production struct {
	args []device.Arg
	p    *device.Params
}

func produced[T any](k *device.Kernel, grain int, out sink[T], write func(dst []T, lo int, p *device.Params)) run {
	f := &producer[T]{nil, k.Out[0].Size(), grain, out, write}
	f.chunks = newLoop(f.span)
	return f.run
}

func (f *producer[T]) run(args []device.Arg, p *device.Params) error {
	c := production{args, p}
	if f.n > f.grain {
		f.chunks.run(f.n, f.grain, c)
	} else {
		f.span(&c, 0, f.n)
	}
	return nil
}

func (f *producer[T]) span(c *production, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	for ; lo < hi; lo += tile {
		dst := f.out.begin(c.args[0], lo, slot[T](s, slotOut, min(tile, hi-lo)))
		f.write(dst, lo, c.p)
		f.out.commit(c.args[0], lo, dst, s)
	}
}

func prepareFull(k *device.Kernel) (run, error) {
	return bySize{filled[uint8], filled[uint16], filled[uint32], filled[uint64]}.prepare(k)
}

// bits are those of an element.
type bits interface {
	uint8 | uint16 | uint32 | uint64
}

func filled[T bits](k *device.Kernel) run {
	dt := k.Out[0].DType
	return produced(k, grainCheap, nativeOf[T](k.Out[0]), func(dst []T, _ int, p *device.Params) {
		fill(dst, T(dt.Encode(scalar(p, 0))))
	})
}

func prepareIota(k *device.Kernel) (run, error) {
	switch dt := k.Out[0].DType; dt {
	case dtype.F32:
		return counted[float32](k), nil
	case dtype.F64:
		return counted[float64](k), nil
	case dtype.F16:
		return counted[dtype.Float16](k), nil
	case dtype.BF16:
		return counted[dtype.BFloat16](k), nil
	case dtype.I64:
		return counted[int64](k), nil
	case dtype.I32:
		return counted[int32](k), nil
	case dtype.U8:
		return counted[uint8](k), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// counted computes in float64, exact up to 2⁵³, and converts once.
func counted[T dtype.Element](k *device.Kernel) run {
	return produced(k, grainMath, nativeOf[T](k.Out[0]), func(dst []T, lo int, p *device.Params) {
		first, step := scalar(p, 0), scalar(p, 1)
		var part [64]float64
		for len(dst) > 0 {
			n := min(len(part), len(dst))
			for i := range part[:n] {
				part[i] = first + float64(float64(lo+i)*step)
			}
			dtype.Convert(dst, part[:n])
			dst, lo = dst[n:], lo+n
		}
	})
}

func prepareCast(k *device.Kernel) (run, error) {
	to, from := k.Out[0].DType, k.Op.In(0).DType
	for _, dt := range []dtype.DType{to, from} {
		if !slices.Contains(dtype.All(), dt) {
			return nil, unsupported(&k.Op, dt)
		}
	}
	f := func(dst, src unsafe.Pointer, n int) { convertRaw(to, from, dst, src, n) }
	switch to.Size() {
	case 1:
		return castTo[uint8](k, f), nil
	case 2:
		return castTo[uint16](k, f), nil
	case 4:
		return castTo[uint32](k, f), nil
	default:
		return castTo[uint64](k, f), nil
	}
}

// caster converts n elements that lie together.
type caster func(dst, src unsafe.Pointer, n int)

// castTo and castSized find and store elements by size alone: the conversion knows their types, and a loop for each pair of
// types is much of a program.
func castTo[D any](k *device.Kernel, f caster) run {
	switch k.Op.In(0).DType.Size() {
	case 1:
		return castSized[D, uint8](k, f)
	case 2:
		return castSized[D, uint16](k, f)
	case 4:
		return castSized[D, uint32](k, f)
	default:
		return castSized[D, uint64](k, f)
	}
}

func castSized[D, S any](k *device.Kernel, f caster) run {
	m := &mapping[D, S]{grain: grainCheap, out: nativeOf[D](k.Out[0]), x: nativeOf[S](k.Op.In(0))}
	m.direct = k.Op.In(0).IsDense()
	m.pass = func(dst []D, x, _ []S, _, _ float64) {
		f(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(x)), len(dst))
	}
	return m.kernel(k)
}
