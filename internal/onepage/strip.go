package onepage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/prof"
)

// Strip is when whom worked: lanes over one axis of time.
type Strip struct {
	Title        string  `json:"title,omitempty"`
	Microseconds float64 `json:"us"` // of the axis
	Lanes        []Lane  `json:"lanes"`
}

// Lane is one who works: its spans, or, of what has too many, the share of each of as many equal parts of the axis.
type Lane struct {
	Name  string       `json:"name"`
	Spans [][2]float64 `json:"spans_us,omitempty"` // beginnings and ends, rising, apart
	Busy  []float64    `json:"busy,omitempty"`
	color string
}

// steps is the name of the lane that has the marks of steps.
const steps = "steps"

// lanes are the rows of a strip and what of a trace they show.
var lanes = []struct {
	name, color string
	is          func(cat, name string) bool
}{
	{steps, "#8c959f", func(cat, name string) bool { return strings.HasPrefix(name, "ProfilerStep") }},
	{"loader waited for", "#e69f00", func(cat, name string) bool { return cat == "user_annotation" && name == prof.LoaderRange }},
	{"host: operations", "#0072b2", func(cat, _ string) bool { return cat == "cpu_op" }},
	{"host: the driver's calls", "#56b4e9", func(cat, _ string) bool { return cat == "cuda_runtime" }},
	{"device: kernels", "#009e73", func(cat, _ string) bool { return cat == "kernel" }},
	{"device: copies", "#cc79a7", func(cat, _ string) bool { return strings.HasPrefix(cat, "gpu_mem") }},
}

