package onepage

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// writer writes Markdown, with pictures for a terminal in fenced blocks.
type writer struct {
	b     strings.Builder
	width int
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// block is text of fixed width.
func (w *writer) block(text string) { w.line("```\n%s```\n", text) }

// WriteMarkdown writes the report as text that reads as it stands, in width columns where there are pictures.
func (r *Report) WriteMarkdown(out io.Writer, width int) error {
	w := &writer{width: width}
	w.line("# This machine, and how it trains\n")
	w.line("Made %s by Warpline %s. Measured on %s: %s.\n", r.Made.Format("2006-01-02 15:04 MST"), r.Version, r.Device, r.Why)
	w.found("Findings", "Nothing wrong was found on this machine.", r.Findings, r.Checked, r.Notes)
	if v := r.Verdict; v != nil {
		w.line("%s.\n", sentence(v.Text))
		if v.Command != "" {
			w.line("    %s\n", v.Command)
		}
		if v.Broken != "" && len(v.Untested) > 0 {
			w.line("Untested because of it: %s\n", strings.Join(v.Untested, "; "))
		}
	}
	for _, f := range r.Files {
		w.found(fmt.Sprintf("%s (%s)", f.File, f.Kind), "Nothing wrong was found in it.", f.Findings, f.Checked, f.Notes)
	}
	w.line("## Environment\n")
	for _, e := range r.Environment {
		w.line("* %s: %s", e.Name, e.Text)
	}
	w.line("")
	if r.Operation != nil {
		w.operation(r.Operation)
	}
	if r.Training != nil {
		w.training(r.Training)
	}
	_, err := io.WriteString(out, strings.TrimRight(w.b.String(), "\n")+"\n")
	return err
}

func (w *writer) found(title, none string, found []finding.Finding, checked, notes []string) {
	w.line("## %s\n", title)
	if len(found) == 0 {
		w.line("%s\n", none)
	}
	for i := range found {
		w.finding(&found[i])
	}
	if len(checked) > 0 {
		w.line("Fine: %s\n", strings.Join(checked, "; "))
	}
	for _, n := range notes {
		w.line("%s\n", n)
	}
}

func (w *writer) finding(f *finding.Finding) {
	at := ""
	if f.Line != "" {
		at = ", " + f.Line
	}
	w.line("**%s** (%s%s)\n", f.Title, f.Rule, at)
	for _, e := range f.Evidence {
		w.line("* %s", e.Text)
	}
	if f.Fix != "" {
		w.line("* to do: %s", f.Fix)
	}
	if f.Gain.Text != "" {
		w.line("* gain: %s", f.Gain.Text)
	}
	if f.DisprovedBy != "" {
		w.line("* confidence %s; it is not so if %s", f.Confidence, f.DisprovedBy)
	}
	w.line("")
}

func (w *writer) operation(o *Operation) {
	w.line("## One operation, measured\n")
	w.line("A product of two %d × %d matrices of float32 on %s, %d times, with the device waited for before and after each: %s (%s to %s), %s GFLOP/s. The call returned after %s, which is what a clock without a wait would show.\n",
		o.Size, o.Size, o.Device, o.Times, duration(o.Median), duration(o.Least), duration(o.Most), gigaflops(o.FLOPS), duration(o.Asked))
	if o.Modelled {
		w.line("The card is simulated: the times are those of its simulation on this host.\n")
	}
	if o.Peak > 0 {
		w.line("That is %s of the card's peak.\n", render.Percent(o.FLOPS/o.Peak))
	}
}

func (w *writer) training(t *Training) {
	w.line("## Some steps of training\n")
	w.line("%s, %s parameters, batches of %d: %d steps of %s, after some to warm up.\n", t.Model, render.Count(int64(t.Parameters)), t.Batch, t.Steps, duration(t.Step))
	if t.Modelled {
		w.line("Times are a model's.\n")
	}
	var bars []render.Bar
	for _, s := range t.Shares {
		bars = append(bars, render.Bar{Label: s.Name, Value: s.Share, Text: fmt.Sprintf("%7s  %s", render.Percent(s.Share), duration(s.Seconds))})
	}
	w.block(render.Bars(bars, w.width))
	if len(t.Findings) > 0 {
		w.line("Of these steps, which are of this page's own small program, a profile says:\n")
	}
	for i := range t.Findings {
		w.finding(&t.Findings[i])
	}
	if t.Strip != nil {
		w.line("### Who worked when\n")
		w.block(t.Strip.Terminal(w.width))
	}
	if t.Memory != nil {
		w.line("### Memory over time, by owner\n")
		w.block(t.Memory.Terminal(w.width, 16, false))
	}
	w.line("### What can run out of memory\n")
	w.line("Bytes are those of this training at its peak; those of a model of yours are told by `warpline train --dry-run`, and by `warpline plan` of anybody's.\n")
	w.line("| term | here | grows with | what makes it less |\n|---|---:|---|---|")
	for _, x := range t.Terms {
		w.line("| %s | %s | %s | %s |", x.Name, x.here(), x.Grows, x.Less)
	}
}

// here is what is known of a term on this machine.
func (x *Term) here() string {
	switch {
	case x.Known:
		return render.Bytes(x.Bytes)
	case x.Bytes > 0:
		return "about " + render.Bytes(x.Bytes)
	}
	return "not known"
}
