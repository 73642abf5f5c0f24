package kineto

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// analysis is what the rules look at: a trace, and what follows from it for the steps that are looked at.
type analysis struct {
	*Trace
	window             Window // of the steps looked at, or of the device's events where no step is marked
	steps              int    // in the window; 0 where none is marked
	marked             Window // the same steps, by the marks of the host
	busy               spans  // of the device within the window
	comm               spans
	compute            spans // kernels that do not communicate
	gaps               []gap // of busy
	loader             spans // waits for batches
	waits              spans // of the host for the device
	memory             spans // calls that allocate, free or load code
	causes             [causes]int64
	first              int // device[first:last] begin within the window
	last               int
	tail               int            // device[first:tail] are those and what was launched within the steps and begins later
	held               map[int32]bool // calls that a full queue holds up
	kernels            int
	syncs              []syncSite
	shapes             bool     // operators have them
	asked              int      // functions of Python that were looked for
	all                []total  // by totals
	order              []int32  // by opOrder
	timeline           []item   // by items
	found              []string // names of rules that have spoken
	shapedOps          []shapedOp
	onDevice, pageable int  // events of the device, and pageable copies, of the whole file
	amd                bool // the calls are of HIP
	inMain             bool // batches are made by the training's own process
}

func (t *Trace) analyse() *analysis {
	a := &analysis{Trace: t}
	a.choose()
	a.first = sort.Search(len(t.device), func(i int) bool { return t.device[i].start >= a.window.Start })
	a.last = sort.Search(len(t.device), func(i int) bool { return t.device[i].start >= a.window.End })
	for i := a.first; i < a.last; i++ {
		if t.device[i].kind == kernel {
			a.kernels++
		}
	}
	a.tail = a.last
	for a.tail < len(t.device) && t.launched(a.tail) != nil && t.launched(a.tail).start < a.marked.End {
		a.tail++
	}
	a.findHeld()
	for i := range t.ops {
		e := &t.ops[i]
		a.shapes = a.shapes || e.id != 0
		if a.class(e)&isLoader != 0 && strings.Contains(a.Name(e), "SingleProcess") {
			a.inMain = true
		}
	}
	a.busy = union(t.device, nil).in(a.window)
	a.comm = t.union(isComm).in(a.window)
	a.compute = t.computation().in(a.window)
	a.loader = t.ranges(isLoader).in(a.marked)
	a.waits = union(t.host, func(e *event) bool { return t.class(e)&isWait != 0 }).in(a.window)
	a.memory = union(t.host, func(e *event) bool { return t.class(e)&(isMemory|isLoad) != 0 }).in(a.window)
	a.onDevice = len(t.device)
	a.amd = slices.ContainsFunc(t.host, func(e event) bool { return strings.HasPrefix(t.Name(&e), "hip") })
	for i := range t.device {
		if t.device[i].kind == copying && isPageable(t.Name(&t.device[i])) {
			a.pageable++
		}
	}
	a.findGaps()
	a.findSyncs()
	return a
}

// ranges is the time of ranges and operators of a class on the host.
func (t *Trace) ranges(c class) spans {
	var w []Window
	for i := range t.ops {
		if e := &t.ops[i]; t.class(e)&c != 0 {
			w = append(w, Window{e.start, e.end()})
		}
	}
	return unionOf(w)
}

// slowFirst is how much longer than the median the first step is where the profiler's own beginning is in it.
const slowFirst = 1.5

// choose takes the longest run of steps without a first that is the profiler's, and without allocations of memory or loading
// of code, unless all have them; and none beyond the device's last event, where the file breaks off.
func (a *analysis) choose() {
	all := extent(a.device)
	steps := slices.Clone(a.Steps)
	if a.counts.cut != "" {
		steps = slices.DeleteFunc(steps, func(s Step) bool { return s.End > all.End })
	}
	if len(steps) == 0 {
		a.window, a.marked = all, all
		return
	}
	typical := typicalStep(steps)
	from, to := 0, 0
	for i := 0; i < len(steps); {
		j := i
		for j < len(steps) && !a.warming(steps[j], j == 0, typical) && (j == i || steps[j].Start-steps[j-1].End < typical) {
			j++
		}
		if j-i > to-from {
			from, to = i, j
		}
		i = max(j, i+1)
	}
	if from == to {
		from, to = 0, len(steps)
	}
	a.steps = to - from
	a.marked = Window{steps[from].Start, steps[to-1].End}
	a.window = a.follow(a.marked)
}

