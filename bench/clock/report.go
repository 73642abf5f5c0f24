package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// summary is how well the model does over rows.
type summary struct {
	median, worst float64 // of the errors' sizes
	worstRow      string
	pairs, right  int // of rows with one unit, and whose order is right
	wide, clear   int // the same of those that differ by a tenth at least
}

func summed(list []result) (s summary) {
	var errors []float64
	for i := range list {
		e := math.Abs(list[i].off())
		errors = append(errors, e)
		if e >= s.worst {
			s.worst, s.worstRow = e, list[i].what
		}
		for k := range i {
			s.pair(&list[i], &list[k])
		}
	}
	slices.Sort(errors)
	if n := len(errors); n > 0 {
		s.median = (errors[n/2] + errors[(n-1)/2]) / 2
	}
	return s
}

// pair counts whether the model puts two rows in the order in which they were published.
func (s *summary) pair(a, b *result) {
	if a.unit != b.unit || a.row.figure == b.row.figure {
		return
	}
	right := (a.row.figure < b.row.figure) == (a.figure() < b.figure())
	s.pairs++
	if right {
		s.right++
	}
	if math.Max(a.row.figure, b.row.figure) >= 1.1*math.Min(a.row.figure, b.row.figure) {
		s.wide++
		if right {
			s.clear++
		}
	}
}

// report is a document of all rows.
func report(list []result) string {
	var b strings.Builder
	s := summed(list)
	fmt.Fprintf(&b, `# The model of time beside published figures

Made by `+"`go run ./bench/clock`"+`. Nothing here is measured by us but what says so; every modelled figure is arithmetic on what the
simulator counts of %d blocks of a launch (`+"`--sample`"+`) and on figures of the card, with the same constants for all rows.
Off is the modelled time over the published one, less one. Launches in a row are timed by the host of the simulated driver. Where a program chooses among kernels, it is the one that the model finds
quickest.

| | |
|---|---|
| figures | %d |
| median error | %.0f %% |
| worst | %.0f %% (%s) |
| order right | %.1f %% of %d pairs of one unit; %.1f %% of the %d that differ by a tenth or more |

| kernel | card | published | modelled | unit | off | limited by | source |
|---|---|--:|--:|---|--:|---|---|
`, sample, len(list), 100*s.median, 100*s.worst, s.worstRow, percent(s.right, s.pairs), s.pairs, percent(s.clear, s.wide), s.wide)
	for i := range list {
		r := &list[i]
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %+.0f %% | %s | %s |\n", r.what, r.card, digits(r.row.figure), digits(r.figure()), r.unit, 100*r.off(), r.limiter, r.source)
	}
	b.WriteString("\n## Sources\n\n")
	for _, key := range order(list) {
		fmt.Fprintf(&b, "- *%s*: %s\n", key, sources[key])
	}
	return b.String()
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// digits are three or four that count.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// order are the sources of rows as they come.
func order(list []result) (keys []string) {
	for _, r := range list {
		if !slices.Contains(keys, r.source) {
			keys = append(keys, r.source)
		}
	}
	return keys
}
