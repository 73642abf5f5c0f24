package device

// Block is memory handed out by an [Allocator]. It is the caller's from Alloc to Free, and must not be used after.
type Block struct {
	mem       Mem
	requested int64
	owner     *Allocator
	pool      *pool
	seg       *expandable // that it is of; nil: a segment of fixed size
	prev      *Block      // neighbours in the segment, by address
	next      *Block
	uses      *[]int // other queues that use it; most blocks have none, and no list for them
	born      uint64 // lookups of the pool when it became free: the younger, the larger
	queue     int
	pos       int // in its bin while free
	pending   int // marks to wait for
	state     state
}

type state uint8

const (
	spare    state = iota // of no segment
	free                  // in its pool's set
	live                  // the caller's
	waiting               // freed, with marks outstanding
	unmapped              // addresses without memory, among its pool's holes
)

// Mem is the block's memory. Its size may exceed what was asked for.
func (b *Block) Mem() Mem { return b.mem }

// Size is the number of bytes the block takes.
func (b *Block) Size() int64 { return b.mem.Size }

// isSplit reports whether the block is a part of its segment only. Those of expandable segments are not counted as split: of
// them the device gets memory back that is not a whole segment.
func (b *Block) isSplit() bool { return b.prev != nil || b.next != nil }

// split cuts a block that is in no set to size bytes and returns the rest.
func (a *Allocator) split(b *Block, size int64) *Block {
	t := a.newBlock()
	t.mem = Mem{Addr: b.mem.Addr + uint64(size), Size: b.mem.Size - size, Host: b.mem.Host}
	t.pool, t.queue, t.seg = b.pool, b.queue, b.seg
	t.prev, t.next = b, b.next
	if b.next != nil {
		b.next.prev = t
	}
	b.next = t
	b.mem.Size = size
	return t
}

// merge joins a block that is in no set with its neighbours of a state, free or unmapped, and returns what it became and the
// number of neighbours and of their bytes.
func (a *Allocator) merge(b *Block, s state) (joined *Block, blocks, bytes int64) {
	if n := b.next; n != nil && n.state == s {
		n.pool.remove(n)
		blocks, bytes = 1, n.mem.Size
		a.absorb(b, n)
	}
	if p := b.prev; p != nil && p.state == s {
		p.pool.remove(p)
		blocks, bytes = blocks+1, bytes+p.mem.Size
		a.absorb(p, b)
		b = p
	}
	return b, blocks, bytes
}

// absorb adds n, the next neighbour of b, to b.
func (a *Allocator) absorb(b, n *Block) {
	b.mem.Size += n.mem.Size
	b.next = n.next
	if b.next != nil {
		b.next.prev = b
	}
	a.recycle(n)
}

// newBlock takes a spare block, so that splitting allocates nothing in the steady state.
func (a *Allocator) newBlock() *Block {
	b := a.spares
	if b == nil {
		return &Block{owner: a}
	}
	a.spares, b.next = b.next, nil
	return b
}

func (a *Allocator) recycle(b *Block) {
	b.state, b.mem, b.requested, b.queue = spare, Mem{}, 0, 0
	b.pool, b.seg, b.prev, b.next = nil, nil, nil, nil
	if a.poison {
		return // a stale handle stays recognisable
	}
	b.next, a.spares = a.spares, b
}
