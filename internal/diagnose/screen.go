package diagnose

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// mostFindings are shown of a report: more are not read.
const mostFindings = 5

// kindWords are the kinds of reports, for people.
var kindWords = map[string]string{
	"trace": "trace", "snapshot": "memory snapshot", "timeline": "memory timeline", "error": "error text", "job-log": "log of a job", "nccl-log": "log of NCCL",
	"flight-recorder": "flight-recorder file", "nvidia-smi": "nvidia-smi report", "kernel-log": "kernel log", "lspci": "list of PCI devices", "nvlink": "report of links",
	"collect-env": "report of collect_env", "group": "together",
}

// KindWords is a kind of report, for people.
func KindWords(kind string) string {
	if words := kindWords[kind]; words != "" {
		return words
	}
	return kind
}

// Screen shows a report to people, width columns wide.
func Screen(w io.Writer, r *finding.Report, width int) error {
	s := &sheet{width: max(width, 40)}
	s.put(0, "%s: %s%s", r.File, KindWords(r.Kind), size(r))
	for i := range r.Findings[:min(len(r.Findings), mostFindings)] {
		f := r.Findings[i]
		if i > 0 && f.Fix == r.Findings[i-1].Fix {
			f.Fix = "as above"
		}
		s.finding(i+1, &f)
	}
	if more := len(r.Findings) - mostFindings; more > 0 {
		s.put(2, "and %d more: --json has all", more)
	}
	if len(r.Findings) == 0 {
		s.put(2, "%s", nothing(r))
	}
	if len(r.Findings) > 0 && len(r.Checked)+len(r.Notes) > 0 {
		s.b.WriteString("\n")
	}
	if len(r.Checked) > 0 {
		s.hung(2, "looked at, and well: ", strings.Join(r.Checked, "; "))
	}
	for _, n := range r.Notes {
		s.hung(2, "note: ", n)
	}
	s.b.WriteString("\n")
	_, err := io.WriteString(w, s.b.String())
	return err
}

// Brief shows a report in a line.
func Brief(w io.Writer, r *finding.Report, width int) error {
	said := "nothing found"
	if n := len(r.Findings); n > 0 {
		said = r.Findings[0].Rule + " " + r.Findings[0].Title
		if n > 1 {
			said = fmt.Sprintf("%s (and %d more)", said, n-1)
		}
	}
	_, err := fmt.Fprintln(w, render.Truncate(r.File+": "+said, width-1))
	return err
}

// Worst is the report whose first finding gains most, the first of several; -1 where none has any.
func Worst(all []*finding.Report) int {
	worst := -1
	for i, r := range all {
		if len(r.Findings) > 0 && (worst < 0 || finding.ByGain(r.Findings[0], all[worst].Findings[0]) < 0) {
			worst = i
		}
	}
	return worst
}

// nothing is what is said where nothing was found.
func nothing(r *finding.Report) string {
	switch judged, group := len(r.Checked) > 0, r.Kind == "group"; {
	case judged && group:
		return "nothing found that the files show only together"
	case judged:
		return "nothing found that is wrong"
	case group:
		return "the files say nothing more together"
	}
	return "nothing is said to be wrong, or to be well: it has nothing that could be judged"
}

// size is how much a group has.
func size(r *finding.Report) string {
	if r.Kind != "group" {
		return ""
	}
	return fmt.Sprintf(", %d file%s", len(r.Members), plural(len(r.Members)))
}

// sheet is text under way.
type sheet struct {
	b     strings.Builder
	width int
}

// put writes a paragraph with an indent.
func (s *sheet) put(indent int, format string, args ...any) {
	s.hung(indent, "", fmt.Sprintf(format, args...))
}

// hung writes a paragraph whose further lines begin where its text does.
func (s *sheet) hung(indent int, label, text string) {
	in := strings.Repeat(" ", indent)
	s.b.WriteString(render.Wrap(in+label+text, s.width-1, indent+render.Width(label)))
	s.b.WriteString("\n")
}

// finding writes one: what is wrong, what to do, and why.
func (s *sheet) finding(n int, f *finding.Finding) {
	place := ""
	if f.Line != "" {
		place = " [" + f.Line + "]"
	}
	s.b.WriteString("\n")
	s.hung(2, fmt.Sprintf("%d. ", n), f.Title+place)
	s.hung(5, "do:   ", f.Fix)
	if gain := f.GainText(); gain != "" {
		s.hung(5, "gain: ", gain)
	}
	for i, e := range f.Evidence {
		label := "      "
		if i == 0 {
			label = "why:  "
		}
		s.hung(5, label, e.Text)
	}
	s.hung(5, "sure: ", fmt.Sprintf("%s (%s); not so if %s", f.Confidence, f.Rule, f.DisprovedBy))
}
