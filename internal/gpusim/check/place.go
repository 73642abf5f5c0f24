package check

import "fmt"

// place is what the last strong write to an address told, and who wrote.
type place struct {
	by    record
	scope Scope // of the write
	own   *view // for threads of its block
	out   [scopes]*tree
}

// hearing is that a thread of the block has read what another block wrote.
type hearing struct {
	write, read record
	level       Scope // that the two need
	reached     bool  // their scopes reach each other
	told        int   // by how wide a fence before the write: one more than its scope, 0 for none
}

// talk is what a strong access takes from its address and leaves there.
func (g *Global) talk(o *Order, w uint32, lane int, a *Access, now record, at uint64, writes bool) {
	there := g.places[at]
	var level Scope
	if there != nil {
		level = g.launch.level(now.block, there.by.block)
	}
	reached := there != nil && min(a.Scope, there.scope) >= level
	if !a.Write || a.Atomic {
		g.hear(o, w, lane, a, now, there, level, reached)
	}
	if !writes {
		return
	}
	left := o.leaves(w, a, lane)
	p := &place{by: now, scope: a.Scope, own: left[OfBlock]}
	for i := OfCluster; i <= a.Scope; i++ {
		p.out[i] = left[i].all(o.block, o.levels)
	}
	if a.Atomic && reached { // an atomic passes on what it found
		p.pass(o, there, level)
	}
	g.keep(at, p)
	if a.Release {
		o.tick(w)
	}
}

// pass adds what was told at the place before.
func (p *place) pass(o *Order, before *place, level Scope) {
	if level == OfBlock {
		p.own = union(before.own, p.own)
	} else {
		p.own = union(viewOf(before.out[level], o.block, o.levels), p.own)
	}
	for i := OfCluster; i <= p.scope; i++ {
		p.out[i] = before.out[max(i, level)].joined(p.out[i])
	}
}

// hear takes what was told at an address.
func (g *Global) hear(o *Order, w uint32, lane int, a *Access, now record, there *place, level Scope, reached bool) {
	if g.beyond != nil {
		s := o.of(w, lane)
		s.known = s.known.hearing(g.beyond, o.block, o.levels)
	}
	if there == nil {
		return
	}
	if level > OfBlock {
		g.arrived(o, there.by)
		h := hearing{write: there.by, read: now, level: level, reached: reached}
		for i := range there.out {
			if there.out[i] != nil {
				h.told = i + 1
			}
		}
		if h.told == 0 && there.own != nil {
			h.told = 1
		}
		o.heard[o.hearings%len(o.heard)] = h
		o.hearings++
		g.warnOfVectors(a, there.by)
	}
	if !reached {
		return
	}
	if level == OfBlock && there.own == nil || level > OfBlock && there.out[level] == nil {
		return
	}
	s := o.of(w, lane)
	knows := &s.read[level]
	if a.Acquire && a.Scope >= level {
		o.toldOfFences(w)
		knows = &s.known
	}
	if level == OfBlock {
		*knows = union(*knows, there.own)
	} else {
		*knows = (*knows).hearing(there.out[level], o.block, o.levels)
	}
}

// warnOfVectors is for a wait whose vector brings data too, which the model does not keep together.
func (g *Global) warnOfVectors(a *Access, by record) {
	b := g.launch.accesses[by.access()]
	if a.Polled && !a.Atomic && a.Size > a.Elem && b.Size > b.Elem {
		g.leave |= splitVectors
	}
}

// keep remembers what was told at an address. Where that is too much, who reads anywhere else is taken to have heard all.
func (g *Global) keep(at uint64, p *place) {
	silent := p.own == nil && p.out == [scopes]*tree{}
	if _, known := g.places[at]; !known {
		switch {
		case silent && len(g.places) > maxPlaces/8:
			return // it would only make reports better
		case len(g.places) >= maxPlaces:
			g.leave |= omitsPlaces
			for _, t := range p.out {
				g.beyond = g.beyond.joined(t)
			}
			return
		}
	}
	g.places[at] = p
}

// Atomic is told of an atomic of a lane that has been carried out, and whether it left something else than it found.
func (g *Global) Atomic(o *Order, w uint32, lane int, a *Access, at uint64, changed bool) {
	if g.follows(a) {
		g.talk(o, w, lane, a, g.record(o, w, lane, a), at, changed || !a.Exchange)
	}
}

