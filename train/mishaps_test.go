package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// starving has the nth allocation after a step fail.
type starving struct {
	*traintest.Recorder
	dev        *tensor.Device
	after, nth int
}

func (f *starving) Step(s train.Step) {
	if f.Recorder.Step(s); s.Step == f.after {
		f.dev.FailAt(f.nth)
	}
}

// TestRowsOutliveShortage: wherever in a step memory runs out, a run whose model remembers rows goes on from its folder as if nothing had
// happened: no checkpoint has rows that are a step ahead.
func TestRowsOutliveShortage(t *testing.T) {
	if !testutil.Alone(t) { // devices are opened by name
		return
	}
	change := map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "width": 8, "batch": 2, "steps": 7, "save-every": 2, "device": "cpu", "average": 0.0}
	whole := traintest.LossesOf(t, "lstm", change)
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, nth := range []int{1, 4, 12, 30, 60} {
		c := traintest.Config(t, "lstm", change)
		c.Out = filepath.Join(t.TempDir(), "run")
		_, err := train.Run(t.Context(), c, &starving{&traintest.Recorder{}, env.Device(), 3, nth})
		env.Device().FailAt(0)
		var oom *tensor.OOMError
		if !errors.As(err, &oom) {
			continue
		}
		failed++
		c.Resume, c.Given = true, map[string]bool{}
		r, _ := traintest.Run(t, c)
		var all []float64
		for _, s := range r.Log {
			all = append(all, s.Loss)
		}
		if !slices.Equal(all, whole) {
			t.Errorf("allocation %d: losses %v, without an interruption %v", nth, all, whole)
		}
	}
	if failed < 3 {
		t.Errorf("%d trainings failed", failed)
	}
}

// TestScoringRunsOut: where memory runs out while the mean of weights is scored, no checkpoint has it in place of the weights.
func TestScoringRunsOut(t *testing.T) {
	norm := false
	fit := func(out string, nth int, resume bool) ([]float64, error) {
		env, err := tensor.Fresh("cpu")
		if err != nil {
			t.Fatal(err)
		}
		m := nn.Sequential{nn.NewLinear(env.Seed(3), 1, 8), nn.Tanh{}, nn.NewLinear(env.Seed(4), 8, 1)}
		if norm {
			m[1] = nn.NewBatchNorm(env, 8)
		}
		loop := train.Loop{Env: env, Model: m, Optimizer: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 0.02}), Average: 0.9, Data: data.Config{Size: 16}, Steps: 8, EvalEvery: 6, Out: out, Resume: resume}
		steps := 0
		loop.After = func() {
			if steps++; steps == 6 && nth > 0 {
				env.Device().FailAt(nth)
			}
		}
		defer env.Device().FailAt(0)
		_, err = train.Fit(t.Context(), loop, line(96, 2), line(40, 2), func(b *data.Pair, _ *metric.Meters) *tensor.Tensor {
			return nn.MSE(m.Forward(b.X), b.Y)
		})
		var all []float64
		for _, p := range nn.Params(m) {
			all = append(all, p.Floats()...)
		}
		return all, err
	}
	for _, norm = range []bool{false, true} {
		want, err := fit("", 0, false)
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for nth := 1; nth < 24; nth += 2 {
			out := filepath.Join(t.TempDir(), "run")
			_, err := fit(out, nth, false)
			var oom *tensor.OOMError
			if err == nil {
				break
			}
			if !errors.As(err, &oom) {
				t.Fatal(err)
			}
			if strings.Contains(err.(*train.Error).Hint, "Resume goes on") {
				kept++
			}
			if got, err := fit(out, 0, true); err != nil || !slices.Equal(got, want) {
				t.Errorf("allocation %d: %v: %v, without an interruption %v", nth, err, got, want)
			}
		}
		if kept < 2 {
			t.Errorf("%d trainings kept the steps before", kept)
		}
	}
}

// copying copies a folder behind a step, as a process leaves it that is killed then.
type copying struct {
	*traintest.Recorder
	after    int
	from, to string
}

