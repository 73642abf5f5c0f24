package snapshot

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// state is what the memory of one device, or of all, holds at the end of a file.
type state struct {
	device                                 int
	segments, blocks                       int
	reserved, allocated, active, requested int64
	states                                 map[string]int // blocks by their state
	largest                                int64          // inactive block
	stuck, free                            int64          // inactive bytes beside live blocks, and in segments with none
	private                                int64          // inactive bytes of private pools
	pinned                                 int64          // stuck bytes that the allocator cannot give back or serve others with: fragmentation
	worst                                  []*pinnedSegment
	live                                   []Share // bytes in use by line and kind
}

// pinnedSegment is one that cannot be given back, with what is stuck in it.
type pinnedSegment struct {
	*Segment
	stuck int64
}

// Share is a part of memory that one line of the program has.
type Share struct {
	Line   string `json:"line"`
	Kind   string `json:"kind"`
	Bytes  int64  `json:"bytes"`
	Blocks int    `json:"blocks"`
	File   string `json:"file,omitempty"` // with its folders
}

// Pages of expandable segments, which the allocator gives back one by one.
const (
	smallPage = 2 << 20
	largePage = 20 << 20
)

// everything is a device number that stands for all.
const everything = -1

// stateOf is the state of a device. kinds are those of blocks that a trace tells.
func (s *Snapshot) stateOf(device int, kinds map[uint64]string) *state {
	t := &state{device: device, states: map[string]int{}}
	shares := shares{}
	for _, seg := range s.Segments {
		if device == everything || seg.Device == device {
			t.add(seg, shares, kinds)
		}
	}
	t.live = shares.sorted()
	sorting.By(t.worst, func(a, b *pinnedSegment) int { return cmp.Compare(b.stuck, a.stuck) })
	return t
}

func (t *state) add(seg *Segment, shares shares, kinds map[uint64]string) {
	t.segments++
	t.reserved += seg.Size
	t.allocated += seg.Allocated
	t.active += seg.Active
	t.requested += seg.Requested
	var inactive, pages int64
	live := false
	for _, b := range seg.Blocks {
		t.blocks++
		t.states[b.State]++
		if b.State != unused {
			live = true
			shares.add(b.stack, kinds[b.Address], b.Size)
			continue
		}
		inactive += b.Size
		pages += seg.wholePages(b)
		t.largest = max(t.largest, b.Size)
	}
	switch {
	case seg.Private:
		t.private += inactive
	case live && inactive-pages > 0:
		t.pinned += inactive - pages
		t.worst = append(t.worst, &pinnedSegment{seg, inactive - pages})
	}
	if live {
		t.stuck += inactive
	} else {
		t.free += inactive
	}
}

// wholePages are the bytes of a free block that an expandable segment can give back.
func (s *Segment) wholePages(b *Block) int64 {
	if !s.Expandable {
		return 0
	}
	page := uint64(largePage)
	if s.Small {
		page = smallPage
	}
	begin := (b.Address - s.Address + page - 1) / page
	end := (b.Address - s.Address + uint64(b.Size)) / page
	return max(0, int64(end-begin)) * int64(page)
}

// share is of a line and a kind.
type share struct {
	where, kind string
}

type shares map[share]*Share

func (all shares) add(s *stack, kind string, bytes int64) {
	if kind == "" || kind == "unknown" {
		kind = s.kind
	}
	key := share{s.file + s.where(), kind}
	p := all[key]
	if p == nil {
		p = &Share{Line: s.where(), Kind: kind, File: s.file}
		all[key] = p
	}
	p.Bytes += bytes
	p.Blocks++
}

// sorted are the shares, the largest first.
func (all shares) sorted() []Share {
	out := make([]Share, 0, len(all))
	for _, p := range all {
		out = append(out, *p)
	}
	sorting.By(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
