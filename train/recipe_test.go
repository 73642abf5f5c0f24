package train_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestRecipes: every optimizer with every course of the rate, told other settings than its own, ends in two parts where
// it ends in one.
func TestRecipes(t *testing.T) {
	data, spread := traintest.Pictures(t, 40, 1, 6, 3), testutil.NewSpread(t, testutil.Seed(t), 4)
	for _, o := range recipe.Optimizers {
		for _, s := range recipe.Schedules {
			if !spread.Takes(o.Name + "/" + s.Name) {
				continue
			}
			t.Run(o.Name+"/"+s.Name, func(t *testing.T) {
				change := map[string]any{"data": data, "batch": 8, "steps": 3, "optimizer": o.Name, "schedule": s.Name}
				if s.Ends {
					change["schedule-steps"] = 6
				}
				for _, own := range append(o.Settings, s.Settings...) {
					change[own.Name] = own.Least + (min(own.Below, own.Least+2)-own.Least)/4
				}
				c := traintest.Config(t, "mlp", change)
				c.Steps, c.Out = 6, filepath.Join(t.TempDir(), "whole")
				traintest.Run(t, c)
				want := traintest.Read(t, c.Out+"/model.safetensors")
				c.Steps, c.Out = 3, filepath.Join(t.TempDir(), "parts")
				traintest.Run(t, c)
				again := traintest.Config(t, "mlp", map[string]any{"steps": 6})
				again.Out, again.Resume = c.Out, true
				traintest.Run(t, again)
				if traintest.Read(t, c.Out+"/model.safetensors") != want {
					t.Error("3 and 3 steps end elsewhere than 6")
				}
			})
		}
	}
}

// TestOwnAverage: what a run with a schedule-free optimizer leaves and scores is its average, finished or cut off, and not the weights
// that train.
func TestOwnAverage(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 8, "steps": 8, "lr": 0.01, "optimizer": "schedulefree", "device": "cpu"})
	c.Out = filepath.Join(t.TempDir(), "run")
	result, _ := traintest.Run(t, c)
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	load := func(path string) map[string]*tensor.Tensor { return golden.Tensors(t, env, c.Out+"/"+path) }
	left, trained, state := load("model.safetensors"), load("checkpoint-8/model.safetensors"), load("checkpoint-8/optimizer.safetensors")
	compared := 0
	for path, x := range left {
		y, z := trained["model."+path].Floats(), state[path+".z"].Floats()
		apart := 0.
		for i, v := range x.Floats() {
			if want := y[i] + (z[i]-y[i])*(1-1/0.9); math.Abs(v-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("%s[%d] is %v, the average %v", path, i, v, want)
			}
			apart = max(apart, math.Abs(v-y[i]))
		}
		if apart > 1e-4 {
			compared++
		}
	}
	if compared == 0 {
		t.Error("the average is what trains")
	}
	score := func() float64 {
		r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Loss
	}
	finished := score()
	if math.Abs(finished-*result.ValLoss) > 1e-6 {
		t.Errorf("it scores %v, and said %v", finished, *result.ValLoss)
	}
	log := traintest.Read(t, c.Out+"/log.jsonl")
	end := strings.LastIndex(strings.TrimSpace(log), "\n") + 1
	if err := errors.Join(os.WriteFile(c.Out+"/log.jsonl", []byte(log[:end]), 0o666), os.Remove(c.Out+"/model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if cut := score(); cut != finished {
		t.Errorf("cut off it scores %v, finished %v", cut, finished)
	}
	_, err = train.Run(t.Context(), traintest.Config(t, "mlp", map[string]any{"optimizer": "schedulefree", "average": 0.9}), nil)
	if err == nil || !strings.Contains(err.Error(), "--average") {
		t.Errorf("two means: %v", err)
	}
}

// TestForeignOptions: a setting of another optimizer or schedule is refused by name, with whose it is.
func TestForeignOptions(t *testing.T) {
	for _, f := range recipe.Flags() {
		for _, o := range recipe.Optimizers {
			own := false
			for _, owner := range f.Owners {
				own = own || owner.Flag != "optimizer" || owner.Name == o.Name
			}
			if own {
				continue
			}
			_, err := train.Run(t.Context(), traintest.Config(t, "mlp", map[string]any{"optimizer": o.Name, f.Name: f.Default}), nil)
			if err == nil || !strings.HasPrefix(err.Error(), "--"+f.Name+" is for --optimizer ") || !strings.HasSuffix(err.Error(), o.Name) {
				t.Errorf("--%s with %s: %v", f.Name, o.Name, err)
			}
		}
	}
}

// TestOldSettings goes on with a run whose config.json names the settings of all optimizers, as it did before.
func TestOldSettings(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 3, "optimizer": "sgd", "momentum": 0.9})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	path := c.Out + "/config.json"
	old := strings.Replace(traintest.Read(t, path), `"batch": 8`, `"batch": 8, "beta1": 0.9, "beta2": 0.999, "eps": 1e-08`, 1)
	if !strings.Contains(old, "beta2") {
		t.Fatalf("%s has no batch:\n%s", path, old)
	}
	if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	again := traintest.Config(t, "mlp", map[string]any{"steps": 5})
	again.Out, again.Resume = c.Out, true
	traintest.Run(t, again)
	if again = traintest.Config(t, "mlp", map[string]any{"momentum": 0.5}); again.Options["momentum"] != 0.5 {
		t.Fatalf("options %v", again.Options)
	}
	again.Out, again.Resume = c.Out, true
	if _, err := train.Run(t.Context(), again, nil); err == nil || !strings.Contains(err.Error(), "0.5") || !strings.Contains(err.Error(), "0.9") {
		t.Errorf("another momentum: %v", err)
	}
}
