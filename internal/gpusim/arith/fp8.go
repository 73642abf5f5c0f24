package arith

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// The formats of 8 bits. E4M3 has no infinities, and NaN only where all bits but the sign are set.
var (
	E4M3 = &Format{8, 3, 0, 7, 0x7f}
	E5M2 = &Format{8, 2, 0, 15, 0x7f}
)

var e4m3Table, e5m2Table = fp8Table(E4M3), fp8Table(E5M2)

func fp8Table(f *Format) (t [256]float64) {
	for i := range t {
		e, m := i&0x7f>>f.mant, float64(i&(1<<f.mant-1))
		v := math.Ldexp(m/float64(int(1)<<f.mant)+1, e-f.bias)
		if e == 0 {
			v = math.Ldexp(m/float64(int(1)<<f.mant), 1-f.bias)
		}
		switch {
		case f == E4M3 && i&0x7f == 0x7f, f == E5M2 && i&0x7f > 0x7c:
			v = math.NaN()
		case f == E5M2 && i&0x7f == 0x7c:
			v = math.Inf(1)
		}
		if i>>7 != 0 {
			v = -v
		}
		t[i] = v
	}
	return t
}

// satFinite rounds to nearest in a format of 8 bits; what is too large becomes its greatest number.
func (f *Format) satFinite(x float64) uint64 {
	sign := uint64(0)
	if math.Signbit(x) {
		sign = f.sign()
	}
	x = math.Abs(x)
	if x != x {
		return f.nan
	}
	x = min(x, f.Float(f.greatest()))
	e := 1 - f.bias
	if x != 0 {
		e = max(e, math.Ilogb(x))
	}
	q := uint64(math.RoundToEven(math.Ldexp(x, f.mant-e)))
	return sign | uint64(e-1+f.bias)<<f.mant + q
}

// greatest is the bits of the greatest finite number.
func (f *Format) greatest() uint64 {
	if f == E5M2 {
		return 0x7b
	}
	return 0x7e
}

// fp8Of is the format of a pair of numbers of 8 bits, nil for another type.
func fp8Of(t ptx.Type) *Format {
	switch t {
	case ptx.E4M3x2:
		return E4M3
	case ptx.E5M2x2:
		return E5M2
	}
	return nil
}

// cvt8Form is conversions to and from pairs of 8 bits: of two float32, the first into the upper byte, and of pairs of float16.
func cvt8Form(in *ptx.Inst, dst, src ptx.Type) (form, error) {
	relu := in.Has("relu")
	if from := fp8Of(src); from != nil && dst == ptx.F16x2 && !in.Has("satfinite") {
		one := withSat(in, F16, func(a, _, _, _ uint64) uint64 { return F16.Round(from.Float(a&0xff), RN) })
		return form{dst, []ptx.Type{src}, func(a, _, _, _ uint64) uint64 { return one(a>>8, 0, 0, 0)<<16 | one(a, 0, 0, 0) }}, nil
	}
	to := fp8Of(dst)
	if to == nil || !in.Has("rn") || !in.Has("satfinite") || src != ptx.F32 && src != ptx.F16x2 {
		return form{}, simt.NotSupported(in, "not a conversion of sm_90")
	}
	one := func(x float64) uint64 {
		if relu && !(x > 0) && x == x {
			x = 0
		}
		return to.satFinite(x)
	}
	if src == ptx.F32 {
		return form{dst, []ptx.Type{src, src}, func(a, b, _, _ uint64) uint64 { return one(F32.Float(a))<<8 | one(F32.Float(b)) }}, nil
	}
	return form{dst, []ptx.Type{src}, func(a, _, _, _ uint64) uint64 { return one(F16.Float(a>>16))<<8 | one(F16.Float(a&0xffff)) }}, nil
}
