package warp

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// CTA is a block of the grid while it runs. (CTA, cooperative thread array, is PTX's word; block means a basic block
// elsewhere in this package.)
type CTA struct {
	Launch      *Launch
	Worker      *Worker
	kind        ctaKind
	Index       int    // in the order of the grid
	bit         uint32 // of what it touches
	cluster     *Cluster
	solo        Cluster     // of the block alone
	Rank        uint32      // in the cluster
	joined      bool        // a thread has waited at the barrier of the cluster
	early       []*bulkCopy // of groups, that are made and that nobody has waited for
	bulk        []*bulkCopy
	changedMaps map[uint64]*check.Site // tensor maps that want a fence
	tx          map[int]int64          // bytes that phases of mbarriers wait for, by address
	Id          [3]uint32
	warps       []*Warp
	Alive       int
	shared      []byte
	written     []byte       // 1 for each byte of shared memory that was written, under initcheck
	Order       *check.Order // under racecheck or the check of global memory
	Race        *check.Race  // under racecheck
	global      *check.Global
	reads       []sourceRead // of copies that are over, since the last barrier
	sources     []copySpan   // of copies by cp.async under way, under racecheck
	bars        [16]barrier
	Steps       int64
	passes      int
	moment      *moment // nil until a warp has used up a turn
	changed     bool    // an atomic has changed memory since the last look for endless loops
	spin        spin    // the last that has not
	stuck       stuck
	rand        uint64

	Fault    *check.Fault
	told     *check.Fault // what a debugger knows of
	Findings []check.Finding
	Advice   []check.Finding // what is allowed, and not what is meant more often than not
	Omitted  check.Omission
	Out      []byte // of vprintf

	mbarriers map[int]*check.MbarrierOrder // by address

	Tally
}

// random is a step of splitmix64, seeded by launch, seed and block.
func (c *CTA) random() uint64 {
	c.rand += 0x9e3779b97f4a7c15
	z := c.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

const maxFindings = 64 // kinds per block; more of a kind are only counted

// finding describes something at an instruction for the lowest of the lanes.
func (c *CTA) finding(w *Warp, s *check.Site, lane int, by check.Check, msg string) check.Finding {
	f := check.Finding{Check: by, Kernel: c.Launch.Code.Name, Block: c.Id, Msg: msg, Count: 1}
	if w != nil {
		f.Thread = c.Launch.ThreadID(w.Id*simt.WarpSize + uint32(lane))
	}
	if s != nil {
		f.Line, f.Source, f.Inst = s.Inst.Pos.Line, s.Source(), s.Inst.Name()
	}
	return f
}

// Note records a finding after which the kernel goes on, if its check is on.
func (c *CTA) Note(w *Warp, s *check.Site, lanes uint32, by check.Check, msg string) {
	c.noteAt(w, s, simt.Lowest(lanes), by, msg, "", 0, 0, "")
}

func (c *CTA) noteAt(w *Warp, s *check.Site, lane int, by check.Check, msg, space string, addr uint64, size int, alloc string) {
	c.noteBoth(w, s, nil, lane, by, msg, space, addr, size, alloc)
}

// noteBoth records a finding about two accesses. What follows from a fault is none.
func (c *CTA) noteBoth(w *Warp, s, other *check.Site, lane int, by check.Check, msg, space string, addr uint64, size int, alloc string) {
	if c.Launch.Checks&by == 0 || c.Fault != nil {
		return
	}
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Check == by && f.Line == s.Inst.Pos.Line && f.Msg == msg && (other == nil || f.Other.Line == other.Inst.Pos.Line) {
			f.Count++
			return
		}
	}
	if len(c.Findings) == maxFindings {
		c.Omitted |= check.OmitsFindings
		return
	}
	f := c.finding(w, s, lane, by, msg)
	if space == "shared" {
		addr = c.plain(addr)
	}
	f.Space, f.Addr, f.Size, f.Alloc, f.Other = space, addr, size, alloc, other.At()
	c.Findings = append(c.Findings, f)
	c.found(&f)
}

// advise records what is allowed and doubtful, if its check is on.
func (c *CTA) advise(w *Warp, s *check.Site, lanes uint32, by check.Check, msg string) {
	if c.Launch.Checks&by == 0 || c.Fault != nil {
		return
	}
	for i := range c.Advice {
		if a := &c.Advice[i]; a.Line == s.Inst.Pos.Line && a.Msg == msg {
			a.Count++
			return
		}
	}
	if len(c.Advice) < maxFindings {
		c.Advice = append(c.Advice, c.finding(w, s, simt.Lowest(lanes), by, msg))
	}
}

