package dryrun_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// peaks are the most bytes of a device's allocator and of its values.
type peaks struct{ allocated, requested, reserved, used int64 }

func peaksOn(t *testing.T, kind string, run func(device string) error) peaks {
	t.Helper()
	return peaksOf(t, kind+":a100-80:2", run)
}

func peaksOf(t *testing.T, name string, run func(device string) error) peaks {
	t.Helper()
	d := traintest.Cleaned(t, name)
	if err := d.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	if m := d.Memory(); m.Reserved.Current > 0 {
		t.Fatalf("%s has %d bytes from before", name, m.Reserved.Current)
	}
	d.ResetPeak()
	if err := run(name); err != nil {
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
	"capture": {change: map[string]any{"capture": true}}, "recompute block": {map[string]any{"recompute": "block"}, "mlp lstm vae"}, // whose activations are what layers keep anyway
	"offload activations": {map[string]any{"offload": "activations"}, "mlp digits lstm vae"}, "offload optimizer": {change: map[string]any{"offload": "optimizer"}},
	"offload both":        {map[string]any{"offload": "both"}, "mlp digits resnet18 lstm unet vae"},
	"recompute attention": {map[string]any{"recompute": "attention"}, "mlp digits resnet18 lstm unet vae"},
	"average":             {map[string]any{"average": 0.9}, "digits lstm unet vae"}, "sgd": {map[string]any{"optimizer": "sgd"}, "lstm"},
	"whole head": {map[string]any{"head": "whole"}, "mlp digits resnet18 unet vae"}, "step-in-backward": {change: map[string]any{"step-in-backward": true}},
	"freeze": {change: map[string]any{"freeze": "*weight"}}, "lora": {map[string]any{"lora": 3}, "unet"}, "keep best": {change: map[string]any{"keep": "best", "optimizer": "sgd"}},
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
		c := traintest.Config(t, task, change)
		c.Device = device
		_, err := train.Run(t.Context(), c, nil)
		return err
	}
}

// walkedTasks are the tasks of the walks.
func walkedTasks(t *testing.T) map[string]*walked {
	return map[string]*walked{
		"mlp":      {map[string]any{"data": traintest.Pictures(t, 300, 1, 28, 10)}, []int{2, 38, 128}, map[string]any{"data": traintest.Pictures(t, 60, 1, 8, 4), "batch": 16}},
		"digits":   {map[string]any{"data": traintest.Pictures(t, 300, 1, 28, 10)}, []int{2, 38, 128}, map[string]any{"data": traintest.Pictures(t, 60, 1, 12, 4), "batch": 16}},
		"resnet18": {map[string]any{"data": traintest.Pictures(t, 80, 3, 32, 10)}, []int{4, 10, 32}, map[string]any{"data": traintest.Pictures(t, 20, 3, 8, 3), "batch": 4, "steps": 1}},
		"gpt":      {map[string]any{"tokens": traintest.IDs(t, 20_000), "vocab": 7, "context": 48}, []int{2, 8, 24}, map[string]any{"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 16, "layers": 2, "width": 32, "batch": 4}},
		"unet":     {map[string]any{}, []int{2, 6, 16}, map[string]any{"batch": 2, "steps": 1}},
		"vae":      {map[string]any{"data": traintest.Pictures(t, 300, 1, 28, 10)}, []int{2, 38, 128}, map[string]any{"data": traintest.Pictures(t, 60, 1, 8, 4), "batch": 16}},
		"lstm":     {map[string]any{"tokens": traintest.IDs(t, 20_000), "vocab": 7, "context": 24, "width": 64}, []int{2, 8, 24}, map[string]any{"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 8, "layers": 2, "width": 16, "batch": 4}},
	}
}

// TestDryMemory walks tasks, batches and levers: a device that computes nothing has the peaks of the engine on the simulator's
// driver, to the byte; of one cell a task on the simulator that executes. Each lever has peaks of its own.
func TestDryMemory(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 24)
	same := func(t *testing.T, kind string, run func(device string) error) peaks {
		dry, real := peaksOn(t, "null", run), peaksOn(t, kind, run)
		if dry != real {
			t.Errorf("peaks %+v, on %s %+v", dry, kind, real)
		}
		return dry
	}
	for task, of := range walkedTasks(t) {
		seen := map[peaks]string{}
		for lever, how := range levers {
			for i, batch := range of.batches {
				name := fmt.Sprintf("%s/%s/%d", task, lever, batch)
				if slices.Contains(strings.Fields(how.not), task) || !spread.Takes(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					p := same(t, traintest.Off, of.on(t, task, of.change, how.change, map[string]any{"steps": 4, "batch": batch}))
					if other := seen[p]; i == len(of.batches)-1 && other != "" && other != lever {
						t.Errorf("%s has the peaks of %s", lever, other)
					}
					seen[p] = lever
				})
			}
		}
		if long := task == "resnet18" || task == "unet"; spread.All() || !long && spread.Takes(task+"/executed") { // a minute each
			t.Run(task+"/executed", func(t *testing.T) { same(t, "sim", of.on(t, task, map[string]any{"steps": 3}, of.small)) })
		}
		if !spread.Takes(task + "/evaluation") {
			continue
		}
		t.Run(task+"/evaluation", func(t *testing.T) {
			c := traintest.Config(t, task, of.small)
			c.Device, c.Steps, c.Out = "cpu", 1, filepath.Join(t.TempDir(), "run")
			traintest.Run(t, c)
			same(t, traintest.Off, func(device string) error {
				_, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: device})
				return err
			})
		})
	}
}

