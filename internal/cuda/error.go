package cuda

import (
	"fmt"
	"sync"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// check makes an error of a result, with what a simulated GPU has to say of it.
func (d *Device) check(call string, r driver.Result) error {
	if r == driver.Success {
		return nil
	}
	e := &driver.Error{Call: call, Result: r}
	if d.api.Explain != nil && d.ctx != 0 {
		d.api.Do(d.ctx, func() driver.Result {
			e.Detail = d.api.Explain()
			return driver.Success
		})
	}
	return e
}

// launchLog is the last launches of a queue, for errors that show later.
type launchLog struct {
	serial  uint32 // of the last launch, from 1
	synced  uint32 // all launches up to this one have ended well
	entries [1 << 8]launched
}

// launched is what is known of a launch.
type launched struct {
	serial uint32
	code   ir.Code
	traced bool
	site   callsite.Site
	module string
}

// after orders the serial numbers of launches, which begin anew after 2^32.
func after(a, b uint32) bool { return int32(a-b) > 0 }

func (l *launchLog) add(code ir.Code, p *device.Params) {
	if l.serial++; l.serial == 0 {
		l.serial = 1 // 0 means none
	}
	e := &l.entries[l.serial%uint32(len(l.entries))]
	e.serial, e.code, e.traced, e.module = l.serial, code, false, ""
	if p != nil {
		e.module = p.Module
		if p.Site != nil {
			e.site, e.traced = *p.Site, true
		}
	}
}

// find describes a launch by its number.
func (l *launchLog) find(serial uint32) string {
	if e := &l.entries[serial%uint32(len(l.entries))]; e.serial == serial {
		return e.String()
	}
	return fmt.Sprintf("a launch that was followed by %d others", l.serial-serial)
}

// String names an operation and where the program asked for it.
func (e *launched) String() string {
	s := e.code.String()
	if e.module != "" {
		s += " of " + e.module
	}
	if e.traced {
		s += " at " + e.site.String()
	}
	return s
}

// IndexError is an index out of range that a kernel met. It shows when the host next waits; the elements concerned were
// skipped.
type IndexError struct {
	Index, Bound int64
	Launch       string // the operation and its place
}

// Error says which index, and where.
func (e *IndexError) Error() string { return blame(e) }

// Blame implements [device.Blamed].
func (e *IndexError) Blame() (launch, what string) {
	if e.Bound == 0 {
		return e.Launch, fmt.Sprintf("index %d is out of range: there are no entries", e.Index)
	}
	return e.Launch, fmt.Sprintf("index %d is out of range: there are %d entries, 0 to %d", e.Index, e.Bound, e.Bound-1)
}

func blame(e device.Blamed) string {
	launch, what := e.Blame()
	return launch + ": " + what
}

// LateError is an error of work that a queue was given earlier.
type LateError struct {
	Err     error
	Last    string // the last launch before it showed
	Pending int    // launches since the queue was last known to be well
}

// Error says what happened, and in which launches it may have.
func (e *LateError) Error() string { return blame(e) }

// Blame implements [device.Blamed].
func (e *LateError) Blame() (launch, what string) {
	if e.Pending <= 1 {
		return e.Last, e.Err.Error()
	}
	return fmt.Sprintf("one of %d launches, the last of them %s", e.Pending, e.Last), e.Err.Error() + "; WARPLINE_BLOCKING=1 tells which"
}

// Unwrap returns the driver's error.
func (e *LateError) Unwrap() error { return e.Err }

// loss is the error that a device's context stays in. All its queues meet it, and one of them reports it.
type loss struct {
	mu  sync.Mutex
	err error
}

func (l *loss) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (d *Device) outOfUse(err error) error { return &lostError{d.info.Name, err} }

// lostError implements [device.Lost].
type lostError struct {
	name string
	err  error
}

func (e *lostError) Error() string {
	return e.name + " is out of use since an earlier error: " + e.err.Error()
}
func (e *lostError) Unwrap() error { return e.err }
func (e *lostError) OutOfUse()     {}

// outside makes the error of a call that belongs to no queue, which may be the first to meet a launch's.
func (d *Device) outside(call string, r driver.Result) error {
	err := d.check(call, r)
	if !r.Sticky() {
		return err
	}
	if lost := d.lost.get(); lost != nil {
		return d.outOfUse(lost)
	}
	return fmt.Errorf("%w; an earlier launch is the cause, WARPLINE_BLOCKING=1 tells which", err)
}

// failed makes the error of a call on the stream. An error that the context stays in is told in full once; later calls,
// of any queue, refer to it.
func (q *queue) failed(call string, r driver.Result) error {
	if !r.Sticky() {
		return q.d.check(call, r)
	}
	l := &q.d.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return q.d.outOfUse(l.err)
	}
	l.err = q.d.check(call, r)
	if n := int(q.log.serial - q.log.synced); n > 0 {
		l.err = &LateError{Err: l.err, Last: q.log.find(q.log.serial), Pending: n}
	}
	return l.err
}
