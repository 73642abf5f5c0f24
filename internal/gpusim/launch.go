package gpusim

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/compile"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Schedule is how the lanes of a warp are run.
type Schedule uint8

// The schedules. Independent lets lanes that parted meet only at instructions that wait for them, and switches between
// them by chance at memory operations, as hardware since compute capability 7.0 may: a missing __syncwarp shows.
const (
	Reconverge Schedule = iota
	Independent
)

// Options are those of one launch.
type Options struct {
	Checks    Check
	Seed      uint64 // of the order of blocks, warps and lanes; 0 is the natural order
	Schedule  Schedule
	Numerics  Numerics
	StepLimit int64 // instructions of all warps of one block; 0 means 1e10
	Cores     int   // 0 means as many as par uses
	Counters  bool  // count memory transactions too, and what the model of time goes by
	Sample    int   // with Counters: of so many blocks only, chosen by the grid alone, scaled; at most 32, 0 for all. Where blocks may wait for each other, of all
	Skip      bool  // with Sample: the other blocks do not run, and what they would write is missing

	Touched bool     // with Globalcheck: tell what was read and written
	Cluster [3]int   // blocks that run together; zero for what the kernel was compiled for
	Ahead   *Ahead   // with Globalcheck, of a launch that may begin before the one ahead of it has ended (griddepcontrol): what that touched
	Debug   Debugger // comes by at each instruction, one at a time; nil for none

	Stop <-chan struct{} // closed to end the launch early, with ErrStopped; nil for never
	Done *atomic.Int64   // counts blocks as they end, for those who watch; may be nil
}

// ErrStopped is the error of a launch that was told to end early. What its blocks had written stays; the device is usable.
var ErrStopped = errors.New("gpusim: the launch was stopped before its end")

// Counters is what a launch did; after a fault, what the block did that faulted.
type Counters struct {
	Instructions     uint64            // executed by warps
	LaneInstructions uint64            // executed by lanes: a warp's count once for each active lane
	ByClass          map[string]uint64 // warp instructions
	Branches         uint64            // executed by warps
	Divergent        uint64            // of them those whose lanes parted
	GlobalRequests   uint64            // warp instructions that touched global memory
	GlobalSectors    uint64            // of 32 bytes, that they touched
	SharedRequests   uint64
	SharedWavefronts uint64 // passes over the 32 banks that they took
	SharedConflicts  uint64 // of them those beyond what the width of the accesses needs
}

// LaneUtilisation is the average share of active lanes, from 0 to 1.
func (c Counters) LaneUtilisation() float64 {
	return float64(c.LaneInstructions) / float64(max(c.Instructions, 1)) / simt.WarpSize
}

// Report is the outcome of a launch.
type Report struct {
	Findings  []Finding // in the order of blocks
	Advice    []Finding // of synccheck: what cards allow and CUDA's guide does not
	Counters  Counters
	Occupancy Occupancy
	Registers int      // per thread, estimated from liveness
	Shared    int      // bytes per block, static and dynamic
	Output    []byte   // of vprintf, in the order of blocks
	Notes     []string // what the checks left out, and why

	Reads, Writes []Span // with Options.Touched: global memory, ascending

	Work    estimate.Launch // of a launch without a fault; without Counters as if lanes used all that they touch, nobody else did and there were no conflicts
	Counted int             // blocks whose transactions were counted
	Sampled *Uncertainty    // of counts that are scaled; nil where all blocks were counted, or too few to tell
	lines   func() []Line   // nil without Counters
}

// grid is a launch under way.
type grid struct {
	warp.Launch
	dev     *Device
	kernel  *Kernel
	only    []int   // the blocks that are run, ascending; nil for all
	without []int   // of these the ones that are not, ascending
	places  [][]int // of marked blocks, see sampled
	each    []amount
	rest    tallied // of the blocks that are not counted
	dynamic int     // bytes of shared memory
	omitted check.Omission
	done    *atomic.Int64

	next    atomic.Int64
	failed  atomic.Int64 // the lowest index of a block that faulted
	broken  atomic.Int64 // the same of clusters
	mu      sync.Mutex
	results []result
}

