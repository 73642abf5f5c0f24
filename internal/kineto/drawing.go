package kineto

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Drawing is what of a trace a picture shows: where the time of the window went, and who worked when.
type Drawing struct {
	Spent []Spent // of the window that is judged: they add up to it; none where no device worked
	Whole *Strip  // that window, on host and device
	Step  *Strip  // the step of the median length with the work that it launched; nil where fewer than two are marked
}

// Spent is a part of the window, in nanoseconds.
type Spent struct {
	Name string
	Idle bool // nobody worked on the device
	NS   int64
}

// Strip is a stretch of time, in lanes of who works.
type Strip struct {
	Window
	Number int      // of the step it shows; -1 where it is none
	Marks  []Window // the steps that touch it
	Lanes  []StripLane
}

// StripLane is one who works: of each of Columns equal parts of the stretch the share in which it does, from 0 to 1.
type StripLane struct {
	Name string
	Busy []float64
}

// Columns is into how many parts a strip is told apart, and samples are how many moments of each are looked at.
const (
	Columns = 960
	samples = 64
)

// The lanes of strips, in order.
const (
	laneLoader = iota
	laneOps
	laneCalls
	laneWaits
	laneProducts
	laneComputes
	laneTalks
	laneCopies
	lanes
)

var laneNames = [lanes]string{"host: loader", "host: operations", "host: driver's calls", "host: waits", "device: products", "device: other compute", "device: communication", "device: copies"}

// draw is the drawing of a trace whose events are there.
func (a *analysis) draw() *Drawing {
	d := &Drawing{Spent: a.spent()}
	whole := Window{min(a.window.Start, a.marked.Start), max(a.window.End, a.marked.End)}
	if whole.Dur() <= 0 {
		whole = a.Span
	}
	canvases := []*canvas{newCanvas(whole)}
	step, ok := a.medianStep()
	if ok {
		canvases = append(canvases, newCanvas(a.withWork(step)))
	}
	a.paint(canvases)
	d.Whole = canvases[0].strip(-1, a.Steps)
	if ok {
		d.Step = canvases[1].strip(step.Number, a.Steps)
	}
	if ok && len(d.Step.Lanes) == 0 {
		d.Step = nil // a mark alone
	}
	return d
}

// spent shares the window out. What communicates or copies beside something that computes counts as computing.
func (a *analysis) spent() []Spent {
	if !a.worked() {
		return nil
	}
	products := union(a.device, func(e *event) bool { return a.family(e) == Product }).in(a.window).total()
	compute, alone := a.compute.total(), a.comm.without(a.compute).total()
	all := []Spent{{"products", false, products}, {"other compute", false, compute - products}, {"communication alone", false, alone},
		{"copies alone", false, a.busy.total() - compute - alone}}
	for c, name := range [causes]string{"idle: loader", "idle: behind waits", "idle: memory calls", "idle: host", "idle: launches", "idle: other"} {
		all = append(all, Spent{name, true, a.causes[c]})
	}
	return slices.DeleteFunc(all, func(s Spent) bool { return s.NS <= 0 })
}

// medianStep is the step of the window whose length is the median.
func (a *analysis) medianStep() (Step, bool) {
	var in []Step
	for _, s := range a.Steps {
		if s.Start >= a.marked.Start && s.End <= a.marked.End {
			in = append(in, s)
		}
	}
	if len(in) < 2 {
		return Step{}, false
	}
	sorting.By(in, func(x, y Step) int { return int(min(max(x.Dur()-y.Dur(), -1), 1)) })
	return in[len(in)/2], true
}

// farAhead is how many steps a picture of one step follows a host that runs ahead of the device.
const farAhead = 3

// withWork is a step's window up to the end of what it launched.
func (a *analysis) withWork(s Step) Window {
	w := s.Window
	for i := range a.device {
		if l := a.launched(i); l != nil && l.start >= s.Start && l.start < s.End {
			w.End = max(w.End, a.device[i].end())
		}
	}
	w.End = min(w.End, s.Start+farAhead*s.Dur())
	return w
}

// paint shows all events to canvases.
func (a *analysis) paint(on []*canvas) {
	put := func(lane int, start, end int64) {
		for _, c := range on {
			c.put(lane, start, end)
		}
	}
	for i := range a.ops {
		switch e := &a.ops[i]; {
		case a.class(e)&isLoader != 0:
			put(laneLoader, e.start, e.end())
		case e.kind == op && a.class(e)&isStep == 0:
			put(laneOps, e.start, e.end())
		}
	}
	for i := range a.host {
		e, lane := &a.host[i], laneCalls
		if a.class(e)&isWait != 0 {
			lane = laneWaits
		}
		put(lane, e.start, e.end())
	}
	for i := range a.device {
		e := &a.device[i]
		put(laneOf(a.family(e)), e.start, e.end())
	}
}

func laneOf(family string) int {
	switch family {
	case Product:
		return laneProducts
	case Communication:
		return laneTalks
	case Memory:
		return laneCopies
	}
	return laneComputes
}

// canvas is a strip under way: moments of its lanes at which there was work, a bit each, so that events may come in any order
// and lie within each other.
type canvas struct {
	Window
	lanes [lanes][]uint64
}

func newCanvas(w Window) *canvas { return &canvas{Window: w} }

// put marks the moments of an event.
func (c *canvas) put(lane int, start, end int64) {
	start, end = max(start, c.Start), min(end, c.End)
	if end <= start {
		return
	}
	if c.lanes[lane] == nil {
		c.lanes[lane] = make([]uint64, Columns) // samples are the bits of one
	}
	from, to := c.moment(start), c.moment(end)
	for from < to {
		word, n := from/samples, min(to-from, samples-from%samples)
		c.lanes[lane][word] |= (1<<n - 1) << (from % samples)
		from += n
	}
}

// moment is the number of the first moment that is not before a time. Moments are in the middle of their parts.
func (c *canvas) moment(at int64) int {
	return min(int(float64(at-c.Start)/float64(c.Dur())*(Columns*samples)+0.5), Columns*samples)
}

// mostMarks is how many steps of a strip are marked: more are a grey bar.
const mostMarks = 200

// strip is what the canvas shows.
func (c *canvas) strip(number int, steps []Step) *Strip {
	s := &Strip{Window: c.Window, Number: number}
	for i := range steps {
		if w := steps[i].Window; w.Start < c.End && w.End > c.Start && len(s.Marks) < mostMarks {
			s.Marks = append(s.Marks, Window{max(w.Start, c.Start), min(w.End, c.End)})
		}
	}
	for lane, words := range c.lanes {
		if words == nil {
			continue
		}
		busy := make([]float64, Columns)
		for i, w := range words {
			busy[i] = float64(bits.OnesCount64(w)) / samples
		}
		s.Lanes = append(s.Lanes, StripLane{laneNames[lane], busy})
	}
	return s
}

// Title is what a trace is of, for a heading: its rank and its card, where it says so.
func (t *Trace) Title() string {
	title := ""
	if t.Rank >= 0 {
		title = "rank " + strconv.Itoa(t.Rank)
	}
	if len(t.Devices) > 0 && t.Devices[0].Name != "" {
		if title != "" {
			title += ", "
		}
		title += t.Devices[0].Name
	}
	return title
}
