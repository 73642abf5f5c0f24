package formula

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cards"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Term is a part of the memory.
type Term struct {
	Name  string // as in JSON
	Bytes int64
	Why   string // the form, in words
}

// Estimate is the memory that training takes of a device.
type Estimate struct {
	Terms []Term // weights, gradients, optimizer, casts, gathered, activations, logits, workspace, context, all of them

	Total     int64 // the most at once
	Apart     int64 // by which the terms' sum is more: they are never there all together
	When      string
	Low, High int64 // of Total
	Floor     bool  // only parameters are known: High is no bound, and is 0

	Parameters int64
	FLOPs      float64 // of products that a step needs, on all devices
}

// Of is the bytes of a term, 0 of one that there is not.
func (e *Estimate) Of(name string) int64 {
	for _, t := range e.Terms {
		if t.Name == name {
			return t.Bytes
		}
	}
	return 0
}

// Allocated is what the program's allocator gives at most: the total without what the driver takes.
func (e *Estimate) Allocated() int64 { return e.Total - e.Of("context") }

// New estimates a model's memory under a setup. The error is an advice.Error.
func New(m Model, given Setup) (*Estimate, error) {
	s, c, err := counted(m, given)
	if err != nil {
		return nil, err
	}
	p := s.states(c)
	e := &Estimate{Parameters: m.Parameters(), FLOPs: c.flops * float64(s.Accumulate*s.replicas())}
	kept, why := c.kept, "what the backward pass reads again"
	logits := c.logits
	if s.Recompute == Block && !s.Forward {
		kept, why = c.inputs, "inputs of blocks, and what lies outside"
		if extra := c.layer - c.logits; extra > 0 { // the last block is made again when the scores are gone
			kept, why = kept+extra, why+"; one block made again"
		}
	}
	e.Terms = []Term{
		{"weights", p.weights, p.why[0]}, {"gradients", p.gradients, p.why[1]}, {"optimizer", p.optimizer, p.why[2]},
		{"casts", p.casts, "of weights in two bytes, that autocast keeps"},
		{"gathered", p.gathered, "whole: two blocks' weights, one's gradients, the tables"},
		{"activations", kept, why}, {"logits", logits, "scores and their loss"},
		{"workspace", s.workspace(), "of matrix products"}, {"context", s.context(), "the driver and loaded kernels"},
	}
	_, e.Floor = m.(Bare)
	if e.Floor {
		e.floor()
		return e, nil
	}
	e.peak(p.lasting)
	e.bound(s.Style)
	return e, nil
}

// counted is a setup with its defaults, and a model's counts under it.
func counted(m Model, given Setup) (*Setup, counts, error) {
	s, err := given.normal()
	if err != nil {
		return nil, counts{}, err
	}
	if err := m.check(&s); err != nil {
		return nil, counts{}, err
	}
	if err := countable(m, &s); err != nil {
		return nil, counts{}, err
	}
	return &s, m.count(&s), nil
}

// floor leaves weights, gradients and optimizer.
func (e *Estimate) floor() {
	for i := range e.Terms {
		if i > 2 {
			e.Terms[i].Bytes = 0
		}
		e.Total += e.Terms[i].Bytes
	}
	e.Low, e.When = e.Total, "at any time: a floor, for the sizes of the model are not known"
}

// peak finds the moment with the most. Gradients that do not last take the place of activations as the backward pass goes
// from block to block, so the most is at one of its ends.
func (e *Estimate) peak(lasting bool) {
	always := e.Of("weights") + e.Of("optimizer") + e.Of("gathered") + e.Of("workspace") + e.Of("context")
	loss, step := e.Of("casts")+e.Of("activations")+e.Of("logits"), e.Of("gradients")
	if lasting {
		loss += e.Of("gradients")
	}
	e.Total, e.When = always+loss, "when the loss is computed"
	if step > loss {
		e.Total, e.When = always+step, "when the optimizer steps"
	}
	for _, t := range e.Terms {
		e.Apart += t.Bytes
	}
	e.Apart -= e.Total
}

// bounds of an estimate, as shares.
type bounds struct {
	less, more   float64 // of activations
	under, above float64 // of scores and loss
	slack        float64 // of all that the allocator gives: what lies stuck between pieces in use
}

// margins are the errors that were seen: of torch's activations between versions (which expand keys and values of grouped
// heads, or keep residual sums), of Megatron's -2.1 to +2.4 % over five of its golden runs; stuck memory 1 to 6 %.
var margins = map[Style]bounds{
	Torch:     {.03, .15, .2, .35, .06},
	Eager:     {0, .05, .2, .35, .06},
	Megatron:  {.05, .05, .05, .05, .06},
	DeepSpeed: {.03, .15, .2, .35, .06},
	LLMC:      {0, 0, 0, 0, .01},
}

// What the driver's context may be less or more than its figure: 0.2 GiB by card and driver, half a GiB with kernels loaded
// at once.
const contextLess, contextMore = 200 * mib, 500 * mib

func (e *Estimate) bound(style Style) {
	m := margins[style]
	share := func(name string, f float64) float64 {
		if name == "activations" && e.When == "when the optimizer steps" || name == "logits" && e.When == "when the optimizer steps" {
			return 0
		}
		return f * float64(e.Of(name))
	}
	total := float64(e.Total)
	e.Low = int64(total - share("activations", m.less) - share("logits", m.under) - contextLess)
	e.High = int64(math.Ceil(total + share("activations", m.more) + share("logits", m.above) + contextMore + m.slack*float64(e.Allocated())))
	if e.Of("context") == 0 { // a forward pass by itself: what the program's values take
		e.Low, e.High = e.Low+contextLess, e.High-contextMore
	}
}

// context is what the driver takes.
func (s *Setup) context() int64 {
	switch {
	case s.Forward:
		return 0
	case s.Style == LLMC: // with cuBLAS's and cuDNN's workspace: 21,315 MiB of a card for 20,460 allocated
		return 855 * mib
	}
	return cards.Context
}

// workspace is what libraries take from the program's allocator. Megatron's is one constant for all its runs, fitted to five
// of its golden ones between the 64 and 110 MiB that it shows.
func (s *Setup) workspace() int64 {
	switch {
	case s.Style == LLMC:
		return 0
	case s.Style == Megatron:
		return 80 * mib
	case s.Hopper:
		return 32 * mib
	}
	return 8*mib + 128*kib // CUBLAS_WORKSPACE_CONFIG :4096:2:16:8
}
