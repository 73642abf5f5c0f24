package train

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/plan"
)

// TestVisits: of runs on devices whose memory goes any way that steps and what was there lead to, the steps that are made meet what all
// steps meet, and end with the memory that all end with.
func TestVisits(t *testing.T) {
	rnd, judged := testutil.Rand(t), 0
	for run := range 300 {
		layouts, all := 1+rnd.IntN(6), []situation{{8, false, false}, {8, false, true}, {3, false, false}, {8, true, true}}
		leads := map[move]uint64{}
		lead := func(m move) uint64 { // the same way each time
			if _, ok := leads[m]; !ok {
				leads[m] = uint64(rnd.IntN(layouts))
			}
			return leads[m]
		}
		schedule := make([]situation, 1+rnd.IntN(400))
		for i := range schedule {
			schedule[i] = all[rnd.IntN(1+rnd.IntN(len(all)))]
		}
		recorded := rnd.IntN(4)
		whole, rest := 0, 0
		after := func(m memory, q situation) memory {
			now := memory{lead(move{m, q}), m.whole, m.rest}
			if q.samples == schedule[0].samples {
				now.whole = min(recorded, now.whole+1)
			} else {
				now.rest = min(recorded, now.rest+1)
			}
			return now
		}
		at := memory{0, whole, rest}
		met := map[move]bool{}
		for _, q := range schedule {
			met[move{at, q}] = true
			at = after(at, q)
		}
		v := newVisits(len(schedule), func(step int) situation { return schedule[step] }, false)
		v.recorded = recorded
		here, visited := memory{}, map[move]bool{}
		for step, more := v.next(t.Context(), 0); more; step, more = v.next(t.Context(), here.layout) {
			visited[move{here, schedule[step]}] = true
			here = after(here, schedule[step])
		}
		if len(v.made) >= mostVisits {
			if !v.drifts && !(maps.Equal(met, visited) && here == at) {
				t.Fatalf("run %d says nothing of what it has left out", run)
			}
			continue // which no longer promises it
		}
		if v.drifts {
			t.Fatalf("run %d of %d visits is said to drift", run, len(v.made))
		}
		judged++
		if !maps.Equal(met, visited) || here != at || len(v.made) > len(schedule)+mostVisits {
			t.Fatalf("run %d of %d steps: %d visits met %d of %d moves, and ended with %+v, all steps with %+v", run, len(schedule), len(v.made), len(visited), len(met), here, at)
		}
	}
	if judged < 200 {
		t.Errorf("%d of 300 runs were judged", judged)
	}
}

// TestVisitsEnd: a run whose memory never comes back to what it was is not made step by step.
func TestVisitsEnd(t *testing.T) {
	schedule := func(step int) situation { return situation{samples: 8, score: step%1000 == 999} }
	v := newVisits(200_000, schedule, true)
	scores := 0
	for step, more := v.next(t.Context(), 0); more; step, more = v.next(t.Context(), uint64(len(v.made))) {
		if schedule(step).score {
			scores++
		}
	}
	if len(v.made) > mostVisits+2 || scores < 2 || !v.drifts {
		t.Errorf("%d steps, %d of them scored; it drifts: %t", len(v.made), scores, v.drifts)
	}
}

// TestVisitsOfHiddenPhases: where memory goes by something that a dry run does not see, no more steps are made than of a run whose memory
// never comes back to what it was, and it is told.
func TestVisitsOfHiddenPhases(t *testing.T) {
	rnd, told := testutil.Rand(t), 0
	all := []situation{{8, false, false}, {8, false, true}, {3, false, false}, {8, true, true}}
	for run := range 200 {
		type hidden struct {
			move
			phase int
		}
		leads := map[hidden]uint64{}
		layouts, phases := 2+rnd.IntN(9), 2+rnd.IntN(4)
		schedule := make([]situation, 5000)
		for i := range schedule {
			schedule[i] = all[rnd.IntN(1+rnd.IntN(len(all)))]
		}
		v := newVisits(len(schedule), func(step int) situation { return schedule[step] }, run%2 > 0)
		at := uint64(0)
		for step, more := v.next(t.Context(), 0); more; step, more = v.next(t.Context(), at) {
			h := hidden{move{memory{layout: at}, schedule[step]}, len(v.made) % phases}
			if _, ok := leads[h]; !ok {
				leads[h] = uint64(rnd.IntN(layouts))
			}
			if at = leads[h]; len(v.made) > mostVisits+2*len(all) {
				t.Fatalf("run %d makes %d steps", run, len(v.made))
			}
		}
		if v.drifts {
			told++
		}
	}
	if told < 100 {
		t.Errorf("%d of 200 runs were said to drift", told)
	}
}

// TestVisitsInterrupted: a walk that is to end ends on the way through steps that are not made.
func TestVisitsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	v := newVisits(1<<50, func(step int) situation {
		if looked++; step == 1000 {
			cancel()
		}
		return situation{samples: 8}
	}, false)
	for _, more := v.next(ctx, 0); more; _, more = v.next(ctx, 7) {
	}
	if len(v.made) > 2 || looked > 2*glances {
		t.Errorf("%d steps, and %d looked at", len(v.made), looked)
	}
}

// TestPeaksOf: a dry run that leaves out steps or batches of which it does not know what they need says so.
func TestPeaksOf(t *testing.T) {
	c, err := Defaults("unet")
	if err != nil {
		t.Fatal(err)
	}
	c.Batch, c.Steps, c.EvalEvery, c.Given = 4, 7, 2, map[string]bool{"batch": true, "steps": true, "eval-every": true}
	peaksOf := func(visits, scored int) int {
		defer func(v, s int) { mostVisits, mostScored = v, s }(mostVisits, mostScored)
		mostVisits, mostScored = visits, scored
		p, err := planned(c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.job.close()
		r, err := p.tried(t.Context(), "a100-80", plan.Setting{Batch: p.Batch, Parts: 1})
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(r)
		if err != nil || strings.Contains(string(line), `"peaks_of_steps":`) != (r.PeaksOf > 0) {
			t.Errorf("%s, %v", line, err)
		}
		return r.PeaksOf
	}
	if n := peaksOf(mostVisits, mostScored); n != 0 {
		t.Errorf("peaks are of %d steps", n)
	}
	if n := peaksOf(1, mostScored); n < 2 || n > 6 {
		t.Errorf("peaks are of %d steps where two of a kind are made", n)
	}
	if n := peaksOf(mostVisits, 1); n < 2 || n > 7 {
		t.Errorf("peaks are of %d steps where one batch is scored", n)
	}
}
