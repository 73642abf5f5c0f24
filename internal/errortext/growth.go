package errortext

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/literal"
)

// Growth watches figures of memory that a log prints.
type Growth struct {
	values []float64
	skip   int // each skip-th is kept
	seen   int
}

// readings are words that a figure of memory stands behind.
var readings = literal.NewSet("max", "gpu", "mem", "allocated")

// reading is the first figure of memory in a line, in MiB where its unit is said.
func reading(text string) (v float64, ok bool) {
	readings.Each(text, len(text), func(_, at int) bool {
		if at == 0 || !literal.InWord(text[at-1]) {
			v, ok = figure(text[at:])
		}
		return !ok
	})
	return v, ok
}

// figure is the number behind "max mem", "gpu_memory", "memory used", "allocated" and their like, which a text begins with.
func figure(text string) (v float64, ok bool) {
	most, is := after(text, "max", "gpu")
	if is {
		most, _ = after(most, " ", "_")
	}
	rest, isMem := after(most, "mem")
	switch {
	case isMem:
		rest, _ = after(rest, "ory")
		if !is {
			rest = use(rest)
		}
	case is:
		return 0, false
	default:
		if rest, isMem = after(text, "allocated"); !isMem {
			return 0, false
		}
	}
	if rest == "" || literal.InWord(rest[0]) {
		return 0, false
	}
	rest, _ = after(rest, "'", "\"")
	rest, _ = after(strings.TrimLeft(rest, " \t"), ":", "=")
	return amount(strings.TrimLeft(rest, " \t"))
}

// after is a text behind one of some words that it begins with in any case, or the text.
func after(text string, words ...string) (rest string, is bool) {
	for _, w := range words {
		if len(text) >= len(w) && strings.EqualFold(text[:len(w)], w) {
			return text[len(w):], true
		}
	}
	return text, false
}

// use is a text behind what "mem" is of.
func use(text string) string {
	behind, _ := after(text, " ", "_")
	if rest, is := after(behind, "allocated", "used", "alloc"); is && (rest == "" || !literal.InWord(rest[0])) {
		return rest
	}
	return text
}

// amount is the number that a text begins with; one in GB or GiB times 1024.
func amount(text string) (v float64, ok bool) {
	n := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if n > 0 && n+1 < len(text) && text[n] == '.' && '0' <= text[n+1] && text[n+1] <= '9' {
		n = len(text) - len(strings.TrimLeft(text[n+1:], "0123456789"))
	}
	v, err := strconv.ParseFloat(text[:n], 64)
	if err != nil {
		return 0, false
	}
	unit, is := after(strings.TrimLeft(text[n:], " \t"), "g")
	if _, bytes := after(unit, "ib", "b"); is && (bytes || unit == "" || !literal.InWord(unit[0])) {
		v *= 1024
	}
	return v, true
}

// mostReadings are kept of a log; beyond, every second.
const mostReadings = 512

// Add takes a line, which may have a figure.
func (g *Growth) Add(text string) {
	if !strings.Contains(text, "em") && !strings.Contains(text, "lloc") && !strings.Contains(text, "EM") {
		return
	}
	v, ok := reading(text)
	if !ok || strings.Contains(text, "out of memory") {
		return
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
