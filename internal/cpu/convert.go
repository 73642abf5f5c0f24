package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// convert is [dtype.Convert] with vectors between float32 and the 16-bit types. Both slices have the same length.
func convert[D, S dtype.Element](dst []D, src []S) {
	n := 0
	switch s := any(src).(type) {
	case []float32:
		switch d := any(dst).(type) {
		case []dtype.Float16:
			n = kernels.ToF16(bitsOf(d), s)
		case []dtype.BFloat16:
			n = kernels.ToBF16(bitsOf(d), s)
		}
	case []dtype.Float16:
		if d, ok := any(dst).([]float32); ok {
			n = kernels.FromF16(d, bitsOf(s))
		}
	case []dtype.BFloat16:
		if d, ok := any(dst).([]float32); ok {
			n = kernels.FromBF16(d, bitsOf(s))
		}
	}
	dtype.Convert(dst[n:], src[n:])
}

// bitsOf views 16-bit numbers as their bits.
func bitsOf[H half](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
