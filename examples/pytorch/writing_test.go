package pytorch

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// "Shapes and indices"
func TestWritesByIndex(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	idx, ids := tensor.From(env, []int64{2, 0, 1, 0, 1, 2}, 2, 3), tensor.From(env, []int64{2, 0}, 2)
	mask := x.Gt(y)

	// `x.scatter(1, idx, y)`, `x.scatter(1, idx, 9.)` | of several values for one place the last; in place `x.CopyInPlace(…)` of it
	use(x.Scatter(1, idx, y), x.ScatterScalar(1, idx, 9))
	// `x.scatter_reduce(1, idx, y, "amax")`, `x.scatter_reduce(1, idx, y, "prod", include_self=False)`
	use(x.ScatterReduce(1, idx, y, tensor.ReduceMax, true), x.ScatterReduce(1, idx, y, tensor.ReduceProd, false))
	// `x.index_add(1, ids, y[:, :2])`, `x.index_copy(1, ids, y[:, :2])`, `x.index_fill(1, ids, 9.)` | of several the last
	use(x.IndexAdd(1, ids, y.Slice(1, 0, 2)), x.IndexCopy(1, ids, y.Slice(1, 0, 2)), x.IndexFill(1, ids, 9))
	// `x.index_reduce(1, ids, y[:, :2], "amin")` | the places for each row
	use(x.ScatterReduce(1, ids.Expand(2, 2), y.Slice(1, 0, 2), tensor.ReduceMin, true))
	// `x[:, ids]`, `x[mask]` | any number of indices, nil for a whole dimension; a mask's places are counted by the host
	use(x.Index(nil, ids))
	use(x.Index(mask))
	// `x.index_put((ids[1:], ids[:1]), y[0, :1])`, `x.index_put((ids[1:],), y[:1], accumulate=True)`
	use(x.IndexPut([]*tensor.Tensor{ids.Slice(0, 1, 2), ids.Slice(0, 0, 1)}, y.Select(0, 0).Slice(0, 0, 1), false))
	use(x.IndexPut([]*tensor.Tensor{ids.Slice(0, 1, 2)}, y.Slice(0, 0, 1), true))
	// `x.put(ids, y[0, :2])` | places among all elements
	use(x.Flatten(0).IndexPut([]*tensor.Tensor{ids}, y.Select(0, 0).Slice(0, 0, 2), false).Reshape(2, 3))
	// `x.masked_scatter(mask, y)`
	use(x.MaskedScatter(mask, y))
	// `x.select_scatter(y.select(0, 1), 0, 0)`, `x.slice_scatter(y[:1], 0, 0, 1)` | in place: `x.Select(0, 0).CopyInPlace(…)`
	use(x.SelectScatter(y.Select(0, 1), 0, 0), x.SliceScatter(y.Slice(0, 0, 1), 0, 0, 1, 1))
	// `x.diagonal_scatter(y[0, :2])`
	use(x.DiagonalScatter(y.Select(0, 0).Slice(0, 0, 2), 0, 0, 1))
	// `x.fill_diagonal_(7.)`
	x.Diagonal(0, 0, 1).FillInPlace(7)
}

// "Arithmetic"
func TestBits(t *testing.T) {
	env := fresh(t, "cpu")
	a, b := tensor.From(env, []int64{12, -7, 5, 96}, 4), tensor.From(env, []int64{10, 3, 1, 2}, 4)

	// `a.bitwise_and(b)`, `a.bitwise_or(b)`, `a.bitwise_xor(b)`, `a.bitwise_not()` | of integers; of bools logic. `And` and `Or` are logical
	use(a.BitAnd(b), a.BitOr(b), a.BitXor(b), a.BitNot())
	// `a & 6`, `a.bitwise_or(6)`, `a ^ 6`
	use(a.BitAndScalar(6), a.BitOrScalar(6), a.BitXorScalar(6))
	// `a.bitwise_left_shift(b)`, `a.bitwise_right_shift(b)`, `a << 2`, `a >> 2`
	use(a.ShiftLeft(b), a.ShiftRight(b), a.ShiftLeftScalar(2), a.ShiftRightScalar(2))
	// `a.gcd(b)`, `a.lcm(b)`
	use(a.GCD(b), a.LCM(b))
}

// "Arithmetic"
func TestFunctions(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	p, w := x.Square().AddScalar(0.5), x.Sigmoid()
	u, k := tensor.From(env, []float32{1, -2, 0.5}, 3), tensor.From(env, []int64{3, 0, -1}, 3)

	// `x.erfc()`, `x.sinc()`
	use(x.Erfc(), x.Sinc())
	// `x.xlogy(p)`, `torch.special.xlog1py(x, p)`
	use(x.Xlogy(p), x.Xlog1py(p))
	// `x.logaddexp(y)`, `x.logaddexp2(y)`, `x.hypot(y)`
	use(x.LogAddExp(y), x.LogAddExp2(y), x.Hypot(y))
	// `x.fmod(p)`, `x.copysign(y)`, `u.ldexp(k)` | `Rem` has the sign of the divisor
	use(x.Fmod(p), x.CopySign(y), u.LDExp(k))
	// `x.heaviside(y)`, `x.signbit()`, `x.fmax(y)`, `x.fmin(y)`
	use(x.Heaviside(y), x.SignBit(), x.Fmax(y), x.Fmin(y))
	// `p.float_power(k)`, `x.float_power(2)` | float64
	use(p.FloatPower(k), x.Cast(dtype.F64).PowScalar(2))
	// `x.lerp(y, w)` | by a weight for each element
	use(x.LerpTensor(y, w))
	// `x.addcdiv(y, p, value=2)`
	use(x.AddScaled(y.Div(p), 2))
}

// "Tensors"
func TestDraws(t *testing.T) {
	env := fresh(t, "cpu")
	x := env.Rand(2, 3)
	logits := tensor.From(env, []float32{float32(math.Log(0.7)), float32(math.Log(0.3))}, 2)

	// `torch.randperm(5)`, `torch.bernoulli(x)`, `x.bernoulli(0.3)` | int64; in x's dtype; bool
	use(env.RandPerm(5), x.Bernoulli(), env.Rand(x.Shape()...).LtScalar(0.3))
	// `torch.multinomial(logits.softmax(-1), 1)`, `torch.multinomial(x, 2, replacement=True)` | wrong weights are an error, for which
	// the host [waits](guide.md); within a captured step Gumbel's trick: `logits.Sub(env.Rand(…).Log().Neg().Log()).ArgMax(-1)`
	use(logits.Softmax(-1).Multinomial(1, false), x.Multinomial(2, true))
}
