package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// SidesText is a table of sides, a line each.
func SidesText(sides []Side, width int) string {
	t := render.Table{Header: []string{"n", "device", "a step", "quartiles", "kernels", "copies", "launches", "memory", "value", "speed-up"},
		Right: []bool{true, false, true, false, true, true, true, true, true, true}, Spare: []int{8, 3, 7}}
	for i := range sides {
		s := &sides[i]
		n, quartiles := fmt.Sprint(s.N), ""
		if i > 0 && sides[i-1].N == s.N {
			n = ""
		}
		if s.Low != s.High {
			quartiles = fmt.Sprintf("%s–%s", duration(s.Low), duration(s.High))
		}
		t.Rows = append(t.Rows, []string{n, s.Device, duration(s.MS), quartiles, part(s.Kernels), part(s.Copies), part(s.Launches), render.Bytes(s.Peak),
			fmt.Sprintf("%.5g", s.Value), figure(s.Speedup) + "×"})
	}
	return t.String(width)
}

func part(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return duration(*ms)
}

// CrossingsText says for each device from which size on it is quicker, and what a step is made of at the smallest and the largest.
func CrossingsText(list []Crossing, sides []Side) string {
	var b strings.Builder
	for _, x := range list {
		first, last := ends(sides, x.Device)
		switch {
		case x.Always:
			fmt.Fprintf(&b, "%s is quicker than %s at every size, from n = %d on", x.Device, x.Against, first.N)
		case x.From != nil:
			fmt.Fprintf(&b, "%s is quicker than %s from n = %s on", x.Device, x.Against, render.Count(int64(math.Ceil(*x.From))))
		default:
			fmt.Fprintf(&b, "%s is not quicker than %s up to n = %d", x.Device, x.Against, last.N)
		}
		if x.Modelled {
			b.WriteString(" (modelled)")
		}
		b.WriteString(".")
		if first.Kernels != nil && first.N != last.N {
			fmt.Fprintf(&b, " A step there %s at n = %d, and %s at n = %d.", first.shares(), first.N, last.shares(), last.N)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ends are a device's sides at the smallest and the largest size.
func ends(sides []Side, name string) (first, last *Side) {
	for i := range sides {
		s := &sides[i]
		if s.Device != name {
			continue
		}
		if first == nil || s.N < first.N {
			first = s
		}
		if last == nil || s.N > last.N {
			last = s
		}
	}
	return first, last
}

// shares says what a step is made of. Copies may run beside kernels.
func (s *Side) shares() string {
	all := max(s.MS, *s.Kernels+*s.Copies)
	return fmt.Sprintf("computes for %s of its time, copies for %s and waits for launches for %s", percent(*s.Kernels/all), percent(*s.Copies/all), percent(*s.Launches/all))
}

// SidesPlot draws a step's time by size, a curve for each device.
func SidesPlot(sides []Side) render.Plot {
	p := render.Plot{Title: "time of a step", XLabel: "n", YLabel: "ms", LogX: true, LogY: true}
	var names []string
	for _, s := range sides {
		p.Title = "time of a step of " + s.Task
		if !slices.Contains(names, s.Device) {
			names = append(names, s.Device)
			label := s.Device
			if s.Modelled {
				label += " (modelled)"
			}
			p.Series = append(p.Series, render.Series{Name: label})
		}
		c := &p.Series[slices.Index(names, s.Device)]
		c.X, c.Y = append(c.X, float64(s.N)), append(c.Y, s.MS)
	}
	return p
}
