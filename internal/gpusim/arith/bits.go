package arith

import (
	"math"
	"math/bits"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

func countForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", "b32 b64")
	ext, n := Extend(t), t.Bits()
	f := func(a, _, _, _ uint64) uint64 { return uint64(bits.OnesCount64(ext(a))) }
	if in.Op == "clz" {
		f = func(a, _, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(ext(a)) - 64 + n) }
	}
	return form{ptx.U32, []ptx.Type{t}, f}, err
}

func bfindForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "shiftamt", int32to64)
	ext, n, amount := Extend(t), t.Bits(), in.Has("shiftamt")
	return form{ptx.U32, []ptx.Type{t}, func(a, _, _, _ uint64) uint64 {
		v := ext(a)
		if t.Kind() == ptx.KindInt && int64(v) < 0 {
			v = ^v
		}
		if v == 0 {
			return math.MaxUint32
		}
		i := bits.Len64(v) - 1
		if amount {
			i = n - 1 - i
		}
		return uint64(i)
	}}, err
}

// fnsForm finds the n-th set bit from a base, upwards or downwards.
func fnsForm(in *ptx.Inst) (form, error) {
	_, err := Typed(in, "", "b32")
	return form{ptx.B32, []ptx.Type{ptx.B32, ptx.B32, ptx.S32}, func(mask, base, offset, _ uint64) uint64 {
		m, at, n := uint32(mask), int(uint32(base)), int(int32(offset))
		if n == 0 {
			if at < 32 && m>>at&1 == 1 {
				return uint64(at)
			}
			return math.MaxUint32
		}
		step, count := 1, n-1
		if n < 0 {
			step, count = -1, -n-1
		}
		for ; at >= 0 && at < 32; at += step {
			if m>>at&1 == 1 {
				if count == 0 {
					return uint64(at)
				}
				count--
			}
		}
		return math.MaxUint32
	}}, err
}

func brevForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", "b32 b64")
	n := 64 - t.Bits()
	return form{t, []ptx.Type{t}, func(a, _, _, _ uint64) uint64 { return bits.Reverse64(a) >> n }}, err
}

func bfeForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", int32to64)
	ext, n, signed := Extend(t), uint64(t.Bits()), t.Kind() == ptx.KindInt
	return form{t, []ptx.Type{t, ptx.U32, ptx.U32}, func(a, b, c, _ uint64) uint64 {
		pos, length := b&0xff, c&0xff
		if length == 0 {
			return 0
		}
		v := ext(a)
		if signed {
			top := min(pos+length-1, n-1)
			sign := v >> top & 1
			v = v << (64 - n) >> (64 - n) >> pos
			if width := max(int64(top)-int64(pos)+1, 0); width < 64 {
				v = v&(1<<width-1) | -sign<<width
			}
			return v
		}
		v >>= pos
		if length < 64 {
			v &= 1<<length - 1
		}
		return v
	}}, err
}

func bfiForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", "b32 b64")
	return form{t, []ptx.Type{t, t, ptx.U32, ptx.U32}, func(a, b, c, d uint64) uint64 {
		pos, length := c&0xff, d&0xff
		m := uint64(math.MaxUint64)
		if length < 64 {
			m = 1<<length - 1
		}
		m <<= pos
		return b&^m | a<<pos&m
	}}, err
}

// szextForm extends from bit position b; .wrap takes b modulo 32, .clamp bounds it.
func szextForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "wrap clamp", "u32 s32")
	position := positionOf(in)
	return form{t, []ptx.Type{t, ptx.U32}, func(a, b, _, _ uint64) uint64 {
		n := position(b)
		if n == 0 {
			return 0
		}
		if t == ptx.S32 {
			return uint64(int64(a<<(64-n)) >> (64 - n))
		}
		return a & (1<<n - 1)
	}}, err
}

// positionOf is how an instruction reads a bit position: modulo 32 with .wrap, else at most 32.
func positionOf(in *ptx.Inst) func(b uint64) uint64 {
	if in.Has("wrap") {
		return func(b uint64) uint64 { return b & 31 }
	}
	return func(b uint64) uint64 { return min(b&math.MaxUint32, 32) }
}

func bmskForm(in *ptx.Inst) (form, error) {
	_, err := Typed(in, "wrap clamp", "b32")
	position := positionOf(in)
	return form{ptx.B32, []ptx.Type{ptx.U32, ptx.U32}, func(a, b, _, _ uint64) uint64 {
		return (1<<position(b) - 1) << position(a)
	}}, err
}

func logicForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", "pred b16 b32 b64")
	if err != nil {
		return form{}, err
	}
	ext := Extend(t)
	switch in.Op {
	case "and":
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return a & b })
	case "or":
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return a | b })
	case "xor":
		return same(t, 2, func(a, b, _, _ uint64) uint64 { return a ^ b })
	case "not":
		return same(t, 1, func(a, _, _, _ uint64) uint64 { return ^a })
	}
	return same(t, 1, func(a, _, _, _ uint64) uint64 {
		if ext(a) == 0 {
			return 1
		}
		return 0
	})
}

