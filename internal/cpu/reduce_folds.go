package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareSum, ir.Sum)
	offer(prepareProd, ir.Prod)
	offer(prepareExtreme(math.Inf(-1), maxSingles, maxFolder[float64], maxFolder[int64], maxFolder[int32], maxFolder[uint8]), ir.ReduceMax)
	offer(prepareExtreme(math.Inf(1), minSingles, minFolder[float64], minFolder[int64], minFolder[int32], minFolder[uint8]), ir.ReduceMin)
}

func prepareSum(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return reduced(k, sumSingles)
	case dtype.F64:
		return reduced(k, sumDoubles)
	case dtype.I64:
		return reduced(k, sumIntegers[int64]())
	case dtype.I32:
		return reduced(k, sumIntegers[int32]())
	case dtype.U8:
		return reduced(k, sumIntegers[uint8]())
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

func prepareProd(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return reduced(k, product[float32, float64]())
	case dtype.F64:
		return reduced(k, product[float64, float64]())
	case dtype.I64:
		return reduced(k, product[int64, int64]())
	case dtype.I32:
		return reduced(k, product[int32, int32]())
	case dtype.U8:
		return reduced(k, product[uint8, uint8]())
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// prepareExtreme makes the kernels of ReduceMax and ReduceMin from the value that loses to every other.
func prepareExtreme(worst float64, f32 func(float32) folder[float32, float32], f64 func(float64) folder[float64, float64],
	i64 func(int64) folder[int64, int64], i32 func(int32) folder[int32, int32], u8 func(uint8) folder[uint8, uint8]) prepare {
	return func(k *device.Kernel) (run, error) {
		switch dt := k.Op.In(0).DType; dt {
		case dtype.F32, dtype.F16, dtype.BF16:
			return reduced(k, f32(float32(worst)))
		case dtype.F64:
			return reduced(k, f64(worst))
		case dtype.I64:
			return reduced(k, i64(numberOf[int64](worst)))
		case dtype.I32:
			return reduced(k, i32(numberOf[int32](worst)))
		case dtype.U8, dtype.Bool:
			return reduced(k, u8(uint8(min(max(worst, 0), math.MaxUint8))))
		default:
			return nil, unsupported(&k.Op, dt)
		}
	}
}

func addSums(sums, part []float64) {
	for i, v := range part {
		sums[i] += v
	}
}

func mergeOf[A any](f func(a, b A) A) func(acc, part []A) {
	return func(acc, part []A) {
		for i, v := range part {
			acc[i] = f(acc[i], v)
		}
	}
}

// sumSingles adds groups of eight elements, or rows, pair by pair in float32, and these in float64: the error stays
// below four half ulps of the sum of magnitudes for any length, and is an ulp or so in practice.
var sumSingles = folder[float32, float64]{
	row:    func(acc float64, x []float32) float64 { return acc + kernels.RowTotal(x) },
	rows:   kernels.RowTotals,
	column: kernels.SumRows,
	merge:  addSums,
}

// sumDoubles adds in four independent lanes, which hides the latency of addition.
var sumDoubles = folder[float64, float64]{
	row: func(acc float64, x []float64) float64 {
		var a, b, c float64
		for ; len(x) >= 4; x = x[4:] {
			acc += x[0]
			a += x[1]
			b += x[2]
			c += x[3]
		}
		for _, v := range x {
			acc += v
		}
		return (acc + a) + (b + c)
	},
	column: columnsOf(func(acc, x []float64) {
		for i, v := range x {
			acc[i] += v
		}
	}),
	merge: addSums,
}

func sumIntegers[T integer]() folder[T, T] {
	return folder[T, T]{
		row: func(acc T, x []T) T {
			for _, v := range x {
				acc += v
			}
			return acc
		},
		column: columnsOf(func(acc, x []T) {
			for i, v := range x {
				acc[i] += v
			}
		}),
		merge: mergeOf(func(a, b T) T { return a + b }),
	}
}

// columnsOf makes a column fold from that of one row.
func columnsOf[T, A any](row func(acc []A, x []T)) func(acc []A, x []T, rows, stride int) {
	return func(acc []A, x []T, rows, stride int) {
		for r := range rows {
			row(acc, x[r*stride:][:len(acc)])
		}
	}
}

// product multiplies in A, which for float32 is float64: it neither overflows before the end nor loses digits.
func product[T, A number]() folder[T, A] {
	return folder[T, A]{
		identity: 1,
		row: func(acc A, x []T) A {
			for _, v := range x {
				acc *= A(v)
			}
			return acc
		},
		column: columnsOf(func(acc []A, x []T) {
			for i, v := range x {
				acc[i] *= A(v)
			}
		}),
		merge: mergeOf(func(a, b A) A { return a * b }),
	}
}

// above reports whether v replaces the largest value so far: it is larger, or the first NaN.
func above[T number](v, best T) bool { return !(v <= best) && best == best }

func below[T number](v, best T) bool { return !(v >= best) && best == best }

func maxFolder[T number](lowest T) folder[T, T] {
	return folder[T, T]{
		identity: lowest,
		row: func(acc T, x []T) T {
			for _, v := range x {
				if above(v, acc) {
					acc = v
				}
			}
			return acc
		},
		column: columnsOf(func(acc, x []T) {
			for i, v := range x {
				if above(v, acc[i]) {
					acc[i] = v
				}
			}
		}),
		merge: mergeOf(func(a, b T) T { return max(a, b) }),
	}
}

func minFolder[T number](highest T) folder[T, T] {
	return folder[T, T]{
		identity: highest,
		row: func(acc T, x []T) T {
			for _, v := range x {
				if below(v, acc) {
					acc = v
				}
			}
			return acc
		},
		column: columnsOf(func(acc, x []T) {
			for i, v := range x {
				if below(v, acc[i]) {
					acc[i] = v
				}
			}
		}),
		merge: mergeOf(func(a, b T) T { return min(a, b) }),
	}
}

// maxSingles and minSingles are vectors where all is finite.

func maxSingles(lowest float32) folder[float32, float32] {
	return extremeSingles(maxFolder(lowest), 1, kernels.Maximum)
}

func minSingles(highest float32) folder[float32, float32] {
	return extremeSingles(minFolder(highest), -1, kernels.Minimum)
}

func extremeSingles(f folder[float32, float32], sign float32, of func(dst, x, y []float32)) folder[float32, float32] {
	slow := f.row
	f.row = func(acc float32, x []float32) float32 {
		most, plain := kernels.RowExtreme(x, sign)
		if !plain || len(x) == 0 {
			return slow(acc, x)
		}
		return slow(acc, []float32{sign * most})
	}
	f.column = columnsOf(func(acc, x []float32) { of(acc, acc, x) })
	return f
}
