package onepage

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/diagnose"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/kineto"
	"github.com/warpline-ml/warpline/internal/render"
)

// name is a file's, for people.
func name(file string) string {
	if file == diagnose.Stdin {
		return "standard input"
	}
	return render.Plain(file)
}

// about says what a file is.
func about(f *finding.Report, p *Picture) string {
	text := diagnose.KindWords(f.Kind)
	if f.Kind == "group" {
		text = fmt.Sprintf("%d files together", len(f.Members))
	}
	if p != nil && p.Of != "" {
		text += ", " + render.Plain(p.Of)
	}
	return text
}

// pictureOf is a file's picture, or nil.
func (r *Report) pictureOf(f *finding.Report) *Picture {
	for _, p := range r.Pictures {
		if p.File == f.File && (len(p.Ranks) > 0) == (f.Kind == "group") {
			return p
		}
	}
	return nil
}

// drawn are the pictures of a file.
func (p *page) drawn(d *Picture, all []*Picture) {
	if len(d.Shares) > 0 {
		p.add("<h3>Where the time goes</h3>\n<p class=\"dim\">%s</p>\n", d.windowText())
		p.shares(d.Shares)
	}
	for _, s := range d.Strips {
		p.add("<h3>%s</h3>\n<p class=\"dim\">Who worked when: of each moment the share in which there was work.</p>\n", s.Title)
		p.picture("strip ", s.SVG(928), s.SVG(380))
	}
	if len(d.Families) > 0 {
		p.kernels(d)
	}
	for _, m := range d.Memory {
		p.memory(m)
	}
	if len(d.Ranks) > 0 {
		p.ranks(d.Ranks, all)
	}
}

// windowText says what the parts of a trace's time are of.
func (d *Picture) windowText() string {
	if d.Steps == 0 {
		return fmt.Sprintf("Of %s in which the device was recorded; no steps are marked.", duration(d.Window))
	}
	return fmt.Sprintf("Of a step of %s, the mean of %s.", duration(d.Window/float64(d.Steps)), stepsOf(d.Steps))
}

// each says what a row of kernels is of.
func (d *Picture) each() string {
	if d.Steps == 0 {
		return "in the trace"
	}
	return "a step"
}

func (p *page) kernels(d *Picture) {
	p.add("<h3>What the device computes</h3>\n<p class=\"dim\">Time of kernels and copies %s, summed over streams.</p>\n", d.each())
	p.work("family", d.Families)
	p.work("kernel or copy", d.Kernels)
	if d.Others > 0 {
		p.add("<p class=\"dim\">and %d more names</p>\n", d.Others)
	}
}

func (p *page) work(what string, rows []Work) {
	p.add("<table class=\"rows\"><thead><tr><th>%s</th><th class=\"n\">calls</th><th class=\"n\">time</th><th class=\"of\"></th></tr></thead><tbody>\n", what)
	for _, w := range rows {
		p.row(w.Name, calls(w.Calls), duration(w.Seconds), w.Share)
	}
	p.add("</tbody></table>\n")
}

// row is a row of a table with a bar of its share.
func (p *page) row(name, count, value string, share float64) {
	p.add("<tr><td class=\"key\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"of\"><div class=\"bar\" style=\"width:%s%%\"></div><span>%s</span></td></tr>\n",
		name, count, value, percentWide(share), fmt.Sprintf("%.1f %%", 100*share))
}

// calls is how often, on average.
func calls(n float64) string {
	if n == float64(int64(n)) {
		return fmt.Sprintf("%d", int64(n))
	}
	return fmt.Sprintf("%.1f", n)
}

