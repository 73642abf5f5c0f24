package prof

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// topOnScreen is how many operations a screen names.
const topOnScreen = 5

// WriteScreen writes where the steps of the window went, on one screen of width columns: compute, copies and idle time with
// its reasons, the operations that took most, and what is found to be wrong.
func (p *Profile) WriteScreen(w io.Writer, width int) error {
	f := p.Facts()
	found := finding.Judge(f)
	parts := []string{p.heading(f) + "\n" + p.parts(f, min(width, 100)), p.top(f, width), p.peaks(min(width, 100)), verdict(f, found, width)}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// heading says what the screen is of.
func (p *Profile) heading(f *finding.Facts) string {
	s := fmt.Sprintf("%d steps of %s on %s", f.Steps, render.Duration(f.Took/time.Duration(max(f.Steps, 1))), f.Device)
	if f.Modelled {
		s += ", times as modelled"
	}
	if p.Dropped > 0 {
		s += fmt.Sprintf("; %d events came too late to be kept", p.Dropped)
	}
	return s + "\n"
}

// parts divides a step.
func (p *Profile) parts(f *finding.Facts, width int) string {
	var bars []render.Bar
	add := func(name string, d time.Duration, note string) {
		if d > 0 {
			text := fmt.Sprintf("%6s  %s", render.Percent(fraction(d, f.Took)), render.Duration(d/time.Duration(max(f.Steps, 1))))
			bars = append(bars, render.Bar{Label: "  " + name, Value: float64(d), Text: strings.TrimRight(text+"  "+note, " ")})
		}
	}
	cores := ""
	if f.Tensor > 0 && f.Products > 0 {
		cores = render.Percent(fraction(f.Products-f.Wide, f.Products)) + " on tensor cores"
	}
	products := min(f.Products, f.Busy-f.Copies) // work side by side counts twice in it
	add("products", products, cores)
	add("other compute", f.Busy-f.Copies-products, "")
	add("copies alone", f.Copies, "")
	add("idle: loader", f.Idle.Loader, "")
	add("idle: waits", f.Idle.Wait, longestWait(f))
	gaps := ""
	if 2*f.Captured > f.Idle.Host {
		gaps = "captured: one launch if not timed"
	}
	add("idle: host", f.Idle.Host, gaps)
	return render.Bars(bars, width)
}

func longestWait(f *finding.Facts) string {
	if len(f.Waits) == 0 {
		return ""
	}
	return f.Waits[0].Line
}

// spot is an operation of a line, in a module.
type spot struct{ op, line, module string }

// spots are the times of operations by line and module, the longest first.
func (p *Profile) spots() (all []spot, took map[spot]time.Duration) {
	took = map[spot]time.Duration{}
	for i := range p.all {
		e := p.at(i)
		if !e.work() {
			continue
		}
		at := spot{op: e.op(), line: p.sites[e.Site].Line}
		if e.part > 0 {
			at.module = p.ranges[e.part-1].Name
		}
		if e.Backward {
			at.op += ", backward"
		}
		took[at] += e.worked()
	}
	all = slices.Collect(maps.Keys(took))
	sorting.By(all, func(a, b spot) int {
		return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a.line, b.line), cmp.Compare(a.op, b.op), cmp.Compare(a.module, b.module))
	})
	return all, took
}

// top names the operations that took most.
func (p *Profile) top(f *finding.Facts, width int) string {
	all, took := p.spots()
	t := render.Table{Header: []string{"most time", "a step", "share", "line", "module"}, Right: []bool{false, true, true, false, false}}
	for _, at := range all[:min(len(all), topOnScreen)] {
		d := took[at]
		t.Rows = append(t.Rows, []string{at.op, render.Duration(d / time.Duration(max(f.Steps, 1))), render.Percent(fraction(d, f.Took)), at.line, at.module})
	}
	return t.String(width)
}

// peaks are the kinds of memory at the devices' peaks.
func (p *Profile) peaks(width int) string {
	var b strings.Builder
	for _, t := range p.Memory {
		var bars []render.Bar
		for _, k := range kinds(t.Top) {
			bars = append(bars, render.Bar{Label: "  " + k.Label, Value: float64(k.Bytes), Text: render.Bytes(k.Bytes)})
		}
		fmt.Fprintf(&b, "memory at the step's peak on %s: %s, of it kept for Backward %s\n%s", t.Device, render.Bytes(t.Peak), render.Bytes(t.Kept), render.Bars(bars, width))
	}
	return b.String()
}

// verdict lists the findings, or says that there are none.
func verdict(f *finding.Facts, found []Finding, width int) string {
	if len(found) == 0 {
		return render.Wrap("nothing wrong found; looked at: "+finding.Checked(f)+"\n", width, 2)
	}
	var b strings.Builder
	for i := range found {
		b.WriteString(render.Wrap(found[i].String(), width, 8))
	}
	return b.String()
}
