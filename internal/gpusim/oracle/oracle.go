// Package oracle is for tests: PTX's floats in exact rationals, written without a look at package arith, and random operands.
package oracle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Format is a float whose arithmetic is repeated by other means than the simulator's: exact rationals, then one rounding.
type Format struct {
	Reg  string // register class of the format
	Mant int    // bits of the mantissa
	Bias int    // of the exponent
	Nan  uint64 // what hardware gives for one
}

// Formats is by type.
var Formats = map[string]Format{
	"f16": {"b16", 10, 15, 0x7fff}, "bf16": {"b16", 7, 127, 0x7fff}, "f32": {"f32", 23, 127, 0x7fffffff}, "f64": {"f64", 52, 1023, 0x7fffffffffffffff},
}

// Width is the bits of a register.
func (f Format) Width() int { return map[string]int{"b16": 16, "f32": 32, "f64": 64}[f.Reg] }

// Value is the exact value; ok is false for infinities and NaN.
func (f Format) Value(b uint64) (r *big.Rat, ok bool) {
	w := f.Width()
	e, m := int(b>>f.Mant)&(1<<(w-1-f.Mant)-1), b&(1<<f.Mant-1)
	if e == 2*f.Bias+1 {
		return nil, false
	}
	if e == 0 {
		e = 1
	} else {
		m |= 1 << f.Mant
	}
	r = new(big.Rat).SetInt(new(big.Int).SetUint64(m))
	r.Mul(r, power(e-f.Bias-f.Mant))
	if b>>(w-1)&1 == 1 {
		r.Neg(r)
	}
	return r, true
}

func power(e int) *big.Rat {
	p := new(big.Int).Lsh(big.NewInt(1), uint(max(e, -e)))
	if e < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}
	return new(big.Rat).SetInt(p)
}

// Class is the sign and whether it is infinite or NaN.
func (f Format) Class(b uint64) (neg, inf, nan bool) {
	w := f.Width()
	top := uint64(2*f.Bias+1) << f.Mant
	rest := b & (1<<(w-1) - 1)
	return b>>(w-1)&1 == 1, rest == top, rest > top
}

// Signed gives bits a sign.
func (f Format) Signed(bits uint64, neg bool) uint64 {
	if neg {
		bits |= 1 << (f.Width() - 1)
	}
	return bits
}

