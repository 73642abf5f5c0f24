package train_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// off is a kind of devices: the engine for GPUs on a simulated driver that executes nothing.
const off = "off"

func init() {
	device.Register(off, device.Engine{Cards: cards.Names(), Open: func(n device.Name) (device.Device, error) {
		s, err := simcuda.New(simcuda.Config{Card: n.Card, Off: true})
		if err != nil {
			return nil, err
		}
		return cuda.New(s.API(), 0, n.String(), cuda.Options{})
	}})
}

// peaks are the most bytes of a device's allocator and of its values.
type peaks struct{ allocated, requested, reserved, used int64 }

// number tells devices of a kind and card apart: each run has one that nothing used before.
var number int

func peaksOn(t *testing.T, kind string, run func(device string) error) peaks {
	t.Helper()
	number++
	name := fmt.Sprintf("%s:a100-80:%d", kind, number)
	if kind == "sim" {
		name = fmt.Sprintf("sim:a100-80x16:%d", number%16)
	}
	env, err := tensor.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	d := env.Device()
	d.Collect()
	err = errors.Join(d.EmptyCache(), run(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	m := d.Memory()
	return peaks{m.Allocated.Peak, m.Requested.Peak, m.Reserved.Peak, m.Peak}
}

// levers are what a run can do otherwise, where its task can and does not anyway.
var levers = map[string]struct {
	change map[string]any
	not    string // tasks that cannot, or that do so anyway
}{
	"plain": {}, "amp": {change: map[string]any{"amp": "bf16"}}, "accumulate": {change: map[string]any{"accumulate": 2}},
	"capture": {change: map[string]any{"capture": true}}, "recompute": {map[string]any{"recompute": true}, "mlp digits resnet18"},
	"average": {map[string]any{"average": 0.9}, "digits"}, "sgd": {change: map[string]any{"optimizer": "sgd"}},
	"whole head": {map[string]any{"head": "whole"}, "mlp digits resnet18"},
}

// walked is a task of TestDryMemory.
type walked struct {
	change  map[string]any
	batches []int
	small   map[string]any // what the simulator executes
}

// on is a run of the task on a device that is chosen later.
func (w *walked) on(t *testing.T, task string, changes ...map[string]any) func(device string) error {
	change := map[string]any{}
	for _, c := range changes {
		maps.Copy(change, c)
	}
	return func(device string) error {
		c := config(t, task, change)
		c.Device = device
		_, err := train.Run(t.Context(), c, nil)
		return err
	}
}

// TestDryMemory walks tasks, batches and levers: a device that computes nothing has the peaks of the engine on the simulator's
// driver, to the byte; of one cell a task on the simulator that executes. Each lever has peaks of its own.
func TestDryMemory(t *testing.T) {
	tasks := map[string]*walked{
		"mlp":      {map[string]any{"data": pictures(t, 300, 1, 28, 10)}, []int{2, 38, 128}, map[string]any{"data": pictures(t, 60, 1, 8, 4), "batch": 16}},
		"digits":   {map[string]any{"data": pictures(t, 300, 1, 28, 10)}, []int{2, 38, 128}, map[string]any{"data": pictures(t, 60, 1, 12, 4), "batch": 16}},
		"resnet18": {map[string]any{"data": pictures(t, 80, 3, 32, 10)}, []int{4, 10, 32}, map[string]any{"data": pictures(t, 20, 3, 8, 3), "batch": 2, "steps": 1}},
		"gpt":      {map[string]any{"tokens": ids(t, 20_000), "vocab": 7, "context": 48}, []int{2, 8, 24}, map[string]any{"tokens": ids(t, 700), "vocab": 7, "context": 16, "layers": 2, "width": 32, "batch": 4}},
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 12)
	same := func(t *testing.T, kind string, run func(device string) error) peaks {
		dry, real := peaksOn(t, "null", run), peaksOn(t, kind, run)
		if dry != real {
			t.Errorf("peaks %+v, on %s %+v", dry, kind, real)
		}
		return dry
	}
	for task, of := range tasks {
		seen := map[peaks]string{}
		for lever, how := range levers {
			for i, batch := range of.batches {
				name := fmt.Sprintf("%s/%s/%d", task, lever, batch)
				if slices.Contains(strings.Fields(how.not), task) || !spread.Takes(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					p := same(t, off, of.on(t, task, of.change, how.change, map[string]any{"steps": 4, "batch": batch}))
					if other := seen[p]; i == len(of.batches)-1 && other != "" {
						t.Errorf("%s has the peaks of %s", lever, other)
					}
					seen[p] = lever
				})
			}
		}
		if spread.Takes(task + "/executed") {
			t.Run(task+"/executed", func(t *testing.T) { same(t, "sim", of.on(t, task, map[string]any{"steps": 3}, of.small)) })
		}
		if !spread.Takes(task + "/evaluation") {
			continue
		}
		t.Run(task+"/evaluation", func(t *testing.T) {
			c := config(t, task, of.small)
			c.Device, c.Steps, c.Out = "cpu", 1, filepath.Join(t.TempDir(), "run")
			mustRun(t, c)
			same(t, off, func(device string) error {
				_, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: device})
				return err
			})
		})
	}
}
