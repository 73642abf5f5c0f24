package prof

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// profile is what was recorded, once the devices have come to the end of it.
func (r *recorder) profile() *Profile {
	r.close()
	p := &Profile{steps: r.steps}
	m := merger{p: p, sites: map[callsite.Site]uint32{}, kernels: map[*device.Kernel]uint32{}}
	n := 0
	for _, l := range r.lanes {
		for _, c := range l.chunks {
			n += len(c)
		}
	}
	p.all = make([]record, 0, n)
	for i, l := range r.lanes {
		m.lane(uint8(i), l)
	}
	if byStart := func(a, b record) int { return cmp.Compare(a.start, b.start) }; !slices.IsSortedFunc(p.all, byStart) {
		sorting.By(p.all, byStart)
	}
	p.sortBlocks()
	p.renumber()
	return p
}

// renumber counts recorded operations from the window's first.
func (p *Profile) renumber() {
	first := uint64(1<<64 - 1)
	for i := range p.all {
		if n := p.all[i].seq; n > 0 {
			first = min(first, n)
		}
	}
	for i := range p.all {
		if n := &p.all[i].seq; *n > 0 {
			*n -= first - 1
		}
	}
}

// merger joins lanes to a profile.
type merger struct {
	p       *Profile
	sites   map[callsite.Site]uint32
	kernels map[*device.Kernel]uint32
}

func (m *merger) lane(dev uint8, l *lane) {
	p := m.p
	last, end := l.dev.Epoch() // which waits for the device
	took := end - l.base
	p.Took = max(p.Took, took)
	p.Dropped += l.late
	p.Devices = append(p.Devices, Device{
		Name: l.dev.Name(), Properties: l.dev.Properties(), Timed: l.epoch != nil, Modelled: l.virtual(), Stamping: l.dev.Stamping(),
	})
	for _, o := range l.open {
		o.record.took = int64(took) - o.record.start
	}
	p.blocksOf(dev, l.blocks)
	whats, parts, spans := uint32(len(p.whats)), uint32(len(p.ranges)), uint32(len(p.times))
	for i := range l.whats {
		p.whats = append(p.whats, m.activity(dev, l, &l.whats[i].what))
	}
	m.ranges(l)
	times, err := l.times(last, end)
	p.times = append(p.times, times...)
	p.Err = cmp.Or(p.Err, err)
	for i, c := range l.chunks {
		p.all = append(p.all, c...)
		if dev > 0 { // the first device's numbers stay
			shift(p.all[len(p.all)-len(c):], whats, parts, spans)
		}
		l.chunks[i] = nil // so that a long window is not kept twice
		if cap(c) == chunk {
			room.Put((*[chunk]record)(c[:chunk]))
		}
	}
	l.open = nil
}

// shift numbers what events of a lane point to behind what lanes before it have.
func shift(events []record, whats, parts, spans uint32) {
	for i := range events {
		e := &events[i]
		e.what += whats
		if e.part > 0 {
			e.part += parts
		}
		if e.span > 0 {
			e.span += spans
		}
	}
}

// virtual reports whether the times of l are a model's.
func (l *lane) virtual() bool {
	_, ok := l.dev.Clock()
	return ok
}

// activity is w for a profile.
func (m *merger) activity(dev uint8, l *lane, w *what) activity {
	a := activity{Kind: w.kind.String(), Device: dev, Queue: w.queue, Step: w.step, Backward: w.backward, Captured: w.captured, Bytes: w.bytes, Text: w.text, kind: w.kind}
	site, ok := m.sites[w.site]
	if !ok {
		site = uint32(len(m.p.sites))
		m.sites[w.site] = site
		m.p.sites = append(m.p.sites, stackOf(&w.site))
	}
	a.Site = site
	if w.kernel != nil {
		k, ok := m.kernels[w.kernel]
		if !ok {
			m.p.kernels = append(m.p.kernels, kernelOf(w.kernel))
			k = uint32(len(m.p.kernels))
			m.kernels[w.kernel] = k
		}
		a.Kernel = k
		a.Hosted = w.kernel.Steps == nil
	}
	if w.kind == device.KindCopy {
		a.Hosted = l.dev.OnHost()
	}
	return a
}

