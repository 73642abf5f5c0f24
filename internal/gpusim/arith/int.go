package arith

import (
	"math"
	"math/bits"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

const (
	int16to64 = "u16 s16 u32 s32 u64 s64"
	int32to64 = "u32 s32 u64 s64"
	floats    = "f16 f16x2 bf16 bf16x2 f32 f64"
)

// Extend widens the bits of an integer type to 64.
func Extend(t ptx.Type) func(v uint64) uint64 {
	n := 64 - t.Bits()
	if t.Kind() == ptx.KindInt {
		return func(v uint64) uint64 { return uint64(int64(v<<n) >> n) }
	}
	return func(v uint64) uint64 { return v << n >> n }
}

func isFloat(in *ptx.Inst) bool { return in.Type().Kind() == ptx.KindFloat }

func addForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return floatBinary(in)
	}
	if in.Type() == ptx.U16x2 || in.Type() == ptx.S16x2 {
		return form{}, simt.NotSupported(in, "packed integers need sm_90")
	}
	t, err := Typed(in, "sat", int16to64)
	if err != nil {
		return form{}, err
	}
	if in.Has("sat") {
		if t != ptx.S32 {
			return form{}, simt.NotSupported(in, ".sat is for .s32")
		}
		if in.Op == "sub" {
			return same(t, 2, func(a, b, _, _ uint64) uint64 { return ClampS32(int64(int32(a)) - int64(int32(b))) })
		}
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return ClampS32(int64(int32(a)) + int64(int32(b))) })
	}
	if in.Op == "sub" {
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return a - b })
	}
	return same(t, 2, func(a, b, _, _ uint64) uint64 { return a + b })
}

// ClampS32 saturates to 32 bits.
func ClampS32(v int64) uint64 { return uint64(min(max(v, math.MinInt32), math.MaxInt32)) }

// Product returns the chosen half of a·b for an integer type.
func Product(in *ptx.Inst, t ptx.Type) func(a, b uint64) uint64 {
	ext, n := Extend(t), t.Bits()
	switch {
	case !in.Has("hi"):
		return func(a, b uint64) uint64 { return ext(a) * ext(b) }
	case t == ptx.U64:
		return func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }
	case t == ptx.S64:
		return func(a, b uint64) uint64 {
			hi, _ := bits.Mul64(a, b)
			return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
		}
	case t.Kind() == ptx.KindInt:
		return func(a, b uint64) uint64 { return uint64(int64(ext(a)*ext(b)) >> n) }
	}
	return func(a, b uint64) uint64 { return ext(a) * ext(b) >> n }
}

// twice is the integer type of double width.
func twice(t ptx.Type) ptx.Type {
	return map[ptx.Type]ptx.Type{ptx.U16: ptx.U32, ptx.S16: ptx.S32, ptx.U32: ptx.U64, ptx.S32: ptx.S64}[t]
}

// partOf checks that exactly one of .lo, .hi and .wide is given.
func partOf(in *ptx.Inst, t ptx.Type) (dst ptx.Type, err error) {
	n := 0
	for _, m := range []string{"lo", "hi", "wide"} {
		if in.Has(m) {
			n++
		}
	}
	if n != 1 {
		return 0, simt.NotSupported(in, "wants one of .lo, .hi, .wide")
	}
	if !in.Has("wide") {
		return t, nil
	}
	if dst = twice(t); dst == ptx.NoType {
		return 0, simt.NotSupported(in, ".wide wants 16 or 32 bits")
	}
	return dst, nil
}

func mulForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return floatBinary(in)
	}
	t, err := Typed(in, "lo hi wide", int16to64)
	if err != nil {
		return form{}, err
	}
	dst, err := partOf(in, t)
	mul := Product(in, t)
	return form{dst, []ptx.Type{t, t}, func(a, b, _, _ uint64) uint64 { return mul(a, b) }}, err
}

func madForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return fmaForm(in)
	}
	t, err := Typed(in, "lo hi wide sat", int16to64)
	if err != nil {
		return form{}, err
	}
	dst, err := partOf(in, t)
	mul := Product(in, t)
	f := func(a, b, c, _ uint64) uint64 { return mul(a, b) + c }
	if in.Has("sat") {
		if t != ptx.S32 || !in.Has("hi") {
			return form{}, simt.NotSupported(in, ".sat is for mad.hi.s32")
		}
		f = func(a, b, c, _ uint64) uint64 { return ClampS32(int64(mul(a, b)) + int64(int32(c))) }
	}
	return form{dst, []ptx.Type{t, t, dst}, f}, err
}

