package train_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestStepsWaitNowhere forbids waits for the device. Scores, checkpoints and samples, which are asked for, may wait; the
// steps between them may not.
func TestStepsWaitNowhere(t *testing.T) {
	for task, change := range map[string]map[string]any{
		"mlp":  {"data": traintest.Pictures(t, 60, 1, 6, 4), "batch": 8},
		"gpt":  {"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16, "dropout": 0.1, "batch": 2, "clip": 1.0},
		"lstm": {"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "width": 16, "batch": 2},
	} {
		t.Run(task, func(t *testing.T) {
			change["steps"], change["eval-every"], change["save-every"] = 4, 3, 2
			want, _ := traintest.Trained(t, task, "sim:0", change)
			t.Setenv("WARPLINE_SYNC", "error")
			for machine, sim := range map[string]string{"sim:a100-80x8:0": "", "sim:a100-80x9:0": "late"} {
				t.Setenv("WARPLINE_SIM", sim) // names are opened once: each setting has a machine of its own
				c := traintest.Config(t, task, change)
				c.Device, c.Out = machine, filepath.Join(t.TempDir(), "run")
				_, seen := traintest.Run(t, c)
				for i, s := range seen.Steps {
					if s.Step != i+1 || s.Loss != want[i] {
						t.Errorf("%s: step %d is told as %d with loss %v, want %v", sim, i+1, s.Step, s.Loss, want[i])
					}
				}
				if len(seen.Scores) != 2 || seen.Scores[0].Step != 3 || len(seen.Steps) != 4 {
					t.Errorf("%s: %d steps, scores %+v", sim, len(seen.Steps), seen.Scores)
				}
				use := func() (err error) {
					if task != "mlp" {
						_, err = train.Sample(t.Context(), train.SampleConfig{From: c.Out, Device: c.Device, Length: 3}, func(string) error { return nil })
					} else {
						_, err = train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: c.Device})
					}
					return err
				}
				if err := use(); err != nil {
					t.Error(err)
				}
				env, err := tensor.Open(machine)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := env.Try(func(env *tensor.Env) *tensor.Tensor { env.Ones().Item(); return nil }); err == nil {
					t.Error("a run has left the device without the policy that it had")
				}
			}
		})
	}
}

// TestNotANumberLate: a device whose figures come late names the same step as the CPU, and nothing learnt after it stays.
func TestNotANumberLate(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 9, "optimizer": "sgd", "lr": 1e37, "save-every": 1})
	left := func(device string, every int) (text string, log string) {
		c.Device, c.Out, c.SaveEvery = device, filepath.Join(t.TempDir(), "run"), every
		_, err := train.Run(t.Context(), c, nil)
		var known *train.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, "at step") {
			t.Fatalf("%s: error %v", device, err)
		}
		steps, finals := traintest.StepsOf(t, c.Out)
		list, err := filepath.Glob(c.Out + "/checkpoint-*")
		if _, missing := os.Stat(c.Out + "/model.safetensors"); err != nil || missing == nil || finals > 0 {
			t.Errorf("%s: %v; an end or a model was written", device, err)
		}
		if want := len(steps) / every; len(list) != want {
			t.Errorf("%s: %d good steps and checkpoints %v", device, len(steps), list)
		}
		return known.Text, strings.Repeat("|", len(steps))
	}
	t.Setenv("WARPLINE_SIM", "late")
	for _, every := range []int{1, 3} {
		text, steps := left("cpu", every)
		for range 2 {
			if late, n := left("sim:a100-80x10:0", every); late != text || n != steps {
				t.Errorf("with late effects: %s after %s, on the CPU: %s after %s", late, n, text, steps)
			}
		}
	}
}

// TestStepsBeforeAnError: when memory runs out in a step, all steps before it are told and logged, also those whose figures
// were still under way.
func TestStepsBeforeAnError(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	t.Setenv("WARPLINE_SIM", "late")
	env, err := tensor.Open("sim:a100-80x11:0")
	if err != nil {
		t.Fatal(err)
	}
	defer env.Device().SetLimit(0)
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 50})
	c.Device, c.Out = env.Device().Name(), filepath.Join(t.TempDir(), "run")
	watch := &traintest.Choking{Recorder: &traintest.Recorder{}, Device: env.Device(), From: 3}
	var known *train.Error
	if _, err := train.Run(t.Context(), c, watch); !errors.As(err, &known) || !strings.Contains(known.Text, "out of memory") {
		t.Fatalf("error %v", err)
	}
	steps, _ := traintest.StepsOf(t, c.Out)
	if len(steps) != len(watch.Steps) || len(steps) != 5 {
		t.Errorf("%d steps are logged, %d told; want 5: two were under way when the third was told", len(steps), len(watch.Steps))
	}
}

// TestNothingStays: what a run and an evaluation map is unmapped, and threads are as before, whatever the end.
func TestNothingStays(t *testing.T) {
	mapped, threads := hostmem.Mapped().Files, par.Threads()
	same := func(what string) {
		t.Helper()
		if now := hostmem.Mapped().Files; now != mapped {
			t.Errorf("after %s %d bytes of files are mapped, %d before", what, now, mapped)
			mapped = now
		}
		if now := par.Threads(); now != threads {
			t.Errorf("after %s there are %d threads, %d before", what, now, threads)
			threads = now
		}
	}
	path := traintest.IDs(t, 400)
	c := traintest.Config(t, "gpt", map[string]any{"tokens": path, "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 8, "batch": 2, "steps": 1, "threads": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	same("a run")
	if _, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Threads: 1}); err != nil {
		t.Fatal(err)
	}
	same("an evaluation")
	if _, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Skip: 1000, Threads: 1}); err == nil {
		t.Error("nothing was scored")
	}
	same("an evaluation that failed")
	if _, err := train.Sample(t.Context(), train.SampleConfig{From: c.Out, Device: "cpu", Length: 1, Threads: 1}, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	same("a sample")
	for _, context := range []int{8, 1000} { // the folder is taken; the text is too short
		c.Context = context
		if _, err := train.Run(t.Context(), c, nil); err == nil {
			t.Errorf("a run with a context of %d in a folder that is taken", context)
		}
		c.Out = filepath.Join(t.TempDir(), "run")
		same("a run that failed")
	}
}

// TestFirstOfTwoMistakes: of several bad settings the same one is told every time.
func TestFirstOfTwoMistakes(t *testing.T) {
	c := traintest.Config(t, "gpt", map[string]any{"tokens": "x", "vocab": 0, "steps": 0, "epochs": 0})
	for range 50 {
		if _, err := train.Run(t.Context(), c, nil); err == nil || err.Error() != "--steps is 0" {
			t.Fatalf("error %v, want that of --steps", err)
		}
	}
}
