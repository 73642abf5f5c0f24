package nn

import (
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// LossOption changes any loss from its default.
type LossOption interface {
	CrossEntropyOption
	anyLoss()
}

// CrossEntropyOption changes [CrossEntropy] from its default. Every [LossOption] is one.
type CrossEntropyOption interface{ configure(c *lossConfig) }

type lossConfig struct {
	reduction reduction
	smoothing float64
	ignore    int
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
)

func (r reduction) configure(c *lossConfig) { c.reduction = r }
func (r reduction) anyLoss()                {}

func (r reduction) of(losses *tensor.Tensor) *tensor.Tensor {
	switch r {
	case averaged:
		return losses.Mean()
	case summed:
		return losses.Sum()
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

// CrossEntropy is the loss of logits [..., classes] against class numbers [...]: -log softmax(logits)[label], averaged
// over the labels that are not ignored. The class dimension is the last: PyTorch's [n, classes, d...] is permuted first.
// Without any label the mean is NaN.
func CrossEntropy(logits, labels *tensor.Tensor, opts ...CrossEntropyOption) *tensor.Tensor {
	c := configured(opts)
	if logits.Rank() == 0 || !slices.Equal(labels.Shape(), logits.Shape()[:logits.Rank()-1]) {
		tensor.Raise("nn.CrossEntropy", "logits are [..., classes], labels [...]", "logits %v with labels %v", logits.Shape(), labels.Shape())
	}
	flat := labels.Reshape(labels.Size())
	rows := logits.Reshape(labels.Size(), logits.Dim(-1))
	if c.reduction == averaged {
		return rows.CrossEntropyMean(flat, c.smoothing, c.ignore)
	}
	return c.reduction.of(rows.CrossEntropy(flat, c.smoothing, c.ignore).Reshape(labels.Shape()...))
}

// LinearCrossEntropy is [CrossEntropy] of hidden.Linear(weight, nil), hidden values [..., width] times a weight
// [classes, width], against labels [...], with the same options. It makes the logits of some rows at a time and keeps none,
// which with many classes saves most of a step's memory, and the gradients of hidden and weight with the loss, where these
// are recorded. Under Autocast the logits are of its dtype, the loss is float32. [Unreduced] losses compute the logits twice.
func LinearCrossEntropy(hidden, weight, labels *tensor.Tensor, opts ...CrossEntropyOption) *tensor.Tensor {
	c := configured(opts)
	if hidden.Rank() == 0 || !slices.Equal(labels.Shape(), hidden.Shape()[:hidden.Rank()-1]) {
		tensor.Raise("nn.LinearCrossEntropy", "hidden values are [..., width], labels [...]", "hidden values %v with labels %v", hidden.Shape(), labels.Shape())
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

// BCEWithLogits is the mean of -target·log σ(x) - (1-target)·log(1-σ(x)), σ the sigmoid, computed without overflow as
// x·([x ≥ 0] - target) + log(1 + e^-|x|). Both terms bend at 0, to the same side, so that derivatives of every order are
// right there. Targets are numbers from 0 to 1 or bools.
func BCEWithLogits(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.BCEWithLogits", x, target)
	if !target.DType().IsFloat() {
		target = target.Cast(x.DType())
	}
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		positive := x.Ge(x.Env().FullOf(x.DType(), 0))
		excess := tensor.Chain(tensor.Join(x, positive),
			func(x *tensor.Tensor) *tensor.Tensor { return tensor.Where(positive, x.Neg(), x) },
			(*tensor.Tensor).Exp, (*tensor.Tensor).Log1p)
		return x.Mul(positive.Cast(x.DType()).Sub(target)).Add(excess)
	}, reducing(opts))
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
