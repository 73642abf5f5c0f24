package hostmem

import "fmt"

// A Range is addresses without memory, which Commit puts behind parts of it. The zero Range has no addresses.
type Range struct {
	Addr uintptr // multiple of the system's page
	Size int
}

// Reserve returns n addresses, in whole pages, of which none may be touched yet. Unlike memory they cost nothing.
func Reserve(n int) (Range, error) {
	if n <= 0 || n > maxSize {
		return Range{}, fmt.Errorf("cannot reserve %d addresses: size out of range", n)
	}
	n = pages(n)
	addr, err := reserve(n)
	if err != nil {
		return Range{}, fmt.Errorf("cannot reserve %d addresses: %w", n, err)
	}
	return Range{addr, n}, nil
}

// Commit puts memory of zeros behind n bytes from an offset on, both multiples of the system's page, where there is none.
func (r Range) Commit(offset, n int) error {
	if err := r.check(offset, n); err != nil {
		return err
	}
	if err := commit(r.Addr+uintptr(offset), n); err != nil {
		return fmt.Errorf("cannot put %d bytes behind %#x: %w", n, r.Addr+uintptr(offset), err)
	}
	anonymous.Add(int64(n))
	return nil
}

// Decommit gives the memory behind n bytes back to the system. There must be some behind each.
func (r Range) Decommit(offset, n int) error {
	if err := r.check(offset, n); err != nil {
		return err
	}
	if err := decommit(r.Addr+uintptr(offset), n); err != nil {
		return fmt.Errorf("cannot take %d bytes from behind %#x: %w", n, r.Addr+uintptr(offset), err)
	}
	anonymous.Add(-int64(n))
	return nil
}

func (r Range) check(offset, n int) error {
	if offset < 0 || n <= 0 || n > r.Size-offset || offset%pageSize != 0 || n%pageSize != 0 {
		return fmt.Errorf("%d bytes from %d on are no pages of a range of %d bytes", n, offset, r.Size)
	}
	return nil
}

// Free gives the addresses back. There must be no memory behind them.
func (r Range) Free() error {
	if r.Size == 0 {
		return nil
	}
	if err := unmapAnonymous(r.Addr, r.Size); err != nil {
		return fmt.Errorf("cannot give %d addresses at %#x back: %w", r.Size, r.Addr, err)
	}
	return nil
}
