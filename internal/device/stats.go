package device

import "fmt"

// Stat counts one thing. Allocated and Freed only grow; Current is their difference since the start.
type Stat struct{ Current, Peak, Allocated, Freed int64 }

func (s *Stat) add(n int64) {
	s.Current += n
	s.Allocated += n
	if s.Current > s.Peak {
		s.Peak = s.Current
	}
}

func (s *Stat) sub(n int64) {
	s.Current -= n
	s.Freed += n
}

// Pool tells requests of up to 1 MiB, rounded, from larger ones.
type Pool uint8

// The pools.
const (
	LargePool Pool = iota
	SmallPool
)

// Counter is a [Stat] for all memory and for each pool.
type Counter struct{ All, Large, Small Stat }

// Of is the counter of a pool.
func (c *Counter) Of(p Pool) *Stat {
	if p == LargePool {
		return &c.Large
	}
	return &c.Small
}

func (c *Counter) add(p Pool, n int64) {
	c.All.add(n)
	c.Of(p).add(n)
}

func (c *Counter) sub(p Pool, n int64) {
	c.All.sub(n)
	c.Of(p).sub(n)
}

func (c *Counter) move(p Pool, n int64) {
	switch {
	case n > 0:
		c.add(p, n)
	case n < 0:
		c.sub(p, -n)
	}
}

// Stats are the counters of an allocator, with PyTorch's meaning. Peaks of different counters may be of different
// moments.
type Stats struct {
	Allocation          Counter // blocks in use
	Segment             Counter // segments got from the device
	Active              Counter // blocks in use or waiting for other queues
	InactiveSplit       Counter // free blocks that are a part of a segment in use
	AllocatedBytes      Counter // of blocks in use, rounded
	ReservedBytes       Counter // of segments
	ActiveBytes         Counter // of active blocks, rounded
	InactiveSplitBytes  Counter // of free blocks that cannot be returned to the device
	RequestedBytes      Counter // of active blocks, before rounding
	OversizeAllocations Stat    // blocks in use of MaxSplitSize or more
	OversizeSegments    Stat    // segments of MaxSplitSize or more
	NumAllocRetries     int64   // times the whole cache was given up for an allocation
	NumOOMs             int64   // allocations that failed
	NumSyncAllStreams   int64   // times all outstanding marks were waited for
	NumDeviceAlloc      int64   // allocations of the device
	NumDeviceFree       int64
	MaxSplitSize        int64 // bytes; -1: no such size
}

// namedCounter is a counter under PyTorch's name.
type namedCounter struct {
	name string
	*Counter
}

func (s *Stats) counters() [9]namedCounter {
	return [...]namedCounter{
		{"allocation", &s.Allocation},
		{"segment", &s.Segment},
		{"active", &s.Active},
		{"inactive_split", &s.InactiveSplit},
		{"allocated_bytes", &s.AllocatedBytes},
		{"reserved_bytes", &s.ReservedBytes},
		{"active_bytes", &s.ActiveBytes},
		{"inactive_split_bytes", &s.InactiveSplitBytes},
		{"requested_bytes", &s.RequestedBytes},
	}
}

// each calls f with every Stat, under PyTorch's name.
func (s *Stats) each(f func(name string, c *Stat)) {
	for _, c := range s.counters() {
		f(c.name+".all", &c.All)
		f(c.name+".large_pool", &c.Large)
		f(c.name+".small_pool", &c.Small)
	}
	f("oversize_allocations", &s.OversizeAllocations)
	f("oversize_segments", &s.OversizeSegments)
}

// Map is the counters under the keys of PyTorch's memory_stats.
func (s *Stats) Map() map[string]int64 {
	m := map[string]int64{
		"num_alloc_retries":    s.NumAllocRetries,
		"num_ooms":             s.NumOOMs,
		"num_sync_all_streams": s.NumSyncAllStreams,
		"num_device_alloc":     s.NumDeviceAlloc,
		"num_device_free":      s.NumDeviceFree,
		"max_split_size":       s.MaxSplitSize,
	}
	s.each(func(name string, c *Stat) { c.put(m, name) })
	return m
}

func (s *Stat) put(m map[string]int64, name string) {
	m[name+".current"], m[name+".peak"] = s.Current, s.Peak
	m[name+".allocated"], m[name+".freed"] = s.Allocated, s.Freed
}

// Stats returns the counters.
func (a *Allocator) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

// StatsMap returns the counters under the keys of PyTorch's memory_stats, those of private pools among them.
func (a *Allocator) StatsMap() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.stats.Map()
	for _, p := range a.private {
		p.reserved.put(m, fmt.Sprintf("reserved_bytes_by_private_pools.%d_%d", p.id[0], p.id[1]))
	}
	return m
}

// ResetPeak sets every peak to the present value.
func (a *Allocator) ResetPeak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.each(func(_ string, c *Stat) { c.Peak = c.Current })
	for _, p := range a.private {
		p.reserved.Peak = p.reserved.Current
	}
}

// ResetAccumulated sets to zero what only grows.
func (a *Allocator) ResetAccumulated() {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.stats
	s.each(func(_ string, c *Stat) { c.Allocated, c.Freed = 0, 0 })
	for _, p := range a.private {
		p.reserved.Allocated, p.reserved.Freed = 0, 0
	}
	s.NumAllocRetries, s.NumOOMs, s.NumSyncAllStreams, s.NumDeviceAlloc, s.NumDeviceFree = 0, 0, 0, 0, 0
}
