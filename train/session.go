package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// session is a [Loop] that is under way, from its start or where it goes on: that of [Fit], or of a task of the command.
type session struct {
	Loop
	task     task
	batches  batches     // to learn from
	samples  int         // of them
	sparing  bool        // only steps are made that may need memory as none before did
	made     int         // of them
	drifts   bool        // and their memory does not tell that of the others
	env      *tensor.Env // the root, whose draws are those of the run
	average  *average    // nil: none
	patience *patience   // nil: nothing goes by the scores
	figures  figures     // of what is held out
	folder   *folder     // nil: nothing is written
	lock     *os.File    // of the folder; nil: none
	queued   int         // steps whose work the device has
	done     int         // steps whose figures are here, and good
	saved    int         // the step of the last checkpoint of this session
	underway queue
	told     map[string]bool // parameters without a gradient
	first    int             // steps done before this session
	stepping float64         // milliseconds of its steps
	at       data.Position   // after the last step queued
	began    time.Time
	last     time.Time // the end of the last step
	log      []Step
	scores   []Score
	memory   Memory
	torn     bool                         // weights or buffers are a step ahead of the rest
	moves    bool                         // a forward pass moves buffers: running statistics, or what is remembered of rows
	chosen   int                          // parts of a dry run of one that chooses them; 0: it is no dry run
	parts    []int                        // numbers of parts to take batches in, of a run that chooses them: the first, as long as it fits
	parted   int                          // the new first of them, since the last step; 0: it is the old one
	still    *nn.Snapshot                 // running statistics before the step, of a run that may begin it again
	captured func(t turn) *tensor.Tensor  // nil: each step is made anew
	replayed func() (runs, recorded int)  // of them
	report   optim.Report                 // of the last step
	profile  *profiling                   // nil: none
	shown    atomic.Pointer[presence.Run] // what other processes are told

	statistics *prof.Statistics // nil before the first look
	health     health
}

// task is what a session has beside a [Loop].
type task struct {
	name, model, units string // for people; units are those of what is learnt from and scored
	named              func(flag string) string

	begin   func(first bool)                                      // before each step, which may be the first of an epoch
	told    func(loss float64)                                    // of a score; nil: nothing follows from it
	extra   func() json.RawMessage                                // of a checkpoint; nil: nothing
	recall  func(extra json.RawMessage) error                     // goes on from it
	rewind  func()                                                // before a batch is learnt from, which may be anew
	models  func() any                                            // what a checkpoint has of models
	score   func(ctx context.Context, model any) (*scored, error) // nil: nothing is held out
	outcome func() any                                            // the model that is left
	plain   func(m any) any                                       // a model as it is left; nil: as it is
	load    func(path string, m any) error                        // gives a model the weights that were left
	instead func() (hint string)                                  // of a checkpoint, all of which are damaged

	explain func(ctx context.Context, e *tensor.OOMError)     // finds what would have fitted; nil: nothing does
	wayOut  func(e *tensor.OOMError, kept bool) (hint string) // of an out-of-memory

	last   bool   // the end has a score like others, and each checkpoint the model beside it
	anew   bool   // in how many parts a batch is taken is chosen anew where a run goes on
	norms  bool   // samples of a batch meet in the model, which has running statistics
	parked bool   // the optimizer's state is at the host
	pieces bool   // an update takes memory between one parameter's and the next
	hint   string // what to do about numbers out of range
}

// named is a setting of the command as whoever made it knows it.
func (s *session) named(flag string) string { return s.task.named(flag) }

// ready makes what the loop has beside the model and its optimizer.
func (s *session) ready() {
	s.average = newAverage(s.Model, s.Optimizer, s.Average)
	if s.task.score != nil && (s.Patience > 0 || s.Keep == KeepBest) {
		s.patience = newPatience(s.Patience, nil)
		if s.Keep == KeepBest {
			s.patience = newPatience(s.Patience, s.average.or(s.Model))
		}
	}
	for range nn.Buffers(s.task.models()) {
		s.moves = true
	}
	if s.Parts == AutoParts {
		if s.parts = choosable(s.Data.Size, s.task.norms); s.chosen > 0 {
			s.parts = []int{s.chosen}
		}
		s.still = nn.NewSnapshot(s.task.models())
	}
}

// dry tells a run on a device without arithmetic: it gives figures of memory and leaves nothing.
func (s *session) dry() bool { return !s.env.Device().Computes() }

// kept is the folder that the run leaves, or empty.
func (s *session) kept() string {
	if s.dry() {
		return ""
	}
	return s.Out
}

// start tells the watcher and other processes what is about to happen.
func (s *session) start(st Start, notes ...string) {
	st.Task, st.Model, st.Device, st.Out, st.Parameters, st.Units = s.task.name, s.task.model, s.env.Device().Info(), s.kept(), nn.Count(s.Model), s.task.units
	st.Done, st.Steps, st.Batch, st.Computed = s.done, s.Steps, s.Data.Size, !s.dry()
	s.Watch.Start(st)
	for _, note := range notes {
		s.Watch.Note(note)
	}
	s.noteFrozen()
	s.present()
	s.last = time.Now()
}

