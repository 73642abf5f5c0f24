package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// line is a set of n points with y = slope·x + noise.
func line(n int, slope float32) data.Source[data.Pair] {
	x, y := make([]float32, n), make([]float32, n)
	for i := range n {
		x[i] = float32(i%17)/8 - 1
		y[i] = slope*x[i] + float32(i%5-2)/100
	}
	return data.InMemory(x, []int{1}, y, 1)
}

// fitted is a loop of a small regression, with dropout so that random numbers count.
type fitted struct {
	model nn.Sequential
	loop  train.Loop
}

func newFitted(t *testing.T, out string) *fitted {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	env = env.Seed(3)
	m := nn.Sequential{nn.NewLinear(env, 1, 8), nn.Tanh{}, nn.Dropout{P: 0.2}, nn.NewLinear(env, 8, 1)}
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 0.02})
	return &fitted{m, train.Loop{Env: env, Model: m, Optimizer: opt, Data: data.Config{Size: 16, Shuffle: true}, Epochs: 6, Out: out}}
}

func (f *fitted) step(b *data.Pair, m *metric.Meters) *tensor.Tensor {
	y := f.model.Forward(b.X)
	m.Numbers(y, b.Y)
	return nn.MSE(y, b.Y)
}

func (f *fitted) fit(ctx context.Context, held data.Source[data.Pair]) (*train.Result, error) {
	return train.Fit(ctx, f.loop, line(100, 2), held, f.step)
}

func (f *fitted) weights() (all []float64) {
	for _, p := range nn.Params(f.model) {
		all = append(all, p.Floats()...)
	}
	return all
}