// result is what a block leaves behind; only those that have something are kept.
type result struct {
	index    int
	fault    *Fault
	findings []Finding
	advice   []Finding
	omitted  check.Omission
	out      []byte
	tally    tallied // with a fault
}

// Launch runs a kernel over a grid of blocks. The parameters are the bytes of the kernel's parameter buffer. A Fault is
// sticky; any other error leaves the device usable. The Report is valid with a Fault and with ErrStopped too.
func (d *Device) Launch(k *Kernel, gridDim, block [3]int, dynShared int, params []byte, o Options) (*Report, error) {
	d.observed(&Call{d, k, gridDim, block, dynShared, params})
	d.Lock()
	defer d.Unlock()
	if err := d.Failed(); err != nil {
		return nil, err
	}
	if err := d.admissible(k, gridDim, block, dynShared, params); err != nil {
		return nil, err
	}
	v := o.variant(d.Track)
	c, err := k.compiled(v)
	if err != nil {
		return nil, err
	}
	d.serial++
	if o.Cluster, err = d.Cluster(k, gridDim, o.Cluster); err != nil {
		return nil, err
	}
	g := newGrid(d, k, c, gridDim, block, dynShared, params, o)
	sample := !c.Talks && g.ClusterSize() == 1 && g.sample(o)
	if o.Counters && !sample {
		g.mark()
	}
	occ := d.Card.Occupancy(c.Pressure, g.Threads, g.Shared)
	cores := o.Cores
	switch {
	case o.Debug != nil:
		cores = 1
	case cores <= 0:
		cores = par.Threads()
	}
	var workers []*warp.Worker
	var others *grid
	switch {
	case c.Talks:
		workers = []*warp.Worker{g.runTogether(max(max(occ.Blocks, 1)*d.Card.SMs/g.ClusterSize(), 1), inOrder(g.Clusters()))}
	case g.ClusterSize() > 1:
		workers = g.runClusters(cores)
	case sample:
		if workers = g.runApart(cores); !o.Skip {
			if others, err = g.others(o, cores); err != nil {
				return nil, err
			}
		}
	default:
		workers = g.runApart(cores)
	}
	rep := g.report(workers, others, o)
	for _, wk := range workers {
		g.Dismiss(wk)
	}
	rep.Occupancy, rep.Registers, rep.Shared = occ, c.Pressure, g.Shared
	if g.Stopped.Load() {
		return rep, ErrStopped
	}
	if f := g.firstFault(); f != nil {
		d.Fail(f)
		return rep, f
	}
	return rep, nil
}

// variant is how the kernel is compiled for a launch.
func (o *Options) variant(track bool) compile.Variant {
	return compile.Variant{Poison: o.Checks&Initcheck != 0, Independent: o.Schedule == Independent, Modelled: o.Numerics != Float32,
		Watched: track || o.Counters || o.Checks&(Initcheck|Racecheck) != 0, Global: o.Checks&Globalcheck != 0, Guarded: o.Checks&(Initcheck|Racecheck) != 0, Debugged: o.Debug != nil, Level: cpufeat.Active()}
}

func newGrid(d *Device, k *Kernel, c *warp.Code, gridDim, block [3]int, dynShared int, params []byte, o Options) *grid {
	g := &grid{dev: d, kernel: k, done: o.Done, dynamic: dynShared, Launch: warp.Launch{Code: c, Pool: k.pool(c), Mem: d.Memory, SMs: max(d.Card.SMs, 1),
		WarpsPerSM: d.Card.SM.Threads / simt.WarpSize, Params: slices.Clone(params), Checks: o.Checks | Memcheck, Seed: o.Seed, Numerics: o.Numerics,
		Independent: o.Schedule == Independent, Limit: o.StepLimit, Counters: o.Counters, Serial: d.serial, Total: 1, Threads: 1, Stop: o.Stop, Debug: o.Debug}}
	for i := range 3 {
		g.Dims[i], g.Block[i], g.Cluster[i] = uint32(gridDim[i]), uint32(block[i]), uint32(o.Cluster[i])
		g.Total *= gridDim[i]
		g.Threads *= block[i]
	}
	g.Shared = k.sharedWith(dynShared)
	if g.Limit <= 0 {
		g.Limit = 1e10
	}
	g.failed.Store(int64(g.Total))
	g.broken.Store(int64(g.Total))
	g.Stale, g.omitted = check.NewStale(c.Nc, c.Accesses, o.Checks)
	if g.Races = check.NewRaces(o.Checks, c.Accesses, c.Talks, o.Ahead); g.Races != nil && g.ClusterSize() > 1 {
		g.Races.Cluster = g.ClusterOf
	}
	if c.Far && g.ClusterSize() > 1 && o.Checks&(Racecheck|Globalcheck) != 0 {
		g.Near = check.NewNear(c.Accesses)
	}
	return g
}

