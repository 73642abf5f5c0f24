package kineto

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// finish puts what was read in order, finds what launched what, and the steps.
func (rd *reading) finish() {
	t := rd.Trace
	t.classes = rd.classes
	for len(t.classes) < len(t.names.names) {
		t.classes = append(t.classes, 0)
	}
	t.names.ids = nil
	for _, events := range [][]event{t.host, t.device, t.syncs} {
		sorted(events)
	}
	t.link()
	t.findSteps()
	t.findSpan()
	t.finishCollectives()
	processes := map[string]bool{}
	for i := range t.host {
		processes[t.tracks[t.host[i].track].pid] = true
	}
	t.counts.processes = len(processes)
}

// link finds the call that launched each event of the device, by correlation. Where several calls have one, as in files of
// several processes, it is the last that began before the event.
func (t *Trace) link() {
	order := make([]int32, 0, len(t.host))
	for i := range t.host {
		if t.host[i].flags&noStart == 0 {
			order = append(order, int32(i))
		}
	}
	byID := func(a, b int32) int { return cmp.Or(cmp.Compare(t.host[a].id, t.host[b].id), cmp.Compare(a, b)) }
	if !slices.IsSortedFunc(order, byID) {
		sorting.By(order, byID)
	}
	t.launch = make([]int32, len(t.device))
	for i := range t.device {
		t.launch[i] = t.launchOf(order, &t.device[i])
	}
}

func (t *Trace) launchOf(order []int32, e *event) int32 {
	if e.flags&noStart != 0 {
		return -1
	}
	n, ok := slices.BinarySearchFunc(order, e.id, func(i int32, id uint32) int { return cmp.Compare(t.host[i].id, id) })
	if !ok {
		return -1
	}
	for n+1 < len(order) && t.host[order[n+1]].id == e.id && t.host[order[n+1]].start <= e.start {
		n++
	}
	return order[n]
}

// launched is the call that launched device[i], or nil.
func (t *Trace) launched(i int) *event {
	if n := t.launch[i]; n >= 0 {
		return &t.host[n]
	}
	return nil
}

// stepsLimit is how many steps are told apart.
const stepsLimit = 1 << 16

func (t *Trace) findSteps() {
	for i := range t.ops {
		e := &t.ops[i]
		if t.class(e)&isStep == 0 || len(t.Steps) >= stepsLimit {
			continue
		}
		_, digits, _ := strings.Cut(t.Name(e), "#")
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = -1
		}
		t.Steps = append(t.Steps, Step{Number: n, Window: Window{e.start, e.end()}})
	}
	sorting.By(t.Steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
}

func (t *Trace) findSpan() {
	for _, events := range [][]event{t.host, t.device, t.ops} {
		if len(events) == 0 {
			continue
		}
		w := extent(events)
		if t.Span == (Window{}) {
			t.Span = w
		}
		t.Span = Window{min(t.Span.Start, w.Start), max(t.Span.End, w.End)}
	}
}
