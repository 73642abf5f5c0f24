package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Calibration compares how sure a classifier is with how often it is right. Sums grow on the device.
type Calibration struct {
	bins int
	sums *tensor.Tensor // float64 [3·bins]: samples, the sum of their confidence, those that are right
}

// NewCalibration has bins of equal width, of which each takes confidences above its lower edge up to its upper one; 15 is usual.
func NewCalibration(env *tensor.Env, bins int) *Calibration {
	if bins < 1 {
		tensor.Raise("metric.NewCalibration", "give at least 1; 15 is usual", "%d bins", bins)
	}
	c := &Calibration{bins: bins}
	env.Tidy(func(e *tensor.Env) *tensor.Tensor {
		c.sums = tensor.NewBuffer(e.FullOf(dtype.F64, 0, 3*bins))
		return nil
	})
	return c
}

// Add counts probabilities [..., classes] (a softmax, no logits) against labels [...]. It waits for nothing.
func (c *Calibration) Add(probabilities, labels *tensor.Tensor) {
	apart(probabilities, func(p *tensor.Tensor) {
		n := float64(c.bins)
		sure := tensor.Chain(p, func(p *tensor.Tensor) *tensor.Tensor { return p.Max(-1).Flatten(0).Cast(dtype.F64) })
		right := tensor.Chain(p, func(p *tensor.Tensor) *tensor.Tensor { return p.ArgMax(-1).Eq(labels).Cast(dtype.F64).Flatten(0) })
		at := tensor.Chain(sure, func(s *tensor.Tensor) *tensor.Tensor {
			return s.Scale(n).Ceil().AddScalar(-1).Clamp(0, n-1).Cast(dtype.I64)
		}, func(bin *tensor.Tensor) *tensor.Tensor {
			return tensor.Cat(0, bin, bin.AddScalar(n), bin.AddScalar(2*n))
		})
		c.sums.CopyInPlace(c.sums.ScatterAdd(0, at, tensor.Cat(0, sure.FullLike(1), sure, right)))
	})
}

// apart runs count on x without a graph. What it computes is gone when it is done.
func apart(x *tensor.Tensor, count func(x *tensor.Tensor)) {
	x.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		count(x.Detach().In(e))
		return nil
	})
}

// Bin is one range of confidence.
type Bin struct {
	Samples              int
	Confidence, Accuracy float64 // means; NaN of an empty bin
}

// Bins are the ranges from 0 to 1: a reliability diagram. It waits for the device.
func (c *Calibration) Bins() []Bin {
	s := c.sums.Floats()
	out := make([]Bin, c.bins)
	for i := range out {
		n := s[i]
		out[i] = Bin{int(n), s[c.bins+i] / n, s[2*c.bins+i] / n}
	}
	return out
}

// Error is the expected calibration error: the distance of accuracy and confidence, weighted by the bins' samples (Guo et al., 2017).
// NaN when nothing was counted. It waits for the device.
func (c *Calibration) Error() float64 {
	sum, all := 0.0, 0
	for _, b := range c.Bins() {
		if b.Samples > 0 {
			sum += float64(b.Samples) * math.Abs(b.Accuracy-b.Confidence)
			all += b.Samples
		}
	}
	return sum / float64(all)
}

// clear empties the bins, which keep their memory.
func (c *Calibration) clear() { clearSums(c.sums) }

// Merge adds what another with as many bins has counted, on any device. It waits for that device.
func (c *Calibration) Merge(o *Calibration) {
	if o.bins != c.bins {
		tensor.Raise("Calibration.Merge", "merge those of equal bins", "%d bins and %d", c.bins, o.bins)
	}
	sums := o.sums.Floats()
	c.sums.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		c.sums.AddInPlace(tensor.From(e, sums, len(sums)))
		return nil
	})
}

// String tells the number of bins; only Error and Bins read the figures.
func (c *Calibration) String() string { return fmt.Sprintf("calibration in %d bins", c.bins) }
