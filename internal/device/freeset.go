package device

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// pool is the free blocks of the small or the large pool. A block serves the queue it was made for only: work of that
// queue is in order, so it may be handed out again while the queue still reads it.
type pool struct {
	kind    Pool
	owner   *PrivatePool // nil: common
	varied  bool         // blocks have any size, in the small pool too: those of expandable segments
	sets    []set        // by queue
	holes   [][]*Block   // by queue: unmapped, by address
	lookups uint64       // the clock that blocks age by
}

// set is free blocks of one queue, ordered by size, then address.
type set interface {
	insert(*Block)
	remove(*Block)
	fit(size int64) *Block // the first of at least that size, or nil
	largest() int64        // size of the last
	sorted() []*Block      // a copy
}

// pools are the two that share an owner.
type pools struct{ small, large pool }

func newPools(owner *PrivatePool, varied bool) pools {
	return pools{small: pool{kind: SmallPool, owner: owner, varied: varied}, large: pool{kind: LargePool, owner: owner, varied: varied}}
}

func (p *pools) largest() int64 { return max(p.small.largest(), p.large.largest()) }

func (p *pool) of(queue int) set {
	for len(p.sets) <= queue {
		p.sets = append(p.sets, nil)
	}
	if p.sets[queue] == nil {
		if p.kind == SmallPool && !p.varied {
			p.sets[queue] = new(bins)
		} else {
			p.sets[queue] = new(ordered)
		}
	}
	return p.sets[queue]
}

func (p *pool) insert(b *Block) {
	b.state = free
	b.born = p.lookups
	p.of(b.queue).insert(b)
}

// insertHole puts a block without memory among the holes.
func (p *pool) insertHole(b *Block) {
	b.state = unmapped
	for len(p.holes) <= b.queue {
		p.holes = append(p.holes, nil)
	}
	i, _ := p.hole(b)
	p.holes[b.queue] = slices.Insert(p.holes[b.queue], i, b)
}

// hole is the place of a block among the holes.
func (p *pool) hole(b *Block) (int, bool) {
	return slices.BinarySearchFunc(p.holes[b.queue], b.mem.Addr, func(x *Block, at uint64) int { return cmp.Compare(x.mem.Addr, at) })
}

// remove takes a free or unmapped block out of where it is.
func (p *pool) remove(b *Block) {
	if b.state == unmapped {
		i, _ := p.hole(b)
		p.holes[b.queue] = slices.Delete(p.holes[b.queue], i, i+1)
		return
	}
	p.sets[b.queue].remove(b)
}

// fit returns the best fit, still in its set.
func (p *pool) fit(queue int, size int64) *Block {
	p.lookups++
	if queue >= len(p.sets) || p.sets[queue] == nil {
		return nil
	}
	return p.sets[queue].fit(size)
}

// sorted is a copy of the free blocks, ordered by queue, size, address.
func (p *pool) sorted() (all []*Block) {
	for _, s := range p.sets {
		if s != nil {
			all = append(all, s.sorted()...)
		}
	}
	return all
}

func (p *pool) largest() (n int64) {
	for _, s := range p.sets {
		if s != nil {
			n = max(n, s.largest())
		}
	}
	return n
}

// bins is the set of the small pool: a heap by address for each of the few possible sizes, and two levels of bits that
// tell which are not empty.
type bins struct {
	words uint64     // bit i: used[i] is not zero
	used  [64]uint64 // bit j of word i: heap 64·i+j is not empty
	heaps [smallSegment / minBlock][]*Block
}

func bin(size int64) int { return int(size/minBlock) - 1 }

func (s *bins) insert(b *Block) {
	i := bin(b.mem.Size)
	h := append(s.heaps[i], b)
	s.heaps[i] = h
	b.pos = len(h) - 1
	up(h, b.pos)
	s.used[i>>6] |= 1 << (i & 63)
	s.words |= 1 << (i >> 6)
}

