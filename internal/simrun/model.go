package simrun

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Model is what a launch would take by the model of the card's time: nothing of it is measured.
type Model struct {
	Modelled  bool     `json:"modelled"` // always true
	Seconds   float64  `json:"seconds"`
	Limiter   string   `json:"limiter"`        // issue, tensor, shared, L2, memory, latency or launch
	Launch    float64  `json:"launch_seconds"` // of starting and ending, besides the longest term
	Terms     []Term   `json:"terms"`          // the longest first
	Warm      bool     `json:"warm"`           // as one of many launches, which find in L2 what fits
	Waves     int      `json:"waves"`
	Busy      int      `json:"busy_multiprocessors"`
	DRAM      float64  `json:"memory_bytes"`
	Sectors   float64  `json:"unique_sectors"`
	Intensity float64  `json:"operations_per_byte"`
	Roof      float64  `json:"roof_operations"` // a second, at that intensity
	Peak      float64  `json:"peak_operations"` // a second, at any intensity
	Bandwidth float64  `json:"memory_bytes_per_second"`
	Reached   float64  `json:"operations"` // a second
	Change    []string `json:"change"`     // what would make it faster
}

// Term is a time that the launch takes at least, and why.
type Term struct {
	Name    string  `json:"name"`
	Limiter string  `json:"limiter"`
	Seconds float64 `json:"seconds"`
	Why     string  `json:"why"`
}

// Line is what a line of the PTX did, all blocks together.
type Line struct {
	Line             int     `json:"ptx_line"`
	PTX              string  `json:"ptx"`
	Source           string  `json:"source"` // "file:line", empty without .loc
	Instructions     uint64  `json:"instructions"`
	Lanes            float64 `json:"lanes"` // average share of active lanes
	Divergent        uint64  `json:"divergent_branches"`
	GlobalRequests   uint64  `json:"global_requests"`
	GlobalSectors    uint64  `json:"global_sectors"`
	SharedRequests   uint64  `json:"shared_requests"`
	SharedWavefronts uint64  `json:"shared_wavefronts"`
	BankConflicts    uint64  `json:"bank_conflicts"`

	lanes uint64
	asked uint64 // bytes of global memory, by all lanes at most
	text  string // of the source
}

// newModel models a launch; nil where nothing could be counted or no block fits.
func newModel(card *cards.Card, w estimate.Launch, registers int) *Model {
	if w.Registers = registers; w.Blocks == 0 {
		return nil
	}
	e := estimate.Time(card, &w)
	if e.Occupancy.Blocks == 0 {
		return nil
	}
	m := &Model{Modelled: true, Seconds: e.Seconds, Limiter: string(e.Limiter), Launch: estimate.PerLaunch, Terms: []Term{}, Warm: w.Warm, Waves: e.Waves, Busy: e.Busy, DRAM: e.DRAM,
		Sectors: w.Unique, Change: append([]string{}, e.Change...)}
	for _, t := range e.Terms {
		m.Terms = append(m.Terms, Term{t.Name, string(t.Limiter), t.Seconds, t.Why})
	}
	r := estimate.Roof(card, &w, e)
	m.Intensity, m.Roof, m.Peak, m.Bandwidth, m.Reached = r.Intensity, r.Roof, r.Peak, 1e9*float64(card.Bandwidth), r.Reached
	return m
}

// counted are the lines of a report with their texts.
func (m *file) counted(counts []gpusim.Line) []Line {
	list := make([]Line, 0, len(counts))
	for _, l := range counts {
		list = append(list, Line{Line: l.Line, PTX: strings.TrimSpace(m.line(l.Line)), Source: l.Source, Instructions: l.Instructions,
			Lanes: share(l.LaneInstructions, 32*l.Instructions), Divergent: l.Divergent, GlobalRequests: l.GlobalRequests, GlobalSectors: l.GlobalSectors,
			SharedRequests: l.SharedRequests, SharedWavefronts: l.SharedWavefronts, BankConflicts: l.SharedConflicts,
			lanes: l.LaneInstructions, asked: l.GlobalBytes, text: m.sourceLine(l.Source)})
	}
	return list
}

