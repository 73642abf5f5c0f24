package explore

import (
	"cmp"
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/render"
)

// Machine is a card, or one that is made up of its clock and memory with other numbers of cores.
type Machine struct {
	Card       string
	SMs        int    // 0: the card's
	CoresPerSM int    // 0: the card's
	Shape      string // of an elementwise operation in float32: one number read and one written for each
	Block      int    // threads of a block
	Step       int64  // one of the steps in which cores take an element each, from 0
}

// Architecture is such a machine, and an elementwise operation on it.
type Architecture struct {
	Card       string `json:"card"`
	Model      string `json:"model"`
	Invented   bool   `json:"invented"` // its numbers of cores are not the card's
	SMs        int    `json:"sms"`
	CoresPerSM int    `json:"cores_per_sm"`
	TotalCores int    `json:"total_cores"`
	Clock      int    `json:"clock_mhz"`

	Levels []Level `json:"levels"` // of memory, the nearest first

	Shape       []int64 `json:"shape"`
	Elements    int64   `json:"elements"`
	Threads     int64   `json:"threads"` // of whole blocks
	Warps       int64   `json:"warps"`
	Blocks      int64   `json:"blocks"`
	BlocksPerSM int     `json:"blocks_per_sm"` // at a time
	Waves       int64   `json:"waves"`         // rounds of blocks
	Batches     float64 `json:"batches"`       // elements for each core
	Steps       int64   `json:"steps"`         // the same, whole

	Bytes          int64   `json:"bytes"` // read and written
	MemorySeconds  float64 `json:"memory_seconds"`
	ComputeSeconds float64 `json:"compute_seconds"` // if every core had its element each clock
	Bound          string  `json:"bound"`

	Step   int64  `json:"step"`
	Active int    `json:"active"` // cores that have an element in it
	Idle   int    `json:"idle"`
	BySM   []int  `json:"active_by_sm"`
	Note   string `json:"note"`
}

// Level is a level of the memory.
type Level struct {
	Name   string  `json:"name"`
	Bytes  int64   `json:"bytes"` // in all
	Each   int64   `json:"each_bytes,omitempty"`
	Of     string  `json:"of"`               // whose each is
	Clocks int     `json:"clocks,omitempty"` // until a value is there, nominal
	Rate   float64 `json:"bytes_per_second,omitempty"`
}

// What a machine may have.
const (
	mostSMs   = 512
	mostCores = 1024
)

// NewArchitecture computes what a machine is and does at a step.
func NewArchitecture(m Machine) (*Architecture, error) {
	c, err := card(m.Card)
	if err != nil {
		return nil, err
	}
	shape, elements, err := ParseShape(m.Shape)
	if err != nil {
		return nil, err
	}
	sm := *c.SM()
	a := &Architecture{Card: c.Name, Model: c.Model, SMs: c.SMs, CoresPerSM: sm.Float32, Clock: c.Clock, Shape: shape, Elements: elements, Step: m.Step}
	for _, set := range []struct {
		name        string
		value, most int
		at          *int
	}{{"sms", m.SMs, mostSMs, &a.SMs}, {"cores-per-sm", m.CoresPerSM, mostCores, &a.CoresPerSM}} {
		if err := within(set.name, float64(set.value), 0, float64(set.most)); err != nil {
			return nil, err
		}
		if n := cmp.Or(set.value, *set.at); n != *set.at {
			*set.at, a.Invented = n, true
		}
	}
	if err := within("block", float64(m.Block), 1, cards.ThreadsPerBlock); err != nil {
		return nil, err
	}
	a.TotalCores = a.SMs * a.CoresPerSM
	a.launch(&sm, int64(m.Block))
	a.lasts(c)
	a.levels(c, &sm)
	if err := within("step", float64(m.Step), 0, float64(a.Steps-1)); err != nil {
		return nil, err
	}
	a.at()
	a.Note = Modelled
	if a.Invented {
		a.Note += "; a made-up card with the clock and the memory of " + c.Model
	}
	return a, nil
}

// elementwise is the registers of a thread of a simple kernel.
const elementwise = 16

