package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Keep says which weights and checkpoints a [Loop] leaves. A positive number: the last weights, and so many checkpoints, the newest.
type Keep int

// Values of Keep.
const (
	KeepBest Keep = 0  // the weights of the lowest loss on what is held out, and the two newest checkpoints
	KeepLast Keep = -1 // the last weights, and one checkpoint
)

// Loop is the training of a model of one's own by [Fit]: how long, how it is scored, when it ends early and what it leaves.
type Loop struct {
	Env       *tensor.Env     // where batches are; of the mode and precision that the steps have
	Model     any             // what [nn.State] walks
	Optimizer optim.Optimizer // of its parameters
	Schedule  optim.Schedule  // of the learning rate; nil: the optimizer's
	Momentum  optim.Schedule  // as [optim.OneCycle] gives; the Optimizer has a SetMomentum. nil: the optimizer's
	Plateau   *optim.Plateau  // of the rate, by the loss on what is held out, in place of a Schedule
	Scaler    *optim.LossScaler
	After     func() // what follows each step of the optimizer, such as the Update of an [nn.Average]; nil: nothing

	Data   data.Config // Size, and the order of samples
	Parts  int         // equal ones that a batch is taken in, whose gradients add up; 0: it is taken whole
	Epochs int         // passes over what is learnt
	Steps  int         // in all; 0: those of Epochs

	EvalEvery int  // steps between scores; 0: those of an epoch
	Patience  int  // scores without a lower loss after which the training ends; 0: it does not end early
	Keep      Keep // what is left in Out; with KeepBest the model, too, has the best weights in the end

	Out    string // the run folder; empty: nothing is written
	Resume bool   // go on with the run in Out, bit for bit as if it had not stopped; begin it where there is none

	Watch Watcher // told of progress: [Lines], or one's own; nil: nobody
}

// Fit trains a model of one's own on the batches of learn, and scores it on held, which may be nil. step is the mean loss of a batch,
// and tells m what else is to be measured; in training m is nil, which counts nothing.
//
//	result, err := train.Fit(ctx, loop, learn, held, func(b *data.Pair, m *metric.Meters) *tensor.Tensor {
//		y := model.Forward(b.X)
//		m.Classes(y, b.Y)
//		return nn.CrossEntropy(y, b.Y)
//	})
//
// A step may go another way where it learns, with mixed pictures, and where it is scored, with a mean of the weights: m tells which.
// Each score leaves a checkpoint in the run folder, beside log.jsonl, loss.svg, scalars for TensorBoard and model.safetensors.
// When ctx is cancelled, or Ctrl-C is pressed, it stops after the steps that are under way, leaves a checkpoint and returns
// [ErrInterrupted] beside the result so far; a second Ctrl-C ends the process. The result is of the weights that are kept.
// Mistakes of step panic, as they do outside of it.
func Fit[B any, P interface {
	*B
	data.Batch
	Size() int
	Fraction() float64
	Position() data.Position
}](ctx context.Context, l Loop, learn, held data.Source[B], step func(b P, m *metric.Meters) *tensor.Tensor) (result *Result, err error) {
	turns := func(env *tensor.Env, set data.Source[B], c data.Config) iter.Seq2[turn, error] {
		return func(yield func(turn, error) bool) {
			for b, err := range data.Batches[B, P](env, set, c) {
				var t turn
				if err == nil {
					t = turn{P(b).Size(), P(b).Position(), func(m *metric.Meters) *tensor.Tensor { return step(b, m) }, func(learn func(loss *tensor.Tensor)) {
						for part := range data.Split(P(b), l.Parts) {
							learn(step(part, nil).Scale(P(part).Fraction()))
						}
					}}
				}
				if !yield(t, err) {
					return
				}
			}
		}
	}
	f := &fitting{Loop: l, began: time.Now(), learn: func(c data.Config) iter.Seq2[turn, error] { return turns(l.Env, learn, c) }}
	if held != nil {
		f.held = held.Len()
		f.scored = func(c data.Config) iter.Seq2[turn, error] { return turns(l.Env.NoGrad().Eval(), held, c) }
	}
	if err := f.prepare(learn.Len()); err != nil {
		return nil, err
	}
	return f.whole(ctx)
}

// turn is a batch of any type.
type turn struct {
	size int
	at   data.Position
	loss func(m *metric.Meters) *tensor.Tensor

	parts func(learn func(loss *tensor.Tensor)) // gives the shares of the loss, part by part
}

// fitting is a [Fit] that is under way.
type fitting struct {
	Loop
	learn    func(c data.Config) iter.Seq2[turn, error]
	scored   func(c data.Config) iter.Seq2[turn, error] // nil: nothing is held out
	held     int
	folder   *folder
	lock     *os.File
	patience *patience
	underway queue
	total    *tensor.Tensor // of the parts of a batch; nil: there are none
	queued   int            // steps that the device has
	done     int            // whose figures are here
	first    int            // done before this session
	at       data.Position
	log      []Step
	scores   []Score
	began    time.Time
	last     time.Time
}