// sharedWith is the shared memory of a block that has so many dynamic bytes.
func (k *Kernel) sharedWith(dynamic int) int {
	if dynamic > 0 {
		return k.dynamic + dynamic
	}
	return k.Shared
}

// admissible checks what the driver checks before a launch.
func (d *Device) admissible(k *Kernel, gridDim, block [3]int, dynShared int, params []byte) error {
	if k.refused != nil {
		return k.refused
	}
	if k.prog.dev != d {
		return memory.Refuse(InvalidValue, "kernel %s is loaded on another device", k.Name)
	}
	for i, most := range [3]int{1<<31 - 1, 65535, 65535} {
		if gridDim[i] < 1 || gridDim[i] > most {
			return memory.Refuse(InvalidValue, "a grid of %v blocks; dimension %d goes from 1 to %d", gridDim, i, most)
		}
	}
	for i, most := range [3]int{1024, 1024, 64} {
		if block[i] < 1 || block[i] > most {
			return memory.Refuse(InvalidValue, "a block of %v threads; dimension %d goes from 1 to %d", block, i, most)
		}
	}
	if gridDim[0] > 1<<40/gridDim[1]/gridDim[2] {
		return memory.Refuse(InvalidValue, "a grid of %v blocks", gridDim)
	}
	n := block[0] * block[1] * block[2]
	if n > cards.ThreadsPerBlock {
		return memory.Refuse(InvalidValue, "a block of %v is %d threads, more than %d", block, n, cards.ThreadsPerBlock)
	}
	if k.Required != [3]int{} && k.Required != block {
		return memory.Refuse(InvalidValue, "a block of %v threads; %s was compiled for exactly %v", block, k.Name, k.Required)
	}
	if n > k.MaxBlock {
		return memory.Refuse(InvalidValue, "a block of %v is %d threads; %s was compiled for at most %d", block, n, k.Name, k.MaxBlock)
	}
	if shared := k.sharedWith(dynShared); dynShared < 0 || shared > d.Card.SM.SharedPerBlock {
		return memory.Refuse(InvalidValue, "%d bytes of shared memory, %d of them dynamic; %s has %d per block", shared, dynShared, d.Card.Name, d.Card.SM.SharedPerBlock)
	}
	if len(params) != k.Params {
		return memory.Refuse(InvalidValue, "%d bytes of parameters; %s takes %d", len(params), k.Name, k.Params)
	}
	return nil
}

// MaxCluster is the blocks that a cluster may have on every card that has clusters.
const MaxCluster = 8

// Cluster checks the dimensions of a launch's clusters, those of the kernel where the launch has none, and returns them.
func (d *Device) Cluster(k *Kernel, gridDim, cluster [3]int) ([3]int, error) {
	none := [3]int{1, 1, 1}
	switch {
	case cluster == [3]int{} && k.Cluster != [3]int{}:
		cluster = k.Cluster
	case cluster == [3]int{}:
		cluster = none
	case k.Cluster != [3]int{} && cluster != k.Cluster:
		return none, memory.Refuse(InvalidValue, "clusters of %v blocks; %s was compiled for %v", cluster, k.Name, k.Cluster)
	}
	if cluster == none && k.explicit && k.Cluster == [3]int{} {
		return none, memory.Refuse(InvalidValue, "%s was compiled with .explicitcluster: its launch must have the dimensions of a cluster", k.Name)
	}
	if cluster == none {
		return none, nil
	}
	if d.Card.Compute[0] < 9 {
		return none, memory.Refuse(InvalidValue, "clusters of %v blocks; %s of compute capability %d.%d has none", cluster, d.Card.Name, d.Card.Compute[0], d.Card.Compute[1])
	}
	n := 1
	for i, c := range cluster {
		if c < 1 || gridDim[i]%c != 0 {
			return none, memory.Refuse(InvalidValue, "clusters of %v blocks in a grid of %v: dimension %d is no multiple", cluster, gridDim, i)
		}
		n *= c
	}
	if n > MaxCluster {
		return none, memory.Refuse(InvalidValue, "clusters of %v are %d blocks, more than %d", cluster, n, MaxCluster)
	}
	return cluster, nil
}

