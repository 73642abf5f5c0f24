package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// staging is a device's pool of pinned host memory, through which copies from the program's memory go: the card reads
// pinned memory while the host goes on, and the program may use its own again at once.
type staging struct {
	d *Device

	mu   sync.Mutex        // which the collector's cleanups take: not held in calls of the driver
	idle map[int][]uintptr // by size
	all  []uintptr
	left []abandoned // by fetches that nobody took
}

// Blocks are powers of two of at least leastBlock bytes, with room for a fault record behind what they are taken for.
const (
	leastBlock = 4 << 10
	spare      = faultSize + 8
)

func blockSize(n int) int { return max(leastBlock, 1<<bits.Len(uint(max(n, 1)-1))) }

// alloc takes a block of at least n bytes and the spare ones.
func (s *staging) alloc(n int) (host uintptr, err error) {
	size := blockSize(n)
	if host = s.reuse(size); host != 0 {
		return host, nil
	}
	err = s.d.do("cuMemHostAlloc", func() (r driver.Result) {
		host, r = s.d.api.MemHostAlloc(int64(size)+spare, driver.HostPortable)
		return r
	})
	if err == nil {
		s.mu.Lock()
		s.all = append(s.all, host)
		s.mu.Unlock()
	}
	return host, err
}

// reuse takes an idle block of a size, or returns 0.
func (s *staging) reuse(size int) (host uintptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if idle := s.idle[size]; len(idle) > 0 {
		host, s.idle[size] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	return host
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

// flight is a block that copies under way still read.
type flight struct {
	host  uintptr
	bytes int
	end   *event
}

// maxFlying is how many bytes of pinned memory a queue's copies under way hold before it waits for the oldest.
const maxFlying = 64 << 20

// Upload implements [device.Stager]: it copies by way of pinned blocks.
func (q *queue) Upload(dst device.Arg, src []byte) error {
	if err := q.copyable(dst, dst, int64(len(src))); err != nil {
		return err
	}
	to := driver.Ptr(dst.Mem.Addr + uint64(dst.Offset))
	if len(src) <= smallCopy {
		return q.uploadSmall(to, src)
	}
	for len(src) > 0 {
		part := src[:min(len(src), device.Stage)]
		if err := q.uploadPart(to, part); err != nil {
			return err
		}
		to, src = to+driver.Ptr(len(part)), src[len(part):]
	}
	return nil
}

func (q *queue) uploadPart(dst driver.Ptr, src []byte) error {
	host, err := q.stage(len(src))
	if err != nil {
		return err
	}
	if err := q.uploadFrom(host, dst, src); err != nil {
		q.d.pinned.give(host, len(src))
		return err
	}
	return q.fly(host, len(src))
}

// uploadFrom copies src to pinned memory and has the card copy it on.
func (q *queue) uploadFrom(host uintptr, dst driver.Ptr, src []byte) error {
	copy(hostmem.Bytes(host, len(src)), src)
	return q.uploadPinned(host, dst, len(src))
}

func (q *queue) uploadPinned(host uintptr, dst driver.Ptr, n int) error {
	return q.do("cuMemcpyHtoDAsync", func() driver.Result {
		return q.d.api.MemcpyHtoDAsync(dst, host, int64(n), q.stream)
	})
}

// staged is a pinned block that waits to be uploaded.
type staged struct {
	d    *Device
	host atomic.Uintptr // 0: it was sent or dropped
	n    int
}

// Stage implements [device.Stager].
func (q *queue) Stage(src []byte) (device.Staged, error) {
	host, err := q.d.pinned.alloc(len(src))
	if err != nil {
		return nil, err
	}
	copy(hostmem.Bytes(host, len(src)), src)
	s := &staged{d: q.d, n: len(src)}
	s.host.Store(host)
	return s, nil
}

// Send implements [device.Stager].
func (q *queue) Send(dst device.Arg, what device.Staged) error {
	s, ok := what.(*staged)
	if !ok || s.d != q.d {
		return fmt.Errorf("%s: what is sent was staged for another device", q.d.info.Name)
	}
	if err := q.copyable(dst, dst, int64(s.n)); err != nil {
		return err
	}
	if err := q.makeRoom(); err != nil {
		return err
	}
	host := s.host.Swap(0)
	if host == 0 {
		return fmt.Errorf("%s: what is sent was sent or dropped before", q.d.info.Name)
	}
	if err := q.uploadPinned(host, driver.Ptr(dst.Mem.Addr+uint64(dst.Offset)), s.n); err != nil {
		s.d.pinned.give(host, s.n)
		return err
	}
	return q.fly(host, s.n)
}

// Drop implements [device.Staged].
func (s *staged) Drop() {
	if host := s.host.Swap(0); host != 0 {
		s.d.pinned.give(host, s.n)
	}
}

// nook is a block that small copies share: an event for each would cost more than the copy.
type nook struct {
	host uintptr // 0: none
	used int
}

// What counts as small, in bytes, and the size of the block.
const (
	smallCopy  = 4 << 10
	smallBlock = 64 << 10
)

func (q *queue) uploadSmall(dst driver.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := q.small.room(q, len(src)); err != nil {
		return err
	}
	if err := q.uploadFrom(q.small.host+uintptr(q.small.used), dst, src); err != nil {
		return err
	}
	q.small.used += (len(src) + 15) &^ 15
	return nil
}

// room makes place for n bytes, in a new block if need be.
func (s *nook) room(q *queue, n int) (err error) {
	if s.host != 0 && s.used+n <= smallBlock {
		return nil
	}
	if s.host != 0 {
		if err := q.fly(s.host, smallBlock); err != nil {
			return err
		}
		s.host = 0
	}
	s.used = 0
	s.host, err = q.stage(smallBlock)
	return err
}

// close gives the block back. The stream is idle.
func (s *nook) close(q *queue) {
	if s.host != 0 {
		q.d.pinned.give(s.host, smallBlock)
		s.host = 0
	}
}

// stage takes a block of staging memory, once there are not too many under way.
func (q *queue) stage(n int) (host uintptr, err error) {
	if err := q.makeRoom(); err != nil {
		return 0, err
	}
	return q.d.pinned.alloc(n)
}

// makeRoom waits until not too many copies are under way.
func (q *queue) makeRoom() error {
	if err := q.land(); err != nil {
		return err
	}
	w := q.crowded()
	if w == nil {
		return nil
	}
	if r := w.wait(); r != driver.Success {
		return q.d.failed("cuEventSynchronize", r)
	}
	return q.land()
}

// fly notes that the copies from a block end where the stream is now.
func (q *queue) fly(host uintptr, n int) error {
	e, err := q.record()
	if err != nil {
		return err
	}
	q.flights = append(q.flights, flight{host, n, e})
	q.flying += blockSize(n)
	return nil
}

// Crowded implements [device.Stager].
func (q *queue) Crowded() device.Waiter {
	if q.flying >= maxFlying {
		q.landed() // an error is the next call's to report
	}
	if e := q.crowded(); e != nil {
		return e
	}
	return nil
}

// crowded is the end of the oldest copy when too many are under way.
func (q *queue) crowded() *event {
	if q.flying < maxFlying {
		return nil
	}
	return q.flights[0].end
}

// land gives back the blocks of copies that have ended.
func (q *queue) land() error { return q.d.failed("cuEventQuery", q.landed()) }

// landed is land with the driver's answer in place of an error.
func (q *queue) landed() driver.Result {
	for len(q.flights) > 0 {
		f := q.flights[0]
		switch r := f.end.query(); r {
		case driver.Success:
		case driver.NotReady:
			return driver.Success
		default:
			return r
		}
		q.d.pinned.give(f.host, f.bytes)
		q.flights, q.flying = q.flights[1:], q.flying-blockSize(f.bytes)
	}
	return driver.Success
}

// hostCopy copies within host memory, after the work the queue has been given.
func (q *queue) hostCopy(dst, src uint64, n int64) error {
	if err := q.Sync(); err != nil {
		return fmt.Errorf("copy within host memory: %w", err)
	}
	copy(hostmem.Bytes(uintptr(dst), int(n)), hostmem.Bytes(uintptr(src), int(n)))
	return nil
}
