// Package train runs whole trainings: the tasks of the command as a library. A run is described by a [Config], reports
// to a [Watcher] while it goes, leaves a folder that evaluation, sampling and PyTorch read, and ends with a [Result].
//
//	c, err := train.Defaults("digits")
//	c.Out = "runs/first"
//	result, err := train.Run(ctx, c, nil)
//
// The run folder has config.json (the model as published ones describe theirs, and the settings), tokenizer.json where
// there is text, encoder.json of rows of a table, model.safetensors under PyTorch's names, log.jsonl with a line for each step, score and the end,
// loss.svg, scalars for TensorBoard and the last two checkpoints. A run goes on from its newest one bit for bit as if it had not stopped.
//
// [Fit] trains a model of one's own.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/presence"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// Watcher is told what happens in a run, in order and in the goroutine of Run.
type Watcher interface {
	Start(s Start)
	Step(s Step)
	Score(s Score)
	Scoring(done, of int) // samples, while something is scored
	Note(text string)     // something that a person should know
}

// Attached is a Watcher that looks at the device of a run, too.
type Attached interface {
	Watcher
	Attach(env *tensor.Env) // before the first step
	Turn()                  // between steps: one more was asked of the device
}

// Start is what is known before the first step.
type Start struct {
	Task, Model, Device string
	Out                 string // empty: nothing is kept
	Parameters          int
	Units               string // of the next three: samples, or tokens
	Train, Test         int    // of a text, Test is without its first token, which nothing foretells
	Scored              int    // of Test, while training; less than Test for a long text
	Tenth               bool   // Test is the last tenth of the one set there is
	Done, Steps, Batch  int    // Done: steps before, of a run that goes on
	Computed            bool   // false on a device without arithmetic, whose losses are 0
}

// Step is a step that is done. Its JSON is a line of log.jsonl.
type Step struct {
	Step    int     `json:"step"` // from 1
	Loss    float64 `json:"loss"`
	MS      float64 `json:"ms,omitempty"`      // since the end of the step before; 0 where nothing is computed
	Skipped bool    `json:"skipped,omitempty"` // nothing was updated: a gradient was beyond float16
	Parts   int     `json:"parts,omitempty"`   // that batches are taken in from this step on, of a run that chooses them; 0: as before

	Peak int64 `json:"-"` // most bytes of tensors at once, so far
}

// Score is what was measured on what is held out, of a long text on a part of it. Its JSON is a line of log.jsonl, but for
// the end's, which the last line has.
type Score struct {
	Scored   bool     `json:"score"` // always true
	Step     int      `json:"step"`
	ValLoss  float64  `json:"val_loss"`
	Accuracy *float64 `json:"accuracy,omitempty"`

	Metrics map[string]float64 `json:"metrics,omitempty"` // by name, as in [Result]
}

// silent is the Watcher of runs that nobody watches.
type silent struct{}

func (silent) Start(Start)      {}
func (silent) Step(Step)        {}
func (silent) Score(Score)      {}
func (silent) Scoring(_, _ int) {}
func (silent) Note(string)      {}

// run is a training that is under way.
type run struct {
	Config
	*job
	watch     Watcher
	env       *tensor.Env // the root, with the run's random path
	model     nn.Module
	loss      loss          // model's
	streams   *streams      // of a model that reads piece by piece; nil: none
	again     *tensor.Parts // that are recomputed; nil: those of the setting
	average   *average      // nil: none
	merged    nn.Module     // what is left of a run with small matrices; nil: not yet
	patience  *patience     // nil: the run does not end early
	opt       optim.Optimizer
	scaler    *optim.LossScaler // nil: losses are not scaled
	schedule  optim.Schedule
	folder    *folder  // nil: nothing is written
	lock      *os.File // of the folder; nil: none
	worth     int      // products of a sample, where the model no longer tells; 0: ask it
	queued    int      // steps whose work the device has
	done      int      // steps whose figures are here, and good
	underway  queue
	told      map[string]bool // parameters without a gradient
	first     int             // steps done before this session
	stepping  float64         // milliseconds of its steps
	at        data.Position   // after the last step queued
	began     time.Time
	last      time.Time // the end of the last step
	log       []Step
	scores    []Score
	memory    Memory
	finishing bool                         // its score is that of the end
	torn      bool                         // the weights are a step ahead of the rest
	parts     []int                        // numbers of parts to take batches in, of a run that chooses them: the first, as long as it fits
	parted    int                          // the new first of them, since the last step; 0: it is the old one
	still     *nn.Snapshot                 // running statistics before the step, of a run that may begin it again
	captured  *tensor.Captured[batch]      // nil: each step is made anew
	report    optim.Report                 // of the last step
	profile   *profiling                   // nil: none
	unlimit   func()                       // lifts the limit of the device's memory
	shown     atomic.Pointer[presence.Run] // what other processes are told

	statistics *prof.Statistics // nil before the first look
	health     health
}

