package warp

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

// sectorBytes is the unit in which global memory is moved.
const sectorBytes = 32

// pageSectors is the sectors of a page of marks: 128 KiB of memory.
const pageSectors = 1 << 12

// Traffic is what the counted blocks of a launch touch of global memory.
type Traffic struct {
	pages map[uint64]*[pageSectors]uint32 // by address: which blocks touched a sector, see [Launch.Marked]
	at    uint64
	page  *[pageSectors]uint32 // at this address
	hits  map[uint64]uint64    // atomics, by address
}

// mark notes that a block has touched sectors.
func (t *Traffic) mark(sectors []uint64, block uint32) {
	for _, s := range sectors {
		if at := s / pageSectors; t.page == nil || t.at != at {
			if t.pages == nil {
				t.pages = map[uint64]*[pageSectors]uint32{}
			}
			if t.page = t.pages[at]; t.page == nil {
				t.page = new([pageSectors]uint32)
				t.pages[at] = t.page
			}
			t.at = at
		}
		t.page[s%pageSectors] |= block
	}
}

// atomic notes an atomic of a lane.
func (t *Traffic) atomic(at uint64) {
	if t.hits == nil {
		t.hits = map[uint64]uint64{}
	}
	t.hits[at]++
}

// Add adds what another worker's blocks touched.
func (t *Traffic) Add(o *Traffic) {
	for at, page := range o.pages {
		for i, m := range page {
			if m != 0 {
				t.mark([]uint64{at*pageSectors + uint64(i)}, m)
			}
		}
	}
	if t.hits == nil {
		t.hits = o.hits
		return
	}
	for at, n := range o.hits {
		t.hits[at] += n
	}
}

// Sectors calls f with the mark of each sector that was touched, in no order.
func (t *Traffic) Sectors(f func(blocks uint32)) {
	for _, page := range t.pages {
		for _, m := range page {
			if m != 0 {
				f(m)
			}
		}
	}
}

// Hottest is the most atomics at one address, and how many of the blocks touched its sector.
func (t *Traffic) Hottest() (hits uint64, blocks int) {
	for at, n := range t.hits {
		if n < hits {
			continue
		}
		s := at / sectorBytes
		b := 0
		if page := t.pages[s/pageSectors]; page != nil {
			b = simt.Popcount(page[s%pageSectors])
		}
		if n > hits || b > blocks {
			hits, blocks = n, b
		}
	}
	return hits, blocks
}
