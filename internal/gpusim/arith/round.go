package arith

import (
	"math"
	"math/big"
)

// rounding is a rounding mode of PTX.
type rounding uint8

const (
	RN  rounding = iota // to nearest, ties to even
	RZ                  // towards zero
	RM                  // towards -∞
	RP                  // towards +∞
	RNA                 // to nearest, ties away from zero
)

// Format is a binary floating-point format: mant stored bits of mantissa, the bias of the exponent, and how far
// left the value stands in its word (tf32 keeps 13 unused bits below).
type Format struct {
	bits, mant, shift int
	bias              int
	nan               uint64
}

var (
	F16     = &Format{16, 10, 0, 15, 0x7fff}
	BF16    = &Format{16, 7, 0, 127, 0x7fff} // bfloat16
	fmtTF32 = &Format{32, 10, 13, 127, 0x7fffffff}
	F32     = &Format{32, 23, 0, 127, 0x7fffffff}
	fmtF64  = &Format{64, 52, 0, 1023, 0x7fffffffffffffff}
)

func (f *Format) infinity() uint64 { return uint64(2*f.bias+1) << (f.mant + f.shift) }

func (f *Format) sign() uint64 { return 1 << (f.bits - 1) }

// Float is the exact value of the bits.
func (f *Format) Float(b uint64) float64 {
	switch f {
	case fmtF64:
		return math.Float64frombits(b)
	case F32:
		return float64(math.Float32frombits(uint32(b)))
	case BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case fmtTF32:
		return float64(math.Float32frombits(uint32(b) &^ 0x1fff))
	case E4M3:
		return e4m3Table[uint8(b)]
	case E5M2:
		return e5m2Table[uint8(b)]
	}
	return f16Table[uint16(b)]
}

var f16Table = func() (t [1 << 16]float64) {
	for i := range t {
		e, m := i>>10&31, float64(i&1023)
		var v float64
		switch {
		case e == 31 && m != 0:
			v = math.NaN()
		case e == 31:
			v = math.Inf(1)
		case e == 0:
			v = math.Ldexp(m, -24)
		default:
			v = math.Ldexp(1024+m, e-25)
		}
		if i>>15 != 0 {
			v = -v
		}
		t[i] = v
	}
	return t
}()

// flush turns a subnormal into zero of its sign.
func (f *Format) flush(b uint64) uint64 {
	if b&f.infinity() == 0 {
		return b & f.sign()
	}
	return b
}

// saturate clamps to [0, 1]; NaN becomes +0.
func (f *Format) saturate(b uint64) uint64 {
	x := f.Float(b)
	switch {
	case !(x > 0):
		return 0
	case x > 1:
		return uint64(f.bias) << (f.mant + f.shift)
	}
	return b
}

// Round gives x in the format, rounded once. A value that is not exact must have been rounded to odd (see odd), which
// keeps what the second rounding needs to know.
func (f *Format) Round(x float64, mode rounding) uint64 {
	u := math.Float64bits(x)
	neg := u>>63 != 0
	var sign uint64
	if neg {
		sign = f.sign()
	}
	if x != x {
		return f.nan
	}
	if f == fmtF64 {
		return u
	}
	e := int(u>>52&2047) - 1023
	if e == 1024 {
		return sign | f.infinity()
	}
	m := u & (1<<52 - 1)
	if e == -1023 {
		if m == 0 {
			return sign
		}
		e, m = -1022, m>>1 // far below every other format: only that it is not zero matters
	} else {
		m |= 1 << 52
	}
	return sign | f.pack(m, e, neg, mode)<<f.shift
}

// pack rounds m·2^(e-52), m below 2^53, to the bits without sign.
func (f *Format) pack(m uint64, e int, neg bool, mode rounding) uint64 {
	drop := 52 - f.mant
	be := e + f.bias
	if be < 1 {
		drop += 1 - be
		be = 1
	}
	if drop > 60 {
		drop, m = 60, 1
	}
	q, rest := m>>drop, m&(1<<drop-1)
	if RoundUp(q, rest, 1<<drop>>1, neg, mode) {
		q++
	}
	out := uint64(be-1)<<f.mant + q // the leading bit of q carries into the exponent
	if inf := uint64(2*f.bias+1) << f.mant; out >= inf {
		if mode == RZ || mode == RM && !neg || mode == RP && neg {
			return inf - 1
		}
		return inf
	}
	return out
}

