package litmus

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Options are how far a check goes. The zero value is what the command takes.
type Options struct {
	Rounds   int                 // of a loop that writes; 0: 2
	Progress func(done, all int) // is told choices of paths that are done
	Paths    int                 // at most so many ways through a thread; 0: 10,000

	late bool // nothing is left before all reads are known: for tests
}

// check is one search.
type check struct {
	ctx    context.Context
	test   *Test
	result *Result
	states map[string]*State
	err    error

	late bool
	why  bool // whether refusals are collected: no branch is left early then
	left int  // candidates that may still be looked at for that
}

// looked is how many candidates are looked at to tell why none is allowed.
const looked = 10_000

// Check goes through all executions of a test. The error is that of ctx, or an *Error about what is too large.
func Check(ctx context.Context, t *Test, o Options) (*Result, error) {
	if o.Rounds == 0 {
		o.Rounds = 2
	}
	if o.Paths == 0 {
		o.Paths = 10_000
	}
	r := &Result{Test: t.Name, Quantifier: t.Quantifier, Condition: t.source, Complete: true, Rounds: o.Rounds}
	c := &check{ctx: ctx, test: t, result: r, states: map[string]*State{}, late: o.late}
	ways, err := c.unroll(o)
	if err != nil {
		return nil, err
	}
	if err := c.combine(ways, o.Progress); err != nil {
		return nil, err
	}
	if !r.Reached {
		c.why, c.left = true, looked
		if err := c.combine(ways, nil); err != nil {
			return nil, err
		}
	}
	r.conclude(c.states)
	return r, nil
}

// unroll finds the paths of each thread.
func (c *check) unroll(o Options) ([][]*path, error) {
	var ways [][]*path
	wide := c.test.wide()
	for i := range c.test.Threads {
		th := &c.test.Threads[i]
		told := make([]bool, len(th.Registers))
		for _, t := range c.test.Shown {
			if t.thread == i {
				told[t.register] = true
			}
		}
		u := unroll(th, told, wide, o.Rounds, o.Paths)
		switch {
		case u.tooFew:
			return nil, &Error{Pos: th.Code[0].Pos, Msg: fmt.Sprintf("%s can go through its code in more than %d ways", th.Name, o.Paths)}
		case u.long != nil:
			return nil, &Error{Pos: th.Code[0].Pos, Msg: fmt.Sprintf("%s has more than %d events on some way through its code", th.Name, maxEvents)}
		case u.cut:
			c.result.Complete = false
		}
		ways = append(ways, u.paths)
	}
	return ways, nil
}

// wide is, of each location, whether all accesses to its memory are by one name, and strong, and in one another's scope.
func (t *Test) wide() []bool {
	of := make([][]event, len(t.Locations))
	for i, th := range t.Threads {
		for k := range th.Code {
			if in := &th.Code[k]; in.loc >= 0 {
				m := t.Locations[in.loc].Memory
				of[m] = append(of[m], event{thread: i, in: in, loc: in.loc, sem: in.sem, scope: in.scope, proxy: in.proxy})
			}
		}
	}
	f := &frame{test: t}
	wide := make([]bool, len(t.Locations))
	for l := range wide {
		wide[l] = true
		all := of[t.Locations[l].Memory]
		for a := range all {
			for b := range all {
				x, y := &all[a], &all[b]
				wide[l] = wide[l] && x.loc == y.loc && x.proxy == y.proxy && x.strong() && f.includes(x, y)
			}
		}
	}
	return wide
}

// combine takes every choice of one path for each thread.
func (c *check) combine(ways [][]*path, progress func(done, all int)) error {
	all := 1
	for _, w := range ways {
		if len(w) > 0 && all > 1<<40/len(w) {
			return &Error{Pos: Pos{1, 1}, Msg: "the threads have more than 2^40 ways through their code together"}
		}
		all *= len(w)
	}
	for done := range all {
		if progress != nil {
			progress(done, all)
		}
		paths := make([]*path, len(ways))
		rest := done
		for i, w := range ways {
			paths[i] = w[rest%len(w)]
			rest /= len(w)
		}
		f := newFrame(c.test, paths)
		if n := len(f.events); n > maxEvents {
			return &Error{Pos: Pos{1, 1}, Msg: fmt.Sprintf("an execution with %d events, of %d that are possible: leave out threads, accesses or locations", n, maxEvents)}
		}
		c.read(newOrders(f), 0)
		if c.err != nil {
			return c.err
		}
		if c.enough() {
			return nil
		}
	}
	return nil
}

