package nn

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// between is a loss of differences x - target.
func between(op string, x, target *tensor.Tensor, opts []LossOption, f func(d *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	sameShape(op, x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor { return x.Sub(target) }, f, reducing(opts))
}

// L1 is the mean of |x - target|.
func L1(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor {
	return between("nn.L1", x, target, opts, (*tensor.Tensor).Abs)
}

// SmoothL1 is the mean of |d| - beta/2, and of d²/(2·beta) where |d| < beta, d the difference; with beta 0 it is [L1].
// PyTorch's beta is 1.
func SmoothL1(x, target *tensor.Tensor, beta float64, opts ...LossOption) *tensor.Tensor {
	if !(beta >= 0) {
		tensor.Raise("nn.SmoothL1", "0 ≤ beta", "beta %v", beta)
	}
	if beta == 0 {
		return L1(x, target, opts...)
	}
	return between("nn.SmoothL1", x, target, opts, func(d *tensor.Tensor) *tensor.Tensor {
		a := d.Abs()
		return tensor.Where(a.Lt(number(a, beta)), d.Square().Scale(0.5/beta), a.AddScalar(-beta/2))
	})
}

// Huber is the mean of d²/2, and of delta·(|d| - delta/2) where |d| > delta, d the difference. PyTorch's delta is 1.
func Huber(x, target *tensor.Tensor, delta float64, opts ...LossOption) *tensor.Tensor {
	if !(delta > 0) {
		tensor.Raise("nn.Huber", "0 < delta", "delta %v", delta)
	}
	return between("nn.Huber", x, target, opts, func(d *tensor.Tensor) *tensor.Tensor {
		a := d.Abs()
		return tensor.Where(a.Le(number(a, delta)), d.Square().Scale(0.5), a.AddScalar(-delta/2).Scale(delta))
	})
}

// DivergenceOption changes [KLDiv] from its default. Every [LossOption] is one.
type DivergenceOption interface{ diverge(c *lossConfig) }

type diverging func(c *lossConfig)

func (d diverging) diverge(c *lossConfig) { d(c) }

// BatchMean adds the losses up and divides by the size of the first dimension, which is the divergence's definition.
func BatchMean() DivergenceOption { return diverging(func(c *lossConfig) { c.reduction = perRow }) }

// LogTargets says that the targets of [KLDiv] are logarithms, as its first operand is.
func LogTargets() DivergenceOption { return diverging(func(c *lossConfig) { c.logs = true }) }

// KLDiv is the mean over elements of target·(log target - logp), the Kullback-Leibler divergence of logp, the logarithm of
// a distribution, from target; where target is 0 it is 0. Use [BatchMean] for what the name says.
func KLDiv(logp, target *tensor.Tensor, opts ...DivergenceOption) *tensor.Tensor {
	var c lossConfig
	for _, o := range opts {
		o.diverge(&c)
	}
	sameShape("nn.KLDiv", logp, target)
	return tensor.Chain(tensor.Join(logp, target).AutoWide(), func(logp *tensor.Tensor) *tensor.Tensor {
		if c.logs {
			return target.Exp().Mul(target.Sub(logp))
		}
		none := target.Eq(number(target, 0))
		log := tensor.Where(none, number(target, 1), target).Log()
		return tensor.Where(none, number(target, 0), target.Mul(log)).Sub(target.Mul(logp))
	}, c.reduction.of)
}

// GaussianNLLConfig configures [GaussianNLL].
type GaussianNLLConfig struct {
	Full bool    // with the constant log(2π)/2
	Eps  float64 // least variance; 0 means 1e-6
}

// GaussianNLL is the mean of (log v + (mean - target)²/v)/2, the loss of a normal distribution with this mean and the
// variance v, which is broadcast to it and no smaller than Eps. As in PyTorch the bound is not seen by v's gradient.
func GaussianNLL(mean, target, variance *tensor.Tensor, c GaussianNLLConfig, opts ...LossOption) *tensor.Tensor {
	eps := c.Eps
	if eps == 0 {
		eps = 1e-6
	}
	return between("nn.GaussianNLL", mean, target, opts, func(d *tensor.Tensor) *tensor.Tensor {
		v := bounded(variance.Cast(d.DType()), eps)
		loss := v.Log().Add(d.Square().Div(v)).Scale(0.5)
		if c.Full {
			loss = loss.AddScalar(math.Log(2*math.Pi) / 2)
		}
		return loss
	})
}

// PoissonNLLConfig configures [PoissonNLL].
type PoissonNLLConfig struct {
	Rate bool    // the operand is the rate, not its logarithm
	Full bool    // with Stirling's approximation of log(target!), for targets over 1
	Eps  float64 // added to a rate before its logarithm; 0 means 1e-8
}

// PoissonNLL is the mean of eˣ - target·x, the loss of a Poisson distribution whose rate has the logarithm x.
func PoissonNLL(x, target *tensor.Tensor, c PoissonNLLConfig, opts ...LossOption) *tensor.Tensor {
	sameShape("nn.PoissonNLL", x, target)
	eps := c.Eps
	if eps == 0 {
		eps = 1e-8
	}
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		rate, log := x, x
		if c.Rate {
			log = x.AddScalar(eps).Log()
		} else {
			rate = x.Exp()
		}
		loss := rate.Sub(target.Mul(log))
		if !c.Full {
			return loss
		}
		over := target.Gt(number(target, 1))
		n := tensor.Where(over, target, number(target, 1))
		stirling := n.Mul(n.Log()).Sub(n).Add(n.Scale(2 * math.Pi).Log().Scale(0.5))
		return loss.Add(tensor.Where(over, stirling, number(target, 0)))
	}, reducing(opts))
}
