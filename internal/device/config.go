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

// Conf is what users may set of an [Allocator], by PyTorch's keys: see [ParseConf]. The zero Conf is PyTorch's default behaviour.
type Conf struct {
	// Divisions rounds a request between two powers of two up to one of so many steps. Entry i is for requests from
	// 2^i MiB on, entry 0 also for smaller ones, the last also for larger ones. Values are powers of two; 0 and 1 mean
	// none. See [UniformDivisions].
	Divisions [16]int64
	// MaxSplit is the size in bytes from which blocks are neither split nor used for smaller requests; 0: no such size.
	MaxSplit int64
	// MaxNonSplitRounding is how many bytes a block of MaxSplit or more may be larger than the request; 0: 20 MiB.
	MaxNonSplitRounding int64
	// LargeSegment is how many bytes the large pool asks a device for below 10 MiB, and the page of its expandable segments; 0:
	// 20 MiB.
	LargeSegment int64
	// GCThreshold is the part of the limit, between 0 and 1, above which cached segments that have not been used for
	// long are given back before the device is asked for another; 0: never. It acts only while a limit is set.
	GCThreshold float64
	// Fraction is the part of the device's memory, up to 1, that may be reserved; 0: no limit.
	Fraction float64
	// Expandable makes one growing segment of each queue and pool, of addresses that memory is put behind and taken away from
	// in pages, where the device is a [Mapper]; memory that is free in pieces serves large requests then.
	Expandable bool
	// Reserve is how many addresses an expandable segment gets, in bytes, or ReservePart what part of the device's memory; 0: 9/8
	// of it.
	Reserve     int64
	ReservePart float64
	// Text is what the values were read from.
	Text string
}

// Config sets what an [Allocator] does beyond its defaults.
type Config struct {
	Conf
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
	if c.Gap < 0 {
		return fmt.Errorf("device: a gap of %d bytes: want at least 0", c.Gap)
	}
	return c.Conf.Check()
}

// Check reports a value that is out of its range.
func (c *Conf) Check() error {
	for i, d := range c.Divisions {
		if d < 0 || d&(d-1) != 0 {
			return fmt.Errorf("device: divisions for %d MiB are %d: want a power of two", 1<<i, d)
		}
	}
	if c.LargeSegment != 0 && c.LargeSegment < largeExact || c.LargeSegment%largeRound != 0 {
		return fmt.Errorf("device: large segments of %s: want an even number of MiB, 10 or more", formatBytes(c.LargeSegment))
	}
	least := c.withDefaults().LargeSegment
	for what, n := range map[string]int64{"largest split": c.MaxSplit, "rounding of what is not split": c.MaxNonSplitRounding} {
		if n != 0 && n < least {
			return fmt.Errorf("device: a %s of %s: want %s or more, as much as a large segment", what, formatBytes(n), formatBytes(least))
		}
	}
	if !(c.Fraction >= 0 && c.Fraction <= 1) {
		return fmt.Errorf("device: a fraction of %v of the device's memory: want 0 to 1", c.Fraction)
	}
	if c.Reserve < 0 || !(c.ReservePart >= 0 && c.ReservePart <= 1) {
		return fmt.Errorf("device: %d bytes of addresses for an expandable segment, or a part of %v of the device's memory: want at least 0, and a part up to 1", c.Reserve, c.ReservePart)
	}
	if !(c.GCThreshold >= 0 && c.GCThreshold < 1) {
		return errors.New("device: the collection threshold must be at least 0 and below 1")
	}
	return nil
}

// On is the part that applies to a device: in memory of the host, whose addresses the system puts memory behind anyway, no segment
// is expandable.
func (c Conf) On(dev Device) Conf {
	c.Expandable = c.Expandable && !dev.Info().Host
	return c
}

// CheckFor reports what a device cannot do.
func (c *Conf) CheckFor(dev Device) error {
	info := dev.Info()
	if c.Fraction > 0 && info.Memory <= 0 {
		return fmt.Errorf("device: %s has no memory size of its own to take a fraction of: set a limit in bytes", info.Name)
	}
	if !c.Expandable {
		return nil
	}
	m, ok := As[Mapper](dev)
	if !ok || !m.Maps() {
		return fmt.Errorf("device: %s cannot have expandable segments: it, or its driver, has no virtual memory management", info.Name)
	}
	return nil
}

func (c *Conf) withDefaults() Conf {
	d := *c
	if d.LargeSegment == 0 {
		d.LargeSegment = largeSegment
	}
	if d.MaxSplit == 0 {
		d.MaxSplit = unlimited
	}
	if d.MaxNonSplitRounding == 0 {
		d.MaxNonSplitRounding = max(largeSegment, d.LargeSegment)
	}
	return d
}

// divisions is the number of steps for a request of n bytes.
func (c *Conf) divisions(n int64) int64 {
	return c.Divisions[min(max(bits.Len64(uint64(n))-1-20, 0), len(c.Divisions)-1)]
}

// round is the size of the block for a request of n bytes.
func (c *Conf) round(n int64) int64 {
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
func (c *Conf) segmentFor(size int64) int64 {
	switch {
	case size <= smallLimit:
		return smallSegment
	case size < largeExact:
		return c.LargeSegment
	}
	return roundUp(size, largeRound)
}