// ranges numbers the ranges of a lane, and those around them.
func (m *merger) ranges(l *lane) {
	base := uint32(len(m.p.ranges))
	for i := 0; i < len(l.parts); i++ { // which grows by parents
		r := l.parts[i]
		q := part{Name: r.Name}
		if r.Parent != nil {
			q.Parent = base + l.partNumber(r.Parent)
		}
		m.p.ranges = append(m.p.ranges, q)
	}
}

// times are the device's own, on the clock of the window, which was related to the device's at its beginning and its end.
func (l *lane) times(last device.Stamp, end time.Duration) (out []interval, err error) {
	if l.spans.n == 0 || l.epoch == nil {
		return make([]interval, l.spans.n), nil
	}
	clock, err := newClock(l, last, end)
	out = make([]interval, 0, l.spans.n)
	for _, settled := range l.spans.settled {
		for _, t := range settled {
			out = append(out, clock.place(t))
		}
	}
	for _, of := range append(l.spans.filled, l.spans.latest) {
		for i := range of {
			var t interval
			if err == nil {
				t, err = clock.interval(&of[i])
			}
			out = append(out, t)
			of[i] = device.Span{} // its events may serve again
		}
	}
	if err != nil {
		return make([]interval, len(out)), fmt.Errorf("prof: %s does not tell when it worked: %w", l.dev.Name(), err)
	}
	return out, nil
}

// clock translates a device's times.
type clock struct {
	own   device.Clock // whose host's clock is the device's too; nil for real ones
	base  time.Duration
	epoch device.Stamp
	at    time.Duration
	rate  float64 // of the host's clock by the device's
}

// oneRate is how long a window must be for its clocks to be compared: their difference is a few millionths, and what an epoch
// leaves open some microseconds.
const oneRate = 100 * time.Millisecond

func newClock(l *lane, last device.Stamp, end time.Duration) (*clock, error) {
	c := &clock{base: l.base, epoch: l.epoch, at: l.at, rate: 1}
	if own, ok := l.dev.Clock(); ok {
		c.own = own
		return c, nil
	}
	took, err := last.Since(l.epoch)
	if err == nil && took > oneRate {
		c.rate = float64(end-l.at) / float64(took)
	}
	return c, err
}

func (c *clock) interval(s *device.Span) (out interval, err error) {
	if c.own != nil {
		_, began, err := c.own.StampTime(s.Began)
		ended, _, err2 := c.own.StampTime(s.Ended)
		return interval{int64(began - c.base), int64(max(began, ended) - c.base)}, cmp.Or(err, err2)
	}
	t, err := measured(s, c.epoch)
	return c.place(t), err
}

// place puts what was measured on the host's clock.
func (c *clock) place(t interval) interval {
	began := int64(c.at-c.base) + int64(float64(t.began)*c.rate)
	return interval{began, began + t.ended - t.began}
}

// stackOf is the frames of a site.
func stackOf(s *callsite.Site) stack {
	out := stack{Line: s.String()}
	for _, f := range s.Frames() {
		out.Frames = append(out.Frames, frame{Function: f.Function, File: f.File, Line: f.Line})
	}
	return out
}

// kernelOf is what a profile keeps of a kernel.
func kernelOf(k *device.Kernel) kernel {
	out := kernel{Op: k.What(), Shape: k.String(), FLOPs: k.FLOPs, Bytes: k.Bytes, Steps: k.Steps}
	for _, in := range k.Op.Ins() {
		out.Ins = append(out.Ins, operand{Dims: in.Shape(), Type: torchName(in.DType)})
	}
	return out
}
