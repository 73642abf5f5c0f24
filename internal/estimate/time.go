package estimate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Times are the same bits on every machine. Where a product is added, it is rounded before by float64(): Go leaves it to the compiler
// otherwise, which on arm64 and others takes one instruction that rounds once. Logarithms and powers are those of exact.go, as package
// math's differ by machine.

// What the model assumes of every kernel on every card.
const (
	PipeShare   = 0.85   // of a pipe's rate that good code gets
	MemoryShare = 0.9    // of the memory's bandwidth, as copies reach on A100 and H200
	PerLaunch   = 1.5e-6 // seconds that a kernel takes to start and to end
	PerEvents   = 5e-6   // seconds by which two events around a launch find it longer: the card starts it behind the first, drains it before the second
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
	Own          float64              // sectors of one block, each once
	Touched
	Hottest float64 // atomics at the address that gets most
	Warm    bool    // the same was launched before: what all blocks touch is in L2, if it fits

	// How often a warp comes to code that needs what it must wait for: loads of global memory, of shared memory, barriers. Loads that
	// follow each other without a branch are waited for once.
	GlobalWaits, SharedWaits, Barriers float64
}

// Touched are the sectors of 32 bytes of global memory that a launch touches, each counted once.
type Touched struct {
	Unique float64 // all
	Lone   float64 // of which the other half of their 64 bytes is not touched
	Part   float64 // of which only some bytes are stored
}