func (c *copying) Step(s train.Step) {
	if c.Recorder.Step(s); s.Step == c.after {
		if err := os.CopyFS(c.to, os.DirFS(c.from)); err != nil {
			panic(err)
		}
	}
}

// TestBestOutlivesKill: a run that was killed goes on with the weights of the best score so far, and leaves what it would have left.
func TestBestOutlivesKill(t *testing.T) {
	for name, more := range map[string]map[string]any{"plain": {}, "lora": {"lora": 2}} {
		// With this rate the score in the middle is far below the others.
		c := traintest.Config(t, "mlp", traintest.Merged(map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 4), "batch": 8, "steps": 8, "lr": 1, "keep": "best", "eval-every": 2, "save-every": 6}, more))
		c.Out = filepath.Join(t.TempDir(), "whole")
		killed := filepath.Join(t.TempDir(), "killed")
		want, err := train.Run(t.Context(), c, &copying{&traintest.Recorder{}, 7, c.Out, killed})
		if err != nil {
			t.Fatal(err)
		}
		whole := traintest.Read(t, filepath.Join(c.Out, "model.safetensors"))
		c.Out, c.Resume, c.Given = killed, true, map[string]bool{}
		got, _ := traintest.Run(t, c)
		if *got.ValLoss != *want.ValLoss || traintest.Read(t, filepath.Join(killed, "model.safetensors")) != whole {
			t.Errorf("%s: the best score is %v, and of a run in one piece %v", name, *got.ValLoss, *want.ValLoss)
		}
	}
}

// damagedSet is a set whose sample cannot be read.
type damagedSet struct {
	data.Source[data.Pair]
	at int
}

func (d damagedSet) Fill(b *data.Pair, row data.Row, i int) error {
	if i == d.at {
		return errors.New("a scratch")
	}
	return d.Source.Fill(b, row, i)
}

// TestScoreOfDamage: a sample that cannot be read keeps the steps before, whether it is learnt from or scored.
func TestScoreOfDamage(t *testing.T) {
	for name, sets := range map[string][2]data.Source[data.Pair]{"learnt": {damagedSet{line(100, 2), 99}, line(40, 2)}, "scored": {line(100, 2), damagedSet{line(40, 2), 39}}} {
		f := newFitted(t, filepath.Join(t.TempDir(), "run"))
		f.loop.Data.Shuffle = false
		_, err := train.Fit(t.Context(), f.loop, sets[0], sets[1], f.step)
		var own *train.Error
		if !errors.As(err, &own) || !strings.Contains(own.Text, "a scratch") || !strings.Contains(own.Hint, "Resume goes on") {
			t.Fatalf("%s: %v", name, err)
		}
		f = newFitted(t, f.loop.Out)
		f.loop.Resume, f.loop.Data.Shuffle = true, false
		if r, err := f.fit(t.Context(), line(40, 2)); err != nil || r.Steps != 42 || r.Session > 42-6 {
			t.Errorf("%s: %v: %+v", name, err, r)
		}
	}
}

