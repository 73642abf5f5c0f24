package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// train makes the steps that are left, and tells them all, whatever ends them.
func (r *run) train(ctx context.Context) error {
	ended := false
	defer func() {
		if !ended { // by a panic, which counts; what is wrong beside it does not
			r.env.Try(func(*tensor.Env) *tensor.Tensor {
				_ = r.drain()
				return nil
			})
		}
	}()
	err := r.steps(ctx)
	ended = true
	if failed := r.drain(); failed != nil {
		return failed // it came first
	}
	return err
}

func (r *run) steps(ctx context.Context) error {
	if r.done >= r.Steps || r.patience.over() {
		return nil
	}
	for i := range r.log { // of sessions before
		r.health.step(r.log[i].Step, r.log[i].Loss, math.NaN())
	}
	r.capture()
	if r.Anomaly {
		defer r.env.DetectAnomaly(r.tolerates)()
	}
	env := r.offloading(r.recomputing(r.AMP.policy(r.profile.watch(r.env))))
	defer r.annotate(r.env)()
	attached, _ := r.watch.(Attached)
	if attached != nil {
		attached.Attach(env)
	}
	c := r.wrap
	c.Size, c.Steps, c.Epoch, c.Skip = r.Batch, r.Steps-r.done, r.at.Epoch, r.at.Batch
	for b, err := range r.job.train.Turns(env, c) {
		if err != nil {
			return &Error{Text: err.Error(), Hint: "check the data", Err: &dataError{err}}
		}
		r.step(b)
		r.profile.step(r)
		if attached != nil {
			attached.Turn()
		}
		if err := r.catchUp(ahead); err != nil {
			return err
		}
		r.present()
		if err := r.between(ctx); err != nil {
			return err
		}
		if r.patience.over() {
			r.patience.ended(r.watch, r.done, r.Steps)
			return nil
		}
		if ctx.Err() != nil && r.queued < r.Steps {
			return ErrInterrupted
		}
	}
	return nil
}

// underway is a step that the device has, and whose figures were asked for.
type underway struct {
	Step
	loss, norm *tensor.Pending // norm: nil where nothing had a gradient
	never      []string        // parameters that never had one
	look       *prof.Look      // nil: it was not looked at
}

func (u *underway) ready() bool {
	return u.loss.Ready() && (u.norm == nil || u.norm.Ready()) && (u.look == nil || u.look.Ready())
}

// updatesInParts tells an update that takes memory between one parameter's and the next, so that where it ends for want of that
// some weights are a step ahead of others.
func (r *run) updatesInParts() bool {
	return r.Offload.optimizer() || r.Params.rounding() != optim.Nearest
}

// step learns from one batch. It waits for nothing.
func (r *run) step(b dataset.Turn) {
	r.opt.SetLR(r.schedule(r.queued))
	r.streams.begin(b.First)
	var u underway
	if at := (batch{b.Env, b.X, b.Y}); r.captured != nil {
		r.torn = true
		u.loss = r.captured.Run(at).Later()
	} else {
		r.torn = r.InBackward
		r.look()
		r.learn(at, func(loss *tensor.Tensor) { u.loss = loss.Later() })
		u.look = r.looked()
		r.torn = r.torn || r.updatesInParts()
		r.report = r.update()
		r.torn = true
	}
	u.Parts, r.parted = r.parted, 0
	u.norm, u.never = r.report.NormLater(), r.report.Never
	r.average.update(r.queued)
	r.queued, r.at, r.torn = r.queued+1, b.State, false
	u.Step.Step, u.Peak = r.queued, r.env.Device().Memory().Peak
	r.underway = append(r.underway, u)
}

// batch is what a step learns from. What else a loader says of it differs from step to step.
type batch struct {
	Env  *tensor.Env
	X, Y *tensor.Tensor
}

// capture makes the steps captured ones, if that is asked for.
func (r *run) capture() {
	if !r.Capture {
		return
	}
	r.captured = tensor.Capture(r.env, func(b batch) (loss *tensor.Tensor) {
		r.learn(b, func(l *tensor.Tensor) { loss = l })
		r.report = r.update()
		return loss
	})
}

