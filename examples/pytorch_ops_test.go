package examples

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestPyTorchArranging and what follows run docs/pytorch.md, as those of pytorch_test.go.
func TestPyTorchArranging(t *testing.T) {
	env := fresh(t, "cpu")
	x, v, u := env.Randn(3, 3), env.Randn(3), env.Randn(2)
	idx, labels := env.RandInt(0, 3, 3, 2), env.RandInt(0, 4, 5)
	use(env.Linspace(-1, 1, 5), env.Eye(3, 3), tensor.Meshgrid(v, u), labels.OneHot(4), x.TakeAlong(1, idx))
	use(x.Chunk(1, 2), x.Unbind(1), x.Tril(0), x.Triu(1), x.Diag(0), x.Diagonal(1, 0, 1), x.DiagEmbed(0))
	use(x.Roll(1, 0), x.Flip(1), x.Repeat(2, 1), x.RepeatInterleave(2, 0))
}

func TestPyTorchOrder(t *testing.T) {
	env := fresh(t, "cpu")
	x, rising, w := env.Randn(2, 3), env.Arange(4), env.Rand(5)
	ids, mask := env.RandInt(0, 9, 5), x.GtScalar(0)
	largest, places := x.TopK(2, 1, true)
	use(largest, places, x.ArgSort(1, true), x.CumProd(1), rising.SearchSorted(x, true), x.Bucketize(rising, false))
	for _, f := range []func() (v, at *tensor.Tensor){
		func() (v, at *tensor.Tensor) { return x.Sort(1, false) },
		func() (v, at *tensor.Tensor) { return x.KthValue(2, 1) },
		func() (v, at *tensor.Tensor) { return x.Median(1) },
		func() (v, at *tensor.Tensor) { return x.CumMax(1) },
		func() (v, at *tensor.Tensor) { return x.CumMin(1) },
	} {
		use(f())
	}
	values, inverse, counts := x.Unique()
	use(values, inverse, counts, ids.BinCount(nil, 0), ids.BinCount(w, 9), x.NonZero(), x.MaskedSelect(mask))
}

func TestPyTorchNumbers(t *testing.T) {
	env := fresh(t, "cpu")
	x, y := env.Randn(2, 3), env.Randn(2, 3)
	mask := x.Gt(y)
	use(x.GtScalar(0.25), x.LeScalar(3), x.NeScalar(0), x.IsNaN(), x.IsInf(), x.IsFinite(), x.NanToNum(0, math.Inf(1), math.Inf(-1)))
	use(x.MaskedFill(mask, 9), x.Reciprocal(), x.Frac(), x.NormP(3, 1))
}
