package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// MemoryCounts are the transactions of an instruction.
type MemoryCounts struct {
	GlobalRequests, Sectors                     uint64
	SharedRequests, Wavefronts, SharedConflicts uint64
}

// Add adds other counts.
func (m *MemoryCounts) Add(o *MemoryCounts) {
	m.GlobalRequests += o.GlobalRequests
	m.Sectors += o.Sectors
	m.SharedRequests += o.SharedRequests
	m.Wavefronts += o.Wavefronts
	m.SharedConflicts += o.SharedConflicts
}

func sharedSize(c *CTA) string { return fmt.Sprintf("shared memory of %d bytes", c.Launch.Shared) }

// CountAccess counts the transactions of the access at w.Addr.
func (w *Warp) CountAccess(a *check.Access) {
	if !w.CTA.Launch.Counters || w.Seen {
		return
	}
	space := a.Space
	if space == ptx.Generic {
		space = memory.SpaceAt(w.Addr[simt.Lowest(w.Mask)])
	}
	m := w.CTA.site(a.Site.Id)
	switch space {
	case ptx.Global:
		m.GlobalRequests++
		m.Sectors += uint64(w.touch(a))
	case ptx.Shared:
		m.countShared(&w.Addr, w.Mask, a.Size)
	}
}

// touch finds the different sectors of 32 bytes that the active lanes access, marks them and returns how many they are.
func (w *Warp) touch(a *check.Access) (n int) {
	t := &w.CTA.Worker.Traffic
	if a.Atomic || a.Write {
		for mask := w.Mask; mask != 0; mask &= mask - 1 {
			if at := w.Addr[simt.Lowest(mask)]; a.Atomic {
				t.atomic(at)
			} else {
				t.store(at, a.Size)
			}
		}
	}
	var seen [2 * simt.WarpSize]uint64
	n = sectors(&w.Addr, w.Mask, a.Size, &seen)
	t.mark(seen[:n], w.CTA.bit)
	return n
}

// sectors finds the different sectors of global memory that lanes access.
func sectors(addr *simt.Vec64, mask uint32, size int, seen *[2 * simt.WarpSize]uint64) (n int) {
	for ; mask != 0; mask &= mask - 1 {
		at := addr[simt.Lowest(mask)]
		for s := at / sectorBytes; s <= (at+uint64(size)-1)/sectorBytes && n < len(seen); s++ {
			if !contains(seen[:n], s) {
				seen[n] = s
				n++
			}
		}
	}
	return n
}

// contains searches from the end, where a neighbour's value is.
func contains(list []uint64, v uint64) bool {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == v {
			return true
		}
	}
	return false
}

// countShared counts the passes over the 32 banks of 4 bytes. Accesses of 8 bytes go in halves of a warp, those of 16 in
// quarters; within one, a bank serves one word per pass, to any number of lanes.
func (m *MemoryCounts) countShared(addr *simt.Vec64, mask uint32, size int) {
	m.SharedRequests++
	lanes := simt.WarpSize * 4 / max(size, 4)
	for first := 0; first < simt.WarpSize; first += lanes {
		part := mask >> first << first
		if first+lanes < simt.WarpSize {
			part &= 1<<(first+lanes) - 1
		}
		if part == 0 {
			continue
		}
		n := uint64(wavefronts(addr, part, size))
		m.Wavefronts += n
		m.SharedConflicts += n - 1
	}
}

func wavefronts(addr *simt.Vec64, mask uint32, size int) int {
	var words [simt.WarpSize][simt.WarpSize]uint64
	var count [simt.WarpSize]int
	most := 1
	for ; mask != 0; mask &= mask - 1 {
		at := addr[simt.Lowest(mask)]
		for word := at / 4; word <= (at+uint64(size)-1)/4; word++ {
			bank := word % simt.WarpSize
			if n := count[bank]; n < simt.WarpSize && !contains(words[bank][:n], word) {
				words[bank][n] = word
				count[bank]++
				most = max(most, n+1)
			}
		}
	}
	return most
}
