package pytorch

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// "Not here: write instead"
func TestNearestArithmetic(t *testing.T) {
	env := fresh(t, "cpu")
	x := pattern(env, 7, 0, 5, 2, 3)
	r := x.Sigmoid()

	// `r.logit()`
	use(r.Log().Sub(r.Neg().Log1p()))
	// `x.deg2rad()`, `x.rad2deg()`
	use(x.Scale(math.Pi/180), x.Scale(180/math.Pi))
}

// "Not here: write instead"
func TestNearestReductions(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	s := pattern(env, 5, 2, 9, 4, 4)
	sorted, _ := x.Sort(1, false)

	// `x.nansum()`, `x.nanmean()`
	use(tensor.Where(x.IsNaN(), x.ZerosLike(), x).Sum(), tensor.Where(x.IsNaN(), x.ZerosLike(), x).Sum().Div(x.IsNaN().Not().Cast(dtype.F32).Sum()))
	// `x.count_nonzero()`, `x.dist(y)`, `s.trace()`
	use(x.NeScalar(0).Cast(dtype.I64).Sum(), x.Sub(y).Norm(), s.Diagonal(0, 0, 1).Sum())
	// `x.aminmax()` | smallest and largest
	use(x.Min())
	use(x.Max())
	// `x.diff()`, `x.logcumsumexp(1)` | the second as long as the powers of e are finite
	use(x.Slice(1, 1, 3).Sub(x.Slice(1, 0, 2)), x.Exp().CumSum(1).Log())
	// `torch.trapezoid(x)` | of unequal steps times their widths
	use(x.Slice(1, 1, 3).Add(x.Slice(1, 0, 2)).Scale(0.5).Sum(1))
	// `x.cov()`, `F.normalize(x)` | of rows
	use(centred(x).MatMul(centred(x).Transpose(0, 1)).Scale(1.0/2), x.Div(x.Norm(1).Clamp(1e-12, math.Inf(1)).Unsqueeze(1)))
	// `torch.cdist(x, y)` | of all pairs of rows
	use(x.Unsqueeze(1).Sub(y.Unsqueeze(0)).Norm(-1))
	// `x.equal(y)`, `x.allclose(y)` | a bool of Go, which waits for the device
	use(x.Eq(y).All().Item() != 0, x.Sub(y).Abs().Le(y.Abs().Scale(1e-5).AddScalar(1e-8)).All().Item() != 0)
	// `x.isclose(y)`
	use(x.Sub(y).Abs().Le(y.Abs().Scale(1e-5).AddScalar(1e-8)))
	// `x.quantile(0.25, 1)` | the place 0.25·(n-1) of sorted values: between two of them by `Lerp`
	use(sorted.Select(1, 0).Lerp(sorted.Select(1, 1), 0.5))
}

// centred are rows without their mean.
func centred(x *tensor.Tensor) *tensor.Tensor { return x.Sub(x.Mean(1).Unsqueeze(1)) }

// "Not here: write instead"
func TestNearestProducts(t *testing.T) {
	env := fresh(t, "cpu")
	x, w, c := pattern(env, 7, 0, 5, 2, 3), pattern(env, 5, 2, 9, 3, 4), pattern(env, 3, 1, 7, 2, 4)
	u, v := pattern(env, 3, 0, 5, 3), pattern(env, 2, 1, 5, 3)
	s, q := pattern(env, 7, 3, 11, 2, 2, 3), pattern(env, 5, 1, 11, 2, 3, 4)
	k := pattern(env, 3, 1, 5, 2, 2)

	// `u.dot(v)`, `u.vdot(v)`, `u.inner(v)`
	use(u.Mul(v).Sum(), u.Mul(v).Sum(), u.Mul(v).Sum())
	// `u.outer(v)`, `u.ger(v)`
	use(u.Unsqueeze(1).Mul(v.Unsqueeze(0)), u.Unsqueeze(1).Mul(v.Unsqueeze(0)))
	// `c.addmm(x, w)`, `c.baddbmm(s, q)`, `c.addbmm(s, q)`
	use(c.Add(x.MatMul(w)), c.Add(s.MatMul(q)), c.Add(s.MatMul(q).Sum(0)))
	// `k.select(0, 0).addmv(x, v)`, `x.addr(k.select(0, 0), v)`
	use(k.Select(0, 0).Add(x.MatMul(v)), x.Add(k.Select(0, 0).Unsqueeze(1).Mul(v.Unsqueeze(0))))
	// `u.cross(v, dim=0)`
	use(u.Roll(-1, 0).Mul(v.Roll(-2, 0)).Sub(u.Roll(-2, 0).Mul(v.Roll(-1, 0))))
	// `k.matrix_power(3)`, `torch.chain_matmul(k, x, w)`
	use(k.MatMul(k).MatMul(k), k.MatMul(x).MatMul(w))
	// `k.kron(x)` | four dimensions, and two of each
	use(k.Reshape(2, 1, 2, 1).Mul(x.Reshape(1, 2, 1, 3)).Reshape(4, 6))
	// `torch.tensordot(s, q, dims=([2], [1]))`
	use(s.Reshape(4, 3).MatMul(q.Permute(1, 0, 2).Reshape(3, 8)).Reshape(2, 2, 2, 4))
	// `F.bilinear(x, c, q)` | of the weight [out, in1, in2]
	use(x.Unsqueeze(0).MatMul(q).Mul(c.Unsqueeze(0)).Sum(2).Transpose(0, 1))
}

