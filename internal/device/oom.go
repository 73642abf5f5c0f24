package device

import "fmt"

// OOMError is an allocation that failed because the memory is used up. Sizes are bytes. It wraps [ErrOutOfMemory].
type OOMError struct {
	Device      string
	Queue       int
	Asked       int64 // by the caller
	Segment     int64 // of the device, for it
	Total       int64 // memory of the device; 0 when unknown
	Limit       int64 // set for this allocator; 0 when none is
	Allocated   int64 // in use
	Active      int64 // in use or waiting for other queues
	Reserved    int64 // got from the device: in use and cached
	Private     int64 // of Reserved, in private pools
	LargestFree int64 // the largest cached block of any queue
	Free        int64 // what the device, or the limit, still has to give; -1 when unknown
}

// Unwrap returns [ErrOutOfMemory].
func (e *OOMError) Unwrap() error { return ErrOutOfMemory }

// Error says what was asked for, what there is and who has it, in one line.
func (e *OOMError) Error() string {
	s := fmt.Sprintf("%v: tried to allocate %s on %s", ErrOutOfMemory, formatBytes(e.Asked), e.Device)
	if e.Asked >= maxRequest {
		return s + ", which is more than 1 EiB"
	}
	if e.Total > 0 {
		s += fmt.Sprintf(" with %s in all", formatBytes(e.Total))
	}
	if e.Limit > 0 {
		s += fmt.Sprintf(", limited to %s", formatBytes(e.Limit))
	}
	if e.Free >= 0 {
		s += fmt.Sprintf(", of which %s are free", formatBytes(e.Free))
	}
	return s + fmt.Sprintf("; %s are allocated, %s reserved but unused (largest piece %s); use a smaller batch or recompute",
		formatBytes(e.Allocated), formatBytes(e.Reserved-e.Allocated), formatBytes(e.LargestFree))
}

// formatBytes prints a size as PyTorch does in this error: with two decimals, in the largest unit up to GiB that is not above
// it.
func formatBytes(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.2f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func (a *Allocator) outOfMemory(asked int64, queue int) error {
	a.stats.NumOOMs++
	e := &OOMError{
		Device: a.name, Queue: queue, Asked: asked,
		Segment:     asked,
		Total:       a.info.Memory,
		Allocated:   a.stats.AllocatedBytes.All.Current,
		Active:      a.stats.ActiveBytes.All.Current,
		Reserved:    a.stats.ReservedBytes.All.Current,
		Private:     a.reservedApart(),
		LargestFree: a.common.largest(),
	}
	if asked < maxRequest {
		e.Segment = a.cfg.segmentFor(a.cfg.round(asked))
	}
	e.Free = a.unused(e.Reserved)
	if a.limit < unlimited {
		e.Limit = a.limit
		if left := max(0, a.limit-e.Reserved); e.Free < 0 || left < e.Free {
			e.Free = left
		}
	}
	return e
}

// unused is what the device still has to give, as it says itself or by what was got from it; -1 when unknown.
func (a *Allocator) unused(reserved int64) int64 {
	if m, ok := As[Meter](a.dev); ok {
		if n, ok := m.Unused(); ok {
			return n
		}
	}
	if a.info.Memory > 0 {
		return max(0, a.info.Memory-reserved)
	}
	return -1
}