// Writer is who wrote last by a strong access to an address; nil where that is not known.
func (g *Global) Writer(at uint64) (Party, *Site) {
	if g == nil || g.places[at] == nil {
		return Party{}, nil
	}
	by := g.places[at].by
	return Party{by.block, uint32(by.thread())}, g.launch.accesses[by.access()].Site
}

// why says what is missing between two accesses.
func (g *Global) why(o *Order, w uint32, lane int, now, then record) string {
	a, b := g.launch.accesses[now.access()], g.launch.accesses[then.access()]
	if then.block == now.block {
		if then.thread()/32 == now.thread()/32 {
			return "no bar.warp.sync (__syncwarp) orders the two lanes"
		}
		return "no barrier of the block orders the two threads"
	}
	level := g.launch.level(now.block, then.block)
	switch {
	case a.Strong && b.Strong && a.Elem != b.Elem:
		return fmt.Sprintf("they are of %d and of %d bytes, and only strong accesses to the same bytes are no race", a.Elem, b.Elem)
	case a.Strong && b.Strong && a.Scope < level:
		return "the scope " + a.Scope.String() + " of " + a.Site.at() + " does not reach the other block"
	case a.Strong && b.Strong:
		return "the scope " + b.Scope.String() + " of " + b.Site.at() + " does not reach the other block"
	}
	if s := o.at(w, lane); !o.none {
		for i, v := range s.read {
			if v != nil && v.far.get(then.block, o.levels).of(then.thread()) >= then.clock {
				if h := o.lastHearing(then.block); h != nil {
					return fmt.Sprintf("no fence of scope %v or wider follows %s, which waits for it", Scope(i), g.site(h.read))
				}
			}
		}
	}
	if h := o.lastHearing(then.block); h != nil {
		return g.whyHeard(o, now, then, h)
	}
	switch {
	case a.Strong != b.Strong && !g.launch.near:
		plain := a
		if a.Strong {
			plain = b
		}
		return plain.Site.at() + " is plain: what other blocks access meanwhile needs .volatile, .relaxed or stronger on both sides, or an atomic"
	}
	if g.launch.near {
		return g.whyNear(then)
	}
	return "nothing orders the two blocks"
}

// whyHeard is for a block that has heard from the other.
func (g *Global) whyHeard(o *Order, now, then record, h *hearing) string {
	write, read := g.site(h.write), g.site(h.read)
	ws, rs := g.launch.accesses[h.write.access()].Scope, g.launch.accesses[h.read.access()].Scope
	switch {
	case !h.reached && ws < h.level:
		return fmt.Sprintf("the scope %v of %s, which tells of it, does not reach the other block", ws, write)
	case !h.reached:
		return fmt.Sprintf("the scope %v of %s, which waits for it, does not reach the other block", rs, read)
	case h.told == 0:
		return fmt.Sprintf("no fence before %s, which tells of it", write)
	case h.told <= int(h.level):
		return fmt.Sprintf("the fence before %s, which tells of it, has scope %v, which does not reach the other block", write, Scope(h.told-1))
	}
	if r := o.at(uint32(h.read.thread())/32, int(h.read.thread())%32); now.thread() != h.read.thread() && r.known != nil &&
		r.known.far.get(then.block, o.levels).of(then.thread()) >= then.clock {
		return fmt.Sprintf("no barrier between the thread that waits, at %s, and this one", read)
	}
	if then.thread() == h.write.thread() {
		return fmt.Sprintf("the other access comes after the fence before %s, which tells of it", write)
	}
	return fmt.Sprintf("no barrier between the thread of the other access and the one that tells of it, by %s and the fence before it", write)
}

// lastHearing is the last one of a block.
func (k *talk) lastHearing(block uint32) *hearing {
	for i := k.hearings - 1; i >= max(0, k.hearings-len(k.heard)); i-- {
		if h := &k.heard[i%len(k.heard)]; h.write.block == block {
			return h
		}
	}
	return nil
}

func (g *Global) site(r record) string { return g.launch.accesses[r.access()].Site.at() }

// at names an instruction within a sentence.
func (s *Site) at() string {
	if src := s.Source(); src != "" {
		return fmt.Sprintf("%s at PTX line %d (%s)", s.Inst.Name(), s.Inst.Pos.Line, src)
	}
	return fmt.Sprintf("%s at PTX line %d", s.Inst.Name(), s.Inst.Pos.Line)
}

// String is the scope as PTX writes it.
func (s Scope) String() string { return [scopes]string{".cta", ".cluster", ".gpu"}[s] }
