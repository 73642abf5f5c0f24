package pytorch

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// "Tensors"
func TestTensors(t *testing.T) {
	env := fresh(t, "cpu")
	gpu := fresh(t, "null:a100-80")
	x := env.Randn(2, 2)

	// `torch.tensor([[1., 2.], [3., 4.]])` | the dtype is the slice's
	use(tensor.From(env, []float32{1, 2, 3, 4}, 2, 2))
	// `torch.zeros(2, 3)`, `torch.ones(2, 3)`, `torch.full((2, 3), 7.)` | float32
	use(env.Zeros(2, 3), env.Ones(2, 3), env.Full(7, 2, 3))
	// `torch.full((2, 3), 7)`
	use(env.FullOf(dtype.I64, 7, 2, 3))
	// `torch.zeros_like(x)`, `torch.full_like(x, 1)`
	use(x.ZerosLike(), x.FullLike(1))
	// `torch.arange(5)` | int64
	use(env.Arange(5))
	// `torch.linspace(-1, 1, 5)`, `torch.eye(3)`
	use(env.Linspace(-1, 1, 5), env.Eye(3, 3))
	// `torch.rand(2, 3)`, `torch.randn(2, 3)`, `torch.randint(10, (2, 3))`
	use(env.Rand(2, 3), env.Randn(2, 3), env.RandInt(0, 10, 2, 3))
	// `torch.manual_seed(7)` | an env, not a global state; the numbers are not PyTorch's
	use(tensor.Best().Seed(7))
	// `x.shape`, `x.size(0)`, `x.dtype`, `x.numel()`
	use(x.Shape(), x.Dim(0), x.DType(), x.Size())
	// `x.device`
	use(x.Env().Device())
	// `x.item()`, `x.tolist()`, `x.numpy()` | copies; they wait for the device
	use(x.Sum().Item(), x.Floats(), tensor.Data[float32](x))
	// `x.to(device)`, `x.double()` | `gpu` is another env
	use(x.To(gpu), x.Cast(dtype.F64))
	// `x.to(torch.bfloat16)`, `x.to(dtype)` | any of package dtype
	use(x.Cast(dtype.BF16), x.Cast(dtype.F16))
	// `x.to(torch.float8_e4m3fn)`, `x.to(torch.float8_e5m2)` | stored only: everything that computes asks for a Cast; beyond
	// 448 the first is 448, the second infinite, as in PyTorch 2.15
	use(x.Cast(dtype.F8E4M3), x.Cast(dtype.F8E5M2))
	// `x.clone()`, `x.detach()`, `x.contiguous()`
	use(x.Clone(), x.Detach(), x.Contiguous())
}

// "Shapes and indices"
func TestShapes(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Randn(2, 3), env.Randn(2, 3)
	idx, rows := env.RandInt(0, 3, 2, 3), env.RandInt(0, 2, 4)

	// `x.view(3, -1)`, `x.reshape(3, -1)` | a view where strides allow
	use(x.Reshape(3, -1))
	// `x.flatten()` | from that dimension on
	use(x.Flatten(0))
	// `x.transpose(0, 1)`, `x.permute(1, 0)`
	use(x.Transpose(0, 1), x.Permute(1, 0))
	// `x.unsqueeze(0)`, `x.squeeze()`
	use(x.Unsqueeze(0), x.Squeeze())
	// `x.expand(4, 2, 3)`
	use(x.Expand(4, 2, 3))
	// `x[-1]`, `x[:, 1:3]`, `x[:, 0:3:2]` | views
	use(x.Select(0, -1), x.Slice(1, 1, 3), x.SliceStep(1, 0, 3, 2))
	// `x.split([1, 2], dim=1)` | the dimension comes first
	use(x.Split(1, 1, 2))
	// `torch.cat([x, y])`, `torch.stack([x, y])`
	use(tensor.Cat(0, x, y), tensor.Stack(0, x, y))
	// `F.pad(x, (1, 1))` | dimension, before, after, value
	use(x.Pad(1, 1, 1, 0))
	// `x.gather(1, idx)`, `x.index_select(0, rows)`
	use(x.Gather(1, idx), x.IndexSelect(0, rows))
	// `x.scatter_add(1, idx, y)`
	use(x.ScatterAdd(1, idx, y))
	// `torch.where(x > y, x, y)`
	use(tensor.Where(x.Gt(y), x, y))
}

