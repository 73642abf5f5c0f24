package gpusim

import "slices"

// Annotate tells the checks what an allocator above Alloc does with n bytes at addr, a part of one allocation. A part that
// is not live may not be touched; a live one holds nothing that was written. The tag names the place that asked.
func (d *Device) Annotate(addr uint64, n int, live bool, tag string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return d.fault
	}
	whole, err := d.reserved(addr, n)
	if err != nil || n == 0 {
		return err
	}
	end := addr + uint64(n)
	i, j := d.above(addr), d.above(end-1)+1
	first, last := d.allocs[i], d.allocs[j-1]
	p := whole.part(addr, end)
	p.tag = tag
	if !live {
		p.data, p.init, p.freedBy, p.tag = nil, nil, tag, first.tag
	}
	parts := make([]*allocation, 0, 3)
	if first.lo < addr {
		parts = append(parts, first.part(first.lo, addr))
	}
	parts = append(parts, p)
	if last.hi > end {
		parts = append(parts, last.part(end, last.hi))
	}
	if p.init != nil {
		clear(p.init)
		p.written = false
		poison(p.data)
	}
	d.allocs = slices.Replace(d.allocs, i, j, parts...)
	return nil
}

// part is the run [lo, hi) of a, with its fate.
func (a *allocation) part(lo, hi uint64) *allocation {
	p := &allocation{whole: a, lo: lo, hi: hi, written: a.written, tag: a.tag, freedBy: a.freedBy}
	if a.whole != nil {
		p.whole = a.whole
	}
	if a.data != nil {
		p.data = a.data[lo-a.lo : hi-a.lo : hi-a.lo]
	}
	if a.init != nil {
		p.init = a.init[lo-a.lo : hi-a.lo : hi-a.lo]
	}
	return p
}

// join puts a whole allocation in the place of its parts.
func (d *Device) join(a *allocation) {
	i, j := d.above(a.lo), d.above(a.hi-1)+1
	if d.allocs[i] != a {
		d.allocs = slices.Replace(d.allocs, i, j, a)
	}
}

// Reserved says why n bytes at addr are not all in one live allocation, whatever has been annotated; nil if they are.
func (d *Device) Reserved(addr uint64, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.reserved(addr, n)
	return err
}

func (d *Device) reserved(addr uint64, n int) (*allocation, error) {
	a := d.find(addr)
	if a != nil && a.whole != nil {
		a = a.whole
	}
	if a == nil || a.data == nil || n < 0 || uint64(n) > a.hi-addr {
		return nil, refuse(InvalidValue, "%d bytes at %#x are not in a live allocation: %s", n, addr, d.nearest(addr))
	}
	return a, nil
}

// Fill writes the pattern n times.
func (d *Device) Fill(addr uint64, pattern []byte, n int) error {
	return d.access(addr, n*len(pattern), func(a *allocation, p []byte) {
		for done := copy(p, pattern); done < len(p); done *= 2 {
			copy(p[done:], p[:done])
		}
		a.mark(addr, len(p))
	})
}

// Copy copies n bytes within a device or between two, with what is known of their having been written.
func Copy(dst *Device, to uint64, src *Device, from uint64, n int) error {
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
	for _, d := range []*Device{dst, src} {
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
	case !a.tracked():
		b.mark(to, n)
	case b.init != nil:
		b.written = false
		copy(b.init[to-b.lo:][:n], a.init[from-a.lo:])
	}
	return nil
}

// Describe names the allocation at an address, or the nearest.
func (d *Device) Describe(addr uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nearest(addr)
}

// Unload frees the module's variables. Its kernels must not be launched again.
func (p *Program) Unload(tag string) error {
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	return p.free(tag)
}

// Global finds a variable of the module by name.
func (p *Program) Global(name string) (addr uint64, bytes int, ok bool) {
	for v := range p.module.Vars() {
		if a := p.allocs[v]; a != nil && v.Name == name {
			return a.lo, int(a.hi - a.lo), true
		}
	}
	return 0, 0, false
}
