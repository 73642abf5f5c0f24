package estimate

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
)

// TestOccupancy compares with published figures. Those of V100 are in the CUDA C++ Best Practices Guide, "Calculating Occupancy": 37
// registers allow 75 % with 12 blocks of 128 threads, and 63 % with 4 of 320. The others follow from its limits.
func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		compute                    [2]int
		registers, threads, shared int
		blocks                     int
		ratio                      float64
		limiter                    string
	}{
		{[2]int{7, 0}, 37, 128, 0, 12, 0.75, ByRegisters},
		{[2]int{7, 0}, 37, 320, 0, 4, 0.625, ByRegisters},
		{[2]int{7, 0}, 32, 256, 0, 8, 1, ByThreads},
		{[2]int{8, 0}, 32, 32, 0, 32, 0.5, ByBlocks},
		{[2]int{8, 0}, 255, 256, 0, 1, 0.125, ByRegisters},
		{[2]int{8, 0}, 32, 128, 48 << 10, 3, 0.1875, ByShared}, // 3 × 49 KiB of 164
		{[2]int{8, 0}, 256, 32, 0, 0, 0, ByRegisters},
		{[2]int{8, 6}, 40, 256, 0, 6, 1, ByThreads},
		{[2]int{9, 0}, 168, 384, 200 << 10, 1, 0.1875, ByRegisters},
		{[2]int{9, 0}, 168, 128, 100 << 10, 2, 0.125, ByShared},
		{[2]int{7, 5}, 16, 64, 4992, 12, 0.75, ByShared}, // 4992 bytes become 5120, of which 64 KiB holds 12
		{[2]int{7, 5}, 16, 64, 4864, 13, 0.8125, ByShared},
		{[2]int{8, 9}, 16, 0, 0, 0, 0, ""},
	} {
		o := Occupy(cards.SMOf(c.compute), c.registers, c.threads, c.shared)
		if o.Blocks != c.blocks || math.Abs(o.Ratio-c.ratio) > 1e-12 || o.Limiter != c.limiter {
			t.Errorf("%+v: %+v", c, o)
		}
	}
}

// TestRaise wants each piece of advice to hold: what it names gives one block more, and the next worse does not.
func TestRaise(t *testing.T) {
	m := cards.SMOf([2]int{8, 0})
	for _, c := range []struct {
		registers, threads, shared int
		want                       string
	}{
		{37, 128, 0, "32 registers a thread instead of 37 would let one block more"},
		{32, 128, 48 << 10, "40960 bytes of shared memory a block instead of 49152 would let one block more"},
		{32, 32, 0, "blocks of more than 32 threads would fill the 32 blocks that a multiprocessor holds"},
		{32, 768, 0, "blocks whose threads divide 2048 would leave none of them idle"},
		{32, 256, 0, ""},
	} {
		o := Occupy(m, c.registers, c.threads, c.shared)
		if got := Raise(m, o, c.registers, c.threads, c.shared); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if a, b := Occupy(m, 32, 128, 0).Blocks, Occupy(m, 33, 128, 0).Blocks; a <= b {
		t.Error(a, b)
	}
	if a, b := Occupy(m, 32, 128, 40960).Blocks, Occupy(m, 32, 128, 40961).Blocks; a != 4 || b != 3 {
		t.Error(a, b)
	}
}