// prepare checks the settings and opens the folder. samples are those to learn from.
func (f *fitting) prepare(samples int) (err error) {
	if f.Watch == nil {
		f.Watch = silent{}
	}
	switch {
	case f.Env == nil || f.Model == nil || f.Optimizer == nil:
		return fail("set Env, Model and Optimizer", "a Loop without one of them")
	case f.Data.Size < 1 || f.Epochs < 0 || f.Steps < 0 || f.Parts < 0 || f.EvalEvery < 0 || f.Patience < 0 || f.Keep < KeepLast:
		return fail("set Data.Size to at least 1, and nothing else below 0", "a Loop of batches of %d in %d parts, %d epochs, %d steps, EvalEvery %d, Patience %d, Keep %d", f.Data.Size, f.Parts, f.Epochs, f.Steps, f.EvalEvery, f.Patience, f.Keep)
	case f.Steps == 0 && f.Epochs == 0:
		return fail("set Epochs or Steps", "a Loop that has no end")
	case f.Patience > 0 && f.scored == nil:
		return fail("give a set to score, or leave Patience out", "a Loop with Patience %d, and nothing held out", f.Patience)
	case f.Plateau != nil && (f.scored == nil || f.Schedule != nil):
		return fail("give a set to score and no Schedule, or leave Plateau out", "a Loop with a Plateau, and nothing held out or a Schedule besides")
	case f.Momentum != nil && !canSetMomentum(f.Optimizer):
		return fail("leave Momentum out, or take SGD, Adam or AdamW", "a Loop with a Momentum, which no %T changes", f.Optimizer)
	case f.Resume && f.Out == "":
		return fail("set Out to the run's folder", "a Loop that resumes, without Out")
	}
	per, err := f.perEpoch(samples)
	if err != nil {
		return err
	}
	if f.Steps == 0 {
		f.Steps = f.Epochs * per
	}
	if f.EvalEvery == 0 {
		f.EvalEvery = per
	}
	if f.Parts > 1 {
		f.total = tensor.NewCell(f.Env, 0)
	}
	if f.Plateau != nil {
		f.Optimizer.SetLR(f.Plateau.LR())
	}
	if f.Patience > 0 || f.Keep == KeepBest && f.scored != nil {
		f.patience = newPatience(f.Patience, f.keptModel())
	}
	return f.open()
}

// perEpoch is the batches of a pass.
func (f *fitting) perEpoch(samples int) (int, error) {
	c := f.Data
	n := (samples + c.Size - 1) / c.Size
	switch {
	case c.Sampler != nil:
		var err error
		if n, err = c.Sampler.Batches(samples, c); err != nil {
			return 0, explain(err, "change the sampler, or Data.Size")
		}
	case c.DropLast && !c.Wrap && !c.Draw:
		n = samples / c.Size
	}
	if n == 0 {
		return 0, fail("give more samples, or a smaller Data.Size", "%d samples make no batch of %d", samples, c.Size)
	}
	return n, nil
}

// keptModel is the model whose best weights are kept, or nil.
func (f *fitting) keptModel() any {
	if f.Keep == KeepBest {
		return f.Model
	}
	return nil
}

// open makes the run folder, or goes on with it.
func (f *fitting) open() (err error) {
	if f.Out == "" {
		return nil
	}
	if f.Resume {
		list, err := ckpt.List(f.Out)
		if err != nil {
			return explain(err, "give a folder that can be read")
		}
		if len(list) > 0 {
			return f.reopen()
		}
	}
	if err := os.MkdirAll(f.Out, 0o777); err != nil {
		return explain(err, "give another Out")
	}
	if f.lock, err = lock(f.Out); err != nil {
		return explain(err, "give another Out")
	}
	flag := os.O_CREATE | os.O_EXCL
	if f.Resume { // of one that was ended before its first checkpoint
		flag = os.O_CREATE | os.O_TRUNC
	}
	if f.folder, err = openLog(f.Out, flag, "set Resume, or give another Out"); err != nil {
		f.lock.Close()
	}
	return err
}

func (f *fitting) reopen() (err error) {
	if f.lock, err = lock(f.Out); err != nil {
		return explain(err, "give another Out")
	}
	defer func() {
		if err != nil {
			f.lock.Close()
		}
	}()
	s := f.state()
	path, damaged, err := ckpt.Latest(f.Out, s)
	if err != nil {
		return explain(err, "give the folder of a run of this model, or another Out")
	}
	for _, w := range damaged {
		f.Watch.Note(fmt.Sprintf("%v; going on from %s", w, path))
	}
	f.queued, f.done, f.first, f.at = s.Step, s.Step, s.Step, s.Loader
	f.Env.SetDraws(s.Draws)
	if err := f.replateau(s.Extra); err != nil {
		return err
	}
	if f.folder, f.log, f.scores, err = continueLog(f.Out, f.done); err != nil {
		return err
	}
	return f.patience.recall(f.Out, f.scores, ckpt.LoadModel)
}

