package levers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// limited is a device that is nearly full when a run begins its steps.
func limited(t *testing.T, device string, limit int64) {
	t.Helper()
	dev := traintest.Cleaned(t, device)
	dev.SetLimit(limit)
	t.Cleanup(func() { dev.SetLimit(0) })
}

// give changes a run as the flags of a lever do.
func give(t *testing.T, c *train.Config, flags string) {
	t.Helper()
	for _, f := range strings.Split(flags, "--")[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(f), " ")
		n, _ := strconv.Atoi(value)
		switch name {
		case "accumulate":
			c.Accumulate = train.Parts(n)
		case "batch":
			c.Batch = n
		case "recompute":
			c.Recompute = train.Recompute(value)
		case "offload":
			c.Offload = train.Offload(value)
		case "step-in-backward":
			c.InBackward = true
		case "head":
			c.Head = train.Head(value)
		case "amp":
			c.AMP = train.AMPBF16
		case "context":
			c.Context = n
		case "average":
			c.Average = 0
		case "optimizer":
			c.Optimizer, c.Options = value, nil
		default:
			t.Fatalf("the lever %q", flags)
		}
		c.Given[name] = true
	}
}

// TestShortage: a run that dies of memory leaves a report in its folder, the first lever makes it run, and as large a batch
// fits as is said.
func TestShortage(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	for _, device := range []string{"cpu", "sim:a100-80x13:0"} {
		values := map[string]any{"data": traintest.Pictures(t, 80, 1, 6, 3), "batch": 64, "steps": 3, "device": device}
		start := func(flag string, limit int64) (*train.Result, string, error) {
			c := traintest.Config(t, "mlp", values)
			give(t, &c, flag)
			c.Out = filepath.Join(t.TempDir(), "run")
			limited(t, device, limit)
			result, err := train.Run(t.Context(), c, nil)
			return result, c.Out, err
		}
		free, _, err := start("", 0)
		if err != nil {
			t.Fatal(err)
		}
		limit := free.PeakBytes * 8 / 10
		_, out, err := start("", limit)
		var oom *tensor.OOMError
		var known *train.Error
		if !errors.As(err, &oom) || !errors.As(err, &known) || !strings.Contains(known.Hint, oom.Levers[0].Flag) || !strings.Contains(known.Hint, "oom.json") {
			t.Fatalf("%s: %v", device, err)
		}
		raw, err := os.ReadFile(filepath.Join(out, "oom.json"))
		var report struct {
			Device       string
			LargestBatch int `json:"largest_batch"`
			Limit        int64
		}
		if err != nil || json.Unmarshal(raw, &report) != nil || report.Device != traintest.Cleaned(t, device).Name() || report.LargestBatch != oom.LargestBatch || report.Limit != limit {
			t.Errorf("%s: oom.json is %s, %v", device, raw, err)
		}
		raw, err = os.ReadFile(filepath.Join(out, "oom.pickle"))
		if err != nil || len(raw) == 0 || raw[0] != 0x80 {
			t.Errorf("%s: oom.pickle: %d bytes, %v", device, len(raw), err)
		}
		if _, _, err := start(oom.Levers[0].Flag, limit); err != nil {
			t.Errorf("%s: with %s: %v", device, oom.Levers[0].Flag, err)
		}
		isLargest(t, device, oom.LargestBatch, 64, 1, func(batch int) bool {
			_, _, err := start("--batch "+strconv.Itoa(batch), limit)
			return err == nil
		})
		_, out, err = start("", 1<<14)
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		again := traintest.Config(t, "mlp", values)
		again.Out = out
		limited(t, device, 0)
		if _, err := train.Run(t.Context(), again, nil); err != nil {
			t.Errorf("%s: in the folder of a run that died before its first step: %v", device, err)
		}
	}
}

// isLargest runs batches a little smaller than n, and larger, of a batch that is too large: one fits, and the other does not.
func isLargest(t *testing.T, what string, n, whole, parts int, fits func(batch int) bool) {
	t.Helper()
	slack := max(parts, n/20)
	if below := (n - slack) / parts * parts; below > 0 && !fits(below) {
		t.Errorf("%s: largest batch %d, but %d do not fit", what, n, below)
	}
	if above := (n+slack)/parts*parts + parts; above < whole && fits(above) {
		t.Errorf("%s: largest batch %d, but %d fit", what, n, above)
	}
}