// recent is how many steps the pace that others are told is of.
const recent = 10

// present renews what other processes are told of the run.
func (s *session) present() {
	p := presence.Run{Task: s.task.name, Model: s.task.model, Step: s.done, Steps: s.Steps, Batch: s.Data.Size, Out: dataset.Absolute(s.kept())}
	if n := len(s.log); n > 0 && !s.dry() {
		p.Loss = finite(s.log[n-1].Loss)
		last := s.log[max(0, n-recent):]
		for _, step := range last {
			p.Pace += step.MS / 1e3 / float64(len(last))
		}
	}
	s.shown.Store(&p)
}

// whole trains and finishes, with a report where memory runs out. Steps, of which there are none in the end, leave no folder.
func (s *session) whole(ctx context.Context, finish func(ctx context.Context, why error) (*Result, error)) (result *Result, err error) {
	defer s.folder.close()
	defer func() {
		if s.done == 0 { // an error, or a panic on its way
			s.lock.Close() // on some systems a file in the folder
			s.folder.discard()
		}
	}()
	defer presence.SetRun(func() presence.Run { return *s.shown.Load() })()
	defer s.profile.stop()
	defer s.ranOut(ctx, &err)
	err = s.walk(ctx)
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, s.rescue(err)
	}
	return finish(ctx, err)
}

// reopen goes on with the run in the folder.
func (s *session) reopen() error {
	state := s.state()
	path, damaged, err := ckpt.Latest(s.Out, state)
	if err != nil {
		return explain(err, s.damagedHint(err))
	}
	for _, w := range damaged {
		s.Watch.Note(fmt.Sprintf("%v; going on from %s", w, path))
	}
	if here := cpufeat.Active().String(); state.Level != "" && state.Level != here && s.env.Device().Name() == "cpu" {
		s.Watch.Note(fmt.Sprintf("%s was computed with %s=%s, and this is %s: the last digits may differ from those of a run in one piece", path, cpufeat.Env, state.Level, here))
	}
	if state.Step > s.Steps {
		return fail(fmt.Sprintf("give %s %d or more", s.named("steps"), state.Step), "the run in %s has done %d steps, more than %s %d", s.Out, state.Step, s.named("steps"), s.Steps)
	}
	s.queued, s.done, s.first, s.at = state.Step, state.Step, state.Step, state.Loader
	s.env.SetDraws(state.Draws)
	if s.task.recall != nil && state.Extra != nil {
		if err := s.task.recall(state.Extra); err != nil {
			return explain(err, "start the run anew, with another "+s.named("out"))
		}
	}
	if s.dry() {
		return nil
	}
	if s.folder, s.log, s.scores, err = continueLog(s.Out, s.done, s.named); err != nil {
		return err
	}
	s.resumeParts()
	if err := s.patience.recall(s.Out, s.scores, s.task.load); err != nil {
		return explain(err, "start the run anew, with another "+s.named("out"))
	}
	return nil
}

// damagedHint is what to do where no checkpoint can be read.
func (s *session) damagedHint(err error) string {
	var damage *ckpt.CorruptError
	if !errors.As(err, &damage) {
		return fmt.Sprintf("give %s the folder of a run that has a checkpoint", s.named("out"))
	}
	return "no checkpoint there is whole: put a copy back, or start the run anew with another " + s.named("out") + s.task.instead()
}

// result is what a training has come to, but for its scores.
func (s *session) result() *Result {
	out := &Result{
		Final: true, Steps: s.done, PeakBytes: s.env.Device().Memory().Peak, Task: s.task.name, Model: s.task.model, Out: s.kept(), Computed: !s.dry(),
		Parameters: nn.Count(s.Model), Memory: s.measure(), Log: s.log, Scores: s.scores, Units: s.task.units, Session: s.done - s.first,
		Frozen: constants(s.Model), Stepping: s.stepping / 1e3, Profile: s.profile.result(), Spikes: s.health.spikes, Dead: s.health.dead(),
	}
	if s.captured != nil {
		out.Captured, _ = s.replayed()
	}
	out.Scale, out.Left = s.scaling()
	if len(s.log) > 0 {
		out.Loss = s.log[len(s.log)-1].Loss
	}
	return out
}

// measure adds up the memory by kind.
func (s *session) measure() Memory {
	m := modelMemory(s.env, s.Model)
	m.Activations = s.memory.Activations
	for _, p := range nn.Params(s.Model) {
		if !p.Frozen() {
			m.Gradients += p.Bytes()
		}
	}
	if !s.task.parked {
		for _, t := range s.Optimizer.State() {
			m.Optimizer += t.Bytes()
		}
	}
	if s.average != nil {
		m.Average = m.Weights + m.Buffers
	}
	return m
}