// learn adds the gradients of a batch. told is called with its mean loss.
func (r *run) learn(b batch, told func(loss *tensor.Tensor)) {
	r.streams.rewind()
	switch {
	case r.Accumulate == AutoParts:
		told(r.learnInParts(b))
		return
	case r.Accumulate < 2:
		loss := r.forward(b.X, b.Y)
		told(loss)
		r.backward(loss)
		return
	}
	var total *tensor.Tensor
	whole := &data.Pair{Turn: data.Turn{Env: b.Env}, X: b.X, Y: b.Y}
	for part := range data.Split(whole, int(r.Accumulate)) {
		r.learnPart(part, b.Env, &total)
	}
	told(total)
}

// learnPart adds the gradients of a part of a batch, and its loss to the total, which begins in env.
func (r *run) learnPart(part *data.Pair, env *tensor.Env, total **tensor.Tensor) {
	loss := r.forward(part.X, part.Y).Scale(part.Fraction())
	if *total == nil {
		*total = env.FullOf(loss.DType(), 0)
	}
	(*total).AddInPlace(loss.Detach())
	r.backward(loss)
}

// forward is the loss of a batch or a part of one, and measures what that keeps for Backward.
func (r *run) forward(x, labels *tensor.Tensor) *tensor.Tensor {
	before := r.used()
	loss := r.loss(x, labels)
	r.memory.Activations = max(r.memory.Activations, r.used()-before)
	return loss
}

// backward adds the gradients of a loss, multiplied by the run's scale if it has one.
func (r *run) backward(loss *tensor.Tensor) {
	if r.scaler == nil {
		loss.Backward()
		return
	}
	r.scaler.Backward(loss)
}

// update applies the gradients.
func (r *run) update() optim.Report {
	if r.scaler == nil {
		return r.opt.Step()
	}
	return r.scaler.Step(r.opt)
}

// ahead is how many steps the device may have in hand when the host waits: enough to keep it busy, and few enough to
// stop soon after a mistake or an interruption.
const ahead = 2

// catchUp tells the steps whose figures are here, and waits for those of all but the last n.
func (r *run) catchUp(n int) error { return r.underway.catchUp(n, r.conclude) }

// queue is steps that are under way, in order.
type queue []underway

// catchUp concludes the steps whose figures are here, and waits for those of all but the last n.
func (q *queue) catchUp(n int, conclude func(*underway) error) error {
	for len(*q) > 0 && (len(*q) > n || (*q)[0].ready()) {
		u := (*q)[0]
		*q = (*q)[1:]
		if err := conclude(&u); err != nil {
			*q = nil // what follows a mistake is none the better
			return err
		}
	}
	return nil
}

// drain waits until no step is under way. What was learnt is known to be good then.
func (r *run) drain() error { return r.catchUp(0) }

// conclude judges a step and tells it.
func (r *run) conclude(u *underway) error {
	defer machine.AllowWaits(r.env.Device())()
	norm := 0.0
	u.Loss = u.loss.Value()
	if u.norm != nil {
		norm = u.norm.Value()
	}
	if !r.leftOut(u, norm) {
		if err := r.finite(&u.Step, norm); err != nil {
			return err
		}
	}
	r.done = u.Step.Step
	if u.Parts > 0 {
		r.watch.Note(fmt.Sprintf("memory ran out in step %d: batches are taken in %d parts from there on", u.Step.Step, u.Parts))
	}
	now := time.Now()
	if !r.dry() { // the time of planning a step says nothing about the step
		u.MS = float64(now.Sub(r.last)) / float64(time.Millisecond)
	}
	r.last = now
	r.stepping += u.MS
	if finite(u.Loss) != nil {
		r.log = append(r.log, u.Step)
		r.health.step(u.Step.Step, u.Loss, norm)
		r.watch.Step(u.Step)
	}
	for _, name := range u.never {
		if !r.told[name] {
			r.told[name] = true
			r.watch.Note(name + " has no gradient: it is not part of the loss")
		}
	}
	var told any = u.Step
	if finite(u.Loss) == nil {
		told = lost{u.Step.Step, true}
	}
	if err := r.folder.line(told); err != nil {
		return err
	}
	return r.tellLook(u)
}

func (r *run) used() int64 { return r.env.Device().Memory().Used }

