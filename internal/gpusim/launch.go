package gpusim

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// Schedule is how the lanes of a warp are run.
type Schedule uint8

// The schedules. Independent lets lanes that parted meet only at instructions that wait for them, and switches between
// them by chance at memory operations, as hardware since compute capability 7.0 may: a missing __syncwarp shows.
const (
	Reconverge Schedule = iota
	Independent
)

// Numerics is a model of the tensor cores' arithmetic.
type Numerics uint8

// The models, whose products are all exact. Float32 adds them to the accumulator in the order of k, each sum rounded, as a
// chain of fused multiply-adds does. Exact sums them in float64, in four chains by their place modulo four, then the
// accumulator, and rounds once: of products that lie within 2^26 of each other the sum is exact. Truncating aligns blocks
// of products and the accumulator to the greatest exponent and drops what falls below 24 bits, as measured on A100 and
// H100. An accumulator of float16 is rounded once, except by Truncating.
const (
	Float32 Numerics = iota
	Exact
	Truncating
)

// Options are those of one launch.
type Options struct {
	Checks    Check
	Seed      uint64 // of the order of blocks, warps and lanes; 0 is the natural order
	Schedule  Schedule
	Numerics  Numerics
	StepLimit int64 // instructions of all warps of one block; 0 means 1e10
	Cores     int   // 0 means as many as par uses
	Counters  bool  // count memory transactions too

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
	return float64(c.LaneInstructions) / float64(max(c.Instructions, 1)) / warpSize
}

// Report is the outcome of a launch.
type Report struct {
	Findings  []Finding // in the order of blocks
	Counters  Counters
	Occupancy Occupancy
	Registers int      // per thread, estimated from liveness
	Shared    int      // bytes per block, static and dynamic
	Output    []byte   // of vprintf, in the order of blocks
	Notes     []string // what the checks left out, and why
}

// grid is a launch under way.
type grid struct {
	dev         *Device
	code        *code
	dims, block [3]uint32
	threads     int
	shared      int
	params      []byte
	checks      Check
	seed        uint64
	independent bool
	numerics    Numerics
	limit       int64
	counters    bool
	serial      uint64
	total       int
	stale       *stale // nil without ld.global.nc or racecheck
	omitted     omission

	stop    <-chan struct{}
	done    *atomic.Int64
	stopped atomic.Bool

	next    atomic.Int64
	failed  atomic.Int64 // the lowest index of a block that faulted
	mu      sync.Mutex
	results []result
}

// result is what a block leaves behind; only those that have something are kept.
type result struct {
	index    int
	fault    *Fault
	findings []Finding
	omitted  omission
	out      []byte
	tally    tally // with a fault
}

// worker runs blocks on one core.
type worker struct {
	last    *allocation // the one accessed last
	tiles   [3]tile     // of the mma under way
	frame   *laneFrame
	regions []region
	bound   *cta // whose shared memory the assembly sees
	changes int  // turns in which blocks may have written
	tally
}

// Launch runs a kernel over a grid of blocks. The parameters are the bytes of the kernel's parameter buffer. A Fault is
// sticky; any other error leaves the device usable. The Report is valid with a Fault and with ErrStopped too.
func (d *Device) Launch(k *Kernel, gridDim, block [3]int, dynShared int, params []byte, o Options) (*Report, error) {
	d.observed(&Call{d, k, gridDim, block, dynShared, params})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return nil, d.fault
	}
	if err := d.admissible(k, gridDim, block, dynShared, params); err != nil {
		return nil, err
	}
	v := o.variant(d.track)
	c, err := k.compiled(v)
	if err != nil {
		return nil, err
	}
	d.serial++
	g := newGrid(d, c, gridDim, block, dynShared, params, o)
	occ := d.Card.Occupancy(c.pressure, g.threads, g.shared)
	cores := o.Cores
	if cores <= 0 {
		cores = par.Threads()
	}
	var workers []*worker
	if c.talks {
		workers = []*worker{g.runTogether(max(occ.Blocks, 1) * d.Card.SMs)}
	} else {
		workers = g.runApart(min(cores, g.total))
	}
	rep := g.report(workers)
	for _, wk := range workers {
		g.dismiss(wk)
	}
	rep.Occupancy, rep.Registers, rep.Shared = occ, c.pressure, g.shared
	if g.stopped.Load() {
		return rep, ErrStopped
	}
	if f := g.firstFault(); f != nil {
		d.fault = f
		return rep, f
	}
	return rep, nil
}

// variant is how the kernel is compiled for a launch.
func (o *Options) variant(track bool) variant {
	return variant{poison: o.Checks&Initcheck != 0, independent: o.Schedule == Independent, modelled: o.Numerics != Float32,
		watched: track || o.Counters || o.Checks&(Initcheck|Racecheck) != 0, level: cpufeat.Active()}
}

