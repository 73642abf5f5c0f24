package cuda

import (
	"errors"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// eventLog is the points recorded on a queue, in order. A driver's event serves again once the stream has passed it.
type eventLog struct {
	q *queue

	mu      sync.Mutex
	next    uint64     // number of the next point
	passed  uint64     // all points up to this one are done
	waiting []recorded // in order
	idle    []driver.Event

	timed     []driver.Event // of stamps, all
	timedIdle []driver.Event
}

// recorded is a point that may not have been passed.
type recorded struct {
	number uint64
	handle driver.Event
}

// event is a point in a queue's work.
type event struct {
	log    *eventLog
	number uint64
}

// Record marks the end of the work that the queue has been given.
func (q *queue) Record() (device.Mark, error) {
	e, err := q.record()
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (q *queue) record() (*event, error) {
	l := &q.events
	l.mu.Lock()
	defer l.mu.Unlock()
	h, err := l.handle()
	if err != nil {
		return nil, err
	}
	if err := q.do("cuEventRecord", func() driver.Result { return q.d.api.EventRecord(h, q.stream) }); err != nil {
		l.idle = append(l.idle, h)
		return nil, err
	}
	l.next++
	l.waiting = append(l.waiting, recorded{l.next, h})
	return &event{l, l.next}, nil
}

// handle takes an idle event of the driver, or makes one. The caller holds l.mu.
func (l *eventLog) handle() (h driver.Event, err error) {
	if n := len(l.idle); n > 0 {
		h, l.idle = l.idle[n-1], l.idle[:n-1]
		return h, nil
	}
	err = l.q.do("cuEventCreate", func() (r driver.Result) {
		h, r = l.q.d.api.EventCreate(driver.EventDisableTiming | driver.EventBlockingSync)
		return r
	})
	return h, err
}

// Done asks the driver, unless the point is known to be passed.
func (e *event) Done() (bool, error) {
	r := e.query()
	if r == driver.NotReady {
		return false, nil
	}
	return r == driver.Success, e.log.q.d.failed("cuEventQuery", r)
}

// query is Done with the driver's answer in place of an error.
func (e *event) query() driver.Result {
	l := e.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.number <= l.passed {
		return driver.Success
	}
	d, h := l.q.d, l.handleOf(e)
	r := d.api.Do(d.ctx, func() driver.Result { return d.api.EventQuery(h) })
	if r == driver.Success {
		l.pass(e.number)
	}
	return r
}

// Wait implements [device.Waiter].
func (e *event) Wait() { _ = e.wait() } // an error is one of the queue's work, which its next call reports

// wait waits for the driver, unless the point is known to be passed.
func (e *event) wait() driver.Result {
	l := e.log
	l.mu.Lock()
	if e.number <= l.passed {
		l.mu.Unlock()
		return driver.Success
	}
	h := l.handleOf(e)
	l.mu.Unlock()
	// Meanwhile another goroutine may see the point passed and record the handle again: then this waits a little longer.
	d := l.q.d
	r := d.api.Do(d.ctx, func() driver.Result { return d.api.EventSynchronize(h) })
	if r == driver.Success {
		l.mu.Lock()
		l.pass(e.number)
		l.mu.Unlock()
	}
	return r
}

// handleOf is the driver's event of a point that is not known to be passed: the marks' numbers run on. The caller holds
// l.mu.
func (l *eventLog) handleOf(e *event) driver.Event {
	return l.waiting[e.number-l.waiting[0].number].handle
}

// pass notes that a point is done, and so all before it. The caller holds l.mu.
func (l *eventLog) pass(number uint64) {
	l.passed = max(l.passed, number)
	n := 0
	for n < len(l.waiting) && l.waiting[n].number <= number {
		l.idle = append(l.idle, l.waiting[n].handle)
		n++
	}
	l.waiting = l.waiting[n:]
}

// allDone notes that every point is done.
func (l *eventLog) allDone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		l.pass(l.next)
	}
}

// await makes q wait for a point of this log.
func (l *eventLog) await(e *event, q *queue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.number <= l.passed || q == l.q {
		return nil
	}
	h := l.handleOf(e)
	return q.do("cuStreamWaitEvent", func() driver.Result { return q.d.api.StreamWaitEvent(q.stream, h) })
}

// close destroys the driver's events. The stream is idle.
func (l *eventLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(l.next)
	var err error
	for _, h := range slices.Concat(l.idle, l.timed) {
		err = errors.Join(err, l.q.do("cuEventDestroy", func() driver.Result { return l.q.d.api.EventDestroy(h) }))
	}
	l.idle, l.timed, l.timedIdle = nil, nil, nil
	return err
}
