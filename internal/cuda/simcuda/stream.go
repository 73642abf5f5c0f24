package simcuda

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

func (c *context) newStream(flags uint32) *stream {
	st := &stream{ctx: c, index: c.streams, blocking: flags&driver.StreamNonBlocking == 0}
	c.streams++
	c.queues = append(c.queues, st)
	return st
}

// stream finds a stream by its handle; the named ones are those of the current context.
func (c *context) stream(h driver.Stream) (*stream, driver.Result) {
	s := c.dev.sys
	switch h {
	case 0, driver.StreamLegacy:
		return c.legacy, driver.Success
	case driver.StreamPerThread:
		st := c.threads[thread()]
		if st == nil {
			st = c.newStream(0)
			c.threads[thread()] = st
		}
		return st, driver.Success
	}
	st := s.streams[h]
	switch {
	case st == nil:
		return nil, c.refuse(driver.InvalidHandle, "there is no stream %#x, or not any more", uintptr(h))
	case st.ctx.err != driver.Success:
		return nil, st.ctx.err
	}
	return st, driver.Success
}

// streamCreate clamps the priority, as the driver does.
func (s *System) streamCreate(flags uint32, priority int) (h driver.Stream, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		if flags&^driver.StreamNonBlocking != 0 {
			return c.refuse(driver.InvalidValue, "stream flags %#x", flags)
		}
		st := c.newStream(flags)
		st.handle = driver.Stream(s.handle())
		s.streams[st.handle] = st
		h = st.handle
		return driver.Success
	})
	return h, r
}

// streamDestroy does not wait: what the stream holds still happens.
func (s *System) streamDestroy(h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		if h <= driver.StreamPerThread {
			return c.refuse(driver.InvalidHandle, "a default stream cannot be destroyed")
		}
		st, r := c.uncaptured(h, "the destruction of the stream")
		if r != driver.Success {
			return r
		}
		st.dead = true
		delete(s.streams, h)
		st.ctx.bury()
		return driver.Success
	})
}

// mark is the last work that waiting for the stream waits for.
func (st *stream) mark() *op {
	c := st.ctx
	if st != c.legacy {
		return st.last
	}
	return c.dev.sys.enqueue(c, st, note, nil)
}

func (s *System) streamSynchronize(h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		st, r := c.waitable(h, "StreamSynchronize")
		if r != driver.Success {
			return r
		}
		if r := st.ctx.wait(st.mark()); r != driver.Success {
			return r
		}
		c.follow(st.ctx)
		return c.err
	})
}

func (s *System) streamQuery(h driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		st, r := c.waitable(h, "StreamQuery")
		if r != driver.Success {
			return r
		}
		if st == c.legacy {
			for _, q := range c.queues {
				if q.blocking && q.last != nil && !q.last.done {
					return q.ctx.ask(q.last)
				}
			}
		}
		return st.ctx.ask(st.last)
	})
}

// streamWait holds a stream until what an event has recorded by now is done. The event may be of another device.
func (s *System) streamWait(h driver.Stream, e driver.Event) driver.Result {
	return s.in(func(c *context) driver.Result {
		return c.target(h, func(st *stream) driver.Result {
			ev, r := c.event(e)
			switch {
			case r != driver.Success:
				return r
			case ev.capture != nil || st.capture != nil:
				return c.waitCaptured(st, ev)
			case ev.record != nil:
				s.enqueue(c, st, mark, nil, ev.record)
			}
			return driver.Success
		})
	})
}

// event is a place in a stream. Its time is the virtual one at which the work before it ended.
type event struct {
	ctx    *context
	flags  uint32
	record *op // nil until it is recorded

	capture *capture // if it was recorded last in one
	tips    []*node  // what the stream had captured last then
}

func (c *context) event(h driver.Event) (*event, driver.Result) {
	e := c.dev.sys.events[h]
	switch {
	case e == nil:
		return nil, c.refuse(driver.InvalidHandle, "there is no event %#x, or not any more", uintptr(h))
	case e.ctx.err != driver.Success:
		return nil, e.ctx.err
	}
	return e, driver.Success
}

func (s *System) eventCreate(flags uint32) (h driver.Event, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		if flags&^(driver.EventBlockingSync|driver.EventDisableTiming) != 0 {
			return c.refuse(driver.InvalidValue, "event flags %#x", flags)
		}
		h = driver.Event(s.handle())
		s.timed = s.timed || flags&driver.EventDisableTiming == 0
		s.events[h] = &event{ctx: c, flags: flags}
		return driver.Success
	})
	return h, r
}

func (s *System) eventDestroy(h driver.Event) driver.Result {
	return s.in(func(c *context) driver.Result {
		if _, r := c.event(h); r != driver.Success {
			return r
		}
		delete(s.events, h)
		return driver.Success
	})
}

func (s *System) eventRecord(h driver.Event, sh driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		return c.target(sh, func(st *stream) driver.Result {
			e, r := c.event(h)
			switch {
			case r != driver.Success:
				return r
			case st.ctx != e.ctx:
				return c.refuse(driver.InvalidHandle, "event %#x is of device %d, stream %#x of device %d", uintptr(h), e.ctx.dev.ordinal, uintptr(sh), st.ctx.dev.ordinal)
			}
			e.record, e.capture, e.tips = nil, st.capture, slices.Clone(st.tips)
			if st.capture == nil {
				e.record = s.enqueue(c, st, mark, nil)
			}
			return driver.Success
		})
	})
}

func (s *System) eventSynchronize(h driver.Event) driver.Result {
	return s.in(func(c *context) driver.Result {
		e, r := c.event(h)
		if r == driver.Success {
			r = c.executed(e, h, "EventSynchronize")
		}
		if r != driver.Success {
			return r
		}
		if r := e.ctx.wait(e.record); r != driver.Success {
			return r
		}
		c.follow(e.ctx)
		return c.err
	})
}

func (s *System) eventQuery(h driver.Event) driver.Result {
	return s.in(func(c *context) driver.Result {
		e, r := c.event(h)
		if r == driver.Success {
			r = c.executed(e, h, "EventQuery")
		}
		if r != driver.Success {
			return r
		}
		return e.ctx.ask(e.record)
	})
}

func (s *System) eventElapsed(start, end driver.Event) (ms float32, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		var records [2]*op
		pending := false
		for i, h := range [2]driver.Event{start, end} {
			e, r := c.event(h)
			switch {
			case r != driver.Success:
				return r
			case e.capture != nil:
				return c.captured(e, h, "EventElapsedTime")
			case e.record == nil:
				return c.refuse(driver.InvalidHandle, "event %#x was never recorded", uintptr(h))
			case e.flags&driver.EventDisableTiming != 0:
				return c.refuse(driver.InvalidHandle, "event %#x was made without timing", uintptr(h))
			case e.ctx != c:
				return c.refuse(driver.InvalidHandle, "event %#x is of device %d, the current context of device %d", uintptr(h), e.ctx.dev.ordinal, c.dev.ordinal)
			}
			records[i] = e.record
			pending = pending || !e.record.done
		}
		if pending {
			return driver.NotReady
		}
		s.settle(records[:]...)
		ms = float32(float64(records[1].end-records[0].end) / 1e6)
		return driver.Success
	})
	return ms, r
}
