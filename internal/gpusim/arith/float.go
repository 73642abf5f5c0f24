package arith

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// FormatOf is the format of a float type, or of the halves of a packed one.
func FormatOf(t ptx.Type) *Format {
	switch t {
	case ptx.F16, ptx.F16x2:
		return F16
	case ptx.BF16, ptx.BF16x2:
		return BF16
	case ptx.TF32:
		return fmtTF32
	case ptx.F32:
		return F32
	case ptx.F64:
		return fmtF64
	case ptx.E4M3:
		return E4M3
	case ptx.E5M2:
		return E5M2
	}
	return nil
}

// Packed is whether a type is two halves in a register.
func Packed(t ptx.Type) bool { return t == ptx.F16x2 || t == ptx.BF16x2 }

// halves applies a function to both halves of packed operands.
func halves(f Lane) Lane {
	return func(a, b, c, d uint64) uint64 {
		lo := f(a&0xffff, b&0xffff, c&0xffff, d&0xffff)
		hi := f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff, d>>16&0xffff)
		return lo&0xffff | hi&0xffff<<16
	}
}

// floatForm completes the arithmetic of a float instruction: .ftz on operands and result, .sat, packed halves.
func floatForm(in *ptx.Inst, t ptx.Type, n int, f Lane) (form, error) {
	ff := FormatOf(t)
	if in.Has("ftz") {
		if t == ptx.F64 || ff == BF16 && in.Op != "ex2" {
			return form{}, simt.NotSupported(in, ".ftz is not for .%s", t)
		}
		plain := f
		f = func(a, b, c, d uint64) uint64 {
			return ff.flush(plain(ff.flush(a), ff.flush(b), ff.flush(c), ff.flush(d)))
		}
	}
	switch {
	case in.Has("sat"):
		if t == ptx.F64 || ff == BF16 {
			return form{}, simt.NotSupported(in, ".sat is not for .%s", t)
		}
		plain := f
		f = func(a, b, c, d uint64) uint64 { return ff.saturate(plain(a, b, c, d)) }
	case in.Has("relu"):
		plain := f
		f = func(a, b, c, d uint64) uint64 { return ff.relu(plain(a, b, c, d)) }
	}
	if Packed(t) {
		f = halves(f)
	}
	return same(t, n, f)
}

// relu clamps negative values to +0; NaN stays NaN.
func (f *Format) relu(b uint64) uint64 {
	switch x := f.Float(b); {
	case x != x:
		return f.nan
	case !(x > 0):
		return 0
	}
	return b
}

func floatBinary(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "rn rz rm rp ftz sat", floats)
	if err != nil {
		return form{}, err
	}
	mode, ff := modeOf(in), FormatOf(t)
	if mode != RN && ff != F32 && ff != fmtF64 {
		return form{}, simt.NotSupported(in, ".%s rounds to nearest only", t)
	}
	return floatForm(in, t, 2, binaryLane(in.Op, ff, mode))
}

func binaryLane(op string, ff *Format, mode rounding) Lane {
	if ff == fmtF64 {
		switch op {
		case "add":
			return func(a, b, _, _ uint64) uint64 { return fma64(a, fmtOne64, b, mode) }
		case "sub":
			return func(a, b, _, _ uint64) uint64 { return fma64(a, fmtOne64, b^1<<63, mode) }
		}
		return func(a, b, _, _ uint64) uint64 { return mul64(a, b, mode) }
	}
	switch op {
	case "add":
		return func(a, b, _, _ uint64) uint64 { return ff.sum(ff.Float(a), ff.Float(b), mode) }
	case "sub":
		return func(a, b, _, _ uint64) uint64 { return ff.sum(ff.Float(a), -ff.Float(b), mode) }
	}
	return func(a, b, _, _ uint64) uint64 { return ff.Round(ff.Float(a)*ff.Float(b), mode) }
}

const fmtOne64 = 1023 << 52

func fma64(a, b, c uint64, mode rounding) uint64 {
	return Canon64(exact64("fma", math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c), mode))
}

