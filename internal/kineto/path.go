package kineto

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Stage is what a part of the critical path is spent with.
type Stage uint8

// The stages.
const (
	OnHost        Stage = iota // the host does something other than the following
	OnLoader                   // the host waits for a batch
	OnMemoryCall               // the host allocates, frees or loads code
	OnWaking                   // the host comes out of a wait whose work is over
	OnLaunch                   // what was launched, or may begin, begins
	OnKernel                   // a kernel computes
	OnCopy                     // memory is copied or set
	OnCommunicate              // a kernel of communication runs, or waits for other ranks
	stages
)

var stageTexts = [stages]string{"the host", "the loader", "calls that allocate, free or load code", "the host coming out of waits", "launches under way", "kernels", "copies", "communication"}

// String is the stage in words.
func (s Stage) String() string { return stageTexts[min(s, stages-1)] }

// Part is a part of the critical path: nanoseconds of a stage, and of which kernel where it is one.
type Part struct {
	Stage Stage
	Name  string // of the kernel or the copy; "" of others
	NS    int64
}

// leg is how a kernel of communication came to begin: back to the one before on the critical path, or to the window's start.
type leg struct {
	of    int32 // Trace.Collectives
	from  int32 // likewise; -1: the window's start
	spent [stages]int64
}

// walker goes back over the timeline from what ended to what it had waited for: a kernel for its launch, for its stream, or,
// where it began long after both, for what ended last anywhere; the host, for the work whose end its last wait saw.
type walker struct {
	*analysis
	before []int32 // of device[first+i], the one before on its stream; -1
	last   []int32 // of device[first+i], what ended last of all that began before; -1
	waits  []wait  // by end
	early  int     // waits[:early] were not come by yet
	at     map[collectiveAt]int32
	spent  func(s Stage, i int32, ns int64) // is told of each part; i is of the device, or -1
}

type wait struct {
	Window
	work int32 // whose end it saw; -1
}

type collectiveAt struct {
	device int
	stream int64
	start  int64
}

func (a *analysis) walker() *walker {
	w := &walker{analysis: a, at: map[collectiveAt]int32{}}
	streams := map[uint16]int32{}
	latest := int32(-1)
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		prev, ok := streams[e.track]
		if !ok {
			prev = -1
		}
		w.before, w.last = append(w.before, prev), append(w.last, latest)
		streams[e.track] = int32(i)
		if latest < 0 || e.end() > a.device[latest].end() {
			latest = int32(i)
		}
	}
	w.findWaits()
	for i := range a.Collectives {
		c := &a.Collectives[i]
		w.at[collectiveAt{c.Device, c.Stream, c.Start}] = int32(i)
	}
	return w
}

// findWaits finds the host's waits and whose end they saw.
func (w *walker) findWaits() {
	ends := make([]int32, 0, w.analysis.last-w.first)
	for i := w.first; i < w.analysis.last; i++ {
		ends = append(ends, int32(i))
	}
	end := func(i int32) int64 { return w.device[i].end() }
	sorting.By(ends, func(a, b int32) int { return cmp.Compare(end(a), end(b)) })
	from, to := w.callsOf(w.window)
	for n := from; n < to; n++ {
		e := &w.Trace.host[n]
		if w.class(e)&isWait == 0 {
			continue
		}
		one := wait{Window{e.start, e.end()}, -1}
		if i := sort.Search(len(ends), func(i int) bool { return end(ends[i]) > one.End }); i > 0 && end(ends[i-1]) >= one.Start {
			one.work = ends[i-1]
		}
		w.waits = append(w.waits, one)
	}
	// A copy of pageable memory holds the host until it is over.
	for i := w.first; i < w.analysis.last; i++ {
		if e := &w.device[i]; e.kind == copying {
			if l := w.launched(i); l != nil && l.start >= w.window.Start && e.end() <= l.end() && l.start <= e.start {
				w.waits = append(w.waits, wait{Window{l.start, l.end()}, int32(i)})
			}
		}
	}
	sorting.By(w.waits, func(a, b wait) int { return cmp.Compare(a.End, b.End) })
}

// back goes back from the end of an event: to the next event of the device, or to the host at a time; neither (-1, -1) at
// the window's start.
func (w *walker) back(i int32) (next int32, host int64) {
	e := &w.device[i]
	w.spent(w.stage(e), i, e.dur)
	return w.begin(i)
}

// begin goes back from the beginning of an event.
func (w *walker) begin(i int32) (next int32, host int64) {
	e := &w.device[i]
	bound, next, host := int64(-1<<62), int32(-1), int64(-1)
	if l := w.launched(int(i)); l != nil && l.start >= w.window.Start {
		bound, host = min(l.end(), e.start), min(l.end(), e.start)
	}
	if p := w.before[int(i)-w.first]; p >= 0 && min(w.device[p].end(), e.start) >= bound {
		bound, next, host = min(w.device[p].end(), e.start), p, -1
	}
	if p := w.last[int(i)-w.first]; p >= 0 && e.start-bound > kernelDelay && w.device[p].end() <= e.start && w.device[p].end() > bound {
		bound, next, host = w.device[p].end(), p, -1
	}
	w.spent(OnLaunch, -1, e.start-max(bound, w.window.Start))
	return next, host
}

func (w *walker) stage(e *event) Stage {
	switch {
	case w.class(e)&isComm != 0:
		return OnCommunicate
	case e.kind != kernel:
		return OnCopy
	}
	return OnKernel
}