// blocks is how many blocks there are to choose from.
func (g *grid) blocks() int {
	if g.only != nil {
		return len(g.only)
	}
	return g.Total
}

// block is the i-th of them, in the order of the seed; -1 for one that does not run.
func (g *grid) block(i int) int {
	if g.only != nil {
		return g.only[i]
	}
	index := g.Order(i, g.Total)
	if _, not := slices.BinarySearch(g.without, index); not {
		return -1
	}
	return index
}

// runApart runs blocks that do not talk to each other, on several cores.
func (g *grid) runApart(cores int) []*warp.Worker {
	cores = min(cores, g.blocks())
	workers := make([]*warp.Worker, cores)
	par.For(cores, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			workers[i] = g.TakeWorker()
			g.work(workers[i])
		}
	})
	return workers
}

func (g *grid) work(wk *warp.Worker) {
	c := g.TakeCTA(wk)
	for {
		i := int(g.next.Add(1)) - 1
		if i >= g.blocks() || g.IsStopped() {
			break
		}
		index := g.block(i)
		if index < 0 || int64(index) > g.failed.Load() {
			continue
		}
		c.Start(index)
		for c.Alive > 0 && c.Fault == nil && !g.Stopped.Load() {
			c.Pass()
		}
		wk.Global.EndBlock()
		g.finish(c)
	}
	c.Retire()
}

// runTogether runs clusters of blocks one by one on one core, but takes up another whenever the threads of the running ones use
// up their turns, as a block that waits for another does. take gives the place of the next one in the order of the seed; -1 for none.
func (g *grid) runTogether(resident int, take func() int) *warp.Worker {
	wk := g.TakeWorker()
	var running, idle []*warp.Cluster
	defer func() {
		for _, u := range append(running, idle...) {
			u.Retire()
		}
	}()
	next, begun := take(), 0
	for turn := 0; next >= 0 || len(running) > 0; {
		if len(running) == 0 || turn >= len(running) && next >= 0 && len(running) < resident {
			u := newOr(&idle, func() *warp.Cluster { return g.TakeCluster(wk) })
			u.Start(g.Order(next, g.Clusters()))
			next = take()
			begun++
			running = append(running, u)
			turn = len(running) - 1
		}
		turn %= len(running)
		u := running[turn]
		spun := u.Pass()
		if !spun {
			wk.Changes++
		} else if all := warp.Running(running); u.Alive() && warp.AllEndless(all) && (next < 0 || len(running) == resident) {
			warp.Running(running[turn : turn+1])[0].Endless("an endless loop: all blocks that run are where they were before, and none wrote anything in between"+
				unborn(g.Total-begun*g.ClusterSize(), resident*g.ClusterSize()), all)
		}
		switch {
		case g.IsStopped(), u.Faulted() != nil && resident > 1:
			g.finishAll(u)
			return wk
		case !u.Alive(), u.Faulted() != nil:
			wk.Global.EndBlock()
			g.finishAll(u)
			running = slices.Delete(running, turn, turn+1)
			idle = append(idle, u)
			turn = 0
		case spun:
			turn++
		}
	}
	return wk
}

// unborn is about blocks for which the card has no room while the others wait.
func unborn(blocks, resident int) string {
	if blocks == 0 {
		return ""
	}
	return fmt.Sprintf("; %d blocks have not begun: the card has room for %d at once, and blocks that wait for each other must all fit", blocks, resident)
}

