package simcuda

import (
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// physical is memory without an address, by its handle.
type physical struct {
	dev    *device
	mem    *gpusim.Physical
	bytes  int64
	by     string // the call that made it
	number int    // among all allocations of the machine
}

func (s *System) granularity(d driver.Device, g driver.Granularity) (bytes int64, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		if _, r := s.at(d); r != driver.Success {
			return c.refuse(r, "there is no device %d", d)
		}
		if g != driver.GranularityMinimum && g != driver.GranularityRecommended {
			return c.refuse(driver.InvalidValue, "granularity %d; there are 0 and 1", g)
		}
		bytes = gpusim.Granularity
		return driver.Success
	})
	return bytes, r
}

// addressReserve reserves addresses of the current context's device: here every address is some device's. The hint is one.
func (s *System) addressReserve(bytes, alignment int64, _ driver.Ptr) (p driver.Ptr, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		addr, err := c.dev.sim.ReserveAddresses(bytes, alignment, "MemAddressReserve")
		p = driver.Ptr(addr)
		return c.accept(err)
	})
	return p, r
}

// inReservation calls f with the context of the device that an address is of.
func (s *System) inReservation(p driver.Ptr, f func(o *context) error) driver.Result {
	return s.in(func(c *context) driver.Result {
		o := c.owner(p)
		if o == nil {
			return c.refuse(driver.InvalidValue, "%#x is in no reservation of addresses", uint64(p))
		}
		return c.accept(f(o))
	})
}

func (s *System) addressFree(p driver.Ptr, bytes int64) driver.Result {
	return s.inReservation(p, func(o *context) error { return o.dev.sim.FreeAddresses(uint64(p), bytes, "MemAddressFree") })
}

// memCreate takes memory. Work that is pending may free some, as in alloc.
func (s *System) memCreate(bytes int64, d driver.Device) (h driver.MemHandle, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		x, r := s.at(d)
		switch {
		case r != driver.Success:
			return c.refuse(r, "there is no device %d", d)
		case x.ctx == nil:
			return c.refuse(driver.InvalidDevice, "device %d has no context, of which its memory would be", d)
		case s.failing():
			return c.refuse(driver.OutOfMemory, "%d bytes asked; this allocation was told to fail", bytes)
		}
		by := s.maker("MemCreate")
		m, err := x.sim.Create(bytes, by)
		if r := c.accept(err); r == driver.OutOfMemory {
			if r := x.ctx.wait(x.ctx.tails()...); r != driver.Success {
				return r
			}
			m, err = x.sim.Create(bytes, by)
		}
		if r := c.accept(err); r != driver.Success {
			return r
		}
		h = driver.MemHandle(s.handle())
		s.memories[h] = &physical{x, m, bytes, by, s.taken()}
		return driver.Success
	})
	return h, r
}

// memory finds what a handle is of.
func (c *context) memory(h driver.MemHandle) (*physical, driver.Result) {
	if m := c.dev.sys.memories[h]; m != nil {
		return m, driver.Success
	}
	return nil, c.refuse(driver.InvalidValue, "there is no memory with the handle %#x, or not any more", uint64(h))
}

func (s *System) memRelease(h driver.MemHandle) driver.Result {
	return s.in(func(c *context) driver.Result {
		m, r := c.memory(h)
		if r != driver.Success {
			return r
		}
		delete(s.memories, h)
		return c.accept(m.dev.sim.ReleaseMemory(m.mem))
	})
}

// memMap maps memory of the device that the addresses are of; between devices it is not simulated.
func (s *System) memMap(p driver.Ptr, bytes, offset int64, h driver.MemHandle) driver.Result {
	return s.in(func(c *context) driver.Result {
		m, r := c.memory(h)
		if r != driver.Success {
			return r
		}
		o := c.owner(p)
		switch {
		case o == nil:
			return c.refuse(driver.InvalidValue, "%#x is in no reservation of addresses", uint64(p))
		case o.dev != m.dev:
			return c.refuse(driver.NotSupported, "memory of device %d is mapped at %#x, an address that was reserved with device %d current; the simulator maps memory of a device at its own addresses",
				m.dev.ordinal, uint64(p), o.dev.ordinal)
		}
		return c.accept(o.dev.sim.Map(uint64(p), bytes, offset, m.mem))
	})
}

func (s *System) memUnmap(p driver.Ptr, bytes int64) driver.Result {
	return s.inReservation(p, func(o *context) error { return o.dev.sim.Unmap(uint64(p), bytes) })
}

// setAccess opens and closes mapped memory to its own device. Peers are let in as to all memory, once access between the
// devices is enabled.
func (s *System) setAccess(p driver.Ptr, bytes int64, d driver.Device, a driver.Access) driver.Result {
	return s.in(func(c *context) driver.Result {
		by, r := s.at(d)
		o := c.owner(p)
		switch {
		case r != driver.Success:
			return c.refuse(r, "there is no device %d", d)
		case o == nil:
			return c.refuse(driver.InvalidValue, "%#x is in no reservation of addresses", uint64(p))
		case by != o.dev && !s.peerable():
			return c.refuse(driver.PeerAccessUnsupported, "%s cards do not reach each other's memory", s.card.Model)
		case a == driver.AccessRead:
			return c.refuse(driver.NotSupported, "memory that may be read only; the simulator has both or none")
		case a != driver.AccessNone && a != driver.AccessReadWrite:
			return c.refuse(driver.InvalidValue, "access %d; there are 0, 1 and 3", a)
		case by != o.dev:
			return c.accept(o.dev.sim.Mapped(uint64(p), bytes))
		}
		return c.accept(o.dev.sim.SetAccess(uint64(p), bytes, a == driver.AccessReadWrite))
	})
}

// dropMemories forgets the handles of a device's memory.
func (d *device) dropMemories() {
	for h, m := range d.sys.memories {
		if m.dev == d {
			delete(d.sys.memories, h)
		}
	}
}

// failing tells whether this allocation was told to fail.
func (s *System) failing() bool {
	if s.failIn == 0 {
		return false
	}
	s.failIn--
	return s.failIn == 0
}