// "Shapes and indices"
func TestArranging(t *testing.T) {
	env := fresh(t, "cpu")
	x, v, u := env.Randn(3, 3), env.Randn(3), env.Randn(2)
	idx, labels := env.RandInt(0, 3, 3, 2), env.RandInt(0, 4, 5)

	// `x.take_along_dim(idx, 1)`
	use(x.TakeAlong(1, idx))
	// `x.chunk(2, 1)`, `x.unbind(1)` | views
	use(x.Chunk(1, 2), x.Unbind(1))
	// `x.tril()`, `x.triu(1)`
	use(x.Tril(0), x.Triu(1))
	// `x.diag()`, `x.diagonal(1, 0, 1)`, `x.diag_embed()`
	use(x.Diag(0), x.Diagonal(1, 0, 1), x.DiagEmbed(0))
	// `x.roll(1, 0)`, `x.flip(1)`
	use(x.Roll(1, 0), x.Flip(1))
	// `x.repeat(2, 1)`, `x.repeat_interleave(2, 0)`
	use(x.Repeat(2, 1), x.RepeatInterleave(2, 0))
	// `torch.meshgrid(v, u, indexing="ij")` | for `"xy"` change the first two, and transpose
	use(tensor.Meshgrid(v, u))
	// `F.one_hot(labels, 4)` | int64; the number of classes is not found from the labels
	use(labels.OneHot(4))
}

// "Shapes and indices"
func TestOrder(t *testing.T) {
	env := fresh(t, "cpu")
	x, rising, w := env.Randn(2, 3), env.Arange(4), env.Rand(5)
	ids, mask := env.RandInt(0, 9, 5), x.GtScalar(0)

	// `x.sort(1)`, `x.argsort(1, descending=True)` | values and places; always stable
	use(x.Sort(1, false))
	use(x.ArgSort(1, true))
	// `x.topk(2, 1)`, `x.kthvalue(2, 1)`, `x.median(1)` | values and places; of equal elements the first
	use(x.TopK(2, 1, true))
	use(x.KthValue(2, 1))
	use(x.Median(1))
	// `x.cummax(1)`, `x.cummin(1)`, `x.cumprod(1)`
	use(x.CumMax(1))
	use(x.CumMin(1))
	use(x.CumProd(1))
	// `torch.searchsorted(rising, x, right=True)`, `torch.bucketize(x, rising)`
	use(rising.SearchSorted(x, true), x.Bucketize(rising, false))
	// `x.unique(return_inverse=True, return_counts=True)` | its shape depends on values, as that of the next three: the host
	// [waits](guide.md) for the number
	use(x.Unique())
	// `ids.bincount()`, `ids.bincount(w, minlength=9)`
	use(ids.BinCount(nil, 0), ids.BinCount(w, 9))
	// `x.nonzero()`, `x.masked_select(mask)`
	use(x.NonZero(), x.MaskedSelect(mask))
}