func (p *page) memory(m *Memory) {
	if m.timed() {
		p.add("<h3>%s over time, by owner</h3>\n<p class=\"dim\">At most %s at once, %s after the first event: the dashed line.</p>\n", m.Name, render.Bytes(m.Peak), duration(m.PeakAt))
		p.picture("", m.area().SVG(928, 360), m.area().SVG(380, 340))
	} else {
		p.add("<h3>%s</h3>\n<p class=\"dim\">%s, at one moment: the file has no history.</p>\n", m.Name, render.Bytes(m.Peak))
	}
	if len(m.Holders) > 0 {
		p.add("<table class=\"rows\"><thead><tr><th>who holds it at the peak</th><th class=\"n\">blocks</th><th class=\"n\">bytes</th><th class=\"of\"></th></tr></thead><tbody>\n")
		for _, h := range m.Holders {
			p.row(holder(h.Line, h.Kind), count(h.Blocks), render.Bytes(h.Bytes), float64(h.Bytes)/float64(max(m.Peak, 1)))
		}
		if m.Others > 0 {
			p.row("other lines", "", render.Bytes(m.Others), float64(m.Others)/float64(max(m.Peak, 1)))
		}
		p.add("</tbody></table>\n")
	}
	if shares := m.reserved(); len(shares) > 0 {
		p.add("<p>%s</p>\n<div class=\"stack\">", m.reservedText())
		for _, s := range shares {
			p.part(s.Name, s.Share)
		}
		p.add("</div>\n<p class=\"dim\">")
		for _, s := range shares {
			p.add("<span class=\"swatch\" style=\"background:%s\"></span>%s, %s &nbsp; ", colorOf(s.Name), s.Name, s.Text)
		}
		p.add("</p>\n")
	}
}

// holder is a line with the kind of its memory.
func holder(line, kind string) string {
	if line == kind || kind == "" {
		return line
	}
	return line + ", " + kind
}

// count is how many blocks, where that is known.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// reserved are the parts of what the allocator has at the end.
func (m *Memory) reserved() (parts []Share) {
	r := m.Reserved
	sum := r.InUse + r.Stuck + r.Reclaimable
	if sum <= 0 {
		return nil
	}
	for _, x := range []struct {
		name string
		n    int64
	}{{"in use", r.InUse}, {"stuck", r.Stuck}, {"reclaimable", r.Reclaimable}} {
		if x.n > 0 {
			parts = append(parts, Share{Name: x.name, Share: float64(x.n) / float64(sum), Text: render.Bytes(x.n)})
		}
	}
	return parts
}

func (m *Memory) reservedText() string {
	r := m.Reserved
	return fmt.Sprintf("At the end the allocator has %s from the driver:", render.Bytes(r.InUse+r.Stuck+r.Reclaimable))
}

func (p *page) ranks(ranks []kineto.RankStep, all []*Picture) {
	p.add("<h3>The ranks beside each other</h3>\n<p class=\"dim\">Of a step of each, the mean; bars are of the longest.</p>\n")
	p.add("<p class=\"dim\">")
	for _, name := range rankParts {
		p.add("<span class=\"swatch\" style=\"background:%s\"></span>%s &nbsp; ", colorOf(name), name)
	}
	p.add("</p>\n<div class=\"ranks\">")
	longest := longestStep(ranks)
	for _, r := range ranks {
		p.add("<div class=\"share\"><div class=\"name\">rank %d</div><div class=\"of stack\">", r.Rank)
		for i, v := range partsOf(&r) {
			p.part(rankParts[i], v/longest)
		}
		p.add("</div><div class=\"n\">%s</div><div class=\"note\">%s</div></div>", duration(r.Step/1e6), rankText(&r))
	}
	p.add("</div>\n")
	if s := beside(ranks, all); s != nil {
		p.add("<h3>Who worked when, rank by rank</h3>\n<p class=\"dim\">%s.</p>\n", s.Title)
		p.picture("strip ", s.SVG(928), s.SVG(380))
	}
}

// rankParts are the parts of a rank's step, in the order of partsOf.
var rankParts = [3]string{"computes", "communicates or copies alone", "idle"}

// partsOf are the parts of a rank's step, in microseconds.
func partsOf(r *kineto.RankStep) [3]float64 {
	return [3]float64{r.Compute, max(r.Busy-r.Compute, 0), max(r.Step-r.Busy, 0)}
}

func longestStep(ranks []kineto.RankStep) float64 {
	longest := 1e-9
	for _, r := range ranks {
		longest = max(longest, r.Step)
	}
	return longest
}

// rankText is what else is known of a rank.
func rankText(r *kineto.RankStep) string {
	text := fmt.Sprintf("communicates %s", duration(r.Comm/1e6))
	if r.Loader > 0 {
		text += fmt.Sprintf(", waits for batches %s", duration(r.Loader/1e6))
	}
	if r.Last > 0 {
		text += fmt.Sprintf(", is waited for in %d of %s", r.Last, stepsOf(r.Steps))
	}
	return text
}
