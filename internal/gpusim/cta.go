package gpusim

import (
	"fmt"
	"slices"
)

// cta is a block of the grid while it runs. (CTA, cooperative thread array, is PTX's word; block means a basic block
// elsewhere in this package.)
type cta struct {
	grid    *grid
	worker  *worker
	kind    ctaKind
	index   int // in the order of the grid
	id      [3]uint32
	warps   []*warp
	alive   int
	shared  []byte
	written []byte       // 1 for each byte of shared memory that was written, under initcheck
	race    *race        // under racecheck
	reads   []sourceRead // of copies that are over, since the last barrier
	sources []copySpan   // of copies by cp.async under way, under racecheck
	bars    [16]barrier
	steps   int64
	passes  int
	moment  *moment // nil until a warp has used up a turn
	rand    uint64

	fault    *Fault
	findings []Finding
	omitted  omission
	out      []byte // of vprintf

	mbarriers map[int]*mbarrierOrder // by address

	tally
}

// random is a step of splitmix64, seeded by launch, seed and block.
func (c *cta) random() uint64 {
	c.rand += 0x9e3779b97f4a7c15
	z := c.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const maxFindings = 64 // kinds per block; more of a kind are only counted

// omission is what a launch left out of its report.
type omission uint8

const (
	omitsFindings omission = 1 << iota
	omitsSources
	omitsStale
)

var omissions = []string{
	"there are more kinds of findings than a report lists",
	"writes to what cp.async reads were not all looked at: a block ended more copies between barriers than are remembered",
	"writes to what ld.global.nc reads were not looked at: the kernel has too many accesses",
}

// notes says what was left out.
func (o omission) notes() (list []string) {
	for i, text := range omissions {
		if o>>i&1 == 1 {
			list = append(list, text)
		}
	}
	return list
}

// finding describes something at an instruction for the lowest of the lanes.
func (c *cta) finding(w *warp, s *site, lane int, check Check, msg string) Finding {
	f := Finding{Check: check, Kernel: c.grid.code.kernel.Name, Block: c.id, Msg: msg, Count: 1}
	if w != nil {
		f.Thread = c.grid.threadID(w.id*warpSize + uint32(lane))
	}
	if s != nil {
		f.Line, f.Source, f.Inst = s.in.Pos.Line, s.source(), s.in.Name()
	}
	return f
}

// note records a finding after which the kernel goes on, if its check is on.
func (c *cta) note(w *warp, s *site, lanes uint32, check Check, msg string) {
	c.noteAt(w, s, lowest(lanes), check, msg, "", 0, 0, "")
}

func (c *cta) noteAt(w *warp, s *site, lane int, check Check, msg, space string, addr uint64, size int, alloc string) {
	c.noteBoth(w, s, nil, lane, check, msg, space, addr, size, alloc)
}

// noteBoth records a finding about two accesses. What follows from a fault is none.
func (c *cta) noteBoth(w *warp, s, other *site, lane int, check Check, msg, space string, addr uint64, size int, alloc string) {
	if c.grid.checks&check == 0 || c.fault != nil {
		return
	}
	for i := range c.findings {
		f := &c.findings[i]
		if f.Check == check && f.Line == s.in.Pos.Line && f.Msg == msg && (other == nil || f.Other.Line == other.in.Pos.Line) {
			f.Count++
			return
		}
	}
	if len(c.findings) == maxFindings {
		c.omitted |= omitsFindings
		return
	}
	f := c.finding(w, s, lane, check, msg)
	f.Space, f.Addr, f.Size, f.Alloc, f.Other = space, addr, size, alloc, other.place()
	c.findings = append(c.findings, f)
}

// stop ends the kernel with a fault.
func (c *cta) stop(w *warp, s *site, lane int, code Code, check Check, format string, args ...any) {
	if c.fault == nil {
		c.fault = &Fault{Code: code, Finding: c.finding(w, s, lane, check, fmt.Sprintf(format, args...))}
	}
}

// pass gives each warp a turn. It reports whether any ran out its quantum; a block in which nothing can run is stopped.
func (c *cta) pass() (spun bool) {
	if c.worker.bound != c {
		c.worker.bind(c)
	}
	progress := false
	c.passes++
	for i := range c.warps {
		w := c.warps[c.grid.order(i, len(c.warps))]
		if w.live == 0 {
			continue
		}
		if c.grid.isStopped() {
			return false
		}
		p, s := w.run()
		progress, spun = progress || p, spun || s
		if c.fault != nil {
			return false
		}
		if c.steps > c.grid.limit {
			c.overLimit(w)
			return false
		}
	}
	switch {
	case !progress && c.alive > 0:
		c.deadlock()
	case spun || c.passes%somePasses == 0:
		c.turnOver()
	}
	return spun
}

// here is an instruction close to where the warp's first split stands; nil where that block just falls through.
func (w *warp) here() *site {
	if len(w.splits) == 0 || w.splits[0].pc >= len(w.code.blocks) {
		return nil
	}
	return w.code.blocks[w.splits[0].pc].term.site
}

// deadlock stops a block whose warps all wait.
func (c *cta) deadlock() {
	for _, w := range c.warps {
		for _, sp := range w.splits {
			if sp.state == ready {
				continue
			}
			t := w.code.blocks[sp.pc].term
			what := "the other lanes of its warp, which never arrive"
			if sp.state == atBar {
				what = c.awaited(sp.bar)
			}
			c.stop(w, t.site, lowest(sp.mask), LaunchTimeout, Synccheck, "deadlock: lanes %08x wait for %s", sp.mask, what)
			return
		}
	}
	c.stop(nil, nil, 0, LaunchTimeout, Synccheck, "deadlock")
}

// awaited is a barrier that never completes, and why.
func (c *cta) awaited(id uint32) string {
	live, expected, why := 0, c.bars[id].count, ""
	for _, w := range c.warps {
		live += popcount(w.live)
	}
	here := c.present(id)
	if gone := c.grid.threads - live; expected == 0 {
		expected, here = live, c.bars[id].arrived
		for _, w := range c.warps { // threads, where present counts a warp that is not full as one that is
			here += popcount(w.waitingAt(id))
		}
	} else if gone > 0 {
		why = fmt.Sprintf("; %d threads of the block have exited, which a barrier with a number of threads expects as before", gone)
	}
	return fmt.Sprintf("barrier %d, where %d of %d threads are and the others never arrive%s", id, here, expected, why)
}

// start readies the block for its place in the grid.
func (c *cta) start(index int) {
	g := c.grid
	c.index = index
	c.id = g.blockID(index)
	c.rand = g.seed*0x632be59bd9b4e019 + uint64(index)
	c.fault, c.findings, c.omitted, c.out, c.steps, c.passes, c.bars = nil, nil, 0, nil, 0, 0, [16]barrier{}
	c.tally.reset()
	c.moment.forget()
	c.alive = len(c.warps)
	c.sources, c.reads = c.sources[:0], c.reads[:0]
	c.mbarriers = nil
	if g.checks&Initcheck != 0 {
		clear(c.written)
		poison(c.shared)
	} else {
		clear(c.shared)
	}
	if c.race != nil {
		c.race.start(c)
	}
	for i, w := range c.warps {
		w.start(g.threads - i*warpSize)
	}
}

// start readies a warp with so many threads left for it.
func (w *warp) start(threads int) {
	w.live = full
	if threads < warpSize {
		w.live = 1<<threads - 1
	}
	w.born = w.live
	w.mask, w.cc, w.turn = w.live, 0, 0
	clear(w.local)
	for i := range w.localUndef {
		w.localUndef[i] = 1
	}
	w.splits = append(w.splits[:0], split{mask: w.live, node: -1})
	w.nodes = w.nodes[:0]
	w.stack = [warpSize]uint32{}
	w.async.reset(w.cta.grid.seed != 0)
	for i := range w.undef {
		w.undef[i] = full
	}
	clear(w.parts)
	for _, s := range w.code.specials {
		w.setSpecial(s)
	}
}

// takeCTA gives a block to start again and again: one left by an earlier launch of the same kind, or a new one.
func (g *grid) takeCTA(wk *worker) *cta {
	k := g.code
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range k.idle {
		if len(c.shared) == g.shared && c.kind == g.kind() {
			k.idle = slices.Delete(k.idle, i, i+1)
			c.adopt(g, wk)
			return c
		}
	}
	c := newCTA(g)
	c.adopt(g, wk)
	return c
}

// ctaKind is what a block must have in common with a launch to serve it.
type ctaKind struct {
	block  [3]uint32
	checks Check
}

func (g *grid) kind() ctaKind { return ctaKind{g.block, g.checks} }

// adopt puts the block into a launch.
func (c *cta) adopt(g *grid, wk *worker) {
	c.grid, c.worker = g, wk
	for _, w := range c.warps {
		for _, s := range g.code.launched {
			w.setSpecial(s)
		}
	}
}

// maxIdle bounds the blocks that a kernel keeps between launches.
const maxIdle = 16

// retire keeps the block for a later launch.
func (c *cta) retire() {
	k := c.grid.code
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) < maxIdle {
		c.grid, c.worker = nil, nil
		k.idle = append(k.idle, c)
	}
}

