// Package dtype names the element types of tensors, states their facts and
// converts between them.
//
// A type is a row of a table. Six have a Go type of their own; [Float16] and [BFloat16]
// are stored as 16-bit patterns and widened for arithmetic; [Float8E4M3] and [Float8E5M2]
// are for storage alone: there is no arithmetic on them, they are converted to and from.
//
// Conversions round to nearest, ties to even, and round once: a float64 or an
// int64 goes to a 16-bit type directly, never by way of float32.
package dtype

import (
	"math"
	"strconv"
)

// DType is the type of a tensor's elements. The zero value is [Invalid].
type DType uint8

// The element types.
const (
	Invalid DType = iota
	F32           // IEEE 754 binary32
	F64           // IEEE 754 binary64
	F16           // IEEE 754 binary16
	BF16          // the upper half of a binary32
	I64           // signed 64-bit integer
	I32           // signed 32-bit integer
	U8            // unsigned 8-bit integer
	Bool          // one byte, 0 or 1
	F8E4M3        // 8 bits, most of them mantissa: storage
	F8E5M2        // 8 bits, most of them exponent: storage

	count
)

// All returns the valid element types in the order of their constants.
func All() []DType {
	all := make([]DType, 0, count)
	for d := Invalid + 1; d < count; d++ {
		all = append(all, d)
	}
	return all
}

// facts are the properties of one type that depend on nothing else.
type facts struct {
	name        string
	safetensors string
	torch       string
	numpy       string
	size        int
	exponent    int // bits
	mantissa    int // explicitly stored bits
	integer     bool
	signed      bool
	infinite    bool  // it has infinities
	wide        DType // what it is computed in, where that is another type
	storage     bool  // no arithmetic
	max         float64
}

var table = [count]facts{
	Invalid: {name: "invalid"},
	F32:     {name: "f32", safetensors: "F32", torch: "float32", numpy: "<f4", size: 4, exponent: 8, mantissa: 23, signed: true, infinite: true, max: math.MaxFloat32},
	F64:     {name: "f64", safetensors: "F64", torch: "float64", numpy: "<f8", size: 8, exponent: 11, mantissa: 52, signed: true, infinite: true, max: math.MaxFloat64},
	F16:     {name: "f16", safetensors: "F16", torch: "float16", numpy: "<f2", size: 2, exponent: 5, mantissa: 10, signed: true, infinite: true, wide: F32, max: 65504},
	BF16:    {name: "bf16", safetensors: "BF16", torch: "bfloat16", size: 2, exponent: 8, mantissa: 7, signed: true, infinite: true, wide: F32, max: 0x1.fep127},
	I64:     {name: "i64", safetensors: "I64", torch: "int64", numpy: "<i8", size: 8, integer: true, signed: true, max: math.MaxInt64},
	I32:     {name: "i32", safetensors: "I32", torch: "int32", numpy: "<i4", size: 4, integer: true, signed: true, max: math.MaxInt32},
	U8:      {name: "u8", safetensors: "U8", torch: "uint8", numpy: "|u1", size: 1, integer: true, max: math.MaxUint8},
	Bool:    {name: "bool", safetensors: "BOOL", torch: "bool", numpy: "|b1", size: 1, max: 1},

	F8E4M3: {name: "f8e4m3", safetensors: "F8_E4M3", torch: "float8_e4m3fn", size: 1, exponent: 4, mantissa: 3, signed: true, wide: F32, storage: true, max: 448},
	F8E5M2: {name: "f8e5m2", safetensors: "F8_E5M2", torch: "float8_e5m2", size: 1, exponent: 5, mantissa: 2, signed: true, infinite: true, wide: F32, storage: true, max: 57344},
}

// facts returns d's row, and Invalid's for a value that is no constant.
func (d DType) facts() *facts {
	if d >= count {
		return &table[Invalid]
	}
	return &table[d]
}

// Valid reports whether d is one of the element types.
func (d DType) Valid() bool { return d > Invalid && d < count }

