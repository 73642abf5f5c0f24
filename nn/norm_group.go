package nn

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// GroupNorm normalises each of some groups of channels of [n, c, ...], in each sample by itself:
// y = (x - mean) / √(variance + Eps) · weight + bias, weight and bias by channel (Wu and He, 2018).
type GroupNorm struct {
	Weight *tensor.Tensor `nn:"weight"` // [c], or nil
	Bias   *tensor.Tensor `nn:"bias"`   // [c], or nil
	Groups int
	Eps    float64
}

// NewGroupNorm normalises groups of channels with Eps 1e-5. For a layer without weights set Weight and Bias to nil.
func NewGroupNorm(env *tensor.Env, groups, channels int) *GroupNorm {
	if groups < 1 || channels%groups != 0 {
		tensor.Raise("nn.NewGroupNorm", "the channels must be a multiple of the groups", "%d channels in %d groups", channels, groups)
	}
	return &GroupNorm{full(env, 1, channels), full(env, 0, channels), groups, 1e-5}
}

// Forward normalises.
func (l *GroupNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	if x.Rank() < 2 || l.Groups < 1 || x.Dim(1)%l.Groups != 0 {
		tensor.Raise("nn.GroupNorm", "values are [batch, channels, ...], channels a multiple of the groups", "values %v in %d groups", x.Shape(), l.Groups)
	}
	return in.leave(inGroups(in.x, l.Groups, l.Weight, l.Bias, l.Eps))
}

// inGroups normalises groups of channels, then scales and shifts each channel; weights may be nil.
func inGroups(x *tensor.Tensor, groups int, weight, bias *tensor.Tensor, eps float64) *tensor.Tensor {
	shape := x.Shape()
	if x.Size() == 0 {
		return x
	}
	return tensor.Chain(x,
		func(x *tensor.Tensor) *tensor.Tensor {
			rows := x.Reshape(x.Dim(0)*groups, -1)
			return rows.LayerNorm(rows.Env().FullOf(rows.DType(), 1, rows.Dim(1)), nil, eps).Reshape(shape...)
		},
		func(y *tensor.Tensor) *tensor.Tensor { return channelAffine(y, weight, bias) })
}

// channelAffine is y·weight + bias by channel, either of which may be nil.
func channelAffine(y, weight, bias *tensor.Tensor) *tensor.Tensor {
	if weight != nil {
		y = y.Mul(channelwise(weight, y).Cast(y.DType()))
	}
	if bias != nil {
		y = y.Add(channelwise(bias, y).Cast(y.DType()))
	}
	return y
}

// InstanceNorm normalises each channel of each sample of [n, c, ...] by itself (Ulyanov et al., 2016). Where it tracks
// statistics it is evaluated with them. It serves sequences, pictures and volumes alike.
type InstanceNorm struct {
	Weight      *tensor.Tensor `nn:"weight"`                     // [c], or nil
	Bias        *tensor.Tensor `nn:"bias"`                       // [c], or nil
	RunningMean *tensor.Tensor `nn:"running_mean,buffer"`        // [c], or nil
	RunningVar  *tensor.Tensor `nn:"running_var,buffer"`         // [c], or nil
	Batches     *tensor.Tensor `nn:"num_batches_tracked,buffer"` // int64, or nil
	Eps         float64
	Momentum    float64
}

// InstanceNormConfig configures [NewInstanceNorm]. The zero value is PyTorch's default.
type InstanceNormConfig struct {
	Affine bool // with weight and bias
	Track  bool // with running statistics
}

// NewInstanceNorm normalises channels with Eps 1e-5 and Momentum 0.1.
func NewInstanceNorm(env *tensor.Env, channels int, c InstanceNormConfig) *InstanceNorm {
	l := &InstanceNorm{Eps: 1e-5, Momentum: 0.1}
	if c.Affine {
		l.Weight, l.Bias = full(env, 1, channels), full(env, 0, channels)
	}
	if c.Track {
		l.RunningMean, l.RunningVar = state(env, dtype.F32, 0, channels), state(env, dtype.F32, 1, channels)
		l.Batches = state(env, dtype.I64, 0)
	}
	return l
}

// Forward normalises and, in training of a layer with statistics, updates them.
func (l *InstanceNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	if x.Rank() < 3 {
		tensor.Raise("nn.InstanceNorm", "values are [batch, channels, ...]", "values %v", x.Shape())
	}
	x = in.x
	if l.RunningMean != nil && !x.Env().Training() {
		one := x.Env().FullOf(l.RunningMean.DType(), 1, x.Dim(1))
		y := x.BatchNormEval(l.RunningMean, l.RunningVar, one, one.ZerosLike(), l.Eps)
		return in.leave(channelAffine(y, l.Weight, l.Bias))
	}
	n := x.Size() / max(x.Dim(0)*x.Dim(1), 1)
	if n == 1 {
		tensor.Raise("nn.InstanceNorm", "give sequences or pictures of more than one value", "one value per channel, shape %v", x.Shape())
	}
	if l.RunningMean != nil && !x.Env().Recomputing() {
		l.track(x.Detach().Reshape(x.Dim(0), x.Dim(1), n), float64(n)/float64(n-1))
	}
	return in.leave(inGroups(x, x.Dim(1), l.Weight, l.Bias, l.Eps))
}

// track moves the running statistics towards the mean over samples of each channel's.
func (l *InstanceNorm) track(x *tensor.Tensor, unbiased float64) {
	x.Env().NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor {
		x = wide(x.In(e))
		tensor.TrackMomentsInPlace(l.RunningMean, l.RunningVar, l.Batches, x.Mean(2).Mean(0), x.Var(0, 2).Mean(0), l.Momentum, unbiased)
		return nil
	})
}