// stripOf is the strip of a window's trace.
func stripOf(p *prof.Profile) (*Strip, error) {
	var b bytes.Buffer
	if err := p.Trace(&b, "report"); err != nil {
		return nil, err
	}
	var trace struct {
		Events []struct {
			Ph, Cat, Name string
			TS, Dur       float64
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(b.Bytes(), &trace); err != nil {
		return nil, err
	}
	s := &Strip{Microseconds: float64(p.Took.Nanoseconds()) / 1e3}
	for _, l := range lanes {
		lane := Lane{Name: l.name, color: l.color}
		for _, e := range trace.Events {
			if e.Ph == "X" && l.is(e.Cat, e.Name) {
				lane.Spans = append(lane.Spans, [2]float64{e.TS, e.TS + e.Dur})
			}
		}
		gap := s.Microseconds / pieces
		if l.name == steps {
			gap = 0
		}
		if lane.Spans = joined(lane.Spans, gap); len(lane.Spans) > 0 {
			s.Lanes = append(s.Lanes, lane)
		}
	}
	return s, nil
}

// pieces is into how many parts a strip's axis is told apart at most.
const pieces = 2000

// joined are spans as one where they meet, or are nearer than a gap.
func joined(spans [][2]float64, gap float64) [][2]float64 {
	sorting.By(spans, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	var out [][2]float64
	for _, s := range spans {
		if n := len(out); n > 0 && s[0]-out[n-1][1] < gap {
			out[n-1][1] = max(out[n-1][1], s[1])
		} else {
			out = append(out, s)
		}
	}
	return out
}

// traceStrip is a strip of somebody else's trace.
func traceStrip(k *kineto.Strip, title string) *Strip {
	s := &Strip{Title: title, Microseconds: float64(k.Dur()) / 1e3}
	if len(k.Marks) > 0 {
		lane := Lane{Name: steps, color: colorOf(steps)}
		for _, m := range k.Marks {
			lane.Spans = append(lane.Spans, [2]float64{float64(m.Start-k.Start) / 1e3, float64(m.End-k.Start) / 1e3})
		}
		s.Lanes = append(s.Lanes, lane)
	}
	for _, l := range k.Lanes {
		s.Lanes = append(s.Lanes, Lane{Name: l.Name, Busy: l.Busy, color: colorOf(l.Name)})
	}
	return s
}

// Terminal draws the strip in width columns: of each column the share in which there was work.
func (s *Strip) Terminal(width int) string {
	name := 0
	for _, l := range s.Lanes {
		name = max(name, render.Width(l.Name))
	}
	columns := max(width-name-1, 10)
	var b strings.Builder
	for _, l := range s.Lanes {
		row := l.marks(s.Microseconds, columns)
		if l.Name != steps {
			row = spark(l.busy(s.Microseconds, columns))
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s%*s %s", l.Name, name-render.Width(l.Name), "", row), " ") + "\n")
	}
	fmt.Fprintf(&b, "%-*s 0%*s\n", name, "", columns-1, s.end())
	return b.String()
}

// spark draws shares, and what is nothing as nothing.
func spark(busy []float64) string {
	for i, v := range busy {
		if v < .01 {
			busy[i] = math.NaN()
		}
	}
	return render.Spark(busy, 1, len(busy))
}

// marks draws spans from edge to edge.
func (l *Lane) marks(axis float64, columns int) string {
	row := []rune(strings.Repeat(" ", columns))
	for _, s := range l.Spans {
		from, to := int(s[0]/axis*float64(columns)), int(math.Round(s[1]/axis*float64(columns)))
		for i := max(from, 0); i < min(to, columns); i++ {
			row[i] = '─'
		}
		if from >= 0 && from < columns {
			row[from] = '├'
		}
	}
	return string(row)
}

// end is the axis' end.
func (s *Strip) end() string {
	return render.Duration(time.Duration(s.Microseconds * 1e3))
}

// busy is the share of each of n parts of an axis in which there was work.
func (l *Lane) busy(axis float64, n int) []float64 {
	if l.Busy != nil {
		return resampled(l.Busy, n)
	}
	out := make([]float64, n)
	width := axis / float64(n)
	for _, s := range l.Spans {
		for i := max(0, int(s[0]/width)); i < n && float64(i)*width < s[1]; i++ {
			out[i] += max(0, min(s[1], float64(i+1)*width)-max(s[0], float64(i)*width)) / width
		}
	}
	for i := range out {
		out[i] = min(out[i], 1)
	}
	return out
}

// resampled are as many means of shares as are wanted.
func resampled(busy []float64, n int) []float64 {
	out := make([]float64, n)
	of := float64(len(busy)) / float64(n)
	for i := range out {
		from, to := float64(i)*of, float64(i+1)*of
		for k := int(from); k < len(busy) && float64(k) < to; k++ {
			out[i] += busy[k] * (min(to, float64(k+1)) - max(from, float64(k))) / of
		}
	}
	return out
}

// The measures of a strip as SVG.
const (
	laneRow  = 40
	laneHigh = 18 // of what is drawn
)

// SVG draws the strip as a stand-alone document of so many pixels' width: of each two pixels the share in which there was work.
func (s *Strip) SVG(width int) string {
	const head, foot = 8, 26
	height := head + laneRow*len(s.Lanes) + foot
	title := s.Title
	if title == "" {
		title = "Who worked when"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>%s</title>`+"\n", width, height, width, height, html.EscapeString(title))
	for i, l := range s.Lanes {
		y := head + i*laneRow
		fmt.Fprintf(&b, `<text class="soft" x="1" y="%d">%s</text><rect class="track" x="1" y="%d" width="%d" height="%d"/>`+"\n", y+12, html.EscapeString(l.Name), y+17, width-2, laneHigh)
		shape := l.shape(s.Microseconds, width-2, y+17+laneHigh)
		if l.Name == steps {
			shape = l.boxes(s.Microseconds, width-2, y+17)
		}
		fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`+"\n", l.color, shape)
	}
	fmt.Fprintf(&b, `<text class="soft" x="1" y="%d">0</text><text class="soft" x="%d" y="%d" text-anchor="end">%s</text></svg>`+"\n", height-8, width-2, height-8, s.end())
	return b.String()
}

// shape is the outline of a lane's shares above a line.
func (l *Lane) shape(axis float64, width, line int) string {
	var b strings.Builder
	at := 0.0
	for i, v := range l.busy(axis, width) {
		high := math.Round(v*laneHigh*10) / 10
		if v > 0 {
			high = max(high, 1) // a little is to be seen
		}
		switch {
		case high == at:
			continue
		case at == 0:
			fmt.Fprintf(&b, "M%d %dv%.4g", i+1, line, -high)
		case high == 0:
			fmt.Fprintf(&b, "H%dV%dZ", i+1, line)
		default:
			fmt.Fprintf(&b, "H%dv%.4g", i+1, at-high)
		}
		at = high
	}
	if at > 0 {
		fmt.Fprintf(&b, "H%dV%dZ", width+1, line)
	}
	return b.String()
}

// boxes are spans, apart from each other.
func (l *Lane) boxes(axis float64, width, top int) string {
	var b strings.Builder
	scale := float64(width) / max(axis, 1e-9)
	for k, v := range l.Spans {
		gap := 0.0
		if k > 0 {
			gap = min(2, (v[1]-v[0])*scale/3) // one begins where the last ends
		}
		long := max((v[1]-v[0])*scale-gap, .4)
		fmt.Fprintf(&b, "M%.1f %dh%.1fv%dh%.1fz", 1+v[0]*scale+gap, top, long, laneHigh, -long)
	}
	return b.String()
}
