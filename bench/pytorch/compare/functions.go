package main

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// inside is between -1 and 1; special cases take what normal takes.
func (d *drawer) inside() float64 {
	if d.special {
		return d.normal()
	}
	return 1.9*d.Float64() - 0.95
}

// above is well above 1.
func (d *drawer) above() float64 { return 1 + d.positive() }

// functions of numbers.
func functions() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{"atan2": binary((*t).Atan2, (*drawer).float, (*drawer).apart)}
	for name, f := range map[string]func(*t) *t{"atan": (*t).Atan, "sinh": (*t).Sinh, "cosh": (*t).Cosh, "asinh": (*t).Asinh, "exp2": (*t).Exp2} {
		all[name] = unary(f, (*drawer).number, (*drawer).normal)
	}
	for name, f := range map[string]func(*t) *t{"tan": (*t).Tan, "asin": (*t).Asin, "acos": (*t).Acos, "atanh": (*t).Atanh, "erfinv": (*t).Erfinv} {
		all[name] = unary(f, (*drawer).number, (*drawer).inside)
	}
	for name, f := range map[string]func(*t) *t{"log2": (*t).Log2, "log10": (*t).Log10} {
		all[name] = unary(f, (*drawer).number, (*drawer).positive)
	}
	for name, f := range map[string]func(*t) *t{"lgamma": (*t).Lgamma, "digamma": (*t).Digamma, "trigamma": (*t).Trigamma} {
		all[name] = unary(f, (*drawer).float, (*drawer).apart)
	}
	all["acosh"] = unary((*t).Acosh, (*drawer).number, (*drawer).above)
	return all
}

// numbered are comparisons with a number, and what asks of a number whether it is one.
func numbered() map[string]op {
	type t = tensor.Tensor
	all := map[string]op{
		"nan_to_num": {
			func(d *drawer) {
				d.filled(d.number(), d.shape(0, 3))
				d.p(0, 1)
				d.c.Attrs.Q = []num{num(math.Inf(1)), 3}[d.IntN(2)]
			},
			func(in ts, a *Attrs) ts { return only(in[0].NanToNum(float64(a.P), float64(a.Q), -float64(a.Q))) },
		},
		"masked_fill": {
			func(d *drawer) {
				s := d.shape(0, 3)
				d.filled(d.number(), s)
				d.add(dtype.Bool, d.broadcast(s), func() float64 { return float64(d.IntN(2)) })
				d.p(0, 9)
			},
			func(in ts, a *Attrs) ts { return only(in[0].MaskedFill(in[1], float64(a.P))) },
		},
		"norm_p": {
			func(d *drawer) {
				s := d.shape(0, 3)
				d.add(d.float(), s, d.divisor)
				d.c.Attrs.Axes = d.axes(s)
				d.p(0, 1, 2, 3, 1.5, 0.5, math.Inf(1), math.Inf(-1))
			},
			func(in ts, a *Attrs) ts { return only(in[0].NormP(float64(a.P), a.Axes...)) },
		},
		"reciprocal": unary((*t).Reciprocal, (*drawer).number, (*drawer).positive),
		"frac":       unary((*t).Frac, (*drawer).float, (*drawer).apart),
	}
	for name, f := range map[string]func(*t) *t{"isnan": (*t).IsNaN, "isinf": (*t).IsInf, "isfinite": (*t).IsFinite} {
		all[name] = unary(f, (*drawer).number, (*drawer).normal)
	}
	for name, f := range map[string]func(*t, float64) *t{"gt_num": (*t).GtScalar, "ge_num": (*t).GeScalar, "lt_num": (*t).LtScalar,
		"le_num": (*t).LeScalar, "eq_num": (*t).EqScalar, "ne_num": (*t).NeScalar} {
		all[name] = op{
			func(d *drawer) {
				dt := d.any()
				d.filled(dt, d.shape(0, 3))
				if d.p(0, 1, -1, 0.5, 3); dt == dtype.U8 { // into which PyTorch wraps numbers where there are no dimensions
					d.c.Attrs.P = num(math.Abs(float64(d.c.Attrs.P)))
				}
			},
			func(in ts, a *Attrs) ts { return only(f(in[0], float64(a.P))) },
		}
	}
	return all
}
