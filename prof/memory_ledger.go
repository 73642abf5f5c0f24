package prof

import (
	"github.com/warpline-ml/warpline/internal/device"
)

// ledger says at each change who holds memory, and who did when most was in use. Its size follows from how many blocks there
// are at once and how many places of the program make some, not from how many changes it sees.
type ledger struct {
	books *books
	live  map[uint64]tenant // blocks by address
	label map[uint32]int64  // bytes in use by label
	begun bool
	index map[account]int32
	all   []balance
	dirty []int32 // of all, those that differ from what they were at the peak

	inUse, peak         int64 // bytes asked for
	allocated, mostUsed int64 // blocks
	reserved, mostTaken int64 // segments
	kept                int64 // the most that a Backward found
	peakAt              int64
}

// tenant is a block that is handed out, or waits for other queues.
type tenant struct {
	change
	of   int32 // in ledger.all
	gone bool
	made bool // not there from the beginning
}

// account is what balances are of.
type account struct{ stack, op, label, path, module uint32 }

// balance is what an account holds.
type balance struct {
	account
	bytes, count         int64 // in use: asked for, and in how many blocks
	size                 int64 // of these blocks
	peakBytes, peakCount int64
	made, madeSize       int64 // blocks taken since the beginning, given back or not
	dirty                bool
}

func newLedger(b *books) *ledger {
	return &ledger{books: b, live: map[uint64]tenant{}, label: map[uint32]int64{}, index: map[account]int32{}}
}

// begin takes over what is there.
func (l *ledger) begin(all []change) {
	for i := range all {
		l.apply(&all[i])
	}
	l.settle(0)
	l.peak, l.mostUsed, l.mostTaken = l.inUse, l.allocated, l.reserved
	l.begun = true
}

func (l *ledger) apply(c *change) {
	switch c.kind {
	case device.KindAlloc:
		e := tenant{change: *c, of: l.account(c), made: l.begun}
		l.live[c.addr] = e
		l.move(&e, 1)
		l.make(&e, 1)
		l.inUse += c.asked
		l.allocated += c.size
	case device.KindFreeRequested:
		if e, ok := l.live[c.addr]; ok && !e.gone {
			e.gone = true
			l.live[c.addr] = e
			l.move(&e, -1)
			l.inUse -= e.asked
			l.allocated -= e.size
		}
	case device.KindFreeCompleted:
		delete(l.live, c.addr)
	case device.KindRelabel:
		l.relabel(c)
	case device.KindSegmentAlloc, device.KindMap:
		l.reserved += c.size
	case device.KindSegmentFree, device.KindUnmap:
		l.reserved -= c.size
	case device.KindBackward:
		if !c.end {
			l.kept = max(l.kept, c.asked)
		}
	}
	l.mostUsed, l.mostTaken = max(l.mostUsed, l.allocated), max(l.mostTaken, l.reserved)
	if l.inUse >= l.peak && len(l.dirty) > 0 {
		l.settle(c.at)
	}
}

func (l *ledger) relabel(c *change) {
	e, ok := l.live[c.addr]
	if !ok || e.gone {
		return
	}
	l.move(&e, -1)
	l.make(&e, -1)
	e.label, e.path = c.label, c.path
	e.of = l.account(&e.change)
	l.move(&e, 1)
	l.make(&e, 1)
	l.live[c.addr] = e
}

func (l *ledger) account(c *change) int32 {
	a := account{c.stack, c.op, c.label, c.path, c.module}
	i, ok := l.index[a]
	if !ok {
		i = int32(len(l.all))
		l.all = append(l.all, balance{account: a})
		l.index[a] = i
	}
	return i
}

// move enters a block in its account, or with -1 takes it out.
func (l *ledger) move(e *tenant, count int64) {
	b := &l.all[e.of]
	b.bytes += count * e.asked
	b.size += count * e.size
	b.count += count
	l.label[e.label] += count * e.asked
	if !b.dirty {
		b.dirty = true
		l.dirty = append(l.dirty, e.of)
	}
}

// make is move for what was taken since the beginning.
func (l *ledger) make(e *tenant, count int64) {
	if e.made {
		l.all[e.of].made += count
		l.all[e.of].madeSize += count * e.size
	}
}

// settle makes the peak what is now. Only what changed since the last one is looked at: each change pays once.
func (l *ledger) settle(at int64) {
	if l.inUse > l.peak {
		l.peakAt = at
	}
	l.peak = l.inUse
	for _, i := range l.dirty {
		b := &l.all[i]
		b.peakBytes, b.peakCount, b.dirty = b.bytes, b.count, false
	}
	l.dirty = l.dirty[:0]
}