// TestStepsOutliveShortage: a run that dies of memory keeps its steps, and goes on from them as if nothing had happened.
func TestStepsOutliveShortage(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("memory runs out, and the steps stay. ", 40)), 0o666); err != nil {
		t.Fatal(err)
	}
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer env.Device().SetLimit(0)
	c := traintest.Config(t, "gpt", map[string]any{"data": text, "context": 8, "layers": 1, "heads": 2, "width": 16, "batch": 4, "steps": 8, "device": "cpu", "dropout": 0.1})
	whole, dying := &traintest.Recorder{}, &traintest.Choking{Recorder: &traintest.Recorder{}, Device: env.Device(), From: 4}
	if _, err := train.Run(t.Context(), c, whole); err != nil {
		t.Fatal(err)
	}
	c.Out = filepath.Join(t.TempDir(), "run")
	var known *train.Error
	if _, err := train.Run(t.Context(), c, dying); !errors.As(err, &known) || !strings.Contains(known.Text, "out of memory") {
		t.Fatalf("error %v", err)
	}
	env.Device().SetLimit(0)
	steps, _ := traintest.StepsOf(t, c.Out)
	c.Resume, c.Given = true, map[string]bool{}
	result, err := train.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 4 || len(steps) > 7 || result.Session != 8-len(steps) {
		t.Errorf("%d steps were kept, %d made after", len(steps), result.Session)
	}
	for i, s := range result.Log {
		if s.Loss != whole.Steps[i].Loss {
			t.Errorf("step %d: loss %v, without an interruption %v", s.Step, s.Loss, whole.Steps[i].Loss)
		}
	}
}

// TestShortageAnywhere: wherever memory runs out (weights, forward, backward, optimizer, evaluation; steps in parts, recomputed,
// captured, averaged) there is a report. With the first lever the run fits, or with the size that is named; each lever saves what
// it says, and the largest batch is that of really running. A run takes half of these.
func TestShortageAnywhere(t *testing.T) {
	if !testutil.Alone(t) { // devices are opened by name
		return
	}
	pixels := traintest.Pictures(t, 160, 1, 12, 3)
	gpt := map[string]any{"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 16, "layers": 2, "heads": 2, "width": 32, "batch": 24}
	wide := traintest.Tokens(t, 700, 900)
	with := func(base map[string]any, more map[string]any) map[string]any {
		all := maps.Clone(base)
		maps.Copy(all, more)
		return all
	}
	type row struct {
		name, task string
		values     map[string]any
		shares     []float64 // of what it takes
	}
	rows := []row{
		{"parts", "mlp", map[string]any{"data": pixels, "batch": 64, "accumulate": 2}, []float64{0.02, 0.6}},
		{"captured, with a short batch", "mlp", map[string]any{"data": pixels, "batch": 50, "capture": true}, []float64{0.7}},
		{"averaged", "digits", map[string]any{"data": pixels, "batch": 32}, []float64{0.5}},
		{"scored between", "gpt", with(gpt, map[string]any{"dropout": 0.1, "clip": 1.0, "eval-every": 2}), []float64{0.02, 0.45}},
		{"many parameters", "mlp", map[string]any{"data": pixels, "batch": 2}, []float64{0.9}},
		{"kept scores", "gpt", with(gpt, map[string]any{"tokens": wide, "vocab": 900, "head": "whole"}), []float64{0.5}},
		{"recomputed", "gpt", with(gpt, map[string]any{"recompute": "block"}), []float64{0.6}},
	}
	ops, spread := map[string]bool{}, testutil.NewSpread(t, testutil.Seed(t), 2)
	for _, c := range testutil.Some(spread, rows, func(r row) string { return r.name }) {
		t.Run(c.name, func(t *testing.T) {
			for _, share := range c.shares {
				shortageAt(t, c.task, with(c.values, map[string]any{"steps": 4, "device": "cpu"}), share, ops)
			}
		})
	}
	if spread.All() && len(ops) < 4 {
		t.Errorf("memory ran out in %v only", ops)
	}
}

func shortageAt(t *testing.T, task string, values map[string]any, share float64, ops map[string]bool) (levers []tensor.Lever) {
	start := func(flag string, limit int64) (*train.Result, error) {
		c := traintest.Config(t, task, values)
		give(t, &c, flag)
		limited(t, c.Device, limit)
		return train.Run(t.Context(), c, nil)
	}
	free, err := start("", 0)
	if err != nil {
		t.Fatal(err)
	}
	limit := int64(share * float64(free.PeakBytes))
	_, err = start("", limit)
	var oom *tensor.OOMError
	var known *train.Error
	if !errors.As(err, &oom) || !errors.As(err, &known) || known.Hint == "" {
		t.Fatalf("with %v of what it takes: %v", share, err)
	}
	ops[oom.Op] = true
	if !oom.Rehearsed { // while the data was looked at, before there was anything to run again
		return nil
	}
	if len(oom.Levers) > 0 && oom.Levers[0].Fits {
		if _, err := start(oom.Levers[0].Flag, limit); err != nil {
			t.Errorf("with %v of what it takes and %s: %v", share, oom.Levers[0].Flag, err)
		}
	} else if _, err := start("", oom.Needed); err != nil {
		t.Errorf("with the %d bytes that it is said to need: %v", oom.Needed, err)
	}
	for _, l := range oom.Levers {
		r, err := start(l.Flag, 0)
		if err != nil {
			t.Fatalf("%s: %v", l.Flag, err)
		}
		if saves := free.PeakBytes - r.PeakBytes; math.Abs(float64(saves-l.Saves)) > 0.02*float64(l.Saves) {
			t.Errorf("%s saves %d bytes, not %d", l.Flag, saves, l.Saves)
		}
	}
	parts, _ := values["accumulate"].(int)
	parts = max(1, parts)
	if oom.LargestBatch < oom.Batch {
		isLargest(t, fmt.Sprintf("with %v of what it takes", share), oom.LargestBatch, oom.Batch, parts, func(batch int) bool {
			_, err := start("--batch "+strconv.Itoa(batch), limit)
			return err == nil
		})
	}
	return oom.Levers
}

// TestReportedLeversSave: a GPT and a ResNet-18 that run out of memory name the levers that help there, and each saves what it
// says. A run takes half of these.
func TestReportedLeversSave(t *testing.T) {
	if !testutil.Alone(t) { // devices are opened by name
		return
	}
	gpt := map[string]any{"tokens": traintest.Tokens(t, 2000, 900), "vocab": 900, "context": 32, "layers": 2, "width": 64, "head": "whole", "device": "cpu"}
	resnet := map[string]any{"data": traintest.Pictures(t, 120, 3, 28, 3), "device": "cpu"}
	with := func(base map[string]any, name string, v any) map[string]any {
		all := maps.Clone(base)
		all[name] = v
		return all
	}
	type row struct {
		task   string
		values map[string]any
		batch  int
		share  float64 // of what it takes
		want   string
	}
	rows := []row{
		{"gpt", gpt, 24, 0.8, "--accumulate --head"},
		{"gpt", gpt, 2, 0.8, "--step-in-backward"},
		{"resnet18", resnet, 2, 0.8, "--step-in-backward"},
		{"resnet18", with(with(resnet, "optimizer", "sgd"), "device", "null:l4"), 96, 0.95, "--accumulate"}, // which takes long to compute
	}
	spread := testutil.NewSpread(t, testutil.Seed(t), 2)
	for _, c := range testutil.Some(spread, rows, func(r row) string { return r.task + r.want }) {
		c.values["steps"] = 3
		levers := shortageAt(t, c.task, with(c.values, "batch", c.batch), c.share, map[string]bool{})
		for _, name := range strings.Fields(c.want) {
			if !slices.ContainsFunc(levers, func(l tensor.Lever) bool { return strings.HasPrefix(l.Flag, name) && l.Saves > 0 }) {
				t.Errorf("%s with batches of %d: the levers %+v, without %s", c.task, c.batch, levers, name)
			}
		}
		t.Logf("%s with batches of %d: %+v", c.task, c.batch, levers)
	}
}

// blocked puts a file in the place of the run's folder after a step, and lets memory run out.
type blocked struct {
	traintest.Choking
	out string
}

func (b *blocked) Step(s train.Step) {
	b.Choking.Step(s)
	if s.Step == b.From {
		_ = os.Rename(b.out, b.out+".gone")
		_ = os.WriteFile(b.out, nil, 0o666)
	}
}

// TestShortageUnwritten: a report that cannot be written is told all the same, with a note of why there is no file.
func TestShortageUnwritten(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer env.Device().SetLimit(0)
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 8, "device": "cpu"})
	c.Out = filepath.Join(t.TempDir(), "run")
	watch := &blocked{traintest.Choking{Recorder: &traintest.Recorder{}, Device: env.Device(), From: 3}, c.Out}
	_, err = train.Run(t.Context(), c, watch)
	var oom *tensor.OOMError
	var known *train.Error
	if !errors.As(err, &oom) || !errors.As(err, &known) || !oom.Rehearsed || strings.Contains(known.Hint, "oom.json") {
		t.Errorf("%v; %+v", err, oom)
	}
	if notes := strings.Join(watch.Notes, "\n"); !strings.Contains(notes, "the report of the out-of-memory is not written") || !strings.Contains(notes, "not a directory") {
		t.Errorf("notes %q", watch.Notes)
	}
}