// Run trains as c says. When ctx is cancelled it stops after the steps that are under way, leaves a checkpoint and the
// model, and returns ErrInterrupted beside the result so far. Errors are an [*Error] where somebody can mend them. While
// it runs, c.Threads is the whole process's.
func Run(ctx context.Context, c Config, watch Watcher) (result *Result, err error) {
	defer machine.Recovered(&err)
	if watch == nil {
		watch = silent{}
	}
	r := &run{Config: c, watch: watch, began: time.Now(), told: map[string]bool{}}
	defer func() { r.lock.Close() }()
	stored, err := r.settled()
	if err != nil {
		return nil, err
	}
	defer setThreads(r.Threads)()
	defer func() { r.job.close() }() // which prepare opens
	r.unlimit = func() {}
	defer func() { r.unlimit() }()
	if err := r.begin(ctx, stored); err != nil {
		return nil, err
	}
	defer r.folder.close()
	defer func() {
		if r.done == 0 { // an error, or a panic on its way to recovered
			r.lock.Close() // on some systems a file in the folder
			r.folder.discard()
		}
	}()
	r.start()
	defer presence.SetRun(func() presence.Run { return *r.shown.Load() })()
	defer r.profile.stop()
	return r.whole(ctx)
}

// begin is prepare with a report where memory runs out.
func (r *run) begin(ctx context.Context, stored *Config) (err error) {
	defer r.ranOut(ctx, &err)
	return r.prepare(ctx, stored)
}

// whole trains and finishes, with a report where memory runs out.
func (r *run) whole(ctx context.Context) (result *Result, err error) {
	defer r.ranOut(ctx, &err)
	err = r.train(ctx)
	if err != nil && !errors.Is(err, ErrInterrupted) {
		return nil, r.rescue(err)
	}
	return r.finish(ctx)
}

// setThreads sets the threads of the CPU, unless n is 0, until restore is called.
func setThreads(n int) (restore func()) {
	if n == 0 {
		return func() {}
	}
	before := par.Threads()
	par.SetThreads(n)
	return func() { par.SetThreads(before) }
}

// prepare does everything that can fail before anything is written. stored are the settings of the run to go on with, or
// nil.
func (r *run) prepare(ctx context.Context, stored *Config) error {
	root, err := machine.Open(r.Device, r.watch.Note)
	if err != nil {
		return err
	}
	r.Device = root.Device().Name()
	r.env = root.Seed(r.Seed)
	root.Device().ResetPeak()
	if err := r.limit(root.Device()); err != nil {
		return err
	}
	if r.AutoBatch && stored == nil {
		if err := r.fill(ctx); err != nil {
			return err
		}
	}
	if err := r.choose(stored); err != nil {
		return err
	}
	if err := r.count(stored); err != nil {
		return err
	}
	if err := r.furnish(ctx); err != nil {
		return err
	}
	if stored == nil { // nothing is made for a run that cannot begin
		if r.profile, err = newProfiling(r); err != nil {
			return err
		}
	}
	if err = r.open(stored); err != nil || stored == nil {
		return err
	}
	r.profile, err = newProfiling(r)
	return err
}

// furnish makes what the run has on its device.
func (r *run) furnish(ctx context.Context) (err error) {
	if err := r.chooseRecomputed(ctx); err != nil {
		return err
	}
	if r.model, err = r.build(r.env); err != nil {
		return err
	}
	if err := r.freeze(); err != nil {
		return err
	}
	r.streams = newStreams(r.env, r.model, r.Batch)
	r.loss = lossOf(&r.arch, r.model, r.Head, r.streams)
	if r.Params.narrow() {
		r.worth = r.products() // of float32 parameters
		r.Params.put(r.model)
	}
	if err := r.lowRank(); err != nil {
		return err
	}
	r.adapt(r.env, r.model)
	r.average = newAverage(r.model, &r.Config)
	switch {
	case r.judges() && r.keep() == KeepBest:
		r.patience = newPatience(r.Patience, r.average.or(r.model))
	case r.judges():
		r.patience = newPatience(r.Patience, nil)
	}
	r.opt, r.schedule, r.scaler = optimizer(&r.Config, r.model), schedule(&r.Config), r.AMP.scaler()
	if own, ok := r.opt.(averager); ok {
		r.average.own = own
	}
	r.offloadState()
	if r.InBackward {
		optim.StepInBackward(r.opt)
	}
	r.chooseParts()
	return nil
}

