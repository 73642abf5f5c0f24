package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Integers wrap around as Go's do. Division of integers truncates towards zero and gives 0 where the divisor is 0; the
// remainder has the divisor's sign and is 0 where that is 0. Parameters of integer ops are converted as by
// [dtype.Convert]: towards zero.

func init() {
	numbers(ir.Neg, negate, negate, negate, negate, negate)
	numbers(ir.Abs, absFloat, absFloat, absInt, absInt, absInt)
	numbers(ir.Sign, sign32, sign, sign, sign, sign)
	numbers(ir.ReLU, relu32, relu, relu, relu, relu)
	numbers(ir.Affine, affine32, affine, affine, affine, affine)
	numbers(ir.Clamp, clamp32, clampFloat[float64], clampInt, clampInt, clampInt)
	numbers(ir.Axpy, axpy32, axpy, axpy, axpy, axpy)
	numbers(ir.Add, add32, add, add, add, add)
	numbers(ir.Sub, sub32, sub, sub, sub, sub)
	numbers(ir.Mul, mul32, mul, mul, mul, mul)
	numbers(ir.Div, div32, divFloat, divInt, divInt, divInt)
	numbers(ir.Rem, rem32, rem64, remInt, remInt, remInt)

	extremes(ir.Maximum, binary(kernels.Maximum), larger, larger, larger, larger)
	extremes(ir.Minimum, binary(kernels.Minimum), smaller, smaller, smaller, smaller)
	comparison(ir.Eq, eq, eq, eq, eq, eq)
	comparison(ir.Ne, ne, ne, ne, ne, ne)
	comparison(ir.Lt, lt, lt, lt, lt, lt)
	comparison(ir.Le, le, le, le, le, le)

	integers(ir.BitAnd, bitAnd, bitAnd, bitAnd)
	integers(ir.BitOr, bitOr, bitOr, bitOr)
	integers(ir.BitXor, bitXor, bitXor, bitXor)
	integers(ir.ShiftLeft, shiftLeft, shiftLeft, shiftLeft)
	integers(ir.ShiftRight, shiftRight, shiftRight, shiftRight)
	integers(ir.GCD, gcd, gcd, gcd)

	offer(boolPass(not).prepare, ir.Not)
	offer(boolPass(and).prepare, ir.And)
	offer(boolPass(or).prepare, ir.Or)
	offer(boolPass(xor).prepare, ir.Xor)
}

// The helpers below exist because Go infers the type arguments of a function's arguments, but not of a struct's fields.

func numbers(code ir.Code, f32 pass[float32, float32], f64 pass[float64, float64], i64 pass[int64, int64], i32 pass[int32, int32], u8 pass[uint8, uint8]) {
	offer(numberPasses{floatPasses{grainCheap, f32, f64}, integerPasses{i64, i32, u8}}.prepare, code)
	words[code] = word{f32, f64}
}

func integers(code ir.Code, i64 pass[int64, int64], i32 pass[int32, int32], u8 pass[uint8, uint8]) {
	offer(integerPasses{i64, i32, u8}.prepare, code)
}

func extremes(code ir.Code, f32 pass[float32, float32], f64 pass[float64, float64], i64 pass[int64, int64], i32 pass[int32, int32], u8 pass[uint8, uint8]) {
	offer(extremePasses{numberPasses{floatPasses{grainCheap, f32, f64}, integerPasses{i64, i32, u8}}}.prepare, code)
	words[code] = word{f32, f64}
}

func comparison(code ir.Code, f32 pass[bool, float32], f64 pass[bool, float64], i64 pass[bool, int64], i32 pass[bool, int32], u8 pass[bool, uint8]) {
	offer(comparePasses{f32, f64, i64, i32, u8}.prepare, code)
	tests[code] = test{f32, f64}
}

// numberOf converts a parameter.
func numberOf[T number](p float64) T {
	var v [1]T
	switch d := any(&v).(type) {
	case *[1]float32:
		d[0] = float32(p)
	case *[1]float64:
		d[0] = p
	case *[1]int64:
		dtype.Convert(d[:], []float64{p})
	case *[1]int32:
		dtype.Convert(d[:], []float64{p})
	case *[1]uint8:
		dtype.Convert(d[:], []float64{p})
	}
	return v[0]
}

func negate[T number](dst, x, _ []T, _, _ float64) {
	for i, v := range x {
		dst[i] = -v
	}
}

func absFloat[T float](dst, x, _ []T, _, _ float64) {
	for i, v := range x {
		dst[i] = T(math.Abs(float64(v)))
	}
}

func absInt[T integer](dst, x, _ []T, _, _ float64) {
	for i, v := range x {
		dst[i] = max(v, -v)
		if v > 0 {
			dst[i] = v // of u8, whose negation is not negative
		}
	}
}

// sign is 0 of NaN, as PyTorch's.
func sign[T number](dst, x, _ []T, _, _ float64) {
	for i, v := range x {
		var s T
		if v > 0 {
			s = 1
		} else if v < 0 {
			s--
		}
		dst[i] = s
	}
}