func newCTA(g *grid) *cta {
	n := (g.threads + warpSize - 1) / warpSize
	c := &cta{grid: g, kind: g.kind(), shared: aligned[byte](g.shared), warps: make([]*warp, n), tally: newTally(g.code)}
	if g.checks&Initcheck != 0 {
		c.written = make([]byte, g.shared)
	}
	if g.checks&Racecheck != 0 {
		c.race = newRace(g.shared, n)
	}
	for i := range c.warps {
		c.warps[i] = newWarp(c, uint32(i))
	}
	return c
}

func newWarp(c *cta, id uint32) *warp {
	k := c.grid.code
	w := &warp{cta: c, code: k, id: id, r: aligned[vec32](k.slots[bank32]), q: aligned[vec64](k.slots[bank64]), p: make([]uint32, k.slots[bankPred])}
	if c.grid.checks&Initcheck != 0 {
		w.undef = make([]uint32, k.regs)
	}
	w.local = make([]byte, warpSize*k.kernel.Local)
	if c.grid.checks&Initcheck != 0 {
		w.localUndef = make([]byte, len(w.local))
	}
	for _, x := range k.const32 {
		w.r[x.i] = vec32(slices.Repeat([]uint32{uint32(x.bits)}, warpSize))
	}
	for _, x := range k.constPred {
		w.p[x.i] = uint32(x.bits)
	}
	for _, x := range k.const64 {
		w.q[x.i] = vec64(slices.Repeat([]uint64{x.bits}, warpSize))
	}
	for _, s := range k.fixed {
		w.setSpecial(s)
	}
	return w
}
