package cuda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// launchLog is the last launches of a queue, for errors that show later, maybe in a call of another queue.
type launchLog struct {
	mu      sync.Mutex
	serial  uint32 // of the last launch, from 1; written by the queue's calls only
	synced  uint32 // all launches up to this one have ended well
	entries [1 << 8]launched
	graphs  map[uint32]launched // launches of graphs, which report by these numbers in each run
	into    *[]uint32           // where their numbers go while they become one; the queue's calls alone use it
}

// launched is what is known of a launch.
type launched struct {
	serial uint32
	code   ir.Code
	own    string // the program's own kernel, in the place of a code
	traced bool
	site   callsite.Site
	path   string // of the first parameter among the operands
	others int    // parameters beside it
	graph  int    // launches that it is, where it is one of a graph
}

// after orders the serial numbers of launches, which begin anew after 2^32.
func after(a, b uint32) bool { return int32(a-b) > 0 }

func (l *launchLog) add(k *device.Kernel, p *device.Params) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serial++; l.serial == 0 {
		l.serial = 1 // 0 means none
	}
	e := &l.entries[l.serial%uint32(len(l.entries))]
	e.serial, e.code, e.own, e.traced, e.path, e.others, e.graph = l.serial, k.Op.Code, "", false, "", 0, 0
	if k.Name != "" {
		e.own = k.What()
	}
	if p != nil {
		if n := len(p.Paths); n > 0 {
			e.path, e.others = p.Paths[0], n-1
		}
		if p.Site != nil {
			e.site, e.traced = *p.Site, true
		}
	}
}

// addGraph notes that a graph of some launches is launched.
func (l *launchLog) addGraph(launches int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serial++; l.serial == 0 {
		l.serial = 1
	}
	l.entries[l.serial%uint32(len(l.entries))] = launched{serial: l.serial, graph: launches}
}

// keep lists the launches from now on that may report faults, to be found as long as their graph lives; nil ends that.
func (l *launchLog) keep(into *[]uint32) { l.into = into }

// reports notes that the last launch may report a fault.
func (l *launchLog) reports() {
	if l.into == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.graphs == nil {
		l.graphs = map[uint32]launched{}
	}
	l.graphs[l.serial] = l.entries[l.serial%uint32(len(l.entries))]
	*l.into = append(*l.into, l.serial)
}

// forget ends what keep began.
func (l *launchLog) forget(serials []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range serials {
		delete(l.graphs, s)
	}
}

// entry is a launch by its number; nil if it is too long ago. l.mu is held.
func (l *launchLog) entry(serial uint32) *launched {
	if e := &l.entries[serial%uint32(len(l.entries))]; e.serial == serial {
		return e
	}
	if e, ok := l.graphs[serial]; ok {
		return &e
	}
	return nil
}

// withdraw takes back the last launch, of which the driver has started nothing.
func (l *launchLog) withdraw() {
	l.mu.Lock()
	l.serial--
	l.mu.Unlock()
}

// ended notes that the launches up to one have ended well.
func (l *launchLog) ended(serial uint32) {
	l.mu.Lock()
	if after(serial, l.synced) {
		l.synced = serial
	}
	l.mu.Unlock()
}

// suspects counts the launches that may not have ended, and describes the last.
func (l *launchLog) suspects() (n int, last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = int(l.serial - l.synced); n > 0 {
		last = l.describe(l.serial)
	}
	return n, last
}

// find describes a launch by its number.
func (l *launchLog) find(serial uint32) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.describe(serial)
}

// labels reports whether a launch reads labels of classes.
func (l *launchLog) labels(serial uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(serial)
	if e == nil || e.own != "" {
		return false
	}
	switch e.code {
	case ir.CrossEntropy, ir.CrossEntropyGrad, ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad:
		return true
	}
	return false
}

// describe is find for callers that hold l.mu.
func (l *launchLog) describe(serial uint32) string {
	if e := l.entry(serial); e != nil {
		return e.String()
	}
	return fmt.Sprintf("a launch that was followed by %d others", l.serial-serial)
}

// String names an operation and where the program asked for it.
func (e *launched) String() string {
	if e.graph > 0 {
		return fmt.Sprintf("a captured step of %d launches", e.graph)
	}
	s := cmp.Or(e.own, e.code.String())
	if e.path != "" {
		s += " of " + e.path
	}
	if e.others > 0 {
		s += fmt.Sprintf(" and %d more", e.others)
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
	Label        bool   // of a class
	Launch       string // the operation and its place
}

// Error says which index, and where.
func (e *IndexError) Error() string { return blame(e) }

// Blame implements [device.Blamed].
func (e *IndexError) Blame() (launch, what string) {
	what, entries := "index", "entries"
	if e.Label {
		what, entries = "label", "classes"
	}
	what = fmt.Sprintf("%s %d is out of range: there are ", what, e.Index)
	if e.Bound == 0 {
		return e.Launch, what + "no " + entries
	}
	return e.Launch, what + fmt.Sprintf("%d %s, 0 to %d", e.Bound, entries, e.Bound-1)
}

func blame(e device.Blamed) string {
	launch, what := e.Blame()
	return launch + ": " + what
}

// LateError is an error of work that a device was given earlier.
type LateError struct {
	Err     error
	Last    []string // of each queue that may have had the work, the last launch before the error showed
	Pending int      // launches since those queues were last known to be well
}

// Error says what happened, and in which launches it may have.
func (e *LateError) Error() string { return blame(e) }

// Blame implements [device.Blamed].
func (e *LateError) Blame() (launch, what string) {
	switch {
	case e.Pending == 1:
		return e.Last[0], e.Err.Error()
	case len(e.Last) == 1:
		launch = fmt.Sprintf("one of %d launches, the last of them %s", e.Pending, e.Last[0])
	default:
		launch = fmt.Sprintf("one of %d launches on %d queues, the last of each %s", e.Pending, len(e.Last), strings.Join(e.Last, " and "))
	}
	return launch, e.Err.Error() + "; WARPLINE_BLOCKING=1 tells which"
}

// Unwrap returns the driver's error.
func (e *LateError) Unwrap() error { return e.Err }

// loss is the error that a device's context stays in. All its queues meet it, and one of them reports it.
type loss struct {
	mu     sync.Mutex
	err    error
	queues []*queue // that are open
}

func (l *loss) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *loss) opened(q *queue) {
	l.mu.Lock()
	l.queues = append(l.queues, q)
	l.mu.Unlock()
}

func (l *loss) closed(q *queue) {
	l.mu.Lock()
	l.queues = slices.DeleteFunc(l.queues, func(o *queue) bool { return o == q })
	l.mu.Unlock()
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

// failed makes the error of a call. One that the context stays in is told in full once; later calls, of any queue, refer
// to it. It is that of an earlier launch: the driver does not say of which queue.
func (d *Device) failed(call string, r driver.Result) error {
	if !r.Sticky() {
		return d.check(call, r)
	}
	l := &d.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return d.outOfUse(l.err)
	}
	late := &LateError{Err: d.check(call, r)}
	for _, q := range l.queues {
		if n, last := q.log.suspects(); n > 0 {
			late.Pending += n
			late.Last = append(late.Last, last)
		}
	}
	l.err = late
	if late.Pending == 0 {
		l.err = fmt.Errorf("%w; all launches so far have ended well: the cause is unknown", late.Err)
	}
	return l.err
}
