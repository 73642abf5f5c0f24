package optim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/tensor"
)

// patience is the number of Steps after which a parameter without any gradient so far is reported.
const patience = 3

// Report is what a Step did. Its methods read from the optimizer: they may be used where that may, by one goroutine at a
// time, until the next Step. Reading waits for the device.
type Report struct {
	Skipped []string // parameters without a gradient this time; frozen ones do not count
	Never   []string // those of them that never had one in three or more Steps: they are not part of the loss
	c       *core
	turn    int // latest: of a captured step
}

// latest stands for the number of the last Step: the report of a captured one is of its last run.
const latest = -1

// String tells which parameters had no gradient, or that Overflow has found that nothing was updated. It waits for nothing.
func (r Report) String() string {
	turn := r.number()
	switch {
	case r.c != nil && r.c.overflow == turn:
		return fmt.Sprintf("step %d: a gradient was not finite, nothing was updated", turn)
	case len(r.Never) > 0:
		return fmt.Sprintf("step %d: no gradient so far for %s", turn, strings.Join(r.Never, ", "))
	case len(r.Skipped) > 0:
		return fmt.Sprintf("step %d: no gradient for %s", turn, strings.Join(r.Skipped, ", "))
	}
	return fmt.Sprintf("step %d: a gradient for every parameter that learns", turn)
}

// number is that of the report's Step.
func (r Report) number() int {
	if r.turn == latest {
		return r.c.turns
	}
	return r.turn
}

// Norm is the 2-norm of all gradients together, before clipping. It is 0 when there were no gradients.
func (r Report) Norm() float64 {
	if l := r.book("Report.Norm"); l != nil {
		return l.norm.Item()
	}
	return 0
}

// NormLater asks for the norm without waiting for it. It is asked for before the next Step, and read when it is there. It
// is nil when there were no gradients.
func (r Report) NormLater() *tensor.Pending {
	if l := r.book("Report.NormLater"); l != nil {
		return l.norm.Later()
	}
	return nil
}

// Overflow tells whether a gradient was not finite, so that nothing was updated; only Steps of a [LossScaler] look.
func (r Report) Overflow() bool {
	l := r.book("Report.Overflow")
	if l == nil || l.skip.Item() == 0 {
		return false
	}
	r.c.overflow = r.number()
	return true
}

// book is where the device keeps what reports tell, nil when there were no gradients.
func (r Report) book(op string) *ledger {
	if r.c == nil {
		return nil
	}
	if n := r.number(); n != r.c.turns {
		tensor.Raise(op, "ask for it before the next Step", "what step %d found is gone after step %d", n, r.c.turns)
	}
	return r.c.last
}

