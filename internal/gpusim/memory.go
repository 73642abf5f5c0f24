package gpusim

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Addresses of the windows of generic addressing. Global addresses start at heapBase, a range for each device, and are
// never used twice, so that an access after a free cannot meet a younger allocation.
const (
	heapBase   = 0x7000_0000_0000
	heapSize   = 0x800_0000_0000 // of a device
	maxDevices = 16
	sharedBase = 0x1_0000_0000_0000
	localBase  = 0x1_0001_0000_0000
	paramBase  = 0x1_0002_0000_0000
	windowSize = 1 << 24
	before     = 1 << 30 // an address so close before the first allocation still missed that one
	redZone    = 256     // at least so many bytes between allocations
	maxFreed   = 4096
)

// Device is a simulated GPU: memory and the kernels that run on it. Its methods may be called from any goroutine;
// they run one after the other.
type Device struct {
	Card Card

	base  uint64    // of its range of addresses
	peers []*Device // whose memory its kernels may access

	mu       sync.Mutex
	allocs   []*allocation // by address; freed ones stay for a while to name them
	freed    int
	used     int64
	next     uint64
	track    bool
	fault    *Fault
	serial   uint64 // of launches
	observer func(c *Call)
}

// allocation is a run of addresses with one fate: what Alloc returned, or a part of it after Annotate.
type allocation struct {
	whole    *allocation // that this is a part of, or nil
	lo, hi   uint64
	data     []byte
	block    hostmem.Block // behind data, where that is large
	init     []byte        // 1 for each byte that was written; nil without tracking
	written  bool          // init is known to be all 1
	tag      string
	freedBy  string
	readOnly bool
	constant bool                    // a .const variable
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
	return &Device{Card: card, base: heapBase, next: heapBase, track: track}
}

// NewDevices makes n GPUs, at most 16, whose addresses differ.
func NewDevices(n int, card Card, track bool) ([]*Device, error) {
	if n < 1 || n > maxDevices {
		return nil, refuse(InvalidValue, "%d devices; there can be 1 to %d", n, maxDevices)
	}
	list := make([]*Device, n)
	for i := range list {
		list[i] = NewDevice(card, track)
		list[i].base += uint64(i) * heapSize
		list[i].next = list[i].base
	}
	return list, nil
}

// SetPeers names the devices of the same NewDevices whose memory d's kernels may access. While one of its kernels runs,
// no other goroutine may use these devices.
func (d *Device) SetPeers(peers []*Device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers = peers
}

// Owns reports whether the address is in the device's range, allocated or not.
func (d *Device) Owns(addr uint64) bool { return addr-d.base < heapSize }

// Used is the number of allocated bytes.
func (d *Device) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

const poisonByte = 0xa5

// poison fills memory with the pattern of what was never written.
func poison(p []byte) {
	for i := range p[:min(len(p), 64)] {
		p[i] = poisonByte
	}
	for done := 64; done < len(p); done *= 2 {
		copy(p[done:], p[:done])
	}
}

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
	a, err := d.reserve(size, tag)
	if err == nil && d.track {
		a.init = make([]byte, size)
		poison(a.data)
	}
	return a, err
}

// reserve is alloc of zeroed bytes that count as written.
func (d *Device) reserve(size int, tag string) (*allocation, error) {
	a := &allocation{lo: d.next, hi: d.next + uint64(size), tag: tag}
	if uint64(size) > d.base+heapSize-redZone-d.next {
		return nil, refuse(OutOfMemory, "the device's addresses, which are never used twice, are at their end")
	}
	if size < offHeap {
		a.data = make([]byte, size)
	} else {
		var err error
		if a.block, err = hostmem.Alloc(size); err != nil {
			return nil, refuse(OutOfMemory, "the host has no %d bytes: %v", size, err)
		}
		a.data = a.block.Bytes()
	}
	d.next = (a.hi + redZone + 255) &^ 255
	d.used += int64(size)
	d.allocs = append(d.allocs, a)
	return a, nil
}

// release gives the bytes back and keeps what names the allocation.
func (d *Device) release(a *allocation, by string) error {
	d.join(a)
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
	if a != nil && a.whole != nil {
		a = a.whole
	}
	if a == nil || a.lo != addr || a.data == nil || a.readOnly {
		return refuse(InvalidValue, "free of %#x, which is not the start of a live allocation: %s", addr, d.nearest(addr))
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
		if a.data == nil && a.whole == nil && d.freed > maxFreed {
			d.freed--
			continue
		}
		kept = append(kept, a)
	}
	clear(d.allocs[len(kept):])
	d.allocs = kept
}

// find returns the allocation that covers addr, a peer's included, or nil.
func (d *Device) find(addr uint64) *allocation {
	if !d.Owns(addr) {
		for _, p := range d.peers {
			if p.Owns(addr) {
				return p.find(addr)
			}
		}
		return nil
	}
	i := d.above(addr)
	if i == len(d.allocs) || d.allocs[i].lo > addr {
		return nil
	}
	return d.allocs[i]
}

// above is the index of the first allocation that ends above addr.
func (d *Device) above(addr uint64) int {
	return sort.Search(len(d.allocs), func(i int) bool { return d.allocs[i].hi > addr })
}

// nearest describes the allocation closest to an address that none covers.
func (d *Device) nearest(addr uint64) string {
	if a := d.find(addr); a != nil {
		return a.String()
	}
	switch {
	case d.Owns(addr), addr < d.base && d.base-addr <= before:
	case addr-heapBase < maxDevices*heapSize:
		return "the address is another device's, which is no peer or has no allocation there"
	default:
		return "the address is no device's"
	}
	i := d.above(addr)
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
		a.written = a.written || n == len(a.init)
	}
}

// tracked is whether initcheck has anything to follow.
func (a *allocation) tracked() bool { return a.init != nil && !a.written }

// Written reports whether all of n bytes at addr have been written; true without tracking.
func (d *Device) Written(addr uint64, n int) bool {
	ok := true
	err := d.access(addr, n, func(a *allocation, _ []byte) { ok = a.holds(addr, n) })
	return err == nil && ok
}

func (a *allocation) holds(addr uint64, n int) bool {
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
	for _, a := range slices.Clone(d.allocs) {
		if a.whole != nil {
			a = a.whole
		}
		if a.data != nil {
			err = errors.Join(err, d.release(a, "Reset"))
		}
	}
	d.allocs, d.freed, d.used, d.fault, d.peers = nil, 0, 0, nil, nil
	return err
}
