package nn

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// atLeast0 is max(x, 0) with the gradient 1 at 0, as losses with margins have it.
func atLeast0(x *tensor.Tensor) *tensor.Tensor { return x.Clamp(0, math.Inf(1)) }

// Hinge is PyTorch's HingeEmbeddingLoss of distances x: the mean of x for the target 1, of max(0, margin - x) for -1.
// PyTorch's margin is 1.
func Hinge(x, target *tensor.Tensor, margin float64, opts ...LossOption) *tensor.Tensor {
	target = floating("nn.Hinge", x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		zero := number(x, 0)
		far := tensor.Where(target.Eq(number(target, 1)), zero, atLeast0(x.Neg().AddScalar(margin)))
		return far.Add(tensor.Where(target.Eq(number(target, -1)), zero, x))
	}, reducing(opts))
}

// MarginRanking is the mean of max(0, margin - target·(x1 - x2)): with the target 1 the first shall be larger by margin,
// with -1 the second. PyTorch's margin is 0.
func MarginRanking(x1, x2, target *tensor.Tensor, margin float64, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.MarginRanking", x1, x2)
	target = floating("nn.MarginRanking", x1, target)
	return tensor.Chain(tensor.Join(x1, x2, target).AutoWide(), func(x1 *tensor.Tensor) *tensor.Tensor {
		return atLeast0(x1.Sub(x2).Mul(target).Neg().AddScalar(margin))
	}, reducing(opts))
}

// SoftMargin is the mean of log(1 + e^(-target·x)), targets being 1 and -1.
func SoftMargin(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	target = floating("nn.SoftMargin", x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(),
		func(x *tensor.Tensor) *tensor.Tensor { return softplus(x.Mul(target).Neg()) }, reducing(opts))
}

// MultiMarginConfig configures [MultiMargin]. Zero means PyTorch's default.
type MultiMarginConfig struct {
	P       int            // 1, or 2; 0 means 1
	Margin  float64        // 0 means 1
	Weights *tensor.Tensor // of classes, or nil
}

// MultiMargin is the hinge of classes: the mean over rows of Σ max(0, margin - x[label] + x[c])^p / classes over all c but
// the label, of scores x[..., classes] against class numbers [...].
func MultiMargin(x, labels *tensor.Tensor, c MultiMarginConfig, opts ...LossOption) *tensor.Tensor {
	labelled("nn.MultiMargin", "scores", x, labels)
	if c.P < 0 || c.P > 2 {
		tensor.Raise("nn.MultiMargin", "P is 1 or 2", "P %d", c.P)
	}
	margin := c.Margin
	if margin == 0 {
		margin = 1
	}
	return tensor.Chain(tensor.Join(x, labels).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		own := labels.Unsqueeze(-1)
		z := atLeast0(x.Sub(x.Gather(-1, own)).AddScalar(margin))
		if c.P == 2 {
			z = z.Square()
		}
		if c.Weights != nil {
			z = z.Mul(c.Weights.Cast(x.DType()).IndexSelect(0, labels.Flatten(0)).Reshape(own.Shape()...))
		}
		other := own.Ne(x.Env().Arange(x.Dim(-1)))
		return tensor.Where(other, z, number(x, 0)).Mean(-1)
	}, reducing(opts))
}

// CosineSimilarity is the cosine of the angle between x and y along a dimension, which is dropped: x·y/(|x|·|y|), with
// norms no smaller than eps, for which PyTorch has 1e-8. Shapes broadcast. As in PyTorch the bound is not seen by gradients.
func CosineSimilarity(x, y *tensor.Tensor, axis int, eps float64) *tensor.Tensor {
	return tensor.Chain(tensor.Join(x, y).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		unit := func(v *tensor.Tensor) *tensor.Tensor {
			norm := bounded(v.Norm(axis), eps)
			return v.Div(norm.Unsqueeze(at(axis, norm.Rank())))
		}
		return unit(x).Mul(unit(y)).Sum(axis)
	})
}

