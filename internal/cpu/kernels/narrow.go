package kernels

// Conversions of 16-bit floating-point numbers, which are bits here. They do as many elements as make whole vectors, none
// without assembly, and return the number: those of package dtype, whose bits are the same, do the others.

// FromF16 widens f16.
func FromF16(dst []float32, x []uint16) int { return widenAssembly(0, dst, x) }

// FromBF16 widens bf16.
func FromBF16(dst []float32, x []uint16) int { return widenAssembly(1, dst, x) }

// ToF16 rounds to the nearest f16, ties to even.
func ToF16(dst []uint16, x []float32) int { return narrowAssembly(0, dst, x) }

// ToBF16 rounds to the nearest bf16, ties to even.
func ToBF16(dst []uint16, x []float32) int { return narrowAssembly(1, dst, x) }
