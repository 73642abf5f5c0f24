package doctor

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/render"
)

// Text is a diagnosis for people, in lines of at most width columns where words allow it.
func (d *Diagnosis) Text(width int) string {
	var b strings.Builder
	b.WriteString(render.Wrap(d.Machine, width, 2) + "\n")
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintf(&b, "\n%s\n", render.Wrap(f.Rule+"  "+f.Title, width, 5))
		for _, e := range f.Evidence {
			b.WriteString(render.Wrap("     seen:  "+e.Text, width, 12) + "\n")
		}
		b.WriteString("     to do: " + f.Fix + "\n") // as a shell takes it
		if f.More != "" {
			b.WriteString(render.Wrap("            "+f.More, width, 12) + "\n")
		}
		b.WriteString(render.Wrap(fmt.Sprintf("     it is not so if: %s (confidence: %s)", f.DisprovedBy, f.Confidence), width, 12) + "\n")
	}
	b.WriteString("\n")
	for _, r := range d.Ladder {
		b.WriteString(render.Wrap(fmt.Sprintf("%-4s%-23s %-11s %s", r.ID, r.Name, shortly(r.State), r.Text), width, 40) + "\n")
	}
	b.WriteString(environmentsText(d.Python, width))
	if len(d.Checked) > 0 {
		fmt.Fprintf(&b, "\n%s\n", render.Wrap(fmt.Sprintf("fine: %s", strings.Join(d.Checked, "; ")), width, 2))
	}
	for _, n := range d.Notes {
		b.WriteString(render.Wrap("note: "+n, width, 2) + "\n")
	}
	b.WriteString("\n" + d.Verdict.text(width))
	return b.String()
}

func shortly(s State) string {
	switch s {
	case Broken:
		return "BROKEN"
	case Weak:
		return "ok, but"
	case Absent:
		return "none here"
	}
	return string(s)
}

func (v *Verdict) text(width int) string {
	var b strings.Builder
	b.WriteString(render.Wrap(sentence(v.Text), width, 2) + "\n")
	if v.Command != "" {
		b.WriteString("type: " + v.Command + "\n") // as a shell takes it
	}
	if len(v.Untested) > 0 {
		because := map[bool]string{true: " because of it"}[v.Broken != ""]
		b.WriteString(render.Wrap("untested"+because+": "+strings.Join(v.Untested, ", "), width, 2) + "\n")
	}
	return b.String()
}

// sentence begins with a capital.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
