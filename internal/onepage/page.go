package onepage

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

//go:embed page.css
var style string

// page writes HTML.
type page struct{ render.HTML }

// add writes a piece of the page: formats are our own, operands of others.
func (p *page) add(format string, operands ...any) { p.Add(format, operands...) }

// WriteHTML writes the page: one file that fetches nothing and runs nothing, for screens, phones and paper.
func (r *Report) WriteHTML(w io.Writer) error {
	var p page
	made := r.Made.Format("2006-01-02 15:04 MST")
	p.add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Warpline: %s, %s</title>\n<style>\n", r.title(), made)
	p.WriteString(style)
	p.add("</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n<p class=\"dim\">Made %s by Warpline %s.", r.title(), made, r.Version)
	if r.machine() {
		p.add(" Measured on <b>%s</b>: %s.", r.Device, r.Why)
	}
	p.add("</p>\n")
	for _, f := range r.Files {
		p.file(f, r)
	}
	if r.machine() {
		p.machine(r)
	}
	p.add("</main>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// machine is what is said of this machine.
func (p *page) machine(r *Report) {
	p.add("<h2>Findings on this machine</h2>\n")
	p.found("Nothing wrong was found on this machine.", r.Findings)
	if r.Verdict != nil {
		p.verdict(r.Verdict)
	}
	p.notes(r.Checked, r.Notes)
	p.add("<h2>Environment</h2>\n<dl>")
	for _, e := range r.Environment {
		p.add("<dt>%s</dt><dd>%s</dd>", e.Name, e.Text)
	}
	p.add("</dl>\n")
	if r.Operation != nil {
		p.operation(r.Operation)
	}
	if r.Training != nil {
		p.training(r.Training)
	}
}

// file is what is said of a file, or of several together.
func (p *page) file(f *finding.Report, r *Report) {
	drawn := r.pictureOf(f)
	if len(r.Files) > 1 || r.machine() {
		p.add("<h2>%s <span class=\"rule\">%s</span></h2>\n", name(f.File), about(f, drawn))
	} else {
		p.add("<p class=\"dim\">%s</p>\n", sentence(about(f, drawn)))
	}
	p.found("Nothing wrong was found in it.", f.Findings)
	if drawn != nil {
		p.drawn(drawn, r.Pictures)
	}
	p.notes(f.Checked, f.Notes)
}

func (p *page) found(none string, all []finding.Finding) {
	if len(all) == 0 {
		p.add("<p>%s</p>\n", none)
	}
	for i := range all {
		p.finding(&all[i])
	}
}

func (p *page) finding(f *finding.Finding) {
	at := f.Rule
	if f.Line != "" {
		at += ", " + f.Line
	}
	p.add("<div class=\"finding\"><h3>%s <span class=\"rule\">%s</span></h3>\n<ul>", f.Title, at)
	for _, e := range f.Evidence {
		p.add("<li>%s</li>", e.Text)
	}
	p.add("</ul>\n")
	if f.Fix != "" {
		p.add("<p><b>To do:</b> %s</p>", f.Fix)
	}
	if gain := f.GainText(); gain != "" {
		p.add("<p><b>Gain:</b> %s</p>", gain)
	}
	p.add("\n<p class=\"dim\">Confidence %s", f.Confidence)
	if f.DisprovedBy != "" {
		p.add("; it is not so if %s", f.DisprovedBy)
	}
	p.add(".</p></div>\n")
}

func (p *page) verdict(v *doctor.Verdict) {
	p.add("<p>%s.", sentence(v.Text))
	if v.Command != "" {
		p.add("<br><b>Type:</b> <code>%s</code>", v.Command)
	}
	if v.Broken != "" && len(v.Untested) > 0 {
		p.add("<br><span class=\"dim\">Untested because of it: %s</span>", strings.Join(v.Untested, "; "))
	}
	p.add("</p>\n")
}

func (p *page) notes(checked, notes []string) {
	if len(checked) > 0 {
		p.add("<p class=\"dim\">Fine: %s</p>\n", strings.Join(checked, "; "))
	}
	for _, n := range notes {
		p.add("<p class=\"dim\">%s</p>\n", n)
	}
}

func (p *page) operation(o *Operation) {
	p.add("<h2>One operation, measured</h2>\n<p>A product of two %d × %d matrices of float32 on <b>%s</b>, %d times, with the device waited for before and after each.", o.Size, o.Size, o.Device, o.Times)
	if o.Modelled {
		p.add(" The card is simulated: the times are those of its simulation on this host.")
	}
	share := ""
	if o.Peak > 0 {
		share = ", " + render.Percent(o.FLOPS/o.Peak) + " of the card's peak"
	}
	p.add("</p>\n<div class=\"figures\"><div><b>%s</b><span>median, from %s to %s</span></div><div><b>%s</b><span>GFLOP/s%s</span></div><div><b>%s</b><span>until the call returned: what a clock without a wait would show</span></div></div>\n",
		duration(o.Median), duration(o.Least), duration(o.Most), gigaflops(o.FLOPS), share, duration(o.Asked))
}

func (p *page) training(t *Training) {
	p.add("<h2>Some steps of training</h2>\n<p>%s, %s parameters, batches of %d: %d steps of <b>%s</b>, after some to warm up.", t.Model, render.Count(int64(t.Parameters)), t.Batch, t.Steps, duration(t.Step))
	if t.Modelled {
		p.add(" Times are a model's.")
	}
	p.add("</p>\n<h3>Where a step goes</h3>\n")
	p.shares(t.Shares)
	if len(t.Findings) > 0 {
		p.add("<p>Of these steps, which are of this page's own small program, a profile says:</p>\n")
		p.found("", t.Findings)
	} else {
		p.add("<p class=\"dim\">A profile finds nothing wrong with these steps; looked at: %s.</p>\n", t.Checked)
	}
	if s := t.Strip; s != nil {
		p.add("<h2>Who worked when</h2>\n")
		p.picture("strip ", s.SVG(928), s.SVG(380))
	}
	if m := t.Memory; m != nil {
		p.add("<h2>Memory over time, by owner</h2>\n<p class=\"dim\">The first %s of the program: %s at most at once, of which %s were kept for a backward pass.</p>\n",
			render.Duration(m.At[len(m.At)-1]), render.Bytes(m.Peak), render.Bytes(m.Kept))
		p.picture("", m.SVG(928, 360), m.SVG(380, 320))
	}
	p.terms(t.Terms)
}

// shares are parts of a whole: one bar of them all, and a bar of each.
func (p *page) shares(all []Share) {
	p.add("<div class=\"stack\">")
	for _, s := range all {
		p.part(s.Name, s.Share)
	}
	p.add("</div>\n<div class=\"bars\">")
	for _, s := range all {
		p.add("<div class=\"share\"><div class=\"name\">%s</div><div class=\"of\"><div class=\"bar\" style=\"width:%s%%;background:%s\"></div></div><div class=\"n\">%s &nbsp;%s</div></div>",
			s.Name, percentWide(s.Share), colorOf(s.Name), fmt.Sprintf("%.0f %%", 100*s.Share), duration(s.Seconds))
	}
	p.add("</div>\n")
}

// part is a part of a stacked bar.
func (p *page) part(name string, share float64) {
	p.add("<span title=\"%s\" style=\"width:%s%%;background:%s\"></span>", name, percentWide(share), colorOf(name))
}

// percentWide is a share as a width.
func percentWide(share float64) string { return fmt.Sprintf("%.2f", 100*min(max(share, 0), 1)) }

// picture writes a drawing for wide pages and one for phones. They are our own, whose texts are escaped.
func (p *page) picture(class, wide, narrow string) {
	for _, d := range [][2]string{{"desk", wide}, {"phone", narrow}} {
		p.add("<div class=\"picture %s%s\">", class, d[0])
		p.WriteString(d[1])
		p.add("</div>\n")
	}
}

func (p *page) terms(all []Term) {
	p.add("<h2>What can run out of memory</h2>\n<p class=\"dim\">Bytes are those of this training at its peak; those of a model of yours are told by <code>warpline train --dry-run</code>, and by <code>warpline plan</code> of anybody's.</p>\n")
	p.add("<table class=\"terms\"><thead><tr><th>term</th><th class=\"n\">here</th><th>grows with</th><th>what makes it less</th></tr></thead><tbody>\n")
	for _, x := range all {
		p.add("<tr><td>%s</td><td class=\"n\">%s</td><td class=\"wide\" data-name=\"grows with\">%s</td><td class=\"wide\" data-name=\"less:\">%s</td></tr>\n", x.Name, x.here(), x.Grows, x.Less)
	}
	p.add("</tbody></table>\n")
}

// sentence begins with a capital.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func gigaflops(f float64) string { return fmt.Sprintf("%.3g", f/1e9) }

func duration(s float64) string { return render.Duration(time.Duration(s * 1e9)) }
