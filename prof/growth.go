package prof

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// holder is where values were made that lie in memory at the end of a step, and what they serve for.
type holder struct {
	site  *callsite.Site
	label string
}

// census is the bytes in use at the end of a step, by holder.
type census map[holder]int64

// count takes the census of all devices.
func (p *Profiler) count() {
	c := census{}
	for _, d := range p.devices {
		d.Holdings(func(site *callsite.Site, label string, bytes int64) { c[holder{site, label}] += bytes })
	}
	p.counts = append(p.counts, c)
}

// Of what grows from step to step, less than both of these is not worth a word: a share of all memory in use, and a size that
// numbers which a program collects have.
const (
	leastGrowthShare = 0.001
	leastGrowthBytes = 16 << 10
)

// growth is what every step of a window left more of than the one before, what grows most first. Two steps are too few to tell.
func growth(counts []census) (all []finding.Growth) {
	if len(counts) < 3 {
		return nil
	}
	byPlace := make([]map[finding.Growth]int64, len(counts))
	in := int64(0)
	for i, c := range counts {
		byPlace[i], in = map[finding.Growth]int64{}, 0
		for h, n := range c {
			byPlace[i][finding.Growth{Line: lineOf(h.site), Kind: h.label}] += n
			in += n
		}
	}
	for g, n := range byPlace[len(counts)-1] {
		first := byPlace[0][g]
		if !rises(byPlace, g) {
			continue
		}
		g.Steps = len(counts) - 1
		if g.Bytes = (n - first) / int64(g.Steps); g.Bytes >= leastGrowthBytes && float64(g.Bytes) >= leastGrowthShare*float64(in) {
			all = append(all, g)
		}
	}
	sorting.By(all, func(a, b finding.Growth) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

func lineOf(s *callsite.Site) string {
	if s == nil {
		return "unknown"
	}
	return s.String()
}

// rises reports whether each step ended with more of g than the one before.
func rises(counts []map[finding.Growth]int64, g finding.Growth) bool {
	for i := 1; i < len(counts); i++ {
		if counts[i][g] <= counts[i-1][g] {
			return false
		}
	}
	return true
}
