package memory

import (
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// Granularity is what sizes of memory without addresses, and places where it is mapped, are multiples of, in bytes.
const Granularity = 2 << 20

// hostPage is what reserved addresses are a multiple of; the host may have larger pages, of which Granularity is a multiple.
const hostPage = 4 << 10

// virtual is what an allocation has that is reserved addresses: the host's addresses for its bytes, and for what is known of
// them, have memory where something is mapped.
type virtual struct {
	at   uint64
	data hostmem.Range
	init hostmem.Range // without tracking none
	maps []*mapping    // by address
}

// mapping is memory behind addresses, as one call made it.
type mapping struct {
	lo, hi uint64
	of     *Physical
	open   bool // somebody may touch it
}

// Physical is memory without an address. Its bytes stay what they are while it is mapped nowhere.
type Physical struct {
	size     int
	tag      string
	at       *mapping // where it is mapped; nil: nowhere
	released bool
	data     []byte // while it is mapped nowhere; nil: nothing was written
	init     []byte
}

// open is the first address from lo on that is not mapped with access, hi if all before are.
func (v *virtual) open(lo, hi uint64) uint64 {
	for _, p := range v.maps {
		if p.open && p.lo <= lo && lo < p.hi {
			lo = p.hi
		}
	}
	return min(lo, hi)
}

// within are the mappings in [lo, hi), and whether these are whole ones.
func (v *virtual) within(lo, hi uint64) (maps []*mapping, whole bool) {
	whole = true
	for _, p := range v.maps {
		if p.lo < hi && lo < p.hi {
			maps = append(maps, p)
			whole = whole && lo <= p.lo && p.hi <= hi
		}
	}
	return maps, whole
}

// ReserveAddresses takes addresses without memory. The alignment is a power of two, or 0.
func (m *Memory) ReserveAddresses(size, align int64, tag string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.fault != nil:
		return 0, m.fault
	case size <= 0 || size%hostPage != 0:
		return 0, Refuse(InvalidValue, "a reservation of %d addresses; want a multiple of %d", size, hostPage)
	case align < 0 || align&(align-1) != 0:
		return 0, Refuse(InvalidValue, "an alignment of %d; want a power of two, or 0", align)
	}
	to := uint64(max(align, Granularity))
	lo, ok := m.addresses(size, to)
	if !ok {
		return 0, Refuse(OutOfMemory, "the device's addresses, which are never used twice, are at their end, and no reservation of this size was given back")
	}
	v := &virtual{at: lo}
	a := &Allocation{Lo: lo, Hi: lo + uint64(size), tag: tag, virtual: v}
	var err error
	if v.data, err = hostmem.Reserve(int(size)); err == nil && m.Track {
		v.init, err = hostmem.Reserve(int(size))
	}
	if err != nil {
		return 0, Refuse(OutOfMemory, "the host: %v", errors.Join(err, v.data.Free()))
	}
	a.Data = hostmem.Bytes(v.data.Addr, int(size))
	if m.Track {
		a.Init = hostmem.Bytes(v.init.Addr, int(size))
	}
	m.next = max(m.next, (a.Hi+gap(int(size))+255)&^255)
	part := a.cut(a.Lo, a.Hi)
	part.Data, part.Init, part.without = nil, nil, "addresses without memory"
	m.allocs = slices.Insert(m.allocs, m.above(lo), part)
	return lo, nil
}

// addresses finds some that nothing has had, or, when there are no more, those of a reservation of the same size that was given
// back: allocators reserve far more than they map.
func (m *Memory) addresses(size int64, align uint64) (lo uint64, ok bool) {
	lo = (m.next + align - 1) &^ (align - 1)
	if end := m.base + heapSize - maxGap; lo <= end && uint64(size) <= end-lo {
		return lo, true
	}
	i := slices.IndexFunc(m.allocs, func(a *Allocation) bool {
		return a.virtual != nil && a.Data == nil && a.Hi-a.Lo == uint64(size) && a.Lo%align == 0
	})
	if i < 0 {
		return 0, false
	}
	lo = m.allocs[i].Lo
	m.allocs = slices.Delete(m.allocs, i, i+1)
	m.freed--
	return lo, true
}