// Round is the nearest value in a mode, of an exact nonzero one.
func (f Format) Round(x *big.Rat, mode string) uint64 {
	neg := x.Sign() < 0
	a := new(big.Rat).Abs(x)
	e := a.Num().BitLen() - a.Denom().BitLen()
	if a.Cmp(power(e)) < 0 {
		e--
	}
	e = max(e, 1-f.Bias)
	q := new(big.Rat).Quo(a, power(e-f.Mant))
	n, rest := new(big.Int).QuoRem(q.Num(), q.Denom(), new(big.Int))
	half := new(big.Int).Lsh(rest, 1).Cmp(q.Denom())
	up := false
	switch mode {
	case "rn":
		up = half > 0 || half == 0 && n.Bit(0) == 1
	case "rm":
		up = neg && rest.Sign() != 0
	case "rp":
		up = !neg && rest.Sign() != 0
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	v := n.Uint64() + uint64(e+f.Bias-1)<<f.Mant
	if top := uint64(2*f.Bias+1) << f.Mant; v >= top {
		v = top
		if mode == "rz" || mode == "rm" && !neg || mode == "rp" && neg {
			v--
		}
	}
	return f.Signed(v, neg)
}

// Fma is a·b + c, rounded once, with the rules for infinities and zeros.
func (f Format) Fma(a, b, c uint64, mode string) uint64 {
	na, ia, xa := f.Class(a)
	nb, ib, xb := f.Class(b)
	nc, ic, xc := f.Class(c)
	va, _ := f.Value(a)
	vb, _ := f.Value(b)
	vc, _ := f.Value(c)
	zero := func(v *big.Rat) bool { return v != nil && v.Sign() == 0 }
	np := na != nb
	switch top := uint64(2*f.Bias+1) << f.Mant; {
	case xa || xb || xc, ia && zero(vb), ib && zero(va), (ia || ib) && ic && np != nc:
		return f.Nan
	case ia || ib:
		return f.Signed(top, np)
	case ic:
		return f.Signed(top, nc)
	}
	p := new(big.Rat).Mul(va, vb)
	s := new(big.Rat).Add(p, vc)
	if s.Sign() != 0 {
		return f.Round(s, mode)
	}
	if p.Sign() == 0 && np == nc {
		return f.Signed(0, np)
	}
	return f.Signed(0, mode == "rm")
}

// One is 1.
func (f Format) One() uint64 { return uint64(f.Bias) << f.Mant }

// Negate changes the sign.
func (f Format) Negate(b uint64) uint64 { return b ^ 1<<(f.Width()-1) }

// Mul is a·b rounded once.
func (f Format) Mul(a, b uint64, mode string) uint64 {
	na, _, _ := f.Class(a)
	nb, _, _ := f.Class(b)
	return f.Fma(a, b, f.Signed(0, na != nb), mode)
}

// Div is a/b rounded once.
func (f Format) Div(a, b uint64, mode string) uint64 {
	na, ia, xa := f.Class(a)
	nb, ib, xb := f.Class(b)
	va, _ := f.Value(a)
	vb, _ := f.Value(b)
	zb := vb != nil && vb.Sign() == 0
	za := va != nil && va.Sign() == 0
	switch top := uint64(2*f.Bias+1) << f.Mant; {
	case xa || xb || ia && ib || za && zb:
		return f.Nan
	case ia || zb:
		return f.Signed(top, na != nb)
	case ib || za:
		return f.Signed(0, na != nb)
	}
	return f.Round(new(big.Rat).Quo(va, vb), mode)
}

// Sqrt finds the root to more bits than the format has and marks that it is not exact by a bit below them.
func (f Format) Sqrt(a uint64, mode string) uint64 {
	na, ia, xa := f.Class(a)
	v, _ := f.Value(a)
	switch {
	case xa || na && (v == nil || v.Sign() != 0):
		return f.Nan
	case ia || v.Sign() == 0:
		return a
	}
	const extra = 1400
	n := new(big.Rat).Mul(v, power(2*extra))
	i := new(big.Int).Quo(n.Num(), n.Denom())
	root := new(big.Int).Sqrt(i)
	r := new(big.Rat).SetInt(root)
	if new(big.Rat).Mul(r, r).Cmp(n) != 0 {
		r.Add(r, big.NewRat(1, 3))
	}
	return f.Round(r.Mul(r, power(-extra)), mode)
}

// Edges are the interesting values: zeros, subnormals, ones, ties, infinities, NaN.
func (f Format) Edges() []uint64 {
	top, w := uint64(2*f.Bias+1)<<f.Mant, f.Width()
	one := f.One()
	list := []uint64{0, 1, 1<<f.Mant - 1, 1 << f.Mant, one, one + 1, one | 1<<(f.Mant-1), top - 1, top, f.Nan,
		one/2 + 3, one + 5<<f.Mant + 7, 3, top - one/3}
	for i, v := range list {
		if i%2 == 1 {
			list = append(list, v|1<<(w-1))
		}
	}
	return append(list, 1<<(w-1))
}

// Float is the value of bits, for formats up to 64 bits.
func (f Format) Float(b uint64) float64 {
	neg, inf, nan := f.Class(b)
	sign := 1
	if neg {
		sign = -1
	}
	switch {
	case nan:
		return math.NaN()
	case inf:
		return math.Inf(sign)
	}
	v, _ := f.Value(b)
	x, _ := v.Float64()
	return math.Copysign(x, float64(sign))
}

// Holds is a relation of floats; ok is false for one that does not exist.
func (f Format) Holds(rel string, a, b uint64) (holds, ok bool) {
	na, ia, xa := f.Class(a)
	nb, ib, xb := f.Class(b)
	if rel == "num" || rel == "nan" {
		return (xa || xb) == (rel == "nan"), true
	}
	plain := strings.TrimSuffix(rel, "u")
	if xa || xb {
		return plain != rel, true
	}
	value := func(b uint64, neg, inf bool) *big.Rat {
		if !inf {
			v, _ := f.Value(b)
			return v
		}
		if neg {
			return new(big.Rat).Neg(power(2000))
		}
		return power(2000)
	}
	return Relates(plain, value(a, na, ia).Cmp(value(b, nb, ib)))
}

// Relates is what a relation says of two numbers that compare as c; ok is false for a name that is none.
func Relates(rel string, c int) (holds, ok bool) {
	switch rel {
	case "eq":
		return c == 0, true
	case "ne":
		return c != 0, true
	case "lt", "lo":
		return c < 0, true
	case "le", "ls":
		return c <= 0, true
	case "gt", "hi":
		return c > 0, true
	case "ge", "hs":
		return c >= 0, true
	}
	return false, false
}

// Words are random 32-bit words, every other one a float near the interesting places.
func Words(rnd *rand.Rand) (v simt.Vec32) {
	edges := Formats["f32"].Edges()
	for i := range v {
		switch rnd.IntN(3) {
		case 0:
			v[i] = rnd.Uint32()
		case 1:
			v[i] = uint32(edges[rnd.IntN(len(edges))])
		default:
			v[i] = rnd.Uint32() >> rnd.IntN(32)
		}
	}
	return v
}

// Longs are random numbers of up to 64 bits.
func Longs(rnd *rand.Rand) (v simt.Vec64) {
	for i := range v {
		v[i] = rnd.Uint64() >> rnd.IntN(64)
	}
	return v
}

// Inst is an instruction by its name.
func Inst(name string) *ptx.Inst {
	parts := strings.Split(name, ".")
	return &ptx.Inst{Op: parts[0], Mods: parts[1:]}
}

// Flush is a subnormal as zero of its sign.
func (f Format) Flush(b uint64) uint64 {
	if b>>f.Mant&uint64(2*f.Bias+1) == 0 {
		return b & (1 << (f.Width() - 1))
	}
	return b
}

// saturate clamps to [0, 1]; NaN is 0.
func (f Format) saturate(b uint64) uint64 {
	neg, inf, nan := f.Class(b)
	v, _ := f.Value(b)
	switch {
	case neg || nan || v != nil && v.Sign() == 0:
		return 0
	case inf || v.Cmp(big.NewRat(1, 1)) > 0:
		return f.One()
	}
	return b
}

// relu gives +0 for what is negative or zero.
func (f Format) relu(b uint64) uint64 {
	if neg, _, nan := f.Class(b); neg && !nan {
		return 0
	}
	return b
}

// Modified adds what modifiers do to a reference.
func (f Format) Modified(mods string, ref func(v [3]uint64) uint64) func(v [3]uint64) uint64 {
	return func(v [3]uint64) uint64 {
		if strings.Contains(mods, "ftz") {
			for i := range v {
				v[i] = f.Flush(v[i])
			}
		}
		r := ref(v)
		if strings.Contains(mods, "ftz") {
			r = f.Flush(r)
		}
		if strings.Contains(mods, "sat") {
			r = f.saturate(r)
		}
		if strings.Contains(mods, "relu") {
			r = f.relu(r)
		}
		return r
	}
}

// Least is min, and with more max, by the order of values with -0 below +0.
func (f Format) Least(a, b uint64, more, keepNaN bool) uint64 {
	na, ia, xa := f.Class(a)
	nb, ib, xb := f.Class(b)
	switch {
	case xa && xb, keepNaN && (xa || xb):
		return f.Nan
	case xa:
		return b
	case xb:
		return a
	}
	key := func(b uint64, neg, inf bool) *big.Rat {
		v, ok := f.Value(b)
		if inf || !ok {
			v = power(2000)
			if neg {
				v.Neg(v)
			}
		}
		return v
	}
	c := key(a, na, ia).Cmp(key(b, nb, ib))
	if c == 0 && na != nb {
		c = 1
		if na {
			c = -1
		}
	}
	if (c < 0) != more {
		return a
	}
	return b
}

// Integral rounds a float to an integer of the same format; what becomes zero keeps its sign.
func (f Format) Integral(b uint64, mode string) uint64 {
	v, ok := f.Value(b)
	_, _, nan := f.Class(b)
	if nan {
		return f.Nan
	}
	if !ok || v.Sign() == 0 {
		return b
	}
	neg := v.Sign() < 0
	q := new(big.Int).Div(v.Num(), v.Denom())
	rest := new(big.Rat).Sub(v, new(big.Rat).SetInt(q))
	half := rest.Cmp(big.NewRat(1, 2))
	if mode == "rpi" && rest.Sign() > 0 || mode == "rzi" && neg && rest.Sign() > 0 || mode == "rni" && (half > 0 || half == 0 && q.Bit(0) == 1) {
		q.Add(q, big.NewInt(1))
	}
	if q.Sign() == 0 {
		return f.Signed(0, neg)
	}
	return f.Round(new(big.Rat).SetInt(q), "rn")
}

// Fractions are values around which rounding to integers matters, in a format.
func (f Format) Fractions() []uint64 {
	var out []uint64
	for _, x := range []float64{0.5, 1.5, 2.5, 0.25, 0.75, 3.9, 100.5, 1023.5} {
		r := new(big.Rat)
		r.SetFloat64(x)
		out = append(out, f.Round(r, "rn"), f.Round(r.Neg(r), "rn"))
	}
	return append(out, f.Edges()...)
}
