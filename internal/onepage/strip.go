package onepage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/prof"
)

// Strip is when whom worked: lanes over one axis of time.
type Strip struct {
	Microseconds float64 `json:"us"` // of the axis
	Lanes        []Lane  `json:"lanes"`
}

// Lane is one who works.
type Lane struct {
	Name  string       `json:"name"`
	Spans [][2]float64 `json:"spans_us"` // beginnings and ends, rising, apart
	color string
}

// lanes are the rows of a strip and what of a trace they show.
var lanes = []struct {
	name, color string
	is          func(cat, name string) bool
}{
	{"steps", "#8c959f", func(cat, name string) bool { return strings.HasPrefix(name, "ProfilerStep") }},
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
		if l.name == "steps" {
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
	slices.SortFunc(spans, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
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

// Terminal draws the strip in width columns: of each column the share in which there was work.
func (s *Strip) Terminal(width int) string {
	name := 0
	for _, l := range s.Lanes {
		name = max(name, render.Width(l.Name))
	}
	columns := max(width-name-1, 10)
	var b strings.Builder
	for _, l := range s.Lanes {
		fmt.Fprintf(&b, "%-*s %s\n", name, l.Name, render.Spark(l.busy(s.Microseconds, columns), 1, columns))
	}
	end := fmt.Sprintf("%.3g ms", s.Microseconds/1e3)
	fmt.Fprintf(&b, "%-*s 0%*s\n", name, "", columns-1, end)
	return b.String()
}

// busy is the share of each of n parts of an axis in which there was work.
func (l *Lane) busy(axis float64, n int) []float64 {
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

// SVG draws the strip as a stand-alone document of so many pixels' width.
func (s *Strip) SVG(width int) string {
	const row, head, foot = 40, 8, 26
	height := head + row*len(s.Lanes) + foot
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>Who worked when</title>`+"\n", width, height, width, height)
	scale := float64(width-2) / max(s.Microseconds, 1e-9)
	for i, l := range s.Lanes {
		y := head + i*row
		fmt.Fprintf(&b, `<text class="soft" x="1" y="%d">%s</text><rect class="track" x="1" y="%d" width="%d" height="18"/>`+"\n", y+12, html.EscapeString(l.Name), y+17, width-2)
		fmt.Fprintf(&b, `<path fill="%s" d="`, l.color)
		for k, v := range l.Spans {
			gap := 0.0
			if k > 0 && l.Name == "steps" {
				gap = 2 // one begins where the last ends
			}
			fmt.Fprintf(&b, "M%.1f %dh%.1fv18h%.1fz", 1+v[0]*scale+gap, y+17, max((v[1]-v[0])*scale-gap, .4), -max((v[1]-v[0])*scale-gap, .4))
		}
		b.WriteString(`"/>` + "\n")
	}
	fmt.Fprintf(&b, `<text class="soft" x="1" y="%d">0</text><text class="soft" x="%d" y="%d" text-anchor="end">%.3g ms</text></svg>`+"\n", height-8, width-2, height-8, s.Microseconds/1e3)
	return b.String()
}
