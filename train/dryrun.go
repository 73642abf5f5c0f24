package train

import (
	"context"
	"time"

	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// Dry is a dry run of a training.
type Dry struct {
	Task, Model string
	Parameters  int
	Batch       int
	Steps       int
	Scored      int     // batches that are scored, of all evaluations
	Tried       int     // batches that are scored behind the steps of a report that tell its time, where any are
	Loader      float64 // seconds that the data of a batch take on this machine, by one goroutine; measured
	Reports     []*plan.Report
	Levers      map[string][]tensor.Lever // by card, of those that are too small: what would save memory there
}

// Whole is how long all steps and scores take by the model, in seconds, and how short and long that may be, if the loader keeps
// up: zeros where a step has no time.
func (d *Dry) Whole(r *plan.Report) (seconds, low, high float64) {
	s := r.Step
	if s == nil {
		return 0, 0, 0
	}
	seconds = float64(d.Steps)*s.Total + float64(d.Scored)*s.After/float64(max(1, d.Tried))
	return seconds, seconds * s.Low / s.Total, seconds * s.High / s.Total
}

// evaluations is how often the run is scored, and how many batches each time.
func (r *run) evaluations() (times, batches int) {
	if r.job.test == nil {
		return 0, 0
	}
	times, size := 1, evalBatch(&r.job.arch, r.Context)
	if r.EvalEvery > 0 {
		times += (r.Steps - 1) / r.EvalEvery
	}
	return times, r.job.test.Batches(size)
}

// DryRun finds what the run needs on cards that nobody has at hand: the memory of its steps and of scoring, to the byte (see PeaksOf of [plan.Report]), the
// largest batch that fits, and the time of a step by the model. Nothing is written, no values of weights are read, and nothing is taken of this machine's memory
// but for batches. Names of cards are as "h100-80", null: before them allowed. c.Device is left alone.
func DryRun(ctx context.Context, c Config, cards []string) (d *Dry, err error) {
	defer machine.Recovered(&err)
	if len(cards) == 0 {
		return nil, fail("name one or more, as in --dry-run h100-80,l4", "a dry run on no card")
	}
	for _, name := range cards {
		if _, err := plan.Card(name); err != nil {
			return nil, err
		}
	}
	r, err := planned(c)
	if err != nil {
		return nil, err
	}
	defer r.job.close()
	times, batches := r.evaluations()
	d = &Dry{Task: r.Task, Batch: r.Batch, Steps: r.Steps, Scored: times * batches, Levers: map[string][]tensor.Lever{}}
	if d.Loader, err = r.loading(ctx); err != nil {
		return nil, err
	}
	for _, name := range cards {
		report, err := r.dryRun(ctx, name, d)
		if err != nil {
			return nil, err
		}
		d.Reports = append(d.Reports, report)
		if !report.Fits() {
			if d.Levers[report.Card], err = report.Weigh(r.program(ctx)); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// planned is a run that is known and has nothing on a device.
func planned(c Config) (*run, error) {
	r := newRun(c, silent{})
	switch {
	case r.Resume:
		return nil, fail("leave --resume out", "a dry run begins anew, and --resume goes on with a run")
	case r.AutoBatch:
		return nil, fail("leave --batch out", "--batch auto with --dry-run, which tells the largest batch of any")
	case r.Memory > 0:
		return nil, fail("leave --memory out", "--memory with a dry run, which is of cards as they are")
	}
	r.Invent = true
	if err := r.check(); err != nil {
		return nil, err
	}
	r.settle()
	if err := r.choose(nil); err != nil {
		return nil, err
	}
	if err := r.count(nil); err != nil {
		r.job.close()
		return nil, err
	}
	return r, nil
}

// dryRun is the run on one card.
func (r *run) dryRun(ctx context.Context, card string, d *Dry) (*plan.Report, error) {
	setting := plan.Setting{Batch: r.Batch, Parts: 1}
	report, err := r.tried(ctx, card, setting)
	if err != nil {
		return nil, err
	}
	whole := report
	for _, n := range r.choices() {
		setting.Parts = n
		if report, err = r.tried(ctx, card, setting); err != nil {
			return nil, err
		}
		if report.Parts = n; report.Fits() {
			break
		}
	}
	if err := r.timed(ctx, report, setting, d); err != nil {
		return nil, err
	}
	unit := r.unit()
	err = whole.Largest(r.Batch/unit, r.mostBatch()/unit, func(n int) (*plan.Report, error) {
		return r.tried(ctx, card, plan.Setting{Batch: n * unit, Parts: 1})
	})
	report.LargestBatch, report.LimitedBy = unit*whole.LargestBatch, whole.LimitedBy
	return report, err
}

// choices are the parts in which a run that is to choose them may take a batch, before it has anything on a device.
func (r *run) choices() []int {
	if r.Accumulate != AutoParts {
		return nil
	}
	return choosable(r.Batch, r.arch.Of().Norms)
}

// unit is what batches are multiples of.
func (r *run) unit() int { return max(1, int(r.Accumulate)) }

// mostBatch is the largest batch that makes sense: of all samples to learn from.
func (r *run) mostBatch() int { return max(r.Batch, r.job.train.Len()) }

// tried is what the run with a setting needs on a card.
func (r *run) tried(ctx context.Context, card string, s plan.Setting) (*plan.Report, error) {
	of := 0
	report, err := plan.DryRun(card, func(env *tensor.Env) (err error) {
		of, err = r.rehearse(ctx, env, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	report.PeaksOf, report.Unknown = of, nil // the losses and norms that the loop tells
	return report, nil
}

// timed adds to a report the time of the run with its setting, and tells d of the model.
func (r *run) timed(ctx context.Context, report *plan.Report, s plan.Setting, d *Dry) error {
	x, err := plan.DryRun(report.Card, func(env *tensor.Env) error {
		q, err := r.pace(ctx, env, s)
		if err == nil {
			d.Model, d.Parameters, d.Tried = q.arch.Title(), nn.Count(q.model), q.figures.tried
		}
		return err
	})
	if err == nil {
		report.Step, report.NotCounted, report.Loader = x.Step, x.NotCounted, d.Loader
	}
	return err
}

// measured is of how many batches loading is measured, after one that is not.
const measured = 3

// loading is the seconds in which this machine makes the data of a batch.
func (r *run) loading(ctx context.Context) (float64, error) {
	env, err := tensor.Rehearse("cpu")
	if err != nil {
		return 0, err
	}
	c := r.wrap
	c.Size, c.Steps, c.Workers, c.Context = r.Batch, 1+measured, -1, ctx
	var began time.Time
	n := 0
	for _, err := range r.job.train.Turns(env, c) {
		if err != nil {
			return 0, stopped(ctx, err)
		}
		if n == 0 {
			began = time.Now()
		}
		n++
	}
	if n < 2 {
		return 0, nil
	}
	return time.Since(began).Seconds() / float64(n-1), nil
}
