package render

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

// TestArea draws two quantities, of which the upper one grows in the middle, by hand.
func TestArea(t *testing.T) {
	a := Area{Title: "Memory", YLabel: "MiB", Names: []string{"weights", "rest"}, X: []float64{0, 10, 20, 40}, Y: [][]float64{{2, 2, 2, 2}, {0, 2, 0, 0}}, Mark: 10}
	// Of 21 columns, those from the 6th to the 11th have a part of [10, 20).
	want := `Memory  (MiB)
# weights  = rest
4 ┤     ======
2 ┤     ======
  │#####################
0 ┤#####################
  └┬─────────┬─────────┬
   0         20       40
`
	if got := a.Terminal(24, 8, false); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := a.Terminal(24, 8, true); !strings.Contains(got, blocks[0]+"█") || strings.Count(got, reset) < 4 {
		t.Errorf("%q", got)
	}
	for _, a := range []Area{a, {Names: []string{"a"}, Y: [][]float64{{}}}, {Names: []string{"none"}, X: []float64{0, 0}, Y: [][]float64{{0, 0}}, Mark: math.NaN()},
		{Names: []string{"one"}, X: []float64{3}, Y: [][]float64{{5}}, Colors: []int{7}}} {
		d := xml.NewDecoder(strings.NewReader(a.SVG(400, 200)))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		a.Terminal(40, 10, true)
		a.Terminal(1, 1, false)
	}
}

// TestStack: each part has the columns of its share, and parts that are nothing none.
func TestStack(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   string
	}{{[]float64{.5, .25, .25}, "####==oo"}, {[]float64{.5, 0, math.NaN(), .5}, "####xxxx"}, {nil, ""}, {[]float64{.05, .95}, "========"}, {[]float64{1, 1}, "########"}} {
		if got := Stack(c.shares, 8); got != c.want {
			t.Errorf("%v: %q, want %q", c.shares, got, c.want)
		}
	}
}
