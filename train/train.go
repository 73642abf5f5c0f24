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
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Watcher is told what happens in a run, in order and in the goroutine of [Run] or [Fit].
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

// run is a training of a task that is under way: its loop, and what makes one of a [Config].
type run struct {
	Config
	*job
	session
	model   nn.Module
	loss    loss          // model's
	streams *streams      // of a model that reads piece by piece; nil: none
	again   *tensor.Parts // that are recomputed; nil: those of the setting
	merged  nn.Module     // what is left of a run with small matrices; nil: not yet
	worth   int           // products of a sample, where the model no longer tells; 0: ask it
	unlimit func()        // lifts the limit of the device's memory
}

// flagOf is a setting as a command line has it.
func flagOf(setting string) string { return "--" + setting }

func newRun(c Config, watch Watcher) *run {
	r := &run{Config: c, unlimit: func() {}}
	r.began, r.told, r.Watch, r.Loop.Out = time.Now(), map[string]bool{}, watch, c.Out
	r.task = task{
		named: flagOf, name: c.Task, explain: r.explain, wayOut: r.wayOut, load: r.restore,
		begin: func(first bool) { r.streams.begin(first) }, rewind: func() { r.streams.rewind() },
		models: func() any { return &weights{r.model, r.average.or(nil), r.streams} }, outcome: func() any { return r.outcome() }, instead: r.instead,
	}
	return r
}

// Run trains as c says. When ctx is cancelled it stops after the steps that are under way, leaves a checkpoint and the
// model, and returns ErrInterrupted beside the result so far. Errors are an [*Error] where somebody can mend them. While
// it runs, c.Threads is the whole process's.
func Run(ctx context.Context, c Config, watch Watcher) (result *Result, err error) {
	defer machine.Recovered(&err)
	if watch == nil {
		watch = silent{}
	}
	r := newRun(c, watch)
	defer func() { r.lock.Close() }()
	stored, err := r.settled()
	if err != nil {
		return nil, err
	}
	defer setThreads(r.Threads)()
	defer func() { r.job.close() }() // which prepare opens
	defer func() { r.unlimit() }()
	if err := r.begin(ctx, stored); err != nil {
		return nil, err
	}
	r.start()
	return r.whole(ctx, r.finish)
}

// begin is prepare with a report where memory runs out.
func (r *run) begin(ctx context.Context, stored *Config) (err error) {
	defer r.ranOut(ctx, &err)
	return r.prepare(ctx, stored)
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
	root, err := machine.Open(r.Device, r.Watch.Note)
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
		if r.profile, err = newProfiling(&r.session); err != nil {
			return err
		}
	}
	if err = r.open(stored); err != nil || stored == nil {
		return err
	}
	r.profile, err = newProfiling(&r.session)
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
	r.offloads()
	r.assemble()
	return nil
}

// assemble makes the loop of the settings.
func (r *run) assemble() {
	order := r.wrap
	order.Size = r.Batch
	r.Loop = Loop{
		Env: r.offloading(r.recomputing(r.AMP.policy(r.env))), Model: r.model, Optimizer: optimizer(&r.Config, r.model), Schedule: schedule(&r.Config), Scaler: r.AMP.scaler(),
		Average: r.Config.Average, Data: order, Parts: r.Accumulate, InBackward: r.Config.InBackward, Capture: r.Config.Capture, Steps: r.Config.Steps,
		EvalEvery: r.Config.EvalEvery, Patience: r.Config.Patience, Keep: r.keep(), SaveEvery: r.Config.SaveEvery, Out: r.Config.Out, Resume: r.Config.Resume,
		Statistics: r.Config.Statistics, Anomaly: r.Config.Anomaly, Profile: r.Config.Profile, ProfileAfter: r.Config.ProfileAfter, ProfileSteps: r.Config.ProfileSteps, Watch: r.Watch,
	}
	r.samples = r.job.train.Len()
	r.batches = of(r.job.train.Turns, func(b *data.Pair, _ *metric.Meters) *tensor.Tensor { return r.loss(b.X, b.Y) })
	r.task.name, r.task.model, r.task.units, r.task.norms = r.Config.Task, r.arch.Title(), r.arch.Units(), r.arch.Of().Norms
	r.task.anew, r.task.pieces = r.Given["accumulate"], r.updatesInParts()
	r.task.parked = r.Offload.optimizer() && r.env.Device().Parks() == ""
	r.task.hint = fmt.Sprintf("give a smaller --lr than %v, --clip 1 or a --warmup", r.LR)
	if r.test != nil {
		r.task.score = r.score
	}
	if r.LoRA > 0 {
		r.task.plain = mergedCopy
	}
	if r.Offload.optimizer() {
		r.Loop.Optimizer.Offload()
	}
	if r.Loop.InBackward {
		optim.StepInBackward(r.Loop.Optimizer)
	}
	r.ready()
}

// updatesInParts tells an update that takes memory between one parameter's and the next, so that where it ends for want of that
// some weights are a step ahead of others.
func (r *run) updatesInParts() bool {
	return r.Offload.optimizer() || r.Params.rounding() != optim.Nearest
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
		return nil, vacant(r.named, "out", r.Out)
	}
	if err := r.resumable(); err != nil {
		return nil, err
	}
	if r.lock, err = lock(r.Config.Out, r.named); err != nil && !errors.Is(err, os.ErrNotExist) {
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
		r.Steps = r.Epochs * r.perEpoch(r.Batch)
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
	st := Start{Train: r.job.learnt}
	if r.test != nil {
		st.Test, st.Scored, st.Tenth = r.job.held, r.test.Size(), r.job.tenth
	}
	r.session.start(st, r.job.notes...)
	if r.dry() && r.Given["out"] {
		r.Watch.Note(fmt.Sprintf("%s computes nothing, so nothing is written to %s", r.Device, r.Config.Out))
	}
	if r.Accumulate > 1 && r.arch.Of().Norms {
		r.Watch.Note(acrossSamples(r.Accumulate))
	}
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
		if r.lock, err = lock(r.Config.Out, r.named); err != nil {
			r.folder.discard()
		}
		return explain(err, "give another --out")
	}
	if err := r.reopen(); err != nil || r.dry() {
		r.folder.close()
		return err
	}
	if err := writeConfig(r.Config.Out, r); err != nil {
		return errors.Join(explain(err, "give the folder of a run"), r.folder.close())
	}
	return nil
}

// instead is what else to start from where no checkpoint is whole.
func (r *run) instead() string {
	if path := filepath.Join(r.Config.Out, ckpt.ModelFile); dataset.IsFile(path) {
		return ", from its last weights with --init " + path
	}
	return ""
}

// vacant refuses an output folder, by the setting that names it, that has something in it.
func vacant(named func(string) string, flag, dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return explain(err, "give another "+named(flag))
	case len(entries) > 0 && !onlyShortage(entries):
		hint := "give another " + named(flag)
		if _, err := readRun(dir); err == nil {
			hint += ", or " + named("resume") + " to go on with that run"
		}
		return &Error{Text: fmt.Sprintf("%s %s exists and is not empty", named(flag), dir), Hint: hint, Err: os.ErrExist}
	}
	return nil
}
