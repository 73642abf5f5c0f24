package lzma

import "slices"

// window is how many bytes are planned together.
const window = 4096

// way is a step and what may come behind it: a literal, and a match as far back as the last, since texts that are alike differ in a
// byte here and there.
type way struct {
	step step
	mid  bool
	tail int // bytes of that match
}

func (w way) len() int {
	n := w.step.n + w.tail
	if w.mid {
		n++
	}
	return n
}

// node is a place, with the cheapest way to it that is known.
type node struct {
	price uint32
	way   way
	past  // behind that way
}

// plan is how to go on: the cheapest steps by prices as they are, to where all ways meet, a long match begins, or the window ends.
func (e *encoder) plan() []step {
	e.tariff.renew(e.model)
	e.nodes[0], e.end = node{past: e.past}, 0
	for i := 0; ; i++ {
		n := &e.nodes[i]
		if i > 0 {
			n.past = e.nodes[i-n.way.len()].past
			n.pass(n.way)
		}
		if i > 0 && i == e.end || i == window || e.done+i == len(e.text) {
			return e.steps(i)
		}
		e.found = e.finder.next(e.found[:0])
		if s := e.taken(n, e.done+i); s.n > 0 {
			for range s.n - 1 {
				e.finder.next(nil)
			}
			return append(e.steps(i), s)
		}
		e.afterLiteral(i)
		e.afterRepeats(i)
		e.afterMatches(i)
	}
}

// steps are those to a node.
func (e *encoder) steps(i int) []step {
	var steps []step
	for i > 0 {
		w := e.nodes[i].way
		i -= w.len()
		if w.tail > 0 {
			steps = append(steps, step{w.tail, 0})
		}
		if w.mid {
			steps = append(steps, step{1, literal})
		}
		steps = append(steps, w.step)
	}
	slices.Reverse(steps)
	return steps
}

// same is how many bytes from a place on are those that lie a distance back, which is less one.
func (e *encoder) same(at int, distance uint32) int {
	from, n := at-1-int(distance), 0
	if from < 0 {
		return 0
	}
	for limit := min(len(e.text)-at, longest); n < limit && e.text[from+n] == e.text[at+n]; {
		n++
	}
	return n
}

// taken is a match that is taken whatever it costs, or no step.
func (e *encoder) taken(n *node, at int) step {
	for i, distance := range n.reps {
		if n := e.same(at, distance); n >= enough {
			return step{n, uint32(i)}
		}
	}
	if k := len(e.found); k > 0 && e.found[k-1].n >= enough {
		return step{e.found[k-1].n, 4 + e.found[k-1].distance}
	}
	return step{}
}

// offer is a way from a node at a price.
func (e *encoder) offer(i int, w way, price uint32) {
	to := i + w.len()
	for ; e.end < to; e.end++ {
		e.nodes[e.end+1].price = never
	}
	if price < e.nodes[to].price {
		e.nodes[to].price, e.nodes[to].way = price, w
	}
}

// byteAt is what a literal at a place costs behind a past.
func (e *encoder) byteAt(at int, p *past) uint32 {
	var before, matched byte
	if at > 0 {
		before = e.text[at-1]
	}
	if p.state >= 7 {
		matched = e.text[at-1-int(p.reps[0])]
	}
	return price(e.match[p.state], 0) + e.literalPrice(p.state, e.text[at], before, matched)
}

func (e *encoder) afterLiteral(i int) {
	n, at := &e.nodes[i], e.done+i
	cost := n.price + e.byteAt(at, &n.past)
	e.offer(i, way{step: step{1, literal}}, cost)
	if e.same(at, n.reps[0]) == 0 {
		e.tail(i, way{step: step{1, literal}}, cost)
		return
	}
	s := n.state
	e.offer(i, way{step: step{1, 0}}, n.price+price(e.match[s], 1)+price(e.rep[s], 1)+price(e.rep0[s], 0)+price(e.long[s], 0))
}

// tail offers to go on, behind a way, with a match as far back as the last.
func (e *encoder) tail(i int, w way, cost uint32) {
	p := e.nodes[i].past
	p.pass(w)
	n := e.same(e.done+i+w.len(), p.reps[0])
	if n < shortest {
		return
	}
	cost += price(e.match[p.state], 1) + price(e.rep[p.state], 1) + price(e.rep0[p.state], 0) + price(e.long[p.state], 1)
	w.tail = n
	e.offer(i, w, cost+e.tariff.repLens[n-shortest])
}

// over offers to go on, behind a match, with a literal and as far back.
func (e *encoder) over(i int, s step, cost uint32) {
	at := e.done + i + s.n
	if at >= len(e.text) {
		return
	}
	p := e.nodes[i].past
	p.pass(way{step: s})
	e.tail(i, way{step: s, mid: true}, cost+e.byteAt(at, &p))
}

func (e *encoder) afterRepeats(i int) {
	n := &e.nodes[i]
	s := n.state
	base := n.price + price(e.match[s], 1) + price(e.rep[s], 1)
	for k, distance := range n.reps {
		most := e.same(e.done+i, distance)
		if most < shortest {
			continue
		}
		cost := base
		switch k {
		case 0:
			cost += price(e.rep0[s], 0) + price(e.long[s], 1)
		case 1:
			cost += price(e.rep0[s], 1) + price(e.rep1[s], 0)
		default:
			cost += price(e.rep0[s], 1) + price(e.rep1[s], 1) + price(e.rep2[s], uint32(k-2))
		}
		for n := shortest; n <= most; n++ {
			e.offer(i, way{step: step{n, uint32(k)}}, cost+e.tariff.repLens[n-shortest])
		}
		e.over(i, step{most, uint32(k)}, cost+e.tariff.repLens[most-shortest])
	}
}

func (e *encoder) afterMatches(i int) {
	n := &e.nodes[i]
	base := n.price + price(e.match[n.state], 1) + price(e.rep[n.state], 0)
	length := shortest
	for _, f := range e.found {
		for ; length <= f.n; length++ {
			cost := base + e.tariff.lens[length-shortest] + e.tariff.distance(f.distance, length)
			s := step{length, 4 + f.distance}
			e.offer(i, way{step: s}, cost)
			if length == f.n {
				e.over(i, s, cost)
			}
		}
	}
}
