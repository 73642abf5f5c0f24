package render

import (
	"math"
	"strings"
)

// Bar is one line of a bar chart.
type Bar struct {
	Label string
	Value float64 // its length; a bar that is not positive and finite is empty
	Text  string  // written behind the bar
}

// Bars draws horizontal bars on a common scale, the longest filling what labels and
// texts leave of width.
func Bars(bars []Bar, width int) string {
	var label, text int
	longest := 0.0
	for _, b := range bars {
		label, text = max(label, Width(b.Label)), max(text, Width(b.Text))
		longest = max(longest, barLength(b.Value))
	}
	label = min(label, max(width/3, 1))
	room := max(width-label-text-2, 1)
	var out strings.Builder
	for _, b := range bars {
		fill := 0.0
		if longest > 0 {
			fill = barLength(b.Value) / longest
		}
		line := padRight(Truncate(b.Label, label), label) + " " + padRight(bar(fill, room), room) + " " + b.Text
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

func barLength(v float64) float64 {
	if v > 0 && !math.IsInf(v, 1) {
		return v
	}
	return 0
}

// bar fills a fraction of width columns, in eighths.
func bar(fraction float64, width int) string {
	eighths := int(math.Round(fraction * float64(8*width)))
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}
