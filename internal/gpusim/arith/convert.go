package arith

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

const cvtMods = "rn rz rm rp rna rni rzi rmi rpi ftz sat relu satfinite"

// cvtForm is conversions. The result is widened by the destination type, because the register may be wider.
func cvtForm(in *ptx.Inst) (form, error) {
	if in.Has("pack") {
		return cvtPackForm(in)
	}
	if err := Allow(in, cvtMods); err != nil {
		return form{}, err
	}
	ts := in.Types()
	if len(ts) != 2 {
		return form{}, simt.NotSupported(in, "wants two types")
	}
	dst, src := ts[0], ts[1]
	df, sf := FormatOf(dst), FormatOf(src)
	known := func(t ptx.Type, f *Format) bool {
		return f != nil || (t.Kind() == ptx.KindInt || t.Kind() == ptx.KindUint) && t.Size()*8 == t.Bits() && t.Bits() <= 64 &&
			t != ptx.U16x2 && t != ptx.S16x2
	}
	switch {
	case fp8Of(dst) != nil || fp8Of(src) != nil:
		return cvt8Form(in, dst, src)
	case !known(dst, df) || !known(src, sf) || in.Has("satfinite") || Packed(src):
		return form{}, simt.NotSupported(in, "not a conversion of sm_80")
	case Packed(dst) || dst == ptx.TF32:
		return cvtNarrowForm(in, dst, src)
	case df != nil && sf != nil:
		return cvtFloatForm(in, dst, src)
	case df != nil:
		return cvtFromInt(in, dst, src)
	case sf != nil:
		return cvtToInt(in, dst, src)
	}
	return cvtIntForm(in, dst, src)
}

func cvtIntForm(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	from, to := Extend(src), Extend(dst)
	if !in.Has("sat") {
		return form{dst, []ptx.Type{src}, func(a, _, _, _ uint64) uint64 { return to(from(a)) }}, nil
	}
	signed := src.Kind() == ptx.KindInt
	return form{dst, []ptx.Type{src}, func(a, _, _, _ uint64) uint64 {
		v := from(a)
		if signed && int64(v) < 0 {
			lo, _ := intRange(dst)
			return uint64(max(int64(v), lo))
		}
		_, hi := intRange(dst)
		return min(v, hi)
	}}, nil
}

// intRange is the least and the greatest value of an integer type.
func intRange(t ptx.Type) (lo int64, hi uint64) {
	n := t.Bits()
	if t.Kind() == ptx.KindInt {
		return math.MinInt64 >> (64 - n), math.MaxInt64 >> (64 - n)
	}
	return 0, math.MaxUint64 >> (64 - n)
}

func cvtFromInt(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	df, ext, mode, signed := FormatOf(dst), Extend(src), modeOf(in), src.Kind() == ptx.KindInt
	f := func(a, _, _, _ uint64) uint64 {
		v := ext(a)
		neg := signed && int64(v) < 0
		if neg {
			v = -v
		}
		return df.fromUint(v, neg, mode)
	}
	return form{dst, []ptx.Type{src}, withSat(in, df, f)}, nil
}

// fromUint is ±v rounded to the format.
func (f *Format) fromUint(v uint64, neg bool, mode rounding) uint64 {
	x := float64(v)
	if f == fmtF64 {
		return fromUint64(v, neg, mode)
	}
	if v >= 1<<53 { // round to odd by hand: 11 bits may be lost
		x = float64(v>>11|simt.Bit(v&0x7ff != 0)) * 2048
	}
	if neg {
		x = -x
	}
	return f.Round(x, mode)
}

func fromUint64(v uint64, neg bool, mode rounding) uint64 {
	x := float64(v)
	var over, under bool
	if x >= 0x1p64 {
		over = true
	} else {
		over, under = uint64(x) > v, uint64(x) < v
	}
	switch {
	case over && (mode == RZ || mode == RM && !neg || mode == RP && neg):
		x = math.Nextafter(x, 0)
	case under && (mode == RM && neg || mode == RP && !neg):
		x = math.Nextafter(x, math.Inf(1))
	}
	if neg {
		x = -x
	}
	return math.Float64bits(x)
}

func withSat(in *ptx.Inst, ff *Format, f Lane) Lane {
	switch {
	case in.Has("sat"):
		return func(a, b, c, d uint64) uint64 { return ff.saturate(f(a, b, c, d)) }
	case in.Has("relu"):
		return func(a, b, c, d uint64) uint64 { return ff.relu(f(a, b, c, d)) }
	}
	return f
}

