package render

import (
	"strconv"
	"strings"
)

// Progress is what a progress line tells.
type Progress struct {
	Label       string
	Done, Total int64    // Total 0: unknown, no bar
	Fields      []string // "loss 0.312", "ETA 12 s": most important first
}

const (
	longestBar  = 30
	shortestBar = 8
)

// Line returns one line of at most width columns. What does not fit goes, the bar
// first and then the last fields.
func (p Progress) Line(width int) string {
	head := p.Label
	if p.Total > 0 {
		head = joinNonEmpty(head, p.percent())
	}
	for fields := p.Fields; ; fields = fields[:len(fields)-1] {
		line := joinNonEmpty(append([]string{head}, fields...)...)
		room := width - Width(line)
		if room < 0 && len(fields) > 0 {
			continue
		}
		if n := min(room-len(gap), longestBar); p.Total > 0 && n >= shortestBar {
			return joinNonEmpty(append([]string{p.Label, track(p.fraction(), n), p.percent()}, fields...)...)
		}
		return Truncate(line, width)
	}
}

func (p Progress) fraction() float64 {
	return min(max(float64(p.Done)/float64(p.Total), 0), 1)
}

// percent rounds down: 100 % means finished.
func (p Progress) percent() string {
	done := min(max(p.Done, 0), p.Total)
	whole := int(100 * float64(done) / float64(p.Total)) // multiplied first: 29/100 is not quite 0.29
	return padLeft(strconv.Itoa(whole), 3) + " %"
}

// track is a bar of n columns with its unfilled part drawn.
func track(fraction float64, n int) string {
	filled := int(fraction * float64(n))
	return strings.Repeat("━", filled) + strings.Repeat("─", n-filled)
}

func joinNonEmpty(parts ...string) string {
	var kept []string
	for _, s := range parts {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, gap)
}
