package nn

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// LayerNorm normalises over the last dimensions: y = (x - mean) / √(variance + Eps) · weight + bias, with the biased
// variance.
type LayerNorm struct {
	Weight *tensor.Tensor `nn:"weight"` // of the normalised shape
	Bias   *tensor.Tensor `nn:"bias"`   // of the normalised shape, or nil
	Eps    float64
}

// NewLayerNorm normalises over dimensions of the given shape, with Eps 1e-5.
func NewLayerNorm(env *tensor.Env, shape ...int) *LayerNorm {
	return &LayerNorm{Weight: full(env, 1, shape...), Bias: full(env, 0, shape...), Eps: 1e-5}
}

// Forward normalises.
func (l *LayerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(in.x.LayerNorm(l.Weight, l.Bias, l.Eps))
}

// ForwardAdd is the sum x + f, and its norm in the same pass. f may be nil: the sum is x then. See [tensor.Tensor.AddLayerNorm].
func (l *LayerNorm) ForwardAdd(x, f *tensor.Tensor) (sum, y *tensor.Tensor) {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	sum, y = in.x.AddLayerNorm(f, l.Weight, l.Bias, l.Eps)
	return in.leavePair(y, sum)
}

// RMSNorm divides by the root of the mean square over the last dimensions: y = x / √(mean(x²) + Eps) · weight.
type RMSNorm struct {
	Weight *tensor.Tensor `nn:"weight"` // of the normalised shape
	Eps    float64
}

// NewRMSNorm normalises over dimensions of the given shape. Eps is float32's machine epsilon, 2⁻²³; published models
// have their own.
func NewRMSNorm(env *tensor.Env, shape ...int) *RMSNorm {
	return &RMSNorm{Weight: full(env, 1, shape...), Eps: 0x1p-23}
}

// Forward normalises.
func (l *RMSNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	return in.leave(in.x.RMSNorm(l.Weight, l.Eps))
}

// BatchNorm normalises each channel of [n, c, ...]: y = (x - mean) / √(variance + Eps) · weight + bias. In training mean
// and biased variance are the batch's, and the running statistics move towards them by Momentum, the variance unbiased;
// in evaluation the running statistics are used. It serves vectors, sequences and pictures alike.
type BatchNorm struct {
	Weight      *tensor.Tensor `nn:"weight"`                     // [c]
	Bias        *tensor.Tensor `nn:"bias"`                       // [c]
	RunningMean *tensor.Tensor `nn:"running_mean,buffer"`        // [c]
	RunningVar  *tensor.Tensor `nn:"running_var,buffer"`         // [c]
	Batches     *tensor.Tensor `nn:"num_batches_tracked,buffer"` // int64, training batches seen
	Eps         float64
	Momentum    float64
	Act         tensor.Act // applied in the same pass: ActReLU, or nothing

	pass *int // of [UpdateBatchNorm], the batches so far; nil: Momentum says how far statistics move
}

// NewBatchNorm normalises channels with Eps 1e-5 and Momentum 0.1.
func NewBatchNorm(env *tensor.Env, channels int) *BatchNorm {
	return &BatchNorm{
		Weight: full(env, 1, channels), Bias: full(env, 0, channels),
		RunningMean: state(env, dtype.F32, 0, channels), RunningVar: state(env, dtype.F32, 1, channels),
		Batches: state(env, dtype.I64, 0),
		Eps:     1e-5, Momentum: 0.1,
	}
}

// Forward normalises, applies Act and, in training, updates the running statistics.
func (l *BatchNorm) Forward(x *tensor.Tensor) *tensor.Tensor { return l.ForwardAdd(x, nil) }

// ForwardAdd is Forward with a residual of x's shape added before Act, in the same pass.
func (l *BatchNorm) ForwardAdd(x, residual *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	needs(l, "bias", l.Bias)
	needs(l, "running mean", l.RunningMean)
	needs(l, "running variance", l.RunningVar)
	x = in.x
	if !x.Env().Training() {
		return in.leave(x.BatchNormEvalAct(l.RunningMean, l.RunningVar, l.Weight, l.Bias, residual, l.Act, l.Eps))
	}
	return in.leave(tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor { return l.train(x, residual) }))
}

// train normalises by the batch's statistics, and tracks them.
func (l *BatchNorm) train(x, residual *tensor.Tensor) *tensor.Tensor {
	y, mean, variance := x.BatchNormAct(l.Weight, l.Bias, residual, l.Act, l.Eps)
	n := x.Size() / max(x.Dim(1), 1)
	if n == 1 {
		tensor.Raise("nn.BatchNorm", "use a larger batch, or x.In(env.Eval())", "one value per channel in training, shape %v", x.Shape())
	}
	if !x.Env().Recomputing() {
		tensor.TrackMomentsInPlace(l.RunningMean, l.RunningVar, l.Batches, mean, variance, l.share(), float64(n)/float64(n-1))
	}
	return y
}

// String tells how many channels it normalises.
func (l *BatchNorm) String() string {
	if l.RunningMean == nil {
		return "BatchNorm without statistics"
	}
	return fmt.Sprintf("BatchNorm of %d channels", l.RunningMean.Size())
}

// share is how far the running statistics move towards a batch's.
func (l *BatchNorm) share() float64 {
	if l.pass == nil {
		return l.Momentum
	}
	*l.pass++
	return 1 / float64(*l.pass)
}

// UpdateBatchNorm gives the batch norms of a model new running statistics: means, with equal shares, over the batches that pass calls
// the model's Forward with, in an env that trains. Weights that are a mean of others, as those of [NewSWA] are, have had no batches.
//
//	nn.UpdateBatchNorm(mean.Model, func() {
//		for b, err := range data.Batches(env.NoGrad(), train, data.Config{Size: 128}) {
//			…
//			mean.Model.Forward(b.X)
//		}
//	})
//
// A norm that pass does not reach keeps mean 0 and variance 1. It is PyTorch's update_bn.
func UpdateBatchNorm(model any, pass func()) {
	const op = "nn.UpdateBatchNorm"
	if tensor.Capturing() {
		tensor.Raise(op, "call it after the captured step", "each run of a captured step would take the same share of its batch")
	}
	for m := range walk(op, model).modules {
		if l, ok := m.(*BatchNorm); ok {
			l.restart()
			defer func() { l.pass = nil }()
		}
	}
	pass()
}

// restart forgets the running statistics, and counts batches until pass is nil.
func (l *BatchNorm) restart() {
	e, scope := l.RunningMean.Env().NoGrad().Scope()
	defer scope.End()
	for t, v := range map[*tensor.Tensor]float64{l.RunningMean: 0, l.RunningVar: 1, l.Batches: 0} {
		t.In(e).CopyInPlace(e.FullOf(t.DType(), v, t.Shape()...))
	}
	l.pass = new(int)
}
