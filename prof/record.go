package prof

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
)

// record is an event as it is kept: small, since a window may have a million.
type record struct {
	kernel       *device.Kernel // of launches and fills
	part         *device.Range
	start, took  int64 // nanoseconds of the host since the window's beginning
	began, ended int64 // of the device, on the same clock; -1 where that is not known
	span         device.Span
	bytes        int64
	seq          uint64
	site         uint32 // in the recorder's sites
	word         uint32 // What, or the paths of parameters, in the recorder's words
	dev, queue   uint8
	step         uint16 // of the kernel's
	kind         device.Kind
	backward     bool
}

// recorder keeps the events of a window.
type recorder struct {
	base time.Time
	most int

	mu      sync.Mutex
	all     []record
	dropped int
	sites   []callsite.Site
	siteOf  map[callsite.Site]uint32
	words   []string
	wordOf  map[string]uint32
	open    map[uint64]int // ranges that have not ended: their records
	closed  bool           // what comes is of no window
	steps   []boundary
}

// boundary is where a step begins.
type boundary struct {
	step int
	at   int64
}

func newRecorder(most, step int) *recorder {
	r := &recorder{base: time.Now(), most: most, siteOf: map[callsite.Site]uint32{}, wordOf: map[string]uint32{"": 0}, words: []string{""}, open: map[uint64]int{}}
	r.steps = []boundary{{step, 0}}
	return r
}

// observe records device i.
func (r *recorder) observe(i int, w *watched) {
	w.epoch, w.at = w.dev.Epoch()
	w.stops = append(w.stops, w.dev.Time(), w.dev.Observe(func(e *device.Event) { r.add(i, e) },
		device.KindLaunch, device.KindFill, device.KindCopy, device.KindWait, device.KindRange))
}

// step notes that a step begins.
func (r *recorder) step(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, boundary{n, int64(time.Since(r.base))})
}

func (r *recorder) add(dev int, e *device.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if e.Kind == device.KindRange && e.End {
		r.end(e)
		return
	}
	if len(r.all) == r.most {
		r.dropped++
		return
	}
	if e.Kind == device.KindRange {
		r.open[e.Range.Number] = len(r.all)
	}
	r.all = append(r.all, record{kernel: e.Kernel, part: e.Range, start: int64(e.Start.Sub(r.base)), took: int64(e.Took), began: -1, ended: -1,
		span: e.Span, bytes: e.Bytes, seq: e.Seq, site: r.site(e.Site), word: r.word(e), dev: uint8(dev), queue: uint8(e.Queue), step: uint16(e.Step),
		kind: e.Kind, backward: e.Backward})
}

// end completes the record of a range, if its beginning was recorded.
func (r *recorder) end(e *device.Event) {
	if i, ok := r.open[e.Range.Number]; ok {
		r.all[i].took = int64(e.Took)
		delete(r.open, e.Range.Number)
	}
}

func (r *recorder) site(s *callsite.Site) uint32 {
	if s == nil {
		s = new(callsite.Site)
	}
	i, ok := r.siteOf[*s]
	if !ok {
		i = uint32(len(r.sites))
		r.sites = append(r.sites, *s)
		r.siteOf[*s] = i
	}
	return i
}

func (r *recorder) word(e *device.Event) uint32 {
	text := e.What
	if text == "" && len(e.Paths) == 1 {
		text = e.Paths[0]
	} else if text == "" && len(e.Paths) > 1 {
		text = strings.Join(e.Paths, " ")
	}
	i, ok := r.wordOf[text]
	if !ok {
		i = uint32(len(r.words))
		r.words = append(r.words, text)
		r.wordOf[text] = i
	}
	return i
}

// profile is what was recorded, once the devices have come to the end of it.
func (r *recorder) profile(of []*watched) *Profile {
	var ends []time.Time
	for _, w := range of {
		_, at := w.dev.Epoch() // which waits for the device
		ends = append(ends, at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	p := &Profile{all: r.all, sites: r.sites, words: r.words, steps: r.steps, Dropped: r.dropped}
	for i, w := range of {
		d := Device{Name: w.dev.Name(), Properties: w.dev.Properties(), Timed: w.epoch != nil}
		p.Devices = append(p.Devices, d)
		p.Took = max(p.Took, ends[i].Sub(r.base))
	}
	for i := range p.all {
		e := &p.all[i]
		if e.kind == device.KindRange && e.took == 0 {
			e.took = int64(p.Took) - e.start // it is open still
		}
		w := of[e.dev]
		p.Err = firstError(p.Err, e.resolve(w, int64(w.at.Sub(r.base))))
	}
	slices.SortStableFunc(p.all, func(a, b record) int { return int(min(1, max(-1, a.start-b.start))) })
	return p
}

// resolve replaces stamps by times. Where the host computes, the launch itself is the work.
func (e *record) resolve(w *watched, epoch int64) error {
	if e.kind != device.KindLaunch && e.kind != device.KindFill && e.kind != device.KindCopy {
		return nil
	}
	if e.span.Began == nil || e.span.Ended == nil || w.epoch == nil {
		if e.kernel != nil && e.kernel.Steps == nil || e.kind == device.KindCopy && w.dev.OnHost() {
			e.began, e.ended = e.start, e.start+e.took
		}
		e.span = device.Span{}
		return nil
	}
	began, err := e.span.Began.Since(w.epoch)
	took, err2 := e.span.Ended.Since(e.span.Began)
	e.span = device.Span{}
	if err = firstError(err, err2); err != nil {
		return fmt.Errorf("prof: the device does not tell when it worked: %w", err)
	}
	e.began = epoch + int64(began)
	e.ended = e.began + int64(max(took, 0))
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
