package ref

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/numbers"
)

// Encode writes the elements of a into the bytes that a view of type t spans, little-endian, rounding once. Bytes
// between the elements stay.
func Encode(dst []byte, t *ir.Type, a Array) {
	size, i, whole := t.DType.Size(), 0, integral(t.DType)
	offsets(t, func(at int) {
		var bits uint64
		if whole {
			bits = uint64(a.int(i))
		} else {
			bits = t.DType.Encode(a.Data[i])
		}
		numbers.Put(dst[at*size:], size, bits)
		i++
	})
}

// Decode reads the elements of a view of type t, widened exactly.
func Decode(src []byte, t *ir.Type) Array {
	size, i := t.DType.Size(), 0
	a := Array{Type: t, Data: make([]float64, t.Size())}
	if integral(t.DType) {
		a.Int = make([]int64, t.Size())
	}
	offsets(t, func(at int) {
		b := src[at*size:]
		if a.Int != nil {
			a.Int[i] = integer(b, t.DType)
			a.Data[i] = float64(a.Int[i])
		} else {
			a.Data[i] = t.DType.Decode(numbers.Get(b, size))
		}
		i++
	})
	return a
}

// offsets calls f with where each element lies, in elements from the first, in row-major order.
func offsets(t *ir.Type, f func(at int)) {
	if t.IsDense() {
		for i := range t.Size() {
			f(i)
		}
		return
	}
	strides := t.Strides()
	each(t.Shape(), func(at []int) {
		n := 0
		for i, s := range strides {
			n += s * at[i]
		}
		f(n)
	})
}

// integer is an element as an integer; a bool as its byte, so that one that is neither 0 nor 1 shows.
func integer(b []byte, dt dtype.DType) int64 {
	if dt == dtype.Bool {
		return int64(b[0])
	}
	return wrap(dt, int64(numbers.Get(b, dt.Size())))
}
