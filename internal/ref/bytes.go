package ref

import (
	"encoding/binary"
	"math"

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
	switch dt {
	case dtype.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(a.Data[i])))
	case dtype.F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(a.Data[i]))
	case dtype.F16:
		binary.LittleEndian.PutUint16(b, uint16(dtype.F16FromFloat64(a.Data[i])))
	case dtype.BF16:
		binary.LittleEndian.PutUint16(b, uint16(dtype.BF16FromFloat64(a.Data[i])))
	case dtype.I64:
		binary.LittleEndian.PutUint64(b, uint64(a.int(i)))
	case dtype.I32:
		binary.LittleEndian.PutUint32(b, uint32(a.int(i)))
	default:
		b[0] = byte(a.int(i))
	}
}

func integer(b []byte, dt dtype.DType) int64 {
	switch dt {
	case dtype.I64:
		return int64(binary.LittleEndian.Uint64(b))
	case dtype.I32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(b[0])
}

func number(b []byte, dt dtype.DType) float64 {
	switch dt {
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case dtype.F16:
		return dtype.Float16(binary.LittleEndian.Uint16(b)).Float64()
	case dtype.BF16:
		return dtype.BFloat16(binary.LittleEndian.Uint16(b)).Float64()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