func newOrders(f *frame) *orders {
	n := len(f.events)
	x := &orders{frame: f, source: make([]int, n), rf: newRelation(n), fenced: newRelation(n), chosen: newRelation(n), joined: newRelation(n)}
	for i := range x.source {
		x.source[i] = -1
	}
	return x
}

// enough is whether so many refusals have been seen as are wanted.
func (c *check) enough() bool { return c.why && c.left <= 0 }

// read gives the reads from an event on their writes, in all ways. What cannot be is left at once: values from nowhere,
// branches that would have gone the other way, axioms broken by what is known so far.
func (c *check) read(x *orders, from int) {
	if c.err = c.ctx.Err(); c.err != nil {
		return
	}
	rest := x.reads >> from << from
	if rest == 0 || from >= len(x.events) {
		c.complete(x)
		return
	}
	r := bits.TrailingZeros64(rest)
	for s := x.memory[x.owner(r)] & x.writes; s != 0 && c.err == nil && !c.enough(); s &= s - 1 {
		w := bits.TrailingZeros64(s)
		x.source[r] = w
		x.rf.add(w, r)
		if c.possible(x) {
			c.read(x, r+1)
		}
		x.rf[w] &^= 1 << r
		x.source[r] = -1
	}
}

// possible is whether an execution whose reads are known in part may still come to something.
func (c *check) possible(x *orders) bool {
	v := newValues(x)
	if x.thin() {
		if c.why && c.goal(v.term) != no {
			c.result.thin(x)
		}
		return false
	}
	for i, p := range x.paths {
		for _, d := range p.demands {
			a, known := d.a.eval(v.of(i))
			b, also := d.b.eval(v.of(i))
			if known && also && d.cmp.holds(a, b) != d.want {
				return false
			}
		}
	}
	if c.why || c.late {
		return true
	}
	broken, _ := x.settle()
	return broken == ""
}

// complete goes on where all reads are known: barriers, then the orders that are free.
func (c *check) complete(x *orders) {
	v := newValues(x)
	if c.why {
		if c.goal(v.term) == no {
			return
		}
	} else {
		c.result.Candidates++
	}
	ways := x.joins(func(e *expr, thread int) int64 { n, _ := e.eval(v.of(thread)); return n })
	if len(ways) == 0 {
		if !c.why {
			c.result.Hung++
		}
		return
	}
	for _, w := range ways {
		y := x.clone()
		y.joined = w
		if c.why {
			c.refuse(y, v)
			continue
		}
		c.order(y, v)
	}
}

// refuse finds why an execution cannot end as it should: with one choice after the other of which writes are the last.
func (c *check) refuse(x *orders, v *values) {
	c.finals(x, v, func(last map[int]int) {
		at := c.valuation(v, last)
		if c.goal(at) != yes {
			return
		}
		y := x.clone()
		for m, w := range last {
			for s := x.memory[m] & x.writes &^ (1 << w); s != 0; s &= s - 1 {
				y.chosen.add(bits.TrailingZeros64(s), w)
			}
		}
		c.order(y, v)
	})
}

// order chooses the order of writes that are free, in all ways, and then an order of fences: one is enough, as it leaves no
// trace. It reports whether there is an execution.
func (c *check) order(x *orders, v *values) bool {
	if c.err = c.ctx.Err(); c.err != nil || c.enough() {
		return false
	}
	if broken, at := x.settle(); broken != "" {
		if c.why {
			c.left--
			c.result.refuse(x, broken, at)
		}
		return false
	}
	if pair, open := x.openWrites(); open {
		first := c.order(x.with(pair, false), v)
		return c.order(x.with([2]int{pair[1], pair[0]}, false), v) || first
	}
	if pair, open := x.openFences(); open {
		return c.order(x.with(pair, true), v) || c.order(x.with([2]int{pair[1], pair[0]}, true), v)
	}
	if !c.why {
		c.end(x, v)
	}
	return true
}

