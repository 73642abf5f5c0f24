package device

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// fifo is the marks recorded on one queue, oldest first, and the blocks that wait for them.
type fifo struct {
	items []use
	head  int
}

// use is a freed block whose memory another queue may still use. The mark is nil when it could not be recorded yet.
type use struct {
	mark  Mark
	block *Block
}

func (f *fifo) pop() {
	f.items[f.head] = use{}
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
}

// RecordUse says that work on another queue uses the block. Once freed, it stays active until the work that the queue
// has been given by then is done.
func (a *Allocator) RecordUse(b *Block, queue int) {
	if b == &a.empty || queue == b.queue {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wantLive(b, "used")
	if b.uses == nil {
		b.uses = new([]int)
	}
	if !slices.Contains(*b.uses, queue) {
		*b.uses = append(*b.uses, queue)
		a.noteInside(b, queue)
	}
}

// deferFree records a mark on every queue that uses a freed block; while a private pool serves a queue, it leaves that to
// settleDeferred. What cannot be recorded is tried again by processMarks, which can return the error.
func (a *Allocator) deferFree(b *Block) {
	b.state = waiting
	if a.begun > 0 {
		b.pending++
		a.deferred = append(a.deferred, b)
		return
	}
	for _, q := range *b.uses {
		for len(a.pending) <= q {
			a.pending = append(a.pending, fifo{})
		}
		e, _ := a.record(q)
		a.pending[q].items = append(a.pending[q].items, use{e, b})
		a.waiting++
		b.pending++
	}
	*b.uses = (*b.uses)[:0]
}

func (a *Allocator) record(queue int) (Mark, error) {
	if a.cfg.Marks == nil {
		return nil, errors.New("the allocator has been given no marks")
	}
	return a.cfg.Marks(queue)
}

// processMarks frees blocks whose marks are done; with wait, all that are waiting.
func (a *Allocator) processMarks(wait bool) error {
	for q := range a.pending {
		f := &a.pending[q]
		for f.head < len(f.items) {
			u := &f.items[f.head]
			done, err := a.settle(u, q, wait)
			if err != nil {
				return fmt.Errorf("device: %s, queue %d, with %d bytes freed behind its work: %w", a.name, q, u.block.mem.Size, err)
			}
			if !done {
				break
			}
			b := u.block
			f.pop()
			a.waiting--
			if b.pending--; b.pending == 0 {
				a.release(b)
			}
		}
	}
	return nil
}

func (a *Allocator) settle(u *use, queue int, wait bool) (done bool, err error) {
	if u.mark == nil {
		if u.mark, err = a.record(queue); err != nil {
			return false, err
		}
	}
	if w, ok := As[Waiter](u.mark); ok && wait {
		w.Wait()
	}
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		done, err = u.mark.Done()
		if done || err != nil || !wait {
			return done, err
		}
		time.Sleep(pause)
	}
}
