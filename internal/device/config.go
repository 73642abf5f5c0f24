package device

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Sizes of the caching scheme, in bytes.
const (
	minBlock     = 512      // every block is a multiple of it
	smallLimit   = 1 << 20  // rounded requests up to it come from the small pool
	smallSegment = 2 << 20  // what the small pool asks a device for
	largeExact   = 10 << 20 // from here on a request gets a segment of its own size
	largeSegment = 20 << 20 // what the large pool asks a device for below largeExact
	largeRound   = 2 << 20  // segments of their own size are multiples of it
	unlimited    = math.MaxInt64
	maxRequest   = 1 << 60
	maxQueues    = 1 << 12
)

// Config sets what an [Allocator] does beyond its defaults. The zero Config is PyTorch's default behaviour.
type Config struct {
	// Divisions rounds a request between two powers of two up to one of so many steps. Entry i is for requests from
	// 2^i MiB on, entry 0 also for smaller ones, the last also for larger ones. Values are powers of two; 0 and 1 mean
	// none. See [UniformDivisions].
	Divisions [16]int64
	// MaxSplit is the size in bytes from which blocks are neither split nor used for smaller requests; 0: no such size.
	MaxSplit int64
	// MaxNonSplitRounding is how many bytes a block of MaxSplit or more may be larger than the request; 0: 20 MiB.
	MaxNonSplitRounding int64
	// GCThreshold is the part of the limit, between 0 and 1, above which cached segments that have not been used for
	// long are given back before the device is asked for another; 0: never. It acts only while a limit is set.
	GCThreshold float64
	// Gap is how many bytes are left unused behind every block, as part of it; 0: what rounding leaves.
	Gap int64
	// Marks records a mark behind all work that a queue has been given. It is needed for [Allocator.RecordUse].
	Marks func(queue int) (Mark, error)
	// Stream is told of blocks and segments, in the order in which they change hands, and that the allocator is about to
	// wait for all work (What is [WaitMemory]), to give cached memory back to the device. Its observers are called with the
	// allocator's lock held.
	Stream *Stream
}

// UniformDivisions is a [Config.Divisions] with d for every size.
func UniformDivisions(d int64) (v [16]int64) {
	for i := range v {
		v[i] = d
	}
	return v
}

// Check reports a value that is out of its range.
func (c *Config) Check() error {
	for i, d := range c.Divisions {
		if d < 0 || d&(d-1) != 0 {
			return fmt.Errorf("device: divisions for %d MiB are %d: want a power of two", 1<<i, d)
		}
	}
	if c.MaxSplit != 0 && c.MaxSplit < largeSegment || c.MaxNonSplitRounding != 0 && c.MaxNonSplitRounding < largeSegment {
		return fmt.Errorf("device: largest split %d, rounding %d: want 0 or at least %d bytes", c.MaxSplit, c.MaxNonSplitRounding, largeSegment)
	}
	if c.Gap < 0 {
		return fmt.Errorf("device: a gap of %d bytes: want at least 0", c.Gap)
	}
	if !(c.GCThreshold >= 0 && c.GCThreshold < 1) {
		return errors.New("device: the collection threshold must be at least 0 and below 1")
	}
	return nil
}

func (c *Config) withDefaults() Config {
	d := *c
	if d.MaxSplit == 0 {
		d.MaxSplit = unlimited
	}
	if d.MaxNonSplitRounding == 0 {
		d.MaxNonSplitRounding = largeSegment
	}
	return d
}

// divisions is the number of steps for a request of n bytes.
func (c *Config) divisions(n int64) int64 {
	return c.Divisions[min(max(bits.Len64(uint64(n))-1-20, 0), len(c.Divisions)-1)]
}

// round is the size of the block for a request of n bytes.
func (c *Config) round(n int64) int64 {
	if n < minBlock {
		return minBlock
	}
	if d := c.divisions(n); d > 1 && n > minBlock*d {
		return roundToStep(n, d)
	}
	return roundUp(n, minBlock)
}

// roundToStep rounds n up to a power of two or one of the d-1 evenly spaced sizes between it and the next.
func roundToStep(n, d int64) int64 {
	p := int64(1) << (bits.Len64(uint64(n)) - 1)
	if n == p {
		return n
	}
	return roundUp(n, p/d)
}

// roundUp rounds n up to a multiple of a power of two.
func roundUp(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }

// segmentFor is how much a device is asked for when no block of size bytes is cached.
func segmentFor(size int64) int64 {
	switch {
	case size <= smallLimit:
		return smallSegment
	case size < largeExact:
		return largeSegment
	}
	return roundUp(size, largeRound)
}