func (s *bins) remove(b *Block) {
	i := bin(b.mem.Size)
	h := s.heaps[i]
	last := h[len(h)-1]
	h[len(h)-1] = nil
	h = h[:len(h)-1]
	s.heaps[i] = h
	if last != b {
		h[b.pos], last.pos = last, b.pos
		up(h, down(h, b.pos))
	}
	if len(h) > 0 {
		return
	}
	if s.used[i>>6] &^= 1 << (i & 63); s.used[i>>6] == 0 {
		s.words &^= 1 << (i >> 6)
	}
}

func (s *bins) fit(size int64) *Block {
	i := bin(size)
	w := i >> 6
	word := s.used[w] >> (i & 63) << (i & 63)
	if word == 0 {
		rest := s.words >> w >> 1
		if rest == 0 {
			return nil
		}
		w += 1 + bits.TrailingZeros64(rest)
		word = s.used[w]
	}
	return s.heaps[w<<6+bits.TrailingZeros64(word)][0]
}

func (s *bins) largest() int64 {
	if s.words == 0 {
		return 0
	}
	w := bits.Len64(s.words) - 1
	return int64(w<<6+bits.Len64(s.used[w])) * minBlock
}

func (s *bins) sorted() (all []*Block) {
	for _, h := range s.heaps {
		all = append(all, h...)
	}
	sorting.By(all, compareBlocks)
	return all
}

// up moves element i of a heap towards the root while it lies at a lower address than its parent.
func up(h []*Block, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if h[p].mem.Addr < h[i].mem.Addr {
			return
		}
		swap(h, i, p)
		i = p
	}
}

// down moves element i towards the leaves, and returns where it came to rest.
func down(h []*Block, i int) int {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return i
		}
		if c+1 < len(h) && h[c+1].mem.Addr < h[c].mem.Addr {
			c++
		}
		if h[i].mem.Addr < h[c].mem.Addr {
			return i
		}
		swap(h, i, c)
		i = c
	}
}

func swap(h []*Block, i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func compareBlocks(x, y *Block) int {
	if c := cmp.Compare(x.mem.Size, y.mem.Size); c != 0 {
		return c
	}
	return cmp.Compare(x.mem.Addr, y.mem.Addr)
}

// ordered is the set of the large pool, whose blocks have any size and are few, and of expandable segments: a sorted slice.
type ordered struct{ blocks []*Block }

// at is the place of the first block that is not before (size, addr).
func (s *ordered) at(size int64, addr uint64) int {
	i, j := 0, len(s.blocks)
	for i < j {
		m := int(uint(i+j) / 2)
		if b := s.blocks[m]; b.mem.Size < size || b.mem.Size == size && b.mem.Addr < addr {
			i = m + 1
		} else {
			j = m
		}
	}
	return i
}

func (s *ordered) insert(b *Block) {
	s.blocks = slices.Insert(s.blocks, s.at(b.mem.Size, b.mem.Addr), b)
}

func (s *ordered) remove(b *Block) {
	i := s.at(b.mem.Size, b.mem.Addr)
	s.blocks = slices.Delete(s.blocks, i, i+1)
}

func (s *ordered) fit(size int64) *Block {
	i := s.at(size, 0)
	if i == len(s.blocks) {
		return nil
	}
	for i+1 < len(s.blocks) && s.blocks[i].seg != nil && s.blocks[i+1].reach() < s.blocks[i].reach() {
		i++
	}
	return s.blocks[i]
}

// reach is how large a block can become: where addresses without memory follow, as PyTorch's best fit has it, it is as large
// already, so that what has none behind it is used up first.
func (b *Block) reach() int64 {
	if b.next != nil && b.next.state == unmapped {
		return b.mem.Size + b.next.mem.Size
	}
	return b.mem.Size
}

func (s *ordered) largest() int64 {
	if len(s.blocks) == 0 {
		return 0
	}
	return s.blocks[len(s.blocks)-1].mem.Size
}

func (s *ordered) sorted() []*Block { return slices.Clone(s.blocks) }