// reservedAddresses is the reservation that all of [addr, addr+size) is in.
func (m *Memory) reservedAddresses(addr uint64, size int64) (*Allocation, error) {
	if m.fault != nil {
		return nil, m.fault
	}
	a := m.Find(addr)
	if a != nil && a.whole != nil {
		a = a.whole
	}
	if a == nil || a.virtual == nil || a.Data == nil || !m.Owns(addr) || size <= 0 || uint64(size) > a.Hi-addr {
		return nil, Refuse(InvalidValue, "%d bytes at %#x are not all of one reservation of addresses: %s", size, addr, m.Nearest(addr))
	}
	return a, nil
}

// FreeAddresses gives a reservation back, whole, with nothing mapped.
func (m *Memory) FreeAddresses(addr uint64, size int64, tag string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.reservedAddresses(addr, size)
	switch {
	case err != nil:
		return err
	case addr != a.Lo || addr+uint64(size) != a.Hi:
		return Refuse(InvalidValue, "%d addresses at %#x are given back, of a reservation of %d at %#x: it goes as a whole", size, addr, a.Hi-a.Lo, a.Lo)
	case len(a.virtual.maps) > 0:
		return Refuse(InvalidValue, "addresses at %#x are given back while %d pieces of memory are mapped there, the first at %#x", addr, len(a.virtual.maps), a.virtual.maps[0].lo)
	}
	return m.dissolve(a, tag)
}

// dissolve ends a reservation with all that is mapped there.
func (m *Memory) dissolve(a *Allocation, by string) error {
	var err error
	for _, p := range slices.Clone(a.virtual.maps) {
		err = errors.Join(err, m.unmap(a, p))
	}
	m.join(a)
	m.freed++
	a.Data, a.Init, a.freedBy, a.without = nil, nil, by, ""
	return errors.Join(err, a.virtual.data.Free(), a.virtual.init.Free())
}

// Create takes memory without an address.
func (m *Memory) Create(size int64, tag string) (*Physical, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.fault != nil:
		return nil, m.fault
	case size <= 0 || size%Granularity != 0:
		return nil, Refuse(InvalidValue, "memory of %d bytes; want a multiple of the granularity, %d", size, Granularity)
	case size > m.size-m.used:
		return nil, Refuse(OutOfMemory, "%d bytes asked, %d of %d in use", size, m.used, m.size)
	}
	p := &Physical{size: int(size), tag: tag}
	if m.handles == nil {
		m.handles = map[*Physical]bool{}
	}
	m.handles[p] = true
	m.used += size
	return p, nil
}

// ReleaseMemory gives up a handle; the memory goes when it is mapped nowhere.
func (m *Memory) ReleaseMemory(p *Physical) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	if !m.handles[p] {
		return Refuse(InvalidValue, "a handle of memory that was released")
	}
	delete(m.handles, p)
	p.released = true
	m.drop(p)
	return nil
}

// drop frees memory that nothing refers to.
func (m *Memory) drop(p *Physical) {
	if p.released && p.at == nil {
		m.used -= int64(p.size)
		p.data, p.init = nil, nil
	}
}

// Map puts memory behind reserved addresses, without access.
func (m *Memory) Map(addr uint64, size, offset int64, p *Physical) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.reservedAddresses(addr, size)
	switch {
	case err != nil:
		return err
	case !m.handles[p]:
		return Refuse(InvalidValue, "a handle of memory that was released, or of another device")
	case addr%Granularity != 0 || size%Granularity != 0:
		return Refuse(InvalidValue, "%d bytes mapped at %#x; want multiples of the granularity, %d", size, addr, Granularity)
	case offset != 0 || size != int64(p.size):
		return Refuse(InvalidValue, "%d bytes mapped from byte %d on, of memory of %d; drivers map it whole", size, offset, p.size)
	case p.at != nil:
		return Refuse(NotSupported, "memory that is mapped at %#x is mapped again at %#x; the simulator has one place for it", p.at.lo, addr)
	}
	v, hi := a.virtual, addr+uint64(size)
	if others, _ := v.within(addr, hi); len(others) > 0 {
		return Refuse(InvalidValue, "%d bytes mapped at %#x, where memory is mapped at %#x", size, addr, others[0].lo)
	}
	off := int(addr - a.Lo)
	if err := v.data.Commit(off, int(size)); err != nil {
		return Refuse(OutOfMemory, "the host: %v", err)
	}
	if m.Track {
		if err := v.init.Commit(off, int(size)); err != nil {
			return Refuse(OutOfMemory, "the host: %v", errors.Join(err, v.data.Decommit(off, int(size))))
		}
	}
	switch {
	case p.data != nil:
		copy(a.Data[off:], p.data)
		copy(a.Init[min(off, len(a.Init)):], p.init)
		p.data, p.init = nil, nil
	case m.Track:
		Poison(a.Data[off:][:size])
	}
	p.at = &mapping{lo: addr, hi: hi, of: p}
	i := slices.IndexFunc(v.maps, func(q *mapping) bool { return q.lo > addr })
	if i < 0 {
		i = len(v.maps)
	}
	v.maps = slices.Insert(v.maps, i, p.at)
	m.close(a, addr, hi, "mapped without access")
	return nil
}