// replateau goes on with the rate of a checkpoint, if that is found by scores.
func (f *fitting) replateau(raw json.RawMessage) error {
	if f.Plateau == nil || raw == nil {
		return nil
	}
	var state optim.PlateauState
	if err := json.Unmarshal(raw, &state); err != nil {
		return explain(err, "start the run anew, with another Out")
	}
	if err := f.Plateau.Load(state); err != nil {
		return explain(err, "start the run anew, with another Out")
	}
	f.Optimizer.SetLR(f.Plateau.LR())
	return nil
}

// whole trains and finishes.
func (f *fitting) whole(ctx context.Context) (*Result, error) {
	defer f.lock.Close()
	defer f.folder.close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the second one ends the process
	f.Watch.Start(Start{
		Task: "training", Model: fmt.Sprintf("%T", f.Model), Device: f.Env.Device().Info(), Out: f.Out, Parameters: nn.Count(f.Model), Units: "samples",
		Test: f.held, Scored: f.held, Done: f.done, Steps: f.Steps, Batch: f.Data.Size, Computed: f.Env.Device().Computes(),
	})
	f.last = time.Now()
	err := f.steps(ctx)
	if failed := f.catchUp(0); failed != nil {
		return nil, failed
	}
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, err
	}
	return f.finish(err)
}

func (f *fitting) steps(ctx context.Context) error {
	if n := len(f.scores); f.scored != nil && f.done > 0 && f.due(f.done) && (n == 0 || f.scores[n-1].Step < f.done) { // it was interrupted
		if err := f.score(ctx); err != nil {
			return err
		}
	}
	if f.done >= f.Steps || f.patience.over() {
		return nil
	}
	c := f.Data
	c.Steps, c.Done, c.Epoch, c.Skip = f.Steps, f.done, f.at.Epoch, f.at.Batch
	for b, err := range f.learn(c) {
		if err != nil {
			return explain(err, "check the data")
		}
		f.step(&b)
		if err := f.catchUp(ahead); err != nil {
			return err
		}
		if f.due(f.queued) {
			if err := f.score(ctx); err != nil {
				return err
			}
		}
		if f.patience.over() {
			f.patience.ended(f.Watch, f.done, f.Steps)
			return nil
		}
		if ctx.Err() != nil && f.queued < f.Steps {
			return ErrInterrupted
		}
	}
	return nil
}

// due tells a step behind which there is a score.
func (f *fitting) due(step int) bool { return step%f.EvalEvery == 0 || step == f.Steps }

// step learns from one batch. It waits for nothing.
func (f *fitting) step(b *turn) {
	if f.Schedule != nil {
		f.Optimizer.SetLR(f.Schedule(f.queued))
	}
	if f.Momentum != nil {
		f.Optimizer.(withMomentum).SetMomentum(f.Momentum(f.queued))
	}
	u := underway{loss: f.backward(b)}
	if f.Scaler != nil {
		f.Scaler.Step(f.Optimizer)
	} else {
		u.norm = f.Optimizer.Step().NormLater() // with a scaler, infinite ones are its business
	}
	if f.After != nil {
		f.After()
	}
	f.queued, f.at = f.queued+1, b.at
	u.Step.Step, u.Peak = f.queued, f.Env.Device().Memory().Peak
	f.underway = append(f.underway, u)
}

// withMomentum is an optimizer whose momentum changes.
type withMomentum interface{ SetMomentum(m float64) }

func canSetMomentum(o optim.Optimizer) bool {
	_, ok := o.(withMomentum)
	return ok
}

// backward adds the gradients of a batch, and gives its loss.
func (f *fitting) backward(b *turn) *tensor.Pending {
	back := func(loss *tensor.Tensor) {
		if f.Scaler != nil {
			f.Scaler.Backward(loss)
		} else {
			loss.Backward()
		}
	}
	if f.total == nil {
		loss := b.loss(nil)
		later := loss.Later()
		back(loss)
		return later
	}
	f.total.FillInPlace(0)
	b.parts(func(loss *tensor.Tensor) {
		f.total.AddInPlace(loss.Detach().Cast(dtype.F64))
		back(loss)
	})
	return f.total.Later()
}

func (f *fitting) catchUp(n int) error { return f.underway.catchUp(n, f.conclude) }

