package train_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestStatistics: a run that is looked at learns the same to the bit, whatever it trains and how, and its log has a line for each look,
// with all modules, outputs and gradients.
func TestStatistics(t *testing.T) {
	for task, settings := range small(t) {
		for name, way := range map[string]map[string]any{
			"plain": {}, "in parts": {"accumulate": 2}, "bf16": {"amp": "bf16"}, "fp16": {"amp": "fp16"}, "simulated": {"device": "sim:0", "steps": 2},
		} {
			t.Run(task+" "+name, func(t *testing.T) {
				change := maps.Clone(settings)
				change["steps"] = 4
				maps.Copy(change, way)
				run := func(every int) (*train.Result, string) {
					c := traintest.Config(t, task, change)
					c.Statistics, c.Out = every, filepath.Join(t.TempDir(), "run")
					r, _ := traintest.Run(t, c)
					return r, c.Out
				}
				want, plain := run(0)
				got, looked := run(2)
				const weights = "model.safetensors"
				if traintest.Read(t, filepath.Join(plain, weights)) != traintest.Read(t, filepath.Join(looked, weights)) || got.Loss != want.Loss {
					t.Errorf("loss %v, without looks %v; the weights differ", got.Loss, want.Loss)
				}
				checkLooks(t, filepath.Join(looked, "log.jsonl"), want.Steps/2)
			})
		}
	}
}

// checkLooks reads the looks of a log.
func checkLooks(t *testing.T, path string, want int) {
	t.Helper()
	looks := 0
	for line := range bytes.Lines([]byte(traintest.Read(t, path))) {
		var l train.Look
		if err := json.Unmarshal(line, &l); err != nil || !l.Statistics {
			continue
		}
		looks++
		outputs, gradients := 0, 0
		for _, m := range l.Modules {
			if m.Output != nil && m.Output.RMS > 0 {
				outputs++
			}
			if m.Gradient != nil && m.Gradient.RMS > 0 && m.Gradient.RMS < 10 {
				gradients++
			}
		}
		if outputs < 3 || gradients < 3 || l.Step != 2*looks {
			t.Errorf("step %d: of %d modules %d have an output and %d a gradient: %s", l.Step, len(l.Modules), outputs, gradients, line)
		}
	}
	if looks != want {
		t.Errorf("%d looks in the log, want %d", looks, want)
	}
}

// TestStatisticsResumed: looks behind a checkpoint go with its steps, and come again.
func TestStatisticsResumed(t *testing.T) {
	data, out := traintest.Pictures(t, 40, 1, 6, 3), filepath.Join(t.TempDir(), "run")
	for _, resume := range []bool{false, true} {
		c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 8, "steps": 4, "statistics": 2})
		if c.Out, c.Resume = out, resume; resume {
			c.Steps = 8
		}
		traintest.Run(t, c)
		checkLooks(t, filepath.Join(out, "log.jsonl"), c.Steps/2)
	}
}

// TestDead: units whose ReLU gives 0 for the whole batch, of which a rate that is far too large makes many, are told.
func TestDead(t *testing.T) {
	dir := t.TempDir()
	data := traintest.Pictures(t, 40, 1, 6, 3)
	run := func(out string, lr float64) *train.Result {
		c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 36, "steps": 6, "statistics": 1, "optimizer": "sgd", "lr": lr})
		c.Out = filepath.Join(dir, out)
		r, _ := traintest.Run(t, c)
		return r
	}
	before := 0
	for _, d := range run("alive", 0.01).Dead { // some of a fresh model are below 0 for so few samples
		before += d.Dead
	}
	// So large a step pushes most units below 0 for good.
	r := run("dead", 1e3)
	if len(r.Dead) == 0 || r.Dead[0].Dead <= before || 2*r.Dead[0].Dead < r.Dead[0].Units || r.Dead[0].Dead > r.Dead[0].Units || r.Dead[0].Looks != 3 {
		t.Errorf("%+v, and with a small rate %d", r.Dead, before)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "dead", "log.jsonl")); err != nil || !bytes.Contains(raw, []byte(`"dead_units":[{"path"`)) {
		t.Errorf("the last line does not tell: %v", err)
	}
}

func ExampleConfig_statistics() {
	c, err := train.Defaults("mlp")
	if err != nil {
		panic(err)
	}
	c.Statistics = 100 // log.jsonl has a line for each 100th step
	fmt.Println(c.Task, c.Statistics)
	// Output: mlp 100
}