// goal is whether a state is one that the quantifier looks for: a counterexample, if it says forall.
func (c *check) goal(v valuation) truth {
	g := c.test.Cond.eval(v)
	if c.test.Quantifier == Forall {
		g = yes - g
	}
	if c.test.Filter != nil {
		g = min(g, c.test.Filter.eval(v))
	}
	return g
}

// end takes an execution into the result, with every final state: of writes in no order, any may be the last.
func (c *check) end(x *orders, v *values) {
	c.result.Executions++
	c.finals(x, v, func(last map[int]int) { c.state(x, v, c.valuation(v, last)) })
}

// finals tells every choice of a last write for the locations that are told, by the memory's owner.
func (c *check) finals(x *orders, v *values, found func(last map[int]int)) {
	var owners []int
	for _, t := range c.test.Shown {
		if t.loc >= 0 && !slices.Contains(owners, c.test.Locations[t.loc].Memory) {
			owners = append(owners, c.test.Locations[t.loc].Memory)
		}
	}
	last := map[int]int{}
	var choose func(rest []int)
	choose = func(rest []int) {
		if len(rest) == 0 {
			found(last)
			return
		}
		for s := x.memory[rest[0]] & x.writes; s != 0; s &= s - 1 {
			if w := bits.TrailingZeros64(s); x.co == nil || x.co[w] == 0 {
				last[rest[0]] = w
				choose(rest[1:])
			}
		}
	}
	choose(owners)
}

// valuation is that of a whole execution.
func (c *check) valuation(v *values, last map[int]int) valuation {
	return func(t Term) (int64, bool) {
		if t.loc >= 0 {
			return v.value[last[c.test.Locations[t.loc].Memory]], true
		}
		return v.term(t)
	}
}

func (c *check) state(x *orders, v *values, at valuation) {
	if c.test.Filter != nil && c.test.Filter.eval(at) != yes {
		return
	}
	var key strings.Builder
	s := &State{Executions: 1, Goal: c.goal(at) == yes}
	for _, t := range c.test.Shown {
		n, _ := at(t)
		s.Values = append(s.Values, Value{t.Name, n})
		fmt.Fprintf(&key, "%d ", n)
	}
	if old := c.states[key.String()]; old != nil {
		old.Executions++
		return
	}
	c.states[key.String()] = s
	if s.Goal && !c.result.Reached {
		c.result.Reached = true
		c.result.Witness = witness(x, v, s)
	}
}

// values are what the events of an execution read and write, as far as that is known.
type values struct {
	x     *orders
	value []int64
	known set
}

// newValues follows values from writes to reads until nothing new is known.
func newValues(x *orders) *values {
	v := &values{x: x, value: make([]int64, len(x.events))}
	for changed := true; changed; {
		changed = false
		for i := range x.events {
			if v.known>>i&1 == 0 && v.learn(i) {
				v.known |= 1 << i
				changed = true
			}
		}
	}
	return v
}

func (v *values) learn(i int) bool {
	e := &v.x.events[i]
	switch e.class {
	case reading:
		w := v.x.source[i]
		if w < 0 || v.known>>w&1 == 0 {
			return false
		}
		v.value[i] = v.value[w]
		return true
	case writing:
		n, ok := e.value.eval(v.of(e.thread))
		v.value[i] = n
		return ok
	}
	return false
}

// of tells what the events of a thread read.
func (v *values) of(thread int) func(int) (int64, bool) {
	return func(event int) (int64, bool) {
		i := v.x.first[thread] + event
		return v.value[i], v.known>>i&1 != 0
	}
}

// term is the value of a register at the end; memory is open.
func (v *values) term(t Term) (int64, bool) {
	switch {
	case t.thread >= 0:
		return v.x.paths[t.thread].final[t.register].eval(v.of(t.thread))
	case t.loc >= 0:
		return 0, false
	}
	return t.constant, true
}