// Stop ends the kernel with a fault.
func (c *CTA) Stop(w *Warp, s *check.Site, lane int, code memory.Code, by check.Check, format string, args ...any) {
	if c.Fault == nil {
		c.Fault = &check.Fault{Code: code, Finding: c.finding(w, s, lane, by, fmt.Sprintf(format, args...))}
	}
}

// Pass gives each warp a turn. It reports whether any ran out its quantum; a block in which nothing can run is stopped.
func (c *CTA) Pass() (spun bool) {
	if c.Launch.Debug != nil {
		defer c.tellFault()
	}
	progress, spun := c.turns()
	switch {
	case c.Fault != nil || c.Launch.Stopped.Load():
	case !progress && c.Alive > 0:
		c.deadlock()
	case spun || c.passes%somePasses == 0:
		c.turnOver()
	}
	return spun
}

// turns gives each warp one. It reports whether anything ran, and whether a warp ran out its quantum.
func (c *CTA) turns() (progress, spun bool) {
	if c.Launch.Debug != nil {
		defer c.tellFault()
	}
	if c.Worker.bound != c {
		c.Worker.bind(c)
	}
	c.passes++
	for i := range c.warps {
		w := c.warps[c.Launch.Order(i, len(c.warps))]
		if w.live == 0 {
			continue
		}
		if c.Launch.IsStopped() {
			return progress, spun
		}
		p, s := w.run()
		progress, spun = progress || p, spun || s
		if c.Fault != nil {
			return progress, false
		}
		if c.Steps > c.Launch.Limit {
			c.overLimit(w)
			return progress, false
		}
	}
	if len(c.bulk) > 0 {
		c.landByChance()
	}
	return progress, spun
}

// here is an instruction close to where the warp's first split stands; nil where that block just falls through.
func (w *Warp) here() *check.Site {
	if len(w.splits) == 0 || w.splits[0].pc >= len(w.Code.Blocks) {
		return nil
	}
	return w.Code.Blocks[w.splits[0].pc].Term.Site
}

// deadlock stops a block whose warps all wait.
func (c *CTA) deadlock() {
	defer c.tellFault()
	for _, w := range c.warps {
		for _, sp := range w.splits {
			if sp.state == ready {
				continue
			}
			t := w.Code.Blocks[sp.pc].Term
			what := "the other lanes of its warp, which never arrive"
			switch sp.state {
			case atBar:
				what = c.awaited(sp.bar)
			case atCluster:
				what = c.cluster.awaited()
			case atProducts:
				what = "wgmma that the other warps of its four do not execute"
			}
			c.Stop(w, t.Site, simt.Lowest(sp.mask), memory.LaunchTimeout, check.Synccheck, "deadlock: lanes %08x wait for %s", sp.mask, what)
			return
		}
	}
	c.Stop(nil, nil, 0, memory.LaunchTimeout, check.Synccheck, "deadlock")
}

// awaited is a barrier that never completes, and why.
func (c *CTA) awaited(id uint32) string {
	live, expected, why := 0, c.bars[id].count, ""
	for _, w := range c.warps {
		live += simt.Popcount(w.live)
	}
	here := c.present(id)
	if gone := c.Launch.Threads - live; expected == 0 {
		expected, here = live, c.bars[id].arrived
		for _, w := range c.warps { // threads, where present counts a warp that is not full as one that is
			here += simt.Popcount(w.waitingAt(id))
		}
	} else if gone > 0 {
		why = fmt.Sprintf("; %d threads of the block have exited, which a barrier with a number of threads expects as before", gone)
	}
	return fmt.Sprintf("barrier %d, where %d of %d threads are and the others never arrive%s", id, here, expected, why)
}

// Start readies the block for its place in the grid.
func (c *CTA) Start(index int) {
	g := c.Launch
	c.Index = index
	c.Id = g.BlockID(index)
	c.rand = g.Seed*0x632be59bd9b4e019 + uint64(index)
	c.Fault, c.Findings, c.Advice, c.Omitted, c.Out, c.Steps, c.passes, c.bars = nil, nil, nil, 0, nil, 0, 0, [16]barrier{}
	c.Tally.reset()
	c.bit = g.bit(index)
	c.moment.forget()
	c.changed, c.spin, c.stuck = false, spin{}, stuck{}
	c.Alive = len(c.warps)
	c.bulk, c.early, c.tx, c.changedMaps, c.joined = c.bulk[:0], nil, nil, nil, false
	if c.cluster == nil {
		c.solo.CTAs, c.solo.phase, c.Rank = append(c.solo.CTAs[:0], c), 1, 0
		c.cluster = &c.solo
	}
	c.sources, c.reads = c.sources[:0], c.reads[:0]
	c.mbarriers = nil
	if g.Checks&check.Initcheck != 0 {
		clear(c.written)
		memory.Poison(c.shared)
	} else {
		clear(c.shared)
	}
	if c.Order != nil {
		c.Order.Start(index, g.Total)
		c.Order.Reach(c.cluster.near, MapRank(0, uint64(c.Rank)))
	}
	if c.Race != nil {
		c.Race.Start()
	}
	for i, w := range c.warps {
		w.start(g.Threads - i*simt.WarpSize)
	}
}

