package tensor

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
)

// registry has the programs and the steps that are being recorded. Work belongs to one by the goroutine that asks for it: a
// step reaches values, such as an optimizer's, whose envs know nothing of it.
type registry struct {
	n        atomic.Int32
	mu       sync.Mutex
	programs []*Program
	steps    []*recording
}

var recordings registry

func (r *registry) begin(p *Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = append(r.programs, p)
	r.n.Add(1)
}

func (r *registry) end(p *Program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.programs = slices.DeleteFunc(r.programs, func(q *Program) bool { return p == q })
	r.n.Add(-1)
}

func (r *registry) beginStep(s *recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
	r.n.Add(1)
}

func (r *registry) endStep(s *recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = slices.DeleteFunc(r.steps, func(q *recording) bool { return s == q })
	r.n.Add(-1)
}

// open says which scope a step's values are made in.
func (r *registry) open(s *recording, scope *scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.scope = scope
}

// strays notes work on values of a step that another goroutine is recording: it is in no recording. That goroutine raises the
// error. Work on values from before the step may be another training's as well as the step's: nobody knows whose it is.
func (r *registry) strays(op string, in, out []*Tensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return
	}
	g := callsite.Goroutine()
	for _, s := range r.steps {
		if s.scope != nil && s.goroutine != g && s.stray == "" && (s.ownsAny(in) || s.ownsAny(out)) {
			s.stray = op + " at " + userLine()
		}
	}
}

// strayed is what strays has noted.
func (r *registry) strayed(s *recording) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.stray
}

// any tells whether something may be recorded: the quick answer is almost always no.
func (r *registry) any() bool { return r.n.Load() > 0 }

// step is the step that the calling goroutine records, nil for none.
func (r *registry) step() *recording {
	if !r.any() {
		return nil
	}
	if s := r.find(); s != nil && !s.first {
		return s
	}
	return nil
}

// find is the step of a [Captured] that the calling goroutine is in, recorded or not.
func (r *registry) find() *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return nil
	}
	g := callsite.Goroutine()
	for _, s := range r.steps {
		if s.goroutine == g && s.paused == 0 {
			return s
		}
	}
	return nil
}

// refuse raises an error where the goroutine that is recording a program on a device does work that is in none.
func (r *registry) refuse(d *Device, op string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.programs) == 0 {
		return
	}
	g := callsite.Goroutine()
	if slices.ContainsFunc(r.programs, func(p *Program) bool { return p.env.dev == d && p.goroutine == g }) {
		raise("Record", "do it before, or in the env of the operand, x.Env()", "%s of values from outside of the program would not be done again", op)
	}
}

// uncapturable raises an error within a step that is captured: what it does is not done again in each run.
func uncapturable(op, hint, why string) {
	if recordings.any() && recordings.find() != nil {
		raise(op, hint, "%s, and this is within a captured step", why)
	}
}

// hostWork is uncapturable for what the host may do once, in the first run on batches of a kind, where a step makes what later
// ones find.
func hostWork(op, hint, why string) {
	switch s := recordings.step(); {
	case s == nil:
	case s.fresh:
		s.made = true
	default:
		raise(op, hint, "%s, and this is within a captured step", why)
	}
}
