package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// precise is f, a product of its first two operands, of operands rounded as the op's precision says.
func precise(f eval) eval {
	return func(c *call) ([]Array, error) {
		round := fractions[c.op.Attr.Precision]
		if round == nil {
			return f(c)
		}
		d := *c
		d.in = append([]Array(nil), c.in...)
		for i := range d.in[:2] {
			v := make([]float64, len(c.in[i].Data))
			for j, x := range c.in[i].Data {
				v[j] = round(x)
			}
			d.in[i] = Floats(c.in[i].Type, v...)
		}
		return f(&d)
	}
}

// fractions are how each precision rounds a value of f32: to 11 or 8 significant bits, fewer below 2^-126, ties away from
// zero or to even; infinite from where f32 would be.
var fractions = [...]func(x float64) float64{
	ir.High:   func(x float64) float64 { return fraction(x, 11, math.Round) },
	ir.Medium: func(x float64) float64 { return fraction(x, 8, math.RoundToEven) },
}

func fraction(x float64, bits int, round func(float64) float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, e := math.Frexp(x)
	unit := max(e, -125) - bits
	y := math.Ldexp(round(math.Ldexp(x, -unit)), unit)
	if math.Abs(y) >= 0x1p128 {
		return math.Inf(int(math.Copysign(1, y)))
	}
	return y
}
