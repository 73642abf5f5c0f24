package kineto

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// leastSteps is how many steps show that something happens now and then.
const leastSteps = 6

// pausesShown is how many steps with pauses are named.
const pausesShown = 5

// pauses: now and then the host does nothing that the trace sees, much longer than in other steps.
func pauses(a *analysis) *finding.Finding {
	longest := make([]int64, a.steps)
	steps := a.stepsIn()
	for _, g := range a.gaps {
		i := sort.Search(len(steps), func(i int) bool { return steps[i].End > g.Start })
		if g.hosted && i < len(steps) && g.Start >= steps[i].Start {
			quiet := spans{g.after}.without(touching(a.loader, g.after)).without(touching(a.waits, g.after)).without(touching(a.memory, g.after))
			longest[i] = max(longest[i], quiet.total())
		}
	}
	typical := medianNS(longest)
	n, lost := 0, int64(0)
	where := ""
	for i, d := range longest {
		if d > 3*typical && d > int64(float64(steps[i].Dur())*0.1) {
			n++
			lost += d - typical
			if n <= pausesShown {
				where += fmt.Sprintf(" %d (%s)", steps[i].Number, duration(d))
			}
		}
	}
	if n > pausesShown {
		where += fmt.Sprintf(" and %d more", n-pausesShown)
	}
	if n == 0 || 3*n > a.steps || !a.worth(time.Duration(a.perStep(lost))) {
		return nil
	}
	return &finding.Finding{
		Title:       fmt.Sprintf("In %d of %d steps the host pauses for more than three times as long as usual, without any call", n, a.steps),
		Evidence:    []finding.Evidence{timing("pause", lost/int64(n), "steps%s, where %s is usual", where, duration(typical))},
		Fix:         "collect garbage at set times: gc.disable(), and gc.collect() every some hundred steps on all ranks at once; look for logging, checkpoints or evaluation at that interval",
		Gain:        a.saves(time.Duration(a.perStep(lost)), "the pauses beyond what is usual, shared out to all steps"),
		Confidence:  finding.Low,
		DisprovedBy: "a run with gc.disable() that pauses alike",
	}
}

// periodicWork: every so many steps one takes longer, for something that the program does then.
func periodicWork(a *analysis) *finding.Finding {
	steps := a.stepsIn()
	if a.has("pauses") {
		return nil
	}
	usual := typicalStep(steps)
	var slow []Step
	var lost int64
	for _, s := range steps {
		if float64(s.Dur()) > slowFirst*float64(usual) {
			slow = append(slow, s)
			lost += s.Dur() - usual
		}
	}
	d := time.Duration(a.perStep(lost))
	if len(slow) < 2 || 2*len(slow) >= len(steps) || !a.worth(d) || !evenly(slow) {
		return nil
	}
	f := &finding.Finding{
		Title:       fmt.Sprintf("Every %d steps one takes %s in place of %s", slow[1].Number-slow[0].Number, duration(slow[0].Dur()), duration(usual)),
		Fix:         "move what happens then off the step: write checkpoints from a copy on another thread, read values for logs asynchronously, evaluate less often",
		Gain:        a.saves(d, "what these steps take longer, shared out to all"),
		Confidence:  finding.Medium,
		DisprovedBy: "a run without logging, checkpoints and evaluation that does the same",
	}
	for _, s := range slow[:min(3, len(slow))] {
		f.Evidence = append(f.Evidence, timing("step", s.Dur(), "step %d: %s, with %s", s.Number, duration(s.Dur()), a.back(s.Window)))
	}
	return f
}

// evenly tells that steps are equally far apart.
func evenly(steps []Step) bool {
	for i := range steps[1:] {
		if steps[i+1].Number-steps[i].Number != steps[1].Number-steps[0].Number {
			return false
		}
	}
	return true
}

// back is what is copied to the host within a window.
func (a *analysis) back(w Window) string {
	n, bytes := 0, int64(0)
	for i := a.first; i < a.last; i++ {
		if e := &a.device[i]; e.kind == copying && e.start >= w.Start && e.start < w.End && strings.Contains(a.Name(e), "DtoH") {
			n++
			bytes += a.bytes[e.aux]
		}
	}
	return fmt.Sprintf("%d copies to the host of %s", n, render.Bytes(bytes))
}