// finite stops a run whose numbers have left the range of floats. The weights are then no good; the last checkpoint's are.
func (r *run) finite(s *Step, norm float64) error {
	var text string
	switch {
	case finite(s.Loss) == nil:
		text = fmt.Sprintf("the loss is %v at step %d", s.Loss, s.Step)
	case finite(norm) == nil:
		text = fmt.Sprintf("the norm of the gradients is %v at step %d, where the loss is %v", norm, s.Step, s.Loss)
	default:
		return nil
	}
	hint := fmt.Sprintf("give a smaller --lr than %v, --clip 1 or a --warmup", r.LR)
	if !r.Anomaly && !r.Capture {
		hint += "; with --anomaly the run names the operation that began it"
	}
	if r.folder.saved() {
		hint += fmt.Sprintf("; %s keeps its last checkpoint", r.Out)
	}
	return fail(hint, "%s", text)
}

// between does what is due between steps.
func (r *run) between(ctx context.Context) error {
	due := func(every int) bool { return every > 0 && r.queued%every == 0 && r.queued < r.Steps } // the end has its own
	last := r.patience != nil && r.queued == r.Steps && r.queued%r.EvalEvery == 0
	if !due(r.EvalEvery) && !due(r.SaveEvery) && !last {
		return nil
	}
	if err := r.drain(); err != nil {
		return err
	}
	defer machine.AllowWaits(r.env.Device())()
	if due(r.EvalEvery) || last {
		if _, err := r.score(ctx, 0); err != nil {
			return err
		}
	}
	if due(r.SaveEvery) {
		return r.save()
	}
	return nil
}

// score measures what the run has learnt, if something is held out, and shows some predictions.
func (r *run) score(ctx context.Context, show int) (*scored, error) {
	if r.test == nil {
		return nil, nil
	}
	model := r.average.or(r.model)
	if r.finishing {
		model = r.outcome()
	}
	e := evaluation{env: r.Params.policy(r.env), arch: &r.arch, model: model, set: r.test, batch: evalBatch(&r.arch, r.Context), show: show, progress: r.watch.Scoring}
	if r.dry() { // its first batch is the largest, and counts for the peak
		e.batches, e.progress = 1, func(int, int) {}
		_, err := e.run(ctx)
		return nil, err
	}
	s, err := e.run(ctx)
	if err != nil {
		return nil, err
	}
	r.last = time.Now()
	if finite(s.loss) == nil {
		r.watch.Note(fmt.Sprintf("after step %d the loss on what is held out is %v", r.done, s.loss))
		return s, nil
	}
	found := Score{true, r.done, s.loss, s.accuracy, s.metrics}
	r.scores = append(r.scores, found)
	r.watch.Score(found)
	if r.finishing {
		return s, nil // the last line has it
	}
	r.patience.told(&found, model)
	return s, r.folder.line(found)
}

// rowsAtOnce is how many of the long rows of models that read piece by piece are scored at once: fewer are slow.
const rowsAtOnce = 16

// evalBatch is how many samples are scored at once; of a text they have so many tokens.
func evalBatch(a *zoo.Arch, context int) int {
	if a.Writes() {
		return max(1, max(2048, rowsAtOnce*a.Of().Row)/a.Scored(context))
	}
	most := 256
	if a.Of().Areas { // what is computed of each pixel takes more than the picture
		most = 32
	}
	return dataset.SamplesAtOnce(a.Input(), most)
}

// save writes a checkpoint and drops all but the newest.
func (r *run) save() error {
	if r.folder == nil {
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
	return explain(ckpt.Prune(r.Out, r.keep().checkpoints()), "remove what is left of it yourself")
}

// leave writes a checkpoint, and the model that eval, sample and PyTorch read.
func (r *run) leave() error {
	if r.folder == nil {
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	return explain(ckpt.SaveModel(filepath.Join(r.Out, ckpt.ModelFile), r.outcome()), r.folder.room())
}

// rescue keeps the steps before an error of the data, as an interruption does. Of an error of numbers they are no good.
func (r *run) rescue(err error) error {
	var bad *dataError
	var known *Error
	if !errors.As(err, &bad) || !errors.As(err, &known) || r.done == r.first {
		return err
	}
	defer machine.AllowWaits(r.env.Device())()
	if r.folder == nil || r.leave() != nil {
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
	return &ckpt.State{Model: &weights{r.model, r.average.or(nil), r.streams}, Optimizer: r.opt, Scaler: r.scaler}
}

// weights are what a checkpoint keeps of models.
type weights struct {
	Model   nn.Module `nn:"model"`
	Average nn.Module `nn:"average"`
	Streams *streams  `nn:"streams"`
}
