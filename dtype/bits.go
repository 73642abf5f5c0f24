package dtype

import "math"

// conversions of one element: float64 to the bits of its pattern, as [Convert] does, and back, exactly but for I64 beyond
// 2⁵³.
type conversions struct {
	bits  func(v float64) uint64
	value func(bits uint64) float64
}

// converted has a row per type, as table has.
var converted = [count]conversions{
	F32:    {func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }},
	F64:    {math.Float64bits, math.Float64frombits},
	F16:    {func(v float64) uint64 { return uint64(F16FromFloat64(v)) }, func(b uint64) float64 { return Float16(b).Float64() }},
	BF16:   {func(v float64) uint64 { return uint64(BF16FromFloat64(v)) }, func(b uint64) float64 { return BFloat16(b).Float64() }},
	I64:    {func(v float64) uint64 { return uint64(saturate64(v)) }, func(b uint64) float64 { return float64(int64(b)) }},
	I32:    {func(v float64) uint64 { return uint64(uint32(saturate32(v))) }, func(b uint64) float64 { return float64(int32(b)) }},
	U8:     {func(v float64) uint64 { return uint64(uint8(saturate64(v))) }, func(b uint64) float64 { return float64(uint8(b)) }},
	Bool:   {func(v float64) uint64 { return truth(v != 0) }, func(b uint64) float64 { return float64(truth(b != 0)) }},
	F8E4M3: {func(v float64) uint64 { return uint64(F8E4M3FromFloat64(v)) }, func(b uint64) float64 { return Float8E4M3(b).Float64() }},
	F8E5M2: {func(v float64) uint64 { return uint64(F8E5M2FromFloat64(v)) }, func(b uint64) float64 { return Float8E5M2(b).Float64() }},
}

func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// Encode returns the bits of v as an element of d, converted as by [Convert], in the low Bits of the result. d must be
// valid.
func (d DType) Encode(v float64) uint64 { return converted[d].bits(v) }

// Decode returns the number that an element of d with these bits is; of I64 beyond 2⁵³, rounded. d must be valid.
func (d DType) Decode(bits uint64) float64 { return converted[d].value(bits) }
