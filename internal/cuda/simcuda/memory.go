package simcuda

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

type allocation struct {
	bytes   int64
	by      string // the call that made it
	number  int    // among all of the machine
	freeing bool   // a stream will free it
}

// accept turns an answer of the simulator into the driver's. A fault of the device is the context's for good.
func (c *context) accept(err error) driver.Result {
	var (
		fault  *gpusim.Fault
		refuse *gpusim.Error
	)
	switch {
	case err == nil:
		return driver.Success
	case errors.As(err, &fault):
		c.fail(driver.Result(fault.Code), fault.Error())
		return c.err
	case errors.As(err, &refuse):
		return c.refuse(driver.Result(refuse.Code), "%s", refuse.Msg)
	}
	return c.refuse(driver.Unknown, "%v", err)
}

func (s *System) memInfo() (free, total int64, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		total = c.dev.sim.Card.Memory
		free = total - c.dev.sim.Used()
		return driver.Success
	})
	return free, total, r
}

// addresses is how many bytes the addresses of a card name.
const addresses = 1 << 49

// alloc reserves memory. Work that is pending may free some: it is waited for when there is too little.
func (c *context) alloc(bytes int64, call string) (driver.Ptr, driver.Result) {
	s := c.dev.sys
	if bytes <= 0 || bytes > addresses {
		return 0, c.refuse(driver.InvalidValue, "an allocation of %d bytes", bytes)
	}
	if s.failing() {
		return 0, c.refuse(driver.OutOfMemory, "%d bytes asked; this allocation was told to fail", bytes)
	}
	call = s.maker(call)
	addr, err := c.dev.sim.Alloc(int(bytes), call)
	if r := c.accept(err); r == driver.OutOfMemory {
		if r := c.wait(c.tails()...); r != driver.Success {
			return 0, r
		}
		addr, err = c.dev.sim.Alloc(int(bytes), call)
	}
	if r := c.accept(err); r != driver.Success {
		return 0, r
	}
	c.allocs[driver.Ptr(addr)] = &allocation{bytes: bytes, by: call, number: s.taken()}
	return driver.Ptr(addr), driver.Success
}

func (s *System) memAlloc(bytes int64) (p driver.Ptr, r driver.Result) {
	r = s.in(func(c *context) (r driver.Result) {
		if r := c.quiet("MemAlloc"); r != driver.Success {
			return r
		}
		p, r = c.alloc(bytes, "MemAlloc")
		return r
	})
	return p, r
}

// allocated finds what Alloc returned, of any device.
func (c *context) allocated(p driver.Ptr) (*context, *allocation, driver.Result) {
	if o := c.owner(p); o != nil {
		if a := o.allocs[p]; a != nil && !a.freeing {
			return o, a, driver.Success
		}
		return nil, nil, c.refuse(driver.InvalidValue, "%#x is not the start of a live allocation: %s", uint64(p), o.dev.sim.Describe(uint64(p)))
	}
	return nil, nil, c.refuse(driver.InvalidValue, "%#x is not the start of a live allocation", uint64(p))
}

// owner is the context whose device has an address; nil without one.
func (c *context) owner(p driver.Ptr) *context {
	for _, d := range c.dev.sys.devices {
		if d.sim.Owns(uint64(p)) {
			return d.ctx
		}
	}
	return nil
}

// memFree waits for all work of the device that the memory is on, as the driver does.
func (s *System) memFree(p driver.Ptr) driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.quiet("MemFree, which waits"); r != driver.Success {
			return r
		}
		o, _, r := c.allocated(p)
		if r != driver.Success {
			c.misused(DoubleFree, "MemFree", p)
			return r
		}
		if r := o.wait(o.tails()...); r != driver.Success {
			return r
		}
		delete(o.allocs, p)
		return o.accept(o.dev.sim.Free(uint64(p), s.maker("MemFree")))
	})
}

// memAllocAsync gives an address at once and memory in the order of the stream.
func (s *System) memAllocAsync(bytes int64, h driver.Stream) (p driver.Ptr, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		st, r := c.uncaptured(h, "an allocation in the order of the stream: memory of graphs is not simulated")
		if r != driver.Success {
			return r
		}
		o := st.ctx
		if p, r = o.alloc(bytes, "MemAllocAsync"); r != driver.Success {
			return r
		}
		if !s.cfg.LateEffects {
			return driver.Success
		}
		addr, n := uint64(p), int(bytes)
		if r := o.accept(o.dev.sim.Annotate(addr, n, false, "MemAllocAsync, whose place in its stream is not reached")); r != driver.Success {
			return r
		}
		s.enqueue(c, st, mark, func() cost {
			o.check(o.dev.sim.Annotate(addr, n, true, "MemAllocAsync"), "MemAllocAsync")
			return cost{}
		})
		return driver.Success
	})
	return p, r
}

// memFreeAsync frees in the order of the stream.
func (s *System) memFreeAsync(p driver.Ptr, h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		st, r := c.uncaptured(h, "a free in the order of the stream: memory of graphs is not simulated")
		if r != driver.Success {
			return r
		}
		o, a, r := c.allocated(p)
		if r != driver.Success {
			c.misused(DoubleFree, "MemFreeAsync", p)
			return r
		}
		by := s.maker("MemFreeAsync")
		a.freeing = true
		s.enqueue(c, st, mark, func() cost {
			delete(o.allocs, p)
			o.check(o.dev.sim.Free(uint64(p), by), "MemFreeAsync")
			return cost{}
		})
		return driver.Success
	})
}

// check fails the context when work that had been accepted cannot be done.
func (c *context) check(err error, call string) {
	if err == nil {
		return
	}
	r := driver.IllegalAddress
	var fault *gpusim.Fault
	if errors.As(err, &fault) {
		r = driver.Result(fault.Code)
	}
	c.fail(r, fmt.Sprintf("%s, when it came to its turn: %v", call, err))
}

// annotate is the table's Annotate. It never disturbs a capture: no card knows of it.
func (s *System) annotate(p driver.Ptr, bytes int64, state driver.State, h driver.Stream, tag string) driver.Result {
	return s.in(func(c *context) driver.Result {
		st, r := c.stream(h)
		if r != driver.Success {
			return r
		}
		o := c.owner(p)
		if o == nil || bytes < 0 {
			return c.refuse(driver.InvalidValue, "%d bytes at %#x are not in a live allocation", bytes, uint64(p))
		}
		if r := c.accept(o.dev.sim.Reserved(uint64(p), int(bytes))); r != driver.Success {
			return r
		}
		c.give(st, &noteTask{o, p, int(bytes), state, tag})
		return driver.Success
	})
}