// bounded is max(x, least) with x's gradient everywhere.
func bounded(x *tensor.Tensor, least float64) *tensor.Tensor {
	return x.Add(x.Detach().Neg().AddScalar(least).ReLU())
}

// at is the dimension in a value of rank n at which one is put back, where axis was dropped.
func at(axis, n int) int {
	if axis < 0 {
		return axis + n + 1
	}
	return axis
}

// CosineEmbedding is the mean of 1 - cos for the target 1 and of max(0, cos - margin) for -1, cos being the cosine of
// x1[n,d] and x2[n,d], or of two vectors. PyTorch's margin is 0.
func CosineEmbedding(x1, x2, target *tensor.Tensor, margin float64, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.CosineEmbedding", x1, x2)
	if x1.Rank() == 0 || !slices.Equal(target.Shape(), x1.Shape()[:x1.Rank()-1]) {
		tensor.Raise("nn.CosineEmbedding", "values are [n, width], targets [n]", "values %v with targets %v", x1.Shape(), target.Shape())
	}
	return tensor.Chain(tensor.Join(x1, x2, target).AutoWide(), func(x1 *tensor.Tensor) *tensor.Tensor {
		const eps = 1e-12 // PyTorch's, added to the squares
		norm := x1.Square().Sum(-1).AddScalar(eps).Mul(x2.Square().Sum(-1).AddScalar(eps)).Sqrt()
		cos := x1.Mul(x2).Sum(-1).Div(norm)
		zero := number(cos, 0)
		near := tensor.Where(target.Eq(number(target, 1)), cos.Neg().AddScalar(1), zero)
		return near.Add(tensor.Where(target.Eq(number(target, -1)), atLeast0(cos.AddScalar(-margin)), zero))
	}, reducing(opts))
}

// TripletConfig configures [TripletMargin]. Zero means PyTorch's default.
type TripletConfig struct {
	Margin float64 // 0 means 1
	P      float64 // of the norm; 0 means 2
	Eps    float64 // added to differences; 0 means 1e-6
	Swap   bool    // where the negative is nearer to the positive than to the anchor, that distance counts
}

// PairwiseDistance is the p-norm of x - y + eps along the last dimension, which is dropped. PyTorch's p is 2, eps 1e-6.
func PairwiseDistance(x, y *tensor.Tensor, p, eps float64) *tensor.Tensor {
	return tensor.Chain(tensor.Join(x, y), func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(y).AddScalar(eps) },
		func(d *tensor.Tensor) *tensor.Tensor {
			switch {
			case p == 2:
				return d.Norm(-1)
			case p == 1:
				return d.Abs().Sum(-1)
			case math.IsInf(p, 1):
				return d.Abs().Max(-1)
			case p > 0:
				return d.Abs().PowScalar(p).Sum(-1).PowScalar(1 / p)
			}
			tensor.Raise("nn.PairwiseDistance", "0 < p", "p %v", p)
			return nil
		})
}

// TripletMargin is the mean of max(0, d(anchor, positive) - d(anchor, negative) + margin), d being [PairwiseDistance], of
// three values [..., width].
func TripletMargin(anchor, positive, negative *tensor.Tensor, c TripletConfig, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.TripletMargin", anchor, positive)
	sameShape("nn.TripletMargin", anchor, negative)
	or := func(v, otherwise float64) float64 {
		if v == 0 {
			return otherwise
		}
		return v
	}
	p, eps := or(c.P, 2), or(c.Eps, 1e-6)
	return tensor.Chain(tensor.Join(anchor, positive, negative).AutoWide(), func(anchor *tensor.Tensor) *tensor.Tensor {
		far := PairwiseDistance(anchor, negative, p, eps)
		if c.Swap {
			far = far.Minimum(PairwiseDistance(positive, negative, p, eps))
		}
		return atLeast0(PairwiseDistance(anchor, positive, p, eps).Sub(far).AddScalar(or(c.Margin, 1)))
	}, reducing(opts))
}