func mul24Form(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "lo hi sat", "u32 s32")
	if err == nil && in.Has("sat") && (in.Op == "mul24" || t != ptx.S32 || !in.Has("hi")) {
		err = simt.NotSupported(in, ".sat is for mad24.hi.s32")
	}
	if err != nil {
		return form{}, err
	}
	ext := func(v uint64) uint64 { return v & 0xffffff }
	if t == ptx.S32 {
		ext = func(v uint64) uint64 { return uint64(int64(v<<40) >> 40) }
	}
	shift := 0
	if in.Has("hi") {
		shift = 16
	}
	mul := func(a, b uint64) uint64 { return uint64(int64(ext(a)*ext(b)) >> shift) }
	if in.Has("sat") {
		return same(t, 3, func(a, b, c, _ uint64) uint64 { return ClampS32(int64(mul(a, b)) + int64(int32(c))) })
	}
	if in.Op == "mad24" {
		return same(t, 3, func(a, b, c, _ uint64) uint64 { return mul(a, b) + c })
	}
	return same(t, 2, func(a, b, _, _ uint64) uint64 { return mul(a, b) })
}

func sadForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", int16to64)
	less := lessThan(t)
	return form{t, []ptx.Type{t, t, t}, func(a, b, c, _ uint64) uint64 {
		if less(a, b) {
			return c + b - a
		}
		return c + a - b
	}}, err
}

// lessThan compares the bits of an integer type.
func lessThan(t ptx.Type) func(a, b uint64) bool {
	ext := Extend(t)
	if t.Kind() == ptx.KindInt {
		return func(a, b uint64) bool { return int64(ext(a)) < int64(ext(b)) }
	}
	return func(a, b uint64) bool { return ext(a) < ext(b) }
}

// divForm is integer division; by zero it gives all ones, the remainder the dividend, as hardware does.
func divForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return floatDiv(in)
	}
	t, err := Typed(in, "", int16to64)
	if err != nil {
		return form{}, err
	}
	ext, rem := Extend(t), in.Op == "rem"
	if t.Kind() == ptx.KindInt {
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return signedDiv(int64(ext(a)), int64(ext(b)), rem) })
	}
	return same(t, 2, func(a, b, _, _ uint64) uint64 { return unsignedDiv(ext(a), ext(b), rem) })
}

func signedDiv(a, b int64, rem bool) uint64 {
	switch {
	case b == 0 && rem:
		return uint64(a)
	case b == 0:
		return math.MaxUint64
	case rem:
		return uint64(a % b)
	}
	return uint64(a / b)
}

func unsignedDiv(a, b uint64, rem bool) uint64 {
	switch {
	case b == 0 && rem:
		return a
	case b == 0:
		return math.MaxUint64
	case rem:
		return a % b
	}
	return a / b
}

func signForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return floatSign(in)
	}
	t, err := Typed(in, "", "s16 s32 s64")
	if err != nil {
		return form{}, err
	}
	ext := Extend(t)
	if in.Op == "neg" {
		return same(t, 1, func(a, _, _, _ uint64) uint64 { return -a })
	}
	return same(t, 1, func(a, _, _, _ uint64) uint64 {
		if v := ext(a); int64(v) < 0 {
			return -v
		}
		return a
	})
}

func minForm(in *ptx.Inst) (form, error) {
	if isFloat(in) {
		return floatMin(in)
	}
	t, err := Typed(in, "", int16to64)
	if err != nil {
		return form{}, err
	}
	less := lessThan(t)
	if in.Op == "min" {
		return same(t, 2, func(a, b, _, _ uint64) uint64 {
			if less(b, a) {
				return b
			}
			return a
		})
	}
	return same(t, 2, func(a, b, _, _ uint64) uint64 {
		if less(a, b) {
			return b
		}
		return a
	})
}

// dotForm is dp4a and dp2a: products of bytes (or halves with bytes) added to c.
func dotForm(in *ptx.Inst) (form, error) {
	if err := Allow(in, "lo hi"); err != nil {
		return form{}, err
	}
	ts := in.Types()
	if len(ts) != 2 || ts[0] != ptx.U32 && ts[0] != ptx.S32 || ts[1] != ptx.U32 && ts[1] != ptx.S32 {
		return form{}, simt.NotSupported(in, "wants two types of u32 s32")
	}
	dst := ptx.U32
	if ts[0] == ptx.S32 || ts[1] == ptx.S32 {
		dst = ptx.S32
	}
	element := func(t ptx.Type, v uint64, i, width int) uint64 {
		if t == ptx.S32 {
			return uint64(int64(v<<(64-width*(i+1))) >> (64 - width))
		}
		return v >> (width * i) & (1<<width - 1)
	}
	n, wa, first := 4, 8, 0
	if in.Op == "dp2a" {
		n, wa = 2, 16
		if in.Has("hi") {
			first = 2
		}
	}
	return form{dst, []ptx.Type{ts[0], ts[1], dst}, func(a, b, c, _ uint64) uint64 {
		for i := range n {
			c += element(ts[0], a, i, wa) * element(ts[1], b, first+i, 8)
		}
		return c
	}}, nil
}

// AddCarry is x + y + in of n bits, 32 or 64, and the bit that is carried out.
func AddCarry(x, y, in uint64, n int) (r, out uint64) {
	if n == 32 {
		r = x<<32>>32 + y<<32>>32 + in
		return r, r >> 32 & 1
	}
	return bits.Add64(x, y, in)
}