// inOrder gives the numbers below n, to one who asks at a time.
func inOrder(n int) func() int {
	next := -1
	return func() int {
		if next++; next < n {
			return next
		}
		return -1
	}
}

// share gives the numbers below n to all who ask, but for those of clusters behind one with a fault.
func (g *grid) share(n int) func() int {
	return func() int {
		for {
			i := int(g.next.Add(1)) - 1
			if i >= n {
				return -1
			}
			if int64(g.Order(i, n)) <= g.broken.Load() {
				return i
			}
		}
	}
}

// runClusters runs clusters that do not talk to each other, on several cores.
func (g *grid) runClusters(cores int) []*warp.Worker {
	cores = min(cores, g.Clusters())
	workers := make([]*warp.Worker, cores)
	par.For(cores, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			workers[i] = g.runTogether(1, g.share(g.Clusters()))
		}
	})
	return workers
}

func newOr[T any](idle *[]T, make func() T) T {
	if n := len(*idle); n > 0 {
		c := (*idle)[n-1]
		*idle = (*idle)[:n-1]
		return c
	}
	return make()
}

// finishAll keeps what the blocks of a cluster leave behind.
func (g *grid) finishAll(u *warp.Cluster) {
	bad := u.Faulted()
	u.Keep()
	g.mu.Lock()
	if bad != nil {
		g.broken.Store(min(g.broken.Load(), int64(u.Index)))
	}
	g.mu.Unlock()
	for _, c := range u.CTAs {
		g.finish(c)
	}
}

