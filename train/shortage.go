package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// What a run that dies of memory leaves in its folder.
const (
	shortageFile = "oom.json"
	snapshotFile = "oom.pickle"
)

// onlyShortage tells a folder with nothing but what a run left that died of memory before its first step.
func onlyShortage(entries []os.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != shortageFile && e.Name() != snapshotFile })
}

// ranOut, deferred, makes an out-of-memory an error, and leaves a report of it; and an error of the operation that Anomaly names. Other
// panics go on.
func (s *session) ranOut(ctx context.Context, err *error) {
	switch v := recover().(type) {
	case nil:
	case *tensor.OOMError:
		*err = s.shortage(ctx, v)
	case *tensor.Error:
		var a *tensor.Anomaly
		if !errors.As(v, &a) {
			panic(v)
		}
		*err = &Error{Text: fmt.Sprintf("%v, at %s", a, a.Line), Hint: s.outOfRange(), Err: v}
	default:
		panic(v)
	}
}

// shortage keeps what was learnt, finds what would have fitted, and leaves a report.
func (s *session) shortage(ctx context.Context, e *tensor.OOMError) error {
	kept := s.keepSteps()
	if s.task.explain != nil {
		s.task.explain(ctx, e)
	}
	hint := s.task.wayOut(e, kept)
	if dir := s.kept(); dir != "" {
		left, err := leaveShortage(dir, e)
		if err != nil {
			s.Watch.Note(fmt.Sprintf("the report of the out-of-memory is not written: %v", err))
		}
		switch len(left) {
		case 1:
			hint += fmt.Sprintf("; %s has who holds what", filepath.Join(dir, left[0]))
		case 2:
			hint += fmt.Sprintf("; %s and %s have who holds what", filepath.Join(dir, left[0]), left[1])
		}
	}
	return &Error{Text: machine.Shortage(e), Hint: hint, Err: e}
}

// leaveShortage writes the report's files into a run folder, which may have to be made. Those left are whole, whatever the error:
// the first, which is small, may have room where the second has none.
func leaveShortage(dir string, e *tensor.OOMError) (left []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	figures := func(path string) error {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := json.Indent(&text, raw, "", " "); err != nil {
			return err
		}
		return writeFile(path, append(text.Bytes(), '\n'))
	}
	var errs []error
	for _, f := range []struct {
		name  string
		write func(path string) error
	}{
		{shortageFile, figures},
		{snapshotFile, func(path string) error { return prof.WriteShortage(path, e) }},
	} {
		if err := f.write(filepath.Join(dir, f.name)); err != nil {
			errs = append(errs, err)
			continue
		}
		left = append(left, f.name)
	}
	return left, errors.Join(errs...)
}

// keepSteps lets go of what the failed step has left, and keeps those before it in a checkpoint: unless the failed one had
// changed weights or buffers, which are no longer those of the steps before. It tells whether there is a checkpoint.
func (s *session) keepSteps() bool {
	if s.Optimizer != nil {
		s.Optimizer.Discard()
	}
	if s.folder != nil && s.done > s.first && s.done == s.queued && !s.torn {
		if _, err := tensor.Try(s.env, func(*tensor.Env) error { return s.save() }); err != nil {
			s.Watch.Note(fmt.Sprintf("the steps since the last checkpoint are lost: %v", err))
		}
	}
	return s.folder.saved()
}

// explain finds what would have fitted.
func (r *run) explain(ctx context.Context, e *tensor.OOMError) {
	if r.job != nil { // there is something to run again
		if err := plan.Explain(e, r.program(ctx)); err != nil {
			r.Watch.Note(err.Error())
		}
	}
	e.Levers = slices.DeleteFunc(e.Levers, func(l tensor.Lever) bool { // those of programs, which a run cannot change
		return !strings.HasPrefix(l.Flag, "--") && !strings.HasPrefix(l.Flag, tensor.AllocEnv)
	})
}

// wayOut is what to do in one line: the first lever that is known to suffice, or what the run needs.
func (r *run) wayOut(e *tensor.OOMError, kept bool) string {
	i := slices.IndexFunc(e.Levers, func(l tensor.Lever) bool { return l.Fits })
	switch {
	case i < 0 && e.Rehearsed && e.LargestBatch < r.Batch:
		return fmt.Sprintf("give a device with %s, or a smaller model", render.Bytes(e.Needed))
	case i < 0 && e.Rehearsed:
		return "let go of what else is in memory on " + e.Device + " (warpline top shows who computes)"
	case i < 0:
		return "give a device with more memory, a smaller --batch or a smaller model"
	}
	flag := e.Levers[i].Flag
	if !strings.HasPrefix(flag, "--") {
		return "set " + flag
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), " ")
	if kept && slices.Contains(changeable, name) && strings.Count(flag, "--") == 1 {
		return fmt.Sprintf("go on with: warpline train --resume --out %s %s", r.Out, flag)
	}
	return "give " + flag
}

