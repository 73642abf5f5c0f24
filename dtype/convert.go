package dtype

import (
	"fmt"
	"math"
	"reflect"
)

// Convert converts the elements of src into dst, as many as both have, and
// returns their number.
//
//   - To a floating-point type: rounded to nearest, ties to even, once; what rounds
//     beyond the range is infinite, in F8E4M3, which has no infinity, 448, as PyTorch.
//   - Floating point to I64 or I32: truncated towards zero; beyond the range the
//     nearest limit, NaN gives 0, on every machine.
//   - Floating point to U8: truncated to I64 as above, then the low 8 bits, as PyTorch.
//   - Integer to a narrower integer: the low bits.
//   - To Bool: whether it differs from zero, which NaN does. From Bool: 0 or 1.
func Convert[D, S Element](dst []D, src []S) int {
	n := min(len(dst), len(src))
	convert(dst[:n], src[:n])
	return n
}

// ConvertSlices is [Convert] for slices whose element types are known only at run
// time: dst and src are a []T of some [Element] each, of the same length.
func ConvertSlices(dst, src any) error {
	d, s := lengthOf(dst), lengthOf(src)
	if d < 0 || s < 0 {
		return fmt.Errorf("dtype: cannot convert %v to %v; both must be slices of element types", reflect.TypeOf(src), reflect.TypeOf(dst)) // %T would have each slice of a caller allocated
	}
	if d != s {
		return fmt.Errorf("dtype: cannot convert %d elements into %d; the lengths must agree", s, d)
	}
	convert(dst, src)
	return nil
}

// lengthOf returns the length of a slice of elements, -1 for anything else.
func lengthOf(x any) int {
	switch x := x.(type) {
	case []float32:
		return len(x)
	case []float64:
		return len(x)
	case []Float16:
		return len(x)
	case []BFloat16:
		return len(x)
	case []int64:
		return len(x)
	case []int32:
		return len(x)
	case []uint8:
		return len(x)
	case []bool:
		return len(x)
	case []Float8E4M3:
		return len(x)
	case []Float8E5M2:
		return len(x)
	}
	return -1
}

// convert dispatches on the source; both slices have the same length.
func convert(dst, src any) {
	switch s := src.(type) {
	case []float32:
		fromFloat(dst, s)
	case []float64:
		fromFloat(dst, s)
	case []Float16:
		fromHalf(dst, s)
	case []BFloat16:
		fromHalf(dst, s)
	case []int64:
		fromInt(dst, s)
	case []int32:
		fromInt(dst, s)
	case []uint8:
		fromInt(dst, s)
	case []bool:
		fromBool(dst, s)
	case []Float8E4M3:
		fromHalf(dst, s)
	case []Float8E5M2:
		fromHalf(dst, s)
	}
}

type float interface{ float32 | float64 }

type integer interface{ int64 | int32 | uint8 }

// half is a type that is stored narrower than it is computed in.
type half interface {
	Float16 | BFloat16 | Float8E4M3 | Float8E5M2
	Float32() float32
}

// fromFloat converts float32 or float64. Widening float32 to float64 first is exact.
func fromFloat[S float](dst any, src []S) {
	switch d := dst.(type) {
	case []float32:
		cast(d, src)
	case []float64:
		cast(d, src)
	case []Float16:
		narrowF16(d, src)
	case []BFloat16:
		narrowBF16(d, src)
	case []int64:
		apply(d, src, func(v S) int64 { return saturate64(float64(v)) })
	case []int32:
		apply(d, src, func(v S) int32 { return saturate32(float64(v)) })
	case []uint8:
		apply(d, src, func(v S) uint8 { return uint8(saturate64(float64(v))) })
	case []bool:
		apply(d, src, func(v S) bool { return v != 0 })
	case []Float8E4M3:
		apply(d, src, func(v S) Float8E4M3 { return F8E4M3FromFloat64(float64(v)) })
	case []Float8E5M2:
		apply(d, src, func(v S) Float8E5M2 { return F8E5M2FromFloat64(float64(v)) })
	}
}

// fromHalf widens by pieces, so that a pair of 16-bit types needs no code of its own.
func fromHalf[S half](dst any, src []S) {
	switch d := dst.(type) {
	case []S:
		copy(d, src)
	case []float32:
		widen(d, src)
	case []float64:
		apply(d, src, func(v S) float64 { return float64(v.Float32()) })
	case []Float16:
		apply(d, src, func(v S) Float16 { return F16FromFloat32(v.Float32()) })
	case []BFloat16:
		apply(d, src, func(v S) BFloat16 { return BF16FromFloat32(v.Float32()) })
	case []int64:
		apply(d, src, func(v S) int64 { return saturate64(float64(v.Float32())) })
	case []int32:
		apply(d, src, func(v S) int32 { return saturate32(float64(v.Float32())) })
	case []uint8:
		apply(d, src, func(v S) uint8 { return uint8(saturate64(float64(v.Float32()))) })
	case []bool:
		apply(d, src, func(v S) bool { return v.Float32() != 0 })
	case []Float8E4M3:
		apply(d, src, func(v S) Float8E4M3 { return F8E4M3FromFloat32(v.Float32()) })
	case []Float8E5M2:
		apply(d, src, func(v S) Float8E5M2 { return F8E5M2FromFloat32(v.Float32()) })
	}
}

