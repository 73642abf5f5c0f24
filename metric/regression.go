package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Regression measures predictions of numbers. Sums grow on the device, in float64. The zero value is empty.
type Regression struct {
	sums  *tensor.Tensor // of |e|, e², y-shift and (y-shift)², for e = prediction - target and the target y
	shift *tensor.Tensor // the mean of the first targets, which keeps the squares of large numbers with small differences apart
	n     int
}

// Add counts predictions and targets of one shape; each value counts. It waits for nothing.
func (r *Regression) Add(predictions, targets *tensor.Tensor) {
	if fmt.Sprint(predictions.Shape()) != fmt.Sprint(targets.Shape()) {
		tensor.Raise("Regression.Add", "give a prediction for each target, as by Squeeze or Reshape", "predictions of shape %v, targets of shape %v", predictions.Shape(), targets.Shape())
	}
	if targets.Size() == 0 {
		return
	}
	y := targets.Detach().Cast(dtype.F64)
	if r.n == 0 {
		r.begin(y)
	}
	err, off := predictions.Detach().Cast(dtype.F64).Sub(y), y.Sub(r.shift)
	r.sums.AddInPlace(tensor.Stack(0, err.Abs().Sum(), err.Square().Sum(), off.Sum(), off.Square().Sum()))
	r.n += targets.Size()
}

// begin makes the sums, or takes those that clear has left, by the first targets.
func (r *Regression) begin(y *tensor.Tensor) {
	y.Env().Tidy(func(e *tensor.Env) *tensor.Tensor {
		shift := y.In(e).Mean()
		if r.sums == nil || !beside(r.sums, y) {
			r.sums, r.shift = tensor.NewBuffer(e.FullOf(dtype.F64, 0, 4)), tensor.NewBuffer(shift)
			return nil
		}
		r.shift.CopyInPlace(shift)
		return nil
	})
}

// clear empties the errors, which keep their memory: copies share it.
func (r *Regression) clear() {
	clearSums(r.sums)
	r.n = 0
}

// Count is the number of values so far.
func (r *Regression) Count() int { return r.n }

// Errors are what [Regression] measures, NaN when nothing was counted.
type Errors struct {
	MAE  float64 // mean absolute error
	MSE  float64 // mean squared error
	RMSE float64 // its root
	R2   float64 // 1 - Σe² / Σ(y - ȳ)². Of targets that are all the same 1 if each is met and else 0, as in scikit-learn; NaN of fewer than 2
}

// Value is the errors so far. It waits for the device.
func (r *Regression) Value() Errors {
	if r.n == 0 {
		nan := math.NaN()
		return Errors{nan, nan, nan, nan}
	}
	s, n := r.sums.Floats(), float64(r.n)
	return Errors{s[0] / n, s[1] / n, math.Sqrt(s[1] / n), r2(s[1], s[3]-s[2]*s[2]/n, r.n)}
}

func r2(residual, spread float64, n int) float64 {
	switch {
	case n < 2:
		return math.NaN()
	case spread > 0:
		return 1 - residual/spread
	case residual == 0:
		return 1
	}
	return 0
}

// Merge adds what another has counted, on any device. It waits for both.
func (r *Regression) Merge(o *Regression) {
	if o.n == 0 {
		return
	}
	if r.n == 0 {
		o.sums.Env().Tidy(func(e *tensor.Env) *tensor.Tensor {
			*r = Regression{tensor.NewBuffer(o.sums.In(e).Clone()), tensor.NewBuffer(o.shift.In(e).Clone()), o.n}
			return nil
		})
		return
	}
	s, n := o.sums.Floats(), float64(o.n)
	d := o.shift.Item() - r.shift.Item()
	add := []float64{s[0], s[1], s[2] + n*d, s[3] + 2*d*s[2] + n*d*d}
	r.sums.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		r.sums.AddInPlace(tensor.From(e, add, len(add)))
		return nil
	})
	r.n += o.n
}

// String tells how many values were counted; only Value reads the figures.
func (r *Regression) String() string { return fmt.Sprintf("errors of %d values", r.n) }
