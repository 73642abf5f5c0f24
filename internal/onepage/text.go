package onepage

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// writer writes Markdown, with pictures of letters in fenced blocks; for a screen without Markdown's marks, and with lines
// that are broken at words.
type writer struct {
	b      strings.Builder
	width  int
	screen bool
}

// mark is what Markdown would take for its own in a text of others.
var mark = strings.NewReplacer("<", `\<`, "*", `\*`, "__", `\_\_`, "|", `\|`)

// quote is a text of others.
func (w *writer) quote(text string) string {
	if text = render.Plain(text); !w.screen {
		text = mark.Replace(text)
	}
	return text
}

// say writes a paragraph. Operands are texts of others, or numbers.
func (w *writer) say(format string, args ...any) {
	w.put(0, format, args...)
	w.b.WriteString("\n")
}

// item writes a row of a list.
func (w *writer) item(format string, args ...any) { w.put(2, "* "+format, args...) }

// put writes a text whose further lines have an indent.
func (w *writer) put(indent int, format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = w.quote(s)
		}
	}
	text := fmt.Sprintf(format, args...)
	if w.screen {
		text = render.Wrap(text, w.width-1, indent)
	}
	w.b.WriteString(text + "\n")
}

// heading writes one of a level from 1 up.
func (w *writer) heading(level int, text string) {
	text = w.quote(text)
	switch {
	case !w.screen:
		text = strings.Repeat("#", level) + " " + text
	case level < 3:
		text += "\n" + strings.Repeat([]string{"", "═", "─"}[level], min(render.Width(text), w.width-1))
	}
	w.b.WriteString(text + "\n\n")
}

// block is text of fixed width.
func (w *writer) block(text string) {
	if !w.screen {
		text = "```\n" + text + "```\n"
	}
	w.b.WriteString(text + "\n")
}

