package nn

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// LossOption changes any loss from its default.
type LossOption interface {
	CrossEntropyOption
	BinaryOption
	DivergenceOption
}

// CrossEntropyOption changes [CrossEntropy] from its default. Every [LossOption] is one.
type CrossEntropyOption interface{ configure(c *lossConfig) }

type lossConfig struct {
	reduction reduction
	smoothing float64
	ignore    int
	weights   *tensor.Tensor // of classes
	element   *tensor.Tensor // of single losses
	positive  *tensor.Tensor // of targets
	logs      bool           // targets are logarithms
}

func configured(opts []CrossEntropyOption) lossConfig {
	c := lossConfig{ignore: -100}
	for _, o := range opts {
		o.configure(&c)
	}
	return c
}

// reduction is what becomes of losses, an option of all.
type reduction uint8

const (
	averaged reduction = iota
	summed
	unreduced
	perRow // the sum over the size of the first dimension
)

func (r reduction) configure(c *lossConfig) { c.reduction = r }
func (r reduction) binary(c *lossConfig)    { c.reduction = r }
func (r reduction) diverge(c *lossConfig)   { c.reduction = r }

func (r reduction) of(losses *tensor.Tensor) *tensor.Tensor {
	switch r {
	case averaged:
		return losses.Mean()
	case summed:
		return losses.Sum()
	case perRow:
		return losses.Sum().Scale(1 / float64(losses.Dim(0)))
	}
	return losses
}

// labelling is an option of losses that have labels.
type labelling func(c *lossConfig)

func (l labelling) configure(c *lossConfig) { l(c) }

// Summed adds the losses up instead of averaging them.
func Summed() LossOption { return summed }

// Unreduced keeps one loss per label.
func Unreduced() LossOption { return unreduced }

// Smoothing mixes the labels of [CrossEntropy] with the uniform distribution, 0 ≤ s ≤ 1.
func Smoothing(s float64) CrossEntropyOption {
	if !(s >= 0 && s <= 1) {
		tensor.Raise("nn.Smoothing", "0 ≤ smoothing ≤ 1", "smoothing %v", s)
	}
	return labelling(func(c *lossConfig) { c.smoothing = s })
}

// Ignore gives rows with this label no loss in [CrossEntropy]; the default is -100.
func Ignore(label int) CrossEntropyOption {
	return labelling(func(c *lossConfig) { c.ignore = label })
}

// ClassWeights scales the loss of each label in [CrossEntropy] and [NLL] by its class's weight, of w[classes]. The mean
// is over the sum of the labels' weights.
func ClassWeights(w *tensor.Tensor) CrossEntropyOption {
	return labelling(func(c *lossConfig) { c.weights = w })
}

// CrossEntropy is the loss of logits [..., classes] against class numbers [...]: -log softmax(logits)[label], averaged
// over the labels that are not ignored. The class dimension is the last: PyTorch's [n, classes, d...] is permuted first.
// Without any label the mean is NaN. Targets that are floating, of the logits' shape, are the classes' probabilities p:
// -Σ p·log softmax(logits), averaged over all rows.
func CrossEntropy(logits, labels *tensor.Tensor, opts ...CrossEntropyOption) *tensor.Tensor {
	c := configured(opts)
	if logits.SameShape(labels) && labels.DType().IsFloat() && logits.Rank() > 0 {
		return c.soft(logits, labels)
	}
	labelled("nn.CrossEntropy", "logits", logits, labels)
	if c.weights != nil {
		return c.weighted("nn.CrossEntropy", logits, labels, wide(logits).LogSoftmax(-1))
	}
	flat := labels.Reshape(labels.Size())
	rows := logits.Reshape(labels.Size(), logits.Dim(-1))
	if c.reduction == averaged {
		return rows.CrossEntropyMean(flat, c.smoothing, c.ignore)
	}
	return c.reduction.of(rows.CrossEntropy(flat, c.smoothing, c.ignore).Reshape(labels.Shape()...))
}

// labelled refuses labels that do not belong to values by class.
func labelled(op, what string, values, labels *tensor.Tensor) {
	if values.Rank() == 0 || !slices.Equal(labels.Shape(), values.Shape()[:values.Rank()-1]) {
		tensor.Raise(op, what+" are [..., classes], labels [...]", what+" %v with labels %v", values.Shape(), labels.Shape())
	}
}

// wide is x in no fewer than 32 bits.
func wide(x *tensor.Tensor) *tensor.Tensor {
	if d := x.DType(); d == dtype.F16 || d == dtype.BF16 {
		return x.Cast(dtype.F32)
	}
	return x
}

// NLL is the loss of log-probabilities [..., classes] against class numbers [...]: -logp[label], averaged over the labels
// that are not ignored, with [ClassWeights] by their weights. It takes no [Smoothing].
func NLL(logp, labels *tensor.Tensor, opts ...CrossEntropyOption) *tensor.Tensor {
	c := configured(opts)
	labelled("nn.NLL", "log-probabilities", logp, labels)
	if c.smoothing != 0 {
		tensor.Raise("nn.NLL", "use nn.CrossEntropy of logits", "smoothing %v", c.smoothing)
	}
	return c.weighted("nn.NLL", logp, labels, logp.AutoWide())
}

