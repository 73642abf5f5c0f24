package nn

import (
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
	return &LayerNorm{Weight: NewParam(env.Ones(shape...)), Bias: NewParam(env.Zeros(shape...)), Eps: 1e-5}
}

// Forward normalises.
func (l *LayerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return note(l, x, x.LayerNorm(l.Weight, l.Bias, l.Eps))
}

// RMSNorm divides by the root of the mean square over the last dimensions: y = x / √(mean(x²) + Eps) · weight.
type RMSNorm struct {
	Weight *tensor.Tensor `nn:"weight"` // of the normalised shape
	Eps    float64
}

// NewRMSNorm normalises over dimensions of the given shape. Eps is float32's machine epsilon, 2⁻²³; published models
// have their own.
func NewRMSNorm(env *tensor.Env, shape ...int) *RMSNorm {
	return &RMSNorm{Weight: NewParam(env.Ones(shape...)), Eps: 0x1p-23}
}

// Forward normalises.
func (l *RMSNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	return note(l, x, x.RMSNorm(l.Weight, l.Eps))
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
}

// NewBatchNorm normalises channels with Eps 1e-5 and Momentum 0.1.
func NewBatchNorm(env *tensor.Env, channels int) *BatchNorm {
	return &BatchNorm{
		Weight: NewParam(env.Ones(channels)), Bias: NewParam(env.Zeros(channels)),
		RunningMean: tensor.NewBuffer(env.Zeros(channels)), RunningVar: tensor.NewBuffer(env.Ones(channels)),
		Batches: tensor.NewBuffer(env.FullOf(dtype.I64, 0)),
		Eps:     1e-5, Momentum: 0.1,
	}
}

// Forward normalises and, in training, updates the running statistics.
func (l *BatchNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !x.Env().Training() {
		return note(l, x, x.BatchNormEval(l.RunningMean, l.RunningVar, l.Weight, l.Bias, l.Eps))
	}
	y, mean, variance := x.BatchNorm(l.Weight, l.Bias, l.Eps)
	n := x.Size() / max(x.Dim(1), 1)
	if n == 1 {
		tensor.Raise("nn.BatchNorm", "use a larger batch, or x.In(env.Eval())", "one value per channel in training, shape %v", x.Shape())
	}
	if !x.Env().Recomputing() {
		l.track(x.Env(), mean, variance.Scale(float64(n)/float64(n-1)))
	}
	return note(l, x, y)
}

// track moves the running statistics.
func (l *BatchNorm) track(env *tensor.Env, mean, variance *tensor.Tensor) {
	l.RunningMean.LerpInPlace(mean, l.Momentum)
	l.RunningVar.LerpInPlace(variance, l.Momentum)
	l.Batches.AddInPlace(env.FullOf(dtype.I64, 1))
}
