package render

import (
	"math"
	"strings"
)

// Stack draws parts of a whole as one bar of width columns, each part with a letter of its own and as many columns as its share,
// rounded so that they sum up. Letters go round after eight; what is not positive is left out.
func Stack(shares []float64, width int) string {
	var b strings.Builder
	sum, drawn := 0.0, 0
	for k, v := range shares {
		if !(v > 0) || math.IsInf(v, 1) {
			continue
		}
		sum += v
		to := min(int(math.Round(sum*float64(width))), width)
		b.WriteString(strings.Repeat(string(Letter(k)), max(to-drawn, 0)))
		drawn = max(to, drawn)
	}
	return b.String()
}

// Letter stands for the k-th quantity of a drawing without colours.
func Letter(k int) rune { return letters[k%len(letters)] }