// moved is the sectors that memory moves for each that is touched, if none is kept: L2 fetches and writes 64 bytes at a time, and
// fetches before it writes what is stored in part.
func (t *Touched) moved() float64 {
	if t.Unique == 0 {
		return 1
	}
	return 1 + (t.Lone+float64(2*t.Part))/t.Unique
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
	card  *cards.Card
	sm    *cards.SM
	l     *Launch
	e     *Estimate
	talk  bool    // explain terms
	most  float64 // the longest term
	hz    float64
	parts [parts]float64 // the longest term of each part of the card
	per   float64        // blocks on the busiest multiprocessor, over those of the grid
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

// Brief is Time without Terms and Change, whose texts cost more than the figures.
func Brief(card *cards.Card, l *Launch) Estimate { return model(card, l, false) }

// model is Time; the texts are left out where nobody reads them.
func model(card *cards.Card, l *Launch, explain bool) (e Estimate) {
	e = Estimate{Occupancy: Occupy(card.SM(), l.Registers, l.Threads, l.Shared), Limiter: Fixed}
	if e.Occupancy.Blocks == 0 || l.Blocks == 0 {
		return e
	}
	e.Waves = ceil(l.Blocks, card.SMs*e.Occupancy.Blocks)
	e.Busy = min(l.Blocks, card.SMs)
	t := clock{card: card, sm: card.SM(), l: l, e: &e, talk: explain, hz: 1e6 * float64(card.Clock), per: float64(ceil(l.Blocks, card.SMs)) / float64(l.Blocks)}
	t.issue()
	t.tensor()
	t.shared()
	t.memory()
	t.latency()
	took := t.together()
	e.Seconds = PerLaunch + took
	if took <= PerLaunch {
		e.Limiter = Fixed
	}
	if explain {
		sorting.By(e.Terms, func(a, b Term) int { return cmp.Compare(b.Seconds, a.Seconds) })
		t.advise()
	}
	return e
}

func sentence(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// count and bytes are figures of a sentence: "629", "24.2k"; "19.1 MB", in powers of ten as bandwidths are.
func count(v float64) string { return render.Count(int64(math.Round(v))) }
func bytes(v float64) string {
	text := count(v)
	if unit := text[len(text)-1:]; unit > "9" {
		return text[:len(text)-1] + " " + unit + "B"
	}
	return text + " B"
}

// part is a part of the card that works beside the others.
type part uint8

const (
	arithmetic part = iota // schedulers and the pipes for arithmetic
	tensors
	accesses // of a multiprocessor: loads, stores, shuffles, shared memory
	memories // L2 and what is behind it
	chains   // no part: warps that wait
	parts
)

// together is how long a kernel takes whose parts take so long alone. Parts work side by side, but what one delays comes later to the
// others too: where two are about as busy neither is all the time. The root of the sum of squares is the longest alone where nothing
// else matters, and 1.4 times that where two take as long. Waiting warps leave the parts alone: that time counts if it is longer.
func (t *clock) together() float64 {
	sum := 0.0
	for _, s := range t.parts[:chains] {
		sum += float64(s * s)
	}
	return max(math.Sqrt(sum), t.parts[chains])
}

// add keeps a term, unless it is nothing.
func (t *clock) add(name string, at part, by Limiter, seconds float64, why func() string) {
	t.parts[at] = max(t.parts[at], seconds)
	if seconds > t.most {
		t.most, t.e.Limiter = seconds, by
	}
	if t.talk && seconds > 0 {
		t.e.Terms = append(t.e.Terms, Term{name, by, seconds, why()})
	}
}

// pipe adds the time of the busiest multiprocessor for work that it does at a rate a clock.
func (t *clock) pipe(name string, at part, by Limiter, work, rate float64, unit string) {
	if rate > 0 {
		t.add(name, at, by, work*t.per/rate/PipeShare/t.hz, func() string {
			return sentence("%s %s on the busiest multiprocessor, %.4g a clock at %.0f %%", count(work*t.per), unit, rate, 100*PipeShare)
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
		at := arithmetic
		if p := ptx.Pipe(p); p == ptx.PipeMemory || p == ptx.PipeShuffle {
			at = accesses
		}
		t.pipe(ptx.Pipe(p).String(), at, Issue, n, float64(lanes[p])/cards.Warp, "instructions")
	}
	t.pipe("issue", arithmetic, Issue, all, cards.Schedulers, "instructions")
}

// tensor is the tensor cores; types come one after the other. A card without any does mma.sync where it does arithmetic in half
// precision, as fast as that.
func (t *clock) tensor() {
	seconds, flops := 0.0, 0.0
	if t.card.Half == 0 {
		for _, n := range t.l.Tensor {
			flops += n
		}
		t.pipe("mma without tensor cores", arithmetic, Issue, flops, t.card.HalfRate(), "operations")
		return
	}
	for i, n := range t.l.Tensor {
		if n == 0 {
			continue
		}
		if rate := float64(t.card.TensorRate(cards.Type(i))) * t.sm.Sync; rate > 0 {
			seconds += n * t.per / rate / PipeShare / (1e6 * float64(t.card.TensorClock))
			flops += n
		}
	}
	t.add("tensor", tensors, Tensor, seconds, func() string {
		return sentence("%s operations, %.0f %% of the tensor cores' rate by mma.sync, at %.0f %%", count(flops), 100*t.sm.Sync, 100*PipeShare)
	})
}

func (t *clock) shared() { t.pipe("shared", accesses, Shared, t.l.Wavefronts, 1, "wavefronts") }

// memory is L2 and what lies behind it.
func (t *clock) memory() {
	l := t.l
	asked := SectorBytes * l.Requested
	t.add("L2", memories, L2, max(asked/t.card.L2Bandwidth(), asked*t.per/l2Port/t.hz), func() string {
		return sentence("%s requested, %s/s of L2, %d bytes a clock of a multiprocessor", bytes(asked), bytes(t.card.L2Bandwidth()), l2Port)
	})
	t.e.DRAM = t.moved()
	bandwidth := 1e9 * float64(t.card.Bandwidth)
	t.add("memory", memories, Memory, t.e.DRAM/MemoryShare/bandwidth, func() string {
		return sentence("%s, of %s touched, %s/s at %.0f %%", bytes(t.e.DRAM), bytes(SectorBytes*l.Unique), bytes(bandwidth), 100*MemoryShare)
	})
	t.add("atomics", memories, L2, l.Hottest/t.hz, func() string {
		return sentence("%s atomics at one address, one a clock", count(l.Hottest))
	})
}

// moved is the bytes that memory moves: each sector once, if all fit in L2 together, and none if they are there. Else what a wave of blocks touches, once a wave.
// How much that is follows from what one block touches and what all do: sectors grow as a power of the blocks.
func (t *clock) moved() float64 {
	l := t.l
	one := l.Own
	if l.Warm && l.Unique*SectorBytes <= float64(t.card.L2) {
		return 0
	}
	if one <= 0 || l.Unique <= one || l.Unique*SectorBytes <= float64(t.card.L2) || t.e.Waves < 2 {
		return SectorBytes * l.Unique * l.moved()
	}
	growth := min(1, log2(l.Unique/one)/log2(float64(l.Blocks)))
	wave := one * exp2(growth*log2(float64(l.Blocks)/float64(t.e.Waves)))
	return SectorBytes * l.moved() * min(one*float64(l.Blocks), max(l.Unique, wave*float64(t.e.Waves)))
}

// latency is what the warps of the busiest multiprocessor take one after the other: those that it holds at a time wait side by side.
func (t *clock) latency() {
	l := t.l
	warps := float64(ceil(l.Threads, cards.Warp) * l.Blocks)
	chain := 0.0
	for p, n := range l.Instructions {
		if ptx.Pipe(p) != ptx.PipeNone {
			chain += float64(n * cards.LatencyALU / parallel)
		}
	}
	miss := min(1, t.e.DRAM/max(SectorBytes*l.Requested, 1))
	chain += float64(l.GlobalWaits * (cards.LatencyL2 + float64(miss*(cards.LatencyMemory-cards.LatencyL2))))
	chain += float64((l.SharedWaits + l.Barriers) * cards.LatencyShared)
	rounds := ceil(ceil(l.Blocks, t.card.SMs), t.e.Occupancy.Blocks)
	t.add("latency", chains, Latency, float64(rounds)*chain/warps/t.hz, func() string {
		return sentence("%s clocks that a warp takes alone, times %d for blocks one after the other", count(chain/warps), rounds)
	})
}

// Roofline is where a kernel stands under its card's roof.
type Roofline struct {
	Intensity float64 // operations a byte of memory
	Roof      float64 // operations a second that the card does at most at that intensity
	Peak      float64 // the same at any intensity
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
	if flops > 0 && peak == 0 {
		peak = card.HalfRate() * float64(card.SMs) * 1e6 * float64(card.Clock)
	}
	if flops == 0 {
		flops, peak = 2*cards.Warp*l.Instructions[ptx.PipeFloat32], card.Vector()
	}
	r.Roof, r.Peak = peak, peak
	if e.DRAM > 0 {
		r.Intensity = flops / e.DRAM
		r.Roof = min(peak, r.Intensity*1e9*float64(card.Bandwidth))
	}
	if e.Seconds > 0 {
		r.Reached = flops / e.Seconds
	}
	return r
}