// farBehind is how far the device may be behind the host, of a step, for the host's marks to be the steps' ends.
const farBehind = 0.5

// follow is the window of the device for steps that the host marked. A host that only launches runs ahead, by whole steps at
// the beginning of a recording: then the steps are from the end of what was launched before them to the end of what was
// launched within.
func (a *analysis) follow(host Window) Window {
	before, within := host.Start, host.End
	for i := range a.device {
		l := a.launched(i)
		if l == nil || l.start >= host.End {
			continue
		}
		within = max(within, a.device[i].end())
		if l.start < host.Start {
			before = max(before, a.device[i].end())
		}
	}
	if float64(within-host.End) <= farBehind*float64(host.Dur())/float64(a.steps) {
		return host
	}
	return Window{before, within}
}

func typicalStep(steps []Step) int64 {
	var d []int64
	for _, s := range steps {
		d = append(d, s.Dur())
	}
	slices.Sort(d)
	return d[len(d)/2]
}

// warming tells a step that is no example of the others.
func (a *analysis) warming(s Step, first bool, typical int64) bool {
	if first && float64(s.Dur()) > slowFirst*float64(typical) {
		return true
	}
	i := sort.Search(len(a.host), func(i int) bool { return a.host[i].start >= s.Start })
	var spent int64
	for ; i < len(a.host) && a.host[i].start < s.End; i++ {
		if e := &a.host[i]; a.class(e)&(isMemory|isLoad) != 0 {
			spent += e.dur
		}
	}
	return spent > s.Dur()/20 && float64(s.Dur()) > slowFirst*float64(typical)
}

// perStep is a time of the window as that of a step, in nanoseconds.
func (a *analysis) perStep(ns int64) int64 { return ns / int64(max(a.steps, 1)) }

// share is ns of the window.
func (a *analysis) share(ns int64) float64 {
	if a.window.Dur() <= 0 {
		return 0
	}
	return float64(ns) / float64(a.window.Dur())
}

// cause is why the device had nothing to do.
type cause int

const (
	waitsLoader cause = iota // the host waited for a batch
	waitsSync                // the host had waited for the device, and went on from there
	waitsMemory              // the host allocated, freed or loaded code
	waitsHost                // the host did something else before it launched the next
	waitsKernel              // the next was launched, and began within kernelDelay
	waitsOther               // it was launched, and waited for something else
	causes
)

var causeNames = [causes]string{"idle_loader_us", "idle_sync_us", "idle_memory_us", "idle_host_us", "idle_kernel_us", "idle_other_us"}

// kernelDelay is the longest that a device takes from kernel to kernel for launches alone, as HolisticTraceAnalysis has it.
const kernelDelay = 30_000

// gap is a stretch in which the device did nothing.
type gap struct {
	Window
	next   int    // the event of the device that ends it; -1 at the end of the window
	launch *event // that launched it
	hosted bool   // its launch came after the gap began: the host's
	after  Window // the host's part of it
}

// findGaps finds the gaps of the device and their causes. That a gap is the host's is HolisticTraceAnalysis' rule: the next
// was launched after the one before had ended. What the host did meanwhile splits that further.
func (a *analysis) findGaps() {
	i := a.first
	at := a.window.Start
	for _, b := range append(slices.Clone(a.busy), Window{a.window.End, a.window.End}) {
		if b.Start > at {
			for i < len(a.device) && a.device[i].start < b.Start {
				i++
			}
			a.addGap(Window{at, b.Start}, i)
		}
		at = b.End
	}
}

func (a *analysis) addGap(w Window, next int) {
	g := gap{Window: w, next: -1}
	if next < len(a.device) && a.device[next].start == w.End {
		g.next = next
		g.launch = a.launched(next)
	}
	end := w.End
	switch {
	case g.launch != nil:
		g.hosted = g.launch.start > w.Start
		end = min(w.End, g.launch.end())
	case g.next < 0 && w.End == a.window.End:
		g.hosted = true // the step ends on the host
	}
	switch {
	case g.hosted:
		g.after = Window{w.Start, max(end, w.Start)}
		a.split(g)
	case w.Dur() < kernelDelay:
		a.causes[waitsKernel] += w.Dur()
	default:
		a.causes[waitsOther] += w.Dur()
	}
	a.gaps = append(a.gaps, g)
}

