package kineto

import (
	"cmp"
	"fmt"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Change is a row of two traces, in microseconds of a step; of the whole window where a trace marks no steps.
type Change struct {
	What   string  `json:"what"` // "step", "part" of it, or "kernel"
	Name   string  `json:"name"`
	Before float64 `json:"before_us"`
	After  float64 `json:"after_us"`
	// Calls are how many a step has, before and after.
	Calls [2]float64 `json:"calls,omitzero"`
}

// Difference is what a step takes longer, below 0 what it takes less, in microseconds.
func (c Change) Difference() float64 { return c.After - c.Before }

// The parts of a step that are compared: what the device does, and why it does nothing.
var partTexts = [][2]string{{"window_busy_us", "the device is busy"}, {"idle_loader_us", "idle: waits for batches"}, {"idle_sync_us", "idle: the host had waited for it"},
	{"idle_memory_us", "idle: the host allocates, frees or loads code"}, {"idle_host_us", "idle: the host does other things"},
	{"idle_kernel_us", "idle: from kernel to kernel"}, {"idle_other_us", "idle: launched, and waits for something else"}}

// Against compares a trace with an earlier one of the same training, both of Diagnose: the step, its parts, and the kernels
// that changed most first. Kernels are told by name; those of one trace only count as nothing in the other.
func Against(before, after *finding.Report) []Change {
	old, ok := before.Detail.(*Trace)
	now, fine := after.Detail.(*Trace)
	if !ok || !fine {
		return nil
	}
	rows := []Change{{What: "step", Name: "a step", Before: us(old.perStep(old.Judged.Dur())), After: us(now.perStep(now.Judged.Dur()))}}
	for _, p := range partTexts {
		a, _ := before.Figures[p[0]].(float64)
		b, _ := after.Figures[p[0]].(float64)
		rows = append(rows, Change{What: "part", Name: p[1], Before: a / float64(max(old.Marked, 1)), After: b / float64(max(now.Marked, 1))})
	}
	return append(rows, kernelsAgainst(old, now)...)
}

// Unlike is what, of two traces' ranks and cards, is not alike, so that more than a change of the program may show.
func Unlike(before, after *finding.Report) (notes []string) {
	old, ok := before.Detail.(*Trace)
	now, fine := after.Detail.(*Trace)
	if !ok || !fine {
		return nil
	}
	if old.Rank >= 0 && now.Rank >= 0 && old.Rank != now.Rank {
		notes = append(notes, fmt.Sprintf("the traces are of different ranks, %d before and %d after: what differs may be the ranks' own", old.Rank, now.Rank))
	}
	if old.World > 0 && now.World > 0 && old.World != now.World {
		notes = append(notes, fmt.Sprintf("the job had %d ranks before and has %d after: a step of it is not the same work", old.World, now.World))
	}
	if a, b := old.card(), now.card(); a != "" && b != "" && a != b {
		notes = append(notes, fmt.Sprintf("the cards differ: %s before, %s after", a, b))
	}
	if (old.Marked == 0) != (now.Marked == 0) {
		notes = append(notes, "only one of the traces marks steps: the other's times are of the whole file")
	}
	return notes
}

// card is the name of the first card, empty where the file does not say.
func (t *Trace) card() string {
	if len(t.Devices) == 0 {
		return ""
	}
	return t.Devices[0].Name
}

func (t *Trace) perStep(ns int64) int64 { return ns / int64(max(t.Marked, 1)) }

func kernelsAgainst(old, now *Trace) []Change {
	at := map[string]*Change{}
	for side, t := range []*Trace{old, now} {
		for _, k := range t.Kernels {
			c := at[k.Name]
			if c == nil {
				c = &Change{What: "kernel", Name: k.Name}
				at[k.Name] = c
			}
			*[]*float64{&c.Before, &c.After}[side] += us(k.NS) / float64(max(t.Marked, 1))
			c.Calls[side] += float64(k.Count) / float64(max(t.Marked, 1))
		}
	}
	rows := make([]Change, 0, len(at))
	for _, c := range at {
		rows = append(rows, *c)
	}
	sorting.By(rows, func(a, b Change) int {
		return cmp.Or(cmp.Compare(max(b.Difference(), -b.Difference()), max(a.Difference(), -a.Difference())), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// ShortName is a kernel's name for people.
func ShortName(name string) string { return shortName(name) }