// choose opens the data and decides about the model. A run that goes on has its model described in its own folder, and
// its weights in a checkpoint: what it started from may be gone.
func (r *run) choose(stored *Config) (err error) {
	if stored == nil {
		r.job, err = newJob(&r.Config)
		return err
	}
	c := r.Config
	c.Init = r.Out
	if r.job, err = newJob(&c); err != nil {
		return err
	}
	r.job.weights, c.Init = "", r.Init
	r.Config = c
	return r.sameText()
}

// sameText refuses to go on with a text that is not the one that the run began with.
func (r *run) sameText() error {
	f, err := readConfig(r.Out)
	if err != nil {
		return err
	}
	if then := f.Run.Text; then != "" && then != r.text {
		return fail("put the text back, or start another run", "%s has changed: it has %s, and the run in %s began with %s", cmp.Or(r.Data, r.Tokens), r.text, r.Out, then)
	}
	return nil
}

// loss is the mean loss of a model's scores of x against the labels.
type loss func(x, labels *tensor.Tensor) *tensor.Tensor

// lossOf is a model's loss. Of one that writes it never holds all scores, unless head asks for them; one that reads piece by piece goes
// on from what s remembers.
func lossOf(a *zoo.Arch, m nn.Module, head Head, s *streams) loss {
	if reads, ok := m.(zoo.Reader); ok {
		return func(x, labels *tensor.Tensor) *tensor.Tensor { return s.loss(reads, head, x, labels) }
	}
	if g, writes := m.(zoo.Author); writes && head != HeadWhole {
		return func(x, labels *tensor.Tensor) *tensor.Tensor { return g.Loss(x, labels) }
	}
	return func(x, labels *tensor.Tensor) *tensor.Tensor {
		of, _ := a.Loss(m, x, labels)
		return of
	}
}

// settled checks and completes the settings. stored are those of the run to go on with, or nil.
func (r *run) settled() (stored *Config, err error) {
	if !r.Resume {
		if err := r.check(); err != nil {
			return nil, err
		}
		r.settle()
		return nil, vacant("out", r.Out)
	}
	if err := r.resumable(); err != nil {
		return nil, err
	}
	if r.lock, err = lock(r.Out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, explain(err, "give --out the folder of a run")
	}
	if stored, err = readRun(r.Out); err != nil {
		return nil, err
	}
	list, err := ckpt.List(r.Out)
	if err != nil {
		return nil, explain(err, "give --out a folder that can be read")
	}
	if len(list) == 0 {
		return nil, fail("start it anew, with another --out", "the run in %s has no checkpoint to go on from", r.Out)
	}
	c, err := r.resumed(stored)
	if err != nil {
		return nil, err
	}
	r.Config = *c
	return stored, r.check()
}

// count decides the number of steps and the horizon of the schedule.
func (r *run) count(stored *Config) error {
	if r.Epochs > 0 && !r.Given["steps"] && (stored == nil || r.Given["epochs"]) {
		r.Steps = r.Epochs * r.perEpoch
	}
	if err := r.patient(); err != nil {
		return err
	}
	if r.ends() && r.ScheduleSteps == 0 {
		r.ScheduleSteps = r.Steps
	}
	if r.ends() && r.Warmup >= r.ScheduleSteps {
		return fail("give a shorter --warmup", "--warmup %d leaves nothing of a schedule of %d steps", r.Warmup, r.ScheduleSteps)
	}
	if stored != nil {
		return r.beyond(stored)
	}
	return nil
}

// optimizer makes the optimizer of a run.
func optimizer(c *Config, m nn.Module) optim.Optimizer {
	return recipe.OptimizerOf(c.Optimizer).Make(nn.Params(m), recipe.Step{LR: c.LR, WeightDecay: c.WeightDecay, Clip: c.Clip, Rounding: c.Params.rounding(), Seed: c.Seed, Values: c.Options})
}

func schedule(c *Config) optim.Schedule {
	return recipe.ScheduleOf(c.Schedule).Make(c.LR, c.ScheduleSteps, c.Warmup, c.Options)
}