// lop3Form is any function of three bits, by its truth table.
func lop3Form(in *ptx.Inst) (form, error) {
	_, err := Typed(in, "", "b32")
	return form{ptx.B32, []ptx.Type{ptx.B32, ptx.B32, ptx.B32, ptx.U32}, Lop3}, err
}

// Lop3 looks each bit of a, b and c up in the table.
func Lop3(a, b, c, table uint64) uint64 {
	var r uint64
	for i := range uint64(8) {
		if table>>i&1 == 1 {
			r |= (a ^ (i>>2&1 - 1)) & (b ^ (i>>1&1 - 1)) & (c ^ (i&1 - 1))
		}
	}
	return r
}

func shiftForm(in *ptx.Inst) (form, error) {
	types := "b16 b32 b64"
	if in.Op == "shr" {
		types += " " + int16to64
	}
	t, err := Typed(in, "", types)
	ext, n := Extend(t), uint64(t.Bits())
	f := func(a, b, _, _ uint64) uint64 { return ext(a) >> min(b&math.MaxUint32, 64) }
	switch {
	case in.Op == "shl":
		f = func(a, b, _, _ uint64) uint64 { return a << min(b&math.MaxUint32, n) }
	case t.Kind() == ptx.KindInt:
		f = func(a, b, _, _ uint64) uint64 { return uint64(int64(ext(a)) >> min(b&math.MaxUint32, n)) }
	}
	return form{t, []ptx.Type{t, ptx.U32}, f}, err
}

func funnelForm(in *ptx.Inst) (form, error) {
	_, err := Typed(in, "l r wrap clamp", "b32")
	if err == nil && (in.Has("l") == in.Has("r") || in.Has("wrap") == in.Has("clamp")) {
		err = simt.NotSupported(in, "wants .l or .r, and .wrap or .clamp")
	}
	left, position := in.Has("l"), positionOf(in)
	return form{ptx.B32, []ptx.Type{ptx.B32, ptx.B32, ptx.U32}, func(a, b, c, _ uint64) uint64 {
		v, n := a&math.MaxUint32|b<<32, position(c)
		if left {
			return v << n >> 32
		}
		return v >> n
	}}, err
}

// prmtForm picks bytes out of two words; the modes are shorthands for selectors.
func prmtForm(in *ptx.Inst) (form, error) {
	_, err := Typed(in, "f4e b4e rc8 ecl ecr rc16", "b32")
	selector := func(c uint64) uint64 { return c & 0xffff }
	for mode, table := range prmtModes {
		if in.Has(mode) {
			selector = func(c uint64) uint64 { return uint64(table[c&3]) }
		}
	}
	return form{ptx.B32, []ptx.Type{ptx.B32, ptx.B32, ptx.B32}, func(a, b, c, _ uint64) uint64 {
		v, sel := a&math.MaxUint32|b<<32, selector(c)
		var r uint64
		for i := range 4 {
			s := sel >> (4 * i)
			x := v >> (8 * (s & 7)) & 0xff
			if s&8 != 0 {
				x = uint64(int8(x)>>7) & 0xff
			}
			r |= x << (8 * i)
		}
		return r
	}}, err
}

var prmtModes = map[string][4]uint16{
	"f4e": {0x3210, 0x4321, 0x5432, 0x6543}, "b4e": {0x5670, 0x6701, 0x7012, 0x0123}, "rc8": {0x0000, 0x1111, 0x2222, 0x3333},
	"ecl": {0x3210, 0x3211, 0x3222, 0x3333}, "ecr": {0x0000, 0x1110, 0x2210, 0x3210}, "rc16": {0x1010, 0x3232, 0x1010, 0x3232},
}

// slctForm chooses by the sign of c.
func slctForm(in *ptx.Inst) (form, error) {
	if err := Allow(in, "ftz"); err != nil {
		return form{}, err
	}
	ts := in.Types()
	if len(ts) != 2 || ts[1] != ptx.S32 && ts[1] != ptx.F32 || ts[0].Bits() < 16 || ts[0].Bits() > 64 {
		return form{}, simt.NotSupported(in, "wants a type and s32 or f32")
	}
	pick := func(c uint64) bool { return int32(c) >= 0 }
	switch {
	case ts[1] == ptx.F32 && in.Has("ftz"):
		pick = func(c uint64) bool { return math.Float32frombits(uint32(F32.flush(c))) >= 0 }
	case ts[1] == ptx.F32:
		pick = func(c uint64) bool { return math.Float32frombits(uint32(c)) >= 0 }
	}
	return form{ts[0], []ptx.Type{ts[0], ts[0], ts[1]}, func(a, b, c, _ uint64) uint64 {
		if pick(c) {
			return a
		}
		return b
	}}, nil
}
