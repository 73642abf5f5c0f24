package snapshot

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestSeries: what is drawn of the samples has the peak and the end that their figures have, and no more moments than asked for.
func TestSeries(t *testing.T) {
	snap, err := Diagnose(context.Background(), "steady", bytes.NewReader(sample(t, "steady.pickle.gz")))
	if err != nil {
		t.Fatal(err)
	}
	line, err := DiagnoseTimeline(context.Background(), "timeline", bytes.NewReader(sample(t, "timeline.raw.json.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		all       []*Series
		peak, end any
	}{
		{"snapshot", snap.Detail.(*Snapshot).Series(100), snap.Figures["peak"].(map[string]any)["bytes"], snap.Figures["allocated"]},
		{"timeline", line.Detail.(*timeline).Series(0), line.Figures["peak"], line.Figures["end"]},
	} {
		s := c.all[0]
		if len(c.all) != 1 || len(s.At) > timelineMoments+2 || c.name == "snapshot" && len(s.At) > 102 || !slices.IsSorted(s.At) || len(s.Owners) != len(s.Bytes) || len(s.Owners) > 8 {
			t.Fatalf("%s: %d series, %d moments, owners %v", c.name, len(c.all), len(s.At), s.Owners)
		}
		most, last := int64(0), int64(0)
		for i := range s.At {
			last = 0
			for _, b := range s.Bytes {
				last += b[i]
			}
			most = max(most, last)
		}
		if most != s.Peak || s.Peak != c.peak || last != c.end || s.PeakAt < 0 || s.PeakAt > s.At[len(s.At)-1] {
			t.Errorf("%s: drawn up to %d and ends at %d; peak %d at %d of %d; want %v and %v", c.name, most, last, s.Peak, s.PeakAt, s.At[len(s.At)-1], c.peak, c.end)
		}
	}
}

// TestSampler: however many moments come, the least and the most of all are kept, in order, in bounded number.
func TestSampler(t *testing.T) {
	r := testutil.Rand(t)
	for _, n := range []int{1, 2, 7, 8, 9, 1000, 4097} {
		s := newSampler(16)
		least, most := int64(1<<62), int64(0)
		for i := range n {
			v := 1 + r.Int64N(1e9)
			least, most = min(least, v), max(most, v)
			s.add(int64(i), []int64{v})
		}
		all := s.all(int64(n), []int64{0})
		kept := all[:len(all)-1]
		if len(kept) > 16 || !slices.ContainsFunc(kept, func(m moment) bool { return m.sum == least }) || !slices.ContainsFunc(kept, func(m moment) bool { return m.sum == most }) {
			t.Errorf("%d: %d kept", n, len(kept))
		}
		for i := range kept {
			if kept[i].bytes[0] != kept[i].sum || i > 0 && kept[i].at <= kept[i-1].at {
				t.Errorf("%d: %v", n, kept)
			}
		}
	}
}
