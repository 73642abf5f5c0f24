package gpusim

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// memoryCounts are the transactions of a block.
type memoryCounts struct {
	globalRequests, sectors                     uint64
	sharedRequests, wavefronts, sharedConflicts uint64
}

func (m *memoryCounts) add(o memoryCounts) {
	m.globalRequests += o.globalRequests
	m.sectors += o.sectors
	m.sharedRequests += o.sharedRequests
	m.wavefronts += o.wavefronts
	m.sharedConflicts += o.sharedConflicts
}

func (m *memoryCounts) addTo(c *Counters) {
	c.GlobalRequests += m.globalRequests
	c.GlobalSectors += m.sectors
	c.SharedRequests += m.sharedRequests
	c.SharedWavefronts += m.wavefronts
	c.SharedConflicts += m.sharedConflicts
}

func sharedSize(c *cta) string { return fmt.Sprintf("shared memory of %d bytes", len(c.shared)) }

// countAccess counts the transactions of the access at w.addr.
func (w *warp) countAccess(a *access) {
	if !w.cta.grid.counters || w.seen {
		return
	}
	space := a.space
	if space == ptx.Generic {
		space = spaceAt(w.addr[lowest(w.mask)])
	}
	m := &w.cta.mem
	switch space {
	case ptx.Global:
		m.globalRequests++
		m.sectors += uint64(countSectors(&w.addr, w.mask, a.size))
	case ptx.Shared:
		m.countShared(&w.addr, w.mask, a.size)
	}
}

// countSectors is the number of different 32-byte sectors.
func countSectors(addr *vec64, mask uint32, size int) int {
	var seen [2 * warpSize]uint64
	n := 0
	for ; mask != 0; mask &= mask - 1 {
		at := addr[lowest(mask)]
		for s := at / 32; s <= (at+uint64(size)-1)/32 && n < len(seen); s++ {
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
func (m *memoryCounts) countShared(addr *vec64, mask uint32, size int) {
	m.sharedRequests++
	lanes := warpSize * 4 / max(size, 4)
	for first := 0; first < warpSize; first += lanes {
		part := mask >> first << first
		if first+lanes < warpSize {
			part &= 1<<(first+lanes) - 1
		}
		if part == 0 {
			continue
		}
		n := uint64(wavefronts(addr, part, size))
		m.wavefronts += n
		m.sharedConflicts += n - 1
	}
}

func wavefronts(addr *vec64, mask uint32, size int) int {
	var words [warpSize][warpSize]uint64
	var count [warpSize]int
	most := 1
	for ; mask != 0; mask &= mask - 1 {
		at := addr[lowest(mask)]
		for word := at / 4; word <= (at+uint64(size)-1)/4; word++ {
			bank := word % warpSize
			if n := count[bank]; n < warpSize && !contains(words[bank][:n], word) {
				words[bank][n] = word
				count[bank]++
				most = max(most, n+1)
			}
		}
	}
	return most
}