// Finite tells whether all gradients were: a NaN or an infinity in one makes the norm so. It reads Norm.
func (r Report) Finite() bool { return finite(r.Norm()) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Step applies the gradients and lets go of them. It allocates before it writes, so that after an out-of-memory all is as
// before and the gradients still there; Discard drops them. With [Kahan], [Stochastic] or Offload it allocates on the way as well:
// an out-of-memory there leaves the step counted, and of the first two some parameters updated.
func (c *core) Step() Report { return c.step(nil) }

// step is Step with gradients that are multiplied by the number in a cell first, unless that is nil; then the device
// updates nothing if their norm is not finite.
func (c *core) step(factor *tensor.Tensor) Report {
	defer c.enter("Step")()
	if c.inBackward {
		return c.conclude()
	}
	r := c.begin()
	ready := c.ready(&r)
	if len(ready) == 0 {
		tensor.AfterRun(func() { c.done(nil) })
		return r
	}
	if slices.ContainsFunc(ready, (*state).moved) {
		c.settle()
	}
	castAhead := tensor.CastAhead(parameters(ready))
	places := locate(ready)
	defer places.end()
	for _, p := range places {
		if p.book = c.ledger(p.env.Device()); p.book == nil {
			p.book = newLedger(p.env, c)
		}
		p.book.prepare(p, c)
		places.share(p)
		p.book.fit(p.terms)
	}
	places.judge(c.clip, factor)
	batches := group(ready)
	for _, p := range places {
		c.advancing(p.book)
		c.run(p.env, p.book, batches)
	}
	castAhead()
	tensor.AfterRun(func() { c.done(places[0].book) })
	for _, s := range ready {
		s.seen = true
		s.p.DropGrad()
	}
	tensor.AfterRun(presence.Stepped)
	return r
}

// enter keeps other goroutines out until leave is called.
func (c *core) enter(op string) (leave func()) {
	if !c.stepping.CompareAndSwap(false, true) {
		tensor.Raise(op, "let one goroutine at a time train a model; each of several needs a copy and an optimizer: nn.Clone, env.Replica",
			"two goroutines train one model: another one is in Step of this optimizer")
	}
	return func() { c.stepping.Store(false) }
}

// begin is the report of a Step that begins.
func (c *core) begin() Report {
	if tensor.Capturing() {
		return Report{c: c, turn: latest}
	}
	return Report{c: c, turn: c.turns + 1}
}

// done counts a Step whose report reads from a ledger, or nil.
func (c *core) done(l *ledger) {
	c.last = l
	c.turns++
}

// ready lists the parameters with a gradient, with their state made, and reports the others.
func (c *core) ready(r *Report) []*state {
	defer c.suggest()
	list := make([]*state, 0, len(c.states))
	for _, s := range c.states {
		if s.p.Grad() != nil {
			s.prepare(c.away)
			list = append(list, s)
		} else {
			c.missed(r, s)
		}
	}
	return list
}

// missed reports a parameter without a gradient.
func (c *core) missed(r *Report, s *state) {
	if s.p.Frozen() {
		return
	}
	r.Skipped = append(r.Skipped, s.name)
	if !s.seen && (c.turns+1 >= patience || r.turn == latest && c.turns > 0) { // captured, it will have none
		r.Never = append(r.Never, s.name)
	}
}

// suggest, deferred where state is made, tells an out-of-memory what keeps less.
func (c *core) suggest() {
	v := recover()
	if v == nil {
		return
	}
	if e, ok := v.(*tensor.OOMError); ok {
		bytes := int64(0)
		for _, s := range c.states {
			for i := range s.kinds {
				bytes += s.bytes(i)
			}
		}
		if bytes > 0 {
			e.Suggest(tensor.Lever{Flag: "optim.NewSGD without momentum, which keeps nothing", Saves: bytes, Cost: "another rate, and a slower start"})
		}
	}
	panic(v)
}

func parameters(list []*state) []*tensor.Tensor {
	ps := make([]*tensor.Tensor, len(list))
	for i, s := range list {
		ps[i] = s.p
	}
	return ps
}

// prepare makes what the optimizer keeps for a parameter, or moves it to where the parameter is now.
func (s *state) prepare(away bool) {
	if s.parksIn(away) {
		s.park()
		return
	}
	for i, k := range s.keep {
		switch {
		case k == nil:
			s.keep[i] = s.first(i)
		case k.Env().Device() != s.p.Env().Device() || k.DType() != s.dtype(i):
			s.keep[i] = s.first(i).CopyInPlace(k.To(s.p.Env()))
		}
	}
}

// moved tells whether the parameter's updates were counted on another device.
func (s *state) moved() bool { return s.book != nil && s.book.device != s.p.Env().Device() }

// group splits parameters by what one fused operation shares, in order of first appearance.
func group(list []*state) []*batch {
	type key struct {
		device *tensor.Device
		dt     dtype.DType
		rates  Rates
		family string
		alone  int // of a parameter whose state is parked: 1 and its index
	}
	var out []*batch
	byKey := map[key]*batch{}
	for _, s := range list {
		k := key{s.p.Env().Device(), s.p.DType(), s.rates, s.family, s.alone()}
		b := byKey[k]
		if b == nil {
			b = &batch{rates: s.rates, keep: make([][]*tensor.Tensor, len(s.keep)), parks: s.parks}
			byKey[k] = b
			out = append(out, b)
		}
		b.p, b.g, b.counts = append(b.p, s.p), append(b.g, s.p.Grad()), append(b.counts, s.book.counts[s.index])
		b.states = append(b.states, s)
		for i, t := range s.keep {
			b.keep[i] = append(b.keep[i], t)
		}
	}
	return out
}

// place is the work of a Step on one device. Its env has a scope that ends with the Step; it is not that of a Do, because
// a Step must not change the program's random numbers.
type place struct {
	env    *tensor.Env
	scope  tensor.Scope
	states []*state
	grads  []*tensor.Tensor
	norm   *tensor.Tensor   // of grads, where there are several places
	terms  []*tensor.Tensor // what the norm of a step is made of: grads, or the norms of all places
	book   *ledger
}

// places are in the order of the parameters.
type places []*place

// locate finds the devices of parameters that have gradients.
func locate(ready []*state) (ps places) {
	for _, s := range ready {
		p := ps.of(s.p)
		if p == nil {
			p = &place{}
			p.env, p.scope = s.p.Env().NoGrad().Scope()
			ps = append(ps, p)
		}
		p.states = append(p.states, s)
		p.grads = append(p.grads, s.p.Grad().In(p.env))
	}
	return ps
}

func (ps places) of(t *tensor.Tensor) *place {
	for _, p := range ps {
		if p.env.Device() == t.Env().Device() {
			return p
		}
	}
	return nil
}

func (ps places) end() {
	for _, p := range ps {
		p.scope.End()
	}
}

// share says what the norm of a step is made of at a place: of its gradients, or where there are several places of the norms
// of all of them.
func (ps places) share(p *place) {
	if len(ps) == 1 {
		p.terms = p.grads
		return
	}
	for _, o := range ps {
		if o.norm == nil {
			o.norm = tensor.SumSquares(o.grads...).Sqrt()
		}
		p.terms = append(p.terms, o.norm.To(p.env))
	}
}

// judge computes the norm of all gradients times a factor, and for each place what multiplies them: the factor and that of
// clipping, min(1, clip / (norm + 1e-6)), as clip_grad_norm_ does. Nothing waits for a value.
func (ps places) judge(clip float64, factor *tensor.Tensor) {
	steps := make([]tensor.GradNormStep, len(ps))
	for i, p := range ps {
		l := p.book
		steps[i] = tensor.GradNormStep{Clip: clip, Judge: factor != nil, Norm: l.norm, Scale: l.scale, Skip: l.skip, Counts: l.all, Turn: l.turn}
		if factor != nil {
			steps[i].Factor = factor.To(p.env)
		}
	}
	for i, p := range ps {
		tensor.GradNormInPlace(steps[i], p.terms...)
	}
}