// split shares a gap of the host's out to what the host did in it.
func (a *analysis) split(g gap) {
	rest := spans{g.Window}
	for _, c := range []struct {
		cause cause
		in    spans
	}{{waitsLoader, a.loader}, {waitsMemory, a.memory}} {
		part := rest.both(touching(c.in, g.Window))
		a.causes[c.cause] += part.total()
		rest = rest.without(part)
	}
	// What a wait leaves is the time from its beginning in the gap to the next launch, but for what has other names.
	if w := touching(a.waits, g.Window); len(w) > 0 {
		from := max(w[0].Start, g.Start)
		part := rest.in(Window{from, g.End})
		if w[0].Start <= g.Start {
			a.causes[waitsSync] += part.total()
			rest = rest.without(part)
		}
	}
	a.causes[waitsHost] += rest.total()
}

// touching is the part of s that may touch w.
func touching(s spans, w Window) spans {
	i := sort.Search(len(s), func(i int) bool { return s[i].End > w.Start })
	j := sort.Search(len(s), func(j int) bool { return s[j].Start >= w.End })
	if i >= j {
		return nil
	}
	return s[i:j]
}

// idle is the time of the window in which the device did nothing.
func (a *analysis) idle() int64 { return a.window.Dur() - a.busy.total() }

// delays are those from the end of a launch to the start of the kernel, in nanoseconds; of what a graph launched, only the
// first kernel's.
func (a *analysis) delays() []int64 {
	var d []int64
	graph := int32(-1)
	for i := a.first; i < a.last; i++ {
		l := a.launched(i)
		if a.device[i].kind != kernel || l == nil {
			continue
		}
		if a.class(l)&isGraph != 0 {
			if a.launch[i] == graph {
				continue
			}
			graph = a.launch[i]
		}
		d = append(d, a.device[i].start-l.end())
	}
	return d
}

// durations are those of the window's kernels, and how many of them are shorter than the call that launched them.
func (a *analysis) durations() (d []int64, short int) {
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		if e.kind != kernel {
			continue
		}
		d = append(d, e.dur)
		if l := a.launched(i); l != nil && e.dur < l.dur {
			short++
		}
	}
	return d, short
}

// total is one name's time among events of the device.
type total struct {
	name  uint32
	count int
	ns    int64
	bytes int64
	first int // an example: index of device
}

// totals are the times of names, of the window's events that pick picks by kind and name, longest first.
func (a *analysis) totals(pick func(*event) bool) []total {
	if a.all == nil {
		a.all = a.allTotals()
	}
	var some []total
	for _, t := range a.all {
		if pick(&a.device[t.first]) {
			some = append(some, t)
		}
	}
	return some
}

func (a *analysis) allTotals() []total {
	all := []total{}
	places := make([]int32, len(a.names.names)) // 1 + the index in all
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		n := places[e.name]
		if n == 0 || a.device[all[n-1].first].kind != e.kind {
			all = append(all, total{name: e.name, first: i})
			n = int32(len(all))
			places[e.name] = n
		}
		t := &all[n-1]
		t.count++
		t.ns += e.dur
		if e.kind != kernel {
			t.bytes += a.bytes[e.aux]
		}
	}
	sorting.By(all, func(x, y total) int { return cmp.Or(cmp.Compare(y.ns, x.ns), cmp.Compare(x.first, y.first)) })
	return all
}

func isKernel(e *event) bool { return e.kind == kernel }

// arch is the compute capability of the first card, times ten; where the file does not say, the least that kernels' names
// tell; 0 where nothing does. named tells that it is from names.
func (a *analysis) arch() (sm int, named bool) {
	if len(a.Devices) > 0 && a.Devices[0].Major > 0 {
		return a.Devices[0].Major*10 + a.Devices[0].Minor, false
	}
	best := 0
	for _, t := range a.totals(isKernel) {
		best = max(best, archOf(a.names.names[t.name]))
	}
	return best, best > 0
}

// card is the first card's name.
func (a *analysis) card() string {
	if len(a.Devices) > 0 && a.Devices[0].Name != "" {
		return a.Devices[0].Name
	}
	return "the card"
}
