package litmus

import "math/bits"

// Axiom is one of those of the PTX ISA, section 8.10.
type Axiom string

// The axioms.
const (
	Coherence     Axiom = "coherence"
	FenceSC       Axiom = "fence-SC"
	Atomicity     Axiom = "atomicity"
	NoThinAir     Axiom = "no thin air"
	SCPerLocation Axiom = "SC per location"
	Causality     Axiom = "causality"
)

// orders is an execution as far as it is known: who reads from whom, and in what order fences and writes come.
type orders struct {
	*frame
	source []int    // of a read: the write that it reads from; negative: not known yet
	rf     relation // the same: writes before reads
	fenced relation // pairs of fence.sc, in the order that was chosen
	chosen relation // pairs of writes, likewise
	joined relation // barriers: arrivals before those that they let go on

	base, cause, co, fr relation // what follows, by settle
}

func (x *orders) clone() *orders {
	y := *x
	y.source = append([]int(nil), x.source...)
	y.rf, y.fenced, y.chosen, y.joined = x.rf.clone(), x.fenced.clone(), x.chosen.clone(), x.joined.clone()
	return &y
}

// settle derives causality and coherence, and returns the first axiom that is broken, if one is, with two events that show
// it. All that is derived grows with what is known: what breaks an axiom early breaks it for good.
func (x *orders) settle() (Axiom, [2]int) {
	observed := x.observation()
	sync := x.releases.then(observed).then(x.acquires).both(x.strong)
	x.base = x.po.clone()
	x.base.join(sync)
	x.base.join(x.fenced)
	x.base.join(x.joined)
	x.base.close()
	for _, p := range x.ordered {
		if x.base.has(p[0], p[1]) && x.base.has(p[1], p[0]) {
			return FenceSC, p
		}
	}
	x.cause = x.preserved()
	x.cause.join(observed.then(x.cause))
	if e := x.coherence(); e >= 0 {
		return Coherence, [2]int{e, e}
	}
	x.fromReads()
	return x.broken()
}

// observation is 8.9.2: a write before a read that takes its value, morally strong, perhaps through atomics.
func (x *orders) observation() relation {
	direct := x.rf.both(x.strong)
	through := x.rmw.then(direct).close()
	all := direct.then(through)
	all.join(direct)
	return all
}

// preserved is 8.9.5: base causality between accesses to the same place, as far as proxies keep it.
func (x *orders) preserved() relation {
	if x.plain {
		return x.base.both(x.overlap)
	}
	out := newRelation(len(x.events))
	for a := range x.events {
		if !x.events[a].access() {
			continue
		}
		seen := x.after(x.leaves(a))
		through := x.after(seen & x.classed(aliasFencing))
		for s := x.base[a] & x.memory[x.owner(a)]; s != 0; s &= s - 1 {
			b := bits.TrailingZeros64(s)
			in := x.enters(b)
			if through&in != 0 || x.virtual(a) == x.virtual(b) && (seen&in != 0 || x.oneProxy(a, b)) {
				out.add(a, b)
			}
		}
	}
	return out
}

func (x *orders) owner(e int) int { return x.test.Locations[x.events[e].loc].Memory }

// oneProxy: both by the same proxy, in the same CTA.
func (x *orders) oneProxy(a, b int) bool {
	e, g := &x.events[a], &x.events[b]
	return e.proxy == g.proxy && (e.proxy == generic || x.sameCTA(e, g))
}

// leaves are the events from which on the generic proxy knows of an access: itself, or the fences of its proxy behind it.
func (x *orders) leaves(a int) set {
	if x.events[a].proxy == generic {
		return 1 << a
	}
	return x.base[a] & x.proxyFences(a)
}

// enters are the events before which something must be known to the generic proxy, so that an access knows it.
func (x *orders) enters(b int) set {
	if x.events[b].proxy == generic {
		return 1 << b
	}
	out := x.proxyFences(b)
	for s := out; s != 0; s &= s - 1 {
		if g := bits.TrailingZeros64(s); !x.base.has(g, b) {
			out &^= 1 << g
		}
	}
	return out
}

