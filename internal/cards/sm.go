package cards

// SM is what a streaming multiprocessor of a compute capability has: what bounds the blocks on it, how many lanes of an
// instruction it carries out in a clock, and how long an instruction takes.
type SM struct {
	Compute        [2]int
	Threads        int // at most, at a time
	Blocks         int
	Shared         int // bytes of shared memory
	SharedPerBlock int // bytes a block may have with the opt-in attribute
	SharedReserved int // bytes the driver takes of each block
	SharedUnit     int // bytes by which shared memory is given out
	Registers      int

	Float32, Integer, Float64, Half, Special, Convert, Shuffle, Memory int // lanes a clock

	Sync float64 // share of the tensor cores' rate that mma.sync reaches
}

// What all multiprocessors have in common.
const (
	Warp            = 32 // lanes
	Schedulers      = 4  // of a multiprocessor, each starts an instruction of a warp a clock
	RegisterUnit    = 256
	MaxRegisters    = 255 // of 32 bits that an instruction can name
	ThreadsPerBlock = 1024
)

// Latencies in clocks, nominal, of V100 to H100: an instruction whose operands are in registers; shared memory; L2; memory.
const (
	LatencyALU    = 4
	LatencyShared = 20
	LatencyL2     = 200
	LatencyMemory = 400
)

// SMSource is where the figures of SMs are from.
const SMSource = `bounds: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; units of registers and shared memory: ` +
	`cuda_occupancy.h; lanes a clock: the same guide, "Arithmetic Instructions", as commonly cited; latencies and bandwidth of L2: PMC10448217, table 3 ` +
	`(32 bytes a clock and multiprocessor assumed where none is published); mma.sync on Hopper: arXiv 2501.12084, on B200 assumed as fast as there`

const kib = 1 << 10

// sms is by compute capability: threads, blocks, shared memory of the multiprocessor, of a block, reserved, unit; registers;
// lanes a clock of float32, integers, float64, half precision (pairs), special functions, conversions, shuffles, accesses.
var sms = []SM{
	{[2]int{7, 0}, 2048, 32, 96 * kib, 96 * kib, 0, 256, 65536, 64, 64, 32, 64, 16, 16, 32, 32, 1},
	{[2]int{7, 5}, 1024, 16, 64 * kib, 64 * kib, 0, 256, 65536, 64, 64, 2, 64, 16, 16, 32, 32, 1},
	{[2]int{8, 0}, 2048, 32, 164 * kib, 163 * kib, kib, 128, 65536, 64, 64, 32, 128, 16, 16, 32, 32, 1},
	{[2]int{8, 6}, 1536, 16, 100 * kib, 99 * kib, kib, 128, 65536, 128, 64, 2, 64, 16, 16, 32, 32, 1},
	{[2]int{8, 9}, 1536, 24, 100 * kib, 99 * kib, kib, 128, 65536, 128, 64, 2, 64, 16, 16, 32, 32, 1},
	{[2]int{9, 0}, 2048, 32, 228 * kib, 227 * kib, kib, 128, 65536, 128, 64, 64, 128, 16, 16, 32, 32, 0.63},
	{[2]int{10, 0}, 2048, 32, 228 * kib, 227 * kib, kib, 128, 65536, 128, 64, 64, 128, 16, 16, 32, 32, 0.315},
	{[2]int{12, 0}, 1536, 24, 100 * kib, 99 * kib, kib, 128, 65536, 128, 64, 2, 64, 16, 16, 32, 32, 1},
}

// SMOf is what the multiprocessors of a compute capability have; of one that is not known those of the nearest lower one.
func SMOf(compute [2]int) *SM {
	m := &sms[0]
	for i := range sms {
		if x := &sms[i]; x.Compute[0] < compute[0] || x.Compute[0] == compute[0] && x.Compute[1] <= compute[1] {
			m = x
		}
	}
	return m
}
