package simcuda

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

func (s *System) retain(d driver.Device) (driver.Context, driver.Result) {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return 0, r
	}
	x, r := s.at(d)
	if r != driver.Success {
		return 0, r
	}
	if x.ctx == nil {
		x.open()
	}
	x.retains++
	return x.ctx.handle, driver.Success
}

func (d *device) open() {
	c := &context{dev: d, handle: driver.Context(d.sys.handle()), threads: map[uint64]*stream{}, allocs: map[driver.Ptr]*allocation{}}
	c.legacy = c.newStream(0)
	d.ctx = c
}

// release gives a retain back; the last one ends the context.
func (s *System) release(d driver.Device) driver.Result {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return r
	}
	x, r := s.at(d)
	switch {
	case r != driver.Success:
		return r
	case x.retains == 0:
		s.why = fmt.Sprintf("the primary context of device %d is released more often than it was retained", d)
		return driver.InvalidContext
	}
	if x.retains--; x.retains == 0 && x.ctx != nil {
		return x.close("the release of the context")
	}
	return driver.Success
}

// reset ends the context, with whatever error it is in. Retains outlive it, and the next one begins a new context.
func (s *System) reset(d driver.Device) driver.Result {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return r
	}
	x, r := s.at(d)
	if r != driver.Success || x.ctx == nil {
		return r
	}
	return x.close("the reset of the device")
}

// close waits for the context's work and frees all it has.
func (d *device) close(by string) driver.Result {
	s, c := d.sys, d.ctx
	s.force(c.tails()...)
	s.ended(c)
	s.abandon(c)
	c.gone, d.ctx = true, nil
	for h, m := range s.modules {
		if m.ctx == c {
			delete(s.modules, h)
			m.gone = true
		}
	}
	for h, f := range s.funcs {
		if f.mod.ctx == c {
			delete(s.funcs, h)
		}
	}
	for h, st := range s.streams {
		if st.ctx == c {
			delete(s.streams, h)
		}
	}
	for h, e := range s.events {
		if e.ctx == c {
			delete(s.events, h)
		}
	}
	for _, o := range s.devices {
		if o.ctx != nil {
			o.ctx.dropPeer(c)
		}
	}
	d.dropMemories()
	if err := s.freeHost(c); err != nil {
		s.why = err.Error()
		return driver.Unknown
	}
	if err := d.sim.Reset(); err != nil {
		s.why = fmt.Sprintf("%s: %v", by, err)
		return driver.Unknown
	}
	return driver.Success
}

// setFlags takes the scheduling flags of cuda.h; waiting costs nothing here.
func (s *System) setFlags(d driver.Device, flags uint32) driver.Result {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return r
	}
	x, r := s.at(d)
	if r != driver.Success {
		return r
	}
	if flags&^0x3f != 0 {
		return driver.InvalidValue
	}
	x.flags = flags
	return driver.Success
}

// find is the context of a handle, nil if there is none.
func (s *System) find(h driver.Context) *context {
	for _, d := range s.devices {
		if d.ctx != nil && d.ctx.handle == h {
			return d.ctx
		}
	}
	return nil
}

func (s *System) setCurrent(h driver.Context) driver.Result {
	r := s.enter()
	defer s.mu.Unlock()
	if r != driver.Success {
		return r
	}
	if h == 0 {
		delete(s.current, thread())
		return driver.Success
	}
	c := s.find(h)
	if c == nil {
		s.why = fmt.Sprintf("there is no context %#x, or not any more", uintptr(h))
		return driver.InvalidContext
	}
	s.current[thread()] = c
	return driver.Success
}

func (s *System) getCurrent() (driver.Context, driver.Result) {
	r := s.enter()
	defer s.mu.Unlock()
	if c := s.current[thread()]; r == driver.Success && c != nil {
		return c.handle, r
	}
	return 0, r
}

func (s *System) ctxSynchronize() driver.Result {
	return s.in(func(c *context) driver.Result {
		if r := c.uncapturing(); r != driver.Success {
			return r
		}
		return c.wait(c.tails()...)
	})
}

func (s *System) enablePeer(peer driver.Context) driver.Result {
	return s.in(func(c *context) driver.Result {
		p := s.find(peer)
		switch {
		case p == nil:
			return c.refuse(driver.InvalidContext, "there is no context %#x", uintptr(peer))
		case p == c:
			return c.refuse(driver.InvalidDevice, "device %d is no peer of itself", c.dev.ordinal)
		case !s.peerable():
			return c.refuse(driver.PeerAccessUnsupported, "%s cards do not reach each other's memory", s.card.Model)
		}
		for _, q := range c.peers {
			if q == p {
				return driver.PeerAlreadyEnabled
			}
		}
		c.setPeers(append(c.peers, p))
		return driver.Success
	})
}

func (c *context) setPeers(list []*context) {
	c.peers = list
	sims := make([]*gpusim.Device, len(list))
	for i, p := range list {
		sims[i] = p.dev.sim
	}
	c.dev.sim.SetPeers(sims)
}

func (c *context) dropPeer(gone *context) {
	var rest []*context
	for _, p := range c.peers {
		if p != gone {
			rest = append(rest, p)
		}
	}
	if len(rest) != len(c.peers) {
		c.setPeers(rest)
	}
}

// priorityRange is that of cards of compute capability 7.0 and later. Priorities change no order here.
func (s *System) priorityRange() (least, greatest int, r driver.Result) {
	r = s.in(func(*context) driver.Result { return driver.Success })
	if r != driver.Success {
		return 0, 0, r
	}
	return 0, greatestPriority, r
}

const greatestPriority = -5
