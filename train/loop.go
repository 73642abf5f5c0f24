package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// walk makes the steps that are left, and tells them all, whatever ends them.
func (s *session) walk(ctx context.Context) error {
	ended := false
	defer func() {
		if !ended { // by a panic, which counts; what is wrong beside it does not
			s.env.Try(func(*tensor.Env) *tensor.Tensor {
				_ = s.drain()
				return nil
			})
		}
	}()
	err := s.steps(ctx)
	ended = true
	if failed := s.drain(); failed != nil {
		return failed // it came first
	}
	return err
}

func (s *session) steps(ctx context.Context) error {
	if s.missed() {
		if err := s.score(ctx); err != nil {
			return err
		}
	}
	if s.patience.over() && s.done < s.Steps {
		s.patience.ended(s.Watch, s.done, s.Steps)
	}
	if s.done >= s.Steps || s.patience.over() {
		return nil
	}
	for i := range s.log { // of sessions before
		s.health.step(s.log[i].Step, s.log[i].Loss, math.NaN())
	}
	s.capture()
	if s.Anomaly {
		defer s.env.DetectAnomaly(s.tolerates)()
	}
	env := s.profile.watch(s.Env)
	defer s.annotate()()
	attached, _ := s.Watch.(Attached)
	if attached != nil {
		attached.Attach(env)
	}
	c := s.Data
	c.Steps, c.Done, c.Epoch, c.Skip = s.Steps, s.done, s.at.Epoch, s.at.Batch
	turns := s.batches.turns(env, c)
	if s.sparing {
		turns = s.visited(ctx, env, c)
	}
	for t, err := range turns {
		if err != nil {
			return badData(err)
		}
		s.step(t)
		s.profile.step(s)
		if attached != nil {
			attached.Turn()
		}
		if err := s.catchUp(ahead); err != nil {
			return err
		}
		s.present()
		if err := s.between(ctx); err != nil {
			return err
		}
		if s.patience.over() {
			s.patience.ended(s.Watch, s.done, s.Steps)
			return nil
		}
		if ctx.Err() != nil && s.queued < s.Steps {
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

// step learns from one batch. It waits for nothing.
func (s *session) step(t turn) {
	if s.Schedule != nil {
		s.Optimizer.SetLR(s.Schedule(s.queued))
	}
	s.task.begin(t.First())
	var u underway
	if s.captured != nil {
		s.torn = true
		u.loss = s.captured(t).Later()
	} else {
		s.torn = s.InBackward
		s.look()
		s.learn(t, func(loss *tensor.Tensor) { u.loss = loss.Later() })
		u.look = s.looked()
		s.torn = s.torn || s.task.pieces
		s.report = s.update()
		s.torn = true
	}
	u.Parts, s.parted = s.parted, 0
	u.norm, u.never = s.report.NormLater(), s.report.Never
	s.average.update(s.queued)
	if s.After != nil {
		s.After()
	}
	s.queued, s.at, s.torn = s.queued+1, t.Position(), false
	u.Step.Step, u.Peak = s.queued, s.env.Device().Memory().Peak
	s.underway = append(s.underway, u)
}

// capture makes the steps captured ones, if that is asked for.
func (s *session) capture() {
	if !s.Capture {
		return
	}
	s.captured, s.replayed = s.batches.capture(s.env, func(t turn) (loss *tensor.Tensor) {
		s.learn(t, func(l *tensor.Tensor) { loss = l })
		s.report = s.update()
		return loss
	})
}

// learn adds the gradients of a batch. told is called with its mean loss.
func (s *session) learn(t turn, told func(loss *tensor.Tensor)) {
	s.task.rewind()
	switch {
	case s.Parts == AutoParts:
		told(s.learnInParts(t))
		return
	case s.Parts < 2:
		loss := s.forward(t)
		told(loss)
		s.backward(loss)
		return
	}
	var total *tensor.Tensor
	t.split(int(s.Parts), func(part turn) { s.learnPart(part, t.Env, &total) })
	told(total)
}

// learnPart adds the gradients of a part of a batch, and its loss to the total, which begins in env.
func (s *session) learnPart(part turn, env *tensor.Env, total **tensor.Tensor) {
	loss := s.forward(part).Scale(part.Fraction())
	if *total == nil {
		*total = env.FullOf(loss.DType(), 0)
	}
	(*total).AddInPlace(loss.Detach())
	s.backward(loss)
}

// forward is the loss of a batch or a part of one, and measures what that keeps for Backward.
func (s *session) forward(t turn) *tensor.Tensor {
	before := s.used()
	s.torn = s.torn || s.moves
	loss := t.loss(nil)
	s.memory.Activations = max(s.memory.Activations, s.used()-before)
	return loss
}

// backward adds the gradients of a loss, multiplied by the run's scale if it has one.
func (s *session) backward(loss *tensor.Tensor) {
	if s.Scaler == nil {
		loss.Backward()
		return
	}
	s.Scaler.Backward(loss)
}

// update applies the gradients.
func (s *session) update() optim.Report {
	if s.Scaler == nil {
		return s.Optimizer.Step()
	}
	return s.Scaler.Step(s.Optimizer)
}

// ahead is how many steps the device may have in hand when the host waits: enough to keep it busy, and few enough to
// stop soon after a mistake or an interruption.
const ahead = 2

// catchUp tells the steps whose figures are here, and waits for those of all but the last n.
func (s *session) catchUp(n int) error { return s.underway.catchUp(n, s.conclude) }

// queue is steps that are under way, in order.
type queue []underway

// catchUp concludes the steps whose figures are here, and waits for those of all but the last n.
func (q *queue) catchUp(n int, conclude func(*underway) error) error {
	for len(*q) > 0 && (len(*q) > n || (*q)[0].ready()) {
		u := (*q)[0]
		*q = (*q)[1:]
		if err := conclude(&u); err != nil {
			q.drop() // what follows a mistake is none the better
			return err
		}
	}
	return nil
}

// drop forgets the steps that are under way.
func (q *queue) drop() {
	for i := range *q {
		if look := (*q)[i].look; look != nil {
			look.Drop()
		}
	}
	*q = nil
}

// drain waits until no step is under way. What was learnt is known to be good then.
func (s *session) drain() error { return s.catchUp(0) }

// conclude judges a step and tells it.
func (s *session) conclude(u *underway) error {
	defer machine.AllowWaits(s.env.Device())()
	norm := 0.0
	u.Loss = u.loss.Value()
	if u.norm != nil {
		norm = u.norm.Value()
	}
	if !s.leftOut(u, norm) {
		if err := s.finite(&u.Step, norm); err != nil {
			return err
		}
	}
	s.done = u.Step.Step
	if u.Parts > 0 {
		s.Watch.Note(fmt.Sprintf("memory ran out in step %d: batches are taken in %d parts from there on", u.Step.Step, u.Parts))
	}
	now := time.Now()
	if !s.dry() { // the time of planning a step says nothing about the step
		u.MS = float64(now.Sub(s.last)) / float64(time.Millisecond)
	}
	s.last = now
	s.stepping += u.MS
	if finite(u.Loss) != nil {
		s.log = append(s.log, u.Step)
		s.health.step(u.Step.Step, u.Loss, norm)
		s.Watch.Step(u.Step)
	}
	for _, name := range u.never {
		if !s.told[name] {
			s.told[name] = true
			s.Watch.Note(name + " has no gradient: it is not part of the loss")
		}
	}
	var told any = u.Step
	if finite(u.Loss) == nil {
		told = lost{u.Step.Step, true}
	}
	if err := s.folder.line(told); err != nil {
		return err
	}
	return s.tellLook(u)
}

func (s *session) used() int64 { return s.env.Device().Memory().Used }

// finite stops a run whose numbers have left the range of floats. The weights are then no good; the last checkpoint's are.
func (s *session) finite(at *Step, norm float64) error {
	var text string
	switch {
	case finite(at.Loss) == nil:
		text = fmt.Sprintf("the loss is %v at step %d", at.Loss, at.Step)
	case finite(norm) == nil:
		text = fmt.Sprintf("the norm of the gradients is %v at step %d, where the loss is %v", norm, at.Step, at.Loss)
	default:
		return nil
	}
	return fail(s.outOfRange(), "%s", text)
}

// outOfRange is what to do about numbers that are.
func (s *session) outOfRange() string {
	hint := s.task.hint
	if !s.Anomaly && !s.Capture {
		hint += fmt.Sprintf("; with %s the run names the operation that began it", s.named("anomaly"))
	}
	if s.folder.saved() {
		hint += fmt.Sprintf("; %s keeps its last checkpoint", s.Out)
	}
	return hint
}

// scored tells a step behind which there is a score.
func (s *session) scored(step int) bool {
	aligned := s.EvalEvery > 0 && step%s.EvalEvery == 0
	if step >= s.Steps { // the end of a run that goes by no scores has one of its own
		return s.task.last || aligned && s.patience != nil
	}
	return aligned
}

// missed tells a run that goes on from a step whose score was interrupted, where that counts.
func (s *session) missed() bool {
	if s.task.score == nil || s.done == 0 || !s.task.last && s.patience == nil || !s.scored(s.done) {
		return false
	}
	n := len(s.scores)
	return n == 0 || s.scores[n-1].Step < s.done
}

// between does what is due between steps.
func (s *session) between(ctx context.Context) error {
	score := s.task.score != nil && s.scored(s.queued)
	save := s.SaveEvery > 0 && s.queued%s.SaveEvery == 0 && s.queued < s.Steps // the end has its own
	if !score && !save {
		return nil
	}
	if err := s.drain(); err != nil {
		return err
	}
	defer machine.AllowWaits(s.env.Device())()
	if score {
		if err := s.score(ctx); err != nil {
			return err
		}
	}
	switch {
	case !save:
		return nil
	case s.task.last:
		return s.leave()
	}
	return s.save()
}

// score measures what the run has learnt.
func (s *session) score(ctx context.Context) error {
	defer machine.AllowWaits(s.env.Device())()
	model := s.average.or(s.Model)
	found, err := s.task.score(ctx, model)
	if err != nil || s.dry() {
		return err
	}
	score := s.judge(found)
	if score == nil {
		return nil
	}
	s.patience.told(score, model)
	if s.task.told != nil {
		s.task.told(score.ValLoss)
	}
	return s.folder.line(*score)
}

// judge keeps a score and tells it; nil of one that is no number.
func (s *session) judge(found *scored) *Score {
	s.last = time.Now()
	if finite(found.loss) == nil {
		s.Watch.Note(fmt.Sprintf("after step %d the loss on what is held out is %v", s.done, found.loss))
		return nil
	}
	score := Score{true, s.done, found.loss, found.accuracy, found.metrics}
	s.scores = append(s.scores, score)
	s.Watch.Score(score)
	return &score
}

// state is what a checkpoint holds.
func (s *session) state() *ckpt.State {
	state := &ckpt.State{Model: s.task.models(), Optimizer: s.Optimizer, Scaler: s.Scaler, Step: s.done, Loader: s.at, Draws: s.env.Draws()}
	if s.task.extra != nil {
		state.Extra = s.task.extra()
	}
	return state
}

// save writes a checkpoint and drops all but the newest.
func (s *session) save() error {
	if s.folder == nil {
		return nil
	}
	if err := s.saveBest(); err != nil || s.saved == s.done && s.done > 0 {
		return err
	}
	if err := s.folder.flush(); err != nil {
		return err
	}
	path, err := ckpt.Save(s.Out, s.state())
	if err != nil {
		return explain(err, s.folder.room())
	}
	s.saved = s.done
	return explain(s.prune(path), "remove what is left of it yourself")
}

// prune drops all but the newest checkpoints up to that in path. Those of later steps are damaged: the run has gone on from one before.
func (s *session) prune(path string) error {
	list, err := ckpt.List(s.Out)
	if err != nil {
		return err
	}
	return ckpt.Prune(s.Out, max(0, slices.Index(list, path))+s.Keep.checkpoints())
}

// leave writes a checkpoint, and the model that eval, sample and PyTorch read.
func (s *session) leave() error {
	if s.folder == nil {
		return nil
	}
	if err := s.save(); err != nil || s.patience.kept() {
		return err
	}
	return s.saveModel(s.task.outcome())
}

func (s *session) saveModel(m any) error {
	return explain(ckpt.SaveModel(filepath.Join(s.Out, ckpt.ModelFile), m), s.folder.room())
}

// saveBest leaves the weights of the best score: before the checkpoint, which goes on from them.
func (s *session) saveBest() error {
	if !s.patience.kept() || s.patience.left {
		return nil
	}
	m := s.patience.best
	if s.task.plain != nil {
		m = s.task.plain(m)
	}
	if err := s.saveModel(m); err != nil {
		return err
	}
	s.patience.left = true
	return nil
}

// outcome is the model that training has come to: that of the best score, if there was one that counts.
func (s *session) outcome() any {
	if s.patience.kept() {
		return s.patience.best
	}
	return s.average.or(s.Model)
}

// rescue keeps the steps before an error of the data, as an interruption does. Of an error of numbers they are no good.
func (s *session) rescue(err error) error {
	var bad *dataError
	var known *Error
	if !errors.As(err, &bad) || !errors.As(err, &known) || s.done == s.first {
		return err
	}
	defer machine.AllowWaits(s.env.Device())()
	if s.folder == nil || s.leave() != nil {
		return err
	}
	known.Hint += fmt.Sprintf("; %s keeps the %d steps before, and %s goes on from them", s.Out, s.done, s.named("resume"))
	return known
}

// badData is what a loader gave in place of a batch.
func badData(err error) error {
	return &Error{Text: err.Error(), Hint: cmp.Or(advice.HintOf(err), "check the data"), Err: &dataError{err}}
}

// dataError marks what a loader gave in place of a batch.
type dataError struct{ error }

func (e *dataError) Unwrap() error { return e.error }

// weights are what a checkpoint keeps of models.
type weights struct {
	Model   any      `nn:"model"`
	Average any      `nn:"average"`
	Streams *streams `nn:"streams"`
}
