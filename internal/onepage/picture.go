package onepage

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/snapshot"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Picture is what is drawn of a file beside its findings. Of files of kinds that have nothing over time or by owner there is
// none.
type Picture struct {
	File     string            `json:"file"`
	Of       string            `json:"of,omitempty"`             // rank and card of a trace, where it says so
	Steps    int               `json:"steps,omitempty"`          // of a trace's window; 0: it marks none
	Window   float64           `json:"window_seconds,omitempty"` // of a trace
	Shares   []Share           `json:"shares,omitempty"`         // of a step, or of the window without steps
	Strips   []*Strip          `json:"strips,omitempty"`
	Families []Work            `json:"families,omitempty"`
	Kernels  []Work            `json:"kernels,omitempty"` // and copies, by name, the longest first
	Others   int               `json:"other_kernels,omitempty"`
	Memory   []*Memory         `json:"memory,omitempty"` // by device
	Ranks    []kineto.RankStep `json:"ranks,omitempty"`  // of several traces together
}

// Work is what the kernels of a family or a name took of a step, or of the window where no steps are marked, summed over streams.
type Work struct {
	Name    string  `json:"name"`
	Family  string  `json:"family,omitempty"`
	Calls   float64 `json:"calls"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // of all such work
}

// Memory is that of a device over time, by owner.
type Memory struct {
	Name     string            `json:"name"`
	Owners   []string          `json:"owners"` // the largest first
	At       []float64         `json:"at_seconds"`
	Bytes    [][]int64         `json:"bytes"` // by owner, at each time
	Peak     int64             `json:"peak"`
	PeakAt   float64           `json:"peak_at_seconds"`
	Holders  []snapshot.Share  `json:"holders"`  // at the peak, by source line
	Others   int64             `json:"others"`   // bytes of lines that are not among the holders
	Reserved snapshot.Reserved `json:"reserved"` // at the end; zeros where the file does not say
}

// What is drawn at most: the page of a folder of any size is one of a few megabytes.
const (
	mostPictures = 12  // files
	mostDevices  = 8   // of a snapshot
	mostKernels  = 15  // rows
	mostHolders  = 15  // rows
	moments      = 500 // of memory over time
	mostLanes    = 16  // ranks beside each other
)

// pictureOf is the picture of a file that was read, or nil.
func pictureOf(f *finding.Report) *Picture {
	p := &Picture{File: f.File}
	switch d := f.Detail.(type) {
	case *kineto.Trace:
		p.trace(d)
	case interface {
		Series(moments int) []*snapshot.Series
	}:
		p.memory(d.Series(moments))
	}
	if ranks, ok := f.Figures["ranks"].([]kineto.RankStep); ok {
		p.Ranks = ranks
	}
	if len(p.Shares)+len(p.Strips)+len(p.Memory)+len(p.Ranks) == 0 {
		return nil
	}
	return p
}

func (p *Picture) trace(t *kineto.Trace) {
	p.Of, p.Steps, p.Window = t.Title(), t.Marked, float64(t.Judged.Dur())/1e9
	d := t.Drawing
	if d == nil {
		return
	}
	for _, s := range d.Spent {
		seconds := float64(s.NS) / 1e9 / float64(max(p.Steps, 1))
		p.Shares = append(p.Shares, Share{Name: s.Name, Seconds: seconds, Share: float64(s.NS) / float64(max(t.Judged.Dur(), 1)), Idle: s.Idle, Text: shareTexts[s.Name]})
	}
	if d.Step != nil {
		p.Strips = append(p.Strips, traceStrip(d.Step, fmt.Sprintf("Step %d and the work that it launched", d.Step.Number)))
	}
	if d.Whole != nil && len(d.Whole.Lanes) > 0 {
		title := "All of the trace"
		if p.Steps > 0 {
			title = fmt.Sprintf("The %s that are judged", stepsOf(p.Steps))
		}
		p.Strips = append(p.Strips, traceStrip(d.Whole, title))
	}
	p.work(t)
}

// stepsOf is a number of steps.
func stepsOf(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}

// shareTexts say what the parts of a trace's time are.
var shareTexts = map[string]string{
	"products": "matrix products, convolutions and attention", "other compute": "all else that is computed",
	"communication alone": "communication that nothing computes beside", "copies alone": "nothing ran but copies",
	"idle: loader": "the program waited for a batch", "idle: behind waits": "the host had waited for the device, and went on from there",
	"idle: memory calls": "the host allocated, freed or loaded code", "idle: host": "the host did something else before it launched the next",
	"idle: launches": "the next was launched, and began within 30 µs", "idle: other": "it was launched, and waited for something else",
}

// work are the families and the longest of kernels.
func (p *Picture) work(t *kineto.Trace) {
	var sum int64
	for _, k := range t.Kernels {
		sum += k.NS
	}
	row := func(name, family string, calls int, ns int64) Work {
		n := float64(max(p.Steps, 1))
		return Work{name, family, float64(calls) / n, float64(ns) / 1e9 / n, float64(ns) / float64(max(sum, 1))}
	}
	for _, family := range []string{kineto.Product, kineto.Computation, kineto.Communication, kineto.Memory} {
		calls, ns := 0, int64(0)
		for _, k := range t.Kernels {
			if k.Family == family {
				calls, ns = calls+k.Count, ns+k.NS
			}
		}
		if calls > 0 {
			p.Families = append(p.Families, row(families[family], "", calls, ns))
		}
	}
	sorting.By(p.Families, func(a, b Work) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, k := range t.Kernels[:min(len(t.Kernels), mostKernels)] {
		p.Kernels = append(p.Kernels, row(render.Truncate(kineto.ShortName(k.Name), 160), k.Family, k.Count, k.NS))
	}
	p.Others = len(t.Kernels) - len(p.Kernels)
}

// families are their names for people.
var families = map[string]string{kineto.Product: "products", kineto.Computation: "other compute", kineto.Communication: "communication", kineto.Memory: "copies and fills"}

func (p *Picture) memory(all []*snapshot.Series) {
	for _, s := range all[:min(len(all), mostDevices)] {
		m := &Memory{Name: "Memory in use", Bytes: s.Bytes, Peak: s.Peak, PeakAt: float64(s.PeakAt) / 1e6, Reserved: s.Reserved}
		if len(all) > 1 {
			m.Name = fmt.Sprintf("Memory of GPU %d in use", s.Device)
		}
		for _, o := range s.Owners {
			m.Owners = append(m.Owners, render.Truncate(render.Plain(o), 28))
		}
		for _, at := range s.At {
			m.At = append(m.At, float64(at)/1e6)
		}
		m.Holders = slices.Clone(s.Holders[:min(len(s.Holders), mostHolders)])
		for _, h := range s.Holders[len(m.Holders):] {
			m.Others += h.Bytes
		}
		p.Memory = append(p.Memory, m)
	}
}

// timed tells memory that has a course: one moment alone is none.
func (m *Memory) timed() bool { return len(m.At) > 1 && m.At[len(m.At)-1] > m.At[0] }

// area is the memory as a drawing.
func (m *Memory) area() render.Area {
	unit, name := 1.0, "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if float64(m.Peak) < 1024*unit {
			break
		}
		unit, name = 1024*unit, u
	}
	second, times := 1.0, "s"
	switch last := m.At[len(m.At)-1]; {
	case last < 10e-3:
		second, times = 1e-6, "µs"
	case last < 10:
		second, times = 1e-3, "ms"
	}
	a := render.Area{XLabel: times, YLabel: name, Names: m.Owners, Mark: math.NaN()}
	if m.Peak > 0 {
		a.Mark = m.PeakAt / second
	}
	for _, at := range m.At {
		a.X = append(a.X, at/second)
	}
	for _, column := range m.Bytes {
		y := make([]float64, len(column))
		for i, v := range column {
			y[i] = float64(v) / unit
		}
		a.Y = append(a.Y, y)
	}
	return a
}

// beside is one strip of the ranks of a job, a step of each from its beginning; nil of fewer than two.
func beside(ranks []kineto.RankStep, all []*Picture) *Strip {
	s := &Strip{Title: "A step of each rank, from its own beginning"}
	var each []*Strip
	var numbers []int
	for _, r := range ranks {
		i := slices.IndexFunc(all, func(p *Picture) bool { return p.File == r.File && len(p.Strips) > 0 })
		if i >= 0 && len(each) < mostLanes {
			each, numbers = append(each, all[i].Strips[0]), append(numbers, r.Rank)
			s.Microseconds = max(s.Microseconds, all[i].Strips[0].Microseconds)
		}
	}
	for i, of := range each {
		part := of.Microseconds / max(s.Microseconds, 1e-9)
		s.Lanes = append(s.Lanes, of.sum(part, fmt.Sprintf("rank %d: computes", numbers[i]), "device: products", "device: other compute"),
			of.sum(part, fmt.Sprintf("rank %d: communicates", numbers[i]), "device: communication"))
	}
	if len(each) < 2 {
		return nil
	}
	return s
}

// sum is a lane that has the work of several, which do not work at once, on an axis of which the strip's is a part.
func (s *Strip) sum(part float64, name string, of ...string) Lane {
	busy := make([]float64, kineto.Columns)
	for _, lane := range s.Lanes {
		if slices.Contains(of, lane.Name) {
			for i, v := range lane.Busy {
				busy[i] = min(1, busy[i]+v)
			}
		}
	}
	n := min(max(int(math.Round(kineto.Columns*part)), 1), kineto.Columns)
	return Lane{Name: name, Busy: append(resampled(busy, n), make([]float64, kineto.Columns-n)...), color: colorOf(of[0])}
}
