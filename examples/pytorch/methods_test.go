package pytorch

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// "Arithmetic"
func TestMethods(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	w, v := pattern(env, 5, 2, 9, 3, 4), pattern(env, 2, 1, 5, 3)
	s, u := pattern(env, 7, 3, 11, 2, 2, 3), pattern(env, 5, 1, 11, 2, 3, 2)
	p := x.Square().AddScalar(0.5)

	// `x.add(y)`, `x.sub(y)`, `x.mul(y)`, `x.div(p)`, `x.neg()` | of numbers `AddScalar` and `Scale`
	use(x.Add(y), x.Sub(y), x.Mul(y), x.Div(p), x.Neg())
	// `x.add(y, alpha=2)`, `x.sub(y, alpha=2)`, `x.addcmul(y, p, value=2)`
	use(x.AddScaled(y, 2), x.AddScaled(y, -2), x.AddScaled(y.Mul(p), 2))
	// `x.matmul(w)`, `x.mm(w)`, `x.mv(v)`, `s.bmm(u)`
	use(x.MatMul(w), x.MatMul(w), x.MatMul(v), s.MatMul(u))
	// `x.pow(3)`, `p.pow(y)`, `x.square()`, `p.rsqrt()`
	use(x.PowScalar(3), p.Pow(y), x.Square(), p.Rsqrt())
	// `x.sign()`, `x.floor()`, `x.ceil()`, `x.round()`, `x.trunc()` | to the nearest, halves to even
	use(x.Sign(), x.Floor(), x.Ceil(), x.Round(), x.Trunc())
	// `x.sin()`, `x.cos()`, `x.erf()`, `x.expm1()`, `p.log1p()`
	use(x.Sin(), x.Cos(), x.Erf(), x.Expm1(), p.Log1p())
	// `x.amin(1)`, `y.argmin(1)`, `x.prod(1)`
	use(x.Min(1), y.ArgMin(1), x.Prod(1))
	// `y.max(1).values`, `y.max(1).indices`, `y.min(1).values`, `y.min(1).indices`
	use(y.Max(1), y.ArgMax(1), y.Min(1), y.ArgMin(1))
	// `x.maximum(y)`, `x.minimum(y)`, `x.lerp(y, 0.25)`
	use(x.Maximum(y), x.Minimum(y), x.Lerp(y, 0.25))
	// `x.remainder(p)`, `x.floor_divide(p)`
	use(x.Rem(p), x.FloorDiv(p))
	// `x.clamp_min(0)`, `x.clamp_max(0)`
	use(x.Clamp(0, math.Inf(1)), x.Clamp(math.Inf(-1), 0))
	// `x.std(1)`, `x.var(1)`
	use(x.Var(1, 1).Sqrt(), x.Var(1, 1))
	// `torch.var_mean(x, 1)`
	use(x.Var(1, 1), x.Mean(1))
	// `torch.std_mean(x, 1)`
	use(x.Var(1, 1).Sqrt(), x.Mean(1))
}

// "Arithmetic"
func TestLogic(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	a, b := x.Gt(y), x.GtScalar(0)

	// `x.gt(y)`, `x.ge(y)`, `x.lt(y)`, `x.le(y)`, `x.eq(y)`, `x.ne(y)`
	use(x.Gt(y), x.Ge(y), x.Lt(y), x.Le(y), x.Eq(y), x.Ne(y))
	// `a.logical_and(b)`, `a.logical_or(b)`, `a.logical_xor(b)`, `a.logical_not()` | of numbers too: true where they are not 0
	use(a.And(b), a.Or(b), a.Xor(b), a.Not())
	// `x.isposinf()`, `x.isneginf()`
	use(x.EqScalar(math.Inf(1)), x.EqScalar(math.Inf(-1)))
}

