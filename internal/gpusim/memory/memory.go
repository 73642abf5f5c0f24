// Package memory is the memory of simulated GPUs: allocations at addresses that are never used twice, with what is known of
// each byte having been written, and the windows of generic addressing.
package memory

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
	MaxDevices = 16
	sharedBase = 0x1_0000_0000_0000
	localBase  = 0x1_0001_0000_0000
	paramBase  = 0x1_0002_0000_0000
	WindowSize = 1 << 24
	minGap     = 64 << 10 // at least so many bytes between allocations, see gap
	maxGap     = 1 << 30
	before     = 1 << 30 // an address so close before the first allocation still missed that one
	maxFreed   = 4096
)

// Memory is that of a simulated GPU. Its methods may be called from any goroutine; they run one after the other.
type Memory struct {
	size  int64     // bytes that there may be
	base  uint64    // of its range of addresses
	peers []*Memory // which its kernels may access

	mu      sync.Mutex
	handles map[*Physical]bool // not released
	allocs  []*Allocation      // by address; freed ones stay for a while to name them
	freed   int
	used    int64
	next    uint64
	Track   bool
	fault   error
}

// Allocation is a run of addresses with one fate: what Alloc returned, or a part of it after Annotate.
type Allocation struct {
	whole    *Allocation // that this is a part of, or nil
	Lo, Hi   uint64
	Data     []byte
	block    hostmem.Block // behind data, where that is large
	Init     []byte        // 1 for each byte that was written; nil without tracking
	written  bool          // init is known to be all 1
	tag      string
	freedBy  string
	without  string // why nobody may touch it, other than that it was freed
	virtual  *virtual
	bare     bool // mapped, and no allocator has said anything of it
	ReadOnly bool
	Constant bool                    // a .const variable
	Marks    atomic.Pointer[Sectors] // of the launch under way, see stale
}

// String names the allocation: its size and address, who made it and who freed it.
func (a *Allocation) String() string {
	s := fmt.Sprintf("allocation of %d bytes at %#x", a.Hi-a.Lo, a.Lo)
	if a.tag != "" {
		s += " made by " + a.tag
	}
	switch {
	case a.without != "":
		s += ", " + a.without
	case a.Data == nil:
		s += ", freed by " + a.freedBy
	}
	return s
}

// New makes the memory of GPU number n, below maxDevices: so many bytes without allocations, at addresses that those of
// other numbers do not have. With track, which initcheck of global memory needs, it remembers what has been written, one
// byte for each byte, and fills new memory with a pattern instead of zeros.
func New(size int64, n int, track bool) *Memory {
	base := heapBase + uint64(n)*heapSize
	return &Memory{size: size, base: base, next: base, Track: track}
}

// SetPeers names the memories, of other numbers, that m's kernels may access. While one of these kernels runs, no other
// goroutine may use them.
func (m *Memory) SetPeers(peers []*Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peers = peers
}

// Lock keeps everybody else out: while a kernel runs, or a module gets its variables.
func (m *Memory) Lock() { m.mu.Lock() }

// Unlock lets others in again.
func (m *Memory) Unlock() { m.mu.Unlock() }

// Fail makes err what every later operation returns, until Reset. The caller holds the lock.
func (m *Memory) Fail(err error) { m.fault = err }

// Failed is the error of fail, nil without. The caller holds the lock.
func (m *Memory) Failed() error { return m.fault }

// Left is the number of bytes that may still be allocated. The caller holds the lock.
func (m *Memory) Left() int64 { return m.size - m.used }

// Owns reports whether the address is in the memory's range, allocated or not.
func (m *Memory) Owns(addr uint64) bool { return addr-m.base < heapSize }

// Used is the number of allocated bytes.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

const poisonByte = 0xa5

// Poison fills memory with the pattern of what was never written.
func Poison(p []byte) {
	for i := range p[:min(len(p), 64)] {
		p[i] = poisonByte
	}
	for done := 64; done < len(p); done *= 2 {
		copy(p[done:], p[:done])
	}
}

// Alloc reserves size bytes at a multiple of 256. The tag names the place that asked, for findings.
func (m *Memory) Alloc(size int, tag string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return 0, m.fault
	}
	if size <= 0 {
		return 0, Refuse(InvalidValue, "an allocation of %d bytes", size)
	}
	if int64(size) > m.size-m.used {
		return 0, Refuse(OutOfMemory, "%d bytes asked, %d of %d in use", size, m.used, m.size)
	}
	a, err := m.alloc(size, tag)
	if err != nil {
		return 0, err
	}
	return a.Lo, nil
}

// offHeap is the size from which memory comes from the operating system, which can refuse it without ending the process.
const offHeap = 1 << 20

func (m *Memory) alloc(size int, tag string) (*Allocation, error) {
	a, err := m.Reserve(size, tag)
	if err == nil && m.Track {
		a.Init = make([]byte, size)
		Poison(a.Data)
	}
	return a, err
}

// Reserve is alloc of zeroed bytes that count as written.
func (m *Memory) Reserve(size int, tag string) (*Allocation, error) {
	a := &Allocation{Lo: m.next, Hi: m.next + uint64(size), tag: tag}
	if uint64(size) > m.base+heapSize-maxGap-m.next {
		return nil, Refuse(OutOfMemory, "the device's addresses, which are never used twice, are at their end")
	}
	if size < offHeap {
		a.Data = make([]byte, size)
	} else {
		var err error
		if a.block, err = hostmem.Alloc(size); err != nil {
			return nil, Refuse(OutOfMemory, "the host has no %d bytes: %v", size, err)
		}
		a.Data = a.block.Bytes()
	}
	m.next = (a.Hi + gap(size) + 255) &^ 255
	m.used += int64(size)
	m.allocs = append(m.allocs, a)
	return a, nil
}