// start readies a warp with so many threads left for it.
func (w *Warp) start(threads int) {
	w.live = simt.Full
	if threads < simt.WarpSize {
		w.live = 1<<threads - 1
	}
	w.born, w.early = w.live, 0
	w.Mask, w.Cc, w.turn = w.live, 0, 0
	clear(w.Local)
	for i := range w.LocalUndef {
		w.LocalUndef[i] = 1
	}
	w.splits = append(w.splits[:0], split{mask: w.live, node: -1})
	w.nodes = w.nodes[:0]
	w.Stack = [simt.WarpSize]uint32{}
	w.groups, w.registers = nil, 0
	if w.Code.Bulk {
		w.products.reset()
	}
	if w.yield = false; w.Code.Clusters {
		w.arrived = [simt.WarpSize]uint32{}
	}
	w.async.Reset(w.CTA.Launch.Seed != 0)
	for i := range w.Undef {
		w.Undef[i] = simt.Full
	}
	clear(w.UndefBytes)
	for _, s := range w.Code.Specials {
		w.SetSpecial(s)
	}
}

// adopt puts the block into a launch.
func (c *CTA) adopt(g *Launch, wk *Worker) {
	c.Launch, c.Worker, c.global = g, wk, wk.Global
	for _, w := range c.warps {
		for _, s := range g.Code.Launched {
			w.SetSpecial(s)
		}
	}
}

// Retire keeps the block for a later launch.
func (c *CTA) Retire() {
	p := c.Launch.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		c.Launch, c.Worker, c.cluster, c.global = nil, nil, nil, nil
		p.idle = append(p.idle, c)
	}
}

func newCTA(g *Launch) *CTA {
	n := (g.Threads + simt.WarpSize - 1) / simt.WarpSize
	c := &CTA{Launch: g, kind: g.kind(), shared: simt.Aligned[byte](g.Shared + g.Code.Extra), warps: make([]*Warp, n), Tally: NewTally(g.Code)}
	if g.Checks&check.Initcheck != 0 {
		c.written = make([]byte, len(c.shared))
	}
	if g.Checks&(check.Racecheck|check.Globalcheck) != 0 {
		c.Order = check.NewOrder(n, g.Code.Signals || g.Code.Talks && g.Checks&check.Globalcheck != 0)
	}
	if g.Checks&check.Racecheck != 0 {
		c.Race = check.NewRace(c.Order, c.shared, g.Code.Sites, func(w uint32, lane int, a *check.Access, other *check.Site, what string, addr int) {
			c.noteBoth(c.warps[w], a.Site, other, lane, check.Racecheck, what, "shared", uint64(addr), a.Size, sharedSize(c))
		})
	}
	if c.Race != nil && g.Code.Bulk {
		c.Race.Asynchronous()
	}
	for i := range c.warps {
		c.warps[i] = newWarp(c, uint32(i))
	}
	return c
}

func newWarp(c *CTA, id uint32) *Warp {
	k := c.Launch.Code
	w := &Warp{CTA: c, Code: k, Id: id, R32: simt.Aligned[simt.Vec32](k.Slots[simt.Bank32]), R64: simt.Aligned[simt.Vec64](k.Slots[simt.Bank64]), Preds: make([]uint32, k.Slots[simt.BankPred])}
	if c.Launch.Checks&check.Initcheck != 0 {
		w.Undef = make([]uint32, k.Regs)
	}
	w.Local = make([]byte, simt.WarpSize*k.Local)
	if c.Launch.Checks&check.Initcheck != 0 {
		w.LocalUndef = make([]byte, len(w.Local))
	}
	for _, x := range k.Const32 {
		w.R32[x.I] = simt.Vec32(slices.Repeat([]uint32{uint32(x.Bits)}, simt.WarpSize))
	}
	for _, x := range k.ConstPred {
		w.Preds[x.I] = uint32(x.Bits)
	}
	for _, x := range k.Const64 {
		w.R64[x.I] = simt.Vec64(slices.Repeat([]uint64{x.Bits}, simt.WarpSize))
	}
	for _, s := range k.Fixed {
		w.SetSpecial(s)
	}
	return w
}