// TestFitLeavesFiles: what is in a folder is not written over, whether it is a run's or not.
func TestFitLeavesFiles(t *testing.T) {
	for _, name := range []string{"model.safetensors", "loss.svg", "log.jsonl", "checkpoint-7"} {
		for _, resume := range []bool{false, true} {
			f := newFitted(t, t.TempDir())
			path := filepath.Join(f.loop.Out, name)
			if err := os.WriteFile(path, []byte("mine\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			f.loop.Resume, f.loop.Epochs = resume, 1
			_, err := f.fit(t.Context(), nil)
			var own *train.Error
			if !errors.As(err, &own) || !strings.Contains(own.Text, name) || own.Hint == "" || traintest.Read(t, path) != "mine\n" {
				t.Errorf("%s, Resume %t: %v", name, resume, err)
			}
		}
	}
	f := newFitted(t, t.TempDir()) // a run that was ended before its first checkpoint
	if err := os.WriteFile(filepath.Join(f.loop.Out, "log.jsonl"), []byte(`{"step":1,"loss":2}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f.loop.Resume, f.loop.Epochs = true, 1
	if r, err := f.fit(t.Context(), nil); err != nil || len(r.Log) != 7 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestFitTells: mistakes of settings and numbers are errors, and figures are of the weights that are left.
func TestFitTells(t *testing.T) {
	set := line(100, 2)
	for _, c := range []struct {
		change      func(f *fitted)
		learn, held data.Source[data.Pair]
		text, hint  string
	}{
		{func(*fitted) {}, nil, nil, "nothing to learn from", "give a set"},
		{func(*fitted) {}, set, data.Subset(set, 0, 0), "no samples", "hold some"},
		{func(f *fitted) { f.loop.Epochs = math.MaxInt }, set, nil, "2^48", "Patience"},
		{func(f *fitted) {
			f.loop.InBackward, f.loop.Optimizer = true, optim.NewAdamW(nn.Params(f.model), optim.AdamWConfig{Clip: 1})
		}, set, nil, "Clip is 1", "leave InBackward out"},
		{func(f *fitted) { f.loop.Profile = "." }, set, nil, "Profile . exists", "another Profile"},
		{func(f *fitted) { f.loop.Anomaly, f.loop.Schedule = true, optim.Constant(1e30) }, set, nil, "_test.go", "smaller learning rate"},
	} {
		f := newFitted(t, "")
		c.change(f)
		_, err := train.Fit(t.Context(), f.loop, c.learn, c.held, f.step)
		var own *train.Error
		if !errors.As(err, &own) || !strings.Contains(own.Text, c.text) || !strings.Contains(own.Hint, c.hint) {
			t.Errorf("%v, %+v, want %s; %s", err, own, c.text, c.hint)
		}
	}
	if _, err := train.Fit[data.Pair](t.Context(), newFitted(t, "").loop, set, nil, nil); err == nil || !strings.Contains(err.Error(), "the step is nil") {
		t.Error(err)
	}
	for text, loss := range map[string]func(y *tensor.Tensor) *tensor.Tensor{"returned nil": func(*tensor.Tensor) *tensor.Tensor { return nil }, "returned 16 losses": (*tensor.Tensor).Square} {
		f := newFitted(t, "")
		_, err := tensor.Try(f.loop.Env, func(*tensor.Env) error {
			_, err := train.Fit(t.Context(), f.loop, set, nil, func(b *data.Pair, _ *metric.Meters) *tensor.Tensor { return loss(f.model.Forward(b.X)) })
			return err
		})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	out, m := filepath.Join(t.TempDir(), "run"), nn.NewLinear(env, 1, 1)
	loop := train.Loop{Env: env, Model: m, Optimizer: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{}), Average: 0.9, Data: data.Config{Size: 16}, Steps: 6, Out: out}
	env.Device().FailAt(1) // in the mean, before the first step
	_, err = train.Fit(t.Context(), loop, set, nil, func(b *data.Pair, _ *metric.Meters) *tensor.Tensor { return nn.MSE(m.Forward(b.X), b.Y) })
	var oom *tensor.OOMError
	if !errors.As(err, &oom) {
		t.Errorf("memory runs out before the first step: %v", err)
	}
	f := newFitted(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.loop.Keep, f.loop.Watch = train.KeepLast, &canceller{Watcher: train.Lines(&bytes.Buffer{}), at: 9, cancel: cancel}
	if r, err := f.fit(ctx, line(40, 2)); !errors.Is(err, train.ErrInterrupted) || len(r.Scores) != 1 || r.ValLoss != nil {
		t.Errorf("%v: a score of other weights than are left: %s", err, fmt.Sprint(r.Scores))
	}
}

// TestDamagedIsNotKept: where a run has gone on from before a damaged checkpoint, that is none of those that it keeps.
func TestDamagedIsNotKept(t *testing.T) {
	whole := newFitted(t, "")
	if _, err := whole.fit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f := newFitted(t, filepath.Join(t.TempDir(), "run"))
	f.loop.Epochs, f.loop.Keep = 2, 2
	if _, err := f.fit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	out, damaged := f.loop.Out, filepath.Join(f.loop.Out, "checkpoint-14")
	if err := os.Truncate(filepath.Join(damaged, "model.safetensors"), 8); err != nil {
		t.Fatal(err)
	}
	f = newFitted(t, out)
	f.loop.Resume, f.loop.Keep = true, train.KeepLast
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.loop.Watch = &canceller{Watcher: train.Lines(&bytes.Buffer{}), at: 9, cancel: cancel}
	if r, err := f.fit(ctx, nil); !errors.Is(err, train.ErrInterrupted) || r.Steps >= 14 {
		t.Fatalf("%v: %+v", err, r)
	}
	f = newFitted(t, out)
	f.loop.Resume, f.loop.Keep = true, train.KeepLast
	if r, err := f.fit(t.Context(), nil); err != nil || fmt.Sprint(f.weights()) != fmt.Sprint(whole.weights()) {
		t.Errorf("%v: %+v", err, r)
	}
	if list, err := ckpt.List(out); err != nil || len(list) != 1 {
		t.Errorf("%v: %v", err, list)
	}
}

// stopping cancels a training at its nth step or batch that is scored, or panics.
type stopping struct {
	train.Watcher
	nth    int
	cancel func()
}

func (s *stopping) Step(train.Step)      { s.count() }
func (s *stopping) Scoring(done, of int) { s.count() }

func (s *stopping) count() {
	if s.nth--; s.nth == 0 {
		s.cancel()
	}
}

// TestStoppedAnywhere: a training that is stopped again and again, in steps and while it is scored, by an interrupt or a panic, comes to
// what it comes to in one piece, whatever its scores, checkpoints, means and parts.
func TestStoppedAnywhere(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 4 {
		var l train.Loop
		l.EvalEvery, l.SaveEvery, l.Patience, l.Keep = rnd.IntN(10), rnd.IntN(10), rnd.IntN(5), train.Keep(rnd.IntN(4)-1)
		l.Average, l.Parts, l.Capture = 0.9*float64(rnd.IntN(2)), train.Parts(rnd.IntN(3)), rnd.IntN(2) == 0
		rate := []float64{0.02, 0.5}[rnd.IntN(2)]
		schedulefree := rnd.IntN(3) == 0
		session := func(out string, stop int, panics bool) (f *fitted, r *train.Result, err error) {
			f = newFitted(t, out)
			f.loop.EvalEvery, f.loop.SaveEvery, f.loop.Patience, f.loop.Keep, f.loop.Average, f.loop.Parts, f.loop.Capture = l.EvalEvery, l.SaveEvery, l.Patience, l.Keep, l.Average, l.Parts, l.Capture
			f.loop.Resume = out != ""
			f.loop.Optimizer = optim.NewAdamW(nn.Params(f.model), optim.AdamWConfig{LR: rate})
			if schedulefree {
				f.loop.Optimizer = optim.NewScheduleFree(nn.Params(f.model), optim.ScheduleFreeConfig{LR: rate})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.loop.Watch = &stopping{train.Lines(&bytes.Buffer{}), stop, func() {
				if panics {
					panic("stopped")
				}
				cancel()
			}}
			defer func() {
				if v := recover(); v == "stopped" {
					err = train.ErrInterrupted
				} else if v != nil {
					panic(v)
				}
			}()
			r, err = f.fit(ctx, line(40, 2))
			return f, r, err
		}
		whole, want, err := session("", 0, false)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "run")
		for n := 0; ; n++ {
			f, got, err := session(out, 1+rnd.IntN(25), rnd.IntN(3) == 0 && n < 20)
			if errors.Is(err, train.ErrInterrupted) {
				continue
			}
			if err != nil || got.Steps != want.Steps || *got.ValLoss != *want.ValLoss || fmt.Sprint(got.Scores) != fmt.Sprint(want.Scores) || fmt.Sprint(f.weights()) != fmt.Sprint(whole.weights()) {
				t.Errorf("%+v, rate %v, schedule-free %t, in %d sessions: %v, %+v; in one %+v", l, rate, schedulefree, n+1, err, got, want)
			}
			break
		}
	}
}