// String returns the short name: "f32", "bf16", "bool".
func (d DType) String() string {
	if d >= count {
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
	return table[d].name
}

// Size returns the bytes of one element, 0 for Invalid.
func (d DType) Size() int { return d.facts().size }

// Bits returns the bits of one element in memory; a Bool has 8.
func (d DType) Bits() int { return 8 * d.Size() }

// IsFloat reports whether d is a floating-point type.
func (d DType) IsFloat() bool { return d.facts().exponent > 0 }

// IsInt reports whether d is an integer type; Bool is not one.
func (d DType) IsInt() bool { return d.facts().integer }

// IsSigned reports whether d holds negative values.
func (d DType) IsSigned() bool { return d.facts().signed }

// IsStorage reports whether d is only stored: there is no arithmetic on it.
func (d DType) IsStorage() bool { return d.facts().storage }

// Wide returns the type that d's arithmetic, statistics and losses are done in: F32
// for the narrower floating-point types, else d itself.
func (d DType) Wide() DType {
	if w := d.facts().wide; w != Invalid {
		return w
	}
	return d
}

// ExponentBits returns the width of a floating-point type's exponent, 0 for others.
func (d DType) ExponentBits() int { return d.facts().exponent }

// MantissaBits returns the explicitly stored bits of a floating-point type's
// mantissa, 0 for others.
func (d DType) MantissaBits() int { return d.facts().mantissa }

// Epsilon returns the distance from 1 to the next larger value of a
// floating-point type, 0 for others.
func (d DType) Epsilon() float64 {
	if !d.IsFloat() {
		return 0
	}
	return math.Ldexp(1, -d.MantissaBits())
}

// Max returns the largest finite value. That of I64, 2⁶³-1, is rounded to 2⁶³.
func (d DType) Max() float64 { return d.facts().max }

// Lowest returns the most negative finite value.
func (d DType) Lowest() float64 {
	switch {
	case d.IsFloat():
		return -d.Max()
	case d == I64:
		return math.MinInt64
	case d == I32:
		return math.MinInt32
	}
	return 0
}

// SmallestNormal returns the smallest positive value of a floating-point type
// that has full precision, 0 for others.
func (d DType) SmallestNormal() float64 {
	if !d.IsFloat() {
		return 0
	}
	return math.Ldexp(1, 2-1<<(d.ExponentBits()-1))
}

// SmallestSubnormal returns the smallest positive value of a floating-point
// type, 0 for others.
func (d DType) SmallestSubnormal() float64 { return d.SmallestNormal() * d.Epsilon() }

// Element is a Go type that can be a tensor's element.
type Element interface {
	float32 | float64 | Float16 | BFloat16 | int64 | int32 | uint8 | bool | Float8E4M3 | Float8E5M2
}

// Of returns the element type that T stores.
func Of[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return F32
	case float64:
		return F64
	case Float16:
		return F16
	case BFloat16:
		return BF16
	case int64:
		return I64
	case int32:
		return I32
	case uint8:
		return U8
	case Float8E4M3:
		return F8E4M3
	case Float8E5M2:
		return F8E5M2
	default:
		return Bool
	}
}

// Promote returns the type of an operation between tensors of types a and b, by
// PyTorch's rule (torch.promote_types): a floating-point type wins over an
// integer type, an integer type over Bool, and otherwise the wider wins; F16 with
// BF16 is F32. The 8-bit floating-point types go with nothing but themselves. If there
// is no such type, the result is Invalid.
func Promote(a, b DType) DType {
	switch {
	case !a.Valid() || !b.Valid():
		return Invalid
	case a == b:
		return a
	case a.IsStorage() || b.IsStorage():
		return Invalid
	case a.IsFloat() != b.IsFloat():
		if a.IsFloat() {
			return a
		}
		return b
	case a.IsFloat() && a.Size() == b.Size():
		return F32
	case a == Bool:
		return b
	case b == Bool || a.Size() > b.Size():
		return a
	}
	return b
}