// text is the model for people.
func (m *Model) text(width int) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		b.WriteString(render.Wrap(fmt.Sprintf("  %-10s  ", name)+fmt.Sprintf(format, args...), width, 14) + "\n")
	}
	b.WriteString("by the model of the card, not measured\n")
	line("time", "%s, limited by %s: %s of launch, and of these together", seconds(m.Seconds), m.Limiter, seconds(m.Launch))
	for _, t := range m.Terms[:min(len(m.Terms), shownTerms)] {
		line("", "%s %s: %s", t.Name, seconds(t.Seconds), t.Why)
	}
	if m.Warm {
		line("warm", "as one of many launches: what it touches is in L2 if it fits, and memory moves %s bytes", render.Rate(m.DRAM))
	}
	line("blocks", "%s on %s", plural(m.Waves, "wave"), plural(m.Busy, "multiprocessor"))
	if m.DRAM == 0 {
		line("roofline", "nothing comes from memory: %s FLOP/s at most; it runs at %s FLOP/s", render.Rate(m.Roof), render.Rate(m.Reached))
	} else {
		line("roofline", "%.3g operations a byte of memory allow %s FLOP/s at most; it runs at %s FLOP/s", m.Intensity, render.Rate(m.Roof), render.Rate(m.Reached))
	}
	for _, c := range m.Change {
		line("to change", "%s", c)
	}
	return b.String()
}

// shownTerms is how many of a model's terms people see; the others are shorter still.
const shownTerms = 4

func seconds(s float64) string { return render.Duration(time.Duration(s * float64(time.Second))) }

// shownLines is how many lines of the source people see if they do not say.
const shownLines = 10

// hottest puts the lines of the PTX together that have one line of the source, and sorts them by what they cost: instructions,
// wavefronts and sectors.
func hottest(lines []Line) []*Line {
	by := map[string]*Line{}
	var list []*Line
	for i := range lines {
		l := lines[i]
		key := cmp.Or(l.Source, fmt.Sprint(l.Line))
		x := by[key]
		if x == nil {
			x = &Line{Line: l.Line, PTX: l.PTX, Source: l.Source, text: l.text}
			by[key], list = x, append(list, x)
		}
		x.add(&l)
	}
	cost := func(l *Line) uint64 { return l.Instructions + l.SharedWavefronts + l.GlobalSectors }
	sorting.By(list, func(a, b *Line) int { return cmp.Compare(cost(b), cost(a)) })
	return list
}

func (l *Line) add(o *Line) {
	l.Instructions += o.Instructions
	l.lanes += o.lanes
	l.asked += o.asked
	l.Divergent += o.Divergent
	l.GlobalRequests += o.GlobalRequests
	l.GlobalSectors += o.GlobalSectors
	l.SharedRequests += o.SharedRequests
	l.SharedWavefronts += o.SharedWavefronts
	l.BankConflicts += o.BankConflicts
	l.Lanes = share(l.lanes, 32*l.Instructions)
}

// linesText is a table of the lines that cost most.
func linesText(lines []Line, n, width int) string {
	list := hottest(lines)
	if n == 0 {
		n = shownLines
	}
	t := render.Table{Header: []string{"line", "instructions", "lanes", "parted", "sectors", "a request", "conflicts", "code"},
		Right: []bool{false, true, true, true, true, true, true, false}, Ends: []bool{true}}
	for _, l := range list[:min(len(list), n)] {
		place, code := l.Source, l.text
		if place == "" {
			place = fmt.Sprint(l.Line)
		}
		if code == "" {
			code = l.PTX
		}
		t.Rows = append(t.Rows, []string{place, fmt.Sprint(l.Instructions), render.Percent(l.Lanes), count(l.Divergent), count(l.GlobalSectors),
			perRequest(l.GlobalSectors, l.GlobalRequests), count(l.BankConflicts), code})
	}
	more := ""
	if len(list) > n {
		more = fmt.Sprintf("%s more: --lines %d\n", plural(len(list)-n, "line"), len(list))
	}
	return t.String(width) + more
}

// count is a figure of a table, empty for none.
func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func perRequest(n, requests uint64) string {
	if requests == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", share(n, requests))
}
