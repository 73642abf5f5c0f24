package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// ranOut, deferred, makes an out-of-memory an error, and leaves a report of it. Other panics go on.
func (r *run) ranOut(err *error) {
	switch v := recover().(type) {
	case nil:
	case *tensor.OOMError:
		*err = r.shortage(v)
	default:
		panic(v)
	}
}

// shortage keeps what was learnt, finds what would have fitted, and leaves a report.
func (r *run) shortage(e *tensor.OOMError) error {
	kept := r.keepSteps()
	if err := plan.Explain(e, r.program()); err != nil {
		r.watch.Note(err.Error())
	}
	e.Levers = slices.DeleteFunc(e.Levers, func(l tensor.Lever) bool { // those of programs, which a run cannot change
		return !strings.HasPrefix(l.Flag, "--") && !strings.HasPrefix(l.Flag, tensor.AllocEnv)
	})
	hint := r.wayOut(e, kept)
	if dir := r.kept(); dir != "" {
		if err := leaveShortage(dir, e); err != nil {
			r.watch.Note(fmt.Sprintf("the report of the out-of-memory is not written: %v", err))
		} else {
			hint += fmt.Sprintf("; %s and oom.pickle have who holds what", filepath.Join(dir, shortageFile))
		}
	}
	return &Error{Text: machine.Shortage(e), Hint: hint, Err: e}
}

// leaveShortage writes the report's files into a run folder, which may have to be made.
func leaveShortage(dir string, e *tensor.OOMError) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", " "); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := prof.WriteShortage(filepath.Join(dir, snapshotFile), e); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, shortageFile), append(text.Bytes(), '\n'))
}

// keepSteps lets go of what the failed step has left, and keeps those before it in a checkpoint: unless the failed one had
// changed weights, or running statistics, which are no longer those of the steps before. It tells whether there is a checkpoint.
func (r *run) keepSteps() bool {
	if r.opt != nil {
		r.opt.Discard()
	}
	if r.folder != nil && r.done > r.first && r.done == r.queued && !r.torn && !r.arch.Of().Norms {
		if _, err := tensor.Try(r.env, func(*tensor.Env) error { return r.save() }); err != nil {
			r.watch.Note(fmt.Sprintf("the steps since the last checkpoint are lost: %v", err))
		}
	}
	return r.folder.saved()
}

// wayOut is what to do in one line: the first lever that is known to suffice, or what the run needs.
func (r *run) wayOut(e *tensor.OOMError, kept bool) string {
	i := slices.IndexFunc(e.Levers, func(l tensor.Lever) bool { return l.Fits })
	switch {
	case i < 0 && e.Rehearsed && e.LargestBatch < r.Batch:
		return fmt.Sprintf("give a device with %s, or a smaller model", render.Bytes(e.Needed))
	case i < 0:
		return "give a smaller --batch or a smaller model"
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
func (r *run) program() plan.Program {
	p := plan.Program{Batch: r.Batch, Smaller: "--batch %d", Split: "--accumulate %d", Run: r.rehearse}
	if r.writes() && !r.Recompute {
		p.Levers = append(p.Levers, plan.Lever{Name: "recompute", Flag: "--recompute", Cost: "one more forward pass"})
	}
	if !r.AMP.on() {
		p.Levers = append(p.Levers, plan.Lever{Name: "amp", Flag: "--amp", Cost: "products in bfloat16"})
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

// rehearsed is how many steps a rehearsal has: the optimizer's state is there from the second on, and with it what is cast ahead.
const rehearsed = 3

// rehearse makes a few steps as the run would have with a setting, and scores a batch, in env.
func (r *run) rehearse(env *tensor.Env, s plan.Setting) error {
	c := r.Config
	c.Batch, c.Steps, c.Profile = s.Batch, rehearsed, ""
	c.Accumulate = min(max(c.Accumulate, s.Parts), c.Batch)
	if s.On("amp") {
		c.AMP = AMPBF16
	}
	c.Recompute = c.Recompute || s.On("recompute")
	if s.On("average") {
		c.Average = 0
	}
	if s.On("sgd") {
		c.Optimizer, c.Options = "sgd", nil
	}
	j := *r.job
	j.weights = ""
	if s.On("context") {
		c.Context /= 2
		if err := j.shorten(&c); err != nil {
			return err
		}
	}
	j.train = j.train.Blank()
	if j.test != nil {
		j.test = j.test.Blank()
	}
	q := &run{Config: c, job: &j, watch: silent{}, env: env.Seed(c.Seed), told: map[string]bool{}}
	if err := q.furnish(); err != nil {
		return err
	}
	if err := q.train(context.Background()); err != nil {
		return err
	}
	_, err := q.score(context.Background(), 0)
	return err
}

// shorten gives a text's job, which is a copy, the context of c.
func (j *job) shorten(c *Config) error {
	size := *j.arch.GPTConfig
	size.Context = c.Context
	j.arch.GPTConfig = &size
	return j.split(c)
}
