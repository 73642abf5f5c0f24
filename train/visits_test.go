package train

import (
	"maps"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
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
		for step, more := v.next(0); more; step, more = v.next(here.layout) {
			visited[move{here, schedule[step]}] = true
			here = after(here, schedule[step])
		}
		if v.total >= mostVisits {
			continue // which no longer promises it
		}
		judged++
		if !maps.Equal(met, visited) || here != at || v.total > len(schedule)+mostVisits {
			t.Fatalf("run %d of %d steps: %d visits met %d of %d moves, and ended with %+v, all steps with %+v", run, len(schedule), v.total, len(visited), len(met), here, at)
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
	for step, more := v.next(0); more; step, more = v.next(uint64(v.total)) {
		if schedule(step).score {
			scores++
		}
	}
	if v.total > mostVisits+2 || scores < 2 {
		t.Errorf("%d steps, %d of them scored", v.total, scores)
	}
}