func newGrid(d *Device, c *code, gridDim, block [3]int, dynShared int, params []byte, o Options) *grid {
	g := &grid{dev: d, code: c, params: slices.Clone(params), checks: o.Checks | Memcheck, seed: o.Seed, numerics: o.Numerics,
		independent: o.Schedule == Independent, limit: o.StepLimit, counters: o.Counters, serial: d.serial, total: 1, threads: 1}
	for i := range 3 {
		g.dims[i], g.block[i] = uint32(gridDim[i]), uint32(block[i])
		g.total *= gridDim[i]
		g.threads *= block[i]
	}
	g.shared = c.kernel.sharedWith(dynShared)
	if g.limit <= 0 {
		g.limit = 1e10
	}
	g.stop, g.done = o.Stop, o.Done
	g.failed.Store(int64(g.total))
	g.stale, g.omitted = newStale(c, o.Checks)
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
	if k.prog.dev != d {
		return refuse(InvalidValue, "kernel %s is loaded on another device", k.Name)
	}
	for i, most := range [3]int{1<<31 - 1, 65535, 65535} {
		if gridDim[i] < 1 || gridDim[i] > most {
			return refuse(InvalidValue, "a grid of %v blocks; dimension %d goes from 1 to %d", gridDim, i, most)
		}
	}
	for i, most := range [3]int{1024, 1024, 64} {
		if block[i] < 1 || block[i] > most {
			return refuse(InvalidValue, "a block of %v threads; dimension %d goes from 1 to %d", block, i, most)
		}
	}
	if gridDim[0] > 1<<40/gridDim[1]/gridDim[2] {
		return refuse(InvalidValue, "a grid of %v blocks", gridDim)
	}
	n := block[0] * block[1] * block[2]
	if n > d.Card.ThreadsPerBlock {
		return refuse(InvalidValue, "a block of %v is %d threads, more than %d", block, n, d.Card.ThreadsPerBlock)
	}
	if k.Required != [3]int{} && k.Required != block {
		return refuse(InvalidValue, "a block of %v threads; %s was compiled for exactly %v", block, k.Name, k.Required)
	}
	if n > k.MaxBlock {
		return refuse(InvalidValue, "a block of %v is %d threads; %s was compiled for at most %d", block, n, k.Name, k.MaxBlock)
	}
	if shared := k.sharedWith(dynShared); dynShared < 0 || shared > d.Card.SharedPerBlock {
		return refuse(InvalidValue, "%d bytes of shared memory, %d of them dynamic; %s has %d per block", shared, dynShared, d.Card.Name, d.Card.SharedPerBlock)
	}
	if len(params) != k.Params {
		return refuse(InvalidValue, "%d bytes of parameters; %s takes %d", len(params), k.Name, k.Params)
	}
	return nil
}

// runApart runs blocks that do not talk to each other, on several cores.
func (g *grid) runApart(cores int) []*worker {
	workers := make([]*worker, cores)
	par.For(cores, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			workers[i] = g.takeWorker()
			g.work(workers[i])
		}
	})
	return workers
}

func (g *grid) work(wk *worker) {
	c := g.takeCTA(wk)
	for {
		i := int(g.next.Add(1)) - 1
		if i >= g.total || g.isStopped() {
			break
		}
		index := g.order(i, g.total)
		if int64(index) > g.failed.Load() {
			continue
		}
		c.start(index)
		for c.alive > 0 && c.fault == nil && !g.stopped.Load() {
			c.pass()
		}
		g.finish(c)
	}
	c.retire()
}

// runTogether runs blocks one by one on one core, but takes up another whenever the threads of the running ones use up
// their turns, as a block that waits for another does.
func (g *grid) runTogether(resident int) *worker {
	wk := g.takeWorker()
	var running, idle []*cta
	next := 0
	for turn := 0; next < g.total || len(running) > 0; {
		if len(running) == 0 || turn >= len(running) && next < g.total && len(running) < resident {
			c := newOr(&idle, func() *cta { return g.takeCTA(wk) })
			c.start(g.order(next, g.total))
			next++
			running = append(running, c)
			turn = len(running) - 1
		}
		turn %= len(running)
		c := running[turn]
		spun := c.pass()
		switch {
		case !spun:
			wk.changes++
		case allEndless(running) && (next == g.total || len(running) == resident):
			c.endless("an endless loop: all blocks that run are where they were before, and none wrote anything in between")
		}
		switch {
		case c.fault != nil, g.isStopped():
			g.finish(c)
			running = append(running, idle...)
			for _, c := range running {
				c.retire()
			}
			return wk
		case c.alive == 0:
			g.finish(c)
			running = slices.Delete(running, turn, turn+1)
			idle = append(idle, c)
			turn = 0
		case spun:
			turn++
		}
	}
	for _, c := range idle {
		c.retire()
	}
	return wk
}

