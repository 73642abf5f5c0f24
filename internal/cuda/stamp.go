package cuda

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// stamp is a point in a queue's work with its time. The driver tells it of the last recording of an event, so that the event
// serves again only when nothing refers to the stamp.
type stamp struct {
	log    *eventLog
	handle driver.Event
}

// Stamp implements [device.Timer].
func (q *queue) Stamp() (device.Stamp, error) {
	s, err := q.events.unstamped()
	if err == nil {
		err = q.do("cuEventRecord", func() driver.Result { return q.d.api.EventRecord(s.handle, q.stream) })
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// unstamped is a stamp that is yet to be recorded.
func (l *eventLog) unstamped() (*stamp, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, err := l.timedHandle()
	if err != nil {
		return nil, err
	}
	s := &stamp{l, h}
	runtime.AddCleanup(s, l.giveTimed, h)
	return s, nil
}

// timeSteps gets stamps for the beginnings of n steps and the end of the last.
func (q *queue) timeSteps(n int) error {
	for range n + 1 {
		s, err := q.events.unstamped()
		if err != nil {
			q.times = q.times[:0]
			return err
		}
		q.times = append(q.times, s)
	}
	return nil
}

// reach records that the plan under way is before step i, if it is timed. The context is current.
func (q *queue) reach(i int) driver.Result {
	if len(q.times) == 0 {
		return driver.Success
	}
	q.call = "cuEventRecord"
	return q.d.api.EventRecord(q.times[i].handle, q.stream)
}

// spans hands out the times of the plan that was under way.
func (q *queue) spans(to *[]device.Span) {
	for i := range len(q.times) - 1 {
		*to = append(*to, device.Span{Began: q.times[i], Ended: q.times[i+1]})
	}
	clear(q.times)
	q.times = q.times[:0]
}

// timedHandle takes an idle event with a time, or makes one. The caller holds l.mu.
func (l *eventLog) timedHandle() (h driver.Event, err error) {
	if n := len(l.timedIdle); n > 0 {
		h, l.timedIdle = l.timedIdle[n-1], l.timedIdle[:n-1]
		return h, nil
	}
	err = l.q.do("cuEventCreate", func() (r driver.Result) {
		h, r = l.q.d.api.EventCreate(driver.EventBlockingSync)
		return r
	})
	if err == nil {
		l.timed = append(l.timed, h)
	}
	return h, err
}

func (l *eventLog) giveTimed(h driver.Event) {
	l.mu.Lock()
	l.timedIdle = append(l.timedIdle, h)
	l.mu.Unlock()
}

// Done asks the driver.
func (s *stamp) Done() (bool, error) {
	d := s.log.q.d
	r := d.api.Do(d.ctx, func() driver.Result { return d.api.EventQuery(s.handle) })
	runtime.KeepAlive(s)
	if r == driver.NotReady {
		return false, nil
	}
	return r == driver.Success, d.failed("cuEventQuery", r)
}

// Wait implements [device.Waiter].
func (s *stamp) Wait() {
	d := s.log.q.d
	d.api.Do(d.ctx, func() driver.Result { return d.api.EventSynchronize(s.handle) })
	runtime.KeepAlive(s)
}

// await makes q wait for the point.
func (s *stamp) await(q *queue) error {
	if q == s.log.q {
		return nil
	}
	defer runtime.KeepAlive(s)
	return q.do("cuStreamWaitEvent", func() driver.Result { return q.d.api.StreamWaitEvent(q.stream, s.handle) })
}

// Since implements [device.Stamp], to the driver's half a microsecond.
func (s *stamp) Since(earlier device.Stamp) (time.Duration, error) {
	d := s.log.q.d
	from, ok := device.As[*stamp](earlier)
	if !ok || from.log.q.d != d {
		return 0, fmt.Errorf("%s: a time since a stamp of another device", d.info.Name)
	}
	var ms float32
	err := d.do("cuEventElapsedTime", func() (r driver.Result) {
		ms, r = d.api.EventElapsedTime(from.handle, s.handle)
		return r
	})
	runtime.KeepAlive(from)
	runtime.KeepAlive(s)
	return time.Duration(math.Round(float64(ms) * float64(time.Millisecond))), err
}

// HostTime implements [device.Clock] for a simulated GPU.
func (d *Device) HostTime() (time.Duration, bool) {
	if d.api.HostTime == nil {
		return 0, false
	}
	return time.Duration(d.api.HostTime(d.ctx)), true
}

// StampTime implements [device.Clock] for a simulated GPU.
func (d *Device) StampTime(of device.Stamp) (at, next time.Duration, err error) {
	s, ok := device.As[*stamp](of)
	if !ok || s.log.q.d != d || d.api.EventTime == nil {
		return 0, 0, fmt.Errorf("%s: the time of a stamp of another device", d.info.Name)
	}
	err = d.do("EventTime", func() driver.Result {
		ns, more, r := d.api.EventTime(s.handle)
		at, next = time.Duration(ns), time.Duration(more)
		return r
	})
	runtime.KeepAlive(s)
	return at, next, err
}
