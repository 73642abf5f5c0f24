package render

import (
	"math"
	"strings"
)

// Meter is a bar of width columns that is filled to a fraction of 0 to 1, with a track behind it.
func Meter(fraction float64, width int) string {
	if math.IsNaN(fraction) {
		fraction = 0
	}
	filled := bar(min(max(fraction, 0), 1), width)
	return filled + strings.Repeat("·", max(width-Width(filled), 0))
}

// Spark draws the last width values, between 0 and most, a column each. What is not a number is a gap.
func Spark(values []float64, most float64, width int) string {
	values = values[max(0, len(values)-width):]
	var b strings.Builder
	b.WriteString(spaces(width - len(values)))
	for _, v := range values {
		if math.IsNaN(v) || most <= 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int(math.Round(7*min(max(v/most, 0), 1)))])
	}
	return b.String()
}