// "Arithmetic"
func TestArithmetic(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, w := env.Randn(2, 3), env.Randn(2, 3), env.Randn(3, 4)

	// `x + y`, `x - y`, `x * y`, `x / y` | they broadcast
	use(x.Add(y), x.Sub(y), x.Mul(y), x.Div(y))
	// `x * 2`, `x + 1`, `-x`
	use(x.Scale(2), x.AddScalar(1), x.Neg())
	// `x // y`, `x % y` | `FloorDiv` has the gradient of `torch.div(…, rounding_mode="floor")`, 0; by the integer 0 it is 0
	use(x.FloorDiv(y), x.Rem(y))
	// `torch.einsum("ij,jk->ik", x, w)` | any equation of letters and dots
	use(tensor.Einsum("ij,jk->ik", x, w))
	// `x @ w`
	use(x.MatMul(w))
	// `x ** 3`, `x.exp()`, `x.log()`, `x.sqrt()`, `x.abs()`
	use(x.PowScalar(3), x.Exp(), x.Log(), x.Sqrt(), x.Abs())
	// `x.tan()`, `x.asin()`, `x.acos()`, `x.atan()`, `x.atan2(y)`
	use(x.Tan(), x.Asin(), x.Acos(), x.Atan(), x.Atan2(y))
	// `x.sinh()`, `x.cosh()`, `x.asinh()`, `x.acosh()`, `x.atanh()`
	use(x.Sinh(), x.Cosh(), x.Asinh(), x.Acosh(), x.Atanh())
	// `x.exp2()`, `x.log2()`, `x.log10()`, `x.expm1()`, `x.log1p()`
	use(x.Exp2(), x.Log2(), x.Log10(), x.Expm1(), x.Log1p())
	// `x.erf()`, `x.erfinv()`, `x.lgamma()`, `x.digamma()`
	use(x.Erf(), x.Erfinv(), x.Lgamma(), x.Digamma())
	// `torch.polygamma(1, x)` | of the first order only
	use(x.Trigamma())
	// `x.clamp(0, 1)`, `torch.maximum(x, y)`
	use(x.Clamp(0, 1), x.Maximum(y))
	// `x.sum()`, `x.sum(1)`, `x.mean((0, 1))`
	use(x.Sum(), x.Sum(1), x.Mean(0, 1))
	// `x.sum(1, keepdim=True)`
	use(x.Sum(1).Unsqueeze(1))
	// `x.amax(1)`, `x.argmax(1)` | `Max` gives values only
	use(x.Max(1), x.ArgMax(1))
	// `x.var(1, correction=0)`, `x.std(1, correction=0)` | the correction, then the dimensions
	use(x.Var(0, 1), x.Var(0, 1).Sqrt())
	// `x.cumsum(1)`, `x.logsumexp(1)`, `x.norm()`
	use(x.CumSum(1), x.LogSumExp(1), x.Norm())
	// `torch.linalg.vector_norm(x, 3, 1)` | the order may be 0, 1, infinite
	use(x.NormP(3, 1))
	// `x.add_(y)`, `x.mul_(2)`, `x.lerp_(y, 0.1)`
	use(x.AddInPlace(y), x.ScaleInPlace(2), x.LerpInPlace(y, 0.1))
	// `x.copy_(y)`, `x.fill_(0)`, `x.clamp_(0, 1)` | recorded as in PyTorch, also into views; but [into a parameter or buffer
	// nothing is](why.md#how-does-the-graph-follow-a-write-in-place)
	use(x.CopyInPlace(y), x.FillInPlace(0), x.ClampInPlace(0, 1))
}

// "Arithmetic"
func TestComparing(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Randn(2, 3), env.Randn(2, 3)
	mask := x.Gt(y)

	// `x > y`, `x <= y`, `x == y` | bool
	use(x.Gt(y), x.Le(y), x.Eq(y))
	// `x > 0.25`, `x <= 3`, `x != 0` | also `GeScalar`, `LtScalar`, `EqScalar`
	use(x.GtScalar(0.25), x.LeScalar(3), x.NeScalar(0))
	// `x.isnan()`, `x.isinf()`, `x.isfinite()`
	use(x.IsNaN(), x.IsInf(), x.IsFinite())
	// `x.nan_to_num()` | an infinite bound is the dtype's own
	use(x.NanToNum(0, math.Inf(1), math.Inf(-1)))
	// `x.masked_fill(mask, 9)`
	use(x.MaskedFill(mask, 9))
	// `x.reciprocal()`, `x.frac()`
	use(x.Reciprocal(), x.Frac())
	// `(x > y) & (y > x)`, `~(x > y)`
	use(x.Gt(y).And(y.Gt(x)), x.Gt(y).Not())
	// `(x > y).any()`, `(x > y).all()`
	use(x.Gt(y).Any(), x.Gt(y).All())
}
