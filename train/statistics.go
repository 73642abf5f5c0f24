package train

import (
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/prof"
)

// Look is what modules and their gradients came to in a step. Its JSON is a line of log.jsonl, behind that of the step.
type Look struct {
	Statistics bool             `json:"statistics"` // always true
	Step       int              `json:"step"`
	Modules    prof.ModuleTable `json:"modules"`
}

// Looking is a Watcher that is told what the Statistics of a [Config] or a [Loop] found.
type Looking interface {
	Watcher
	Look(l Look)
}

// looks tells whether the next step is looked at.
func (s *session) looks() bool {
	return s.Statistics > 0 && (s.queued+1)%s.Statistics == 0
}

// look begins a look if one is due.
func (s *session) look() {
	if !s.looks() {
		return
	}
	if s.statistics == nil {
		s.statistics = prof.NewStatistics(s.Model)
	}
	s.statistics.Drop() // of a step that is made again
	s.statistics.Begin()
}

// looked ends a look behind Backward; nil without one.
func (s *session) looked() *prof.Look {
	if !s.looks() {
		return nil
	}
	scale := 1.0
	if s.Scaler != nil && !s.dry() {
		defer machine.AllowWaits(s.env.Device())() // for the scale, which the device adjusts
		scale = s.Scaler.Scale()
	}
	return s.statistics.End(scale)
}

// tellLook tells what a look found, if there was one.
func (s *session) tellLook(u *underway) error {
	switch {
	case u.look == nil:
		return nil
	case s.dry(): // which took its memory, and has no numbers
		u.look.Drop()
		return nil
	}
	l := Look{true, u.Step.Step, u.look.Values()}
	s.health.look(l.Modules)
	if w, ok := s.Watch.(Looking); ok {
		w.Look(l)
	}
	return s.folder.line(l)
}
