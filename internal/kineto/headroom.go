package kineto

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/finding"
)

// headroom says of a trace in which nothing costs time what could be gained at most, were the device never without work; ""
// where findings say more, or nothing can be judged.
func (a *analysis) headroom(found []finding.Finding) string {
	for i := range found {
		if found[i].Gain.StepUS > 0 {
			return ""
		}
	}
	if a.judgeable() != "" {
		return ""
	}
	idle, of := a.idle(), a.perStep(a.window.Dur())
	s := fmt.Sprintf("headroom: the device is busy %s of %s %s; with no idle time at all that would be at most %s shorter",
		percent(a.share(a.busy.total())), duration(of), a.each(), duration(a.perStep(idle)))
	if idle > 0 {
		most := waitsLoader
		for c, ns := range a.causes {
			if ns > a.causes[most] {
				most = cause(c)
			}
		}
		s += fmt.Sprintf(" (mostly: %s)", causeTexts[most])
	}
	if alone := a.comm.without(a.compute).total(); alone > 0 {
		s += fmt.Sprintf(", and with all communication behind computation %s more", duration(a.perStep(alone)))
	}
	if a.kernels < leastKernels && a.share(a.busy.total()) < busyShare {
		s += fmt.Sprintf("; what binds it is not judged: it has %s, and %d are needed", count(a.kernels, "kernel", "kernels"), leastKernels)
	} else if a.steps == 0 {
		s += "; what binds it is not judged: no step is marked (prof.step() marks them)"
	}
	return s
}