// table writes rows under a header; numbers is from which column on they are aligned to the right.
func (w *writer) table(t render.Table) {
	if w.screen {
		for _, row := range t.Rows {
			for i := range row {
				row[i] = render.Plain(row[i])
			}
		}
		w.b.WriteString(t.String(w.width-1) + "\n")
		return
	}
	rule := make([]string, len(t.Header))
	for i := range rule {
		rule[i] = "---"
		if i < len(t.Right) && t.Right[i] {
			rule[i] = "---:"
		}
	}
	for i, row := range append([][]string{t.Header, rule}, t.Rows...) {
		if i > 1 {
			for k := range row {
				row[k] = w.quote(row[k])
			}
		}
		w.b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	w.b.WriteString("\n")
}

// WriteMarkdown writes the report as Markdown, in width columns where there are pictures.
func (r *Report) WriteMarkdown(out io.Writer, width int) error {
	return r.write(out, &writer{width: width})
}

// WriteText writes the report for a terminal, width columns wide.
func (r *Report) WriteText(out io.Writer, width int) error {
	return r.write(out, &writer{width: max(width, 40), screen: true})
}

func (r *Report) write(out io.Writer, w *writer) error {
	w.heading(1, r.title())
	made := r.Made.Format("2006-01-02 15:04 MST")
	if r.machine() {
		w.say("Made %s by Warpline %s. Measured on %s: %s.", made, r.Version, r.Device, r.Why)
	} else {
		w.say("Made %s by Warpline %s.", made, r.Version)
	}
	for _, f := range r.Files {
		w.file(f, r)
	}
	if r.machine() {
		w.machine(r)
	}
	_, err := io.WriteString(out, strings.TrimRight(w.b.String(), "\n")+"\n")
	return err
}

// machine is what is said of this machine.
func (w *writer) machine(r *Report) {
	w.heading(2, "Findings on this machine")
	w.found("Nothing wrong was found on this machine.", r.Findings)
	w.notes(r.Checked, r.Notes)
	if v := r.Verdict; v != nil {
		w.say("%s.", sentence(v.Text))
		if v.Command != "" {
			w.b.WriteString("    " + render.Plain(v.Command) + "\n\n")
		}
		if v.Broken != "" && len(v.Untested) > 0 {
			w.say("Untested because of it: %s", strings.Join(v.Untested, "; "))
		}
	}
	w.heading(2, "Environment")
	for _, e := range r.Environment {
		w.item("%s: %s", e.Name, e.Text)
	}
	w.b.WriteString("\n")
	if r.Operation != nil {
		w.operation(r.Operation)
	}
	if r.Training != nil {
		w.training(r.Training)
	}
}

func (w *writer) found(none string, found []finding.Finding) {
	if len(found) == 0 {
		w.say("%s", none)
	}
	for i := range found {
		w.finding(&found[i])
	}
}

func (w *writer) notes(checked, notes []string) {
	if len(checked) > 0 {
		w.say("Fine: %s", strings.Join(checked, "; "))
	}
	for _, n := range notes {
		w.say("%s", n)
	}
}

func (w *writer) finding(f *finding.Finding) {
	at, bold := "", "**"
	if f.Line != "" {
		at = ", " + f.Line
	}
	if w.screen {
		bold = ""
	}
	w.say(bold+"%s"+bold+" (%s%s)", f.Title, f.Rule, at)
	for _, e := range f.Evidence {
		w.item("%s", e.Text)
	}
	if f.Fix != "" {
		w.item("to do: %s", f.Fix)
	}
	if gain := f.GainText(); gain != "" {
		w.item("gain: %s", gain)
	}
	if f.DisprovedBy != "" {
		w.item("confidence %s; it is not so if %s", string(f.Confidence), f.DisprovedBy)
	}
	w.b.WriteString("\n")
}

func (w *writer) operation(o *Operation) {
	w.heading(2, "One operation, measured")
	w.say("A product of two %d × %d matrices of float32 on %s, %d times, with the device waited for before and after each: %s (%s to %s), %s GFLOP/s. The call returned after %s, which is what a clock without a wait would show.",
		o.Size, o.Size, o.Device, o.Times, duration(o.Median), duration(o.Least), duration(o.Most), gigaflops(o.FLOPS), duration(o.Asked))
	if o.Modelled {
		w.say("The card is simulated: the times are those of its simulation on this host.")
	}
	if o.Peak > 0 {
		w.say("That is %s of the card's peak.", render.Percent(o.FLOPS/o.Peak))
	}
}

func (w *writer) training(t *Training) {
	w.heading(2, "Some steps of training")
	w.say("%s, %s parameters, batches of %d: %d steps of %s, after some to warm up.", t.Model, render.Count(int64(t.Parameters)), t.Batch, t.Steps, duration(t.Step))
	if t.Modelled {
		w.say("Times are a model's.")
	}
	w.shares(t.Shares)
	if len(t.Findings) > 0 {
		w.say("Of these steps, which are of this page's own small program, a profile says:")
	}
	for i := range t.Findings {
		w.finding(&t.Findings[i])
	}
	if t.Strip != nil {
		w.heading(3, "Who worked when")
		w.block(t.Strip.Terminal(w.width - 1))
	}
	if t.Memory != nil {
		w.heading(3, "Memory over time, by owner")
		w.block(t.Memory.Terminal(w.width-1, 16, false))
	}
	w.heading(3, "What can run out of memory")
	w.say("Bytes are those of this training at its peak; those of a model of yours are told by `warpline train --dry-run`, and by `warpline plan` of anybody's.")
	w.terms(t.Terms)
}

// terms are a table, and on a screen, where its texts would be cut, a list.
func (w *writer) terms(all []Term) {
	if w.screen {
		for _, x := range all {
			w.item("%s: %s; grows with %s; less by %s", x.Name, x.here(), x.Grows, x.Less)
		}
		return
	}
	t := render.Table{Header: []string{"term", "here", "grows with", "what makes it less"}, Right: []bool{false, true}}
	for _, x := range all {
		t.Rows = append(t.Rows, []string{x.Name, x.here(), x.Grows, x.Less})
	}
	w.table(t)
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