// close makes a part of a reservation one that nobody may touch.
func (m *Memory) close(a *Allocation, lo, hi uint64, why string) {
	part := a.cut(lo, hi)
	part.Data, part.Init, part.without, part.bare = nil, nil, why, false
	m.place(part)
}

// Unmap takes memory away from addresses; what one Map put there goes whole.
func (m *Memory) Unmap(addr uint64, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, maps, err := m.mapped(addr, size)
	for _, p := range maps {
		err = errors.Join(err, m.unmap(a, p))
	}
	return err
}

// mapped are the mappings that fill [addr, addr+size), without a gap.
func (m *Memory) mapped(addr uint64, size int64) (*Allocation, []*mapping, error) {
	a, err := m.reservedAddresses(addr, size)
	if err != nil {
		return nil, nil, err
	}
	maps, whole := a.virtual.within(addr, addr+uint64(size))
	if !whole {
		return nil, nil, Refuse(InvalidValue, "%d bytes at %#x, which cut memory that was mapped in one call", size, addr)
	}
	at := addr
	for _, p := range maps {
		if p.lo != at {
			break
		}
		at = p.hi
	}
	if at != addr+uint64(size) {
		return nil, nil, Refuse(InvalidValue, "%d bytes at %#x are not all mapped: nothing is at %#x", size, addr, at)
	}
	return a, maps, nil
}

// Mapped says why not all of [addr, addr+size) is mapped, in whole; nil if it is.
func (m *Memory) Mapped(addr uint64, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, err := m.mapped(addr, size)
	return err
}

func (m *Memory) unmap(a *Allocation, p *mapping) error {
	v, off, n := a.virtual, int(p.lo-a.Lo), int(p.hi-p.lo)
	if !p.of.released {
		p.of.data = slices.Clone(a.Data[off:][:n])
		if m.Track {
			p.of.init = slices.Clone(a.Init[off:][:n])
		}
	}
	p.of.at = nil
	m.drop(p.of)
	v.maps = slices.DeleteFunc(v.maps, func(q *mapping) bool { return q == p })
	m.close(a, p.lo, p.hi, "addresses without memory any more")
	err := v.data.Decommit(off, n)
	if m.Track {
		err = errors.Join(err, v.init.Decommit(off, n))
	}
	return err
}

// SetAccess says whether mapped memory may be touched. What lies side by side and is open is one allocation to the checks, until
// an allocator annotates it.
func (m *Memory) SetAccess(addr uint64, size int64, open bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, maps, err := m.mapped(addr, size)
	if err != nil {
		return err
	}
	changed := slices.DeleteFunc(maps, func(p *mapping) bool { return p.open == open })
	for _, p := range changed {
		if p.open = open; !open {
			m.close(a, p.lo, p.hi, "mapped without access")
			continue
		}
		part := a.cut(p.lo, p.hi)
		part.tag, part.without, part.bare = p.of.tag, "", true
		m.widen(part)
		m.place(part)
	}
	return nil
}

// widen adds what is open and bare on both sides of a part that is to be placed.
func (m *Memory) widen(p *Allocation) {
	lo, hi := p.Lo, p.Hi
	if q := m.Find(lo - 1); q != nil && q.whole == p.whole && q.bare {
		lo = q.Lo
	}
	if q := m.Find(hi); q != nil && q.whole == p.whole && q.bare {
		hi = q.Hi
	}
	w := p.whole.cut(lo, hi)
	p.Lo, p.Hi, p.Data, p.Init = lo, hi, w.Data, w.Init
}

// String names the memory by who made it.
func (p *Physical) String() string {
	return fmt.Sprintf("memory of %d bytes made by %s", p.size, p.tag)
}
