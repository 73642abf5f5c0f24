// Package estimate models what a kernel takes on a card: how many of its blocks a multiprocessor holds, and how long it runs, from
// counts of what it does. It is arithmetic on figures that the card's maker or others have published (package cards); nothing is
// measured and nothing is adjusted to a kernel. What it says is a model, and everything that shows it says so.
package estimate

import "github.com/warpline-ml/warpline/internal/cards"

// What bounds the blocks on a multiprocessor.
const (
	ByBlocks    = "blocks"
	ByThreads   = "threads"
	ByRegisters = "registers"
	ByShared    = "shared memory"
)

// Occupancy is how many blocks of a kernel fit on a multiprocessor.
type Occupancy struct {
	Blocks  int     // per SM
	Warps   int     // per SM
	Ratio   float64 // of the warps that an SM can hold
	Limiter string
}

// Occupy computes the blocks per SM of a kernel with so many registers per thread, threads per block and bytes of shared memory per
// block. Warps are placed on four partitions, registers given out in units of 256 per warp, shared memory in units of 128
// bytes, 256 below compute capability 8.0, as CUDA's cuda_occupancy.h says.
func Occupy(m *cards.SM, registers, threads, shared int) Occupancy {
	warps := ceil(threads, cards.Warp)
	if warps == 0 {
		return Occupancy{}
	}
	o := Occupancy{Blocks: m.Blocks, Limiter: ByBlocks}
	lower := func(n int, by string) {
		if n < o.Blocks {
			o.Blocks, o.Limiter = n, by
		}
	}
	lower(m.Threads/cards.Warp/warps, ByThreads)
	if registers > 0 {
		perWarp := ceil(registers*cards.Warp, cards.RegisterUnit) * cards.RegisterUnit
		n := m.Registers / cards.Schedulers / perWarp * cards.Schedulers / warps
		if registers > cards.MaxRegisters {
			n = 0
		}
		lower(n, ByRegisters)
	}
	if shared += m.SharedReserved; shared > 0 {
		lower(m.Shared/(ceil(shared, m.SharedUnit)*m.SharedUnit), ByShared)
	}
	o.Warps = o.Blocks * warps
	o.Ratio = float64(o.Warps) / float64(m.Threads/cards.Warp)
	return o
}

// Raise is what would have to change for one block more on a multiprocessor, as a sentence; empty where nothing can.
func Raise(m *cards.SM, o Occupancy, registers, threads, shared int) string {
	more := func(r, s int) bool { return Occupy(m, r, threads, s).Blocks > o.Blocks }
	switch o.Limiter {
	case ByRegisters:
		for r := registers - 1; r > 0; r-- {
			if more(r, shared) {
				return sentence("%d registers a thread instead of %d would let one block more", r, registers)
			}
		}
	case ByShared:
		if s := m.Shared/(o.Blocks+1)/m.SharedUnit*m.SharedUnit - m.SharedReserved; s >= 0 && more(registers, s) {
			return sentence("%d bytes of shared memory a block instead of %d would let one block more", s, shared)
		}
	case ByBlocks:
		if o.Ratio < 1 {
			return sentence("blocks of more than %d threads would fill the %d blocks that a multiprocessor holds", threads, m.Blocks)
		}
	case ByThreads:
		if o.Ratio < 1 {
			return sentence("blocks whose threads divide %d would leave none of them idle", m.Threads)
		}
	}
	return ""
}

func ceil(a, b int) int { return (a + b - 1) / b }
