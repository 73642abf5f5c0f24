package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// What the model assumes of every kernel on every card.
const (
	PipeShare   = 0.85   // of a pipe's rate that good code gets
	MemoryShare = 0.9    // of the memory's bandwidth, as copies reach on A100 and H200
	PerLaunch   = 1.5e-6 // seconds that a kernel takes to start and to end
	parallel    = 2      // instructions of a warp that do not depend on each other
	l2Port      = 64     // bytes a clock that one multiprocessor gets of L2
	SectorBytes = 32
)

// Launch is what a launch does, all blocks together. Counts may be scaled from some blocks, and are no whole numbers then.
type Launch struct {
	Blocks, Threads   int // of the grid, of a block
	Registers, Shared int // of a thread, bytes of a block

	Instructions [ptx.Pipes]float64   // of warps, in machine instructions
	Tensor       [cards.Types]float64 // operations of the tensor cores
	Wavefronts   float64              // passes over the banks of shared memory
	Requested    float64              // sectors of 32 bytes of global memory, by all requests
	Unique       float64              // sectors, each once
	Own          float64              // sectors of one block, each once
	Hottest      float64              // atomics at the address that gets most

	// How often a warp comes to code that needs what it must wait for: loads of global memory, of shared memory, barriers. Loads that
	// follow each other without a branch are waited for once.
	GlobalWaits, SharedWaits, Barriers float64
}

// Limiter is what a kernel's time is bound by.
type Limiter string

// The limiters.
const (
	Issue   Limiter = "issue" // of instructions, or a pipe of them
	Tensor  Limiter = "tensor"
	Shared  Limiter = "shared"
	L2      Limiter = "L2"
	Memory  Limiter = "memory"
	Latency Limiter = "latency"
	Fixed   Limiter = "launch"
)

// Term is one of the times that a kernel takes at least.
type Term struct {
	Name    string
	Limiter Limiter
	Seconds float64
	Why     string // the arithmetic
}

// Estimate is a modelled time.
type Estimate struct {
	Seconds   float64 // PerLaunch and the longest term
	Limiter   Limiter
	Terms     []Term // the longest first
	Occupancy Occupancy
	Waves     int     // rounds in which the grid's blocks run
	Busy      int     // multiprocessors that have a block
	DRAM      float64 // bytes that memory moves
	Change    []string
}

// clock is the model of one launch on one card.
type clock struct {
	card    *cards.Card
	sm      *cards.SM
	l       *Launch
	e       *Estimate
	talk    bool // explain terms
	hz      float64
	longest float64 // of the terms
	per     float64 // blocks on the busiest multiprocessor, over those of the grid
}

// Seconds is the modelled time of a launch, and the share of the multiprocessors that have a block of it.
func Seconds(card *cards.Card, l *Launch) (seconds, busy float64) {
	e := model(card, l, false)
	return e.Seconds, float64(e.Busy) / float64(card.SMs)
}

// Time models a launch. A kernel of which no block fits takes no time, and its Occupancy says so.
func Time(card *cards.Card, l *Launch) *Estimate {
	e := model(card, l, true)
	return &e
}

// model is Time; the texts are left out where nobody reads them.
func model(card *cards.Card, l *Launch, explain bool) (e Estimate) {
	e = Estimate{Occupancy: Occupy(card.SM(), l.Registers, l.Threads, l.Shared), Limiter: Fixed}
	if e.Occupancy.Blocks == 0 || l.Blocks == 0 {
		return e
	}
	e.Waves = ceil(l.Blocks, card.SMs*e.Occupancy.Blocks)
	e.Busy = min(l.Blocks, card.SMs)
	t := clock{card, card.SM(), l, &e, explain, 1e6 * float64(card.Clock), 0, float64(ceil(l.Blocks, card.SMs)) / float64(l.Blocks)}
	t.issue()
	t.tensor()
	t.shared()
	t.memory()
	t.latency()
	e.Seconds = PerLaunch + t.longest
	if !explain {
		return e
	}
	slices.SortStableFunc(e.Terms, func(a, b Term) int { return cmp.Compare(b.Seconds, a.Seconds) })
	if t.longest > PerLaunch {
		e.Limiter = e.Terms[0].Limiter
	}
	t.advise()
	return e
}