// mul64 adds a zero of the product's own sign, so that a product of zero keeps it.
func mul64(a, b uint64, mode rounding) uint64 {
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	if mode == RN || x == 0 || y == 0 {
		return Canon64(math.Float64bits(x * y))
	}
	return fma64(a, b, (a^b)&(1<<63), mode)
}

// Canon64 gives a NaN the bits that hardware gives.
func Canon64(b uint64) uint64 {
	if f := math.Float64frombits(b); f != f {
		return fmtF64.nan
	}
	return b
}

func fmaForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "rn rz rm rp ftz sat relu", floats)
	if err != nil {
		return form{}, err
	}
	mode, ff := modeOf(in), FormatOf(t)
	switch {
	case ff == fmtF64:
		return floatForm(in, t, 3, func(a, b, c, _ uint64) uint64 { return fma64(a, b, c, mode) })
	case ff != F32 && mode != RN, ff == F32 && in.Has("relu"):
		return form{}, simt.NotSupported(in, "no such rounding or .relu for .%s", t)
	}
	return floatForm(in, t, 3, func(a, b, c, _ uint64) uint64 { return ff.fma(ff.Float(a), ff.Float(b), ff.Float(c), mode) })
}

func floatDiv(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "rn rz rm rp approx full ftz", "f32 f64")
	if err != nil {
		return form{}, err
	}
	if in.Op == "rem" {
		return form{}, simt.NotSupported(in, "rem is for integers")
	}
	mode := modeOf(in)
	switch {
	case t == ptx.F64:
		return floatForm(in, t, 2, func(a, b, _, _ uint64) uint64 {
			return Canon64(exact64("div", math.Float64frombits(a), math.Float64frombits(b), 0, mode))
		})
	case in.Has("approx"):
		return floatForm(in, t, 2, func(a, b, _, _ uint64) uint64 {
			x, y := F32.Float(a), F32.Float(b)
			if m := math.Abs(y); m > 0x1p126 && m <= 0x1p128 { // the reciprocal underflows there, says the manual
				if math.IsInf(x, 0) {
					return F32.nan
				}
				return F32.Round(math.Copysign(0, x)*math.Copysign(1, y), RN)
			}
			return F32.Round(x/y, RN)
		})
	}
	return floatForm(in, t, 2, func(a, b, _, _ uint64) uint64 {
		return F32.Round(divOdd(F32.Float(a), F32.Float(b)), mode)
	})
}

func floatSign(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "ftz", floats)
	if err != nil {
		return form{}, err
	}
	sign := FormatOf(t).sign()
	if in.Op == "neg" {
		return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 { return a ^ sign })
	}
	return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 { return a &^ sign })
}

// floatMin is min and max: a NaN loses against a number unless .NaN, and -0 is below +0.
func floatMin(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "ftz NaN xorsign abs", floats)
	if err != nil {
		return form{}, err
	}
	ff, less, keepNaN := FormatOf(t), in.Op == "min", in.Has("NaN")
	if in.Has("xorsign") != in.Has("abs") || t == ptx.F64 && (keepNaN || in.Has("abs")) {
		return form{}, simt.NotSupported(in, "no such modifiers for .%s", t)
	}
	f := func(a, b, _, _ uint64) uint64 { return ff.pick(a, b, less, keepNaN) }
	if in.Has("xorsign") {
		sign := ff.sign()
		f = func(a, b, _, _ uint64) uint64 {
			r := ff.pick(a&^sign, b&^sign, less, keepNaN)
			if x := ff.Float(r); x != x {
				return r
			}
			return r | (a^b)&sign
		}
	}
	return floatForm(in, t, 2, f)
}

func (f *Format) pick(a, b uint64, less, keepNaN bool) uint64 {
	x, y := f.Float(a), f.Float(b)
	switch {
	case x != x && y != y, keepNaN && (x != x || y != y):
		return f.nan
	case x != x:
		return b
	case y != y:
		return a
	case x == y: // zeros of two signs
		if less == (a&f.sign() != 0) {
			return a
		}
		return b
	case (x < y) == less:
		return a
	}
	return b
}

