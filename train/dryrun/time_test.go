package dryrun_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// timed and counted are kinds of devices: simulated GPUs with a virtual clock. Timed ones execute all, counted ones some blocks of each
// kind of launch.
const (
	timed   = "timed"
	counted = "counted"
)

func init() {
	for kind, off := range map[string]bool{timed: false, counted: true} {
		device.Register(kind, device.Engine{Open: func(n device.Name) (device.Device, error) {
			s, err := simcuda.New(simcuda.Config{Card: "a100-80", Clock: true, Off: off})
			if err != nil {
				return nil, err
			}
			if ended := last; ended != nil {
				ended.DevicePrimaryCtxReset(0)
			}
			last = s.API()
			return cuda.New(last, 0, n.String(), cuda.Options{})
		}})
	}
}

// last is the driver of the newest of them: each is of use for one run, and what it holds is looked through in every collection.
var last *driver.API

// stepper notes the host's virtual time at the end of each step.
type stepper struct {
	traintest.Recorder
	clock device.Clock
	at    []time.Duration
}

func (s *stepper) Step(x train.Step) {
	s.Recorder.Step(x)
	now, _ := s.clock.HostTime()
	s.at = append(s.at, now)
}

// clocks tells devices apart: each run has one that nothing used before.
var clocks int

// stepTime is how long a step takes on the virtual clock of a device, in the set's order.
func stepTime(t *testing.T, c train.Config, kind string) float64 {
	t.Helper()
	c.Order, c.Given["order"], c.Steps = "sequential", true, 5
	at := 1
	if c.Capture {
		c.Steps, at = 10, 6 // after what is recorded
	}
	return tookFrom(t, c, kind, at)
}

// tookFrom is how long what is between the ends of a step, from 0, and the next takes on the virtual clock of a device.
func tookFrom(t *testing.T, c train.Config, kind string, at int) float64 {
	t.Helper()
	clocks++
	c.Device = device.Name{Kind: kind, Index: clocks}.String()
	env, err := tensor.Open(c.Device)
	if err != nil {
		t.Fatal(err)
	}
	clock, _ := env.Device().Clock()
	s := &stepper{clock: clock}
	if _, err := train.Run(t.Context(), c, s); err != nil {
		t.Fatal(err)
	}
	return (s.at[at+1] - s.at[at]).Seconds()
}

// TestSampledClock: a simulated card of which a few blocks of each kind of launch run has the times of one that executes all.
func TestSampledClock(t *testing.T) {
	if !testutil.Alone(t) { // what is compiled for a card of its own would slow other tests' collections
		return
	}
	for task, change := range map[string]map[string]any{
		"mlp": {"data": traintest.Pictures(t, 200, 1, 28, 10), "batch": 64},
		"gpt": {"tokens": traintest.IDs(t, 5_000), "vocab": 7, "batch": 3, "layers": 1, "context": 48},
	} {
		c := traintest.Config(t, task, change)
		all, some := stepTime(t, c, timed), stepTime(t, c, counted)
		t.Logf("%s: %.4g s, of some blocks %.4g s: %+.2f %%", task, all, some, 100*(some/all-1))
		if math.Abs(some/all-1) > 0.01 {
			t.Errorf("%s: %.4g s, of some blocks %.4g s", task, all, some)
		}
	}
}