// finish keeps what a block leaves behind.
func (g *grid) finish(c *warp.CTA) {
	if g.done != nil {
		g.done.Add(1)
	}
	c.End()
	c.Worker.Tally.Add(&c.Tally)
	if g.each != nil {
		i, _ := slices.BinarySearch(g.only, c.Index)
		g.each[i].of(c)
	}
	if c.Fault == nil && len(c.Findings)+len(c.Advice) == 0 && len(c.Out) == 0 && c.Omitted == 0 {
		return
	}
	r := result{index: c.Index, fault: c.Fault, findings: c.Findings, advice: c.Advice, omitted: c.Omitted, out: c.Out}
	if c.Fault != nil {
		t := warp.NewTally(g.Code)
		t.Add(&c.Tally)
		r.tally = tallied{&t, g.Code}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.results = append(g.results, r)
	if c.Fault != nil && int64(c.Index) < g.failed.Load() {
		g.failed.Store(int64(c.Index))
	}
}

func (g *grid) firstFault() *Fault {
	for _, r := range g.results {
		if r.fault != nil {
			return r.fault
		}
	}
	return nil
}

// maxReported bounds the findings of a Report.
const maxReported = 256

// report puts together what blocks and workers left.
func (g *grid) report(workers []*warp.Worker, others *grid, o Options) *Report {
	all := warp.NewTally(g.Code) // of all workers, before anything is scaled and rounded
	for _, wk := range workers {
		all.Add(&wk.Tally)
	}
	counted := []tallied{{&all, g.Code}}
	if others != nil {
		g.results = append(g.results, others.results...)
		counted = append(counted, others.rest)
	}
	sort.SliceStable(g.results, func(i, j int) bool { return g.results[i].index < g.results[j].index })
	rep := &Report{Counters: Counters{ByClass: make(map[string]uint64, ptx.Classes)}}
	for _, r := range g.results {
		rep.Output = append(rep.Output, r.out...)
		g.omitted |= r.omitted
		for _, f := range r.findings {
			rep.add(f)
		}
		for _, f := range r.advice {
			rep.Advice = addTo(rep.Advice, f)
		}
		if r.fault != nil {
			if r.fault.Finding.Check != 0 {
				rep.add(r.fault.Finding)
			}
			counted = []tallied{r.tally}
			break
		}
	}
	if g.Stale != nil {
		for _, f := range g.Stale.Findings(g.Code.Name, g.ThreadID, g.BlockID) {
			rep.add(f)
		}
	}
	if g.Checks&Racecheck != 0 {
		list, omitted := g.Near.In(int(g.broken.Load()), g.nearRace)
		g.omitted |= omitted
		for _, f := range list {
			rep.add(f)
		}
	}
	g.races(rep, workers, o.Touched)
	if len(rep.Findings) == maxReported {
		g.omitted |= check.OmitsFindings
	}
	rep.Notes = g.omitted.Notes()
	g.count(rep, workers, counted, o)
	return rep
}

// races adds what the check of global memory found; nothing where blocks were left out because one faulted.
func (g *grid) races(rep *Report, workers []*warp.Worker, touched bool) {
	if g.Races == nil || g.Races.Apart && g.failed.Load() < int64(g.Total) {
		return
	}
	cores := make([]*check.Global, len(workers))
	for i, wk := range workers {
		cores[i] = wk.Global
	}
	list, omitted := g.Races.Findings(cores, g.race)
	g.omitted |= omitted
	g.Races.TooEarly(cores, func(a *check.Access, by check.Party, at uint64, of check.Span, wrote bool, count int) {
		f := g.early(a, by, at, of, wrote)
		f.Count = count
		rep.add(f)
	})
	if touched {
		rep.Reads, rep.Writes = g.Races.Spans(g.Code.Name, cores)
	}
	for _, f := range list {
		rep.add(f)
	}
}

// nearRace describes two that race in shared memory of a cluster.
func (g *grid) nearRace(first, second check.Access, by [2]check.Party, at uint64) Finding {
	f := g.race(first, second, by, at)
	var rank uint64
	f.Check, f.Space = Racecheck, "shared"
	f.Addr, rank = g.Code.Within(at)
	f.Alloc = fmt.Sprintf("shared memory of %d bytes of block %d of the cluster", g.Shared, rank)
	return f
}

// race describes two accesses that race, of which the second is to blame.
func (g *grid) race(first, second check.Access, by [2]check.Party, at uint64) Finding {
	b, a := first.Site, second.Site
	return Finding{Check: Globalcheck, Kernel: g.Code.Name, Block: g.BlockID(int(by[1].Block)), Thread: g.ThreadID(by[1].Thread), Line: a.Inst.Pos.Line,
		Source: a.Source(), Inst: a.Inst.Name(), Space: "global", Addr: at, Size: second.Size, Alloc: g.Mem.Nearest(at), Other: b.At(),
		Msg: fmt.Sprintf("%s of what %s %s, in no order", second.Verb(), check.Who(g.ThreadID(by[0].Thread), g.BlockID(int(by[0].Block))), did(first))}
}

// early describes an access to what the launch ahead has touched, of a block that has not waited for that.
func (g *grid) early(a *check.Access, by check.Party, at uint64, of check.Span, wrote bool) Finding {
	verb := "reads"
	if wrote {
		verb = "writes"
	}
	return Finding{Check: Globalcheck, Kernel: g.Code.Name, Block: g.BlockID(int(by.Block)), Thread: g.ThreadID(by.Thread), Line: a.Site.Inst.Pos.Line,
		Source: a.Site.Source(), Inst: a.Site.Inst.Name(), Space: "global", Addr: at, Size: a.Size, Alloc: g.Mem.Nearest(at), Other: of.Site.At(),
		Msg: fmt.Sprintf("%s of what kernel %s, the launch ahead in the stream, %s, before griddepcontrol.wait: this launch may begin while that runs", a.Verb(), of.Kernel, verb)}
}

func did(a check.Access) string {
	switch {
	case a.Atomic:
		return "changes by an atomic"
	case a.Write:
		return "writes"
	}
	return "reads"
}

// add keeps one finding of a kind: the same check at the same instruction.
func (r *Report) add(f Finding) { r.Findings = addTo(r.Findings, f) }

func addTo(list []Finding, f Finding) []Finding {
	for i := range list {
		x := &list[i]
		if x.Check == f.Check && x.Line == f.Line && x.Msg == f.Msg && x.Other.Line == f.Other.Line {
			x.Count += f.Count
			return list
		}
	}
	if len(list) < maxReported {
		list = append(list, f)
	}
	return list
}
