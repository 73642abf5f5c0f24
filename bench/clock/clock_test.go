package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// reported reads the rows of report.md: by kernel, card and source, the published figure, the modelled one and how far off it is.
func reported(t *testing.T) map[string][3]string {
	t.Helper()
	text, err := os.ReadFile("report.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][3]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 8 {
			key := strings.TrimPrefix(cells[0], "| ") + cells[1] + strings.TrimSuffix(cells[7], " |")
			found[key] = [3]string{cells[2], cells[3], cells[5]}
		}
	}
	return found
}

// quick tells whether a row takes no time.
func (r *row) quick() bool {
	if r.gap != nil {
		return !testing.Short()
	}
	return len(r.tries) == 1 && r.source != "sgemm"
}

// TestRows: the report has every row, and the model gives the same figures on this machine as on the one where it was written.
func TestRows(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 6)
	known, err := readRegisters("testdata")
	if err != nil {
		t.Fatal(err)
	}
	report := reported(t)
	last := ""
	for _, r := range rows() {
		in, ok := report[r.what+r.card+r.source]
		if !ok || in[0] != digits(r.figure) {
			t.Errorf("%s on %s is not in the report: %q", r.what, r.card, in[0])
		}
		if !r.quick() || !spread.Takes(r.what+r.card+r.source) || testing.Short() && r.source == last {
			continue
		}
		last = r.source
		x, err := r.model("testdata", known)
		if err != nil {
			t.Fatalf("%s: %v", r.what, err)
		}
		if digits(x.figure()) != in[1] {
			t.Errorf("%s on %s: the model says %s %s, the report %s: write it again", r.what, r.card, digits(x.figure()), r.unit, in[1])
		}
	}
}

// TestBars: half of the figures are off by less than 30 %, none by more than 60 %, and 90 % of pairs are in the right order.
func TestBars(t *testing.T) {
	report := reported(t)
	var list []result
	for _, r := range rows() {
		var modelled, off float64
		in := report[r.what+r.card+r.source]
		if _, err := fmt.Sscan(in[1]+" "+strings.TrimSuffix(in[2], " %"), &modelled, &off); err != nil {
			t.Fatalf("%s: %v", r.what, err)
		}
		x := result{row: r, seconds: r.work / modelled / r.scale()}
		if r.gap != nil {
			x.seconds = 1e-6 * modelled
		}
		if math.Abs(100*x.off()-off) > 1+300/modelled { // rounded for the report
			t.Errorf("%s: %v off by %v", r.what, modelled, off)
		}
		if sources[r.source] == "" {
			t.Errorf("%s has no source", r.what)
		}
		list = append(list, x)
	}
	s := summed(list)
	if s.median > 0.3 || s.worst > 0.6 || 10*s.right < 9*s.pairs {
		t.Errorf("%+v", s)
	}
}
