package memory

import "slices"

// Annotate tells the checks what an allocator above Alloc does with n bytes at addr, a part of one allocation. A part that
// is not live may not be touched; a live one holds nothing that was written. The tag names the place that asked.
func (m *Memory) Annotate(addr uint64, n int, live bool, tag string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	whole, err := m.reserved(addr, n)
	if err != nil || n == 0 {
		return err
	}
	p := whole.cut(addr, addr+uint64(n))
	p.tag = tag
	if !live {
		p.Data, p.Init, p.freedBy, p.tag = nil, nil, tag, m.allocs[m.above(addr)].tag
	}
	if p.Init != nil {
		clear(p.Init)
		p.written = false
		Poison(p.Data)
	}
	m.place(p)
	return nil
}

// place puts a part where others, or parts of them, have been.
func (m *Memory) place(p *Allocation) {
	i, j := m.above(p.Lo), m.above(p.Hi-1)+1
	first, last := m.allocs[i], m.allocs[j-1]
	parts := make([]*Allocation, 0, 3)
	if first.Lo < p.Lo {
		parts = append(parts, first.cut(first.Lo, p.Lo))
	}
	parts = append(parts, p)
	if last.Hi > p.Hi {
		parts = append(parts, last.cut(p.Hi, last.Hi))
	}
	m.allocs = slices.Replace(m.allocs, i, j, parts...)
}

// cut is the run [lo, hi) of a, with its fate.
func (a *Allocation) cut(lo, hi uint64) *Allocation {
	p := &Allocation{whole: a, Lo: lo, Hi: hi, written: a.written, tag: a.tag, freedBy: a.freedBy, without: a.without, bare: a.bare}
	if a.whole != nil {
		p.whole = a.whole
	}
	if a.Data != nil {
		p.Data = a.Data[lo-a.Lo : hi-a.Lo : hi-a.Lo]
	}
	if a.Init != nil {
		p.Init = a.Init[lo-a.Lo : hi-a.Lo : hi-a.Lo]
	}
	return p
}

// join puts a whole allocation in the place of its parts.
func (m *Memory) join(a *Allocation) {
	i, j := m.above(a.Lo), m.above(a.Hi-1)+1
	if m.allocs[i] != a {
		m.allocs = slices.Replace(m.allocs, i, j, a)
	}
}

// Reserved says why n bytes at addr are not all in one live allocation, whatever has been annotated; nil if they are.
func (m *Memory) Reserved(addr uint64, n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.reserved(addr, n)
	return err
}

func (m *Memory) reserved(addr uint64, n int) (*Allocation, error) {
	a := m.Find(addr)
	if a != nil && a.whole != nil {
		a = a.whole
	}
	if a == nil || a.Data == nil || n < 0 || uint64(n) > a.Hi-addr {
		return nil, Refuse(InvalidValue, "%d bytes at %#x are not in a live allocation: %s", n, addr, m.Nearest(addr))
	}
	if a.virtual == nil || n == 0 {
		return a, nil
	}
	if at := a.virtual.open(addr, addr+uint64(n)); at < addr+uint64(n) {
		return nil, Refuse(InvalidValue, "%d bytes at %#x are not all mapped with access: %s", n, addr, m.Nearest(at))
	}
	return a, nil
}

// Fill writes the pattern n times.
func (m *Memory) Fill(addr uint64, pattern []byte, n int) error {
	return m.access(addr, n*len(pattern), func(a *Allocation, p []byte) {
		for done := copy(p, pattern); done < len(p); done *= 2 {
			copy(p[done:], p[:done])
		}
		a.mark(addr, len(p))
	})
}

// Copy copies n bytes within a device or between two, with what is known of their having been written.
func Copy(dst *Memory, to uint64, src *Memory, from uint64, n int) error {
	if n == 0 {
		return nil
	}
	first, second := dst, src
	if second.base < first.base {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	if first != second {
		second.mu.Lock()
		defer second.mu.Unlock()
	}
	for _, d := range []*Memory{dst, src} {
		if d.fault != nil {
			return d.fault
		}
	}
	b, out, err := dst.span(to, n)
	if err != nil {
		return err
	}
	a, in, err := src.span(from, n)
	if err != nil {
		return err
	}
	copy(out, in)
	switch {
	case !a.Tracked():
		b.mark(to, n)
	case b.Init != nil:
		b.written = false
		copy(b.Init[to-b.Lo:][:n], a.Init[from-a.Lo:])
	}
	return nil
}

// Describe names the allocation at an address, or the nearest.
func (m *Memory) Describe(addr uint64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Nearest(addr)
}

// Freed tells whether an address is of an allocation that was given back, as a whole, and whether it is its start.
func (m *Memory) Freed(addr uint64) (freed, start bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.Find(addr)
	if a == nil || a.Data != nil || a.whole != nil || a.virtual != nil {
		return false, false
	}
	return true, a.Lo == addr
}

// Extent is the live allocation, or the live part of one, that holds an address.
func (m *Memory) Extent(addr uint64) (lo uint64, size int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.Find(addr)
	if a == nil || a.Data == nil {
		return 0, 0, false
	}
	return a.Lo, len(a.Data), true
}
