package kineto

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestDrawing: of every sample the parts of the window add up to it, and to what the figures say of the device, and the lanes of
// a strip have the time of their work, within what a moment is wide.
func TestDrawing(t *testing.T) {
	samples, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(samples) < 5 {
		t.Fatal(samples, err)
	}
	for _, file := range samples {
		name := filepath.Base(file)
		r := diagnose(t, name)
		tr := r.Detail.(*Trace)
		d := tr.Drawing
		var sum, busy int64
		for _, s := range d.Spent {
			if sum += s.NS; !s.Idle {
				busy += s.NS
			}
		}
		if sum != tr.Judged.Dur() || us(busy) != r.Figures["window_busy_us"] {
			t.Errorf("%s: parts of %d ns add up to %d, of which %d are busy, by the figures %v µs", name, tr.Judged.Dur(), sum, busy, r.Figures["window_busy_us"])
		}
		events, err := Read(context.Background(), sample(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Strip{d.Whole, d.Step} {
			if s != nil {
				lanesHold(t, name, events, s)
			}
		}
		if d.Step != nil && (d.Step.Number < 0 || len(d.Step.Marks) == 0) {
			t.Errorf("%s: step %d, marks %v", name, d.Step.Number, d.Step.Marks)
		}
	}
}

// lanesHold compares a strip's lanes of the device with the union of their events.
func lanesHold(t *testing.T, name string, tr *Trace, s *Strip) {
	t.Helper()
	seen := 0
	for _, family := range []string{Product, Computation, Communication, Memory} {
		want := union(tr.device, func(e *event) bool { return tr.family(e) == family }).in(s.Window).total()
		got := 0.0
		for _, l := range s.Lanes {
			if len(l.Busy) != Columns {
				t.Fatalf("%s: %s has %d columns", name, l.Name, len(l.Busy))
			}
			if l.Name == laneNames[laneOf(family)] {
				for _, v := range l.Busy {
					got += v * float64(s.Dur()) / Columns
				}
				seen++
			}
		}
		if math.Abs(got-float64(want)) > 0.02*float64(want)+0.002*float64(s.Dur()) {
			t.Errorf("%s: %s is drawn as %.0f ns of %d, and has %d", name, family, got, s.Dur(), want)
		}
	}
	if seen == 0 && len(tr.device) > 0 {
		t.Errorf("%s: no lane of a device", name)
	}
}

// TestCanvas: moments are marked as a point by point comparison has them, whatever the events' order and overlap.
func TestCanvas(t *testing.T) {
	r := testutil.Rand(t)
	for range 20 {
		c := newCanvas(Window{1000, 1000 + 1 + r.Int64N(1e6)})
		want := make([]bool, Columns*samples)
		for range 10 {
			start := 900 + r.Int64N(1e6)
			end := start + r.Int64N(1e5)
			c.put(laneOps, start, end)
			for i := range want {
				middle := 1000 + (float64(i)+0.5)*float64(c.Dur())/float64(len(want))
				want[i] = want[i] || float64(start) <= middle && middle < float64(end)
			}
		}
		wrong := 0
		for i, w := range want {
			if got := c.lanes[laneOps] != nil && c.lanes[laneOps][i/samples]>>(i%samples)&1 == 1; got != w {
				wrong++
			}
		}
		if wrong > 20 { // an edge may fall onto a moment
			t.Fatalf("%d of %d moments differ", wrong, len(want))
		}
	}
}