// Those of float32 that have loops in assembly.

func sign32(dst, x, _ []float32, _, _ float64)   { kernels.Sign(dst, x) }
func relu32(dst, x, _ []float32, _, _ float64)   { kernels.ReLU(dst, x) }
func affine32(dst, x, _ []float32, p, q float64) { kernels.Affine(dst, x, float32(p), float32(q)) }
func axpy32(dst, x, y []float32, p, _ float64)   { kernels.Axpy(dst, x, y, float32(p)) }
func add32(dst, x, y []float32, _, _ float64)    { kernels.Add(dst, x, y) }
func sub32(dst, x, y []float32, _, _ float64)    { kernels.Sub(dst, x, y) }
func mul32(dst, x, y []float32, _, _ float64)    { kernels.Mul(dst, x, y) }
func div32(dst, x, y []float32, _, _ float64)    { kernels.Div(dst, x, y) }

func relu[T number](dst, x, _ []T, _, _ float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

func affine[T number](dst, x, _ []T, p, q float64) {
	a, b := numberOf[T](p), numberOf[T](q)
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = a*v + b
	}
}

func clamp32(dst, x, _ []float32, p, q float64) {
	if p != p || q != q {
		clampFloat(dst, x, nil, p, q)
		return
	}
	kernels.Clamp(dst, x, float32(p), float32(q))
}

func clampFloat[T float](dst, x, _ []T, p, q float64) {
	lo, hi := T(p), T(q)
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

// clampInt moves the bounds into the range of T: every integer is above -Inf.
func clampInt[T integer](dst, x, _ []T, p, q float64) {
	dt := dtype.Of[T]()
	lo := numberOf[T](min(max(p, dt.Lowest()), dt.Max()))
	hi := numberOf[T](min(max(q, dt.Lowest()), dt.Max()))
	for i, v := range x {
		dst[i] = min(max(v, lo), hi)
	}
}

func axpy[T number](dst, x, y []T, p, _ float64) {
	a := numberOf[T](p)
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + a*y[i]
	}
}

func add[T number](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

func sub[T number](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

func mul[T number](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

func divFloat[T float](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] / y[i]
	}
}

func divInt[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, d := range y {
		if d == 0 {
			dst[i] = 0
			continue
		}
		dst[i] = x[i] / d
	}
}

func remInt[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, d := range y {
		if d == 0 {
			dst[i] = 0
			continue
		}
		r := x[i] % d
		if r != 0 && r < 0 != (d < 0) {
			r += d
		}
		dst[i] = r
	}
}

// rem32 finds the quotient in float64, where it is exact enough to have the right floor below 2²⁸: a float32 that is no
// multiple of another is at least 2⁻²⁴ of it away from one.
func rem32(dst, x, y []float32, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		a, b := float64(x[i]), float64(y[i])
		q := a / b
		if math.Abs(q) < 1<<28 && !math.IsInf(b, 0) {
			dst[i] = float32(a - float64(b*math.Floor(q)))
		} else {
			dst[i] = float32(floorMod(a, b))
		}
	}
}

func rem64(dst, x, y []float64, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = floorMod(x[i], y[i])
	}
}

// floorMod is x - y·⌊x/y⌋, from the exact remainder of the truncated quotient.
func floorMod(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && r < 0 != (y < 0) {
		r += y
	}
	return r
}

func larger[T number](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

func smaller[T number](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = min(x[i], y[i])
	}
}

func eq[T number](dst []bool, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] == y[i]
	}
}

func ne[T number](dst []bool, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] != y[i]
	}
}

func lt[T number](dst []bool, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] < y[i]
	}
}

func le[T number](dst []bool, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] <= y[i]
	}
}

func bitAnd[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] & y[i]
	}
}

func bitOr[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] | y[i]
	}
}

func bitXor[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] ^ y[i]
	}
}

// A shift by a negative number counts as one by very many, which Go's shifts take.

func shiftLeft[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] << uint64(y[i])
	}
}

func shiftRight[T integer](dst, x, y []T, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] >> uint64(y[i])
	}
}

func gcd[T integer](dst, x, y []T, _, _ float64) {
	for i, a := range x {
		b := y[i]
		for b != 0 {
			a, b = b, a%b
		}
		if a < 0 {
			a = -a
		}
		dst[i] = a
	}
}

func not(dst, x, _ []bool, _, _ float64) {
	for i, v := range x {
		dst[i] = !v
	}
}

func and(dst, x, y []bool, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] && y[i]
	}
}

func or(dst, x, y []bool, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] || y[i]
	}
}

func xor(dst, x, y []bool, _, _ float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] != y[i]
	}
}

func choosePass[T any](dst []T, c []bool, x, y []T) {
	if f, ok := any(dst).([]float32); ok {
		kernels.Choose(f, c, any(x).([]float32), any(y).([]float32))
		return
	}
	c, x, y = c[:len(dst)], x[:len(dst)], y[:len(dst)]
	for i := range dst {
		v := y[i]
		if c[i] {
			v = x[i]
		}
		dst[i] = v
	}
}
