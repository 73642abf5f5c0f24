package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// BitAnd is the bits that t and u, integers, both have, broadcast; of bools it is [Tensor.And].
func (t *Tensor) BitAnd(u *Tensor) *Tensor { return t.bitwise("BitAnd", ir.BitAnd, ir.And, u) }

// BitOr is the bits that t or u, integers, have, broadcast; of bools it is [Tensor.Or].
func (t *Tensor) BitOr(u *Tensor) *Tensor { return t.bitwise("BitOr", ir.BitOr, ir.Or, u) }

// BitXor is the bits that one of t and u, integers, has, broadcast; of bools it is [Tensor.Xor].
func (t *Tensor) BitXor(u *Tensor) *Tensor { return t.bitwise("BitXor", ir.BitXor, ir.Xor, u) }

// BitNot is the bits that t, integers, does not have: -t-1, of u8 255-t. Of bools it is [Tensor.Not].
func (t *Tensor) BitNot() *Tensor {
	if t.integers("BitNot").DType() == dtype.Bool {
		return t.Not()
	}
	return t.affine(-1, -1)
}

// ShiftLeft is t·2ᵘ of integers, which wraps, broadcast: 0 where u is negative or t has no more bits.
func (t *Tensor) ShiftLeft(u *Tensor) *Tensor { return t.shifted("ShiftLeft", ir.ShiftLeft, u) }

// ShiftRight is t/2ᵘ of integers, rounded down, broadcast: 0 where u is negative or t has no more bits, -1 of a negative t.
func (t *Tensor) ShiftRight(u *Tensor) *Tensor { return t.shifted("ShiftRight", ir.ShiftRight, u) }

// BitAndScalar is [Tensor.BitAnd] with the bits of f as an integer of t's dtype.
func (t *Tensor) BitAndScalar(f int64) *Tensor { return t.BitAnd(t.bitsOf(f)) }

// BitOrScalar is [Tensor.BitOr] with the bits of f.
func (t *Tensor) BitOrScalar(f int64) *Tensor { return t.BitOr(t.bitsOf(f)) }

// BitXorScalar is [Tensor.BitXor] with the bits of f.
func (t *Tensor) BitXorScalar(f int64) *Tensor { return t.BitXor(t.bitsOf(f)) }

// ShiftLeftScalar is [Tensor.ShiftLeft] by n bits.
func (t *Tensor) ShiftLeftScalar(n int) *Tensor { return t.ShiftLeft(t.bitsOf(int64(n))) }

// ShiftRightScalar is [Tensor.ShiftRight] by n bits.
func (t *Tensor) ShiftRightScalar(n int) *Tensor { return t.ShiftRight(t.bitsOf(int64(n))) }

// GCD is the greatest common divisor of integers, broadcast; of 0 and u it is |u|.
func (t *Tensor) GCD(u *Tensor) *Tensor { return t.shifted("GCD", ir.GCD, u) }

// LCM is the least common multiple of integers, broadcast, which wraps; 0 where one of them is.
func (t *Tensor) LCM(u *Tensor) *Tensor {
	t, u = matched("LCM", t.integers("LCM"), u.integers("LCM"))
	return joinAll("LCM", []*Tensor{t, u}).Tidy(func(e *Env) *Tensor {
		t, u := t.inside(e), u.inside(e)
		return t.binary(ir.Div, t.GCD(u), &noParams).Mul(u).Abs()
	})
}

// integers is t, which must not be floating.
func (t *Tensor) integers(op string) *Tensor {
	if t.given(op, operandNames[0]); t.DType().IsFloat() {
		raise(op, "convert with Cast", "bits are of integers, not of %s", t.DType())
	}
	return t
}

// bitwise is code, of two bools logic.
func (t *Tensor) bitwise(op string, code, logic ir.Code, u *Tensor) *Tensor {
	givenAll(op, operandNames, t, u)
	if t, u = t.integers(op), u.integers(op); t.DType() == dtype.Bool && u.DType() == dtype.Bool {
		code = logic
	}
	return t.binary(code, u, &noParams)
}

// shifted is code of numbers: two bools have none.
func (t *Tensor) shifted(op string, code ir.Code, u *Tensor) *Tensor {
	givenAll(op, operandNames, t, u)
	if t, u = t.integers(op), u.integers(op); t.DType() == dtype.Bool && u.DType() == dtype.Bool {
		raise(op, "convert with Cast", "%s and %s are no numbers", t.typ, u.typ)
	}
	return t.binary(code, u, &noParams)
}

// bitsOf is a number with the bits of f, in t's dtype; of bools in i64, as PyTorch has them. A float64 holds 53 bits, so that a
// large one is made of its halves.
func (t *Tensor) bitsOf(f int64) *Tensor {
	number := func(v int64) *Tensor { return t.Env().full(ir.Dense(dtype.I64), float64(v)) }
	n := number(f)
	if int64(float64(f)) != f || f == 1<<63-1 {
		n = number(f >> 32).Scale(1 << 32).Add(number(f & (1<<32 - 1)))
	}
	if t.DType() == dtype.Bool {
		return n
	}
	return n.Cast(t.DType())
}
