package train

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/nn"
)

// patience ends a run whose scores get no better, and keeps the weights of the best. What counts are the scores between steps, by
// their loss: where a run is interrupted changes nothing.
type patience struct {
	limit int     // scores; 0: it does not end
	since int     // after the best
	loss  float64 // of the best; +Inf before the first
	step  int     // of the best
	best  any     // the weights then, of a model; nil: they are not kept
	left  bool    // they are in the folder
}

// newPatience keeps the best weights of the model that is scored, unless that is nil.
func newPatience(limit int, scored any) *patience {
	p := &patience{limit: limit, loss: math.Inf(1)}
	if scored != nil {
		p.best = nn.Clone(scored)
	}
	return p
}

// told takes in a score of the weights of a model.
func (p *patience) told(s *Score, m any) {
	if p == nil {
		return
	}
	p.since++
	if s.ValLoss < p.loss {
		p.since, p.loss, p.step = 0, s.ValLoss, s.Step
		if p.best != nil {
			copyModel(m, p.best)
			p.left = false
		}
	}
}

// copyModel gives one model the weights of the other.
func copyModel(from, to any) {
	for a, b := range nn.Zip(from, to) {
		b.CopyInPlace(a.Detach())
	}
}

// kept tells whether the best weights are here.
func (p *patience) kept() bool { return p != nil && p.best != nil && p.step > 0 }

// over tells whether the run is to end.
func (p *patience) over() bool { return p != nil && p.limit > 0 && p.since >= p.limit }

// recall goes on from the scores of a run that was interrupted, whose folder has the weights of the best.
func (p *patience) recall(dir string, scores []Score, load func(path string, m any) error) error {
	path := filepath.Join(dir, ckpt.ModelFile)
	if p == nil || len(scores) == 0 || p.best != nil && !dataset.IsFile(path) {
		return nil
	}
	if p.best != nil {
		if err := load(path, p.best); err != nil {
			return err
		}
		p.left = true
	}
	for _, s := range scores {
		p.since++
		if s.ValLoss < p.loss {
			p.since, p.loss, p.step = 0, s.ValLoss, s.Step
		}
	}
	return nil
}

// patient decides how often a run is scored that is to end early.
func (r *run) patient() error {
	if !r.judges() {
		return nil
	}
	if r.test == nil {
		if r.Keep == keepBest {
			return fail("leave --keep best out", "--keep best goes by what is held out, and this run holds nothing out")
		}
		if r.Given["patience"] {
			return fail("leave --patience out", "--patience goes by what is held out, and this run holds nothing out")
		}
		r.Patience = 0
		return nil
	}
	if r.EvalEvery == 0 {
		r.EvalEvery = r.perEpoch(r.Batch)
	}
	return nil
}

// ended tells the watcher that the run ends early.
func (p *patience) ended(w Watcher, done, steps int) {
	w.Note(fmt.Sprintf("the loss on what is held out has not got below that of step %d in %s: the run ends after step %d of %d", p.step, scoresText(p.limit), done, steps))
}

func scoresText(n int) string {
	if n == 1 {
		return "1 score"
	}
	return fmt.Sprintf("%d scores", n)
}
