package simcuda

import (
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// hostTime is the table's HostTime. With the real host's time, that since the last call counts too.
func (s *System) hostTime(h driver.Context) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(h)
	if c == nil {
		return 0
	}
	now := s.now(c)
	if s.cfg.RealHost && !s.left.IsZero() {
		now += int64(time.Since(s.left))
	}
	return now
}

// now is the host's time as far as it is known: steps that wait for a time of their own count as if they began at once.
func (s *System) now(c *context) int64 {
	now := c.time.host
	for i := s.first; i < len(s.steps); i++ {
		if s.steps[i].c == c {
			now += s.steps[i].ns
		}
	}
	return now
}

// eventTime is the table's EventTime.
func (s *System) eventTime(h driver.Event) (ns, next int64, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		e, r := c.event(h)
		switch {
		case r != driver.Success:
			return r
		case e.capture != nil:
			return c.captured(e, h, "EventTime")
		case e.record == nil:
			return c.refuse(driver.InvalidHandle, "event %#x was never recorded", uintptr(h))
		case !e.record.done:
			return driver.NotReady
		}
		s.settle(e.record)
		ns, next = e.record.end, max(e.record.end, e.record.next)
		return driver.Success
	})
	return ns, next, r
}