// "Shapes and indices"
func TestViews(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, q := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 3, 2), pattern(env, 7, 3, 11, 2, 2, 3)
	v := pattern(env, 2, 1, 5, 3)

	// `x.t()`, `x.T`, `q.mT`, `x.swapaxes(0, 1)`, `q.movedim(0, 2)`
	use(x.Transpose(0, 1), x.Transpose(0, 1), q.Transpose(-2, -1), x.Transpose(0, 1), q.Permute(1, 2, 0))
	// `x.narrow(1, 0, 2)`, `x.select(1, 0)`
	use(x.Slice(1, 0, 2), x.Select(1, 0))
	// `x.view_as(y)`, `x.reshape_as(y)`, `v.expand_as(x)`, `v.broadcast_to((2, 3))`
	use(x.Reshape(y.Shape()...), x.Reshape(y.Shape()...), v.Expand(x.Shape()...), v.Expand(2, 3))
	// `x.unflatten(1, (3, 1))`, `x.ravel()`, `torch.atleast_2d(v)`
	use(x.Reshape(2, 3, 1), x.Flatten(0), v.Reshape(1, 3))
	// `x.tile(2, 1)`, `x.fliplr()`, `x.flipud()`, `x.rot90()`
	use(x.Repeat(2, 1), x.Flip(1), x.Flip(0), x.Flip(1).Transpose(0, 1))
	// `torch.hstack((x, x))`, `torch.vstack((x, x))`, `torch.dstack((q, q))`, `torch.column_stack((x, x))`
	use(tensor.Cat(1, x, x), tensor.Cat(0, x, x), tensor.Cat(2, q, q), tensor.Cat(1, x, x))
	// `v.diagflat()`, `y.msort()` | of the second the values
	use(v.DiagEmbed(0))
	use(y.Sort(0, false))
	// `x.tensor_split(2)`, `x.split_with_sizes([1, 1])`, `x.hsplit([1])`, `x.vsplit([1])`
	use(x.Chunk(0, 2), x.Split(0, 1, 1), x.Split(1, 1, 2), x.Split(0, 1, 1))
	// `F.pad(x, (1, 1, 0, 2), value=9.)` | a call for each dimension
	use(x.Pad(1, 1, 1, 9).Pad(0, 0, 2, 9))
}

// "Tensors"
func TestProperties(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Randn(2, 3), env.Randn(2, 3)

	// `x.ndim`, `x.dim()`, `x.nbytes`, `x.element_size()`, `x.is_floating_point()`
	use(x.Rank(), x.Rank(), x.Bytes(), x.DType().Size(), x.DType().IsFloat())
	// `x.requires_grad`, `x.is_signed()`, `x.is_same_size(y)`, `x.is_cpu` | whether a graph belongs to it; of a parameter
	// `IsParam`
	use(x.Recorded(), x.DType().IsSigned(), x.SameShape(y), x.Env().Device().OnHost())
	// `x.float()`, `x.half()`, `x.bfloat16()`, `x.bool()`
	use(x.Cast(dtype.F32), x.Cast(dtype.F16), x.Cast(dtype.BF16), x.Cast(dtype.Bool))
	// `x.long()`, `x.int()`, `x.byte()`
	use(x.Cast(dtype.I64), x.Cast(dtype.I32), x.Cast(dtype.U8))
	// `x.type(torch.float64)`, `x.type_as(y)`
	use(x.Cast(dtype.F64), x.Cast(y.DType()))
	// `x.cpu()`, `x.cuda()` | into the env of a device: `tensor.Open("cuda:0")`
	use(x.To(env), x.To(env))
	// `torch.ones_like(x)`, `torch.rand_like(x)`, `torch.randn_like(x)`, `torch.randint_like(x, 10)`
	use(x.FullLike(1), env.Rand(x.Shape()...), env.Randn(x.Shape()...), env.RandInt(0, 10, x.Shape()...))
	// `x.new_zeros(2)`, `x.new_ones(2)`, `x.new_full((2,), 7)`, `x.new_empty(2)`
	use(x.Env().Zeros(2), x.Env().Ones(2), x.Env().Full(7, 2), x.Env().Zeros(2))
	// `x.new_tensor([1., 2.])`, `torch.as_tensor([1., 2.])`, `torch.from_numpy(a)` | a copy; files of NumPy by `data/npz`
	use(tensor.From(env, []float32{1, 2}, 2))
	// `torch.empty(2, 3)`, `torch.empty_like(x)` | nothing is left unset
	use(env.Zeros(2, 3), x.ZerosLike())
	// `torch.normal(1., 2., (2, 3))`
	use(env.Randn(2, 3).Scale(2).AddScalar(1))
	// `x.normal_(0, 2)`, `x.uniform_(-1, 1)`, `x.exponential_()`
	nn.InitNormal(x, 0, 2)
	nn.InitUniform(x, -1, 1)
	x.CopyInPlace(env.Rand(2, 3).Log().Neg())

	// `x.sub_(y)`, `x.div_(y)`, `x.zero_()`, `x.add_(y, alpha=2)`
	use(x.SubInPlace(y), x.DivInPlace(y), x.FillInPlace(0), x.AddScaledInPlace(y, 2))
	// `torch.set_printoptions()`, `print(x)` | `%v` of package fmt shows values, `x.Info()` dtype, shape and device
	use(x.String())
}
