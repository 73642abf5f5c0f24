package nn

import "github.com/warpline-ml/warpline/tensor"

// BinaryOption changes [BCE], [BCEWithLogits] and [Focal] from their default. Every [LossOption] is one.
type BinaryOption interface{ binary(c *lossConfig) }

// weighing is an option of losses that may weigh their elements.
type weighing func(c *lossConfig)

func (w weighing) binary(c *lossConfig) { w(c) }

// Weights scales single losses by w, which is broadcast to them. The mean is over their number still.
func Weights(w *tensor.Tensor) BinaryOption { return weighing(func(c *lossConfig) { c.element = w }) }

// PosWeight scales what [BCEWithLogits] has for the target 1 by w, which is broadcast: over 1 it raises recall, below 1
// precision.
func PosWeight(w *tensor.Tensor) BinaryOption {
	return weighing(func(c *lossConfig) { c.positive = w })
}

func binaryConfig(opts []BinaryOption) (c lossConfig) {
	for _, o := range opts {
		o.binary(&c)
	}
	return c
}

// weigh scales losses by the weights of elements, and reduces them.
func (c *lossConfig) weigh(losses *tensor.Tensor) *tensor.Tensor {
	if c.element != nil {
		losses = losses.Mul(c.element.Cast(losses.DType()))
	}
	return c.reduction.of(losses)
}

// BCEWithLogits is the mean of -target·log σ(x) - (1-target)·log(1-σ(x)), σ the sigmoid, computed without overflow as
// x·([x ≥ 0] - target) + log(1 + e^-|x|). Both terms bend at 0, to the same side, so that derivatives of every order are
// right there. Targets are numbers from 0 to 1 or bools.
func BCEWithLogits(x, target *tensor.Tensor, opts ...BinaryOption) *tensor.Tensor {
	c := binaryConfig(opts)
	target = floating("nn.BCEWithLogits", x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		if c.positive != nil {
			return positiveBCE(x, target, c.positive.Cast(x.DType()))
		}
		positive := x.Ge(number(x, 0))
		return x.Mul(positive.Cast(x.DType()).Sub(target)).Add(excess(x, positive))
	}, c.weigh)
}

// positiveBCE is (1-target)·x + (1 + (w-1)·target)·log(1 + e⁻ˣ).
func positiveBCE(x, target, w *tensor.Tensor) *tensor.Tensor {
	factor := w.AddScalar(-1).Mul(target).AddScalar(1)
	return x.Mul(target.Neg().AddScalar(1)).Add(factor.Mul(softplus(x.Neg())))
}

// excess is log(1 + e^-|x|), which softplus is more than max(x, 0), where positive tells x ≥ 0.
func excess(x, positive *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(tensor.Join(x, positive),
		func(x *tensor.Tensor) *tensor.Tensor { return tensor.Where(positive, x.Neg(), x) },
		(*tensor.Tensor).Exp, (*tensor.Tensor).Log1p)
}

// softplus is log(1 + eˣ), without overflow, and with derivatives of every order at 0.
func softplus(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		positive := x.Ge(number(x, 0))
		return tensor.Where(positive, x, number(x, 0)).Add(excess(x, positive))
	})
}

// floating is target, of x's shape, as numbers.
func floating(op string, x, target *tensor.Tensor) *tensor.Tensor {
	sameShape(op, x, target)
	if !target.DType().IsFloat() {
		return target.Cast(x.DType())
	}
	return target
}

// number is v without dimensions, in x's dtype.
func number(x *tensor.Tensor, v float64) *tensor.Tensor { return x.Env().FullOf(x.DType(), v) }

// BCE is the mean of -target·log p - (1-target)·log(1-p) of probabilities p. As in PyTorch no logarithm is below -100.
// Targets are numbers from 0 to 1 or bools. It takes no [PosWeight]. [BCEWithLogits] is more exact.
func BCE(p, target *tensor.Tensor, opts ...BinaryOption) *tensor.Tensor {
	c := binaryConfig(opts)
	if c.positive != nil {
		tensor.Raise("nn.BCE", "use nn.BCEWithLogits", "a weight of positive targets")
	}
	target = floating("nn.BCE", p, target)
	return tensor.Chain(tensor.Join(p, target).AutoWide(), func(p *tensor.Tensor) *tensor.Tensor {
		least := number(p, -100)
		no := p.Neg()
		return target.AddScalar(-1).Mul(no.Log1p().Maximum(least)).Sub(target.Mul(p.Log().Maximum(least)))
	}, c.weigh)
}

// Focal is the focal loss of logits x (Lin et al., 2017): the mean of a·(1-q)^gamma·[BCEWithLogits], where q is σ(x) for
// the target 1 and 1-σ(x) for 0, and a is alpha and 1-alpha, or 1 for a negative alpha. The paper's are alpha 0.25 and
// gamma 2. It takes no [PosWeight].
func Focal(x, target *tensor.Tensor, alpha, gamma float64, opts ...BinaryOption) *tensor.Tensor {
	c := binaryConfig(opts)
	if gamma < 0 || alpha > 1 || c.positive != nil {
		tensor.Raise("nn.Focal", "0 ≤ gamma, alpha ≤ 1, and alpha in place of a weight of positive targets", "alpha %v and gamma %v", alpha, gamma)
	}
	target = floating("nn.Focal", x, target)
	return tensor.Chain(tensor.Join(x, target).AutoWide(), func(x *tensor.Tensor) *tensor.Tensor {
		loss := BCEWithLogits(x, target, Unreduced())
		p := x.Sigmoid()
		missed := p.Add(target).Sub(p.Mul(target).Scale(2)) // 1-q
		loss = missed.PowScalar(gamma).Mul(loss)
		if alpha < 0 {
			return loss
		}
		return loss.Mul(target.Scale(2*alpha - 1).AddScalar(1 - alpha))
	}, c.weigh)
}
