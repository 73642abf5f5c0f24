package prof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shapes says which steps of the window ran other kernels, or kernels of other shapes, than most, with one of these; "" where all
// are alike. Their times do not compare with those of the steps around: a last batch is smaller, a score is no step of training.
func (p *Profile) shapes() string {
	ran := make([]map[string]bool, len(p.steps))
	for i := range ran {
		ran[i] = map[string]bool{}
	}
	at := -1
	for i := range p.all { // in the order of the host's time, as steps are
		e := p.at(i)
		for at+1 < len(p.steps) && p.steps[at+1].at <= e.start {
			at++
		}
		if at >= 0 && e.kernel != nil && e.Step == 0 {
			ran[at][e.kernel.Shape] = true
		}
	}
	usual := mostOften(ran)
	var odd []string
	for i, of := range ran {
		for shape := range maps.Keys(of) {
			if !usual[shape] {
				odd = append(odd, fmt.Sprintf("%08d %s", p.steps[i].step, shape))
			}
		}
	}
	if len(odd) == 0 {
		return ""
	}
	step, shape, _ := strings.Cut(slices.Min(odd), " ")
	return fmt.Sprintf("step %s ran %s, which most steps do not: times of steps with other shapes do not compare", cmp.Or(strings.TrimLeft(step, "0"), "0"), shape)
}

// mostOften is the set that most of them are; empty ones, of steps without work, do not count.
func mostOften(of []map[string]bool) (usual map[string]bool) {
	times := map[string]int{}
	most := 0
	for _, a := range of {
		key := strings.Join(slices.Sorted(maps.Keys(a)), "\n")
		if times[key]++; len(a) > 0 && times[key] > most {
			most, usual = times[key], a
		}
	}
	return usual
}
