package dtype

import "math"

// Float8E4M3 is the bit pattern of an 8-bit number for weights and activations: 1 sign, 4 exponent and 3 mantissa bits,
// no infinity, NaN only with all bits below the sign set, 448 the largest (Micikevicius et al. 2022, "FP8 formats for deep
// learning"; PyTorch's float8_e4m3fn).
type Float8E4M3 uint8

// Float8E5M2 is the bit pattern of an 8-bit number for gradients: 1 sign, 5 exponent and 2 mantissa bits, infinities and
// NaNs as IEEE 754 has them (PyTorch's float8_e5m2).
type Float8E5M2 uint8

// F8E4M3FromFloat32 rounds f to the nearest Float8E4M3, ties to even. What rounds beyond 448, infinities among it, is 448
// with f's sign, as in PyTorch; a NaN keeps its sign.
func F8E4M3FromFloat32(f float32) Float8E4M3 { return F8E4M3FromFloat64(float64(f)) }

// F8E4M3FromFloat64 is [F8E4M3FromFloat32] from float64, in one step.
func F8E4M3FromFloat64(f float64) Float8E4M3 { return Float8E4M3(NarrowF8(F8E4M3, f, true)) }

// F8E5M2FromFloat32 rounds f to the nearest Float8E5M2, ties to even. What rounds beyond 57344 is infinite; a NaN keeps
// its sign.
func F8E5M2FromFloat32(f float32) Float8E5M2 { return F8E5M2FromFloat64(float64(f)) }

// F8E5M2FromFloat64 is [F8E5M2FromFloat32] from float64, in one step.
func F8E5M2FromFloat64(f float64) Float8E5M2 { return Float8E5M2(NarrowF8(F8E5M2, f, false)) }

// NarrowF8 rounds f to the nearest value of an 8-bit floating-point type, ties to even, and returns its bits. What rounds
// beyond the largest finite value becomes that value where saturate is set, infinities too; else infinity, and NaN in a
// type without infinity.
func NarrowF8(d DType, f float64, saturate bool) uint8 {
	t := d.facts()
	b := math.Float64bits(f)
	sign := uint8(b >> 56 & 0x80)
	b &^= 1 << 63
	largest := uint64(1)<<(t.exponent+t.mantissa) - 2 // all ones is NaN
	over := largest + 1
	if t.infinite {
		over = uint64(1<<t.exponent-1) << t.mantissa
		largest = over - 1
	}
	if b > 0x7ff<<52 {
		return sign | 0x7f
	}
	switch bits := narrowTo(b, t.exponent, t.mantissa); {
	case bits <= largest:
		return sign | uint8(bits)
	case saturate:
		return sign | uint8(largest)
	}
	return sign | uint8(over)
}

// narrowTo rounds the bits of a float64 without sign to a format of given widths, whose exponents have no end: what is
// beyond the format has more bits than it.
func narrowTo(b uint64, exponent, mantissa int) uint64 {
	shift, bias := 52-mantissa, 1<<(exponent-1)-1
	if b < uint64(1023+1-bias)<<52 { // subnormal
		step := uint64(1023+1-bias+shift) << 52 // its ulp is the smallest one
		return math.Float64bits(math.Float64frombits(b)+math.Float64frombits(step)) - step
	}
	b -= uint64(1023-bias) << 52
	return (b + 1<<(shift-1) - 1 + b>>shift&1) >> shift
}

// values8 are the values of all bit patterns of an 8-bit type.
func values8(d DType) (v [256]float32) {
	t := table[d]
	bias := 1<<(t.exponent-1) - 1
	for i := range v {
		exponent, mantissa := i>>t.mantissa&(1<<t.exponent-1), float64(i&(1<<t.mantissa-1))
		f := math.Ldexp(mantissa+float64(int(1)<<t.mantissa), exponent-bias-t.mantissa)
		switch {
		case exponent == 0:
			f = math.Ldexp(mantissa, 1-bias-t.mantissa)
		case !t.infinite && i&0x7f == 0x7f, t.infinite && exponent == 1<<t.exponent-1 && mantissa != 0:
			f = math.NaN()
		case t.infinite && exponent == 1<<t.exponent-1:
			f = math.Inf(1)
		}
		if i >= 0x80 {
			f = math.Copysign(f, -1)
		}
		v[i] = float32(f)
	}
	return v
}

var valuesE4M3, valuesE5M2 = values8(F8E4M3), values8(F8E5M2)

// Float32 returns the value, exactly.
func (b Float8E4M3) Float32() float32 { return valuesE4M3[b] }

// Float64 returns the value, exactly.
func (b Float8E4M3) Float64() float64 { return float64(b.Float32()) }

// String formats the value with the fewest digits that tell it from every other float32.
func (b Float8E4M3) String() string { return format(b.Float32()) }

// Float32 returns the value, exactly.
func (b Float8E5M2) Float32() float32 { return valuesE5M2[b] }

// Float64 returns the value, exactly.
func (b Float8E5M2) Float64() float64 { return float64(b.Float32()) }

// String formats the value with the fewest digits that tell it from every other float32.
func (b Float8E5M2) String() string { return format(b.Float32()) }
