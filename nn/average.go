package nn

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Average is a running mean of a model's weights, which often does better than the weights that training has reached: one that
// forgets (Polyak and Juditsky, 1992), or one of equal shares (stochastic weight averaging; Izmailov et al., 2018).
//
//	mean := nn.NewEMA(model, 0.999)
//	for … {
//		opt.Step()
//		mean.Update()
//	}
//	y := mean.Model.Forward(x)
//
// It is PyTorch's AveragedModel, and saved under its names beside the model: struct{ Model, Mean }. Update waits for nothing and may be
// captured. Buffers are those of the model, unless Buffers asks for their mean. Means of weights in 16 bits have no room for what
// a step adds: average a model in float32.
type Average[T any] struct {
	Model   T              `nn:"module"`            // the mean, of weights of its own
	Count   *tensor.Tensor `nn:"n_averaged,buffer"` // int64, how often it was updated
	Buffers bool           // floating buffers are averaged too

	pairs [][2]*tensor.Tensor // of the model, and of the mean
	decay float64             // below 0: equal shares
}

// NewEMA begins a mean that after each Update is decay times what it was plus the rest of the weights. decay is from 0 to below 1;
// the first Update takes the weights as they are.
func NewEMA[T any](model T, decay float64) *Average[T] {
	if !(decay >= 0 && decay < 1) {
		tensor.Raise("nn.NewEMA", "give a number within", "the decay is %v, not in [0, 1)", decay)
	}
	return newAverage("nn.NewEMA", model, decay)
}

// NewSWA begins a mean in which the weights of each Update have the same share.
func NewSWA[T any](model T) *Average[T] { return newAverage("nn.NewSWA", model, -1) }

func newAverage[T any](op string, model T, decay float64) *Average[T] {
	a := &Average[T]{Model: Clone(model), decay: decay}
	for from, to := range Zip(model, a.Model) {
		a.pairs = append(a.pairs, [2]*tensor.Tensor{from, to})
	}
	for _, p := range Params(model) {
		a.Count = state(p.Env(), dtype.I64, 0)
		return a
	}
	tensor.Raise(op, "give a model with parameters", "a %T has none", model)
	return nil
}

// Update takes in the weights of the model that the mean was made of.
func (a *Average[T]) Update() {
	e, scope := a.Count.Env().NoGrad().Scope()
	defer scope.End()
	count := a.Count.In(e)
	n := count.Cast(dtype.F64)
	first, share := n.EqScalar(0), e.FullOf(dtype.F64, 1-a.decay)
	if a.decay < 0 {
		share = n.AddScalar(1).Reciprocal()
	}
	for _, p := range a.pairs {
		average(p[1], p[0], first, share, a.whole(p[0]))
	}
	count.CopyInPlace(count.AddScalar(1))
}

// UpdateBy takes in the weights by a share of the program's own, from 0 to 1, which is all of them: for a share that changes with the
// step, or a target network that follows slowly. Count stays. It is one operation for each parameter, and waits for nothing; a
// captured step repeats the share that it was recorded with.
func (a *Average[T]) UpdateBy(share float64) {
	if !(share >= 0 && share <= 1) {
		tensor.Raise("nn.UpdateBy", "give a number within", "the share is %v, not in [0, 1]", share)
	}
	for _, p := range a.pairs {
		if share == 1 || a.whole(p[0]) {
			p[1].CopyInPlace(p[0])
		} else {
			p[1].LerpInPlace(p[0], share)
		}
	}
}

// whole tells a tensor that is copied, not averaged.
func (a *Average[T]) whole(t *tensor.Tensor) bool {
	return !t.DType().IsFloat() || !t.IsParam() && !a.Buffers
}

// String tells which mean it is, of what.
func (a *Average[T]) String() string {
	if a.decay < 0 {
		return fmt.Sprintf("mean of equal shares of a %T", a.Model)
	}
	return fmt.Sprintf("mean of a %T that forgets %v of itself", a.Model, 1-a.decay)
}

// average moves to by a share towards from, or makes it that.
func average(to, from, first, share *tensor.Tensor, whole bool) {
	e, scope := to.Env().NoGrad().Scope()
	defer scope.End()
	was, now := to.In(e), from.Detach().To(e)
	if whole {
		was.CopyInPlace(now)
		return
	}
	mean := was.Add(now.Sub(was).Mul(share.To(e).Cast(was.DType())))
	was.CopyInPlace(tensor.Where(first.To(e), now, mean))
}
