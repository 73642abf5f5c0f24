package cuda

import (
	"errors"
	"runtime"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// fetch is a copy into pinned memory that nobody waits for, with what kernels have reported up to then.
type fetch struct {
	*event
	q       *queue
	block   pinnedBlock
	forget  runtime.Cleanup // of the block
	bytes   int
	faults  bool   // a fault record follows the bytes
	serial  uint32 // of the last launch before it
	failure driver.Result
	taken   bool
	err     error // of Take
}

// pinnedBlock is staging memory with its size.
type pinnedBlock struct {
	host uintptr
	size int
}

// abandoned is a block that a fetch nobody took leaves, and when it may serve again.
type abandoned struct {
	pinnedBlock
	end *event
}

// Fetch implements [device.Stager].
func (q *queue) Fetch(src device.Arg, n int64) (device.Fetch, error) {
	if err := q.copyable(src, src, n); err != nil {
		return nil, err
	}
	f := &fetch{q: q, bytes: int(n), faults: q.fault.due(), serial: q.log.serial}
	err := f.copies(driver.Ptr(src.Mem.Addr + uint64(src.Offset)))
	if err == nil {
		f.event, err = q.record()
	}
	if err != nil {
		return nil, err // the card may still write to the block: it stays taken
	}
	if f.block.host != 0 {
		f.forget = runtime.AddCleanup(f, q.d.pinned.abandon, abandoned{f.block, f.event})
	}
	return f, nil
}

// record is where in the block the fault record is.
func (f *fetch) record() int { return (f.bytes + 7) &^ 7 }

// copies takes a block and asks for the copies into it.
func (f *fetch) copies(src driver.Ptr) error {
	if f.bytes == 0 && !f.faults {
		return nil
	}
	q := f.q
	err := q.d.pinned.reclaim()
	if err == nil {
		f.block.size = f.bytes
		f.block.host, err = q.d.pinned.alloc(f.bytes)
	}
	if err == nil && f.bytes > 0 {
		err = q.do("cuMemcpyDtoHAsync", func() driver.Result {
			return q.d.api.MemcpyDtoHAsync(f.block.host, src, int64(f.bytes), q.stream)
		})
	}
	if err == nil && f.faults {
		err = q.fault.fetch(q, f.block.host+uintptr(f.record()))
	}
	return err
}

// Wait implements [device.Waiter].
func (f *fetch) Wait() { f.failure = f.event.wait() }

// Take implements [device.Fetch].
func (f *fetch) Take(dst []byte) error {
	switch {
	case !f.taken:
		f.taken = true
		f.err = f.take(dst)
	case f.err == nil:
		return errors.New("a value was taken before")
	}
	return f.err
}

func (f *fetch) take(dst []byte) error {
	defer func() {
		if f.block.host != 0 {
			f.forget.Stop()
			f.q.d.pinned.give(f.block.host, f.block.size)
		}
	}()
	if f.failure != driver.Success {
		return f.q.d.failed("cuEventSynchronize", f.failure)
	}
	if err := f.q.ended(f.serial, f.faults, f.block.host+uintptr(f.record())); err != nil {
		return err
	}
	copy(dst, hostmem.Bytes(f.block.host, f.bytes))
	return nil
}

// abandon keeps the block of a fetch that is out of reach. It is called by the collector and calls nothing.
func (s *staging) abandon(a abandoned) {
	s.mu.Lock()
	s.left = append(s.left, a)
	s.mu.Unlock()
}

// reclaim gives back the blocks of abandoned fetches that have ended.
func (s *staging) reclaim() error {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	for i, a := range left {
		done, err := a.end.Done()
		if err != nil {
			s.mu.Lock()
			s.left = append(s.left, left[i:]...)
			s.mu.Unlock()
			return err
		}
		if done {
			s.give(a.host, a.size)
			continue
		}
		s.mu.Lock()
		s.left = append(s.left, left[i])
		s.mu.Unlock()
	}
	return nil
}
