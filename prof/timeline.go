package prof

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/render"
)

// Timeline is a device's memory over time, by what it serves for. Between two points memory may have been anything in between:
// of each stretch of time the least and the most are there.
type Timeline struct {
	Device   string          `json:"device"`
	Labels   []string        `json:"labels"`   // of package device, that occur, in its order
	At       []time.Duration `json:"at"`       // since the history began, nanoseconds
	Bytes    [][]int64       `json:"bytes"`    // by label, at each point: in use, as asked for
	Reserved []int64         `json:"reserved"` // what the allocator had from the device
	Backward []time.Duration `json:"backward"` // when a Backward began and when it ended, in turn
	Events   int             `json:"events"`
	Lost     int             `json:"lost"` // events before the first point, which the ring has lost

	PeakAt time.Duration `json:"peak_at"`
	Peak   int64         `json:"peak"` // most bytes in use
	Kept   int64         `json:"kept"` // the most that a Backward found kept for it
	Top    []Holder      `json:"top"`  // who held the memory at the peak
}

// Timelines are the devices' memory over time, in about so many points each; 0 is 1,500.
func (h *History) Timelines(points int) ([]*Timeline, error) {
	logs, err := h.logs()
	if err != nil {
		return nil, err
	}
	var all []*Timeline
	for _, l := range logs {
		all = append(all, l.timeline(points))
	}
	return all, nil
}

// sample is a moment.
type sample struct {
	at, inUse, reserved int64
	change              int // its number: of a simulated card many have the same moment
	label               map[uint32]int64
}

// sampler keeps the least and the most of a stretch of time.
type sampler struct {
	width       int64
	stretch     int64
	changes     int
	least, most *sample
	all         []*sample
}

func (s *sampler) add(l *ledger, at int64) {
	if n := at / s.width; n != s.stretch {
		s.flush()
		s.stretch = n
	}
	if s.most == nil || l.inUse >= s.most.inUse {
		s.most = sampleOf(l, at, s.most)
		s.most.change = s.changes
	}
	if s.least == nil || l.inUse <= s.least.inUse {
		s.least = sampleOf(l, at, s.least)
		s.least.change = s.changes
	}
	s.changes++
}

// sampleOf is l now, in the memory of an earlier sample.
func sampleOf(l *ledger, at int64, reuse *sample) *sample {
	if reuse == nil {
		reuse = &sample{label: map[uint32]int64{}}
	}
	reuse.at, reuse.inUse, reuse.reserved = at, l.inUse, l.reserved
	clear(reuse.label)
	for k, v := range l.label {
		reuse.label[k] = v
	}
	return reuse
}

func (s *sampler) flush() {
	if s.most == nil {
		return
	}
	first, second := s.least, s.most
	if first.change > second.change {
		first, second = second, first
	}
	if s.all = append(s.all, first); second.change > first.change {
		s.all = append(s.all, second)
	}
	s.least, s.most = nil, nil
}

func (l *memoryLog) timeline(points int) *Timeline {
	if points <= 0 {
		points = 1500
	}
	t := &Timeline{Device: l.name, Events: len(l.changes), Lost: l.past}
	start := int64(0)
	if l.past > 0 && len(l.changes) > 0 {
		start = l.changes[0].at
	}
	s := &sampler{width: max(1, 2*(l.at-start)/int64(points))}
	first := newLedger(l.books)
	first.begin(l.base.sorted())
	s.all = append(s.all, sampleOf(first, start, nil))
	s.stretch = start / s.width
	led := l.ledger(func(led *ledger, c *change) {
		if c.kind == device.KindBackward {
			t.Backward = append(t.Backward, time.Duration(c.at))
		}
		s.add(led, c.at)
	})
	s.flush()
	s.all = append(s.all, sampleOf(led, l.at, nil))
	t.fill(l.books, s.all)
	t.Peak, t.PeakAt, t.Kept = led.peak, time.Duration(max(start, led.peakAt)), led.kept
	t.Top = led.holders(func(b *balance) (int64, int64) { return b.peakBytes, b.peakCount })
	return t
}

// fill turns samples into columns, for labels that occur.
func (t *Timeline) fill(b *books, all []*sample) {
	for _, label := range device.Labels() {
		word := uint32(slices.Index(b.words, label))
		column := make([]int64, len(all))
		any := false
		for i, s := range all {
			column[i] = s.label[word]
			any = any || column[i] > 0
		}
		if any {
			t.Labels, t.Bytes = append(t.Labels, label), append(t.Bytes, column)
		}
	}
	for _, s := range all {
		t.At, t.Reserved = append(t.At, time.Duration(s.at)), append(t.Reserved, s.reserved)
	}
}

// area is the timeline as a drawing.
func (t *Timeline) area() render.Area {
	unit, name := 1.0, "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if float64(t.Peak) < 1024*unit {
			break
		}
		unit, name = 1024*unit, u
	}
	second, times := 1e9, "s"
	switch last := t.At[len(t.At)-1]; {
	case last < 10*time.Millisecond:
		second, times = 1e3, "µs"
	case last < 10*time.Second:
		second, times = 1e6, "ms"
	}
	a := render.Area{Title: "Memory of " + t.Device, XLabel: times, YLabel: name, Names: t.Labels, Mark: math.NaN()}
	if t.Peak > 0 {
		a.Mark = float64(t.PeakAt) / second
	}
	for _, label := range t.Labels {
		a.Colors = append(a.Colors, slices.Index(device.Labels(), label))
	}
	for _, at := range t.At {
		a.X = append(a.X, float64(at)/second)
	}
	for _, column := range t.Bytes {
		y := make([]float64, len(column))
		for i, v := range column {
			y[i] = float64(v) / unit
		}
		a.Y = append(a.Y, y)
	}
	return a
}

// Terminal draws the timeline in width columns and height lines, and says below what there was at the peak.
func (t *Timeline) Terminal(width, height int, color bool) string {
	var b strings.Builder
	a := t.area()
	a.YLabel += " over " + a.XLabel
	b.WriteString(a.Terminal(width, max(height-2, 6), color))
	var parts []string
	for _, k := range kinds(t.Top) {
		parts = append(parts, k.Label+" "+render.Bytes(k.Bytes))
	}
	fmt.Fprintf(&b, "%s\n", render.Truncate(fmt.Sprintf("peak %s at %s: %s", render.Bytes(t.Peak), render.Duration(t.PeakAt), strings.Join(parts, ", ")), width))
	return b.String()
}

// SVG draws the timeline as a stand-alone document of width×height pixels.
func (t *Timeline) SVG(width, height int) string { return t.area().SVG(width, height) }

// WriteSVG writes the first device's timeline as a picture. The file is there whole or not at all.
func (h *History) WriteSVG(path string) error {
	all, err := h.Timelines(0)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, all[0].SVG(960, 420))
		return err
	})
}
