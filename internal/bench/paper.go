package bench

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/render"
)

// The paper model: what a card's maker promises, times what good kernels get of it. They are assumptions, not measurements:
// memory gives nine tenths and a launch costs the device 1.5 µs, as package estimate has it; products get two fifths and
// attention three tenths of the arithmetic.
const (
	productShare   = 0.40
	attentionShare = 0.30
)

// Model is the time of launches on paper.
type Model struct {
	Terms []Term  // by operation, the longest first
	Floor float64 // seconds, if memory and arithmetic were used in full and launches cost nothing
}

// Term is what the launches of one operation take.
type Term struct {
	Op      string
	Kernels int // launches of kernels and fills
	FLOPs   int64
	Bytes   int64
	Compute float64 // seconds, of those launches that are bound by arithmetic
	Memory  float64 // seconds, of the others
	Launch  float64 // seconds
}

// Seconds are all of a term.
func (t *Term) Seconds() float64 { return t.Compute + t.Memory + t.Launch }

// Seconds are those of all terms.
func (m *Model) Seconds() (s float64) {
	for i := range m.Terms {
		s += m.Terms[i].Seconds()
	}
	return s
}

// Model is Σ max(bytes ÷ memory, FLOP ÷ arithmetic) + 1.5 µs over the launches, each share taken into account.
func (c *Ceilings) Model(l Launches) *Model {
	m := &Model{Floor: c.Floor(l, 0)}
	terms := map[string]*Term{}
	for _, k := range l {
		op := k.What()
		t := terms[op]
		if t == nil {
			t = &Term{Op: op}
			terms[op] = t
		}
		t.add(k, c)
	}
	for _, t := range slices.SortedFunc(maps.Values(terms), func(a, b *Term) int { return cmp.Compare(b.Seconds(), a.Seconds()) }) {
		m.Terms = append(m.Terms, *t)
	}
	return m
}

// add is another launch of the term's operation.
func (t *Term) add(k Launch, c *Ceilings) {
	t.FLOPs += k.FLOPs
	t.Bytes += k.Bytes
	t.Kernels += max(1, len(k.Steps))
	t.Launch += estimate.PerLaunch * float64(max(1, len(k.Steps)))
	memory := float64(k.Bytes) / (estimate.MemoryShare * c.bandwidth(k.Bytes))
	if eta := share(t.Op); eta > 0 && float64(k.FLOPs)/(eta*c.peak(k.dtype())) > memory {
		t.Compute += float64(k.FLOPs) / (eta * c.peak(k.dtype()))
	} else {
		t.Memory += memory
	}
}

// share is what kernels of an operation get of a card's arithmetic. All but products and attention are bound by memory: 0.
func share(op string) float64 {
	switch {
	case strings.Contains(op, "attention"):
		return attentionShare
	case strings.Contains(op, "matmul"), strings.Contains(op, "linear"), strings.HasPrefix(op, "conv"):
		return productShare
	}
	return 0
}

// Text is the model as a table, each term shown.
func (m *Model) Text(width int) string {
	t := render.Table{Header: []string{"operation", "launches", "GFLOP", "GB", "arithmetic ms", "memory ms", "launches ms", "ms"},
		Right: []bool{false, true, true, true, true, true, true, true}}
	var all Term
	all.Op = "all"
	for _, x := range m.Terms {
		t.Rows = append(t.Rows, x.row())
		all.Kernels += x.Kernels
		all.FLOPs += x.FLOPs
		all.Bytes += x.Bytes
		all.Compute += x.Compute
		all.Memory += x.Memory
		all.Launch += x.Launch
	}
	t.Rows = append(t.Rows, all.row())
	return t.String(width)
}