// TestFit: a model of one's own learns, and the folder has the log, figures by name, scalars and the weights.
func TestFit(t *testing.T) {
	f := newFitted(t, filepath.Join(t.TempDir(), "run"))
	var told bytes.Buffer
	f.loop.Watch = train.Lines(&told)
	r, err := f.fit(t.Context(), line(40, 2))
	if err != nil || r.Steps != 42 || r.ValLoss == nil || r.Metrics["r2"] < 0.9 || len(r.Scores) != 6 || len(r.Log) != 42 {
		t.Fatalf("%v: %+v", err, r)
	}
	if n := strings.Count(told.String(), "\n"); n != 7 || !strings.Contains(told.String(), "r2") {
		t.Errorf("told:\n%s", &told)
	}
	raw, err := os.ReadFile(filepath.Join(f.loop.Out, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var last struct {
		Final   bool
		Metrics map[string]float64
	}
	if err := json.Unmarshal([]byte(rows[len(rows)-1]), &last); err != nil || !last.Final || last.Metrics["r2"] != r.Metrics["r2"] || len(rows) != 42+6+1 {
		t.Errorf("%d lines, the last %s: %v", len(rows), rows[len(rows)-1], err)
	}
	events, err := filepath.Glob(filepath.Join(f.loop.Out, "events.out.tfevents.*"))
	if err != nil || len(events) != 1 {
		t.Fatalf("%v: scalars %v", err, events)
	}
	raw, err = os.ReadFile(events[0])
	if err != nil || bytes.Count(raw, []byte("loss/train")) != 42 || bytes.Count(raw, []byte("metrics/r2")) != 6 {
		t.Errorf("%v: scalars %q", err, raw)
	}
	again := newFitted(t, "")
	if err := ckpt.LoadModel(filepath.Join(f.loop.Out, ckpt.ModelFile), again.model); err != nil || fmt.Sprint(again.weights()) != fmt.Sprint(f.weights()) {
		t.Errorf("%v: the file has other weights than the model", err)
	}
}

// TestFitResumes: a training that is interrupted at any step and goes on ends with the bytes of one in one piece.
func TestFitResumes(t *testing.T) {
	whole := newFitted(t, filepath.Join(t.TempDir(), "whole"))
	want, err := whole.fit(t.Context(), line(40, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{1, 7, 20} {
		f := newFitted(t, filepath.Join(t.TempDir(), "parts"))
		ctx, cancel := context.WithCancel(t.Context())
		f.loop.Watch = &canceller{Watcher: train.Lines(&bytes.Buffer{}), at: at, cancel: cancel}
		r, err := f.fit(ctx, line(40, 2))
		cancel()
		if !errors.Is(err, train.ErrInterrupted) || r == nil || r.Steps < at || r.Steps > at+3 {
			t.Fatalf("%v: %+v", err, r)
		}
		out := f.loop.Out
		f = newFitted(t, out)
		f.loop.Resume = true
		got, err := f.fit(t.Context(), line(40, 2))
		if err != nil || got.Steps != want.Steps || *got.ValLoss != *want.ValLoss || len(got.Log) != len(want.Log) || len(got.Scores) != len(want.Scores) {
			t.Errorf("%v: %d steps, scores %v, want %v", err, got.Steps, got.Scores, want.Scores)
		}
		if fmt.Sprint(f.weights()) != fmt.Sprint(whole.weights()) {
			t.Errorf("interrupted at step %d: other weights", at)
		}
	}
}

// canceller cancels after a step.
type canceller struct {
	train.Watcher
	at     int
	cancel func()
}

func (c *canceller) Step(s train.Step) {
	if s.Step == c.at {
		c.cancel()
	}
}

// TestFitEndsEarly: what is held out contradicts what is learnt, so each score is worse: the training ends, and the model has the
// weights of the first.
func TestFitEndsEarly(t *testing.T) {
	for _, keep := range []train.Keep{train.KeepBest, train.KeepLast, 3} {
		f := newFitted(t, filepath.Join(t.TempDir(), "run"))
		f.loop.Patience, f.loop.Keep = 3, keep
		r, err := f.fit(t.Context(), line(40, -2))
		if err != nil || r.Steps != 4*7 || len(r.Scores) != 4 {
			t.Fatalf("%v: %+v", err, r)
		}
		first := newFitted(t, "")
		first.loop.Epochs = 1
		if _, err := first.fit(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		best := fmt.Sprint(f.weights()) == fmt.Sprint(first.weights())
		if best != (keep == train.KeepBest) || best != (*r.ValLoss == r.Scores[0].ValLoss) {
			t.Errorf("Keep %d: the weights of the best score: %v, %+v", keep, best, r)
		}
		list, err := ckpt.List(f.loop.Out)
		if want := map[train.Keep]int{train.KeepBest: 2, train.KeepLast: 1, 3: 3}[keep]; err != nil || len(list) != want {
			t.Errorf("Keep %d: checkpoints %v, %v", keep, list, err)
		}
	}
}

// TestFitCtrlC: an interrupt ends the training, with what there is.
func TestFitCtrlC(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process sends itself an interrupt there")
	}
	f := newFitted(t, "")
	f.loop.Epochs = 1 << 20
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	f.loop.Watch = &canceller{Watcher: train.Lines(&bytes.Buffer{}), at: 3, cancel: func() {
		if err := self.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}}
	if r, err := f.fit(t.Context(), nil); !errors.Is(err, train.ErrInterrupted) || r.Steps < 3 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestFitRefuses: settings without meaning are errors that say what to do, and leave nothing.
func TestFitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *train.Loop)
		want   string
	}{
		"no model":            {func(l *train.Loop) { l.Model = nil }, "are set: true, false and true"},
		"no end":              {func(l *train.Loop) { l.Epochs = 0 }, "no end"},
		"no size":             {func(l *train.Loop) { l.Data.Size = 0 }, "batches of 0"},
		"too few samples":     {func(l *train.Loop) { l.Data.Size, l.Data.DropLast = 101, true }, "100 samples make no batch of 101"},
		"patience of nothing": {func(l *train.Loop) { l.Patience = 1 }, "nothing held out"},
		"resume of nothing":   {func(l *train.Loop) { l.Resume, l.Out = true, "" }, "without Out"},
		"parts":               {func(l *train.Loop) { l.Parts = -2 }, "in -2 parts"},
		"plateau of nothing":  {func(l *train.Loop) { l.Plateau = optim.NewPlateau(optim.PlateauConfig{}) }, "Plateau"},
		"momentum of none": {func(l *train.Loop) {
			l.Optimizer, l.Momentum = optim.NewLion(nn.Params(l.Model), optim.LionConfig{}), optim.Constant(0.9)
		}, "Momentum"},
		"keep": {func(l *train.Loop) { l.Keep = -2 }, "Keep -2"},
	} {
		f := newFitted(t, filepath.Join(t.TempDir(), "run"))
		c.change(&f.loop)
		_, err := f.fit(t.Context(), nil)
		var own *train.Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), c.want) || own.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(f.loop.Out); f.loop.Out != "" && err == nil {
			t.Errorf("%s: a folder is left", name)
		}
	}
	f := newFitted(t, t.TempDir())
	f.loop.Epochs = 1
	if _, err := f.fit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f = newFitted(t, f.loop.Out)
	if _, err := f.fit(t.Context(), nil); err == nil {
		t.Error("a second run in the folder of another")
	}
	f = newFitted(t, "")
	f.loop.Optimizer.SetLR(1e30)
	f.loop.Schedule = optim.Constant(1e30)
	if _, err := f.fit(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Inf at step") {
		t.Errorf("numbers out of range: %v", err)
	}
}

