package augment

import (
	"math"
	"math/rand/v2"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// MixUp mixes each picture of a batch with the one before it, and labels alike (Zhang et al., 2018): x·λ + x'·(1-λ) with λ of
// Beta(alpha, alpha), drawn for the batch. Targets are shares of classes [rows, classes].
func MixUp(b *data.Pair, classes int, alpha float64) (x, y *tensor.Tensor) {
	share := beta(mixRand("augment.MixUp", b, alpha), alpha)
	return mixed(b.X, share), mixed(oneHot(b.Y, classes), share)
}

// CutMix puts a rectangle of the picture before it into each picture of a batch [rows, channels, height, width], and mixes labels by its
// area (Yun et al., 2019), which is 1-λ with λ of Beta(alpha, alpha), cut off at the rim. It is drawn for the batch.
func CutMix(b *data.Pair, classes int, alpha float64) (x, y *tensor.Tensor) {
	r := mixRand("augment.CutMix", b, alpha)
	if b.X.Rank() != 4 {
		tensor.Raise("augment.CutMix", "give pictures [rows, channels, height, width]", "inputs of shape %v", b.X.Shape())
	}
	h, w := b.X.Dim(2), b.X.Dim(3)
	box := cutBox(beta(r, alpha), h, w, r)
	share := 1 - float64((box[1]-box[0])*(box[3]-box[2]))/float64(h*w)
	return pasted(b.X, box), mixed(oneHot(b.Y, classes), share)
}

// mixRand is the batch's own numbers.
func mixRand(op string, b *data.Pair, alpha float64) *rand.Rand {
	if !(alpha > 0) || math.IsInf(alpha, 1) {
		tensor.Raise(op, "give a number above 0; 1 is usual, 0.2 of MixUp", "alpha %v", alpha)
	}
	return rand.New(&rng.Stream{Key: rng.Key(b.Env.Key(mixPath))})
}

// mixPath keeps the numbers of mixing apart from those of microbatches.
const mixPath = 1 << 61

// before is each row's neighbour: the row before it, of the first the last.
func before(x *tensor.Tensor) *tensor.Tensor {
	n := x.Dim(0)
	return tensor.Cat(0, x.Slice(0, n-1, n), x.Slice(0, 0, n-1))
}

func mixed(x *tensor.Tensor, share float64) *tensor.Tensor {
	return x.Scale(share).Add(before(x).Scale(1 - share))
}

func oneHot(labels *tensor.Tensor, classes int) *tensor.Tensor {
	return labels.Unsqueeze(-1).Eq(labels.Env().Arange(classes)).Cast(dtype.F32)
}

// cutBox is a rectangle of 1-share of the area around a random place: from y, to y, from x, to x.
func cutBox(share float64, h, w int, r *rand.Rand) [4]int {
	x, y, half := r.IntN(w), r.IntN(h), 0.5*math.Sqrt(1-share)
	hw, hh := int(half*float64(w)), int(half*float64(h))
	return [4]int{max(y-hh, 0), min(y+hh, h), max(x-hw, 0), min(x+hw, w)}
}

// pasted is x with a rectangle of the rows before.
func pasted(x *tensor.Tensor, box [4]int) *tensor.Tensor {
	h, w := x.Dim(2), x.Dim(3)
	inside := make([]bool, h*w)
	for y := box[0]; y < box[1]; y++ {
		for k := box[2]; k < box[3]; k++ {
			inside[y*w+k] = true
		}
	}
	return tensor.Where(tensor.From(x.Env(), inside, h, w).Expand(x.Shape()...), before(x), x)
}

// beta is a number of Beta(a, a): a share of two numbers of Gamma(a).
func beta(r *rand.Rand, a float64) float64 {
	x, y := logGamma(r, a), logGamma(r, a)
	return 1 / (1 + math.Exp(y-x)) // in logarithms, as both may be too small for a float
}

// logGamma is the logarithm of a number of Gamma(a, 1) (Marsaglia and Tsang, 2000).
func logGamma(r *rand.Rand, a float64) float64 {
	if a < 1 {
		return logGamma(r, a+1) + math.Log(1-r.Float64())/a
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v = v * v * v; v > 0 && math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return math.Log(d * v)
		}
	}
}
