package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// least is what pages are multiples of at least; cards have this granularity.
const least = 2 << 20

// mapped is memory behind reserved addresses, and the cards that may touch it beside its own.
type mapped struct {
	ranges []device.Mem
	guests []*Device
}

// Maps implements [device.Mapper].
func (d *Device) Maps() bool {
	if can, r := d.api.DeviceGetAttribute(driver.VirtualMemory, d.handle); r != driver.Success || can == 0 {
		return false
	}
	var n int64
	r := d.api.Do(d.ctx, func() (r driver.Result) {
		n, r = d.api.MemGetAllocationGranularity(d.handle, driver.GranularityMinimum)
		return r
	})
	return r == driver.Success && n > 0 && least%n == 0
}

// Reserve implements [device.Mapper].
func (d *Device) Reserve(n int64) (uint64, error) {
	var p driver.Ptr
	err := d.do("cuMemAddressReserve", func() (r driver.Result) {
		p, r = d.api.MemAddressReserve(n, least, 0)
		return r
	})
	if short(err) {
		return 0, fmt.Errorf("%s has no %d addresses in one piece: %w", d.info.Name, n, device.ErrOutOfMemory)
	}
	return uint64(p), err
}

// short tells whether an error is one of too little memory.
func short(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.Result == driver.OutOfMemory
}

// Unreserve implements [device.Mapper].
func (d *Device) Unreserve(addr uint64, n int64) error {
	return d.do("cuMemAddressFree", func() driver.Result { return d.api.MemAddressFree(driver.Ptr(addr), n) })
}

// Map implements [device.Mapper].
func (d *Device) Map(addr uint64, n, page int64) error {
	if page <= 0 || n <= 0 || n%page != 0 {
		return fmt.Errorf("%s: cannot map %d bytes in pages of %d", d.info.Name, n, page)
	}
	for at := int64(0); at < n; at += page {
		if err := d.mapPage(driver.Ptr(addr)+driver.Ptr(at), page); err != nil {
			if at > 0 {
				err = errors.Join(err, d.unmap(addr, at))
			}
			if short(err) {
				return d.outOfMemory(n)
			}
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := device.Mem{Addr: addr, Size: n}
	err := d.open(m, d)
	for _, g := range d.mapped.guests {
		err = errors.Join(err, d.open(m, g))
	}
	if err != nil {
		return errors.Join(err, d.unmap(addr, n))
	}
	d.mapped.ranges = append(d.mapped.ranges, m)
	return nil
}

// mapPage makes memory for one page. The mapping keeps it: its handle is let go.
func (d *Device) mapPage(p driver.Ptr, page int64) error {
	var h driver.MemHandle
	err := d.do("cuMemCreate", func() (r driver.Result) {
		h, r = d.api.MemCreate(page, d.handle)
		return r
	})
	if err != nil {
		return err
	}
	return errors.Join(d.do("cuMemMap", func() driver.Result { return d.api.MemMap(p, page, 0, h) }),
		d.do("cuMemRelease", func() driver.Result { return d.api.MemRelease(h) }))
}

// open lets a card touch mapped memory.
func (d *Device) open(m device.Mem, to *Device) error {
	return d.do("cuMemSetAccess", func() driver.Result {
		return d.api.MemSetAccess(driver.Ptr(m.Addr), m.Size, to.handle, driver.AccessReadWrite)
	})
}

// admit lets another card touch what is mapped, now and later.
func (d *Device) admit(guest *Device) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mapped.guests = append(d.mapped.guests, guest)
	var err error
	for _, m := range d.mapped.ranges {
		err = errors.Join(err, d.open(m, guest))
	}
	return err
}

// Unmap implements [device.Mapper].
func (d *Device) Unmap(addr uint64, n int64) error {
	if err := d.do("cuCtxSynchronize", d.api.CtxSynchronize); err != nil {
		return err
	}
	if err := d.unmap(addr, n); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mapped.cut(addr, addr+uint64(n))
	return nil
}

func (d *Device) unmap(addr uint64, n int64) error {
	return d.do("cuMemUnmap", func() driver.Result { return d.api.MemUnmap(driver.Ptr(addr), n) })
}

// cut takes addresses out of the ranges.
func (m *mapped) cut(lo, hi uint64) {
	var rest []device.Mem
	for _, r := range m.ranges {
		end := r.Addr + uint64(r.Size)
		if r.Addr < lo {
			rest = append(rest, device.Mem{Addr: r.Addr, Size: int64(min(lo, end) - r.Addr)})
		}
		if end > hi {
			from := max(hi, r.Addr)
			rest = append(rest, device.Mem{Addr: from, Size: int64(end - from)})
		}
	}
	m.ranges = slices.Clip(rest)
}
