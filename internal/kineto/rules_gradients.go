package kineto

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/finding"
)

// leastSums is how many gradients show that none is ever zeroed.
const leastSums = 10

// summed is how many gradients backward computed in the steps that are looked at, how many of them it added to older ones, and
// how many operators filled a tensor with zeros.
func (a *analysis) summed() (all, added, zeros int) {
	var within *event
	counted := false
	for _, i := range a.opOrder() {
		e := &a.ops[i]
		if e.start < a.marked.Start || e.start >= a.marked.End {
			continue
		}
		switch {
		case a.class(e)&isAccumulate != 0:
			within, counted = e, false
			all++
		case a.Name(e) == "aten::add_" && within != nil && !counted && within.track == e.track && e.end() <= within.end():
			counted = true
			added++
		case a.class(e)&isZeros != 0:
			zeros++
		}
	}
	return all, added, zeros
}

// backward tells that the gradients of several steps of the optimizer were recorded.
func (a *analysis) backward() bool {
	all, _, _ := a.summed()
	return a.stepped() && len(a.marks(isOptim)) > 1 && all >= leastSums
}

// neverZeroed: where gradients are set to none or zeroed, the first pass behind each step of the optimizer adds to none.
func neverZeroed(a *analysis) *finding.Finding {
	all, added, zeros := a.summed()
	steps := len(a.marks(isOptim))
	if added < all || zeros*2*steps >= all || len(a.marks(isZeroing)) > 0 {
		return nil
	}
	return &finding.Finding{
		Title: "Gradients are never zeroed: each step of the optimizer takes the sum of all batches so far",
		Evidence: []finding.Evidence{counted("added", added, "all %d gradients that backward computes in %s are added to older ones", all, a.windowText()),
			counted("optimizer_steps", steps, "%d steps of the optimizer, and no zero_grad() between them", steps)},
		Fix:         "optimizer.zero_grad(set_to_none=True) behind each optimizer.step()",
		Gain:        finding.Gain{Text: "a training that follows its batches: the sum grows from step to step, and the loss diverges"},
		Confidence:  finding.Medium,
		DisprovedBy: "param.grad is None, or zero, before backward",
	}
}

// zeroes tells that zero_grad and what it launches were recorded.
func (a *analysis) zeroes() bool {
	return a.stepped() && len(a.marks(isZeroing)) > 0 && a.launchesSeen()
}

// zeroing: a gradient that is none needs no zeros, and no addition.
func zeroing(a *analysis) *finding.Finding {
	ranges := a.ranges(isZeroing).in(a.marked)
	n, ns := 0, int64(0)
	inside := make([]bool, a.tail-a.first)
	for i := a.first; i < a.tail; i++ {
		if l := a.launched(i); l != nil && len(touching(ranges, Window{l.start, l.start + 1})) > 0 {
			n++
			ns += a.device[i].dur
			inside[i-a.first] = true
		}
	}
	if n == 0 {
		return nil
	}
	gain := a.gain(change{without: ranges, scale: func(i int) float64 {
		if inside[i-a.first] {
			return 0
		}
		return 1
	}})
	if !a.worth(gain) {
		return nil
	}
	return &finding.Finding{
		Title:       fmt.Sprintf("Gradients are filled with zeros, which takes the device %s %s", duration(a.perStep(ns)), a.each()),
		Evidence:    []finding.Evidence{timing("zeroing", a.perStep(ns), "%d kernels and memory sets that zero_grad launches in %s, %s %s", n, a.windowText(), duration(a.perStep(ns)), a.each())},
		Fix:         "optimizer.zero_grad(set_to_none=True), which is PyTorch's own way since 2.0",
		Gain:        a.saves(gain, "without these, by a replay of the timeline; between steps the gradients' memory is free, too"),
		Confidence:  finding.High,
		DisprovedBy: "the program needs gradients that are there: it reads param.grad of parameters without one",
	}
}
