package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// staging is a device's pool of pinned host memory, through which copies from the program's memory go: the card reads
// pinned memory while the host goes on, and the program may use its own again at once.
type staging struct {
	d *Device

	mu   sync.Mutex
	idle map[int][]uintptr // by size
	all  []uintptr
	left []abandoned // by fetches that nobody took
}

// Blocks are powers of two of at least leastBlock bytes; what is copied in one go is at most chunk bytes.
const (
	leastBlock = 4 << 10
	chunk      = 4 << 20
)

func blockSize(n int) int { return max(leastBlock, 1<<bits.Len(uint(n-1))) }

// alloc takes a block of at least n bytes.
func (s *staging) alloc(n int) (host uintptr, err error) {
	size := blockSize(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if idle := s.idle[size]; len(idle) > 0 {
		s.idle[size] = idle[:len(idle)-1]
		return idle[len(idle)-1], nil
	}
	err = s.d.do("cuMemHostAlloc", func() (r driver.Result) {
		host, r = s.d.api.MemHostAlloc(int64(size), driver.HostPortable)
		return r
	})
	if err == nil {
		s.all = append(s.all, host)
	}
	return host, err
}

// give returns a block that was taken for n bytes.
func (s *staging) give(host uintptr, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = map[int][]uintptr{}
	}
	size := blockSize(n)
	s.idle[size] = append(s.idle[size], host)
}

func (s *staging) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, host := range s.all {
		err = errors.Join(err, s.d.do("cuMemFreeHost", func() driver.Result { return s.d.api.MemFreeHost(host) }))
	}
	s.all, s.idle = nil, nil
	return err
}

// bytesAt views host memory that Go did not allocate.
func bytesAt(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), addr)), n)
}

// flight is a block that a copy under way still reads.
type flight struct {
	host  uintptr
	bytes int
	end   *event
}

// maxFlying is how many bytes of pinned memory a queue's copies under way hold before it waits for the oldest.
const maxFlying = 64 << 20

// upload copies from the program's memory by way of pinned blocks.
func (q *queue) upload(dst driver.Ptr, src uint64, n int64) error {
	for n > 0 {
		part := min(n, chunk)
		if err := q.uploadPart(dst, uintptr(src), int(part)); err != nil {
			return err
		}
		dst, src, n = dst+driver.Ptr(part), src+uint64(part), n-part
	}
	return nil
}

func (q *queue) uploadPart(dst driver.Ptr, src uintptr, n int) error {
	if err := q.land(); err != nil {
		return err
	}
	host, err := q.d.pinned.alloc(n)
	if err != nil {
		return err
	}
	copy(bytesAt(host, n), bytesAt(src, n))
	if err := q.do("cuMemcpyHtoDAsync", func() driver.Result {
		return q.d.api.MemcpyHtoDAsync(dst, host, int64(n), q.stream)
	}); err != nil {
		q.d.pinned.give(host, n)
		return err
	}
	e, err := q.Record()
	if err != nil {
		return err
	}
	q.flights = append(q.flights, flight{host, n, e.(*event)})
	q.flying += blockSize(n)
	return nil
}

// land gives back the blocks of copies that have ended, and waits when too many have not.
func (q *queue) land() error {
	for len(q.flights) > 0 {
		f := q.flights[0]
		done, err := f.end.Done()
		if err != nil {
			return err
		}
		if !done && q.flying < maxFlying {
			return nil
		}
		if !done {
			if err := q.do("cuStreamSynchronize", func() driver.Result { return q.d.api.StreamSynchronize(q.stream) }); err != nil {
				return err
			}
			q.events.allDone()
		}
		q.d.pinned.give(f.host, f.bytes)
		q.flights, q.flying = q.flights[1:], q.flying-blockSize(f.bytes)
	}
	return nil
}

// hostCopy copies within host memory, after the work the queue has been given.
func (q *queue) hostCopy(dst, src uint64, n int64) error {
	if err := q.Sync(); err != nil {
		return fmt.Errorf("copy within host memory: %w", err)
	}
	copy(bytesAt(uintptr(dst), int(n)), bytesAt(uintptr(src), int(n)))
	return nil
}
