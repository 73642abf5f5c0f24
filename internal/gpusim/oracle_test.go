package gpusim

import "math/big"

// The oracle repeats the arithmetic of PTX by other means than the simulator: exact rationals, then one rounding.

type oracleFormat struct {
	reg  string // register class of the format
	mant int
	bias int
	nan  uint64
}

var oracleFormats = map[string]oracleFormat{
	"f16": {"b16", 10, 15, 0x7fff}, "bf16": {"b16", 7, 127, 0x7fff}, "f32": {"f32", 23, 127, 0x7fffffff}, "f64": {"f64", 52, 1023, 0x7fffffffffffffff},
}

func (f oracleFormat) width() int { return map[string]int{"b16": 16, "f32": 32, "f64": 64}[f.reg] }

// value is the exact value; ok is false for infinities and NaN.
func (f oracleFormat) value(b uint64) (r *big.Rat, ok bool) {
	w := f.width()
	e, m := int(b>>f.mant)&(1<<(w-1-f.mant)-1), b&(1<<f.mant-1)
	if e == 2*f.bias+1 {
		return nil, false
	}
	if e == 0 {
		e = 1
	} else {
		m |= 1 << f.mant
	}
	r = new(big.Rat).SetInt(new(big.Int).SetUint64(m))
	r.Mul(r, power(e-f.bias-f.mant))
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

// class is the sign and whether it is infinite or NaN.
func (f oracleFormat) class(b uint64) (neg, inf, nan bool) {
	w := f.width()
	top := uint64(2*f.bias+1) << f.mant
	rest := b & (1<<(w-1) - 1)
	return b>>(w-1)&1 == 1, rest == top, rest > top
}

func (f oracleFormat) signed(bits uint64, neg bool) uint64 {
	if neg {
		bits |= 1 << (f.width() - 1)
	}
	return bits
}

// round is the nearest value in a mode, of an exact nonzero one.
func (f oracleFormat) round(x *big.Rat, mode string) uint64 {
	neg := x.Sign() < 0
	a := new(big.Rat).Abs(x)
	e := a.Num().BitLen() - a.Denom().BitLen()
	if a.Cmp(power(e)) < 0 {
		e--
	}
	e = max(e, 1-f.bias)
	q := new(big.Rat).Quo(a, power(e-f.mant))
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
	v := n.Uint64() + uint64(e+f.bias-1)<<f.mant
	if top := uint64(2*f.bias+1) << f.mant; v >= top {
		v = top
		if mode == "rz" || mode == "rm" && !neg || mode == "rp" && neg {
			v--
		}
	}
	return f.signed(v, neg)
}

// fma is a·b + c, rounded once, with the rules for infinities and zeros.
func (f oracleFormat) fma(a, b, c uint64, mode string) uint64 {
	na, ia, xa := f.class(a)
	nb, ib, xb := f.class(b)
	nc, ic, xc := f.class(c)
	va, _ := f.value(a)
	vb, _ := f.value(b)
	vc, _ := f.value(c)
	zero := func(v *big.Rat) bool { return v != nil && v.Sign() == 0 }
	np := na != nb
	switch top := uint64(2*f.bias+1) << f.mant; {
	case xa || xb || xc, ia && zero(vb), ib && zero(va), (ia || ib) && ic && np != nc:
		return f.nan
	case ia || ib:
		return f.signed(top, np)
	case ic:
		return f.signed(top, nc)
	}
	p := new(big.Rat).Mul(va, vb)
	s := new(big.Rat).Add(p, vc)
	if s.Sign() != 0 {
		return f.round(s, mode)
	}
	if p.Sign() == 0 && np == nc {
		return f.signed(0, np)
	}
	return f.signed(0, mode == "rm")
}

func (f oracleFormat) one() uint64 { return uint64(f.bias) << f.mant }

func (f oracleFormat) negate(b uint64) uint64 { return b ^ 1<<(f.width()-1) }

func (f oracleFormat) mul(a, b uint64, mode string) uint64 {
	na, _, _ := f.class(a)
	nb, _, _ := f.class(b)
	return f.fma(a, b, f.signed(0, na != nb), mode)
}

func (f oracleFormat) div(a, b uint64, mode string) uint64 {
	na, ia, xa := f.class(a)
	nb, ib, xb := f.class(b)
	va, _ := f.value(a)
	vb, _ := f.value(b)
	zb := vb != nil && vb.Sign() == 0
	za := va != nil && va.Sign() == 0
	switch top := uint64(2*f.bias+1) << f.mant; {
	case xa || xb || ia && ib || za && zb:
		return f.nan
	case ia || zb:
		return f.signed(top, na != nb)
	case ib || za:
		return f.signed(0, na != nb)
	}
	return f.round(new(big.Rat).Quo(va, vb), mode)
}

// sqrt finds the root to more bits than the format has and marks that it is not exact by a bit below them.
func (f oracleFormat) sqrt(a uint64, mode string) uint64 {
	na, ia, xa := f.class(a)
	v, _ := f.value(a)
	switch {
	case xa || na && (v == nil || v.Sign() != 0):
		return f.nan
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
	return f.round(r.Mul(r, power(-extra)), mode)
}

func (f oracleFormat) edges() []uint64 {
	top, w := uint64(2*f.bias+1)<<f.mant, f.width()
	one := f.one()
	list := []uint64{0, 1, 1<<f.mant - 1, 1 << f.mant, one, one + 1, one | 1<<(f.mant-1), top - 1, top, f.nan,
		one/2 + 3, one + 5<<f.mant + 7, 3, top - one/3}
	for i, v := range list {
		if i%2 == 1 {
			list = append(list, v|1<<(w-1))
		}
	}
	return append(list, 1<<(w-1))
}