// TestDryTime compares the modelled step of a dry run with that of the simulated GPU's clock, for sizes that the model's numbers are
// not from.
func TestDryTime(t *testing.T) {
	if !testutil.Alone(t) { // what is compiled for a card of its own would slow other tests' collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 24)
	type row struct {
		task   string
		change map[string]any
	}
	rows := []row{
		{"mlp", map[string]any{"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 64}},
		{"mlp", map[string]any{"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 200}},
		{"digits", map[string]any{"data": traintest.Pictures(t, 100, 1, 28, 10), "batch": 24}},
		{"digits", map[string]any{"data": traintest.Pictures(t, 100, 1, 28, 10), "batch": 50, "amp": "bf16"}},
		{"resnet18", map[string]any{"data": traintest.Pictures(t, 24, 3, 32, 10), "batch": 3}},
		{"resnet18", map[string]any{"data": traintest.Pictures(t, 24, 3, 32, 10), "batch": 12}},
		{"gpt", map[string]any{"tokens": traintest.IDs(t, 5_000), "vocab": 7, "batch": 5, "layers": 2}},
		{"gpt", map[string]any{"tokens": traintest.IDs(t, 5_000), "vocab": 7, "batch": 4, "layers": 1, "capture": true}},
		{"gpt", map[string]any{"tokens": traintest.IDs(t, 9_000), "vocab": 300, "batch": 12, "layers": 1, "width": 192, "heads": 3, "context": 80}},
		{"gpt", map[string]any{"tokens": traintest.IDs(t, 9_000), "vocab": 700, "batch": 6, "layers": 1, "width": 192, "heads": 3, "context": 112, "amp": "bf16"}},
		{"digits", map[string]any{"data": traintest.Pictures(t, 100, 1, 28, 10), "batch": 50, "amp": "tf32"}},
	}
	name := func(r row) string { return fmt.Sprint(r.task, r.change["batch"], r.change["amp"]) }
	// A ResNet-18 takes ten times as long as others: where it is not drawn, it is not the one that a run takes at least.
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.task == "resnet18" && !spread.Takes(name(r)) })
	for _, row := range testutil.Some(spread, rows, name) {
		c := traintest.Config(t, row.task, row.change)
		want := stepTime(t, c, counted)
		d, err := train.DryRun(t.Context(), c, []string{"a100-80"})
		if err != nil {
			t.Fatal(err)
		}
		r := d.Reports[0]
		if r.Step == nil {
			t.Fatalf("%s has no time", row.task)
		}
		got := r.Step
		t.Logf("%s of %d: a step takes %.4g s on the virtual clock, %.4g s by a dry run: %+.1f %%", row.task, c.Batch, want, got.Total, 100*(got.Total/want-1))
		if math.Abs(got.Total/want-1) > 0.05 || len(r.NotCounted) > 0 {
			t.Errorf("%s of %d: %.4g s on the virtual clock, %.4g by a dry run; not counted: %v", row.task, c.Batch, want, got.Total, r.NotCounted)
		}
	}
}

// TestDryWhole compares the modelled time of a whole run that is scored behind each step, in five batches, with that of the simulated
// GPU's clock, which scores all of them.
func TestDryWhole(t *testing.T) {
	if !testutil.Alone(t) { // what is compiled for a card of its own would slow other tests' collections
		return
	}
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 12_000, 1, 4, 4), "batch": 64, "eval-every": 1})
	c.Steps = 5
	want := tookFrom(t, c, timed, 2)
	d, err := train.DryRun(t.Context(), c, []string{"a100-80"})
	if err != nil {
		t.Fatal(err)
	}
	whole, _, _ := d.Whole(d.Reports[0])
	got := whole / float64(d.Steps)
	t.Logf("a step with its score takes %.4g s on the virtual clock, %.4g s by a dry run, %.4g s of them the step", want, got, d.Reports[0].Step.Total)
	if math.Abs(got/want-1) > 0.1 || d.Scored != 5*d.Steps {
		t.Errorf("a step with its score, of %d batches in all, takes %.4g s on the virtual clock, %.4g s by a dry run", d.Scored, want, got)
	}
}

// TestDryTimeKnowsKernels walks what the command trains, in all ways and precisions: each kernel has been counted. One that has not is named.
func TestDryTimeKnowsKernels(t *testing.T) {
	if !testutil.Alone(t) { // what is compiled for a card of its own would slow other tests' collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 144)
	for task, change := range map[string]map[string]any{
		"mlp":      {"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 24},
		"digits":   {"data": traintest.Pictures(t, 300, 1, 28, 10), "batch": 24},
		"resnet18": {"data": traintest.Pictures(t, 60, 3, 32, 10), "batch": 6},
		"resnet50": {"data": traintest.Pictures(t, 60, 3, 32, 10), "batch": 6},
		"gpt":      {"tokens": traintest.IDs(t, 9_000), "vocab": 65, "batch": 6},
	} {
		for lever, how := range levers {
			if slices.Contains(strings.Fields(how.not), strings.Replace(task, "50", "18", 1)) {
				continue
			}
			for _, amp := range train.AMPs {
				if amp == string(train.AMPFP16) && lever == "step-in-backward" || !spread.Takes(task+" "+lever+" "+amp) {
					continue // which do not go together
				}
				all := maps.Clone(change)
				all["amp"] = amp
				maps.Copy(all, how.change)
				d, err := train.DryRun(t.Context(), traintest.Config(t, task, all), []string{"a100-80"})
				if err != nil {
					t.Fatal(err)
				}
				if r := d.Reports[0]; len(r.NotCounted) > 0 || r.Step == nil || r.Step.Total <= 0 {
					t.Errorf("%s, %s, %s: %v are not in internal/counts/kernels.json, step %+v: add a program that has them to bench/dryrun, and run it", task, lever, amp, r.NotCounted, r.Step)
				}
			}
		}
	}
}
