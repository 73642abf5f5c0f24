// Package metric measures models: accuracy, running means, perplexity, confusion matrices with precision, recall, F1 and IoU, errors of
// regression, calibration, areas under curves. Figures add up on the device, in its root scope; only reading one waits for it ([ROC] keeps
// scores on the host). Those of several devices or processes are merged. A metric may be used by one goroutine at a time.
package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// batchSize is what evaluation takes at once.
const batchSize = 256

// Scores are what [Evaluate] measures, as means over samples. They are NaN for an empty set.
type Scores struct {
	Accuracy float64 // share of samples whose largest logit is the label's
	Loss     float64 // cross-entropy
	Samples  int
}

// Evaluate runs a classifier over a whole set, in evaluation and without recording. Inputs are a batch's X, labels its Y;
// the model gives logits whose last dimension is the classes. The error is the set's.
func Evaluate(env *tensor.Env, model nn.Module, set data.Source[data.Pair]) (Scores, error) {
	var correct, loss Mean
	samples := 0
	for b, err := range data.Batches(env.NoGrad().Eval(), set, data.Config{Size: batchSize, Name: "evaluate"}) {
		if err != nil {
			return Scores{}, err
		}
		logits, n := model.Forward(b.X), b.Y.Size()
		correct.AddSum(Correct(logits, b.Y), n)
		loss.Add(nn.CrossEntropy(logits, b.Y), n)
		samples += b.X.Dim(0)
	}
	return Scores{correct.Value(), loss.Value(), samples}, nil
}

// Accuracy is the share of a set that a classifier gets right, as [Evaluate] measures it. It panics with a
// [tensor.Error] when the set cannot be read.
func Accuracy(env *tensor.Env, model nn.Module, set data.Source[data.Pair]) float64 {
	s, err := Evaluate(env, model, set)
	if err != nil {
		tensor.Raise("metric.Accuracy", "metric.Evaluate returns this as an error", "%v", err)
	}
	return s.Accuracy
}

// Correct is the number of labels [...] that are the largest of their logits [..., classes]: an int64 on the device.
func Correct(logits, labels *tensor.Tensor) *tensor.Tensor {
	return logits.Detach().ArgMax(-1).Eq(labels).Sum()
}

// CorrectTopK is the number of labels [...] that are among the k largest of their logits [..., classes]: an int64 on the device. Of
// equal logits the first classes count as larger, as for [Correct]; what is not comparable (NaN) is never right.
func CorrectTopK(logits, labels *tensor.Tensor, k int) *tensor.Tensor {
	classes := logits.Dim(-1)
	if k < 1 || k > classes {
		tensor.Raise("metric.CorrectTopK", fmt.Sprintf("give 1 to %d", classes), "the %d largest of %d logits", k, classes)
	}
	x, at := logits.Detach(), labels.Cast(dtype.I64).Unsqueeze(-1)
	own := x.Gather(-1, at)
	first := x.Env().Arange(classes).Lt(at)
	ahead := x.Le(own).Not().Or(x.Eq(own).And(first)) // of the label's
	return ahead.Cast(dtype.I64).Sum(-1).LtScalar(float64(k)).Sum()
}

// Mean is a mean that grows batch by batch. The zero value is empty.
type Mean struct {
	sum *tensor.Tensor // float64, in the root scope
	n   int
}

// Add counts v, one number that is the mean over n samples. It waits for nothing.
func (m *Mean) Add(v *tensor.Tensor, n int) { m.add(v, float64(n), n) }

// AddSum counts v, one number that is the sum over n samples. It waits for nothing.
func (m *Mean) AddSum(v *tensor.Tensor, n int) { m.add(v, 1, n) }

func (m *Mean) add(v *tensor.Tensor, factor float64, n int) {
	if m.sum == nil || m.n == 0 && !beside(m.sum, v) {
		m.sum = v.Env().Tidy(func(e *tensor.Env) *tensor.Tensor { return tensor.NewBuffer(e.FullOf(dtype.F64, 0)) })
	}
	if n > 0 {
		m.sum.AddScaledInPlace(v.Detach(), factor)
		m.n += n
	}
}

// Value is the mean so far, NaN when there is none. It waits for the device.
func (m *Mean) Value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum.Item() / float64(m.n)
}

// Count is the number of samples so far.
func (m *Mean) Count() int { return m.n }

// Merge adds what another mean has counted, on any device. It waits for that device.
func (m *Mean) Merge(o *Mean) {
	if o.n == 0 {
		return
	}
	sum := o.sum.Item()
	env := o.sum.Env()
	if m.sum != nil {
		env = m.sum.Env()
	}
	env.NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		m.AddSum(e.FullOf(dtype.F64, sum), o.n)
		return nil
	})
}

// Reset empties the mean. A copy that was made of it before stays as it is.
func (m *Mean) Reset() { *m = Mean{} }

// Clear empties the mean and keeps its memory, which copies of it share: for one that counts again and again, and is not copied.
func (m *Mean) Clear() {
	clearSums(m.sum)
	m.n = 0
}

// beside tells whether what grows on a device can take in v.
func beside(sums, v *tensor.Tensor) bool { return sums.Env().Device() == v.Env().Device() }

// clearSums sets what grows on the device to zero. A nil tensor, of what has counted nothing yet, is left alone.
func clearSums(t *tensor.Tensor) {
	if t != nil {
		t.FillInPlace(0)
	}
}

// Perplexity is the exponential of a mean loss: add cross-entropies in nats.
type Perplexity struct{ Mean }

// Value is the perplexity so far, NaN when there is none. It waits for the device.
func (p *Perplexity) Value() float64 { return math.Exp(p.Mean.Value()) }

// String tells how many samples the mean has; only Value reads it.
func (m *Mean) String() string { return fmt.Sprintf("mean over %d samples", m.n) }
