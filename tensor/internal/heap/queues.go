package heap

import (
	"math/bits"

	"github.com/warpline-ml/warpline/internal/device"
)

// MaxQueues is how many queues a device may have: a storage's readers are a bit set.
const MaxQueues = 64

// Queue is an order of work on a device.
type Queue interface {
	// Number tells the device's queues apart: less than MaxQueues.
	Number() int
	// After makes the queue wait for what another was asked so far.
	After(number int)
}

// Settled tells whether queue q may read st without further ado: it wrote it last and allocated it.
func (st *Storage) Settled(q int) bool {
	return st.writer.Load() == int32(q) && st.queue == int32(q)
}

// Sole tells whether no queue but q has used st.
func (st *Storage) Sole(q int) bool { return st.Settled(q) && st.readers.Load() == 0 }

// Reads orders q after the last write of st.
func (st *Storage) Reads(q Queue) {
	n := q.Number()
	if w := int(st.writer.Load()); w != n {
		q.After(w)
		st.readers.Or(1 << n)
	} else if int(st.queue) != n {
		st.readers.Or(1 << n)
	}
}

// Writes orders q after the last write of st and the other queues' reads.
func (st *Storage) Writes(q Queue) {
	st.Reads(q)
	n := q.Number()
	for others := st.readers.Load() &^ (1 << n); others != 0; others &= others - 1 {
		q.After(bits.TrailingZeros64(others))
	}
	st.writer.Store(int32(n))
}

// UsedBy notes that queue q works with st's memory, so that it is not given back before that is done.
func (st *Storage) UsedBy(q int) { st.readers.Or(1 << q) }

// Ordered takes that back: the queue that st was allocated on waits for q.
func (st *Storage) Ordered(q int) { st.readers.And(^uint64(1 << q)) }

// settle is st's memory, of which the allocator knows the queues that used it.
func (h *Heap) settle(st *Storage) *device.Block {
	for others := st.readers.Load(); others != 0; others &= others - 1 {
		h.alloc.RecordUse(st.block, bits.TrailingZeros64(others))
	}
	return st.block
}
