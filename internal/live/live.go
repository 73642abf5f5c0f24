// Package live shows a training that is under way in a browser: loss, rate, memory by kind, a timeline of the last steps, and
// what is found to be wrong. The page comes from the program and asks nobody else for anything.
//
// A training never waits for who looks on. What costs it something, a look at memory twice a second and a window of two steps
// now and then, is done only while somebody does; a window that was asked for is recorded as train --profile does.
package live

import (
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// View is a [train.Watcher] that shows what it is told, and tells another.
type View struct {
	next   train.Watcher
	server *web.Server

	mu      sync.Mutex
	changed chan struct{} // closed when there is something new
	viewers int
	start   *train.Start
	began   time.Time
	points  []point
	kinds   []kinds
	scores  []train.Score
	scoring [2]int // samples that were scored, of how many
	notes   []string
	looks   []train.Look
	noted   int // notes there have been
	ended   *Ending
	dev     *tensor.Device
	queued  int // steps that the device was asked for

	timeline *prof.Profile
	number   int    // of the timeline, from 1
	found    *found // in the newest timeline that was judged
	looked   time.Time
	window   *window
	profile  profile
	stop     chan struct{} // of the look at memory
}

// point is a step.
type point struct {
	Step           int
	Loss, MS       float64
	Used, Reserved int64
}

// kinds is memory by what it serves for, at a moment.
type kinds struct {
	Seconds float64          `json:"seconds"` // since the start
	Of      map[string]int64 `json:"of"`      // bytes
}

// Ending is how a run ended.
type Ending struct {
	Text  string `json:"text"`
	Error bool   `json:"error"`
}

// found is what a window says, once it was thought about.
type found struct {
	findings []prof.Finding
	checked  string
	summary  string
}

// window is steps that are recorded.
type window struct {
	p     *prof.Profiler
	steps int
	first int // the first step in it
	asked bool
}

// profile is the state of what was asked for.
type profile struct {
	State string        `json:"state"` // "", waiting, recording, done
	Steps int           `json:"steps,omitempty"`
	First int           `json:"first,omitempty"`
	Note  string        `json:"note,omitempty"`
	Took  time.Duration `json:"took_ns,omitempty"`
	last  *prof.Profile
}

// The states of a profile.
const (
	waiting   = "waiting"
	recording = "recording"
	done      = "done"
)

// New returns a view on a server, which it starts and closes, that tells next what it is told.
func New(server *web.Server, next train.Watcher) *View {
	v := &View{next: next, server: server, changed: make(chan struct{}), stop: make(chan struct{}), began: time.Now()}
	server.Serve(v.handler())
	return v
}

// change does f with the view's state and wakes those who look on.
func (v *View) change(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Start implements [train.Watcher].
func (v *View) Start(s train.Start) {
	v.change(func() { v.start, v.queued = &s, s.Done })
	v.next.Start(s)
}

// Step implements [train.Watcher].
func (v *View) Step(s train.Step) {
	p := point{Step: s.Step, Loss: s.Loss, MS: s.MS}
	if v.dev != nil {
		m := v.dev.Memory()
		p.Used, p.Reserved = m.Used, m.Reserved.Current
	}
	v.change(func() { v.points = append(v.points, p) })
	v.next.Step(s)
}

// Score implements [train.Watcher].
func (v *View) Score(s train.Score) {
	v.change(func() { v.scores, v.scoring = append(v.scores, s), [2]int{} })
	v.next.Score(s)
}

// mostLooks is how many looks at modules are kept.
const mostLooks = 200

// Look implements [train.Looking].
func (v *View) Look(l train.Look) {
	v.change(func() {
		v.looks = append(v.looks, l)
		v.looks = v.looks[max(0, len(v.looks)-mostLooks):]
	})
	if next, ok := v.next.(train.Looking); ok {
		next.Look(l)
	}
}

// Scoring implements [train.Watcher].
func (v *View) Scoring(done, of int) {
	v.change(func() { v.scoring = [2]int{done, of} })
	v.next.Scoring(done, of)
}

// mostNotes is how many notes are kept.
const mostNotes = 50

// Note implements [train.Watcher].
func (v *View) Note(text string) {
	v.change(func() {
		v.notes, v.noted = append(v.notes, text), v.noted+1
		v.notes = v.notes[max(0, len(v.notes)-mostNotes):]
	})
	v.next.Note(text)
}

// Attach implements [train.Attached].
func (v *View) Attach(env *tensor.Env) {
	v.change(func() { v.dev = env.Device() })
	go v.lookAtMemory()
}

// glance is how often memory is looked at while somebody looks on.
const glance = 500 * time.Millisecond

// mostKinds is how many looks at memory are kept.
const mostKinds = 1200

// lookAtMemory looks at what memory serves for, at moments that have nothing to do with steps.
func (v *View) lookAtMemory() {
	for {
		select {
		case <-v.stop:
			return
		case <-time.After(glance):
		}
		v.mu.Lock()
		watched := v.viewers > 0
		v.mu.Unlock()
		if !watched {
			continue
		}
		k := kinds{Seconds: time.Since(v.began).Seconds(), Of: map[string]int64{}}
		v.dev.Inventory(func(all *tensor.Inventory) {
			for i := range all.Values {
				k.Of[all.Values[i].Kind()] += all.Values[i].Bytes
			}
		})
		v.change(func() {
			v.kinds = append(v.kinds, k)
			v.kinds = v.kinds[max(0, len(v.kinds)-mostKinds):]
		})
	}
}

// warmup is the step before a window, which pays for what looking on takes once.
const warmup = 1

// Of the timeline: how many steps it has, and how often it is made anew while somebody looks on.
const (
	timelineSteps = 2
	timelineEvery = 5 * time.Second
)

// Turn implements [train.Attached]: windows open and end between steps.
func (v *View) Turn() {
	v.mu.Lock()
	v.queued++
	w := v.window
	if w == nil {
		w = v.due()
		v.window = w
	}
	v.mu.Unlock()
	if w == nil {
		return
	}
	defer machine.AllowWaits(v.dev)()
	if w.p == nil {
		w.p = prof.New(prof.Config{Warmup: warmup, Active: w.steps, Repeat: 1})
		w.p.Profile(v.dev)
		return
	}
	w.p.Step()
	if last := w.p.Last(); last != nil {
		v.change(func() { v.finish(w, last) })
	}
}

// due is the window that opens now, if one does.
func (v *View) due() *window {
	switch {
	case v.dev == nil || !v.dev.Computes():
	case v.profile.State == waiting:
		v.profile.State, v.profile.First = recording, v.queued+1+warmup
		return &window{steps: v.profile.Steps, first: v.profile.First, asked: true}
	case v.viewers > 0 && time.Since(v.looked) >= timelineEvery:
		return &window{steps: timelineSteps, first: v.queued + 1 + warmup}
	}
	return nil
}

// finish takes a window that has ended.
func (v *View) finish(w *window, p *prof.Profile) {
	v.window, v.looked = nil, time.Now()
	v.timeline, v.number = p, v.number+1
	go v.judge(p)
	if w.asked {
		v.profile = profile{State: done, Steps: w.steps, First: w.first, Took: p.Took, last: p}
	}
}

// judge thinks about a window, on a goroutine that the run does not wait for.
func (v *View) judge(p *prof.Profile) {
	f := &found{p.Findings(), p.Checked(), p.Summary().String()}
	if f.findings == nil {
		f.findings = []prof.Finding{}
	}
	v.change(func() { v.found = f })
}

// End says how the run ended, to those who look on. A window that is open is thrown away.
func (v *View) End(text string, failed bool) {
	close(v.stop)
	v.mu.Lock()
	w := v.window
	v.mu.Unlock()
	if w != nil && w.p != nil {
		w.p.Discard()
	}
	v.change(func() {
		if s := v.profile.State; s == waiting || s == recording {
			v.profile = profile{State: done, Steps: v.profile.Steps, Note: "the run ended first", last: v.profile.last}
		}
		v.ended = &Ending{text, failed}
	})
}

// Close ends the server. Those who look on have what there was.
func (v *View) Close() { v.server.Close() }
