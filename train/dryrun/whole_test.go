package dryrun_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// schedules are how long runs are and what comes between their steps.
var schedules = map[string]struct {
	change map[string]any
	not    string // levers that cannot
}{
	"one step": {change: map[string]any{"steps": 1}}, "two steps": {change: map[string]any{"steps": 2}}, "nine steps": {change: map[string]any{"steps": 9}},
	"epochs":           {change: map[string]any{"epochs": 7}}, // so that a captured step with a short batch is recorded, and done again
	"scores":           {change: map[string]any{"steps": 17, "eval-every": 4}},
	"a score a step":   {change: map[string]any{"steps": 5, "eval-every": 1}},
	"a score an epoch": {change: map[string]any{"epochs": 3, "keep": "best"}, not: "sequential"},
	"checkpoints":      {change: map[string]any{"steps": 17, "eval-every": 7, "save-every": 3}},
	"looks":            {change: map[string]any{"steps": 19, "eval-every": 5, "statistics": 3}, not: "capture much anomaly"},
}

// otherWays are what runs can do otherwise beside levers, where their tasks can. Those with init begin with weights of a run.
var otherWays = map[string]struct {
	change map[string]any
	not    string
}{
	"accumulate-auto": {change: map[string]any{"accumulate": "auto"}}, "recompute-auto": {map[string]any{"recompute": "auto"}, "lstm unet"},
	"fp16": {change: map[string]any{"amp": "fp16", "clip": 1}}, "bf16": {change: map[string]any{"amp": "bf16", "params": "bf16", "average": 0.0}}, "tf32": {change: map[string]any{"amp": "tf32"}},
	"anomaly": {change: map[string]any{"anomaly": true}}, "sequential": {map[string]any{"order": "sequential"}, "lstm"},
	"init": {map[string]any{"init": ""}, "unet vae resnet18"}, "init-lora": {map[string]any{"init": "", "lora": 2}, "unet vae resnet18"},
	"much": {map[string]any{"capture": true, "average": 0.9, "accumulate": 2}, "digits lstm unet vae"},
}

// wholeTasks are tasks with sets that are scored in several batches, the last of them short.
func wholeTasks(t *testing.T) map[string]*walked {
	return map[string]*walked{
		"mlp":      {map[string]any{"data": traintest.Pictures(t, 5300, 1, 8, 10)}, []int{1024, 700}, nil},
		"digits":   {map[string]any{"data": traintest.Pictures(t, 400, 1, 28, 10)}, []int{38, 128}, nil},
		"resnet18": {map[string]any{"data": traintest.Pictures(t, 80, 3, 32, 10)}, []int{10}, nil},
		"gpt":      {map[string]any{"tokens": traintest.IDs(t, 60_000), "vocab": 7, "context": 48, "layers": 2, "width": 32}, []int{150}, nil},
		"unet":     {map[string]any{}, []int{16}, nil},
		"vae":      {map[string]any{"data": traintest.Pictures(t, 3300, 1, 8, 10)}, []int{1024, 600}, nil},
		"lstm":     {map[string]any{"tokens": traintest.IDs(t, 9_000), "vocab": 7, "context": 12, "width": 32}, []int{60}, nil},
	}
}

// asWhole compares a dry run with the whole run, on a device that computes nothing and on the engine for GPUs over a driver that executes
// nothing.
func asWhole(t *testing.T, task string, change map[string]any) {
	t.Helper()
	c, card := traintest.Config(t, task, change), "a100-80"
	if task == "unet" {
		card = "t4" // the search for the largest batch makes batches that fill it
	}
	d, err := train.DryRun(t.Context(), c, []string{card})
	if err != nil {
		t.Fatal(err)
	}
	r := d.Reports[0]
	if r.PeaksOf != 0 {
		t.Errorf("%v: peaks are of %d steps only", change, r.PeaksOf)
	}
	for _, kind := range []string{"null", traintest.Off} {
		whole := peaksOf(t, kind+":"+card+":2", func(device string) error {
			c := c
			c.Device = device
			_, err := train.Run(t.Context(), c, nil)
			return err
		})
		if dry := (peaks{r.Allocated, whole.requested, r.Reserved, r.Requested}); dry != whole {
			t.Errorf("%v: a dry run tells %+v, the run on %s has %+v", change, dry, kind, whole)
		}
	}
}

// TestDryRunIsTheWholeRun walks tasks, levers, batches and schedules: a dry run has the peaks of all steps and scores, to the byte.
func TestDryRunIsTheWholeRun(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 480)
	ways := maps.Clone(levers)
	maps.Copy(ways, otherWays)
	for task, of := range wholeTasks(t) {
		spread := spread
		if task == "unet" && !spread.All() {
			spread = spread.Of(20) // each takes ten seconds: only .ci/walk is sure to try one
		}
		trained := sync.OnceValue(func() string {
			c := traintest.Config(t, task, of.change)
			c.Device, c.Steps, c.Batch, c.Out = "cpu", 1, of.batches[0], filepath.Join(t.TempDir(), "run")
			traintest.Run(t, c)
			return c.Out
		})
		for lever, how := range ways {
			for schedule, when := range schedules {
				for _, batch := range of.batches {
					name := fmt.Sprintf("%s/%s/%s/%d", task, lever, schedule, batch)
					if slices.Contains(strings.Fields(how.not), task) || slices.Contains(strings.Fields(when.not), lever) || !spread.Takes(name) {
						continue
					}
					all := map[string]any{"batch": batch}
					for _, change := range []map[string]any{of.change, when.change, how.change} {
						maps.Copy(all, change)
					}
					if all["init"] != nil {
						all["init"] = trained()
					}
					t.Run(name, func(t *testing.T) { asWhole(t, task, all) })
				}
			}
		}
	}
}

// TestDryRunIsTheWholeRunOfOptimizers is the same with every optimizer.
func TestDryRunIsTheWholeRunOfOptimizers(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 4)
	data := traintest.Pictures(t, 330, 1, 8, 4)
	for _, o := range recipe.Optimizers {
		if spread.Takes(o.Name) {
			t.Run(o.Name, func(t *testing.T) {
				asWhole(t, "mlp", map[string]any{"data": data, "batch": 130, "optimizer": o.Name, "epochs": 4, "eval-every": 5})
			})
		}
	}
}