// toIntegral rounds to an integer in a mode.
func toIntegral(x float64, mode rounding) float64 {
	switch mode {
	case RZ:
		return math.Trunc(x)
	case RM:
		return math.Floor(x)
	case RP:
		return math.Ceil(x)
	}
	return math.RoundToEven(x)
}

func cvtToInt(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	sf, mode, ftz := FormatOf(src), modeOf(in), in.Has("ftz")
	lo, hi := intRange(dst)
	nan := nanToInt(dst, src)
	return form{dst, []ptx.Type{src}, func(a, _, _, _ uint64) uint64 {
		if ftz {
			a = sf.flush(a)
		}
		x := toIntegral(sf.Float(a), mode)
		switch {
		case x != x:
			return nan
		case x <= float64(lo):
			return uint64(lo)
		case x >= float64(hi):
			return hi
		case x < 0:
			return uint64(int64(x))
		}
		return uint64(x)
	}}, nil
}

// nanToInt: 0 if neither side has 64 bits; the 64-bit units give the highest bit of the result alone.
func nanToInt(dst, src ptx.Type) uint64 {
	if dst.Bits() < 64 && src != ptx.F64 {
		return 0
	}
	if lo, _ := intRange(dst); lo != 0 {
		return uint64(lo)
	}
	return 1 << (dst.Bits() - 1)
}

func cvtFloatForm(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	df, sf, mode, ftz := FormatOf(dst), FormatOf(src), modeOf(in), in.Has("ftz")
	integral := in.Has("rni") || in.Has("rzi") || in.Has("rmi") || in.Has("rpi")
	f := func(a, _, _, _ uint64) uint64 {
		if ftz && sf == F32 {
			a = sf.flush(a)
		}
		x := sf.Float(a)
		if integral {
			x = toIntegral(x, mode)
		}
		var r uint64
		if df == fmtF64 {
			r = Canon64(math.Float64bits(x))
		} else {
			r = df.Round(x, mode)
		}
		if ftz && df == F32 {
			r = df.flush(r)
		}
		return r
	}
	return form{dst, []ptx.Type{src}, withSat(in, df, f)}, nil
}

// cvtNarrowForm is float32 to tf32, or two float32 to a packed type, the first into the upper half.
func cvtNarrowForm(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	if src != ptx.F32 {
		return form{}, simt.NotSupported(in, "wants .f32")
	}
	df, mode := FormatOf(dst), modeOf(in)
	one := withSat(in, df, func(a, _, _, _ uint64) uint64 { return df.Round(F32.Float(a), mode) })
	if dst == ptx.TF32 {
		return form{ptx.B32, []ptx.Type{src}, one}, nil
	}
	return form{dst, []ptx.Type{src, src}, func(a, b, _, _ uint64) uint64 { return one(a, 0, 0, 0)<<16 | one(b, 0, 0, 0) }}, nil
}

// cvtPackForm is cvt.pack.sat: two integers saturated to 16, 8, 4 or 2 bits and packed, below c's low part where there is one.
func cvtPackForm(in *ptx.Inst) (form, error) {
	if err := Allow(in, "pack sat"); err != nil {
		return form{}, err
	}
	ts := in.Types()
	switch {
	case len(ts) == 2 && ts[1] == ptx.S32 && ts[0].Bits() == 16:
		sat := saturateS32(ts[0])
		return form{ptx.B32, []ptx.Type{ptx.S32, ptx.S32}, func(a, b, _, _ uint64) uint64 { return sat(a)<<16 | sat(b) }}, nil
	case len(ts) == 3 && ts[1] == ptx.S32 && ts[2] == ptx.B32 && ts[0].Bits() <= 8:
		n := ts[0].Bits()
		sat := saturateS32(ts[0])
		return form{ptx.B32, []ptx.Type{ptx.S32, ptx.S32, ptx.B32}, func(a, b, c, _ uint64) uint64 { return c<<(2*n) | sat(a)<<n | sat(b) }}, nil
	}
	return form{}, simt.NotSupported(in, "not a form of sm_80")
}

func saturateS32(t ptx.Type) func(v uint64) uint64 {
	lo, hi := intRange(t)
	mask := uint64(1)<<t.Bits() - 1
	return func(v uint64) uint64 { return uint64(min(max(int64(int32(v)), lo), int64(hi))) & mask }
}