// TestDryMemoryOfOptimizers: with every optimizer a device that computes nothing has the peaks of the engine on the simulator's
// driver, to the byte.
func TestDryMemoryOfOptimizers(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	of := walkedTasks(t)["mlp"]
	for _, o := range recipe.Optimizers {
		t.Run(o.Name, func(t *testing.T) {
			run := of.on(t, "mlp", of.small, map[string]any{"optimizer": o.Name, "steps": 3})
			if dry, real := peaksOn(t, "null", run), peaksOn(t, traintest.Off, run); dry != real {
				t.Errorf("peaks %+v, on %s %+v", dry, traintest.Off, real)
			}
		})
	}
}

// TestDryMemoryOfCPU walks tasks and levers: a run that computes on the CPU has as many bytes of values at once at most as one
// that computes nothing, kernels' scratch memory apart, and figures of steps, which stay for as long as the host takes to read them:
// single numbers, and of a U-Net its counts of pixels by class and by confidence.
// Captured steps are left out, whose memory has scratch in it, and what goes to the host's memory, which is the CPU's own.
func TestDryMemoryOfCPU(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 18)
	for task, of := range walkedTasks(t) {
		for lever, how := range levers {
			name := task + "/" + lever
			if lever == "capture" || how.change["offload"] != nil || slices.Contains(strings.Fields(how.not), task) || !spread.Takes(name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				run := of.on(t, task, map[string]any{"steps": 4}, of.small, how.change)
				figure := int64(4)
				if task == "unet" {
					figure = 15 * 3 * 8 // bins of confidence, with three sums each
				}
				cpu, null := valuesOn(t, "cpu", figure, run), valuesOn(t, "null:a100-80:2", figure, run)
				if cpu != null || cpu == 0 {
					t.Errorf("%d bytes on the CPU, %d where nothing is computed", cpu, null)
				}
			})
		}
	}
}

// valuesOn is the most that a run adds to a device's values at once, but for those of up to so many bytes, which are figures.
func valuesOn(t *testing.T, name string, figure int64, run func(device string) error) int64 {
	t.Helper()
	traintest.Cleaned(t, name)
	env, err := tensor.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	v := values{figure: figure, sizes: map[uint64]int64{}}
	stop := env.Device().Observe(v.see, device.KindAlloc, device.KindFreeRequested, device.KindRelabel)
	defer stop()
	if err := run(name); err != nil {
		t.Fatal(err)
	}
	return v.peak
}

// values counts bytes in use that no kernel works in.
type values struct {
	sync.Mutex
	sizes       map[uint64]int64
	inUse, peak int64
	figure      int64
}

func (v *values) see(e *device.Event) {
	v.Lock()
	defer v.Unlock()
	if e.Kind != device.KindRelabel { // which tells what the block that came before it is
		v.peak = max(v.peak, v.inUse)
	}
	switch {
	case e.Kind == device.KindAlloc && e.Bytes <= v.figure:
	case e.Kind == device.KindAlloc:
		v.sizes[e.Mem.Addr] = e.Bytes
		v.inUse += e.Bytes
	case e.Kind == device.KindFreeRequested || e.What == device.LabelWorkspace:
		v.inUse -= v.sizes[e.Mem.Addr]
		delete(v.sizes, e.Mem.Addr)
	}
}
