package kineto

import (
	"cmp"
	"slices"
	"sort"
	"time"
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
	r := replayer{analysis: a, change: c, shifts: make([]int64, a.last-a.first), streams: map[uint16]int{}, latest: -1, passed: -1 << 62}
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
	host    int64          // the host's shift by now
	shifts  []int64        // of device[first+n]'s end
	starts  []int64        // shifts of calls, from the window's first on
	from    int            // the window's first call
	streams map[uint16]int // the last event of each stream
	latest  int            // the event that ends last so far
	removed int            // spans of without that are over
	passed  int64          // until when the host was looked at
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
		if a.class(e)&isWait != 0 {
			at = e.end()
		}
		calls = append(calls, item{at, int32(i), false})
	}
	slices.SortFunc(calls, func(x, y item) int { return cmp.Compare(x.at, y.at) })
	all := make([]item, 0, len(calls)+a.last-a.first)
	for i := a.first; i < a.last; i++ {
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
	if r.class(e)&isWait == 0 {
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
	work := r.awaited(e)
	if work < 0 {
		return
	}
	// The new end is no earlier than the work's, nor than the call's own cost behind its new start.
	began := e.start - r.host + min(callCost, e.dur)
	ended := max(e.end()-r.shifts[work-r.first], began)
	r.host = e.end() - ended
}

// awaited is the work that a wait ended with: the last that was over by its end, if that was within it; -1 where there is none.
func (r *replayer) awaited(e *event) int {
	best := -1
	for _, i := range r.streams {
		end := r.device[i].end()
		if end >= e.start && end <= e.end() && (best < 0 || end > r.device[best].end()) {
			best = i
		}
	}
	return best
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
	if prev, ok := r.streams[e.track]; ok {
		consider(r.device[prev].end(), r.shifts[prev-r.first])
		own = true
	}
	if r.latest >= 0 && e.start-bound > kernelDelay && r.device[r.latest].end() <= e.start {
		consider(r.device[r.latest].end(), r.shifts[r.latest-r.first])
		own = true
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
	r.shifts[i-r.first] = shift + e.dur - dur
	r.streams[e.track] = i
	if r.latest < 0 || e.end() > r.device[r.latest].end() {
		r.latest = i
	}
}

// catchesUp is how much of the window a device does nothing for the host's sake where it is the host that binds.
const catchesUp = 0.01

// saved is how much shorter the window becomes. Where the device is never out of work for the host's sake, the host only runs
// ahead, and the device's last event is what counts; else the last of both.
func (r *replayer) saved() int64 {
	r.pass(r.window.End)
	end := int64(-1 << 62)
	if r.share(r.hostIdle()) > catchesUp {
		end = r.window.End - r.host
	}
	last := int64(-1 << 62)
	for i, s := range r.shifts {
		if e := &r.device[r.first+i]; e.end() <= r.window.End {
			end, last = max(end, e.end()-s), max(last, e.end())
		}
	}
	if r.share(r.hostIdle()) > catchesUp {
		last = r.window.End
	}
	return last - end
}

// gain replays a change: the time of a step that it saves, zero where it saves none.
func (a *analysis) gain(c change) time.Duration {
	return time.Duration(max(a.perStep(a.replay(c)), 0))
}