func fromInt[S integer](dst any, src []S) {
	switch d := dst.(type) {
	case []float32:
		cast(d, src)
	case []float64:
		cast(d, src)
	case []Float16:
		apply(d, src, func(v S) Float16 { return F16FromFloat64(roundToOdd(int64(v))) })
	case []BFloat16:
		apply(d, src, func(v S) BFloat16 { return BF16FromFloat64(roundToOdd(int64(v))) })
	case []int64:
		cast(d, src)
	case []int32:
		cast(d, src)
	case []uint8:
		cast(d, src)
	case []bool:
		apply(d, src, func(v S) bool { return v != 0 })
	case []Float8E4M3:
		apply(d, src, func(v S) Float8E4M3 { return F8E4M3FromFloat64(roundToOdd(int64(v))) })
	case []Float8E5M2:
		apply(d, src, func(v S) Float8E5M2 { return F8E5M2FromFloat64(roundToOdd(int64(v))) })
	}
}

func fromBool(dst any, src []bool) {
	switch d := dst.(type) {
	case []float32:
		number(d, src, 1)
	case []float64:
		number(d, src, 1)
	case []Float16:
		number(d, src, 0x3c00)
	case []BFloat16:
		number(d, src, 0x3f80)
	case []int64:
		number(d, src, 1)
	case []int32:
		number(d, src, 1)
	case []uint8:
		number(d, src, 1)
	case []bool:
		copy(d, src)
	case []Float8E4M3:
		number(d, src, 0x38)
	case []Float8E5M2:
		number(d, src, 0x3c)
	}
}

// cast is for pairs where Go's own conversion is defined for every value.
func cast[D, S float | integer](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

func apply[D, S any](dst []D, src []S, f func(S) D) {
	for i, v := range src {
		dst[i] = f(v)
	}
}

// number writes one where src is true and zero elsewhere.
func number[D float | integer | Float16 | BFloat16 | Float8E4M3 | Float8E5M2](dst []D, src []bool, one D) {
	for i, v := range src {
		dst[i] = 0
		if v {
			dst[i] = one
		}
	}
}

// narrowF16, narrowBF16 and widen spell out the loops that mixed precision and
// the reading of weights live in: through apply each element costs an indirect call.

func narrowF16(dst []Float16, src any) {
	switch s := src.(type) {
	case []float32:
		for i, v := range s {
			dst[i] = F16FromFloat32(v)
		}
	case []float64:
		for i, v := range s {
			dst[i] = F16FromFloat64(v)
		}
	}
}

func narrowBF16(dst []BFloat16, src any) {
	switch s := src.(type) {
	case []float32:
		for i, v := range s {
			dst[i] = BF16FromFloat32(v)
		}
	case []float64:
		for i, v := range s {
			dst[i] = BF16FromFloat64(v)
		}
	}
}

func widen(dst []float32, src any) {
	switch s := src.(type) {
	case []Float16:
		for i, v := range s {
			dst[i] = v.Float32()
		}
	case []BFloat16:
		for i, v := range s {
			dst[i] = v.Float32()
		}
	case []Float8E4M3:
		for i, v := range s {
			dst[i] = v.Float32()
		}
	case []Float8E5M2:
		for i, v := range s {
			dst[i] = v.Float32()
		}
	}
}

// saturate64 truncates towards zero. Go leaves what is out of range to the
// machine, and machines differ.
func saturate64(f float64) int64 {
	switch {
	case f >= math.MaxInt64: // the constant rounds to 2⁶³
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	case f != f:
		return 0
	}
	return int64(f)
}

func saturate32(f float64) int32 {
	return int32(min(max(saturate64(f), math.MinInt32), math.MaxInt32))
}

// roundToOdd returns v as a float64 in which what 53 bits cannot hold survives as
// a sticky last bit, so that rounding the result to 16 bits rounds v once.
func roundToOdd(v int64) float64 {
	const tail = 1<<11 - 1 // a multiple of 2¹¹ below 2⁶³ fits in 52 bits
	if -1<<53 <= v && v <= 1<<53 {
		return float64(v)
	}
	if v&tail != 0 {
		v = v&^tail | (tail + 1)
	}
	return float64(v)
}
