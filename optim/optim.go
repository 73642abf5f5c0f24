// Package optim updates parameters by their gradients and lets go of these, so that there is nothing to zero.
//
//	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3, Clip: 1})
//	loss.Backward()
//	report := opt.Step()
//
// Formulas and defaults are PyTorch's. Parameters are updated by one fused operation per device, dtype and set of
// rates. Moments live where their parameter does, in its device's root scope. A rate changes by SetLR, between steps:
//
//	schedule := optim.WarmupCosine(6e-4, 6e-5, 100, 5000)
//	for step := range 5000 {
//		opt.SetLR(schedule(step))
//		…
//	}
//
// A mistake panics with a [tensor.Error]. An optimizer may be used by one goroutine at a time.
package optim

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/tensor"
)

// Optimizer is what training loops and checkpoints need of an optimizer. It may be used by one goroutine at a time.
type Optimizer interface {
	// Step applies the gradients and drops them.
	Step() Report
	// Discard drops the gradients without applying them.
	Discard()
	// Offload has the state that it keeps in the host's memory between Steps.
	Offload()
	// LR is the learning rate of the next Step.
	LR() float64
	// SetLR changes it.
	SetLR(lr float64)
	// State walks the tensors that resuming needs, as "path.exp_avg".
	State() iter.Seq2[string, *tensor.Tensor]
	// Counters are the whole numbers that resuming needs, as "path.step".
	Counters() map[string]int
	// Load puts back what State and Counters gave. Values may come from another device. When it fails, nothing was changed.
	Load(tensors map[string]*tensor.Tensor, counters map[string]int) error
}

// Rates are a parameter's own settings, from 0 up. Scale multiplies the learning rate, which is that of the Group: see
// SetGroupLR.
type Rates struct {
	Scale, WeightDecay float64
	Group              int
}

// A Rule sets the rates of the parameter p with the given path. It is called once for each, with Scale 1 and the
// optimizer's weight decay, and takes the place of parameter groups.
type Rule func(path string, p *tensor.Tensor, r *Rates)

// DecayMatricesOnly is the [Rule] that weight decay acts on parameters with two or more dimensions only, and not on
// biases and the weights of norms, as in nanoGPT.
func DecayMatricesOnly(_ string, p *tensor.Tensor, r *Rates) {
	if p.Rank() < 2 {
		r.WeightDecay = 0
	}
}

// state is one parameter with what the optimizer keeps for it.
type state struct {
	name    string
	index   int // among the optimizer's
	p       *tensor.Tensor
	rates   Rates
	kinds   []kind           // of state
	family  string           // tells parameters apart that are updated otherwise
	keep    []*tensor.Tensor // as many as kinds; nil before the first step, and where they are parked
	parks   []*tensor.Parked // as many, in the host's memory; nil where they are not there
	seen    bool             // it has had a gradient
	applied bool             // in this step already: see StepInBackward
	wide    bool             // its moments are f32, whatever it is
	moments int              // kinds of state that are moments
	steps   int              // updates so far, unless its ledger counts them
	book    *ledger          // where they are counted; nil before the first step, and after a Load
}

// core is what all optimizers share.
type core struct {
	lr       float64
	own      map[int]float64 // rates of groups
	clip     float64
	momentum *momentum // that can be changed; nil: there is none
	away     bool      // state is in the host's memory between steps
	states   []*state
	turns    int // Steps that were done

	inBackward bool // see StepInBackward

	stepping atomic.Bool // a goroutine is in Step
	books    []*ledger
	last     *ledger // what reports read; nil when the last Step had no gradients
	overflow int     // the last Step of which a report was asked and told that nothing was updated
	update   func(l *ledger, b *batch)
	numbers  []number                       // of the whole optimizer, that steps change
	advance  func(e *tensor.Env, l *ledger) // changes them, before the updates of a step; nil: there are none
	tables   [][]float64                    // that updates look numbers up in
	maximize bool
	rounding Rounding
	seed     uint64 // of stochastic rounding
}

// batch is what one fused update takes.
type batch struct {
	rates  Rates
	p, g   []*tensor.Tensor
	keep   [][]*tensor.Tensor // by kind
	parks  []*tensor.Parked   // by kind, of the one parameter, where they are parked
	counts []*tensor.Tensor
	states []*state
}

