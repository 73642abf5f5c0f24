package warp

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

// sectorBytes is the unit in which global memory is moved.
const sectorBytes = 32

// pageSectors is the sectors of a page of marks: 128 KiB of memory.
const pageSectors = 1 << 12

// page has marks of sectors: which blocks touched one, see [Launch.Marked], and which of its bytes were stored.
type page struct {
	blocks [pageSectors]uint32
	stored *[pageSectors]uint32 // nil until something was
}

// Traffic is what the counted blocks of a launch touch of global memory.
type Traffic struct {
	pages map[uint64]*page // by address
	at    uint64
	page  *page             // at this address
	hits  map[uint64]uint64 // atomics, by address
}

// on is the page of a sector.
func (t *Traffic) on(sector uint64) *page {
	if at := sector / pageSectors; t.page == nil || t.at != at {
		if t.pages == nil {
			t.pages = map[uint64]*page{}
		}
		if t.page = t.pages[at]; t.page == nil {
			t.page = new(page)
			t.pages[at] = t.page
		}
		t.at = at
	}
	return t.page
}

// mark notes that a block has touched sectors.
func (t *Traffic) mark(sectors []uint64, block uint32) {
	for _, s := range sectors {
		t.on(s).blocks[s%pageSectors] |= block
	}
}

// store notes that bytes were stored.
func (t *Traffic) store(at uint64, size int) {
	for end := at + uint64(size); at < end; {
		s, first := at/sectorBytes, at%sectorBytes
		n := min(end-at, sectorBytes-first)
		t.wrote(s, uint32((uint64(1)<<n-1)<<first))
		at += n
	}
}

func (t *Traffic) wrote(sector uint64, bytes uint32) {
	p := t.on(sector)
	if p.stored == nil {
		p.stored = new([pageSectors]uint32)
	}
	p.stored[sector%pageSectors] |= bytes
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
	for at, p := range o.pages {
		for i, m := range p.blocks {
			if m == 0 {
				continue
			}
			s := at*pageSectors + uint64(i)
			t.mark([]uint64{s}, m)
			if p.stored != nil && p.stored[i] != 0 {
				t.wrote(s, p.stored[i])
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

// Sector is one that was touched.
type Sector struct {
	Blocks uint32 // see [Launch.Marked]
	Lone   bool   // the other one of its 64 bytes was not touched
	Part   bool   // only some of its bytes were stored
}

// Sectors calls f with each sector that was touched, in no order.
func (t *Traffic) Sectors(f func(Sector)) {
	for _, p := range t.pages {
		for i, m := range p.blocks {
			if m == 0 {
				continue
			}
			s := Sector{Blocks: m, Lone: p.blocks[i^1] == 0}
			if p.stored != nil {
				bytes := p.stored[i]
				s.Part = bytes != 0 && bytes != 1<<sectorBytes-1
			}
			f(s)
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
			b = simt.Popcount(page.blocks[s%pageSectors])
		}
		if n > hits || b > blocks {
			hits, blocks = n, b
		}
	}
	return hits, blocks
}
