package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
)

// train makes the steps that are left.
func (r *run) train(ctx context.Context) error {
	if r.done >= r.Steps {
		return nil
	}
	env := r.env
	if r.AMP {
		env = env.Autocast(dtype.BF16)
	}
	c := r.wrap
	c.Size, c.Steps, c.Epoch, c.Skip = r.Batch, r.Steps-r.done, r.at.Epoch, r.at.Batch
	for b, err := range r.job.train.turns(env, c) {
		if err != nil {
			return &Error{err.Error(), "check the data", &dataError{err}}
		}
		if err := r.step(b); err != nil {
			return err
		}
		if err := r.between(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil && r.done < r.Steps {
			return ErrInterrupted
		}
	}
	return nil
}

// step learns from one batch.
func (r *run) step(b turn) error {
	before := r.used()
	r.opt.SetLR(r.schedule(r.done))
	loss := nn.CrossEntropy(r.forward.Forward(b.x), b.y)
	r.memory.Activations = max(r.memory.Activations, r.used()-before)
	pending := loss.Later()
	loss.Backward()
	report := r.opt.Step()
	value := pending.Value()
	if err := r.finite(value, report); err != nil {
		return err
	}
	r.average.update(r.done)
	r.done, r.at = r.done+1, b.state
	now := time.Now()
	s := Step{Step: r.done, Loss: value, MS: float64(now.Sub(r.last)) / float64(time.Millisecond), Used: r.used()}
	r.last = now
	r.stepping += s.MS
	r.log = append(r.log, s)
	r.watch.Step(s)
	for _, name := range report.Never {
		if r.done == 3 {
			r.watch.Note(name + " has no gradient: it is not part of the loss")
		}
	}
	return r.folder.line(s)
}

func (r *run) used() int64 { return r.env.Device().Memory().Used }

// finite stops a run whose numbers have left the range of floats. The weights are then no good; the last checkpoint's are.
func (r *run) finite(loss float64, report optim.Report) error {
	bad := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	hint := fmt.Sprintf("give a smaller --lr than %v, --clip 1 or a --warmup", r.LR)
	if r.folder.saved() {
		hint += fmt.Sprintf("; %s keeps its last checkpoint", r.Out)
	}
	if bad(loss) {
		return fail(hint, "the loss is %v at step %d", loss, r.done+1)
	}
	if norm := report.Norm(); bad(norm) {
		return fail(hint, "the norm of the gradients is %v at step %d, where the loss is %v", norm, r.done+1, loss)
	}
	return nil
}

// between does what is due between steps.
func (r *run) between(ctx context.Context) error {
	if r.done == r.Steps {
		return nil // the end has its own
	}
	if r.EvalEvery > 0 && r.done%r.EvalEvery == 0 {
		if _, err := r.score(ctx, 0); err != nil {
			return err
		}
	}
	if r.SaveEvery > 0 && r.done%r.SaveEvery == 0 {
		return r.save()
	}
	return nil
}

// score measures what the run has learnt, if something is held out, and shows some predictions.
func (r *run) score(ctx context.Context, show int) (*scored, error) {
	if r.test == nil || !r.env.Device().Computes() {
		return nil, nil
	}
	s, err := evaluate(ctx, r.env, r.average.or(r.model), r.test, r.evalBatch(), show, r.watch.Scoring)
	if err != nil {
		return nil, err
	}
	r.last = time.Now()
	if finite(s.loss) == nil {
		r.watch.Note(fmt.Sprintf("after step %d the loss on what is held out is %v", r.done, s.loss))
		return s, nil
	}
	e := Score{true, r.done, s.loss, s.accuracy}
	r.scores = append(r.scores, e)
	r.watch.Score(e)
	if r.done == r.Steps {
		return s, nil // the last line has it
	}
	return s, r.folder.line(e)
}

// evalBatch is how many samples are scored at once.
func (j *job) evalBatch() int {
	if j.arch.GPTConfig != nil {
		return max(1, 2048/j.arch.Context)
	}
	c := j.arch.ImageConfig
	return samplesAtOnce([]int{c.Channels, c.Height, c.Width}, 256)
}

// save writes a checkpoint and drops all but the two newest.
func (r *run) save() error {
	if r.folder == nil || !r.env.Device().Computes() {
		return nil
	}
	if err := r.folder.flush(); err != nil {
		return err
	}
	s := r.state()
	s.Step, s.Loader, s.Draws = r.done, r.at, r.env.Draws()
	if _, err := ckpt.Save(r.Out, s); err != nil {
		return explain(err, r.folder.room())
	}
	return r.folder.prune()
}

// leave writes a checkpoint, and the model that eval, sample and PyTorch read.
func (r *run) leave() error {
	if r.folder == nil || !r.env.Device().Computes() {
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	return explain(ckpt.SaveModel(filepath.Join(r.Out, modelFile), r.average.or(r.model)), r.folder.room())
}

// rescue keeps the steps before an error of the data, as an interruption does. Of an error of numbers they are no good.
func (r *run) rescue(err error) error {
	var bad *dataError
	var known *Error
	if !errors.As(err, &bad) || !errors.As(err, &known) || r.done == r.first {
		return err
	}
	if r.folder == nil || !r.env.Device().Computes() || r.leave() != nil {
		return err
	}
	known.Hint += fmt.Sprintf("; %s keeps the %d steps before, and --resume goes on from them", r.Out, r.done)
	return known
}

// dataError marks what a loader gave in place of a batch.
type dataError struct{ error }

func (e *dataError) Unwrap() error { return e.error }

// state is what a checkpoint holds.
func (r *run) state() *ckpt.State {
	return &ckpt.State{Model: &weights{r.model, r.average.or(nil)}, Optimizer: r.opt}
}

// weights are what a checkpoint keeps of models.
type weights struct {
	Model   nn.Module `nn:"model"`
	Average nn.Module `nn:"average"`
}