// weighted is the loss of log-probabilities logp, which were made of x.
func (c *lossConfig) weighted(op string, x, labels, logp *tensor.Tensor) *tensor.Tensor {
	classes := x.Dim(-1)
	return tensor.Join(logp, labels).Env().Tidy(func(e *tensor.Env) *tensor.Tensor {
		rows, flat := logp.In(e).Reshape(labels.Size(), classes), labels.Reshape(labels.Size())
		seen := flat.Ne(e.FullOf(flat.DType(), float64(c.ignore)))
		class := tensor.Where(seen, flat, flat.ZerosLike())
		zero := number(rows, 0)
		w := seen.Cast(rows.DType())
		if c.weights != nil {
			c.fits(op, classes)
			w = tensor.Where(seen, c.weights.Cast(rows.DType()).IndexSelect(0, class), zero)
		}
		picked := tensor.Where(seen, rows.Gather(1, class.Unsqueeze(1)).Squeeze(1), zero)
		losses := picked.Mul(w).Neg()
		if c.smoothing > 0 {
			all := rows
			if c.weights != nil {
				all = rows.Mul(c.weights.Cast(rows.DType()))
			}
			losses = losses.Lerp(tensor.Where(seen, all.Mean(1).Neg(), zero), c.smoothing)
		}
		if c.reduction == averaged {
			return losses.Sum().Div(w.Sum())
		}
		return c.reduction.of(losses.Reshape(labels.Shape()...))
	})
}

// fits refuses weights that are not one per class.
func (c *lossConfig) fits(op string, classes int) {
	if c.weights.Rank() != 1 || c.weights.Dim(0) != classes {
		tensor.Raise(op, "give a weight for each class", "weights %v for %d classes", c.weights.Shape(), classes)
	}
}

// soft is the cross entropy against probabilities.
func (c *lossConfig) soft(logits, p *tensor.Tensor) *tensor.Tensor {
	classes := logits.Dim(-1)
	return tensor.Join(logits, p).Env().Tidy(func(e *tensor.Env) *tensor.Tensor {
		logp := wide(logits.In(e)).LogSoftmax(-1)
		if p := p.Cast(logp.DType()); c.smoothing > 0 {
			logp = logp.Mul(p.Scale(1 - c.smoothing).AddScalar(c.smoothing / float64(classes)))
		} else {
			logp = logp.Mul(p)
		}
		if c.weights != nil {
			c.fits("nn.CrossEntropy", classes)
			logp = logp.Mul(c.weights.Cast(logp.DType()))
		}
		return c.reduction.of(logp.Sum(-1).Neg())
	})
}

// LinearCrossEntropy is [CrossEntropy] of hidden.Linear(weight, nil), hidden values [..., width] times a weight
// [classes, width], against labels [...], with the same options. It makes the logits of some rows at a time and keeps none,
// which with many classes saves most of a step's memory, and the gradients of hidden and weight with the loss, where these
// are recorded. It takes no [ClassWeights]. Under Autocast the logits are of its dtype, the loss is float32. [Unreduced] losses compute the logits twice.
func LinearCrossEntropy(hidden, weight, labels *tensor.Tensor, opts ...CrossEntropyOption) *tensor.Tensor {
	c := configured(opts)
	if hidden.Rank() == 0 || !slices.Equal(labels.Shape(), hidden.Shape()[:hidden.Rank()-1]) {
		tensor.Raise("nn.LinearCrossEntropy", "hidden values are [..., width], labels [...]", "hidden values %v with labels %v", hidden.Shape(), labels.Shape())
	}
	if c.weights != nil {
		tensor.Raise("nn.LinearCrossEntropy", "use nn.CrossEntropy of hidden.Linear(weight, nil)", "class weights")
	}
	flat := labels.Reshape(labels.Size())
	rows := hidden.Reshape(labels.Size(), hidden.Dim(-1))
	switch c.reduction {
	case averaged:
		return rows.LinearCrossEntropyMean(weight, flat, c.smoothing, c.ignore)
	case summed:
		total, _ := rows.LinearCrossEntropyTotal(weight, flat, c.smoothing, c.ignore)
		return total
	}
	return rows.LinearCrossEntropy(weight, flat, c.smoothing, c.ignore).Reshape(labels.Shape()...)
}

// MSE is the mean of (x - target)².
func MSE(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.MSE", x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(),
		func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(target) },
		(*tensor.Tensor).Square,
		reducing(opts))
}

// reducing is what the options make of losses: the mean, or another.
func reducing(opts []LossOption) func(*tensor.Tensor) *tensor.Tensor {
	var c lossConfig
	for _, o := range opts {
		o.configure(&c)
	}
	return c.reduction.of
}

func sameShape(op string, x, target *tensor.Tensor) {
	if !x.SameShape(target) {
		tensor.Raise(op, "give one target for each value", "values %v with targets %v", x.Shape(), target.Shape())
	}
}
