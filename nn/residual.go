package nn

import "github.com/warpline-ml/warpline/tensor"

// A PairStep goes from two values to two: from x and f, which may be nil, of a residual stream x + f, to a sum and what is
// still to be added to it, or, on the way there, to a sum and its norm.
type PairStep = func(x, f *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor)

// Residual is a block of a residual stream that leaves its last sum to whoever comes next: its steps end with a sum and the
// result of its last branch. Its Forward adds them. Where blocks follow each other a norm takes the sum along.
type Residual interface {
	Module
	Steps() []PairStep
}

// AddAll runs blocks over x, one after the other, and leaves the last sum to the caller. It releases as [Sequential] does.
func AddAll[B Residual](x *tensor.Tensor, blocks []B) (sum, branch *tensor.Tensor) {
	var steps []PairStep
	for _, b := range blocks {
		steps = append(steps, ranged(b)...)
	}
	return tensor.ChainPair(x, nil, steps...)
}

// ranged are the steps of b in its range.
func ranged(b Residual) []PairStep {
	steps, in := b.Steps(), entered{}
	first, last := steps[0], len(steps)-1
	steps[0] = func(x, f *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
		in = Sequential{b}.enter(0, x)
		return first(in.x, f)
	}
	end := steps[last]
	steps[last] = func(x, f *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
		sum, branch := end(x, f)
		branch, sum = in.leavePair(sum, branch)
		return sum, branch
	}
	return steps
}