// ExampleFit is the training of a model of one's own.
func ExampleFit() {
	env := tensor.Best()
	model := nn.NewLinear(env, 1, 1)
	loop := train.Loop{
		Env: env, Model: model, Optimizer: optim.NewAdam(nn.Params(model), optim.AdamWConfig{LR: 0.1}),
		Data: data.Config{Size: 16, Shuffle: true}, Epochs: 40, Patience: 5,
	}
	result, err := train.Fit(context.Background(), loop, line(200, 2), line(50, 2), func(b *data.Pair, m *metric.Meters) *tensor.Tensor {
		y := model.Forward(b.X)
		m.Numbers(y, b.Y)
		return nn.MSE(y, b.Y)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("R² %.2f\n", result.Metrics["r2"])
	// Output: R² 1.00
}

// TestFitInParts: a batch in parts has the losses and weights of the whole one but for rounding, with any number that divides it or not.
func TestFitInParts(t *testing.T) {
	fit := func(parts train.Parts) (*train.Result, []float64) {
		f := newFitted(t, "")
		f.model[2] = nn.Dropout{} // random numbers are those of a part
		f.loop.Parts = parts
		r, err := f.fit(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r, f.weights()
	}
	whole, want := fit(0)
	for _, parts := range []train.Parts{2, 3, 99} {
		r, got := fit(parts)
		for i := range r.Log {
			within(t, "loss", r.Log[i].Loss, whole.Log[i].Loss, 1e-4)
		}
		for i := range got {
			within(t, "weight", got[i], want[i], 1e-3)
		}
	}
}

// tracing tells from where its samples are asked for.
type tracing struct {
	data.Source[data.Pair]
	from map[bool]bool // true: the test's own goroutine
}

func (s tracing) Fill(b *data.Pair, row data.Row, i int) error {
	s.from[strings.Contains(string(debug.Stack()), "TestFitWorkers")] = true
	return s.Source.Fill(b, row, i)
}

// TestFitWorkers: a Loop without workers reads what is held out, too, in the goroutine that fits.
func TestFitWorkers(t *testing.T) {
	f, held := newFitted(t, ""), tracing{line(40, 2), map[bool]bool{}}
	f.loop.Data.Workers, f.loop.Epochs = -1, 1
	if _, err := f.fit(t.Context(), held); err != nil || !held.from[true] || held.from[false] {
		t.Errorf("%v: read in the test's own goroutine: %v", err, held.from)
	}
}

// TestFitPlateau: the rate falls as scores tell, is the same after a resume, and what follows a step is called for each.
func TestFitPlateau(t *testing.T) {
	run := func(out string, steps int, resume bool) (*fitted, int) {
		f := newFitted(t, out)
		after := 0
		f.loop.Plateau, f.loop.After = optim.NewPlateau(optim.PlateauConfig{LR: 0.02, Factor: 0.5, Patience: -1}), func() { after++ }
		f.loop.Momentum = optim.Linear(0.95, 0.8, 42)
		f.loop.EvalEvery, f.loop.Steps, f.loop.Resume, f.loop.Keep = 7, steps, resume, train.KeepLast
		if _, err := f.fit(t.Context(), line(40, -2)); err != nil { // each score is worse than the first
			t.Fatal(err)
		}
		return f, after
	}
	whole, after := run("", 42, false)
	if rate := whole.loop.Optimizer.LR(); rate != 0.02/32 || after != 42 {
		t.Errorf("after 6 scores the rate is %v, want that of 5 which were worse; %d calls after steps", rate, after)
	}
	out := filepath.Join(t.TempDir(), "run")
	run(out, 21, false)
	if parts, _ := run(out, 42, true); parts.loop.Optimizer.LR() != whole.loop.Optimizer.LR() || fmt.Sprint(parts.weights()) != fmt.Sprint(whole.weights()) {
		t.Errorf("in two parts the rate is %v, in one %v", parts.loop.Optimizer.LR(), whole.loop.Optimizer.LR())
	}
}

// TestFitNeedsAsPlanned: what a function needs that makes a model and fits it is found by a dry run, to the byte, however the loop learns,
// with a short batch at the end of epochs or without, and however many batches are scored.
func TestFitNeedsAsPlanned(t *testing.T) {
	for name, change := range map[string]func(l *train.Loop){
		"plain": func(*train.Loop) {}, "average": func(l *train.Loop) { l.Average = 0.9 }, "captured": func(l *train.Loop) { l.Capture, l.Steps = true, l.Steps+3 },
		"parts": func(l *train.Loop) { l.Parts = 2 }, "in backward": func(l *train.Loop) { l.InBackward = true }, "best": func(l *train.Loop) { l.Keep, l.EvalEvery = train.KeepBest, 2 },
	} {
		for i, held := range []int{20, 64, 150, 500} {
			fit := func(env *tensor.Env) error {
				m := nn.Sequential{nn.NewLinear(env, 1, 64), nn.Tanh{}, nn.NewLinear(env, 64, 1)}
				loop := train.Loop{Env: env, Model: m, Optimizer: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{}), Keep: train.KeepLast, Data: data.Config{Size: 32}, Steps: 3 + 4*i, Out: filepath.Join(t.TempDir(), "run")}
				change(&loop)
				_, err := train.Fit(t.Context(), loop, line(96+i, 2), line(held, 2), func(b *data.Pair, meters *metric.Meters) *tensor.Tensor {
					y := m.Forward(b.X)
					meters.Numbers(y, b.Y)
					return nn.MSE(y, b.Y)
				})
				if _, missing := os.Stat(loop.Out); missing == nil && !env.Device().Computes() {
					t.Error("a dry run has left a folder")
				}
				return err
			}
			report, err := plan.DryRun("a100-80", fit)
			if err != nil {
				t.Fatal(err)
			}
			for _, device := range []string{"null:a100-80", traintest.Off + ":a100-80", "sim:a100-80"} {
				if executes := strings.HasPrefix(device, "sim"); executes && i == 3 { // which takes long
					continue
				}
				env, err := tensor.Fresh(device)
				if err != nil {
					t.Fatal(err)
				}
				err = fit(env)
				m := env.Device().Memory()
				if err != nil || report.Requested != m.Peak || report.Allocated != m.Allocated.Peak || report.Reserved != m.Reserved.Peak {
					t.Errorf("%s, %d samples held out: %v: a dry run tells %d bytes, %d and %d, and %s %s, of values %d", name, held, err, report.Requested, report.Allocated, report.Reserved, device, m, m.Peak)
				}
			}
		}
	}
}

// TestFitRunsOut: where memory runs out the steps before are kept, the report is left, and the training goes on from them.
func TestFitRunsOut(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	fit := func(parts train.Parts, at int, resume bool) (*train.Result, error) {
		env, err := tensor.Fresh("cpu")
		if err != nil {
			t.Fatal(err)
		}
		m := nn.Sequential{nn.NewLinear(env, 1, 8), nn.Tanh{}, nn.NewLinear(env, 8, 1)}
		steps := 0
		loop := train.Loop{Env: env, Model: m, Optimizer: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{}), Data: data.Config{Size: 16}, Steps: 6, Parts: parts, Out: out, Resume: resume}
		loop.After = func() { steps++ }
		defer env.Device().FailAt(0)
		return train.Fit(t.Context(), loop, line(96, 2), nil, func(b *data.Pair, _ *metric.Meters) *tensor.Tensor {
			if steps == at {
				steps++ // once
				env.Device().FailAt(1)
			}
			return nn.MSE(m.Forward(b.X), b.Y)
		})
	}
	var oom *tensor.OOMError
	var own *train.Error
	if _, err := fit(0, 4, false); !errors.As(err, &oom) || !errors.As(err, &own) || !strings.Contains(own.Hint, "Resume goes on") || !strings.Contains(own.Hint, "oom.json") {
		t.Fatalf("%v, %+v", err, own)
	}
	if r, err := fit(0, -1, true); err != nil || r.Steps != 6 || r.Session != 2 {
		t.Errorf("%v: %+v", err, r)
	}
	out = ""
	if r, err := fit(train.AutoParts, 4, false); err != nil || r.Steps != 6 || r.Log[4].Parts != 2 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestFitProfileResumes: a program that goes on with its run ends it, whether a profile still fits, is there, or has no steps left.
func TestFitProfileResumes(t *testing.T) {
	out, dir := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "profile")
	for i, steps := range []int{9, 20, 22, 22} {
		f := newFitted(t, out)
		var told bytes.Buffer
		f.loop.Steps, f.loop.Resume, f.loop.Watch = steps, true, train.Lines(&told)
		if f.loop.Profile, f.loop.ProfileSteps = dir, 3; i > 1 {
			f.loop.Profile = train.ProfileInRun
		}
		r, err := f.fit(t.Context(), nil)
		if err != nil || r.Steps != steps || (r.Profile != nil) != (i == 0) || strings.Contains(told.String(), "no profile") != (i > 0) {
			t.Errorf("session %d: %v: %+v\n%s", i+1, err, r, &told)
		}
	}
}

// TestFitProfile: a loop leaves a profile in its folder, and steps that a scaler leaves out are told.
func TestFitProfile(t *testing.T) {
	f := newFitted(t, filepath.Join(t.TempDir(), "run"))
	f.loop.Profile, f.loop.ProfileAfter, f.loop.ProfileSteps = train.ProfileInRun, 2, 2
	f.loop.Env, f.loop.Scaler = f.loop.Env.Autocast(dtype.F16), optim.NewLossScaler(optim.LossScalerConfig{Init: 1 << 30})
	r, err := f.fit(t.Context(), nil)
	if err != nil || r.Profile == nil || r.Profile.First != 3 || r.Profile.Err != nil || r.Left == nil || *r.Left == 0 || !r.Log[0].Skipped {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, name := range train.ProfileFiles() {
		if _, err := os.Stat(filepath.Join(f.loop.Out, "profile", name)); err != nil {
			t.Error(err)
		}
	}
}
