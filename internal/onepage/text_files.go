package onepage

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
)

// file is what is said of a file, or of several together.
func (w *writer) file(f *finding.Report, r *Report) {
	drawn := r.pictureOf(f)
	if len(r.Files) > 1 || r.machine() {
		w.heading(2, name(f.File)+" ("+about(f, drawn)+")")
	} else {
		w.say("%s.", sentence(about(f, drawn)))
	}
	w.found("Nothing wrong was found in it.", f.Findings)
	if drawn != nil {
		w.drawn(drawn, r.Pictures)
	}
	w.notes(f.Checked, f.Notes)
}

// drawn are the pictures of a file.
func (w *writer) drawn(d *Picture, all []*Picture) {
	if len(d.Shares) > 0 {
		w.heading(3, "Where the time goes")
		w.say("%s", d.windowText())
		w.shares(d.Shares)
	}
	for _, s := range d.Strips {
		w.heading(3, s.Title)
		w.say("Who worked when: of each moment the share in which there was work.")
		w.block(s.Terminal(w.width - 1))
	}
	if len(d.Families) > 0 {
		w.heading(3, "What the device computes")
		w.say("Time of kernels and copies %s, summed over streams.", d.each())
		w.work("family", d.Families)
		w.work("kernel or copy", d.Kernels)
		if d.Others > 0 {
			w.say("and %d more names", d.Others)
		}
	}
	for _, m := range d.Memory {
		w.memory(m)
	}
	if len(d.Ranks) > 0 {
		w.ranks(d.Ranks, all)
	}
}

// shares are parts of a whole: one bar of them all, and a row of each; beyond Markdown's screen a table, which is read aloud
// and copied.
func (w *writer) shares(all []Share) {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = s.Share
	}
	bar := render.Stack(values, w.width-1) + "\n"
	if !w.screen {
		w.block(bar)
		t := render.Table{Header: []string{"", "part", "share", "time"}, Right: []bool{false, false, true, true}}
		for i, s := range all {
			t.Rows = append(t.Rows, []string{"`" + string(render.Letter(i)) + "`", s.Name, fmt.Sprintf("%.1f %%", 100*s.Share), duration(s.Seconds)})
		}
		w.table(t)
		return
	}
	var bars []render.Bar
	for i, s := range all {
		bars = append(bars, render.Bar{Label: string(render.Letter(i)) + " " + s.Name, Value: s.Share, Text: fmt.Sprintf("%6.1f %%  %s", 100*s.Share, duration(s.Seconds))})
	}
	w.block(bar + render.Bars(bars, w.width-1))
}

func (w *writer) work(what string, rows []Work) {
	t := render.Table{Header: []string{what, "calls", "time", "share"}, Right: []bool{false, true, true, true}}
	for _, x := range rows {
		t.Rows = append(t.Rows, []string{x.Name, calls(x.Calls), duration(x.Seconds), fmt.Sprintf("%.1f %%", 100*x.Share)})
	}
	w.table(t)
}

func (w *writer) memory(m *Memory) {
	if m.timed() {
		w.heading(3, m.Name+" over time, by owner")
		w.say("At most %s at once, %s after the first event.", render.Bytes(m.Peak), duration(m.PeakAt))
		a := m.area()
		a.YLabel += " over " + a.XLabel
		w.block(a.Terminal(w.width-1, 16, false))
	} else {
		w.heading(3, m.Name)
		w.say("%s, at one moment: the file has no history.", render.Bytes(m.Peak))
	}
	if len(m.Holders) > 0 {
		t := render.Table{Header: []string{"who holds it at the peak", "blocks", "bytes", "share"}, Right: []bool{false, true, true, true}}
		add := func(name, blocks string, bytes int64) {
			t.Rows = append(t.Rows, []string{name, blocks, render.Bytes(bytes), fmt.Sprintf("%.1f %%", 100*float64(bytes)/float64(max(m.Peak, 1)))})
		}
		for _, h := range m.Holders {
			add(holder(h.Line, h.Kind), count(h.Blocks), h.Bytes)
		}
		if m.Others > 0 {
			add("other lines", "", m.Others)
		}
		w.table(t)
	}
	if parts := m.reserved(); len(parts) > 0 {
		texts := make([]string, len(parts))
		for i, s := range parts {
			texts[i] = fmt.Sprintf("%s %s", s.Text, s.Name)
		}
		w.say("%s %s.", m.reservedText(), strings.Join(texts, ", "))
	}
}

func (w *writer) ranks(ranks []kineto.RankStep, all []*Picture) {
	w.heading(3, "The ranks beside each other")
	w.say("Of a step of each, the mean; bars are of the longest: %s computes, %s communicates or copies alone, %s is idle.", string(render.Letter(0)), string(render.Letter(1)), string(render.Letter(7)))
	w.block(w.rankBars(ranks))
	t := render.Table{Header: []string{"rank", "step", "computes", "communicates", "loader", "waited for"}, Right: []bool{true, true, true, true, true, true}}
	for _, r := range ranks {
		t.Rows = append(t.Rows, []string{fmt.Sprint(r.Rank), duration(r.Step / 1e6), duration(r.Compute / 1e6), duration(r.Comm / 1e6), duration(r.Loader / 1e6), fmt.Sprintf("%d of %d steps", r.Last, r.Steps)})
	}
	w.table(t)
	if s := beside(ranks, all); s != nil {
		w.heading(3, "Who worked when, rank by rank")
		w.say("%s.", s.Title)
		w.block(s.Terminal(w.width - 1))
	}
}

// rankBars is a bar of parts for each rank.
func (w *writer) rankBars(ranks []kineto.RankStep) string {
	var b strings.Builder
	longest, room := longestStep(ranks), w.width-12
	for _, r := range ranks {
		shares := make([]float64, 8) // letters by place: idle has the lightest
		for i, v := range partsOf(&r) {
			shares[[]int{0, 1, 7}[i]] = v / longest
		}
		fmt.Fprintf(&b, "%-9s %s\n", fmt.Sprintf("rank %d", r.Rank), render.Stack(shares, room))
	}
	return b.String()
}
