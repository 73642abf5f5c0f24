package main

import "github.com/warpline-ml/warpline/tensor"

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
