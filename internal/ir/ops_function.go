package ir

import (
	"fmt"
	"strings"
)

// The codes of functions of numbers that are made of others.
const (
	Tan Code = endActivations + iota
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Asinh
	Acosh
	Atanh
	Exp2
	Log2
	Log10
	Erfinv   // x with erf(x) = the operand
	Lgamma   // log |Γ(x)|
	Digamma  // the derivative of Lgamma
	Trigamma // the derivative of Digamma
	Atan2    // the angle of the point (y, x)
	Erfc     // 1 - erf(x)
	Sinc     // sin(πx)/(πx), 1 at 0
	Xlogy    // x·log(y), 0 where x is
	Xlog1py  // x·log(1+y), likewise
	LogAddExp
	LogAddExp2
	Hypot    // √(x²+y²)
	Fmod     // x - y·trunc(x/y), the sign of x
	CopySign // |x| with the sign of y

	endFunctions
)

var functionRows = rows{
	Tan: {Name: "tan", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Kink: AtPoles,
		Value:    "sin(x) / cos(x)",
		Gradient: slopes("g * (1 + out*out)")},
	Asin: {Name: "asin", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Domain: [3]Domain{Inside},
		Value:    "atan(x / sqrt((1 - x) * (1 + x)))",
		Gradient: slopes("g / sqrt(1 - x*x)")},
	Acos: {Name: "acos", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Domain: [3]Domain{Inside},
		Value:    "2 * atan(sqrt((1 - x) / (1 + x)))",
		Gradient: slopes("-g / sqrt(1 - x*x)")},
	Atan: {Name: "atan", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		Value:    "a = abs(x); t = where(1 < a, 1/a, a); " + angle + "r = where(1 < a, pi/2 - v, v); where(x < 0, -r, where(x == 0, x, r))",
		Gradient: slopes("g / (1 + x*x)")},
	Sinh: {Name: "sinh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise,
		// Near 0 the difference of the exponentials cancels; half of one is a product, which overflows later than the whole.
		Value:    "a = abs(x); e = expm1(a); h = exp(0.5*a); k = 0.5*h*h; v = where(a < 1, 0.5*(e + e/(e+1)), k - 0.25/k); where(x < 0, -v, where(x == 0, x, v))",
		Gradient: slopes("g * cosh(x)")},
	Cosh: {Name: "cosh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise,
		Value:    "h = exp(0.5*abs(x)); k = 0.5*h*h; k + 0.25/k",
		Gradient: slopes("g * sinh(x)")},
	Asinh: {Name: "asinh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		// Of large numbers the square overflows, and the 1 is none.
		Value:    "a = abs(x); v = where(1e9 < a, log(a) + log(2), log1p(a + a*a / (1 + sqrt(a*a + 1)))); where(x < 0, -v, where(x == 0, x, v))",
		Gradient: slopes("g / sqrt(x*x + 1)")},
	Acosh: {Name: "acosh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Domain: [3]Domain{Above},
		Value:    "t = x - 1; where(1e9 < x, log(x) + log(2), log1p(t + sqrt(t) * sqrt(t + 2)))",
		Gradient: slopes("g / sqrt(x*x - 1)")},
	Atanh: {Name: "atanh", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Domain: [3]Domain{Inside},
		Value:    "a = abs(x); v = 0.5*log1p(2*a / (1 - a)); where(x < 0, -v, where(x == 0, x, v))",
		Gradient: slopes("g / (1 - x*x)")},
	Exp2: {Name: "exp2", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		Value:    "pow(2, x)",
		Gradient: slopes("g * (out * log(2))")},
	Log2: {Name: "log2", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Domain: [3]Domain{Positives},
		// Of a power of 2 it is a whole number.
		Value:    "v = log(x) / log(2); r = round(v); where(pow(2, r) == x, r, v)",
		Gradient: slopes("g / (x * log(2))")},
	Log10: {Name: "log10", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Domain: [3]Domain{Positives},
		Value:    "log(x) / log(10)",
		Gradient: slopes("g / (x * log(10))")},
	Erfinv: {Name: "erfinv", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Autocast: CastWideOnCards, Tolerance: Stepwise, Domain: [3]Domain{Inside},
		// Giles, Approximating the erfinv function (2012), in double precision.
		Value: "w = -log((1 - x) * (1 + x)); s = sqrt(w); a = w - 3.125; b = s - 3.25; c = s - 5; " +
			"where(abs(x) == 1, x*inf, x * where(w < 6.25, " + horner("a", erfinvNear) + ", where(w < 16, " + horner("b", erfinvFar) + ", " + horner("c", erfinvEnd) + ")))",
		Gradient: slopes("g * (0.5*sqrt(pi) * exp(out*out))")},
	Lgamma: {Name: "lgamma", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Domain: [3]Domain{Above},
		// Stirling's series, from 8 on; below by the recurrence, and of what is below one half by reflection.
		Value: "a = where(x < 0.5, 1 - x, x); z = where(a < 8, a + 8, a); i = 1/z; j = i*i; " +
			"v = (z - 0.5)*log(z) - z + 0.5*log(2*pi) + i*" + horner("j", stirling) + " - log(where(a < 8, " + rising("a", "*", "(%s)") + ", 1)); r = x - round(x); " +
			"where(abs(x) == inf, inf, where(x < 0.5, where(r == 0, inf, where(abs(r) < 1e-8, -log(abs(r)), log(pi) - log(abs(sin(pi*r)))) - v), v))",
		Gradient: slopes("g * digamma(x)")},
	Digamma: {Name: "digamma", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Domain: [3]Domain{Above},
		// At negative integers it is NaN, as r/r is.
		Value: "a = where(x < 0, 1 - x, x); z = where(a < 8, a + 8, a); i = 1/z; j = i*i; " +
			"v = log(z) - 0.5*i - j*" + horner("j", digammaTerms) + " - where(a < 8, " + rising("a", "+", "1/(%s)") + ", 0); r = x - round(x); " +
			"where(x < 0, v - pi * (cos(pi*r) / sin(pi*r)) * (r/r), v)",
		Gradient: slopes("g * trigamma(x)")},
	Trigamma: {Name: "trigamma", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise, Domain: [3]Domain{Above},
		Value: "a = where(x < 0.5, 1 - x, x); z = where(a < 8, a + 8, a); i = 1/z; j = i*i; " +
			"v = i*(1 + 0.5*i + j*" + horner("j", trigammaTerms) + ") + where(a < 8, " + rising("a", "+", "1/((%[1]s)*(%[1]s))") + ", 0); s = sin(pi * (x - round(x))) / pi; " +
			"where(x < 0.5, 1/(s*s) - v, v)",
		Gradient: slopes("a = where(x < 0.5, 1 - x, x); z = where(a < 8, a + 8, a); i = 1/z; j = i*i; " +
			"v = -j*(1 + i + j*" + horner("j", tetragammaTerms) + ") - 2*where(a < 8, " + rising("a", "+", "1/((%[1]s)*(%[1]s)*(%[1]s))") + ", 0); " +
			"t = where(x < 0.5, pi * (x - round(x)), 1); s = sin(t) / pi; g * where(x < 0.5, v - 2*cos(t) / (s*s*s), v)")},
	Atan2: {Name: "atan2", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise, Domain: [3]Domain{Positives, Positives},
		// A zero's sign is that of its inverse.
		Value: "a = abs(x); b = abs(y); t = where(a == b, where(a == 0, 0, 1), minimum(a, b) / maximum(a, b)); " + angle +
			"f = where(b < a, pi/2 - v, v); h = where(where(y == 0, 1/y, y) < 0, pi - f, f); where(where(x == 0, 1/x, x) < 0, -h, h)",
		Gradient: slopes("d = x*x + y*y; g * (y / where(d == 0, 1, d))", "d = x*x + y*y; -g * (x / where(d == 0, 1, d))")},
	Erfc: {Name: "erfc", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		// The logarithm of what is left of erfc(x)·e^(x²)·(1+x/2) is a polynomial in 2/(2+x), up to 30: beyond, nothing is left. The
		// square is that of a number of few digits, which is exact, and a small rest.
		Value: "a = minimum(abs(x), 28); t = 2 / (2 + a); s = 32/15*t - 17/15; h = round(16*a) / 16; " +
			"v = t * exp(-(h*h)) * exp((h - a)*(h + a) + " + horner("s", erfcTerms) + "); where(x < 0, 2 - v, v)",
		Gradient: slopes("-g * (2/sqrt(pi) * exp(-(x*x)))")},
	Sinc: {Name: "sinc", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 1, Tolerance: Stepwise,
		Value: "a = pi*x; where(x == 0, 1, sin(a) / a)",
		// Near 0 the difference cancels, and has a series.
		Gradient: slopes("a = pi*x; b = a*a; g * (pi * where(abs(a) < 0.25, a * " + horner("b", []float64{-1. / 3, 1. / 30, -1. / 840, 1. / 45360, -1. / 3991680}) + ", ((a*cos(a) - sin(a)) / a) / a))")},
	Xlogy: {Name: "xlogy", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise, Domain: [3]Domain{Positives, Positives},
		Value:    "where(y == y, where(x == 0, 0, x*log(y)), y)",
		Gradient: slopes("v = xlogy(g, y); where(x == 0, where(y <= 0, 0, v), v)", "g * x / y")},
	Xlog1py: {Name: "xlog1py", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise, Domain: [3]Domain{Positives, Positives},
		Value:    "where(y == y, where(x == 0, 0, x*log1p(y)), y)",
		Gradient: slopes("v = xlog1py(g, y); where(x == 0, where(y <= -1, 0, v), v)", "g * x / (y+1)")},
	LogAddExp: {Name: "log_add_exp", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise,
		// Equal ones may be infinite, whose difference is no number.
		Value:    "where(x == y, x + log(2), maximum(x, y) + log1p(exp(-abs(x - y))))",
		Gradient: slopes("g * sigmoid(x - y)", "g * sigmoid(y - x)")},
	LogAddExp2: {Name: "log_add_exp2", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise,
		Value:    "where(x == y, x + 1, maximum(x, y) + log1p(exp(-log(2) * abs(x - y))) / log(2))",
		Gradient: slopes("g * sigmoid(log(2) * (x - y))", "g * sigmoid(log(2) * (y - x))")},
	Hypot: {Name: "hypot", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise,
		// An infinite side counts more than a NaN.
		Value:    "a = abs(x); b = abs(y); m = maximum(a, b); r = minimum(a, b) / where(m == 0, 1, m); where(a == inf, a, where(b == inf, b, m * sqrt(1 + r*r)))",
		Gradient: slopes("g * (x / out)", "g * (y / out)")},
	Fmod: {Name: "fmod", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise, Kink: AtQuotients,
		Value:    "r = rem(abs(x), abs(y)); where(x < 0, -r, r)",
		Gradient: slopes("g", "-g * trunc(x / y)")},
	CopySign: {Name: "copy_sign", Group: Elementwise, Class: Floats, Strides: AnyStride, min: 2, Tolerance: Stepwise, Kink: AtZero,
		// A zero's sign is that of its inverse; a NaN's counts as positive.
		Value:    "where(where(y == 0, 1/y, y) < 0, -abs(x), abs(x))",
		Gradient: slopes("where(x == 0, 0, g * (out / x))", "0")},
}