// "Not here: write instead"
func TestNearestIndices(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := pattern(env, 7, 0, 5, 2, 3), pattern(env, 3, 1, 7, 2, 3)
	mask := x.Gt(y)
	ids := tensor.From(env, []int64{2, 0}, 2)

	// `x.take(ids)`, `x[mask]` | the second's shape depends on values: the host waits for it
	use(x.Flatten(0).IndexSelect(0, ids), x.MaskedSelect(mask))
	// `torch.tril_indices(3, 3)` | as rows [2, n]
	use(env.Ones(3, 3).Tril(0).NonZero().Transpose(0, 1))
	// `torch.isin(x, y)`
	use(x.Unsqueeze(2).Eq(y.Flatten(0)).Any(2))
	// `torch.triu_indices(3, 3)`
	use(env.Ones(3, 3).Triu(0).NonZero().Transpose(0, 1))
	// `torch.logspace(-1, 1, 5)`, `torch.range(1, 4)`
	use(env.Linspace(-1, 1, 5).Scale(math.Ln10).Exp(), env.Arange(4).AddScalar(1))
	// `torch.block_diag(x, y)`
	use(tensor.Cat(0, x.Pad(1, 0, 3, 0), y.Pad(1, 3, 0, 0)))
}

// "Not here: write instead"
func TestNearestLayers(t *testing.T) {
	env := fresh(t, "cpu")
	x, img, seq := pattern(env, 7, 0, 13, 2, 4), pattern(env, 5, 2, 11, 1, 4, 4, 4), pattern(env, 5, 1, 9, 1, 2, 6)
	table, ids := pattern(env, 3, 1, 7, 5, 4), tensor.From(env, []int64{2, 0, 4, 4}, 2, 2)
	model := nn.Sequential{nn.NewLinear(env, 4, 4), nn.Dropout{P: 0.1}}
	l := nn.NewLinear(env, 4, 3)
	pool := tensor.Pool{Kernel: [2]int{1, 2}}
	y := x.GtScalar(0).Cast(dtype.F32)

	// `F.max_pool1d(seq, 2)`, `F.avg_pool1d(seq, 2)` | rows one high
	use(seq.Unsqueeze(2).MaxPool2d(pool).Squeeze(2), seq.Unsqueeze(2).AvgPool2d(pool).Squeeze(2))
	// `F.lp_pool1d(seq, 2., 2)` | of values that are not below 0 for other norms
	use(seq.Square().Unsqueeze(2).AvgPool2d(pool).Scale(2).Sqrt().Squeeze(2))
	// `F.embedding_bag(ids, table)`, `F.embedding_bag(ids, table, mode="sum")`
	use(table.Embedding(ids).Mean(1), table.Embedding(ids).Sum(1))
	// `F.gumbel_softmax(x)` | soft; hard by `ArgMax` and `OneHot`
	use(x.Sub(env.Rand(2, 4).Log().Neg().Log()).Softmax(-1))
	// `F.local_response_norm(img, 3)` | a mean over channels by a window in front of them
	use(img.Div(img.Square().Reshape(1, 1, 4, 16).AvgPool2d(tensor.Pool{Kernel: [2]int{3, 1}, Stride: [2]int{1, 1}, Padding: [2]int{1, 0}}).Reshape(1, 4, 4, 4).Scale(1e-4).AddScalar(1).PowScalar(0.75)))
	// `F.multilabel_soft_margin_loss(x, y)` | the mean over classes, then over samples
	use(nn.BCEWithLogits(x, y))
	// `nn.Unflatten(1, (2, 2))` | the operation in a `Forward` of one's own
	use(x.Reshape(2, 2, 2))
	// `nn.utils.clip_grad_value_(params, 1)` | before Backward, of each parameter
	for _, p := range nn.Params(model) {
		p.OnGrad(func(g *tensor.Tensor) *tensor.Tensor { return g.Clamp(-1, 1) })
	}

	// `nn.utils.parameters_to_vector(params)` | of those of a layer
	use(tensor.Cat(0, l.Weight.Flatten(0), l.Bias.Flatten(0)))
}

// "Models"
func TestNewHead(t *testing.T) {
	env := fresh(t, "cpu")
	path := t.TempDir() + "/model.safetensors"
	old := nn.Sequential{nn.NewLinear(env, 4, 3), nn.ReLU{}, nn.NewLinear(env, 3, 5)}
	model := nn.Sequential{nn.NewLinear(env, 4, 3), nn.ReLU{}, nn.NewLinear(env, 3, 2)}
	use(ckpt.SaveModel(path, old))

	// `model.load_state_dict(old, strict=False)`, `model.fc = nn.Linear(3, 2)` | what fits in name, shape and type is loaded, and
	// what was left is told; the optimizer comes after
	left, err := ckpt.LoadFitting(path, model)

	use(left, err)
	if err := ckpt.LoadModel(path, model); err == nil {
		t.Error("the old head was loaded into the new one")
	}
}
