package kineto

import (
	"cmp"
	"sort"
	"time"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// change is what a replay of the timeline does differently.
type change struct {
	without spans               // time of the host that is not spent
	free    func(c *event) bool // waits that do not wait
	scale   func(i int) float64 // factor on device[i]'s duration
}

// replay runs the window again with a change, and tells how much shorter it becomes, in nanoseconds; below zero where it does
// not. The model: the host does what it did, from call to call, and its threads shift together. What it launches begins when
// it is launched, its stream is free, and what it was seen to wait for on another stream is over, with the delay that was
// seen behind the last of these. A wait of the host ends with the work that it was seen to end with. Without a change this
// gives the recorded timeline, to the nanosecond.
func (a *analysis) replay(c change) int64 {
	r := replayer{analysis: a, change: c, begins: make([]int64, a.tail-a.first), shifts: make([]int64, a.tail-a.first), streams: map[uint16][2]int{}, passed: -1 << 62}
	from, to := a.callsOf(a.window)
	r.from, r.starts = from, make([]int64, to-from)
	for _, s := range a.items() {
		switch {
		case s.device:
			r.launchedNow(s.n)
		default:
			r.called(s.n)
		}
	}
	return r.saved()
}

// replayer is a replay under way. A shift is how much earlier than recorded something ends.
type replayer struct {
	*analysis
	change
	host    int64             // the host's shift by now
	begins  []int64           // of device[first+n]'s beginning
	shifts  []int64           // of its end
	starts  []int64           // shifts of calls, from the window's first on
	from    int               // the window's first call
	streams map[uint16][2]int // the last two events of each stream, the last first
	removed int               // spans of without that are over
	passed  int64             // until when the host was looked at
}

// holds tells a call that ends when the device has come so far: a wait, or a launch that the full queue holds up.
func (a *analysis) holds(call int) bool {
	return a.class(&a.Trace.host[call])&isWait != 0 || a.held[int32(call)]
}

// behind is how far the device is behind a launch whose length is the queue's doing.
const behind = 1_000_000

// findHeld finds the launches that a full queue holds up: long ones of kernels that begin much later.
func (a *analysis) findHeld() {
	a.held = map[int32]bool{}
	for i := a.first; i < a.tail; i++ {
		l := a.launched(i)
		if l != nil && a.device[i].kind == kernel && l.dur > longCall*1000 && a.device[i].start-l.end() > max(behind, l.dur) {
			a.held[a.launch[i]] = true
		}
	}
}

// item is a call of the host, or an event of the device, and when it is looked at: a wait when it ends, the rest when it
// begins.
type item struct {
	at     int64
	n      int32
	device bool
}

// items is the timeline of the window.
func (a *analysis) items() []item {
	if a.timeline != nil {
		return a.timeline
	}
	from, to := a.callsOf(a.window)
	calls := make([]item, 0, to-from)
	for i := from; i < to; i++ {
		e := &a.Trace.host[i]
		at := e.start
		if a.holds(i) {
			at = e.end()
		}
		calls = append(calls, item{at, int32(i), false})
	}
	sorting.By(calls, func(x, y item) int { return cmp.Compare(x.at, y.at) })
	all := make([]item, 0, len(calls)+a.tail-a.first)
	for i := a.first; i < a.tail; i++ {
		for len(calls) > 0 && calls[0].at <= a.device[i].start {
			all, calls = append(all, calls[0]), calls[1:]
		}
		all = append(all, item{a.device[i].start, int32(i), true})
	}
	a.timeline = append(all, calls...)
	return a.timeline
}

// callsOf are the bounds of the calls that begin within a window.
func (a *analysis) callsOf(w Window) (from, to int) {
	at := func(t int64) int {
		return sort.Search(len(a.Trace.host), func(i int) bool { return a.Trace.host[i].start >= t })
	}
	return at(w.Start), at(w.End)
}

// pass takes what is removed of the host's time before at off its timeline.
func (r *replayer) pass(at int64) {
	for ; r.removed < len(r.without) && r.without[r.removed].Start < at; r.removed++ {
		s := r.without[r.removed]
		r.host += max(min(s.End, at)-max(s.Start, r.passed), 0)
		r.passed = max(r.passed, min(s.End, at))
		if s.End > at {
			return
		}
	}
}

func (r *replayer) called(n int32) {
	e := &r.Trace.host[n]
	if !r.holds(int(n)) {
		r.pass(e.start)
		r.starts[int(n)-r.from] = r.host
		if r.free != nil && r.free(e) {
			r.host += max(e.dur-callCost, 0)
		}
		return
	}
	r.pass(e.end())
	if r.free != nil && r.free(e) {
		r.host += max(e.dur-callCost, 0)
		return
	}
	at, shift := r.awaited(e)
	if at < 0 {
		return
	}
	// The new end is no earlier than the work's, nor than the call's own cost behind its new start.
	r.host = min(shift, r.host+max(e.dur-callCost, 0))
	r.starts[int(n)-r.from] = r.host
}

// awaited is when what a call waited for happened, and its shift: the last end of work by the call's end, or for a launch
// that the queue held up, the last beginning; -1 where nothing happened within the call.
func (r *replayer) awaited(e *event) (at, shift int64) {
	at = -1
	if len(r.streams) > streamsLimit {
		return at, 0
	}
	wait := r.class(e)&isWait != 0
	for _, last := range r.streams {
		i := last[0]
		d := &r.device[i]
		when, s := d.end(), r.shifts[i-r.first]
		if !wait {
			when, s = d.start, r.begins[i-r.first]
		}
		if when >= e.start && when <= e.end() && when > at {
			at, shift = when, s
		}
	}
	return at, shift
}

// callCost is what a call costs that does not wait, in nanoseconds: HolisticTraceAnalysis counts on 5 to 20 µs for a launch.
const callCost = 5_000

func (r *replayer) launchedNow(n int32) {
	i := int(n)
	e := &r.device[i]
	shift, bound := int64(1<<62), int64(-1<<62)
	// Each constraint says when e might have begun; the last that was over before e began is what it waited for.
	consider := func(at, s int64) {
		at = min(at, e.start)
		if at > bound {
			bound = at
		}
		// It may begin as much earlier as the constraint does, and by the slack that it left.
		shift = min(shift, s+e.start-at)
	}
	own := false
	if l := r.launch[i]; l >= 0 {
		if n := int(l) - r.from; n >= 0 && n < len(r.starts) {
			consider(r.Trace.host[l].end(), r.starts[n])
			own = true
		}
	}
	last, ok := r.streams[e.track]
	if ok {
		consider(r.device[last[0]].end(), r.shifts[last[0]-r.first])
		own = true
	}
	if e.start-bound > kernelDelay {
		if o := r.elsewhere(e); o >= 0 {
			consider(r.device[o].end(), r.shifts[o-r.first])
			own = true
		}
	}
	if !own {
		shift, bound = 0, e.start
	}
	// The delay behind the last constraint stays: it is the device's.
	shift -= e.start - max(bound, -1<<61)
	dur := e.dur
	if r.scale != nil {
		dur = int64(float64(dur) * r.scale(i))
	}
	r.begins[i-r.first], r.shifts[i-r.first] = shift, shift+e.dur-dur
	if !ok {
		last[0] = i
	}
	r.streams[e.track] = [2]int{i, last[0]}
}

// elsewhere is the last event of another stream that was over when e began, -1 where there is none.
func (r *replayer) elsewhere(e *event) int {
	best := -1
	if len(r.streams) > streamsLimit {
		return best
	}
	for track, last := range r.streams {
		for _, i := range last {
			if end := r.device[i].end(); track != e.track && end <= e.start && (best < 0 || end > r.device[best].end()) {
				best = i
			}
		}
	}
	return best
}

// saved is how much shorter the window becomes. Where the host's marks are the steps, their new length is that of the host,
// but no less than what the device has to do for them; where the host runs ahead, it is the device's.
func (r *replayer) saved() int64 {
	if r.window != r.marked {
		last, end := int64(-1<<62), int64(-1<<62)
		for i, s := range r.shifts {
			e := &r.device[r.first+i]
			last, end = max(last, e.end()), max(end, e.end()-s)
		}
		return last - end
	}
	r.pass(r.window.End)
	end := r.window.End - r.host
	return r.window.End - max(end, r.window.Start+r.work())
}

// work is how long the device is at work for the window's launches in the new timeline, with what it takes from kernel to
// kernel; no more than the window where nothing is changed.
func (r *replayer) work() int64 {
	windows := make([]Window, 0, len(r.shifts))
	for i, s := range r.shifts {
		e := &r.device[r.first+i]
		dur := e.dur
		if r.scale != nil {
			dur = int64(float64(dur) * r.scale(r.first+i))
		}
		windows = append(windows, Window{e.end() - s - dur, e.end() - s})
	}
	most := r.window.Dur()
	if r.scale == nil && r.free == nil && len(r.without) == 0 {
		return most
	}
	return min(unionOf(windows).total()+r.causes[waitsKernel]+r.causes[waitsOther], most)
}

// gain replays a change: the time of a step that it saves, zero where it saves none.
func (a *analysis) gain(c change) time.Duration {
	return time.Duration(max(a.perStep(a.replay(c)), 0))
}