// byShape splits a batch by the shapes of parameters, in order of first appearance, so that each part has at most so many elements
// or one parameter.
func (b *batch) byShape(most int) (parts []*batch) {
	open := map[string]*batch{} // by shape, what takes more
	for i, p := range b.p {
		at := fmt.Sprint(p.Shape())
		part := open[at]
		if part == nil || (len(part.p)+1)*elements(p) > most {
			part = &batch{rates: b.rates, keep: make([][]*tensor.Tensor, len(b.keep))}
			open[at] = part
			parts = append(parts, part)
		}
		part.p, part.g, part.counts = append(part.p, p), append(part.g, b.g[i]), append(part.counts, b.counts[i])
		part.states = append(part.states, b.states[i])
		for k := range b.keep {
			part.keep[k] = append(part.keep[k], b.keep[k][i])
		}
	}
	return parts
}

// settings are what every optimizer is configured with.
type settings struct {
	lr, decay, clip float64
	rule            Rule
}

func newCore(op string, params iter.Seq2[string, *tensor.Tensor], set settings, kinds ...string) *core {
	c := &core{lr: set.lr, clip: set.clip}
	check(op, "LR", set.lr, 0, math.Inf(1))
	check(op, "WeightDecay", set.decay, 0, math.Inf(1))
	check(op, "Clip", set.clip, 0, math.Inf(1))
	seen := map[*tensor.Tensor]bool{}
	for name, p := range params {
		if seen[p] {
			continue
		}
		seen[p] = true
		s := &state{name: name, index: len(c.states), p: p, rates: Rates{Scale: 1, WeightDecay: set.decay}, kinds: plain(kinds...), keep: make([]*tensor.Tensor, len(kinds))}
		if set.rule != nil {
			set.rule(name, p, &s.rates)
		}
		check(op, "Scale of "+name, s.rates.Scale, 0, math.Inf(1))
		check(op, "WeightDecay of "+name, s.rates.WeightDecay, 0, math.Inf(1))
		c.states = append(c.states, s)
	}
	if len(c.states) == 0 {
		tensor.Raise(op, "give nn.Params(model) of a model with parameters", "there are no parameters to update")
	}
	return c
}

// check panics unless lo ≤ v < hi.
func check(op, what string, v, lo, hi float64) {
	if !(v >= lo && v < hi) {
		tensor.Raise(op, "give a number within", "%s is %v, not in [%v, %v)", what, v, lo, hi)
	}
}

// optional is a setting whose zero stands for its default, and a negative number for 0.
func optional(v, def float64) float64 {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}

// LR is the learning rate of the next Step.
func (c *core) LR() float64 { return c.lr }

// SetLR changes the learning rate. Each parameter's is multiplied by its [Rates].Scale.
func (c *core) SetLR(lr float64) {
	check("SetLR", "LR", lr, 0, math.Inf(1))
	if tensor.Capturing() {
		tensor.Raise("SetLR", "set it before Run", "the rate would be the same in each run of the captured step")
	}
	c.lr = lr
}

// SetGroupLR changes the learning rate of the parameters whose [Rates].Group is the given one, which SetLR no longer changes
// then. With a schedule for each group:
//
//	opt.SetLR(schedule(step))
//	opt.SetGroupLR(1, other(step))
func (c *core) SetGroupLR(group int, lr float64) {
	check("SetGroupLR", "LR", lr, 0, math.Inf(1))
	switch {
	case !slices.Contains(c.groups(), group):
		tensor.Raise("SetGroupLR", "set Rates.Group in the Rule", "no parameter is of group %d; there are %v", group, c.groups())
	case tensor.Capturing():
		tensor.Raise("SetGroupLR", "set it before Run", "the rate would be the same in each run of the captured step")
	}
	if c.own == nil {
		c.own = map[int]float64{}
	}
	c.own[group] = lr
}

// GroupLR is the learning rate of a group in the next Step.
func (c *core) GroupLR(group int) float64 {
	if lr, ok := c.own[group]; ok {
		return lr
	}
	return c.lr
}

// groups are those of the parameters, in order.
func (c *core) groups() (list []int) {
	for _, s := range c.states {
		if !slices.Contains(list, s.rates.Group) {
			list = append(list, s.rates.Group)
		}
	}
	slices.Sort(list)
	return list
}

// Discard drops the gradients without applying them.
func (c *core) Discard() {
	for _, s := range c.states {
		s.p.DropGrad()
	}
	c.forget()
}
