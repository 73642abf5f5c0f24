package errortext

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// ErrUnknown is of a text in which nothing is known.
var ErrUnknown = errors.New("nothing in the text is known")

// Judge is what a text that was found means; s are the model's sizes, where they are known.
func Judge(m *Match, s Sizes) []finding.Finding {
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

// Growth watches figures of memory that a log prints.
type Growth struct {
	values []float64
	skip   int // each skip-th is kept
	seen   int
}

var reading = regexp.MustCompile(`(?i)\b(?:max[ _]?mem(?:ory)?|gpu[ _]?mem(?:ory)?|mem(?:ory)?(?:[ _]?(?:allocated|used|alloc))?|allocated)\b['"]?\s*[:=]?\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|[MG]\b)?`)

// mostReadings are kept of a log; beyond, every second.
const mostReadings = 512

// Add takes a line, which may have a figure.
func (g *Growth) Add(text string) {
	if !strings.Contains(text, "em") && !strings.Contains(text, "lloc") && !strings.Contains(text, "EM") {
		return
	}
	m := reading.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "out of memory") {
		return
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return
	}
	if m[2] != "" && (m[2][0]|0x20) == 'g' {
		v *= 1024
	}
	if g.seen++; g.skip > 0 && g.seen%g.skip != 0 {
		return
	}
	g.values = append(g.values, v)
	if len(g.values) == mostReadings {
		for i := range mostReadings / 2 {
			g.values[i] = g.values[2*i]
		}
		g.values = g.values[:mostReadings/2]
		g.skip = max(g.skip, 1) * 2
	}
}

// leastReadings make a trend.
const leastReadings = 5

// Leak is the finding that memory grew from reading to reading up to the failure, or nil: at least five, each above the one
// before, on a line (r² above 0.98).
func (g *Growth) Leak() *finding.Finding {
	n := len(g.values)
	if n < leastReadings {
		return nil
	}
	for i := 1; i < n; i++ {
		if g.values[i] <= g.values[i-1] {
			return nil
		}
	}
	if r := correlation(g.values); r*r <= 0.98 {
		return nil
	}
	first, last := g.values[0], g.values[n-1]
	return &finding.Finding{
		Rule: "O10", Name: "leak", Title: fmt.Sprintf("memory grew at every one of %d readings, from %.6g to %.6g: something is kept from step to step", n, first, last),
		Evidence: []finding.Evidence{{Name: "readings", Value: slices.Clone(g.values[max(0, n-8):]), Text: fmt.Sprintf("%d readings on a line, %.6g more at each", n, (last-first)/float64(n-1))}},
		Fix:      "keep numbers and not tensors of what is logged (total += loss.detach(), read once in some steps), and clear lists of outputs; a snapshot names the line: torch.cuda.memory._record_memory_history(), then warpline diagnose",
		Gain:     finding.Gain{Text: "the growth of each step"}, Confidence: finding.Medium,
		DisprovedBy: "readings level off with a fixed length of batches",
	}
}

// correlation is that of values with their places.
func correlation(v []float64) float64 {
	n := float64(len(v))
	var sx, sy, sxx, syy, sxy float64
	for i, y := range v {
		x := float64(i)
		sx, sy, sxx, syy, sxy = sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
}