func sentence(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// add keeps a term, unless it is nothing.
func (t *clock) add(name string, by Limiter, seconds float64, why func() string) {
	t.longest = max(t.longest, seconds)
	if t.talk && seconds > 0 {
		t.e.Terms = append(t.e.Terms, Term{name, by, seconds, why()})
	}
}

// pipe adds the time of the busiest multiprocessor for work that it does at a rate a clock.
func (t *clock) pipe(name string, by Limiter, work, rate float64, unit string) {
	if rate > 0 {
		t.add(name, by, work*t.per/rate/PipeShare/t.hz, func() string {
			return sentence("%.4g %s on the busiest multiprocessor, %.4g a clock at %.0f %%", work*t.per, unit, rate, 100*PipeShare)
		})
	}
}

// issue is the schedulers, and the pipes behind them.
func (t *clock) issue() {
	m := t.sm
	lanes := [ptx.Pipes]int{ptx.PipeFloat32: m.Float32, ptx.PipeInteger: m.Integer, ptx.PipeFloat64: m.Float64, ptx.PipeHalf: m.Half,
		ptx.PipeSpecial: m.Special, ptx.PipeConvert: m.Convert, ptx.PipeShuffle: m.Shuffle, ptx.PipeMemory: m.Memory}
	all := 0.0
	for p, n := range t.l.Instructions {
		if n == 0 || ptx.Pipe(p) == ptx.PipeNone {
			continue
		}
		all += n
		t.pipe(ptx.Pipe(p).String(), Issue, n, float64(lanes[p])/cards.Warp, "instructions")
	}
	t.pipe("issue", Issue, all, cards.Schedulers, "instructions")
}

// tensor is the tensor cores; types come one after the other.
func (t *clock) tensor() {
	seconds, flops := 0.0, 0.0
	for i, n := range t.l.Tensor {
		if n == 0 {
			continue
		}
		if rate := float64(t.card.TensorRate(cards.Type(i))) * t.sm.Sync; rate > 0 {
			seconds += n * t.per / rate / PipeShare / (1e6 * float64(t.card.TensorClock))
			flops += n
		}
	}
	t.add("tensor", Tensor, seconds, func() string {
		return sentence("%.4g operations, %.0f %% of the tensor cores' rate by mma.sync, at %.0f %%", flops, 100*t.sm.Sync, 100*PipeShare)
	})
}

func (t *clock) shared() { t.pipe("shared", Shared, t.l.Wavefronts, 1, "wavefronts") }

// memory is L2 and what lies behind it.
func (t *clock) memory() {
	l := t.l
	asked := SectorBytes * l.Requested
	t.add("L2", L2, max(asked/t.card.L2Bandwidth(), asked*t.per/l2Port/t.hz), func() string {
		return sentence("%.4g bytes requested, %.4g B/s of L2, %d bytes a clock of a multiprocessor", asked, t.card.L2Bandwidth(), l2Port)
	})
	t.e.DRAM = t.moved()
	bandwidth := 1e9 * float64(t.card.Bandwidth)
	t.add("memory", Memory, t.e.DRAM/MemoryShare/bandwidth, func() string {
		return sentence("%.4g bytes, of %.4g touched, %.4g B/s at %.0f %%", t.e.DRAM, SectorBytes*l.Unique, bandwidth, 100*MemoryShare)
	})
	t.add("atomics", L2, l.Hottest/t.hz, func() string {
		return sentence("%.4g atomics at one address, one a clock", l.Hottest)
	})
}

// moved is the bytes that memory moves: each sector once, if all fit in L2 together. Else what a wave of blocks touches, once a wave.
// How much that is follows from what one block touches and what all do: sectors grow as a power of the blocks.
func (t *clock) moved() float64 {
	l := t.l
	one := l.Own
	if one <= 0 || l.Unique <= one || l.Unique*SectorBytes <= float64(t.card.L2) || t.e.Waves < 2 {
		return SectorBytes * l.Unique
	}
	growth := min(1, math.Log(l.Unique/one)/math.Log(float64(l.Blocks)))
	wave := one * math.Pow(float64(l.Blocks)/float64(t.e.Waves), growth)
	return SectorBytes * min(one*float64(l.Blocks), max(l.Unique, wave*float64(t.e.Waves)))
}

// latency is what the warps of the busiest multiprocessor take one after the other: those that it holds at a time wait side by side.
func (t *clock) latency() {
	l := t.l
	warps := float64(ceil(l.Threads, cards.Warp) * l.Blocks)
	chain := 0.0
	for p, n := range l.Instructions {
		if ptx.Pipe(p) != ptx.PipeNone {
			chain += n * cards.LatencyALU / parallel
		}
	}
	miss := min(1, t.e.DRAM/max(SectorBytes*l.Requested, 1))
	chain += l.GlobalWaits*(cards.LatencyL2+miss*(cards.LatencyMemory-cards.LatencyL2)) + (l.SharedWaits+l.Barriers)*cards.LatencyShared
	rounds := ceil(ceil(l.Blocks, t.card.SMs), t.e.Occupancy.Blocks)
	t.add("latency", Latency, float64(rounds)*chain/warps/t.hz, func() string {
		return sentence("%.4g clocks that a warp takes alone, times %.0f for blocks one after the other", chain/warps, float64(rounds))
	})
}

// Roofline is where a kernel stands under its card's roof.
type Roofline struct {
	Intensity float64 // operations a byte of memory
	Roof      float64 // operations a second that the card does at most at that intensity
	Reached   float64 // operations a second
}

// Roof finds the operations that count: those of the tensor cores, or multiply-adds of float32 where there are none.
func Roof(card *cards.Card, l *Launch, e *Estimate) (r Roofline) {
	flops, peak := 0.0, 0.0
	for i, n := range l.Tensor {
		flops += n
		if n > 0 {
			peak = max(peak, card.TensorPeak(cards.Type(i)))
		}
	}
	if flops == 0 {
		flops, peak = 2*cards.Warp*l.Instructions[ptx.PipeFloat32], card.Vector()
	}
	r.Roof = peak
	if e.DRAM > 0 {
		r.Intensity = flops / e.DRAM
		r.Roof = min(peak, r.Intensity*1e9*float64(card.Bandwidth))
	}
	if e.Seconds > 0 {
		r.Reached = flops / e.Seconds
	}
	return r
}