// program is the run as it can be run again.
func (r *run) program(ctx context.Context) plan.Program {
	p := plan.Program{Batch: r.Batch, Smaller: "--batch %d", Multiple: max(1, int(r.Accumulate)), Split: "--accumulate %d"}
	p.Run = func(env *tensor.Env, s plan.Setting) error {
		_, err := r.rehearse(ctx, env, s)
		return err
	}
	p.Pace = func(env *tensor.Env, s plan.Setting) error {
		_, err := r.pace(ctx, env, s)
		return err
	}
	p.Levers = append(p.Levers, r.recomputeLevers()...)
	p.Levers = append(p.Levers, r.offloadLevers()...)
	if r.writes() && r.Head == HeadWhole {
		p.Levers = append(p.Levers, plan.Lever{Name: "head", Flag: "--head chunked", Cost: "nothing but rounding"})
	}
	if !r.AMP.on() {
		p.Levers = append(p.Levers, plan.Lever{Name: "amp", Flag: "--amp", Cost: "products in bfloat16"})
	}
	if !r.InBackward && !r.appliesLate() {
		p.Levers = append(p.Levers, plan.Lever{Name: "step-in-backward", Flag: "--step-in-backward", Cost: "a launch or two for each parameter", Whole: true})
	}
	if r.Average > 0 {
		p.Levers = append(p.Levers, plan.Lever{Name: "average", Flag: "--average 0", Cost: "the mean of the weights"})
	}
	if r.writes() && r.Init == "" && r.Context > 1 {
		p.Levers = append(p.Levers, plan.Lever{Name: "context", Flag: fmt.Sprintf("--context %d", r.Context/2), Cost: "half the sight"})
	}
	if r.Optimizer != "sgd" {
		p.Levers = append(p.Levers, plan.Lever{Name: "sgd", Flag: "--optimizer sgd", Cost: "another --lr, and a slower start"})
	}
	return p
}

// rehearse is the run with a setting in env, with all its steps as far as memory goes: see [visits]. It tells how many of them the peaks are
// of, where memory did not come back to what it was; 0: of all.
func (r *run) rehearse(ctx context.Context, env *tensor.Env, s plan.Setting) (of int, err error) {
	q, err := r.double(env, s)
	if err != nil {
		return 0, err
	}
	q.sparing = true
	err = q.perform(ctx, func() error {
		_, err := q.finish(ctx, nil)
		return err
	})
	if q.drifts || q.figures.drifts {
		of = q.made
	}
	return of, err
}

// paced is how many steps tell how long one takes: the optimizer's state is there from the second on, and with it what is cast ahead.
// Of captured steps the first is as the program has it, two are recorded, and the next takes memory for the launches.
const paced, pacedCaptured = 3, 6

// pace makes a few steps in env as the run would have with a setting, and scores behind them.
func (r *run) pace(ctx context.Context, env *tensor.Env, s plan.Setting) (*run, error) {
	q, err := r.double(env, s)
	if err != nil {
		return nil, err
	}
	q.Steps, q.EvalEvery = paced, 0
	if q.Capture {
		q.Steps = pacedCaptured
	}
	return q, q.perform(ctx, func() error {
		_, _, err := q.evaluated(ctx, q.outcome(), 0)
		return err
	})
}

// perform makes what the run has on its device, trains and ends.
func (r *run) perform(ctx context.Context, end func() error) error {
	if err := r.furnish(ctx); err != nil {
		return err
	}
	if err := r.walk(ctx); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	err := end()
	runtime.KeepAlive(r) // what the run holds while it is scored counts
	return cmp.Or(ctx.Err(), err)
}

// double is the run with a setting, on data that nobody reads.
func (r *run) double(env *tensor.Env, s plan.Setting) (*run, error) {
	c := r.Config
	c.Batch, c.Profile = s.Batch, ""
	if s.On("amp") {
		c.AMP = AMPBF16
	}
	c.Offload = c.Offload.with(&s)
	again := r.again
	if c.Recompute = c.Recompute.with(&s); c.Recompute != r.Recompute {
		again = nil
	}
	parts := max(Parts(s.Parts), r.partsOf(s.Batch))
	if c.Accumulate != AutoParts {
		c.Accumulate = parts
	}
	c.InBackward = c.InBackward || s.On("step-in-backward")
	if s.On("head") {
		c.Head = HeadChunked
	}
	if s.On("average") {
		c.Average = 0
	}
	if s.On("sgd") {
		c.Optimizer, c.Options = "sgd", nil
	}
	j := *r.job
	if s.On("context") {
		c.Context /= 2
		if err := j.shorten(&c); err != nil {
			return nil, err
		}
	}
	j.train = j.train.Blank()
	if j.test != nil {
		j.test = j.test.Blank()
	}
	if before, now := r.perEpoch(r.Batch), j.perEpoch(c.Batch); before != now {
		if r.Epochs > 0 && !r.Given["steps"] {
			c.Steps = r.Epochs * now
		}
		if r.judges() && !r.Given["eval-every"] && r.EvalEvery == before {
			c.EvalEvery = now
		}
	}
	q := newRun(c, silent{})
	q.job, q.env, q.again, q.chosen = &j, env.Seed(c.Seed), again, int(parts)
	return q, nil
}

// shorten gives a text's job, which is a copy, the context of c.
func (j *job) shorten(c *Config) error {
	w := j.arch.Writing()
	if w.Context > 0 {
		w.Context = c.Context
	}
	j.arch.Resize(w)
	return j.split(c)
}
