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
	limit int       // scores
	since int       // after the best
	loss  float64   // of the best; +Inf before the first
	step  int       // of the best
	best  nn.Module // the weights then
}

// newPatience is that of a run, or nil where none is asked for. best holds weights like those that are scored.
func newPatience(limit int, scored nn.Module) *patience {
	if limit == 0 {
		return nil
	}
	return &patience{limit: limit, loss: math.Inf(1), best: nn.Clone(scored)}
}

// told takes in a score of the weights of a model.
func (p *patience) told(s *Score, m nn.Module) {
	if p == nil {
		return
	}
	p.since++
	if s.ValLoss < p.loss {
		p.since, p.loss, p.step = 0, s.ValLoss, s.Step
		for from, to := range nn.Zip(m, p.best) {
			to.CopyInPlace(from.Detach())
		}
	}
}

// over tells whether the run is to end.
func (p *patience) over() bool { return p != nil && p.since >= p.limit }

// outcome is the model that the run leaves: that of the best score, if there was one that counts.
func (r *run) outcome() nn.Module {
	if p := r.patience; p != nil && p.step > 0 {
		return p.best
	}
	return r.average.or(r.model)
}

// recall goes on from the scores of a run that was interrupted, whose folder has the weights of the best.
func (p *patience) recall(dir string, scores []Score) error {
	path := filepath.Join(dir, ckpt.ModelFile)
	if p == nil || len(scores) == 0 || !dataset.IsFile(path) {
		return nil
	}
	if err := ckpt.LoadModel(path, p.best); err != nil {
		return explain(err, "start the run anew, with another --out")
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
	if r.Patience == 0 {
		return nil
	}
	if r.test == nil {
		if r.Given["patience"] {
			return fail("leave --patience out", "--patience goes by what is held out, and this run holds nothing out")
		}
		r.Patience = 0
		return nil
	}
	if r.EvalEvery == 0 {
		r.EvalEvery = r.perEpoch
	}
	return nil
}

// ended tells the watcher that the run ends early.
func (p *patience) ended(r *run) {
	r.watch.Note(fmt.Sprintf("the loss on what is held out has not got below that of step %d in %s: the run ends after step %d of %d", p.step, scoresText(p.limit), r.done, r.Steps))
}

func scoresText(n int) string {
	if n == 1 {
		return "1 score"
	}
	return fmt.Sprintf("%d scores", n)
}