// launch is the operation in threads, warps, blocks and rounds of them.
func (a *Architecture) launch(sm *cards.SM, block int64) {
	a.Blocks = ceil(a.Elements, block)
	a.Threads = a.Blocks * block
	a.Warps = a.Blocks * ceil(block, cards.Warp)
	a.BlocksPerSM = estimate.Occupy(sm, elementwise, int(block), 0).Blocks
	a.Waves = ceil(a.Blocks, int64(a.SMs*max(a.BlocksPerSM, 1)))
	a.Batches = float64(a.Elements) / float64(a.TotalCores)
	a.Steps = ceil(a.Elements, int64(a.TotalCores))
}

// lasts is how long memory and cores take for it.
func (a *Architecture) lasts(c *cards.Card) {
	const each = 2 * 4 // a float32 read and one written
	a.Bytes = each * a.Elements
	a.MemorySeconds = float64(a.Bytes) / (1e9 * float64(c.Bandwidth))
	a.ComputeSeconds = float64(a.Steps) / (1e6 * float64(c.Clock))
	a.Bound = "memory"
	if a.ComputeSeconds > a.MemorySeconds {
		a.Bound = "cores"
	}
}

// levels are the memory's.
func (a *Architecture) levels(c *cards.Card, sm *cards.SM) {
	n, registers := int64(a.SMs), int64(sm.Registers)*4
	a.Levels = []Level{
		{"registers", n * registers, registers, "SM", cards.LatencyALU, 0},
		{"shared memory", n * int64(sm.Shared), int64(sm.Shared), "SM", cards.LatencyShared, 0},
		{"L2 cache", c.L2, 0, "card", cards.LatencyL2, c.L2Bandwidth()},
		{"device memory", c.Memory, 0, "card", cards.LatencyMemory, 1e9 * float64(c.Bandwidth)},
		{"host memory", 0, 0, "host", 0, estimate.Link(c, true)},
	}
}

// at is who has an element in the step. Multiprocessors take as many as they have cores, one after the other.
func (a *Architecture) at() {
	left := a.Elements - a.Step*int64(a.TotalCores)
	for range a.SMs {
		n := int(min(max(left, 0), int64(a.CoresPerSM)))
		a.BySM = append(a.BySM, n)
		a.Active += n
		left -= int64(n)
	}
	a.Idle = a.TotalCores - a.Active
}

// Text is the same for people.
func (a *Architecture) Text(width int) string {
	t := render.Table{Header: []string{"memory", "in all", "each", "clocks", "a second"}, Right: []bool{false, true, true, true, true}}
	dash := func(v float64, text string) string {
		if v == 0 {
			return "–"
		}
		return text
	}
	for _, l := range a.Levels {
		t.Rows = append(t.Rows, []string{l.Name, dash(float64(l.Bytes), render.Bytes(l.Bytes)), dash(float64(l.Each), render.Bytes(l.Each)), dash(float64(l.Clocks), fmt.Sprint(l.Clocks)),
			dash(l.Rate, fmt.Sprintf("%.0f GB/s", l.Rate/1e9))})
	}
	return fmt.Sprintf("%s: %s × %s = %s at %d MHz\n\n%s\n%s: %s in %s, %s, %s; %.2f elements for each core, %s\n"+
		"memory %s, cores %s: bound by %s\nstep %d: %s active, %d idle\n%s\n",
		a.Model, counted(int64(a.SMs), "multiprocessor"), counted(int64(a.CoresPerSM), "core"), counted(int64(a.TotalCores), "core"), a.Clock, t.String(width), counted(a.Elements, "element"), counted(a.Threads, "thread"), counted(a.Warps, "warp"), counted(a.Blocks, "block"), counted(a.Waves, "wave"), a.Batches, counted(a.Steps, "step"),
		span(a.MemorySeconds), span(a.ComputeSeconds), a.Bound, a.Step, counted(int64(a.Active), "core"), a.Idle, a.Note)
}

// span is a time for people.
func span(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.4g µs", 1e6*seconds)
	case seconds < 1:
		return fmt.Sprintf("%.4g ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.4g s", math.Round(seconds*1e4)/1e4)
}