// conclude judges a step and tells it.
func (f *fitting) conclude(u *underway) error {
	defer machine.AllowWaits(f.Env.Device())()
	u.Loss = u.loss.Value()
	norm := 0.0
	if u.norm != nil {
		norm = u.norm.Value()
	}
	if finite(u.Loss) == nil || finite(norm) == nil {
		return fail("give a smaller learning rate, a clip of the gradients' norm or a warm-up; env.DetectAnomaly names the operation that began it",
			"the loss is %v at step %d, the norm of the gradients %v", u.Loss, u.Step.Step, norm)
	}
	now := time.Now()
	u.MS, f.last, f.done = float64(now.Sub(f.last))/float64(time.Millisecond), now, u.Step.Step
	f.log = append(f.log, u.Step)
	f.Watch.Step(u.Step)
	return f.folder.line(u.Step)
}

// score measures the model on what is held out, and leaves a checkpoint.
func (f *fitting) score(ctx context.Context) error {
	if err := f.catchUp(0); err != nil {
		return err
	}
	defer machine.AllowWaits(f.Env.Device())()
	if f.scored == nil {
		return f.save()
	}
	var loss metric.Mean
	var m metric.Meters
	for b, err := range f.scored(data.Config{Size: f.Data.Size, Name: "evaluate", Context: ctx}) {
		if err != nil {
			return stopped(ctx, err)
		}
		loss.Add(b.loss(&m), b.size)
		f.Watch.Scoring(loss.Count(), f.held)
	}
	f.last = time.Now()
	s := Score{Scored: true, Step: f.done, ValLoss: loss.Value(), Metrics: m.Values()}
	if finite(s.ValLoss) == nil {
		f.Watch.Note(fmt.Sprintf("after step %d the loss on what is held out is %v", f.done, s.ValLoss))
		return f.save()
	}
	if v, ok := s.Metrics["accuracy"]; ok {
		s.Accuracy = &v
	}
	f.scores = append(f.scores, s)
	f.Watch.Score(s)
	f.patience.told(&s, f.Model)
	if f.Plateau != nil {
		f.Optimizer.SetLR(f.Plateau.Step(s.ValLoss))
	}
	if err := f.folder.line(s); err != nil {
		return err
	}
	return f.save()
}

func (f *fitting) state() *ckpt.State {
	s := &ckpt.State{Model: f.Model, Optimizer: f.Optimizer, Scaler: f.Scaler, Step: f.done, Loader: f.at, Draws: f.Env.Draws()}
	if f.Plateau != nil {
		s.Extra, _ = json.Marshal(f.Plateau.State()) // numbers that are finite, which have a form
	}
	return s
}

// save writes a checkpoint, and the weights that are kept.
func (f *fitting) save() error {
	if f.folder == nil {
		return nil
	}
	if err := f.folder.flush(); err != nil {
		return err
	}
	if _, err := ckpt.Save(f.Out, f.state()); err != nil {
		return explain(err, f.folder.room())
	}
	model := f.Model
	if f.patience.kept() {
		model = f.patience.best
	}
	err := ckpt.SaveModel(filepath.Join(f.Out, ckpt.ModelFile), model)
	return explain(errors.Join(err, ckpt.Prune(f.Out, f.Keep.checkpoints())), f.folder.room())
}

// finish saves what the training has come to. why is ErrInterrupted or nil, and comes back.
func (f *fitting) finish(why error) (*Result, error) {
	defer machine.AllowWaits(f.Env.Device())()
	if why != nil && f.done > f.first {
		if err := f.save(); err != nil {
			return nil, err
		}
	}
	out := &Result{
		Final: true, Steps: f.done, Task: "training", Model: fmt.Sprintf("%T", f.Model), Out: f.Out, Computed: f.Env.Device().Computes(), Parameters: nn.Count(f.Model),
		PeakBytes: f.Env.Device().Memory().Peak, Memory: modelMemory(f.Env, f.Model), Log: f.log, Scores: f.scores, Units: "samples", Held: f.held,
		Session: f.done - f.first, Seconds: time.Since(f.began).Seconds(),
	}
	if len(f.log) > 0 {
		out.Loss = f.log[len(f.log)-1].Loss
	}
	if s := f.told(); s != nil {
		out.ValLoss, out.Accuracy, out.Metrics = &s.ValLoss, s.Accuracy, s.Metrics
	}
	if f.patience.kept() && why == nil {
		f.patience.copy(f.patience.best, f.Model)
	}
	if err := f.folder.finish(out); err != nil {
		return nil, err
	}
	return out, why
}

// told is the score of the weights that are kept, or nil.
func (f *fitting) told() *Score {
	for i := len(f.scores) - 1; i >= 0; i-- {
		if s := &f.scores[i]; !f.patience.kept() || s.Step == f.patience.step {
			return s
		}
	}
	return nil
}