// RoundUp is whether a quotient q with a rest goes up, where half is the rest of a tie.
func RoundUp(q, rest, half uint64, neg bool, mode rounding) bool {
	switch mode {
	case RN:
		return rest > half || rest == half && q&1 == 1
	case RNA:
		return rest >= half
	case RM:
		return neg && rest != 0
	case RP:
		return !neg && rest != 0
	}
	return false
}

// odd rounds the value s+err to odd, s being nearest to it: a later rounding to at least two bits less is then right.
func odd(s, err float64) float64 {
	if err == 0 || math.IsInf(s, 0) || s != s || err != err {
		return s
	}
	u := math.Float64bits(s)
	if u&1 == 0 {
		if (err > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return math.Float64frombits(u)
}

// addOdd is x+y rounded to odd; the error term is Knuth's TwoSum.
func addOdd(x, y float64) float64 {
	s := x + y
	b := s - x
	return odd(s, float64(x-float64(s-b))+float64(y-b))
}

func divOdd(x, y float64) float64 {
	q := x / y
	r := math.FMA(-q, y, x)
	if y < 0 {
		r = -r
	}
	return odd(q, r)
}

func sqrtOdd(x float64) float64 {
	s := math.Sqrt(x)
	return odd(s, math.FMA(-s, s, x))
}

// fma is x·y+z in a format of at most 24 bits of mantissa, rounded once.
func (f *Format) fma(x, y, z float64, mode rounding) uint64 {
	p := x * y // exact
	return f.sum(p, z, mode)
}

// sum is x+y rounded once; an exact zero of cancellation is -0 when rounding down.
func (f *Format) sum(x, y float64, mode rounding) uint64 {
	s := addOdd(x, y)
	if s == 0 && mode == RM && (math.Signbit(x) || math.Signbit(y)) {
		return f.sign()
	}
	return f.Round(s, mode)
}

// exact64 computes x·y+z, x/y or √x of float64 in a directed mode, by big arithmetic.
func exact64(op string, x, y, z float64, mode rounding) uint64 {
	var near float64
	switch op {
	case "fma":
		near = math.FMA(x, y, z)
	case "div":
		near = x / y
	default:
		near = math.Sqrt(x)
	}
	if math.IsNaN(near) {
		return fmtF64.nan
	}
	special := math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) || op == "div" && (x == 0 || y == 0) || op == "sqrt" && x == 0
	if mode == RN || special {
		return math.Float64bits(near)
	}
	const prec = 4400 // more than the spread of two products' exponents
	b := func(v float64) *big.Float { return new(big.Float).SetPrec(prec).SetMode(big.ToZero).SetFloat64(v) }
	var r *big.Float
	switch op {
	case "fma":
		r = b(x)
		r.Mul(r, b(y)).Add(r, b(z))
		if r.Sign() == 0 {
			if mode == RM && (math.Signbit(x) != math.Signbit(y) || math.Signbit(z)) {
				return 1 << 63
			}
			return math.Float64bits(near)
		}
	case "div":
		r = b(x)
		r.Quo(r, b(y))
	default:
		r = b(x)
		r.Sqrt(r)
	}
	return roundBig(r, mode)
}

// roundBig rounds to float64 in a directed mode. The step from the nearest value is decided by comparison, which is right
// for inexact quotients and roots as well, whose 4400 bits cannot be mistaken for a float64.
func roundBig(r *big.Float, mode rounding) uint64 {
	v, _ := r.Float64()
	cmp := new(big.Float).SetPrec(r.Prec()).SetFloat64(v).Cmp(r)
	if math.IsInf(v, 0) {
		cmp = r.Sign()
	}
	switch neg := r.Sign() < 0; {
	case cmp > 0 && (mode == RM || mode == RZ && !neg):
		v = math.Nextafter(v, math.Inf(-1))
	case cmp < 0 && (mode == RP || mode == RZ && neg):
		v = math.Nextafter(v, math.Inf(1))
	}
	if v == 0 && r.Sign() < 0 {
		return 1 << 63
	}
	return math.Float64bits(v)
}