// start tells the watcher what is about to happen.
func (r *run) start() {
	s := Start{
		Task: r.Task, Model: r.arch.Title(), Device: r.env.Device().Info(), Out: r.kept(), Parameters: nn.Count(r.model),
		Units: r.arch.Units(), Train: r.job.learnt, Done: r.done, Steps: r.Steps, Batch: r.Batch, Computed: r.env.Device().Computes(),
	}
	if r.test != nil {
		s.Test, s.Scored, s.Tenth = r.job.held, r.test.Size(), r.job.tenth
	}
	r.watch.Start(s)
	for _, note := range r.job.notes {
		r.watch.Note(note)
	}
	r.noteFrozen()
	r.present()
	if r.dry() && r.Given["out"] {
		r.watch.Note(fmt.Sprintf("%s computes nothing, so nothing is written to %s", r.Device, r.Out))
	}
	if r.Accumulate > 1 && r.arch.Of().Norms {
		r.watch.Note(acrossSamples(r.Accumulate))
	}
	r.last = time.Now()
}

// recent is how many steps the pace that others are told is of.
const recent = 10

// present renews what other processes are told of the run.
func (r *run) present() {
	p := presence.Run{Task: r.Task, Model: r.arch.Title(), Step: r.done, Steps: r.Steps, Batch: r.Batch, Out: dataset.Absolute(r.kept())}
	if n := len(r.log); n > 0 && !r.dry() {
		p.Loss = finite(r.log[n-1].Loss)
		last := r.log[max(0, n-recent):]
		for _, s := range last {
			p.Pace += s.MS / 1e3 / float64(len(last))
		}
	}
	r.shown.Store(&p)
}

// open makes the run folder, or goes on with the one that is there.
func (r *run) open(stored *Config) error {
	if stored == nil {
		if r.dry() {
			return nil
		}
		var err error
		if r.folder, err = createFolder(r); err != nil || r.folder == nil {
			return err
		}
		if r.lock, err = lock(r.Out); err != nil {
			r.folder.discard()
		}
		return explain(err, "give another --out")
	}
	s := r.state()
	path, warnings, err := ckpt.Latest(r.Out, s)
	if err != nil {
		return explain(err, r.damagedHint(err))
	}
	for _, w := range warnings {
		r.watch.Note(fmt.Sprintf("%v; going on from %s", w, path))
	}
	if here := cpufeat.Active().String(); s.Level != "" && s.Level != here && r.env.Device().Name() == "cpu" {
		r.watch.Note(fmt.Sprintf("%s was computed with %s=%s, and this is %s: the last digits may differ from those of a run in one piece", path, cpufeat.Env, s.Level, here))
	}
	if s.Step > r.Steps {
		return fail(fmt.Sprintf("give --steps %d or more", s.Step), "the run in %s has done %d steps, more than --steps %d", r.Out, s.Step, r.Steps)
	}
	r.queued, r.done, r.first, r.at = s.Step, s.Step, s.Step, s.Loader
	r.env.SetDraws(s.Draws)
	if r.dry() {
		return nil
	}
	if r.folder, r.log, r.scores, err = reopenFolder(r); err != nil {
		return err
	}
	r.resumeParts()
	return r.patience.recall(r.Out, r.scores, r.restore)
}

// dry tells a run on a device without arithmetic: it gives figures of memory and leaves nothing.
func (r *run) dry() bool { return !r.env.Device().Computes() }

// kept is the folder that the run leaves, or empty.
func (r *run) kept() string {
	if r.dry() {
		return ""
	}
	return r.Out
}

// damagedHint is what to do where no checkpoint can be read.
func (r *run) damagedHint(err error) string {
	var damage *ckpt.CorruptError
	if !errors.As(err, &damage) {
		return "give --out the folder of a run that has a checkpoint"
	}
	hint := "no checkpoint there is whole: put a copy back, or start the run anew with another --out"
	if path := filepath.Join(r.Out, ckpt.ModelFile); dataset.IsFile(path) {
		hint += ", from its last weights with --init " + path
	}
	return hint
}

// vacant refuses an output folder, by the flag that names it, that has something in it.
func vacant(flag, dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return explain(err, "give another --"+flag)
	case len(entries) > 0 && !onlyShortage(entries):
		hint := "give another --" + flag
		if _, err := readRun(dir); err == nil {
			hint += ", or --resume to go on with that run"
		}
		return &Error{Text: fmt.Sprintf("--%s %s exists and is not empty", flag, dir), Hint: hint, Err: os.ErrExist}
	}
	return nil
}
