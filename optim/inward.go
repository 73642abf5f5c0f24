package optim

import (
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/tensor"
)

// StepInBackward makes an optimizer apply each gradient as soon as Backward has all of it, and let go of it there: the gradients of
// a whole model are never there at once. A parameter that is used several times waits for the sum. Step is called as before; it
// counts the step, and its report is the same. Weights and state are those of the ordinary Step, to the bit.
//
// What needs all gradients before the first update cannot be had: Clip is refused here, the Backward of a [LossScaler] where it
// reaches a parameter, and so is a second Backward before Step, of a batch in parts for one. A Backward that fails, for want of
// memory say, has applied some gradients, and Discard does not take that back. There is no way back to the ordinary Step.
//
// The optimizer is one of this package, or of a type that embeds one.
func StepInBackward(o Optimizer) {
	const op = "optim.StepInBackward"
	i, ok := o.(interface{ inward() *core })
	if !ok {
		tensor.Raise(op, "embed the optimizer of this package that it stands on", "a %T cannot apply single gradients", o)
	}
	c := i.inward()
	switch {
	case c.clip > 0:
		tensor.Raise(op, "leave Clip out, or call Step after Backward", "Clip is %v: the norm of all gradients is known when the last of them is", c.clip)
	case c.inBackward:
		return
	}
	c.inBackward = true
	for _, s := range c.states {
		s.p.AfterGrad(func(*tensor.Tensor) { c.apply(s) })
	}
}

func (c *core) inward() *core { return c }

// scaling has the goroutines that are in the Backward of a LossScaler.
var scaling sync.Map

// scaledBackward marks the calling goroutine as one of them until done is called.
func scaledBackward() (done func()) {
	g := callsite.Goroutine()
	scaling.Store(g, true)
	return func() { scaling.Delete(g) }
}

// apply updates a parameter by its gradient, which is complete, and lets go of that.
func (c *core) apply(s *state) {
	defer c.suggest()
	defer c.enter("Backward")()
	if _, ok := scaling.Load(callsite.Goroutine()); ok {
		tensor.Raise("LossScaler.Backward", "train in bfloat16, which needs no scale, or without StepInBackward",
			"the optimizer of %s applies gradients as they come, and whether to leave a scaled step out is known when the last of them is", s.name)
	}
	if s.applied {
		tensor.Raise("Backward", "call Step after each Backward, or leave StepInBackward out", "a second Backward before Step: the gradient of %s that the first has left is applied", s.name)
	}
	s.prepare(c.away)
	if s.moved() {
		c.settle()
	}
	l := c.open(s)
	n := l.normsFor(s.p.DType(), len(c.states))
	g := s.p.Grad()
	tensor.GradNormInPlace(tensor.GradNormStep{Norm: n.of[s.index], Scale: n.scale, Skip: l.skip, Counts: l.all.Slice(0, s.index, s.index+1), Turn: l.one}, g)
	b := &batch{rates: s.rates, p: []*tensor.Tensor{s.p}, g: []*tensor.Tensor{g}, counts: []*tensor.Tensor{l.counts[s.index]}, parks: s.parks, states: []*state{s}}
	for _, k := range s.keep {
		b.keep = append(b.keep, []*tensor.Tensor{k})
	}
	at := *l
	at.scale = n.scale
	c.run(s.p.Env(), &at, []*batch{b})
	s.seen, s.applied = true, true
	s.p.DropGrad()
}

// open is the ledger of a parameter's device, told once a step what the host knows.
func (c *core) open(s *state) *ledger {
	e, scope := s.p.Env().NoGrad().Scope()
	defer scope.End()
	l := c.ledger(e.Device())
	if l == nil {
		l = newLedger(e, c)
	}
	if l.one == nil {
		l.one = tensor.NewBuffer(tensor.From(e, []int64{1}, 1))
	}
	if s.book = l; !l.told {
		l.told = true
		tensor.BeforeRun(func() { l.tell(make([]int64, len(c.states)), c) })
		c.advancing(l)
	}
	return l
}

// norms are those of single gradients, of which the norm of a step is made.
type norms struct {
	all   *tensor.Tensor   // f32[n] or f64[n]
	of    []*tensor.Tensor // its elements
	scale *tensor.Tensor   // 1
}

// normsFor are the norms of gradients of a dtype, of n parameters.
func (l *ledger) normsFor(dt dtype.DType, n int) *norms {
	i := 0
	if dt != dtype.F64 {
		dt, i = dtype.F32, 1
	}
	if l.norms[i] == nil {
		e, scope := l.all.Env().NoGrad().Scope()
		defer scope.End()
		x := &norms{all: tensor.NewBuffer(e.FullOf(dt, 0, n)), scale: tensor.NewBuffer(e.FullOf(dt, 1))}
		for i := range n {
			x.of = append(x.of, x.all.Select(0, i))
		}
		l.norms[i] = x
	}
	return l.norms[i]
}

// conclude is the Step of an optimizer that has applied gradients in Backward.
func (c *core) conclude() Report {
	r := c.begin()
	var done []*state
	for _, s := range c.states {
		if s.applied {
			done = append(done, s)
		} else {
			c.missed(&r, s)
		}
	}
	if len(done) == 0 {
		tensor.AfterRun(func() { c.done(nil) })
		return r
	}
	castAhead := tensor.CastAhead(parameters(done))
	places := c.gather(done)
	defer places.end()
	c.forget()
	for _, p := range places {
		places.share(p)
		p.book.fit(p.terms)
	}
	places.judge(0, nil)
	castAhead()
	tensor.AfterRun(func() { c.done(places[0].book) })
	tensor.AfterRun(presence.Stepped)
	return r
}

// gather finds the norms of the gradients that were applied, on each device. Those of other parameters are 0.
func (c *core) gather(done []*state) (ps places) {
	for _, s := range done {
		if ps.of(s.p) == nil {
			p := &place{book: s.book}
			p.env, p.scope = s.p.Env().NoGrad().Scope()
			for _, n := range s.book.norms {
				if n != nil {
					p.grads = append(p.grads, n.all)
				}
			}
			ps = append(ps, p)
		}
	}
	for _, s := range c.states {
		if s.seen && !s.applied && s.book != nil {
			tensor.SetCell(s.book.normsFor(s.p.DType(), len(c.states)).of[s.index], 0)
		}
	}
	return ps
}

// forget begins a step anew.
func (c *core) forget() {
	for _, s := range c.states {
		s.applied = false
	}
	for _, l := range c.books {
		l.told = false
	}
}
