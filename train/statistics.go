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

// Looking is a Watcher that is told what Config.Statistics found.
type Looking interface {
	Watcher
	Look(l Look)
}

// looks tells whether the next step is looked at.
func (r *run) looks() bool {
	return r.Statistics > 0 && (r.queued+1)%r.Statistics == 0
}

// look begins a look if one is due.
func (r *run) look() {
	if !r.looks() {
		return
	}
	if r.statistics == nil {
		r.statistics = prof.NewStatistics(r.model)
	}
	r.statistics.Drop() // of a step that is made again
	r.statistics.Begin()
}

// looked ends a look behind Backward; nil without one.
func (r *run) looked() *prof.Look {
	if !r.looks() {
		return nil
	}
	scale := 1.0
	if r.scaler != nil && !r.dry() {
		defer machine.AllowWaits(r.env.Device())() // for the scale, which the device adjusts
		scale = r.scaler.Scale()
	}
	return r.statistics.End(scale)
}

// tellLook tells what a look found, if there was one.
func (r *run) tellLook(u *underway) error {
	if u.look == nil || r.dry() { // which took its memory, and has no numbers
		return nil
	}
	l := Look{true, u.Step.Step, u.look.Values()}
	r.health.look(l.Modules)
	if w, ok := r.watch.(Looking); ok {
		w.Look(l)
	}
	return r.folder.line(l)
}
