package null

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
)

// granularity of reserved addresses and pages in bytes, as a CUDA driver's.
const granularity = 2 << 20

// Maps implements [device.Mapper].
func (d *Device) Maps() bool { return true }

// Reserve implements [device.Mapper].
func (d *Device) Reserve(n int64) (uint64, error) {
	if n <= 0 || n%granularity != 0 {
		return 0, fmt.Errorf("null: cannot reserve %d addresses: want a multiple of %d", n, granularity)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	addr, ok := d.beyond.take(n)
	if !ok {
		return 0, fmt.Errorf("%s has no %d addresses in one piece: %w", d.info.Name, n, device.ErrOutOfMemory)
	}
	return addr, nil
}

// Unreserve implements [device.Mapper].
func (d *Device) Unreserve(addr uint64, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.pages {
		if at-addr < uint64(n) {
			return fmt.Errorf("null: addresses at %#x are given back with memory behind %#x", addr, at)
		}
	}
	if !d.beyond.give(addr, n) {
		return fmt.Errorf("null: %d addresses at %#x are given back, but were not reserved", n, addr)
	}
	return nil
}

// Map implements [device.Mapper].
func (d *Device) Map(addr uint64, n, page int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case page <= 0 || page%granularity != 0 || n <= 0 || n%page != 0:
		return fmt.Errorf("null: cannot map %d bytes in pages of %d: want whole pages of a multiple of %d", n, page, granularity)
	case !d.beyond.has(addr, n):
		return fmt.Errorf("null: %d bytes at %#x were not reserved", n, addr)
	case n > d.room:
		return fmt.Errorf("%s has no %d bytes left: %w", d.info.Name, n, device.ErrOutOfMemory)
	}
	for at, size := range d.pages {
		if at < addr+uint64(n) && addr < at+uint64(size) {
			return fmt.Errorf("null: there is memory behind %#x already", at)
		}
	}
	for at := addr; at < addr+uint64(n); at += uint64(page) {
		d.pages[at] = page
	}
	d.room -= n
	return nil
}

// Unmap implements [device.Mapper].
func (d *Device) Unmap(addr uint64, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := addr; at != addr+uint64(n); at += uint64(d.pages[at]) {
		if size := d.pages[at]; size == 0 || size > n-int64(at-addr) {
			return fmt.Errorf("null: there is no page to unmap at %#x, for %d bytes at %#x", at, n, addr)
		}
	}
	for at := addr; at != addr+uint64(n); {
		size := d.pages[at]
		delete(d.pages, at)
		at += uint64(size)
	}
	d.room += n
	return nil
}