// proxyFences are the fences of an access's proxy in its CTA.
func (x *orders) proxyFences(a int) set {
	var out set
	for s := x.fences; s != 0; s &= s - 1 {
		i := bits.TrailingZeros64(s)
		if g := &x.events[i]; g.class == proxyFencing && g.proxy == x.events[a].proxy && x.sameCTA(g, &x.events[a]) {
			out |= 1 << i
		}
	}
	return out
}

func (x *orders) classed(c class) set {
	var out set
	for s := x.fences; s != 0; s &= s - 1 {
		if i := bits.TrailingZeros64(s); x.events[i].class == c {
			out |= 1 << i
		}
	}
	return out
}

// after is all that base causality has behind some event of a set.
func (x *orders) after(of set) set {
	var out set
	for ; of != 0; of &= of - 1 {
		out |= x.base[bits.TrailingZeros64(of)]
	}
	return out
}

// coherence is the least order of writes that causality asks for, with what was chosen. It returns a write that would come
// before itself, or -1.
func (x *orders) coherence() int {
	x.co = x.chosen.clone()
	for _, m := range x.memory {
		w := m & x.writes
		for s := w; s != 0; s &= s - 1 {
			a := bits.TrailingZeros64(s)
			x.co[a] |= x.cause[a] & w
			if x.events[a].thread < 0 {
				x.co[a] |= w &^ (1 << a)
			}
		}
	}
	x.co.close()
	return x.co.loop()
}

// fromReads puts a read before the writes that come behind what it reads.
func (x *orders) fromReads() {
	x.fr = newRelation(len(x.events))
	for r, w := range x.source {
		if w >= 0 {
			x.fr[r] = x.co[w]
		}
	}
}

// broken is the first of the last three axioms that does not hold.
func (x *orders) broken() (Axiom, [2]int) {
	for r, row := range x.rmw {
		if row == 0 {
			continue
		}
		w := bits.TrailingZeros64(row)
		for s := x.fr[r] & x.strong[r]; s != 0; s &= s - 1 {
			if between := bits.TrailingZeros64(s); x.co.has(between, w) && x.strong.has(between, w) {
				return Atomicity, [2]int{w, between}
			}
		}
	}
	for a := range x.events {
		for s := x.rf[a] | x.fr[a]; s != 0; s &= s - 1 {
			if b := bits.TrailingZeros64(s); x.cause.has(b, a) {
				return Causality, [2]int{a, b}
			}
		}
	}
	communication := x.rf.clone()
	communication.join(x.co)
	communication.join(x.fr)
	communication = communication.both(x.strong)
	communication.join(x.po.both(x.overlap).both(x.strong))
	if e := communication.close().loop(); e >= 0 {
		return SCPerLocation, [2]int{e, e}
	}
	return "", [2]int{}
}

// thin is whether values would come from nowhere: reads and what hangs on them run in a circle.
func (x *orders) thin() bool {
	r := x.rf.clone()
	r.join(x.depends)
	return r.close().loop() >= 0
}

// with is the execution with a pair of fences, or of writes, in that order.
func (x *orders) with(pair [2]int, fences bool) *orders {
	y := x.clone()
	if fences {
		y.fenced.add(pair[0], pair[1])
	} else {
		y.chosen.add(pair[0], pair[1])
	}
	return y
}

// openFences is a pair of fences that must be ordered and is not, if there is one.
func (x *orders) openFences() (pair [2]int, open bool) {
	for _, p := range x.ordered {
		if !x.base.has(p[0], p[1]) && !x.base.has(p[1], p[0]) {
			return p, true
		}
	}
	return pair, false
}

// openWrites is the same for writes.
func (x *orders) openWrites() (pair [2]int, open bool) {
	for s := x.writes; s != 0; s &= s - 1 {
		a := bits.TrailingZeros64(s)
		for others := x.strong[a] & x.writes &^ (x.co[a] | 1<<a); others != 0; others &= others - 1 {
			if b := bits.TrailingZeros64(others); !x.co.has(b, a) {
				return [2]int{a, b}, true
			}
		}
	}
	return pair, false
}
