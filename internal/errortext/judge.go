package errortext

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/xid"
)

// ErrUnknown is of a text in which nothing is known.
var ErrUnknown = errors.New("nothing in the text is known")

// Judge is what a text that was found means; s are the model's sizes, where they are known.
func Judge(m *Match, s Sizes) []finding.Finding {
	all := judge(m, s)
	if m.AMD {
		for i := range all {
			forAMD(&all[i])
		}
	}
	return all
}

func judge(m *Match, s Sizes) []finding.Finding {
	switch {
	case m.Row.pytorch && m.OOM.Asked < 0:
		return nil // no figure that can be
	case m.Row.pytorch:
		return judgeOOM(m, s)
	case m.Row.Name == Unnamed.Name:
		return []finding.Finding{unnamed(m)}
	}
	return []finding.Finding{known(m)}
}

// known is the finding of a row without figures.
func known(m *Match) finding.Finding {
	f := finding.Finding{
		Rule: m.Row.Rule, Name: m.Row.Name, Title: filled(m.Row.title, m), Fix: filled(m.Row.fix, m), Evidence: []finding.Evidence{quoted(m)},
		Gain: finding.Gain{Text: "the run works"}, Confidence: m.Row.sure, DisprovedBy: filled(m.Row.disproved, m), Line: site(m),
	}
	if m.Row.Class == Notice {
		f.Gain.Text = "what it costs in every step"
	}
	if n := m.Row.bytes; n > 0 {
		if asked, err := strconv.ParseInt(m.Groups[n], 10, 64); err == nil {
			f.Evidence = append(f.Evidence, bytesOf("asked", asked, "were asked for"))
		}
	}
	return f
}

// unnamed is the finding of an exception that no row knows.
func unnamed(m *Match) finding.Finding {
	return finding.Finding{
		Rule: Unnamed.Rule, Name: Unnamed.Name, Title: fmt.Sprintf("the program ended by its own error: %s", clipped(m.Groups[0])), Evidence: []finding.Evidence{quoted(m)},
		Fix: at(m, "see why"), Gain: finding.Gain{Text: "the run works"}, Confidence: finding.Medium,
		DisprovedBy: "an earlier error, on another rank or above the text", Line: site(m),
	}
}

// site is the line of the program, or else of the text.
func site(m *Match) string {
	if s := m.Site(); s != "" || m.Line.Number == 0 {
		return s
	}
	return fmt.Sprintf("line %d", m.Line.Number)
}

// longestQuote is how much of a text is quoted.
const longestQuote = 200

func clipped(s string) string { return render.Truncate(strings.TrimSpace(s), longestQuote) }

// quoted is the line itself.
func quoted(m *Match) finding.Evidence {
	return finding.Evidence{Name: "text", Value: clipped(m.Line.Text), Text: fmt.Sprintf("line %d: %s", m.Line.Number, clipped(m.Line.Text))}
}

// filled puts what the pattern held into a text. A part that the text did not have is "?".
func filled(text string, m *Match) string {
	for i := len(m.Groups) - 1; i > 0; i-- {
		held := m.Groups[i]
		switch n, err := strconv.ParseInt(held, 10, 64); {
		case held == "":
			held = "?"
		case i == m.Row.bytes && err == nil:
			held = render.Bytes(n)
		case i == m.Row.xid && err == nil:
			held = xid.Of(int(n)).String()
		}
		text = strings.ReplaceAll(text, "$"+strconv.Itoa(i), held)
	}
	return text
}

// Figures are those of a text, for a report.
func Figures(m *Match) map[string]any {
	out := map[string]any{}
	if m.OOM != nil {
		out = m.OOM.figures()
	}
	out["text"] = m.Row.Name
	out["line"] = m.Line.Number
	return out
}

// assertions are rows of a kernel's own check that name it.
var assertions = []string{"class-out-of-range", "index-out-of-range", "not-a-probability", "nan-probability"}

// Merged are findings with those that say the same told once, with how often. That a check failed is not told beside which.
func Merged(all []finding.Finding) []finding.Finding {
	var out []finding.Finding
	times := map[string]int{}
	named := slices.ContainsFunc(all, func(f finding.Finding) bool { return slices.Contains(assertions, f.Name) })
	for _, f := range all {
		if named && f.Name == "device-assert" {
			continue
		}
		key := f.Rule + f.Title
		if times[key]++; times[key] == 1 {
			out = append(out, f)
		}
	}
	for i := range out {
		if n := times[out[i].Rule+out[i].Title]; n > 1 {
			out[i].Evidence = append(out[i].Evidence, finding.Evidence{Name: "times", Value: n, Text: fmt.Sprintf("it is there %d times", n)})
		}
	}
	return out
}
