package gpusim

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Addresses of the windows of generic addressing. Global addresses start at heapBase and are never used twice, so that
// an access after a free cannot meet a younger allocation.
const (
	heapBase   = 0x7000_0000_0000
	sharedBase = 0x1_0000_0000_0000
	localBase  = 0x1_0001_0000_0000
	paramBase  = 0x1_0002_0000_0000
	windowSize = 1 << 24
	redZone    = 256 // at least so many bytes between allocations
	maxFreed   = 4096
)

// Device is a simulated GPU: memory and the kernels that run on it. Its methods may be called from any goroutine;
// they run one after the other.
type Device struct {
	Card Card

	mu     sync.Mutex
	allocs []*allocation // by address; freed ones stay for a while to name them
	freed  int
	used   int64
	next   uint64
	track  bool
	fault  *Fault
	serial uint64 // of launches
}

type allocation struct {
	lo, hi   uint64
	data     []byte
	block    hostmem.Block // behind data, where that is large
	init     []byte        // 1 for each byte that was written; nil without tracking
	tag      string
	freedBy  string
	readOnly bool
	marks    atomic.Pointer[sectors] // of the launch under way, see stale
}

func (a *allocation) String() string {
	s := fmt.Sprintf("allocation of %d bytes at %#x", a.hi-a.lo, a.lo)
	if a.tag != "" {
		s += " made by " + a.tag
	}
	if a.data == nil {
		s += ", freed by " + a.freedBy
	}
	return s
}

// NewDevice makes a GPU without allocations. With track, which initcheck of global memory needs, it remembers what has
// been written, one byte for each byte, and fills new memory with a pattern instead of zeros.
func NewDevice(card Card, track bool) *Device {
	return &Device{Card: card, next: heapBase, track: track}
}

const poisonByte = 0xa5

// Alloc reserves size bytes at a multiple of 256. The tag names the place that asked, for findings.
func (d *Device) Alloc(size int, tag string) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return 0, d.fault
	}
	if size <= 0 {
		return 0, refuse(InvalidValue, "an allocation of %d bytes", size)
	}
	if int64(size) > d.Card.Memory-d.used {
		return 0, refuse(OutOfMemory, "%d bytes asked, %d of %d in use", size, d.used, d.Card.Memory)
	}
	a, err := d.alloc(size, tag)
	if err != nil {
		return 0, err
	}
	return a.lo, nil
}

// offHeap is the size from which memory comes from the operating system, which can refuse it without ending the process.
const offHeap = 1 << 20

func (d *Device) alloc(size int, tag string) (*allocation, error) {
	a := &allocation{lo: d.next, hi: d.next + uint64(size), tag: tag}
	if size < offHeap {
		a.data = make([]byte, size)
	} else {
		var err error
		if a.block, err = hostmem.Alloc(size); err != nil {
			return nil, refuse(OutOfMemory, "the host has no %d bytes: %v", size, err)
		}
		a.data = a.block.Bytes()
	}
	if d.track {
		a.init = make([]byte, size)
		for i := range a.data {
			a.data[i] = poisonByte
		}
	}
	d.next = (a.hi + redZone + 255) &^ 255
	d.used += int64(size)
	d.allocs = append(d.allocs, a)
	return a, nil
}

// release gives the bytes back and keeps what names the allocation.
func (d *Device) release(a *allocation, by string) error {
	d.used -= int64(len(a.data))
	d.freed++
	a.data, a.init, a.freedBy = nil, nil, by
	return a.block.Free()
}

// Free gives an allocation back. The tag names the place that freed it.
func (d *Device) Free(addr uint64, tag string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return d.fault
	}
	a := d.find(addr)
	if a == nil || a.lo != addr || a.data == nil || a.readOnly {
		return refuse(InvalidValue, "free of %#x, which is not the start of a live allocation", addr)
	}
	if d.freed >= 2*maxFreed {
		d.forget()
	}
	return d.release(a, tag)
}

// forget drops the oldest of the freed allocations.
func (d *Device) forget() {
	kept := d.allocs[:0]
	for _, a := range d.allocs {
		if a.data == nil && d.freed > maxFreed {
			d.freed--
			continue
		}
		kept = append(kept, a)
	}
	clear(d.allocs[len(kept):])
	d.allocs = kept
}

// find returns the allocation that covers addr, or the next above it, or nil.
func (d *Device) find(addr uint64) *allocation {
	i := sort.Search(len(d.allocs), func(i int) bool { return d.allocs[i].hi > addr })
	if i == len(d.allocs) || d.allocs[i].lo > addr {
		return nil
	}
	return d.allocs[i]
}

// nearest describes the allocation closest to an address that none covers.
func (d *Device) nearest(addr uint64) string {
	if a := d.find(addr); a != nil {
		return a.String()
	}
	i := sort.Search(len(d.allocs), func(i int) bool { return d.allocs[i].hi > addr })
	var best *allocation
	if i < len(d.allocs) {
		best = d.allocs[i]
	}
	if i > 0 && (best == nil || addr-d.allocs[i-1].hi < best.lo-addr) {
		best = d.allocs[i-1]
	}
	switch {
	case best == nil:
		return "there is no allocation"
	case addr >= best.hi:
		return fmt.Sprintf("%d bytes past the end of the %v", addr-best.hi, best)
	}
	return fmt.Sprintf("%d bytes before the %v", best.lo-addr, best)
}

// span is the live bytes [addr, addr+n) and their allocation.
func (d *Device) span(addr uint64, n int) (*allocation, []byte, error) {
	a := d.find(addr)
	if a == nil || a.data == nil || uint64(n) > a.hi-addr {
		return nil, nil, refuse(InvalidValue, "%d bytes at %#x are not in a live allocation: %s", n, addr, d.nearest(addr))
	}
	return a, a.data[addr-a.lo:][:n], nil
}

// Write copies from the host.
func (d *Device) Write(addr uint64, src []byte) error {
	return d.access(addr, len(src), func(a *allocation, p []byte) {
		copy(p, src)
		a.mark(addr, len(src))
	})
}

// Read copies to the host.
func (d *Device) Read(dst []byte, addr uint64) error {
	return d.access(addr, len(dst), func(_ *allocation, p []byte) { copy(dst, p) })
}

func (d *Device) access(addr uint64, n int, f func(a *allocation, p []byte)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return d.fault
	}
	if n == 0 {
		return nil
	}
	a, p, err := d.span(addr, n)
	if err == nil {
		f(a, p)
	}
	return err
}

func (a *allocation) mark(addr uint64, n int) {
	if a.init != nil {
		p := a.init[addr-a.lo:][:n]
		for i := range p {
			p[i] = 1
		}
	}
}

// Written reports whether all of n bytes at addr have been written; true without tracking.
func (d *Device) Written(addr uint64, n int) bool {
	ok := true
	err := d.access(addr, n, func(a *allocation, _ []byte) { ok = a.written(addr, n) })
	return err == nil && ok
}

func (a *allocation) written(addr uint64, n int) bool {
	if a.init == nil {
		return true
	}
	for _, b := range a.init[addr-a.lo:][:n] {
		if b == 0 {
			return false
		}
	}
	return true
}

// Fault is the sticky error, or nil.
func (d *Device) Fault() *Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// Reset frees everything, modules included, and forgets a fault. Programs loaded before must not be used again.
func (d *Device) Reset() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, a := range d.allocs {
		if a.data != nil {
			err = errors.Join(err, d.release(a, "Reset"))
		}
	}
	d.allocs, d.freed, d.used, d.fault = nil, 0, 0, nil
	return err
}
