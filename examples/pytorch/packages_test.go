package pytorch

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// "Not here: write instead"
func TestNearestLinalg(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, v := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3), pattern(env, 3, 0, 5, 3)

	// `torch.linalg.matrix_norm(x)`, `torch.linalg.vecdot(x, y)` | Frobenius'; the largest of `x.Abs().Sum(-1)` is that of order infinite
	use(x.Norm(-2, -1), x.Mul(y).Sum(-1))
	// `torch.linalg.vander(v)`
	use(v.Unsqueeze(1).Pow(env.Arange(3).Cast(dtype.F32)))
}

// "Not here: write instead"
func TestNearestSpecial(t *testing.T) {
	env := fresh(t, "cpu")
	x := pattern(env, 7, 0, 5, 2, 3)
	p, r := x.Square().AddScalar(0.5), x.Sigmoid()

	// `torch.special.entr(p)`, `torch.special.xlog1py(x, p)` | the first at 0 by `Where`
	use(p.Mul(p.Log()).Neg(), x.Mul(p.Log1p()))
	// `torch.special.ndtr(x)`, `torch.special.log_ndtr(x)`, `torch.special.ndtri(r)` | far below 0 digits are lost
	use(x.Scale(math.Sqrt(0.5)).Erf().AddScalar(1).Scale(0.5), x.Scale(math.Sqrt(0.5)).Erf().AddScalar(1).Scale(0.5).Log())
	use(r.Scale(2).AddScalar(-1).Erfinv().Scale(math.Sqrt2))
	// `(p + 1).mvlgamma(2)`
	use(p.AddScalar(1).Lgamma().Add(p.AddScalar(0.5).Lgamma()).AddScalar(math.Log(math.Pi) / 2))
}

// waves are the cosines and sines of a transform of n numbers, [n, n/2+1].
func waves(env *tensor.Env, n int) (cosines, sines *tensor.Tensor) {
	angles := env.Arange(n).Unsqueeze(1).Mul(env.Arange(n/2 + 1)).Cast(dtype.F32).Scale(2 * math.Pi / float64(n))
	return angles.Cos(), angles.Sin()
}

// "Not here: write instead"
func TestNearestTransforms(t *testing.T) {
	env := fresh(t, "cpu")
	x := pattern(env, 7, 0, 5, 2, 3)
	cosines, sines := waves(env, 3)

	// `torch.fft.rfft(x).real`, `torch.fft.rfft(x).imag` | products with cosines and sines: of rows of some hundreds of numbers
	use(x.MatMul(cosines), x.MatMul(sines).Neg())
	// `torch.fft.fftshift(x, 1)`, `torch.fft.ifftshift(x, 1)`
	use(x.Roll(1, 1), x.Roll(-1, 1))
	// `torch.fft.fftfreq(4)`, `torch.fft.rfftfreq(4)`
	use(env.Arange(4).Cast(dtype.F32).AddScalar(-2).Scale(1.0/4).Roll(-2, 0), env.Arange(3).Cast(dtype.F32).Scale(1.0/4))
}