// hosted goes back from a time of the host to the event of the device whose end it had waited for; -1 at the window's start.
func (w *walker) hosted(at int64) (next int32) {
	for {
		i := sort.Search(w.early, func(i int) bool { return w.waits[i].End > at }) - 1
		if w.early = max(i, 0); i < 0 {
			w.passed(Window{w.window.Start, at})
			return -1
		}
		one := w.waits[i]
		w.passed(Window{one.End, at})
		if one.work >= 0 {
			w.spent(OnWaking, -1, one.End-w.device[one.work].end())
			return one.work
		}
		w.passed(one.Window)
		at = one.Start
	}
}

// passed tells what the host did in a stretch.
func (w *walker) passed(in Window) {
	rest := spans{Window{max(in.Start, w.window.Start), in.End}}
	if rest[0].Dur() <= 0 {
		return
	}
	for _, s := range []struct {
		stage Stage
		in    spans
	}{{OnLoader, w.loader}, {OnMemoryCall, w.memory}} {
		part := rest.both(touching(s.in, rest[0]))
		w.spent(s.stage, -1, part.total())
		if rest = rest.without(part); len(rest) == 0 {
			return
		}
	}
	w.spent(OnHost, -1, rest.total())
}

// path is the critical path of the window, the longest parts first.
func (w *walker) path() []Part {
	type key struct {
		stage Stage
		name  uint32
	}
	sums := map[key]int64{}
	w.spent = func(s Stage, i int32, ns int64) {
		k := key{stage: s}
		if i >= 0 {
			k.name = w.device[i].name
		}
		sums[k] += max(ns, 0)
	}
	w.early = len(w.waits)
	next, host := w.end()
	for next >= 0 || host >= 0 {
		if next >= 0 {
			next, host = w.back(next)
		} else {
			next, host = w.hosted(host), -1
		}
	}
	var parts []Part
	for k, ns := range sums {
		if ns > 0 {
			p := Part{Stage: k.stage, NS: ns}
			if k.name != 0 {
				p.Name = w.names.names[k.name]
			}
			parts = append(parts, p)
		}
	}
	sorting.By(parts, longest)
	return parts
}

func longest(a, b Part) int {
	return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Name, b.Name))
}

// end is what the window ends with: the host where its marks are the steps; where it runs ahead, the device.
func (w *walker) end() (next int32, host int64) {
	if w.window == w.marked {
		return -1, w.window.End
	}
	next = -1
	for i := w.first; i < w.analysis.last; i++ {
		if e := &w.device[i]; e.end() <= w.window.End && (next < 0 || e.end() > w.device[next].end()) {
			next = int32(i)
		}
	}
	return next, -1
}

// legs are those of the window's collectives, by their index.
func (w *walker) legs() []leg {
	var all []leg
	for i := w.first; i < w.analysis.last; i++ {
		c := w.collective(int32(i))
		if c < 0 {
			continue
		}
		l := leg{of: c, from: -1}
		w.spent = func(s Stage, _ int32, ns int64) { l.spent[s] += max(ns, 0) }
		w.early = len(w.waits)
		next, host := w.begin(int32(i))
		for next >= 0 || host >= 0 {
			if next < 0 {
				next, host = w.hosted(host), -1
				continue
			}
			if l.from = w.collective(next); l.from >= 0 {
				break
			}
			next, host = w.back(next)
		}
		all = append(all, l)
	}
	sorting.By(all, func(a, b leg) int { return cmp.Compare(a.of, b.of) })
	return all
}

// collective is the index in Collectives of an event of the device; -1 where it is none.
func (w *walker) collective(i int32) int32 {
	e := &w.device[i]
	if e.kind != kernel || w.class(e)&isComm == 0 {
		return -1
	}
	row := w.tracks[e.track]
	if n, ok := w.at[collectiveAt{row.device, row.stream, e.start}]; ok {
		return n
	}
	return -1
}

// pathLimit is how many parts of the critical path are told one by one.
const pathLimit = 12

// pathRow is a part of the critical path, of a step where steps are marked.
type pathRow struct {
	Rank  *int    `json:"rank,omitempty"` // of the job, where several are compared
	Stage string  `json:"stage"`
	Name  string  `json:"name,omitempty"`
	US    float64 `json:"us"`
	Share float64 `json:"share"`
}

// pathRows are the longest parts, as those of one of so many steps.
func pathRows(parts []Part, steps int) []pathRow {
	var all int64
	for _, p := range parts {
		all += p.NS
	}
	rows := []pathRow{}
	for _, p := range parts[:min(len(parts), pathLimit)] {
		rows = append(rows, pathRow{Stage: p.Stage.String(), Name: p.Name, US: us(p.NS / int64(max(steps, 1))), Share: ratio(p.NS, all)})
	}
	return rows
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// pathText is the critical path in a sentence: the stages, with the longest kernel.
func pathText(parts []Part) string {
	var all int64
	var by [stages]Part
	for _, p := range parts { // the longest first
		if by[p.Stage].Name == "" {
			by[p.Stage].Name = p.Name
		}
		by[p.Stage].Stage, by[p.Stage].NS = p.Stage, by[p.Stage].NS+p.NS
		all += p.NS
	}
	sums := slices.DeleteFunc(by[:], func(p Part) bool { return ratio(p.NS, all) < 0.01 })
	sorting.By(sums, longest)
	var texts []string
	for _, p := range sums {
		text := fmt.Sprintf("%s %s", p.Stage, percent(ratio(p.NS, all)))
		if p.Name != "" && p.Stage == OnKernel {
			text += fmt.Sprintf(" (most of it %s)", shortName(p.Name))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
