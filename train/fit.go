package train

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
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

// Loop is a training: how long, how it is scored, when it ends early and what it leaves. [Fit] makes it of a model of one's own, and
// [Run] of a task of the command, whose flags are its fields.
type Loop struct {
	Env       *tensor.Env     // where batches are; of the mode and precision that the steps have: Autocast, Recompute, Offload
	Model     any             // what [nn.State] walks
	Optimizer optim.Optimizer // of its parameters
	Schedule  optim.Schedule  // of the learning rate; nil: the optimizer's
	Momentum  optim.Schedule  // as [optim.OneCycle] gives; the Optimizer has a SetMomentum. nil: the optimizer's
	Plateau   *optim.Plateau  // of the rate, by the loss on what is held out, in place of a Schedule
	Scaler    *optim.LossScaler
	After     func()  // what follows each step of the optimizer, such as the Update of an [nn.Average]; nil: nothing
	Average   float64 // what is scored and left is a running mean of the weights that keeps this share at each step, at first less; 0: the weights, or the mean that the Optimizer has

	Data       data.Config // Size, Workers and Prefetch of what is learnt and scored, and the order in which samples are learnt
	Parts      Parts       // that a batch is taken in, one after another, whose gradients add up; 0: it is taken whole
	InBackward bool        // gradients go into the optimizer as they come: [optim.StepInBackward]
	Capture    bool        // record a step once, and do it again as one launch: the step then keeps to what [tensor.Capture] says
	Epochs     int         // passes over what is learnt
	Steps      int         // in all; 0: those of Epochs

	EvalEvery int  // steps between scores; 0: those of an epoch
	Patience  int  // scores without a lower loss after which the training ends; 0: it does not end early
	Keep      Keep // what is left in Out; with KeepBest the model, too, has the best weights in the end
	SaveEvery int  // steps between checkpoints; 0: those between scores

	Out    string // the run folder; empty, or on a device without arithmetic: nothing is written
	Resume bool   // go on with the run in Out, bit for bit as if it had not stopped; begin it where there is none

	Statistics int  // steps between looks at what modules and their gradients come to; 0: none
	Anomaly    bool // look at every number, and name the operation that makes the first that is none

	// Profile is the folder for a profile of ProfileSteps steps (0: 5), after ProfileAfter steps of warm-up; [ProfileInRun]: one in
	// Out; empty: none. Of a run that goes on, its first steps are profiled, if so many are left and the folder has none yet.
	Profile      string
	ProfileAfter int
	ProfileSteps int

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
// A step may go another way where it learns, with mixed pictures, and where it is scored: m tells which. While it is scored, the model
// has the mean of its weights, of a Loop that has one.
//
// Each score leaves a checkpoint in the run folder, beside log.jsonl, loss.svg, scalars for TensorBoard and model.safetensors. A folder
// may have other files; one that has some of these names, and no run to go on with, is an error.
// When ctx is cancelled, or Ctrl-C is pressed, it stops after the steps that are under way, leaves a checkpoint and returns
// [ErrInterrupted] beside the result so far; a second Ctrl-C ends the process. The result is of the weights that are kept.
// Where memory runs out, the steps before are kept, and the error, of an [tensor.OOMError], says where the report is. What Anomaly finds
// is an error of a [tensor.Anomaly]. Other mistakes of step panic, as they do outside of it.
//
// On a device without arithmetic nothing is written, and of what is held out only batches are scored that may need memory as none before:
// so [plan.DryRun] and [plan.LargestBatch] tell of a function that makes a model and fits it for a few steps what it needs on a card.
func Fit[B any, P pointer[B]](ctx context.Context, l Loop, learn, held data.Source[B], step func(b P, m *metric.Meters) *tensor.Tensor) (result *Result, err error) {
	switch {
	case learn == nil:
		return nil, fail("give a set, such as one of data.InMemory", "nothing to learn from: the set is nil")
	case step == nil:
		return nil, fail("give a func that returns the mean loss of a batch", "nothing to do with batches: the step is nil")
	case held != nil && held.Len() == 0:
		return nil, fail("hold some samples out, or give nil in its place", "a set to score that has no samples")
	}
	sets := func(src data.Source[B]) batches {
		return of(func(env *tensor.Env, c data.Config) iter.Seq2[*B, error] { return data.Batches[B, P](env, src, c) }, step)
	}
	s := &session{Loop: l, batches: sets(learn), samples: learn.Len(), env: l.Env, began: time.Now(), told: map[string]bool{}}
	st := Start{Train: learn.Len()}
	s.task = task{
		name: "training", model: fmt.Sprintf("%T", l.Model), units: "samples", last: true, pieces: true,
		named: field, begin: s.momentum, instead: func() string { return "" }, rewind: func() {}, models: s.models, outcome: s.outcome, load: ckpt.LoadModel,
		hint: "give a smaller learning rate, a clip of the gradients' norm or a warm-up", wayOut: s.smaller,
	}
	if held != nil {
		st.Test, st.Scored = held.Len(), held.Len()
		s.task.score = func(ctx context.Context, model any) (*scored, error) {
			return s.fitted(ctx, model, sets(held), held.Len())
		}
	}
	defer func() { s.lock.Close() }()
	if err := s.prepared(ctx); err != nil {
		s.folder.close()
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the second one ends the process
	s.start(st)
	return s.whole(ctx, func(_ context.Context, why error) (*Result, error) { return s.finish(why, st.Scored) })
}

// field is a flag of the command as a Loop has it.
func field(flag string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(flag, "-") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// withMomentum is an optimizer whose momentum changes.
type withMomentum interface{ SetMomentum(m float64) }

// momentum sets that of the next step.
func (s *session) momentum(bool) {
	if s.Momentum != nil {
		s.Optimizer.(withMomentum).SetMomentum(s.Momentum(s.queued))
	}
}

// plateau has the rate follow the scores.
func (s *session) plateau() {
	s.Optimizer.SetLR(s.Plateau.LR())
	s.task.told = func(loss float64) { s.Optimizer.SetLR(s.Plateau.Step(loss)) }
	s.task.extra = func() json.RawMessage {
		raw, _ := json.Marshal(s.Plateau.State()) // numbers that are finite, which have a form
		return raw
	}
	s.task.recall = func(raw json.RawMessage) error {
		var state optim.PlateauState
		err := json.Unmarshal(raw, &state)
		if err == nil {
			err = s.Plateau.Load(state)
		}
		s.Optimizer.SetLR(s.Plateau.LR())
		return err
	}
}

// smaller is what to do about an out-of-memory.
func (s *session) smaller(_ *tensor.OOMError, kept bool) string {
	hint := "give a smaller Data.Size, Parts or AutoParts, or what the report says"
	if kept {
		hint += "; Resume goes on from the last checkpoint"
	}
	return hint
}

// models are what a checkpoint of a Loop has: of one without a mean the model by itself.
func (s *session) models() any {
	if s.average == nil {
		return s.Model
	}
	return &weights{Model: s.Model, Average: s.average.or(nil)}
}

// fitted scores a model: the one that is trained, or the mean of its weights.
func (s *session) fitted(ctx context.Context, model any, held batches, samples int) (*scored, error) {
	if s.average != nil { // the step knows the model that is trained
		s.torn = true // as long as they are, and where memory runs out on the way
		exchange(s.Model, model)
		defer func() {
			exchange(s.Model, model)
			s.torn = false
		}()
	}
	c := data.Config{Size: s.Data.Size, Workers: s.Data.Workers, Prefetch: s.Data.Prefetch, Name: "evaluate"}
	all := scoring{set: held, env: s.Env.NoGrad().Eval(), data: c, count: (samples + c.Size - 1) / c.Size, samples: samples, figures: &s.figures, progress: s.Watch.Scoring}
	return all.run(ctx)
}

// exchange gives each of two models the weights of the other.
func exchange(a, b any) {
	for p, q := range nn.Zip(a, b) {
		p.Env().Tidy(func(*tensor.Env) *tensor.Tensor {
			was := p.Detach().Clone()
			p.CopyInPlace(q.Detach())
			q.CopyInPlace(was)
			return nil
		})
	}
}

// prepared is prepare with a report where memory runs out.
func (s *session) prepared(ctx context.Context) (err error) {
	defer s.ranOut(ctx, &err)
	return s.prepare()
}

// prepare checks the settings and opens the folder.
func (s *session) prepare() (err error) {
	if s.Watch == nil {
		s.Watch = silent{}
	}
	if err := s.sound(); err != nil {
		return err
	}
	per, err := s.epoch()
	if err != nil {
		return err
	}
	if s.Steps == 0 {
		if float64(s.Epochs)*float64(per)*float64(s.Data.Size) > 1<<48 { // which positions count
			return fail("give fewer; with Patience the training ends by its scores", "%d epochs of %d batches of %d are more than 2^48 samples", s.Epochs, per, s.Data.Size)
		}
		s.Steps = s.Epochs * per
	}
	if s.EvalEvery == 0 {
		s.EvalEvery = per
	}
	if s.SaveEvery == 0 {
		s.SaveEvery = s.EvalEvery
	}
	if s.ProfileSteps == 0 {
		s.ProfileSteps = 5
	}
	if s.Plateau != nil {
		s.plateau()
	}
	for range nn.Buffers(s.Model) {
		s.task.norms = true
	}
	if s.InBackward {
		if _, err := tensor.Try(s.env, func(*tensor.Env) error { optim.StepInBackward(s.Optimizer); return nil }); err != nil {
			return explain(err, "leave InBackward out")
		}
	}
	s.ready()
	return s.open()
}

// sound refuses settings that have no meaning, alone or together.
func (s *session) sound() error {
	switch _, sets := s.Optimizer.(withMomentum); {
	case s.Env == nil || s.Model == nil || s.Optimizer == nil:
		return fail("set all three", "a Loop needs Env, Model and Optimizer: they are set: %t, %t and %t", s.Env != nil, s.Model != nil, s.Optimizer != nil)
	case min(s.Data.Size-1, s.Epochs, s.Steps, s.EvalEvery, s.Patience, s.SaveEvery, s.Statistics, s.ProfileAfter, s.ProfileSteps) < 0 || s.Parts < AutoParts || s.Keep < KeepLast || s.Average < 0 || s.Average >= 1:
		return fail("set Data.Size to at least 1, Average to less, and nothing else below 0",
			"a Loop of batches of %d in %d parts, %d epochs, %d steps, EvalEvery %d, Patience %d, Keep %d, SaveEvery %d, Average %v, Statistics %d and a profile of %d after %d",
			s.Data.Size, int(s.Parts), s.Epochs, s.Steps, s.EvalEvery, s.Patience, s.Keep, s.SaveEvery, s.Average, s.Statistics, s.ProfileSteps, s.ProfileAfter)
	case s.Steps == 0 && s.Epochs == 0:
		return fail("set Epochs or Steps", "a Loop that has no end: neither Epochs nor Steps is set")
	case s.Patience > 0 && s.task.score == nil:
		return fail("give a set to score, or leave Patience out", "a Loop with Patience %d, and nothing held out", s.Patience)
	case s.Plateau != nil && (s.task.score == nil || s.Schedule != nil):
		return fail("give a set to score and no Schedule, or leave Plateau out", "a Loop with a Plateau, and nothing held out or a Schedule besides")
	case s.Momentum != nil && !sets:
		return fail("leave Momentum out, or take SGD, Adam or AdamW", "a Loop with a Momentum, which no %T changes", s.Optimizer)
	case s.Resume && s.Out == "":
		return fail("set Out to the run's folder", "a Loop that resumes, without Out")
	case s.InBackward && (s.Scaler != nil || s.Parts > 1 || s.Parts == AutoParts):
		return fail("leave one of them out", "a Loop with InBackward, and a Scaler or Parts, which need all gradients before the first is applied")
	case s.Capture && (s.Momentum != nil || s.Anomaly || s.Statistics > 0 || s.Parts == AutoParts):
		return fail("leave Capture out, or the other", "a Loop with Capture, which makes a step one launch, and Momentum, Anomaly, Statistics or AutoParts")
	case s.Anomaly && s.Statistics > 0:
		return fail("leave one of them out", "a Loop with Statistics, which computes with what modules make, and Anomaly, which stops at squares that are infinite")
	}
	return nil
}

// epoch is the batches of a pass.
func (s *session) epoch() (int, error) {
	c, samples := s.Data, s.samples
	n := samples / c.Size
	if samples%c.Size > 0 {
		n++
	}
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

// open goes on with the run in the folder, or makes it.
func (s *session) open() (err error) {
	if s.Resume && !s.dry() {
		list, err := ckpt.List(s.Out)
		if err != nil {
			return explain(err, "give a folder that can be read")
		}
		if len(list) > 0 {
			if s.lock, err = lock(s.Out, s.named); err != nil {
				return explain(err, "give another Out")
			}
			if err := s.reopen(); err != nil {
				return err
			}
		}
	}
	if s.profile, err = newProfiling(s); err != nil && s.done > 0 { // the same program is to end what it has begun
		s.Watch.Note(fmt.Sprintf("no profile: %v", err))
		err = nil
	}
	if err != nil || s.folder != nil || s.kept() == "" {
		return err
	}
	return s.begin()
}

// begin makes the run folder, or takes one that is there and has no run.
func (s *session) begin() error {
	_, missing := os.Stat(s.Out)
	err := os.MkdirAll(s.Out, 0o777)
	if err == nil {
		s.lock, err = lock(s.Out, s.named)
	}
	if err != nil {
		return explain(err, "give another Out")
	}
	if err := s.free(); err != nil {
		return err
	}
	flag := os.O_CREATE | os.O_EXCL
	if s.Resume { // of one that was ended before its first checkpoint
		flag = os.O_CREATE | os.O_TRUNC
	}
	if s.folder, err = openLog(s.Out, flag, "set Resume, or give another Out", s.named); err == nil {
		s.folder.made = missing != nil
	}
	return err
}

// free refuses a folder with files that the run would write over, other than the log of a run that is to go on, and was ended before its
// first checkpoint.
func (s *session) free() error {
	there, err := ckpt.List(s.Out)
	if err != nil {
		return explain(err, "give another Out")
	}
	for _, name := range []string{logFile, ckpt.ModelFile, curveFile} {
		if _, err := os.Lstat(filepath.Join(s.Out, name)); err == nil {
			there = append(there, filepath.Join(s.Out, name))
		}
	}
	switch {
	case len(there) == 0 || s.Resume && len(there) == 1 && ofRun(there[0]):
		return nil
	case s.Resume:
		return fail("give another Out, or move that", "%s is in the way of a run, and there is no checkpoint to go on from", there[0])
	}
	return &Error{Text: there[0] + " exists, and the run would write over it", Hint: "set Resume to go on with a run, or give another Out", Err: os.ErrExist}
}

// ofRun tells a file that is the log of a run, which may have nothing yet.
func ofRun(path string) bool {
	raw, err := os.ReadFile(path)
	kept, _, _ := cutLog(raw, math.MaxInt)
	return err == nil && filepath.Base(path) == logFile && (len(raw) == 0 || len(kept) > 0)
}

// finish saves what the training has come to, of so many samples that are held out. why is ErrInterrupted or nil, and comes back.
func (s *session) finish(why error, held int) (*Result, error) {
	defer machine.AllowWaits(s.env.Device())()
	if err := s.leave(); err != nil {
		return nil, err
	}
	out := s.result()
	out.Held, out.Seconds = held, time.Since(s.began).Seconds()
	of := s.done // the step of the weights that are left
	if s.patience.kept() {
		of = s.patience.step
	}
	for i := range s.scores {
		if score := &s.scores[i]; score.Step == of {
			out.ValLoss, out.Accuracy, out.Metrics = &score.ValLoss, score.Accuracy, score.Metrics
		}
	}
	if why == nil && (s.average != nil || s.patience.kept()) {
		copyModel(s.outcome(), s.Model)
	}
	if err := s.folder.finish(out); err != nil {
		return nil, err
	}
	return out, why
}