// unaryFloatForm is the functions of one float. The exact ones (.rn and its like) round once; the approximate ones are
// computed in float64 and rounded to nearest.
func unaryFloatForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "approx rn rz rm rp ftz", "f16 f16x2 bf16 bf16x2 f32 f64")
	if err != nil {
		return form{}, err
	}
	ff, mode := FormatOf(t), modeOf(in)
	if !in.Has("approx") {
		return exactUnary(in, t, mode)
	}
	if t == ptx.F64 {
		return upperHalfForm(in)
	}
	if ff != F32 && in.Op != "ex2" && in.Op != "tanh" {
		return form{}, simt.NotSupported(in, "not for .%s", t)
	}
	g := approx[in.Op]
	return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 { return ff.Round(g(ff.Float(a)), RN) })
}

var approx = map[string]func(float64) float64{
	"rcp": func(x float64) float64 { return 1 / x }, "sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"sin": math.Sin, "cos": math.Cos, "lg2": log2, "ex2": Exp2, "tanh": math.Tanh,
}

// log2 has NaN for negative arguments and -∞ for both zeros.
func log2(x float64) float64 { return math.Log2(x) }

func exactUnary(in *ptx.Inst, t ptx.Type, mode rounding) (form, error) {
	if in.Op != "rcp" && in.Op != "sqrt" || t != ptx.F32 && t != ptx.F64 {
		return form{}, simt.NotSupported(in, "wants .approx")
	}
	op, one := in.Op, 1.0
	if t == ptx.F64 {
		return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 {
			x := math.Float64frombits(a)
			if op == "sqrt" {
				return Canon64(exact64("sqrt", x, 0, 0, mode))
			}
			return Canon64(exact64("div", one, x, 0, mode))
		})
	}
	if op == "sqrt" {
		return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 { return F32.Round(sqrtOdd(F32.Float(a)), mode) })
	}
	return floatForm(in, t, 1, func(a, _, _, _ uint64) uint64 { return F32.Round(divOdd(one, F32.Float(a)), mode) })
}

// upperHalfForm is rcp and rsqrt .approx.ftz.f64, which look at the upper 32 bits and give the upper 32 bits.
func upperHalfForm(in *ptx.Inst) (form, error) {
	if in.Op != "rcp" && in.Op != "rsqrt" {
		return form{}, simt.NotSupported(in, "not for .f64")
	}
	g := approx[in.Op]
	return same(ptx.F64, 1, func(a, _, _, _ uint64) uint64 {
		x := math.Float64frombits(fmtF64.flush(a) &^ math.MaxUint32)
		return fmtF64.flush(Canon64(math.Float64bits(g(x)))) &^ math.MaxUint32
	})
}

// exp2Series is 1/n! from n = 9 down.
var exp2Series = [...]float64{1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1}

// Exp2 is 2^x with a relative error below 1e-13, cheaper than the standard library's.
func Exp2(x float64) float64 {
	switch {
	case x != x:
		return x
	case x >= 1024:
		return math.Inf(1)
	case x < -1074:
		return 0
	}
	n := math.RoundToEven(x)
	t := (x - n) * math.Ln2
	p := 1.0 / 3628800
	for _, c := range &exp2Series {
		p = float64(p*t) + c // not fused, so that all machines agree
	}
	if n < -1020 {
		return p * math.Ldexp(1, int(n))
	}
	if n == 1024 {
		return 2 * p * 0x1p1023
	}
	return p * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

// copysignForm gives b the sign of a.
func copysignForm(in *ptx.Inst) (form, error) {
	t, err := Typed(in, "", "f32 f64")
	if err != nil {
		return form{}, err
	}
	sign := FormatOf(t).sign()
	return same(t, 2, func(a, b, _, _ uint64) uint64 { return a&sign | b&^sign })
}