// angle is v, the arc tangent of t from 0 to 1: a quarter of it has a series that 12 terms of are enough for.
var angle = "c = t / (1 + sqrt(1 + t*t)); d = c / (1 + sqrt(1 + c*c)); z = d*d; v = 4*d*" + horner("z", func() (list []float64) {
	for k := range 13 {
		list = append(list, float64(1-2*(k%2))/float64(2*k+1))
	}
	return list
}()) + "; "

// Coefficients, the constant one first.
var (
	stirling        = []float64{1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156}
	digammaTerms    = []float64{1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12}
	trigammaTerms   = []float64{1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6}
	tetragammaTerms = []float64{1. / 2, -1. / 6, 1. / 6, -3. / 10, 5. / 6, -691. / 210, 35. / 2}
	erfinvNear      = []float64{1.6536545626831027356, 0.24015818242558961693, -0.0060336708714301490533, -0.00074070253416626697512,
		0.0001867342080340571352, -1.3882523362786468719e-05, -1.3654692000834678645e-06, 4.2347877827932403518e-07,
		-2.9070369957882005086e-08, -4.1126339803469836976e-09, 1.051212273321532285e-09, -5.4154120542946279317e-11,
		-1.2975133253453532498e-11, 2.6335093153082322977e-12, -8.1519341976054721522e-14, -4.0545662729752068639e-14,
		6.6376381343583238325e-15, 2.0972767875968561637e-17, -1.333171662854620906e-16, 1.115787767802518096e-17,
		1.2858480715256400167e-18, -1.685059138182016589e-19, -3.6444120640178196996e-21}
	erfinvFar = []float64{3.0838856104922207635, 1.0052589676941592334, 0.005370914553590063617, -0.0037512085075692412107,
		0.0024914420961078508066, -0.0016882755560235047313, 0.00095328937973738049703, -0.0003550375203628474796,
		2.4031110387097893999e-05, 6.8284851459573175448e-05, -4.7318229009055733981e-05, 1.2475304481671778723e-05,
		2.9234449089955446044e-06, -4.013867526981545969e-06, 1.5027403968909827627e-06, 1.8239629214389227755e-08,
		-2.7517406297064545428e-07, 9.0756561938885390979e-08, 2.2137376921775787049e-09}
	erfcTerms = []float64{-0.629580539022419, 0.6356274566949883, 0.03369804739436876, -0.0403844187351134, -0.005432017831511011, 0.0067287823417338565,
		0.0004956813224127987, -0.0014816253558208193, 0.00012517505479073154, 0.00032545620185297195, -0.0001014310204177486,
		-5.5914420169272476e-05, 3.996392717680394e-05, 2.7749256284042894e-06, -1.0770224133547793e-05, 2.6610709421023547e-06,
		1.7655827733566019e-06, -1.2378440952663838e-06, 2.358192922225856e-09, 2.9664329132523494e-07, -9.517256910840833e-08,
		-3.9419084101704024e-08, 2.620715312064645e-08, 2.0978942966307596e-09, -2.7778665434260902e-09}
	erfinvEnd = []float64{4.8499064014085844221, 1.0103004648645343977, -0.00013871931833623122026, -0.00021503011930044477347,
		7.5995277030017761139e-05, -1.9681778105531670567e-05, 4.5260625972231537039e-06, -9.9298272942317002539e-07,
		2.2900482228026654717e-07, -6.7711997758452339498e-08, 2.9147953450901080826e-08, -1.4960026627149240478e-08,
		7.6157012080783393804e-09, -3.7894654401267369937e-09, 1.5076572693500548083e-09, -2.5556418169965252055e-10,
		-2.7109920616438573243e-11}
)

// horner is a polynomial in x as an expression.
func horner(x string, list []float64) string {
	text := fmt.Sprint(list[len(list)-1])
	for i := len(list) - 2; i >= 0; i-- {
		text = fmt.Sprintf("(%v + %s*%s)", list[i], x, text)
	}
	return text
}

// rising joins eight terms in x, x+1, … x+7.
func rising(x, by, term string) string {
	list := []string{fmt.Sprintf(term, x)} // without a sum, in which -0 is lost
	for k := 1; k < 8; k++ {
		list = append(list, fmt.Sprintf(term, fmt.Sprintf("%s + %d", x, k)))
	}
	return "(" + strings.Join(list, " "+by+" ") + ")"
}
