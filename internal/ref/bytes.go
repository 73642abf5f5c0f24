package ref

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Encode writes the elements of a into the bytes that a view of type t spans, little-endian, rounding once. Bytes
// between the elements stay.
func Encode(dst []byte, t *ir.Type, a Array) {
	size, i := t.DType.Size(), 0
	each(t.Shape(), func(at []int) {
		put(dst[offset(t, at)*size:], t.DType, &a, i)
		i++
	})
}

// Decode reads the elements of a view of type t, widened exactly.
func Decode(src []byte, t *ir.Type) Array {
	size := t.DType.Size()
	a := Array{Type: t, Data: make([]float64, 0, t.Size())}
	if integral(t.DType) {
		a.Int = make([]int64, 0, t.Size())
	}
	each(t.Shape(), func(at []int) {
		b := src[offset(t, at)*size:]
		if a.Int != nil {
			v := integer(b, t.DType)
			a.Int, a.Data = append(a.Int, v), append(a.Data, float64(v))
		} else {
			a.Data = append(a.Data, number(b, t.DType))
		}
	})
	return a
}

// offset is where an element lies, in elements from the first.
func offset(t *ir.Type, at []int) int {
	n := 0
	for i, s := range t.Strides() {
		n += s * at[i]
	}
	return n
}

func put(b []byte, dt dtype.DType, a *Array, i int) {
	bits := uint64(0)
	if integral(dt) {
		bits = uint64(a.int(i))
	} else {
		bits = dt.Encode(a.Data[i])
	}
	for k := range dt.Size() {
		b[k] = byte(bits >> (8 * k))
	}
}

// bits are those of an element.
func bits(b []byte, dt dtype.DType) (v uint64) {
	for k := range dt.Size() {
		v |= uint64(b[k]) << (8 * k)
	}
	return v
}

// integer is an element as an integer; a bool as its byte, so that one that is neither 0 nor 1 shows.
func integer(b []byte, dt dtype.DType) int64 {
	if dt == dtype.Bool {
		return int64(b[0])
	}
	return wrap(dt, int64(bits(b, dt)))
}

func number(b []byte, dt dtype.DType) float64 { return dt.Decode(bits(b, dt)) }
