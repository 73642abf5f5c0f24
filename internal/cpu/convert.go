package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// convert is [dtype.ConvertSlices] of two slices of the same length, with vectors between float32 and the 16-bit types.
func convert(dst, src any) {
	switch s := src.(type) {
	case []float32:
		switch d := dst.(type) {
		case []dtype.Float16:
			rest(d, s, kernels.ToF16(bitsOf(d), s))
			return
		case []dtype.BFloat16:
			rest(d, s, kernels.ToBF16(bitsOf(d), s))
			return
		}
	case []dtype.Float16:
		if d, ok := dst.([]float32); ok {
			rest(d, s, kernels.FromF16(d, bitsOf(s)))
			return
		}
	case []dtype.BFloat16:
		if d, ok := dst.([]float32); ok {
			rest(d, s, kernels.FromBF16(d, bitsOf(s)))
			return
		}
	}
	if err := dtype.ConvertSlices(dst, src); err != nil {
		panic(err) // slices of elements, and of one length
	}
}

// rest converts what vectors have left, from n on.
func rest[D, S dtype.Element](dst []D, src []S, n int) { dtype.Convert(dst[n:], src[n:]) }

// convertRaw converts n elements that lie together.
func convertRaw(to, from dtype.DType, dst, src unsafe.Pointer, n int) {
	switch to {
	case dtype.F32:
		convertFrom(unsafe.Slice((*float32)(dst), n), from, src, n)
	case dtype.F64:
		convertFrom(unsafe.Slice((*float64)(dst), n), from, src, n)
	case dtype.F16:
		convertFrom(unsafe.Slice((*dtype.Float16)(dst), n), from, src, n)
	case dtype.BF16:
		convertFrom(unsafe.Slice((*dtype.BFloat16)(dst), n), from, src, n)
	case dtype.I64:
		convertFrom(unsafe.Slice((*int64)(dst), n), from, src, n)
	case dtype.I32:
		convertFrom(unsafe.Slice((*int32)(dst), n), from, src, n)
	case dtype.U8:
		convertFrom(unsafe.Slice((*uint8)(dst), n), from, src, n)
	case dtype.Bool:
		convertFrom(unsafe.Slice((*bool)(dst), n), from, src, n)
	case dtype.F8E4M3:
		convertFrom(unsafe.Slice((*dtype.Float8E4M3)(dst), n), from, src, n)
	case dtype.F8E5M2:
		convertFrom(unsafe.Slice((*dtype.Float8E5M2)(dst), n), from, src, n)
	}
}

func convertFrom(dst any, from dtype.DType, src unsafe.Pointer, n int) {
	switch from {
	case dtype.F32:
		convert(dst, unsafe.Slice((*float32)(src), n))
	case dtype.F64:
		convert(dst, unsafe.Slice((*float64)(src), n))
	case dtype.F16:
		convert(dst, unsafe.Slice((*dtype.Float16)(src), n))
	case dtype.BF16:
		convert(dst, unsafe.Slice((*dtype.BFloat16)(src), n))
	case dtype.I64:
		convert(dst, unsafe.Slice((*int64)(src), n))
	case dtype.I32:
		convert(dst, unsafe.Slice((*int32)(src), n))
	case dtype.U8:
		convert(dst, unsafe.Slice((*uint8)(src), n))
	case dtype.Bool:
		convert(dst, unsafe.Slice((*bool)(src), n))
	case dtype.F8E4M3:
		convert(dst, unsafe.Slice((*dtype.Float8E4M3)(src), n))
	case dtype.F8E5M2:
		convert(dst, unsafe.Slice((*dtype.Float8E5M2)(src), n))
	}
}

// bitsOf views 16-bit numbers as their bits.
func bitsOf[H half](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
