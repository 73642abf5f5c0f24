package gpusim

import "github.com/warpline-ml/warpline/internal/gpusim/compile"

// Card is what a kernel can see of a model of GPU, and what bounds its launches.
type Card struct {
	Name             string
	Memory           int64 // bytes
	SMs              int
	Compute          [2]int // compute capability
	ThreadsPerSM     int
	BlocksPerSM      int
	RegistersPerSM   int
	SharedPerSM      int // bytes
	SharedPerBlock   int // bytes a block may have with the opt-in attribute
	SharedReserved   int // bytes the driver takes of each block
	ThreadsPerBlock  int
	RegistersPerThrd int
}

type ccLimits struct {
	cc                             [2]int
	threads, blocks, shared, optIn int
}

// limits is by compute capability: threads and blocks per SM, KiB of shared memory per SM and per block. Source: CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability".
var limits = []ccLimits{
	{[2]int{7, 0}, 2048, 32, 96, 96}, {[2]int{7, 5}, 1024, 16, 64, 64}, {[2]int{8, 0}, 2048, 32, 164, 163},
	{[2]int{8, 6}, 1536, 16, 100, 99}, {[2]int{8, 9}, 1536, 24, 100, 99}, {[2]int{9, 0}, 2048, 32, 228, 227},
	{[2]int{10, 0}, 2048, 32, 228, 227}, {[2]int{12, 0}, 1536, 24, 100, 99},
}

// NewCard fills in the limits of a compute capability; those of the nearest lower one that is known.
func NewCard(name string, memory int64, sms int, compute [2]int) Card {
	l := limits[0]
	for _, x := range limits {
		if x.cc[0] < compute[0] || x.cc[0] == compute[0] && x.cc[1] <= compute[1] {
			l = x
		}
	}
	c := Card{Name: name, Memory: memory, SMs: sms, Compute: compute, ThreadsPerSM: l.threads, BlocksPerSM: l.blocks,
		RegistersPerSM: 65536, SharedPerSM: l.shared << 10, SharedPerBlock: l.optIn << 10, ThreadsPerBlock: 1024, RegistersPerThrd: compile.MaxRegisters}
	if compute[0] >= 8 {
		c.SharedReserved = 1 << 10
	}
	return c
}

// A100 is the card that a kernel is tried on when none is named.
func A100() Card { return NewCard("a100-80", 80<<30, 108, [2]int{8, 0}) }

// Occupancy is how many blocks of a kernel fit on a multiprocessor.
type Occupancy struct {
	Blocks  int     // per SM
	Warps   int     // per SM
	Ratio   float64 // of the warps that an SM can hold
	Limiter string  // what bounds it: "blocks", "threads", "registers", "shared memory"
}

// Occupancy computes the blocks per SM of a kernel with so many registers per thread, threads per block and bytes of
// shared memory per block. Warps are placed on four partitions, registers given out in units of 256 per warp, shared
// memory in units of 128 bytes, 256 below compute capability 8.0, as CUDA's cuda_occupancy.h says.
func (c Card) Occupancy(registers, threads, shared int) Occupancy {
	warps := (threads + 31) / 32
	if warps == 0 {
		return Occupancy{}
	}
	o := Occupancy{Blocks: c.BlocksPerSM, Limiter: "blocks"}
	lower := func(n int, by string) {
		if n < o.Blocks {
			o.Blocks, o.Limiter = n, by
		}
	}
	lower(c.ThreadsPerSM/32/warps, "threads")
	if registers > 0 {
		const partitions, unit = 4, 256
		perWarp := (registers*32 + unit - 1) / unit * unit
		perPartition := c.RegistersPerSM / partitions / perWarp
		n := perPartition * partitions / warps
		if registers > c.RegistersPerThrd {
			n = 0
		}
		lower(n, "registers")
	}
	if shared += c.SharedReserved; shared > 0 {
		unit := 128
		if c.Compute[0] < 8 {
			unit = 256
		}
		lower(c.SharedPerSM/((shared+unit-1)/unit*unit), "shared memory")
	}
	o.Warps = o.Blocks * warps
	o.Ratio = float64(o.Warps) / float64(c.ThreadsPerSM/32)
	return o
}
