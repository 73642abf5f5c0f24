package nn

import (
	"maps"

	"github.com/warpline-ml/warpline/tensor"
)

func init() { maps.Copy(forwards, losses) }

// losses are the cases of the family of this name.
var losses = map[string]forward{
	"l1_loss": lossCase(L1),
	"smooth_l1_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return SmoothL1(in["x"], in["target"], c.Attrs.number("beta", -1), c.reduction()...)
	}),
	"huber_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return Huber(in["x"], in["target"], c.Attrs.number("delta", -1), c.reduction()...)
	}),
	"kl_div": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		opts := options[DivergenceOption](c.reduction())
		if c.Attrs.text("reduction") == "batchmean" {
			opts = append(opts, BatchMean())
		}
		if c.Attrs.flag("log_target") {
			opts = append(opts, LogTargets())
		}
		return KLDiv(in["x"], in["target"], opts...)
	}),
	"binary_cross_entropy": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return BCE(in["x"], in["target"], c.binary(in)...)
	}),
	"bce_with_logits": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return BCEWithLogits(in["x"], in["target"], c.binary(in)...)
	}),
	"sigmoid_focal_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return Focal(in["x"], in["target"], c.Attrs.number("alpha", 0), c.Attrs.number("gamma", -1), c.binary(in)...)
	}),
	"hinge_embedding_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return Hinge(in["x"], in["target"], c.Attrs.number("margin", 0), c.reduction()...)
	}),
	"margin_ranking_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return MarginRanking(in["x"], in["x2"], in["target"], c.Attrs.number("margin", 0), c.reduction()...)
	}),
	"soft_margin_loss": lossCase(SoftMargin),
	"multi_margin_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return MultiMargin(in["x"], in["target"], MultiMarginConfig{P: c.Attrs.int("p", 0), Margin: c.Attrs.number("margin", 0), Weights: in["weight"]}, c.reduction()...)
	}),
	"cosine_embedding_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return CosineEmbedding(in["x"], in["x2"], in["target"], c.Attrs.number("margin", 0), c.reduction()...)
	}),
	"cosine_similarity": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return CosineSimilarity(in["x"], in["x2"], c.Attrs.int("dim", 0), c.Attrs.number("eps", 0))
	}),
	"pairwise_distance": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return PairwiseDistance(in["x"], in["x2"], c.Attrs.extended("p", 0), c.Attrs.number("eps", 0))
	}),
	"linear_cross_entropy": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		opts := append(options[CrossEntropyOption](c.reduction()), Smoothing(c.Attrs.number("label_smoothing", 0)), Ignore(c.Attrs.int("ignore_index", -100)))
		return LinearCrossEntropy(in["x"], in["w"], in["target"], opts...)
	}),
	"triplet_margin_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return TripletMargin(in["x"], in["x2"], in["x3"], TripletConfig{Margin: c.Attrs.number("margin", 0), P: c.Attrs.extended("p", 0),
			Eps: c.Attrs.number("eps", 0), Swap: c.Attrs.flag("swap")}, c.reduction()...)
	}),
	"gaussian_nll_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return GaussianNLL(in["x"], in["target"], in["variance"], GaussianNLLConfig{Full: c.Attrs.flag("full"), Eps: c.Attrs.number("eps", 0)}, c.reduction()...)
	}),
	"poisson_nll_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return PoissonNLL(in["x"], in["target"], PoissonNLLConfig{Rate: !c.Attrs.flag("log_input"), Full: c.Attrs.flag("full"), Eps: c.Attrs.number("eps", 0)}, c.reduction()...)
	}),
	"nll_loss": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		opts := append(options[CrossEntropyOption](c.reduction()), Ignore(c.Attrs.int("ignore_index", -100)))
		if w := in["weight"]; w != nil {
			opts = append(opts, ClassWeights(w))
		}
		return NLL(in["x"], in["target"], opts...)
	}),
}

// binary are a case's options of losses of two classes.
func (c *goldenCase) binary(in map[string]*tensor.Tensor) []BinaryOption {
	opts := options[BinaryOption](c.reduction())
	if w := in["weight"]; w != nil {
		opts = append(opts, Weights(w))
	}
	if w := in["pos_weight"]; w != nil {
		opts = append(opts, PosWeight(w))
	}
	return opts
}