// TestShortageInterrupted: who has no patience for an explanation gets the report without it.
func TestShortageInterrupted(t *testing.T) {
	if !testutil.Alone(t) { // what other tests leave in the heap slows collections
		return
	}
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer env.Device().SetLimit(0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 8, "device": "cpu"})
	c.Out = filepath.Join(t.TempDir(), "run")
	watch := &traintest.Choking{Recorder: &traintest.Recorder{Cancel: stop, After: 4}, Device: env.Device(), From: 3}
	_, err = train.Run(ctx, c, watch)
	var oom *tensor.OOMError
	if !errors.As(err, &oom) || oom.Rehearsed && ctx.Err() != nil {
		t.Errorf("%v; %+v", err, oom)
	}
	if _, err := os.Stat(filepath.Join(c.Out, "oom.json")); err != nil {
		t.Error(err)
	}
}

// TestMemoryOfResumed: a run that goes on keeps to the memory that it is given anew, and without to none.
func TestMemoryOfResumed(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	c.Resume, c.Steps, c.Given = true, 2, map[string]bool{"steps": true}
	c.Memory = 1000
	var short *tensor.OOMError
	if _, err := train.Run(t.Context(), c, nil); !errors.As(err, &short) || short.Limit != c.Memory {
		t.Errorf("in %d bytes: %v", c.Memory, err)
	}
	c.Memory = 0
	traintest.Run(t, c)
}
