package optim

import (
	"fmt"
	"math"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// patience is the number of Steps after which a parameter without any gradient so far is reported.
const patience = 3

// Report is what a Step did. Its methods read from the optimizer: they may be used where that may, by one goroutine at a
// time.
type Report struct {
	Skipped  []string // parameters without a gradient this time; frozen ones do not count
	Never    []string // those of them that never had one in three or more Steps: they are not part of the loss
	Overflow bool     // a gradient was not finite, and nothing was updated; only Steps of a [LossScaler] look
	c        *core
	turn     int
}

// String tells which parameters had no gradient, or that none was applied. It waits for nothing.
func (r Report) String() string {
	switch {
	case r.Overflow:
		return fmt.Sprintf("step %d: a gradient was not finite, nothing was updated", r.turn)
	case len(r.Never) > 0:
		return fmt.Sprintf("step %d: no gradient so far for %s", r.turn, strings.Join(r.Never, ", "))
	case len(r.Skipped) > 0:
		return fmt.Sprintf("step %d: no gradient for %s", r.turn, strings.Join(r.Skipped, ", "))
	}
	return fmt.Sprintf("step %d: a gradient for every parameter that learns", r.turn)
}

// Norm is the 2-norm of all gradients together, before clipping. Reading it waits for the device; it can be read until
// the next Step. It is 0 when there were no gradients.
func (r Report) Norm() float64 {
	if n := r.norm("Report.Norm"); n != nil {
		return n.Item()
	}
	return 0
}

// NormLater asks for the norm without waiting for it. It is asked for before the next Step, and read when it is there. It
// is nil when there were no gradients.
func (r Report) NormLater() *tensor.Pending {
	if n := r.norm("Report.NormLater"); n != nil {
		return n.Later()
	}
	return nil
}

// norm is the optimizer's cell, nil when there were no gradients.
func (r Report) norm(op string) *tensor.Tensor {
	if r.c == nil {
		return nil
	}
	if r.turn != r.c.turns {
		tensor.Raise(op, "ask for it before the next Step", "the norm of step %d is gone after step %d", r.turn, r.c.turns)
	}
	return r.c.norm
}

// Finite tells whether all gradients were: a NaN or an infinity in one makes the norm so. It reads Norm.
func (r Report) Finite() bool { return finite(r.Norm()) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Step applies the gradients and lets go of them. It allocates before it writes, so that after an out-of-memory all is as
// before and the gradients still there; Discard drops them.
func (c *core) Step() Report { return c.step(1, false) }

// step is Step with gradients that are multiplied by a number first. With judge it reads their norm, for which the host
// waits, and updates nothing if that is not finite.
func (c *core) step(factor float64, judge bool) Report {
	r := Report{c: c, turn: c.turns + 1}
	ready := c.ready(&r)
	if len(ready) == 0 {
		c.norm = nil
		c.turns++
		return r
	}
	batches := group(ready)
	places := locate(batches)
	defer places.end()
	norm := c.scales(places, factor)
	cell := c.cell(norm)
	r.Overflow = judge && !finite(norm.Item())
	if !r.Overflow {
		for _, b := range batches {
			c.update(places.of(b).scale, b)
		}
	}
	c.norm = cell.CopyInPlace(norm)
	c.turns++
	for _, s := range ready {
		if !r.Overflow {
			s.steps++
		}
		s.p.DropGrad()
	}
	return r
}

// ready lists the parameters with a gradient, with their state made, and reports the others.
func (c *core) ready(r *Report) []*state {
	list := make([]*state, 0, len(c.states))
	for _, s := range c.states {
		switch {
		case s.p.Grad() != nil:
			s.prepare()
			list = append(list, s)
		case s.p.Frozen():
		default:
			r.Skipped = append(r.Skipped, s.name)
			if s.steps == 0 && c.turns+1 >= patience {
				r.Never = append(r.Never, s.name)
			}
		}
	}
	return list
}

// prepare makes what the optimizer keeps for a parameter, or moves it to where the parameter is now.
func (s *state) prepare() {
	for i, k := range s.keep {
		switch {
		case k == nil:
			s.keep[i] = s.p.ZerosLike()
		case k.Env().Device() != s.p.Env().Device() || k.DType() != s.p.DType():
			s.keep[i] = s.p.ZerosLike().CopyInPlace(k.To(s.p.Env()))
		}
	}
}

// group splits parameters by what one fused operation shares, in order of first appearance.
func group(list []*state) []*batch {
	type key struct {
		device *tensor.Device
		dt     dtype.DType
		rates  Rates
		steps  int
	}
	var out []*batch
	byKey := map[key]*batch{}
	for _, s := range list {
		k := key{s.p.Env().Device(), s.p.DType(), s.rates, s.steps}
		b := byKey[k]
		if b == nil {
			b = &batch{rates: s.rates, steps: s.steps, keep: make([][]*tensor.Tensor, len(s.keep))}
			byKey[k] = b
			out = append(out, b)
		}
		b.p, b.g = append(b.p, s.p), append(b.g, s.p.Grad())
		for i, t := range s.keep {
			b.keep[i] = append(b.keep[i], t)
		}
	}
	return out
}

// place is the work of a Step on one device. Its env has a scope that ends with the Step; it is not that of a Do, because
// a Step must not change the program's random numbers.
type place struct {
	env   *tensor.Env
	scope tensor.Scope
	grads []*tensor.Tensor
	scale *tensor.Tensor // what gradients are multiplied by
}

// places are in the order of the parameters.
type places []*place

func locate(batches []*batch) (ps places) {
	for _, b := range batches {
		p := ps.of(b)
		if p == nil {
			p = &place{}
			p.env, p.scope = b.p[0].Env().NoGrad().Scope()
			ps = append(ps, p)
		}
		for _, g := range b.g {
			p.grads = append(p.grads, g.In(p.env))
		}
	}
	return ps
}

func (ps places) of(b *batch) *place {
	for _, p := range ps {
		if p.env.Device() == b.p[0].Env().Device() {
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

// scales computes the norm of all gradients times a factor, and for each place the number that multiplies them: the factor
// and that of clipping, min(1, Clip / (norm + 1e-6)), as clip_grad_norm_ does. Nothing waits for a value.
func (c *core) scales(ps places, factor float64) (norm *tensor.Tensor) {
	first := ps[0].env
	square := tensor.SumSquares(ps[0].grads...)
	for _, p := range ps[1:] {
		square = square.Add(tensor.SumSquares(p.grads...).To(first))
	}
	norm = square.Sqrt()
	scale := norm.FullLike(1)
	if factor != 1 {
		norm = norm.Scale(factor)
	}
	if c.clip > 0 {
		scale = scale.Scale(c.clip).Div(norm.AddScalar(1e-6)).Minimum(scale)
	}
	if factor != 1 {
		scale = scale.Scale(factor)
	}
	for _, p := range ps {
		p.scale = scale.To(p.env)
	}
	return norm
}

// cell is where reports read a norm: the one of the Step before, if it fits.
func (c *core) cell(norm *tensor.Tensor) *tensor.Tensor {
	if c.norm == nil || c.norm.Env().Device() != norm.Env().Device() || c.norm.DType() != norm.DType() {
		return tensor.NewBuffer(norm)
	}
	return c.norm
}
