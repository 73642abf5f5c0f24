package litmus

import "math/bits"

// event is one access, fence or barrier of an execution. An atomic is a read and a write.
type event struct {
	thread int // negative: the initial write of a location
	local  int // index into the thread's path
	in     *Instruction
	class  class
	loc    int // of an access
	sem    sem
	scope  scope
	proxy  proxy
	value  *expr // of a write
}

type class int

const (
	reading class = iota
	writing
	fencing
	proxyFencing
	aliasFencing
	waiting // at a barrier
)

// frame is a choice of one path for each thread, and what holds among their events whoever reads from whom. Names follow
// the PTX ISA, section 8.8 to 8.9.
type frame struct {
	test   *Test
	paths  []*path
	first  []int // of each thread: its first event
	events []event

	reads, writes, fences set      // of events; fences are those of proxies and aliases
	memory                []set    // of each location that owns memory: the accesses
	po                    relation // program order
	strong                relation // morally strong
	rmw                   relation // the read and the write of an atomic
	releases              relation // the first operation of a release pattern, and its write
	acquires              relation // the read of an acquire pattern, and its last operation
	depends               relation // a read, and a write whose value or whose being hangs on it
	overlap               relation // accesses to the same memory by the same virtual address
	plain                 bool     // one proxy, no aliases
	ordered               [][2]int // pairs of fence.sc that are morally strong
}

// newFrame lays out the events of paths: initial writes first.
func newFrame(t *Test, paths []*path) *frame {
	f := &frame{test: t, paths: paths, plain: true}
	for i, l := range t.Locations {
		if l.Memory == i {
			f.events = append(f.events, event{thread: -1, class: writing, loc: i, value: number64(l.Init)})
		}
	}
	for i, p := range paths {
		f.first = append(f.first, len(f.events))
		for k := range p.events {
			f.events = append(f.events, eventOf(i, k, &p.events[k]))
		}
	}
	if len(f.events) > maxEvents {
		return f
	}
	f.sets()
	f.programOrder()
	f.relate()
	return f
}

func eventOf(thread, local int, p *pathEvent) event {
	e := event{thread: thread, local: local, in: p.in, loc: p.in.loc, sem: p.in.sem, scope: p.in.scope, proxy: p.in.proxy, value: p.value}
	switch p.in.op {
	case opFence:
		e.class = fencing
	case opProxyFence:
		e.class = proxyFencing
	case opAliasFence:
		e.class = aliasFencing
	case opBarrier:
		e.class = waiting
	case opAtomic:
		e.class, e.sem = reading, relaxed
		if p.writes {
			e.class = writing
		}
		if p.writes && p.in.sem.releases() {
			e.sem = release
		}
		if !p.writes && p.in.sem.acquires() {
			e.sem = acquire
		}
	default:
		if p.writes {
			e.class = writing
		}
	}
	return e
}

func (f *frame) sets() {
	f.memory = make([]set, len(f.test.Locations))
	for i, e := range f.events {
		switch e.class {
		case reading:
			f.reads |= 1 << i
		case writing:
			f.writes |= 1 << i
		case proxyFencing, aliasFencing:
			f.fences |= 1 << i
		}
		if e.class <= writing {
			l := f.test.Locations[e.loc]
			f.memory[l.Memory] |= 1 << i
			f.plain = f.plain && e.proxy == generic && l.Virtual == l.Memory
		}
	}
}

func (f *frame) programOrder() {
	n := len(f.events)
	f.po, f.rmw, f.depends = newRelation(n), newRelation(n), newRelation(n)
	for i, p := range f.paths {
		for k, e := range p.events {
			at := f.first[i] + k
			for later := k + 1; later < len(p.events); later++ {
				f.po.add(at, f.first[i]+later)
			}
			if !e.writes {
				continue
			}
			if e.in.op == opAtomic {
				f.rmw.add(at-1, at)
			}
			for on := e.value.depends | e.control; on != 0; on &= on - 1 {
				f.depends.add(f.first[i]+bits.TrailingZeros64(on), at)
			}
		}
	}
}

func (f *frame) relate() {
	n := len(f.events)
	f.strong, f.overlap, f.releases, f.acquires = newRelation(n), newRelation(n), newRelation(n), newRelation(n)
	for a := range n {
		for b := range n {
			if a != b && f.overlaps(a, b) {
				f.overlap.add(a, b)
			}
			if a != b && f.morallyStrong(a, b) {
				f.strong.add(a, b)
			}
		}
	}
	for a, e := range f.events {
		for b, g := range f.events {
			if f.startsRelease(a, b) && g.class == writing && g.strong() {
				f.releases.add(a, b)
			}
			if e.class == reading && e.strong() && f.endsAcquire(a, b) {
				f.acquires.add(a, b)
			}
			if a < b && e.isSC() && g.isSC() && f.strong.has(a, b) {
				f.ordered = append(f.ordered, [2]int{a, b})
			}
		}
	}
}

// startsRelease: a is b, a release; or a release before b, at the same place; or a fence before b that releases.
func (f *frame) startsRelease(a, b int) bool {
	e := f.events[a]
	if !e.sem.releases() {
		return false
	}
	return e.class == writing && (a == b || f.po.has(a, b) && f.overlap.has(a, b)) || e.class == fencing && f.po.has(a, b)
}

// endsAcquire is the same for the end of an acquire pattern.
func (f *frame) endsAcquire(a, b int) bool {
	g := f.events[b]
	if !g.sem.acquires() {
		return false
	}
	return g.class == reading && (a == b || f.po.has(a, b) && f.overlap.has(a, b)) || g.class == fencing && f.po.has(a, b)
}

// strong: an access that is not weak, or a fence.
func (e *event) strong() bool {
	return e.thread >= 0 && (e.class == fencing || e.class <= writing && e.sem != weak)
}

func (e *event) isSC() bool { return e.class == fencing && e.sem == sc }

func (e *event) access() bool { return e.class <= writing }

// overlaps: accesses to the same memory by the same virtual address.
func (f *frame) overlaps(a, b int) bool {
	return f.events[a].access() && f.events[b].access() && f.virtual(a) == f.virtual(b)
}

func (f *frame) virtual(e int) int { return f.test.Locations[f.events[e].loc].Virtual }

// morallyStrong is section 8.7: in program order, or both strong and each in the other's scope; by the same proxy; and
// overlapping as a whole, if both are accesses.
func (f *frame) morallyStrong(a, b int) bool {
	x, y := &f.events[a], &f.events[b]
	if x.proxy != y.proxy || x.access() && y.access() && !f.overlap.has(a, b) && !f.overlaps(a, b) {
		return false
	}
	if f.po.has(a, b) || f.po.has(b, a) {
		return true
	}
	return x.strong() && y.strong() && f.includes(x, y) && f.includes(y, x)
}

// includes is whether the scope of x has the thread of y.
func (f *frame) includes(x, y *event) bool {
	a, b := &f.test.Threads[x.thread], &f.test.Threads[y.thread]
	switch x.scope {
	case scopeSys:
		return true
	case scopeGPU:
		return a.GPU == b.GPU
	case scopeCluster:
		return a.GPU == b.GPU && (a.CTA == b.CTA || a.Cluster >= 0 && a.Cluster == b.Cluster)
	case scopeCTA:
		return f.sameCTA(x, y)
	}
	return false
}

func (f *frame) sameCTA(x, y *event) bool {
	if x.thread < 0 || y.thread < 0 {
		return false
	}
	a, b := &f.test.Threads[x.thread], &f.test.Threads[y.thread]
	return a.GPU == b.GPU && a.CTA == b.CTA
}
