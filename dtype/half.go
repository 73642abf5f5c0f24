package dtype

import (
	"math"
	"strconv"
)

// Float16 is the bit pattern of an IEEE 754 binary16: 1 sign, 5 exponent and 10
// mantissa bits.
type Float16 uint16

// BFloat16 is the bit pattern of a bfloat16, the upper half of a float32: 1 sign,
// 8 exponent and 7 mantissa bits.
type BFloat16 uint16

// Narrowing works on the bits of the absolute value. A normal result adds half an
// ulp less one, plus the lowest kept bit, and shifts: a carry out of the mantissa
// increments the exponent, up to infinity. A subnormal result is rounded by the
// addition of a number whose own ulp is the result's smallest step.

// F16FromFloat32 rounds f to the nearest Float16, ties to even. What rounds beyond
// 65504 is infinite. A NaN keeps its sign and the upper bits of its payload, and
// is quiet.
func F16FromFloat32(f float32) Float16 {
	const (
		overflow = (127 + 16) << 23 // 2¹⁶
		normal   = (127 - 14) << 23 // 2⁻¹⁴
		rebias   = (127 - 15) << 23
	)
	b := math.Float32bits(f)
	sign := Float16(b >> 16 & 0x8000)
	b &^= 1 << 31
	switch {
	case b > 0xff<<23:
		return sign | 0x7e00 | Float16(b>>13&0x3ff)
	case b >= overflow:
		return sign | 0x7c00
	case b < normal:
		return sign | Float16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
	return sign | Float16((b-rebias+0xfff+b>>13&1)>>13)
}

// F16FromFloat64 rounds f to the nearest Float16 in one step; otherwise it is
// [F16FromFloat32].
func F16FromFloat64(f float64) Float16 { return Float16(narrow64(f, 5, 10)) }

// BF16FromFloat32 rounds f to the nearest BFloat16, ties to even. A NaN keeps its
// sign and the upper bits of its payload, and is quiet.
func BF16FromFloat32(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&^(1<<31) > 0xff<<23 {
		return BFloat16(b>>16 | 0x40)
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// BF16FromFloat64 rounds f to the nearest BFloat16 in one step; otherwise it is
// [BF16FromFloat32].
func BF16FromFloat64(f float64) BFloat16 { return BFloat16(narrow64(f, 8, 7)) }

// narrow64 rounds f to the 16-bit format with the given widths.
func narrow64(f float64, exponent, mantissa int) uint16 {
	var (
		shift = 52 - mantissa
		bias  = 1<<(exponent-1) - 1
		inf   = uint16(1<<exponent-1) << mantissa
	)
	b := math.Float64bits(f)
	sign := uint16(b >> 48 & 0x8000)
	b &^= 1 << 63
	switch {
	case b > 0x7ff<<52:
		quiet := uint16(1) << (mantissa - 1)
		return sign | inf | quiet | uint16(b>>shift)&(quiet-1)
	case b >= uint64(1023+bias+1)<<52:
		return sign | inf
	case b < uint64(1023+1-bias)<<52:
		step := uint64(1023+1-bias+shift) << 52 // its ulp is the smallest subnormal
		return sign | uint16(math.Float64bits(math.Float64frombits(b)+math.Float64frombits(step))-step)
	}
	rebias := uint64(1023-bias) << 52
	half := uint64(1) << (shift - 1)
	return sign | uint16((b-rebias+half-1+b>>shift&1)>>shift)
}

// Float32 returns the value, exactly. A signalling NaN becomes quiet, as IEEE 754
// and the processors' own instructions have it; the payload stays.
func (h Float16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	b := uint32(h&0x7fff) << 13
	switch {
	case b > 0x1f<<23:
		b |= 0xff<<23 | 1<<22
	case b == 0x1f<<23:
		b = 0xff << 23
	case b >= 1<<23:
		b += (127 - 15) << 23
	default:
		// The pattern with exponent 2⁻¹⁴ has an implicit one too many; subtracting it normalises.
		const smallestNormal = (127 - 14) << 23
		b = math.Float32bits(math.Float32frombits(b+smallestNormal) - math.Float32frombits(smallestNormal))
	}
	return math.Float32frombits(b | sign)
}

// Float64 returns the value, exactly; NaNs as [Float16.Float32].
func (h Float16) Float64() float64 { return float64(h.Float32()) }

// Float32 returns the value, exactly: the same bits followed by zeros, those of a
// signalling NaN too.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// Float64 returns the value, exactly.
func (b BFloat16) Float64() float64 { return float64(b.Float32()) }

// String formats the value with the fewest digits that tell it from every other float32.
func (h Float16) String() string { return format(h.Float32()) }

// String formats the value with the fewest digits that tell it from every other float32.
func (b BFloat16) String() string { return format(b.Float32()) }

func format(f float32) string { return strconv.FormatFloat(float64(f), 'g', -1, 32) }