// isStopped looks whether the launch is to end early.
func (g *grid) isStopped() bool {
	select {
	case <-g.stop:
		g.stopped.Store(true)
	default:
	}
	return g.stopped.Load()
}

func newOr(idle *[]*cta, make func() *cta) *cta {
	if n := len(*idle); n > 0 {
		c := (*idle)[n-1]
		*idle = (*idle)[:n-1]
		return c
	}
	return make()
}

// takeWorker gives a worker left by an earlier launch of the kernel, or a new one.
func (g *grid) takeWorker() *worker {
	k := g.code
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.workers)
	if n == 0 {
		return &worker{tally: newTally(k), regions: make([]region, k.regions), frame: &aligned[laneFrame](1)[0]}
	}
	wk := k.workers[n-1]
	k.workers = k.workers[:n-1]
	return wk
}

// dismiss forgets what a worker knows of a launch and keeps it for a later one.
func (g *grid) dismiss(wk *worker) {
	k := g.code
	wk.tally.reset()
	clear(wk.regions)
	wk.last, wk.bound = nil, nil
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.workers) < maxIdle {
		k.workers = append(k.workers, wk)
	}
}

// finish keeps what a block leaves behind.
func (g *grid) finish(c *cta) {
	if g.done != nil {
		g.done.Add(1)
	}
	c.worker.tally.add(&c.tally)
	if c.fault == nil && len(c.findings) == 0 && len(c.out) == 0 && c.omitted == 0 {
		return
	}
	r := result{index: c.index, fault: c.fault, findings: c.findings, omitted: c.omitted, out: c.out}
	if c.fault != nil {
		r.tally = newTally(g.code)
		r.tally.add(&c.tally)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.results = append(g.results, r)
	if c.fault != nil && int64(c.index) < g.failed.Load() {
		g.failed.Store(int64(c.index))
	}
}

// order is the i-th of n by the seed: a permutation by an affine map with a multiplier prime to n.
func (g *grid) order(i, n int) int {
	if g.seed == 0 || n < 2 {
		return i
	}
	h := g.seed * 0x9e3779b97f4a7c15
	step := int(h>>33)%n | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	hi, lo := bits.Mul64(uint64(i), uint64(step%n))
	return int((bits.Rem64(hi, lo, uint64(n)) + h>>40) % uint64(n))
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// blockID is the three-dimensional index of a block in the grid.
func (g *grid) blockID(i int) [3]uint32 {
	b := uint32(i)
	return [3]uint32{b % g.dims[0], b / g.dims[0] % g.dims[1], b / g.dims[0] / g.dims[1]}
}

// threadID is the three-dimensional index of a thread in its block.
func (g *grid) threadID(t uint32) [3]uint32 {
	return [3]uint32{t % g.block[0], t / g.block[0] % g.block[1], t / g.block[0] / g.block[1]}
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
func (g *grid) report(workers []*worker) *Report {
	slices.SortFunc(g.results, func(a, b result) int { return cmp.Compare(a.index, b.index) })
	rep := &Report{Counters: Counters{ByClass: make(map[string]uint64, numClasses)}}
	var counted []*tally
	for _, wk := range workers {
		counted = append(counted, &wk.tally)
	}
	for _, r := range g.results {
		rep.Output = append(rep.Output, r.out...)
		g.omitted |= r.omitted
		for _, f := range r.findings {
			rep.add(f)
		}
		if r.fault != nil {
			if r.fault.Finding.Check != 0 {
				rep.add(r.fault.Finding)
			}
			counted = []*tally{&r.tally}
			break
		}
	}
	if g.stale != nil {
		for _, f := range g.stale.findings(g) {
			rep.add(f)
		}
	}
	if len(rep.Findings) == maxReported {
		g.omitted |= omitsFindings
	}
	rep.Notes = g.omitted.notes()
	for _, t := range counted {
		t.spread(g.code)
		t.count(g.code, &rep.Counters)
	}
	return rep
}

// count adds a tally, spread over blocks, to the counters.
func (t *tally) count(k *code, c *Counters) {
	for b, n := range t.execs {
		x := &k.blocks[b]
		c.Instructions += n * uint64(x.n)
		c.LaneInstructions += t.lanes[b] * uint64(x.n)
		for i, m := range x.classes {
			if m > 0 && n > 0 {
				c.ByClass[classNames[i]] += n * uint64(m)
			}
		}
	}
	c.Branches += t.branches
	c.Divergent += t.divergent
	t.mem.addTo(c)
}

// add keeps one finding of a kind: the same check at the same instruction.
func (r *Report) add(f Finding) {
	for i := range r.Findings {
		x := &r.Findings[i]
		if x.Check == f.Check && x.Line == f.Line && x.Msg == f.Msg && x.Other.Line == f.Other.Line {
			x.Count += f.Count
			return
		}
	}
	if len(r.Findings) < maxReported {
		r.Findings = append(r.Findings, f)
	}
}
