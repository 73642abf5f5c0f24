package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/rng"
)

func init() {
	offer(prepareUniform, ir.Uniform)
	offer(prepareNormal, ir.Normal)
	offer(prepareRandInt, ir.RandInt)
	offer(prepareDropout, ir.Dropout)
}

func prepareUniform(k *device.Kernel) (run, error) {
	y := k.Out[0]
	if y.DType == dtype.F64 {
		return produced(k, grainMath, sinkOf[float64](y), func(dst []float64, lo int, p *device.Params) {
			rng.FillUniform64(dst, rng.Key(param(p, 2)), uint64(lo), scalar(p, 0), scalar(p, 1))
		}), nil
	}
	return produced(k, grainMath, sinkOf[float32](y), func(dst []float32, lo int, p *device.Params) {
		rng.FillUniform32(dst, rng.Key(param(p, 2)), uint64(lo), float32(scalar(p, 0)), float32(scalar(p, 1)))
		if last := lastBelow(y.DType, scalar(p, 0), scalar(p, 1)); narrow(y) {
			for i, v := range dst {
				dst[i] = min(v, last)
			}
		}
	}), nil
}

// lastBelow is the largest value of a 16-bit type below hi, or hi where [lo, hi) has none: rounding to 16 bits may
// otherwise reach hi.
func lastBelow(dt dtype.DType, lo, hi float64) float32 {
	v := math.Nextafter(hi, lo)
	// A step of one unit in the last place downward, truncated to the type's digits.
	unit := math.Ldexp(dt.Epsilon(), max(math.Ilogb(v), math.Ilogb(dt.SmallestNormal())))
	if w := math.Floor(v/unit) * unit; w >= lo {
		return float32(w)
	}
	return float32(hi)
}

func prepareNormal(k *device.Kernel) (run, error) {
	y := k.Out[0]
	if y.DType == dtype.F64 {
		return produced(k, grainMath, sinkOf[float64](y), func(dst []float64, lo int, p *device.Params) {
			rng.FillNormal64(dst, rng.Key(param(p, 2)), uint64(lo), scalar(p, 0), scalar(p, 1))
		}), nil
	}
	return produced(k, grainMath, sinkOf[float32](y), func(dst []float32, lo int, p *device.Params) {
		rng.FillNormal32(dst, rng.Key(param(p, 2)), uint64(lo), float32(scalar(p, 0)), float32(scalar(p, 1)))
	}), nil
}

func prepareRandInt(k *device.Kernel) (run, error) {
	switch k.Out[0].DType {
	case dtype.F32:
		return drawn[float32](k), nil
	case dtype.F64:
		return drawn[float64](k), nil
	case dtype.F16:
		return drawn[dtype.Float16](k), nil
	case dtype.BF16:
		return drawn[dtype.BFloat16](k), nil
	case dtype.I64:
		return drawn[int64](k), nil
	case dtype.I32:
		return drawn[int32](k), nil
	}
	return drawn[uint8](k), nil
}

// drawn draws int64 and converts: the numbers are the same in every dtype that holds them.
func drawn[T dtype.Element](k *device.Kernel) run {
	return produced(k, grainMath, nativeOf[T](k.Out[0]), func(dst []T, lo int, p *device.Params) {
		from, to := int64(param(p, 0)), int64(param(p, 1))
		var part [64]int64
		for len(dst) > 0 {
			n := min(len(part), len(dst))
			rng.FillInts(part[:n], rng.Key(param(p, 2)), uint64(lo), from, to)
			dtype.Convert(dst, part[:n])
			dst, lo = dst[n:], lo+n
		}
	})
}

// dropping is Dropout. The numbers compared are float32 for every dtype, so that all keep the same elements.
type dropping[T float] struct {
	chunks *loop[production]
	n      int
	x      source[T]
	out    sink[T]
}

func prepareDropout(k *device.Kernel) (run, error) {
	if k.Out[0].DType == dtype.F64 {
		return dropped[float64](k), nil
	}
	return dropped[float32](k), nil
}

func dropped[T float](k *device.Kernel) run {
	d := &dropping[T]{n: k.Out[0].Size(), x: sourceOf[T](k.Op.In(0)), out: sinkOf[T](k.Out[0])}
	d.chunks = newLoop(d.span)
	return d.run
}

func (d *dropping[T]) run(args []device.Arg, p *device.Params) error {
	c := production{args, p}
	if d.n > grainMath {
		d.chunks.run(d.n, grainMath, c)
	} else {
		d.span(&c, 0, d.n)
	}
	return nil
}

func (d *dropping[T]) span(c *production, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	rate, key := scalar(c.p, 0), rng.Key(param(c.p, 1))
	for ; lo < hi; lo += tile {
		n := min(tile, hi-lo)
		u := slot[float32](s, slotC, n)
		rng.FillUniform32(u, key, uint64(lo), 0, 1)
		x := d.x.load(c.args[1], lo, slot[T](s, slotX, n), s)
		dst := d.out.begin(c.args[0], lo, slot[T](s, slotOut, n))
		drop(dst, x, u, rate)
		d.out.commit(c.args[0], lo, dst, s)
	}
}

// drop scales what it keeps so that the expectation stays.
func drop[T float](dst, x []T, u []float32, rate float64) {
	scale := T(1 / (1 - rate))
	if f, ok := any(x).([]float32); ok {
		least := float32(rate)
		if float64(least) < rate { // the same numbers are below both
			least = math.Nextafter32(least, 2)
		}
		kernels.Drop(any(dst).([]float32), f, u, least, float32(scale))
		return
	}
	x, u = x[:len(dst)], u[:len(dst)]
	for i := range dst {
		var v T
		if float64(u[i]) >= rate {
			v = x[i] * scale
		}
		dst[i] = v
	}
}
