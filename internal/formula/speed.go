package formula

import (
	"cmp"
	"math"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
)

// MFU is the share of a card's peak that training reaches at so many tokens a second on one device: the model's FLOPs, nothing
// that is computed again. Half is as of [Decoder.FLOPs].
func MFU(m Model, context int, half bool, tokens, peak float64) float64 {
	return m.FLOPs(context, half) / float64(context) * tokens / peak
}

// Efficiency is the share of the peak that products are taken to reach where nobody says, between the ends of the range: large
// ones of 16 bits reach 0.78 to 0.87 on A100, H100 and B200 (Stas Bekman, Machine Learning Engineering), those of a model less.
const (
	Efficiency = .6
	leastShare = .4
	mostShare  = .8
)

// What a card's memory and its links reach of their peaks: 235 of 300 GB/s of NVLink, as NCCL's tests have it.
const (
	memoryShare = .8
	linkShare   = .78
	behind      = 2. / 3 // share of a step, its backward pass, behind which gradients travel
)

// Time is how long a step takes by a roofline, in seconds.
type Time struct {
	Products      float64 // FLOPs over the share of the peak
	Memory        float64 // activations written, read, and the same for their gradients
	Optimizer     float64 // weights, gradients and states, by memory
	Communication float64 // all; Exposed is what the backward pass does not hide
	Exposed       float64
	Step          float64 // Products, Memory, Optimizer and Exposed
	Low, High     float64

	Peak  float64 // FLOP/s that Products are measured by
	Model float64 // FLOPs of a step of this device, for MFU: without what is computed again
}

// Peak is a card's rate for products of a precision, FLOP/s; float32 without tensor cores where it has none for them.
func Peak(card *cards.Card, amp AMP) float64 {
	rate := 0.0
	switch amp {
	case BF16:
		rate = card.TensorPeak(cards.BFloat16)
	case FP16:
		rate = card.TensorPeak(cards.Float16)
	case TF32:
		rate = card.TensorPeak(cards.TF32)
	}
	if rate == 0 {
		return card.Vector()
	}
	return rate
}

// Last is how long a step lasts on a card where products reach a share of their peak; 0 is Efficiency, with a range of its own.
// Waiting for launches and for the loader is not in it.
func Last(m Model, given Setup, card *cards.Card, efficiency float64) (*Time, error) {
	s, c, err := counted(m, given)
	if err != nil {
		return nil, err
	}
	if efficiency < 0 || efficiency > 1 || math.IsNaN(efficiency) {
		return nil, advice.Failf("as in --efficiency 40%", "a share of the peak of %v", efficiency)
	}
	low, high := Shares(efficiency)
	efficiency = cmp.Or(efficiency, Efficiency)
	x := &Time{Peak: Peak(card, s.AMP)}
	parts := float64(s.Accumulate)
	x.Model = parts * c.flops
	work := parts * (c.flops + c.again) / x.Peak
	x.Memory = parts * 4 * float64(c.kept) / bandwidth(card)
	x.Optimizer = s.update(c) / bandwidth(card)
	x.Communication, x.Exposed = s.communication(c, card, work/efficiency)
	step := func(share float64) float64 { return work/share + x.Memory + x.Optimizer + x.Exposed }
	x.Products, x.Step, x.Low, x.High = work/efficiency, step(efficiency), step(high), step(low)
	return x, nil
}

// Shares are the ends of the range around a share of the peak: a fifth less and more, or for 0 those of what nobody said.
func Shares(efficiency float64) (low, high float64) {
	if efficiency == 0 {
		return leastShare, mostShare
	}
	return efficiency * .8, min(1, efficiency*1.2)
}

func bandwidth(card *cards.Card) float64 { return memoryShare * 1e9 * float64(card.Bandwidth) }

// update is the bytes that an optimizer's step moves: states and weights in and out, gradients in.
func (s *Setup) update(c counts) float64 {
	w, g, o := s.perParameter()
	bytes := (2*(w+o) + g) * float64(c.parameters)
	if s.ZeRO > 0 {
		bytes /= float64(s.replicas())
	}
	return bytes
}

// communication is the seconds of what devices tell each other, and of them those that nothing hides: all of tensor
// parallelism's, and of the gradients' what is more than the backward pass.
func (s *Setup) communication(c counts, card *cards.Card, work float64) (all, exposed float64) {
	rate := 1e9 * float64(card.Link)
	if card.Peer > 0 {
		rate = linkShare * 1e9 * float64(card.Peer) / 2
	}
	ring := func(n int) float64 { return float64(n-1) / float64(n) }
	w, g, _ := s.perParameter()
	gradients := 2 * ring(s.replicas()) * g * float64(c.parameters)
	if s.ZeRO == 3 {
		gradients = 3 * ring(s.replicas()) * min(w, float64(s.bytes())) * float64(c.parameters) * float64(s.Accumulate)
	}
	layers := 2 * ring(s.TP) * float64(c.reduced) * float64(s.Accumulate)
	all = (gradients + layers) / rate
	return all, layers/rate + max(0, gradients/rate-behind*work)
}

// Fit is whether an estimate has room on a card.
type Fit string

// The answers: high and low are the ends of the estimate's range.
const (
	Yes      Fit = "yes"      // high does
	Likely   Fit = "likely"   // the total does, and high does not
	Unlikely Fit = "unlikely" // low does, and the total does not
	No       Fit = "no"       // not even low
	Open     Fit = "open"     // a floor does, which says little
)

// Fits tells whether an estimate fits on a card.
func (e *Estimate) Fits(card *cards.Card) Fit {
	switch {
	case e.Low > card.Memory:
		return No
	case e.Floor:
		return Open
	case e.High <= card.Memory:
		return Yes
	case e.Total <= card.Memory:
		return Likely
	}
	return Unlikely
}

// most samples of a part of a batch that anyone is told of.
const most = 1 << 20

// Largest is the largest batch, of as many parts as the setup's, whose total has room on a card, and the largest of which even
// the high end has; 0 where not even one sample has. A bare number of parameters has none: false.
func Largest(m Model, s Setup, card *cards.Card) (likely, sure int, ok bool, err error) {
	if _, bare := m.(Bare); bare {
		return 0, 0, false, nil
	}
	find := func(of func(e *Estimate) int64) int {
		return parts(s) * largest(func(n int) bool {
			if s.Batch = n * parts(s); uncountable(m, s) {
				return false
			}
			e, failed := New(m, s)
			if failed != nil {
				err = failed
			}
			return failed == nil && of(e) <= card.Memory
		})
	}
	likely = find(func(e *Estimate) int64 { return e.Total })
	sure = find(func(e *Estimate) int64 { return e.High })
	return likely, sure, true, err
}

// uncountable tells batches that are too large to be counted, and so for any card.
func uncountable(m Model, s Setup) bool { return s.Batch > 1<<31 || countable(m, &s) != nil }

func parts(s Setup) int { return max(s.Accumulate, 1) }

// largest is the largest n up to most for which fits says so, which says so of all that are less.
func largest(fits func(n int) bool) int {
	n := 0
	for step := most; step > 0; step /= 2 {
		if n+step <= most && fits(n+step) {
			n += step
		}
	}
	return n
}

// DeviceSeconds is how long one device takes for a number of FLOPs at a share of its peak.
func DeviceSeconds(flops float64, card *cards.Card, amp AMP, efficiency float64) float64 {
	return flops / (cmp.Or(efficiency, Efficiency) * Peak(card, amp))
}
