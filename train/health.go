package train

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/prof"
)

// Spike is a step whose loss, or whose norm of all gradients, is far above those before.
type Spike struct {
	Step  int     `json:"step"`
	What  string  `json:"what"`  // "loss" or "gradient norm"
	Value float64 `json:"value"` // the largest of steps that follow one another
	Times float64 `json:"times"` // the median of the steps before
	Steps int     `json:"steps"` // how many followed one another
}

// Dead are units of a layer that do not learn: their weights had a gradient of 0 at each of the last looks.
type Dead struct {
	Path  string `json:"path"`
	Dead  int    `json:"dead"`
	Units int    `json:"units"`
	Looks int    `json:"looks"` // in a row, at least
}

// health judges a run by what its steps tell anyway.
type health struct {
	loss, norm level
	spikes     []Spike
	looks      int
	idle       map[string][]int // for each unit of a layer, the looks in a row that found no gradient
	order      []string         // its layers
}

// step judges a step that was done.
func (h *health) step(step int, loss, norm float64) {
	h.judge(&h.loss, step, "loss", loss, leastLoss)
	h.judge(&h.norm, step, "gradient norm", norm, leastNorm)
}

// A spike is so many times the median of the steps before at least. For the norm see R46 of the rules that other tools have:
// ten times the running median.
const (
	leastLoss = 1.5
	leastNorm = 10
)

// farOut is how far above the median a spike's logarithm is, in standard deviations as the median of the deviations estimates
// them. Losses of batches that differ much have a long tail, which their logarithms have not.
const farOut = 8

func (h *health) judge(l *level, step int, what string, v, least float64) {
	if !(v > 0) || math.IsInf(v, 0) {
		return
	}
	if out := math.Log(v) - l.median(); l.n >= enough && out > math.Log(least) && out > farOut*l.deviation() {
		h.spike(step, what, v, math.Exp(out))
		return // what is far out is no measure for what follows, unless it stays
	}
	l.add(math.Log(v))
}

// spike notes one, or lengthens that of the step before.
func (h *health) spike(step int, what string, v, times float64) {
	for i := range h.spikes {
		if s := &h.spikes[i]; s.What == what && s.Step+s.Steps == step {
			s.Steps++
			if v > s.Value {
				s.Value, s.Times = v, times
			}
			if s.Steps == stays { // a new level, not a spike that passes
				*h.of(what) = level{}
			}
			return
		}
	}
	h.spikes = append(h.spikes, Spike{step, what, v, times, 1})
}

func (h *health) of(what string) *level {
	if what == "loss" {
		return &h.loss
	}
	return &h.norm
}

// stays is how many steps in a row a level of its own takes.
const stays = 20

// level is what the logarithms of the last values were.
type level struct {
	last   [100]float64
	sorted []float64
	n      int // values there have been
}

// enough is how many values say what is typical.
const enough = 20

func (l *level) add(v float64) {
	oldest := &l.last[l.n%len(l.last)]
	if l.n >= len(l.last) {
		i, _ := slices.BinarySearch(l.sorted, *oldest)
		l.sorted = slices.Delete(l.sorted, i, i+1)
	}
	i, _ := slices.BinarySearch(l.sorted, v)
	l.sorted = slices.Insert(l.sorted, i, v)
	*oldest = v
	l.n++
}

// median is that of the values; 0 without any.
func (l *level) median() float64 {
	if l.n == 0 {
		return 0
	}
	return l.sorted[len(l.sorted)/2]
}

// deviation is the standard deviation that the median of the distances from the median has in a normal distribution.
func (l *level) deviation() float64 {
	v, median := slices.Clone(l.sorted), l.median()
	for i := range v {
		v[i] = math.Abs(v[i] - median)
	}
	slices.Sort(v)
	return 1.4826 * v[len(v)/2]
}

// look takes the units without a gradient of a look.
func (h *health) look(modules prof.ModuleTable) {
	if h.idle == nil {
		h.idle = map[string][]int{}
	}
	h.looks++
	for i := range modules {
		m := &modules[i]
		if m.Units == 0 {
			continue
		}
		if h.idle[m.Path] == nil {
			h.order = append(h.order, m.Path)
			h.idle[m.Path] = make([]int, m.Units)
		}
		row := h.idle[m.Path]
		for u := range row {
			if slices.Contains(m.Idle, u) {
				row[u]++
			} else {
				row[u] = 0
			}
		}
	}
}

// fewLooks say nothing about units: a batch may lack what they are for.
const fewLooks = 3

// dead are the layers with units that had no gradient in the last half of the looks.
func (h *health) dead() (all []Dead) {
	need := max(fewLooks, (h.looks+1)/2)
	for _, path := range h.order {
		n := 0
		for _, looks := range h.idle[path] {
			if looks >= need {
				n++
			}
		}
		if n > 0 {
			all = append(all, Dead{path, n, len(h.idle[path]), need})
		}
	}
	return all
}