// gap is how far the next allocation is from one of so many bytes: as far as it is long, so that an index that is out by as
// much as the whole of it, by a row or by a block too many, does not land in another. Addresses cost nothing.
func gap(size int) uint64 { return uint64(min(max(size, minGap), maxGap)) }

// Release gives the bytes back and keeps what names the allocation.
func (m *Memory) Release(a *Allocation, by string) error {
	m.join(a)
	m.used -= int64(len(a.Data))
	m.freed++
	a.Data, a.Init, a.freedBy = nil, nil, by
	return a.block.Free()
}

// Free gives an allocation back. The tag names the place that freed it.
func (m *Memory) Free(addr uint64, tag string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	a := m.Find(addr)
	if a != nil && a.whole != nil {
		a = a.whole
	}
	if a == nil || a.Lo != addr || a.Data == nil || a.ReadOnly || a.virtual != nil {
		return Refuse(InvalidValue, "free of %#x, which is not the start of a live allocation: %s", addr, m.Nearest(addr))
	}
	if m.freed >= 2*maxFreed {
		m.forget()
	}
	return m.Release(a, tag)
}

// forget drops the oldest of the freed allocations.
func (m *Memory) forget() {
	kept := m.allocs[:0]
	for _, a := range m.allocs {
		if a.Data == nil && a.whole == nil && m.freed > maxFreed {
			m.freed--
			continue
		}
		kept = append(kept, a)
	}
	clear(m.allocs[len(kept):])
	m.allocs = kept
}

// Find returns the allocation that covers addr, a peer's included, or nil.
func (m *Memory) Find(addr uint64) *Allocation {
	if !m.Owns(addr) {
		for _, p := range m.peers {
			if p.Owns(addr) {
				return p.Find(addr)
			}
		}
		return nil
	}
	i := m.above(addr)
	if i == len(m.allocs) || m.allocs[i].Lo > addr {
		return nil
	}
	return m.allocs[i]
}

// above is the index of the first allocation that ends above addr.
func (m *Memory) above(addr uint64) int {
	return sort.Search(len(m.allocs), func(i int) bool { return m.allocs[i].Hi > addr })
}

// Nearest describes the allocation closest to an address that none covers.
func (m *Memory) Nearest(addr uint64) string {
	if a := m.Find(addr); a != nil {
		return a.String()
	}
	switch {
	case m.Owns(addr), addr < m.base && m.base-addr <= before:
	case addr-heapBase < MaxDevices*heapSize:
		return "the address is another device's, which is no peer or has no allocation there"
	default:
		return "the address is no device's"
	}
	i := m.above(addr)
	var best *Allocation
	if i < len(m.allocs) {
		best = m.allocs[i]
	}
	if i > 0 && (best == nil || addr-m.allocs[i-1].Hi < best.Lo-addr) {
		best = m.allocs[i-1]
	}
	switch {
	case best == nil:
		return "there is no allocation"
	case addr >= best.Hi:
		return fmt.Sprintf("%d bytes past the end of the %v", addr-best.Hi, best)
	}
	return fmt.Sprintf("%d bytes before the %v", best.Lo-addr, best)
}

// span is the live bytes [addr, addr+n) and their allocation.
func (m *Memory) span(addr uint64, n int) (*Allocation, []byte, error) {
	a := m.Find(addr)
	if a == nil || a.Data == nil || uint64(n) > a.Hi-addr {
		return nil, nil, Refuse(InvalidValue, "%d bytes at %#x are not in a live allocation: %s", n, addr, m.Nearest(addr))
	}
	return a, a.Data[addr-a.Lo:][:n], nil
}

// Write copies from the host.
func (m *Memory) Write(addr uint64, src []byte) error {
	return m.access(addr, len(src), func(a *Allocation, p []byte) {
		copy(p, src)
		a.mark(addr, len(src))
	})
}

// Read copies to the host.
func (m *Memory) Read(dst []byte, addr uint64) error {
	return m.access(addr, len(dst), func(_ *Allocation, p []byte) { copy(dst, p) })
}

func (m *Memory) access(addr uint64, n int, f func(a *Allocation, p []byte)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	if n == 0 {
		return nil
	}
	a, p, err := m.span(addr, n)
	if err == nil {
		f(a, p)
	}
	return err
}

func (a *Allocation) mark(addr uint64, n int) {
	if a.Init != nil {
		p := a.Init[addr-a.Lo:][:n]
		for i := range p {
			p[i] = 1
		}
		a.written = a.written || n == len(a.Init)
	}
}

// Tracked is whether initcheck has anything to follow.
func (a *Allocation) Tracked() bool { return a.Init != nil && !a.written }

// Written reports whether all of n bytes at addr have been written; true without tracking.
func (m *Memory) Written(addr uint64, n int) bool {
	ok := true
	err := m.access(addr, n, func(a *Allocation, _ []byte) { ok = a.holds(addr, n) })
	return err == nil && ok
}

func (a *Allocation) holds(addr uint64, n int) bool {
	if a.Init == nil {
		return true
	}
	for _, b := range a.Init[addr-a.Lo:][:n] {
		if b == 0 {
			return false
		}
	}
	return true
}

// Reset frees everything, modules included, and forgets a fault. Programs loaded before must not be used again.
func (m *Memory) Reset() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for _, a := range slices.Clone(m.allocs) {
		if a.whole != nil {
			a = a.whole
		}
		switch {
		case a.Data == nil:
		case a.virtual != nil:
			err = errors.Join(err, m.dissolve(a, "Reset"))
		default:
			err = errors.Join(err, m.Release(a, "Reset"))
		}
	}
	m.handles = nil
	m.allocs, m.freed, m.used, m.fault, m.peers = nil, 0, 0, nil, nil
	return err
}
