package memory

import "sync/atomic"

// SectorSize is the unit in which caches hold global memory.
const SectorSize = 32

// Sectors are the marks of one allocation: by sector who read it by .nc, and who wrote it.
type Sectors struct {
	Of              any // the stale of a launch
	Alloc           *Allocation
	Readers, Writes []atomic.Uint64
}
