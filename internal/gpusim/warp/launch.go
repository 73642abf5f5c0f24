package warp

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
)

// Pool is what launches of a code on a device leave for later ones. Devices that share the code have a pool each: what is left
// knows the device's memory and card, and its registers have what they had.
type Pool struct {
	mu      sync.Mutex
	idle    []*CTA
	workers []*Worker
}

// TakeCTA gives a block to start again and again: one left by an earlier launch of the same kind, or a new one.
func (g *Launch) TakeCTA(wk *Worker) *CTA {
	p := g.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.idle {
		if len(c.shared) == g.Shared+g.Code.Extra && c.kind == g.kind() {
			p.idle = slices.Delete(p.idle, i, i+1)
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
	checks check.Check
}

func (g *Launch) kind() ctaKind { return ctaKind{g.Block, g.Checks} }

// maxIdle bounds the blocks, and the workers, that a pool keeps between launches.
const maxIdle = 16

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

// Launch is what a block sees of the launch that it belongs to.
type Launch struct {
	Code            *Code
	Pool            *Pool
	Mem             *memory.Memory
	SMs, WarpsPerSM int // multiprocessors of the card, and warps that one of them holds
	Dims, Block     [3]uint32
	Cluster         [3]uint32 // blocks that run together, in each dimension at least 1
	Threads         int
	Shared          int
	Params          []byte
	Checks          check.Check
	Seed            uint64
	Independent     bool
	Numerics        Numerics
	Limit           int64
	Counters        bool
	Marked          []int // with Counters: the blocks of which it is kept what each touches, ascending, at most 32; of all others together
	Serial          uint64
	Total           int
	Stale           *check.Stale // nil without ld.global.nc or racecheck
	Debug           Debugger     // whose points the code has; nil without
	Races           *check.Races // nil without the check of global memory
	Near            *check.Races // of shared memory of clusters; nil where no block reaches another's

	Stop    <-chan struct{}
	Stopped atomic.Bool
}

// Worker runs blocks on one core.
type Worker struct {
	last    *memory.Allocation // the one accessed last
	Tiles   [3]Tile            // of the mma under way
	frame   *lanes.Frame
	regions []lanes.Region
	bound   *CTA // whose shared memory the assembly sees
	maps    readMaps
	layouts *layouts // of matrices of wgmma; nil until there is one
	runs    []tensormap.Run
	pieces  [][]piece // lists that no copy has
	Changes int       // turns in which blocks may have written
	Global  *check.Global
	Tally
	Traffic
}

// IsStopped looks whether the launch is to end early.
func (g *Launch) IsStopped() bool {
	select {
	case <-g.Stop:
		g.Stopped.Store(true)
	default:
	}
	return g.Stopped.Load()
}

// TakeWorker gives a worker left by an earlier launch of the kernel, or a new one.
func (g *Launch) TakeWorker() *Worker {
	p := g.Pool
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.workers)
	if n == 0 {
		return &Worker{Tally: NewTally(g.Code), regions: make([]lanes.Region, g.Code.Regions), frame: &simt.Aligned[lanes.Frame](1)[0], Global: g.Races.On()}
	}
	wk := p.workers[n-1]
	p.workers = p.workers[:n-1]
	wk.Global = g.Races.On()
	return wk
}

// Dismiss forgets what a worker knows of a launch and keeps it for a later one.
func (g *Launch) Dismiss(wk *Worker) {
	p := g.Pool
	wk.Tally.reset()
	wk.Traffic = Traffic{}
	clear(wk.regions)
	wk.maps, wk.layouts, wk.pieces = readMaps{}, nil, nil
	wk.last, wk.bound, wk.Global = nil, nil, nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.workers) < maxIdle {
		p.workers = append(p.workers, wk)
	}
}

// bit marks what a block touches: the i-th of the marked blocks has a bit of its own.
func (g *Launch) bit(index int) uint32 {
	if i, own := slices.BinarySearch(g.Marked, index); own {
		return 1 << i
	}
	return 1 << 31
}

// Order is the i-th of n by the seed: a permutation by an affine map with a multiplier prime to n.
func (g *Launch) Order(i, n int) int {
	if g.Seed == 0 || n < 2 {
		return i
	}
	h := g.Seed * 0x9e3779b97f4a7c15
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

// BlockID is the three-dimensional index of a block in the grid.
func (g *Launch) BlockID(i int) [3]uint32 {
	b := uint32(i)
	return [3]uint32{b % g.Dims[0], b / g.Dims[0] % g.Dims[1], b / g.Dims[0] / g.Dims[1]}
}

// ThreadID is the three-dimensional index of a thread in its block.
func (g *Launch) ThreadID(t uint32) [3]uint32 {
	return [3]uint32{t % g.Block[0], t / g.Block[0] % g.Block[1], t / g.Block[0] / g.Block[1]}
}
