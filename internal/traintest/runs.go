package traintest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// Cars and CarsTest are tables of bench/sklearn/tabular.py, as the package train sees them.
const (
	Cars     = "testdata/cars/cars.csv"
	CarsTest = "testdata/cars/cars_test.csv"
)

// Read is the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// StepsOf lists the steps of a log.
func StepsOf(t *testing.T, dir string) (steps []int, finals int) {
	t.Helper()
	for text := range strings.Lines(Read(t, dir+"/log.jsonl")) {
		var l struct {
			Step  int
			Final bool
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if l.Final {
			finals++
		} else {
			steps = append(steps, l.Step)
		}
	}
	return steps, finals
}

// LossesOf are those of a run of a task, with changes on top of each other.
func LossesOf(t *testing.T, task string, changes ...map[string]any) (all []float64) {
	t.Helper()
	change := map[string]any{"steps": 4, "device": "cpu"}
	for _, c := range changes {
		maps.Copy(change, c)
	}
	_, watch := Run(t, Config(t, task, change))
	for _, s := range watch.Steps {
		all = append(all, s.Loss)
	}
	return all
}

// Trained runs a task on a device and returns the losses of its steps and the bytes of the weights.
func Trained(t *testing.T, task, device string, change map[string]any) (losses []float64, weights []byte) {
	t.Helper()
	c := Config(t, task, change)
	c.Device, c.Out = device, filepath.Join(t.TempDir(), "run")
	_, r := Run(t, c)
	for _, s := range r.Steps {
		losses = append(losses, s.Loss)
	}
	weights, err := os.ReadFile(filepath.Join(c.Out, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return losses, weights
}

// Smallest are settings with which each task is soon done.
func Smallest(t *testing.T, root string) map[string]map[string]any {
	return map[string]map[string]any{
		"mlp":      {"data": Pictures(t, 60, 1, 12, 4), "batch": 16},
		"digits":   {"data": Pictures(t, 60, 1, 12, 4), "batch": 16},
		"resnet18": {"data": Pictures(t, 24, 3, 16, 10), "batch": 8, "init": filepath.Join(root, "model/testdata/resnet/init.safetensors")},
		"resnet50": {"data": Pictures(t, 24, 3, 16, 10), "batch": 8, "init": filepath.Join(root, "model/testdata/resnet50/init.safetensors")},
		"triage":   {"batch": 2, "order": "sequential"},
		"vit":      {"data": Pictures(t, 24, 1, 8, 4), "batch": 4},
		"tabular":  {"data": filepath.Join(root, "train", Cars), "target": "sold", "batch": 64, "patience": 1, "eval-every": 2},
		"gpt": {"tokens": IDs(t, 700), "vocab": 7, "context": 16, "layers": 3, "heads": 2, "width": 16, "dropout": 0.1, "batch": 4,
			"clip": 1.0},
		"unet": {"batch": 2, "order": "sequential"},
		"vae":  {"data": Pictures(t, 60, 1, 8, 4), "batch": 16},
		"lstm": {"tokens": IDs(t, 300), "vocab": 7, "context": 8, "layers": 2, "width": 16, "dropout": 0.1, "batch": 4},
	}
}

// Skipped leave few samples to score of sets that are drawn, which have no smaller form.
var Skipped = map[string]int{"triage": 996, "unet": 196}

// Generating are the tasks whose models write or draw.
func Generating() []string { return append(zoo.Tasks(true), zoo.Painters()...) }

// Choking takes a device's memory away after some steps.
type Choking struct {
	*Recorder
	Device *tensor.Device
	From   int // the step after which it has none
}

// Step implements [train.Watcher].
func (c *Choking) Step(s train.Step) {
	if c.Recorder.Step(s); s.Step == c.From {
		c.Device.SetLimit(1)
	}
}
