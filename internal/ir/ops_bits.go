package ir

// The codes of elementwise ops of integers. The bits of i32 and i64 are those of the two's complement.
const (
	BitAnd Code = endFunctions + iota
	BitOr
	BitXor
	ShiftLeft  // x·2^y, which wraps; 0 where y is negative or not below the number of bits
	ShiftRight // ⌊x/2^y⌋: likewise, but -1 of a negative x
	GCD        // the greatest common divisor, not negative but of the least integer; of x and 0 it is |x|

	endBits
)

var bitRows = rows{
	BitAnd:     {Name: "bit_and", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
	BitOr:      {Name: "bit_or", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
	BitXor:     {Name: "bit_xor", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
	ShiftLeft:  {Name: "shift_left", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
	ShiftRight: {Name: "shift_right", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
	GCD:        {Name: "gcd", Group: Elementwise, Class: Bits, Strides: AnyStride, min: 2, flops: perResult(1), Gradient: noGradient(isInteger), Tolerance: Exact},
}
