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
	reduce    func(*tensor.Tensor) *tensor.Tensor // nil: the mean
	smoothing float64
	ignore    int
}

// reduction is an option of all losses.
type reduction func(*tensor.Tensor) *tensor.Tensor

func (r reduction) configure(c *lossConfig) { c.reduce = r }
func (r reduction) anyLoss()                {}

// labelling is an option of losses that have labels.
type labelling func(c *lossConfig)

func (l labelling) configure(c *lossConfig) { l(c) }

// Summed adds the losses up instead of averaging them.
func Summed() LossOption {
	return reduction(func(t *tensor.Tensor) *tensor.Tensor { return t.Sum() })
}

// Unreduced keeps one loss per label.
func Unreduced() LossOption {
	return reduction(func(t *tensor.Tensor) *tensor.Tensor { return t })
}

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
	c := lossConfig{ignore: -100}
	for _, o := range opts {
		o.configure(&c)
	}
	if logits.Rank() == 0 || !slices.Equal(labels.Shape(), logits.Shape()[:logits.Rank()-1]) {
		tensor.Raise("nn.CrossEntropy", "logits are [..., classes], labels [...]", "logits %v with labels %v", logits.Shape(), labels.Shape())
	}
	flat := labels.Reshape(labels.Size())
	losses := logits.Reshape(labels.Size(), logits.Dim(-1)).CrossEntropy(flat, c.smoothing, c.ignore)
	if c.reduce != nil {
		return c.reduce(losses.Reshape(labels.Shape()...))
	}
	counted := flat.Ne(flat.Env().FullOf(flat.DType(), float64(c.ignore))).Sum()
	return losses.Sum().Div(counted.Cast(losses.DType()))
}

// MSE is the mean of (x - target)².
func MSE(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.MSE", x, target)
	return reduced(x.Sub(target).Square(), opts)
}

// BCEWithLogits is the mean of -target·log σ(x) - (1-target)·log(1-σ(x)), σ the sigmoid, computed without overflow as
// max(x, 0) - x·target + log(1 + e^-|x|). Targets are numbers from 0 to 1 or bools.
func BCEWithLogits(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.BCEWithLogits", x, target)
	if !target.DType().IsFloat() {
		target = target.Cast(x.DType())
	}
	// At 0 Maximum passes half of the gradient, which is right; ReLU passes none.
	positive := x.Maximum(x.Env().FullOf(x.DType(), 0))
	return reduced(positive.Sub(x.Mul(target)).Add(x.Abs().Neg().Exp().Log1p()), opts)
}

func reduced(losses *tensor.Tensor, opts []LossOption) *tensor.Tensor {
	var c lossConfig
	for _, o := range opts {
		o.configure(&c)
	}
	if c.reduce != nil {
		return c.reduce(losses)
	}
	return losses.Mean()
}

func sameShape(op string, x, target *tensor.Tensor) {
	if !x.SameShape(target) {
		tensor.Raise(op, "give one target for each value", "values %v with targets %v", x.Shape(), target.Shape())
	}
}
