package train_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestAccumulate: a batch in parts has the losses of the whole one, but for rounding.
func TestAccumulate(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("what is learnt in parts is learnt whole. ", 40)), 0o666); err != nil {
		t.Fatal(err)
	}
	for task, more := range map[string]map[string]any{
		"mlp": {"data": pictures(t, 40, 1, 6, 3)},
		"gpt": {"data": text, "context": 8, "layers": 1, "heads": 2, "width": 16},
	} {
		losses := func(parts int) (all []float64) {
			values := map[string]any{"batch": 10, "steps": 4, "accumulate": parts, "device": "cpu"}
			for k, v := range more {
				values[k] = v
			}
			watch := &recorder{}
			if _, err := train.Run(t.Context(), config(t, task, values), watch); err != nil {
				t.Fatalf("%s in %d parts: %v", task, parts, err)
			}
			for _, s := range watch.steps {
				all = append(all, s.Loss)
			}
			return all
		}
		whole := losses(1)
		for _, parts := range []int{2, 3, 10} {
			for i, l := range losses(parts) {
				if math.Abs(l-whole[i]) > 2e-4*math.Abs(whole[i]) {
					t.Errorf("%s in %d parts, step %d: loss %v, whole %v", task, parts, i, l, whole[i])
				}
			}
		}
	}
	c := config(t, "mlp", map[string]any{"batch": 4, "accumulate": 5})
	var known *train.Error
	if _, err := train.Run(t.Context(), c, nil); !errors.As(err, &known) || !strings.Contains(known.Text, "--accumulate 5 parts of --batch 4") {
		t.Errorf("more parts than samples: %v", err)
	}
}

// limited is a device that is nearly full when a run begins its steps.
func limited(t *testing.T, device string, limit int64) {
	t.Helper()
	dev := cleaned(t, device)
	dev.SetLimit(limit)
	t.Cleanup(func() { dev.SetLimit(0) })
}

// TestShortage: a run that dies of memory leaves a report in its folder, the first lever makes it run, and as large a batch
// fits as is said.
func TestShortage(t *testing.T) {
	for _, device := range []string{"cpu", "sim:a100-80x13:0"} {
		values := map[string]any{"data": pictures(t, 80, 1, 6, 3), "batch": 64, "steps": 3, "device": device}
		start := func(flag string, limit int64) (*train.Result, string, error) {
			c := config(t, "mlp", values)
			for _, f := range strings.Split(flag, "--")[1:] {
				name, value, _ := strings.Cut(strings.TrimSpace(f), " ")
				n, _ := strconv.Atoi(value)
				switch name {
				case "accumulate":
					c.Accumulate = n
				case "batch":
					c.Batch = n
				default:
					t.Fatalf("the lever %q", flag)
				}
			}
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
		if err != nil || json.Unmarshal(raw, &report) != nil || report.Device != cleaned(t, device).Name() || report.LargestBatch != oom.LargestBatch || report.Limit != limit {
			t.Errorf("%s: oom.json is %s, %v", device, raw, err)
		}
		raw, err = os.ReadFile(filepath.Join(out, "oom.pickle"))
		if err != nil || len(raw) == 0 || raw[0] != 0x80 {
			t.Errorf("%s: oom.pickle: %d bytes, %v", device, len(raw), err)
		}
		if _, _, err := start(oom.Levers[0].Flag, limit); err != nil {
			t.Errorf("%s: with %s: %v", device, oom.Levers[0].Flag, err)
		}
		low, high := 0, 64
		for high-low > 1 {
			middle := (low + high) / 2
			if _, _, err := start("--batch "+strconv.Itoa(middle), limit); err == nil {
				low = middle
			} else {
				high = middle
			}
		}
		if off := oom.LargestBatch - low; max(off, -off) > max(1, low/20) {
			t.Errorf("%s: largest batch %d, by really running %d", device, oom.LargestBatch, low)
		}
		_, out, err = start("", 1<<14)
		if !errors.As(err, &oom) {
			t.Fatal(err)
		}
		again := config(t, "mlp", values)
		again.Out = out
		limited(t, device, 0)
		if _, err := train.Run(t.Context(), again, nil); err != nil {
			t.Errorf("%s: in the folder of a run that died before its first step: %v", device, err)
		}
	}
}

// TestStepsOutliveShortage: a run that dies of memory keeps its steps, and goes on from them as if nothing had happened.
func TestStepsOutliveShortage(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("memory runs out, and the steps stay. ", 40)), 0o666); err != nil {
		t.Fatal(err)
	}
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer env.Device().SetLimit(0)
	c := config(t, "gpt", map[string]any{"data": text, "context": 8, "layers": 1, "heads": 2, "width": 16, "batch": 4, "steps": 8, "device": "cpu", "dropout": 0.1})
	whole, dying := &recorder{}, &choking{&recorder{}, env.Device(), 4}
	if _, err := train.Run(t.Context(), c, whole); err != nil {
		t.Fatal(err)
	}
	c.Out = filepath.Join(t.TempDir(), "run")
	var known *train.Error
	if _, err := train.Run(t.Context(), c, dying); !errors.As(err, &known) || !strings.Contains(known.Text, "out of memory") {
		t.Fatalf("error %v", err)
	}
	env.Device().SetLimit(0)
	steps, _ := stepsOf(t, c.Out)
	c.Resume, c.Given = true, map[string]bool{}
	result, err := train.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 4 || len(steps) > 7 || result.Session != 8-len(steps) {
		t.Errorf("%d steps were kept, %d made after", len(steps), result.Session)
	}
	for i, s := range result.Log {
		if s.Loss != whole.steps[i].Loss {
			t.Errorf("step %d: loss %v, without an interruption %v", s.Step, s.Loss, whole.steps[i].Loss)
		}
	}
}
