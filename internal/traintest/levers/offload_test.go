package levers_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// TestOffloadKeepsBits: on a simulated card losses and weights are those of a run whose values stay there, with every optimizer, in
// 16 bits, with a loss scaler, in parts; and those of a run that goes on with its values elsewhere. Beside plain runs a run takes one
// circumstance in six, and of two tasks' runs that go on one in six.
func TestOffloadKeepsBits(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 6)
	const card = "sim:a100-80x8:5"
	tasks := brief(t)
	for _, task := range []string{"mlp", "gpt"} {
		base := traintest.Merged(tasks[task], map[string]any{"steps": 3})
		for how, more := range circumstances() {
			if more["capture"] != nil || how != "plain" && !spread.Takes(task+" "+how) {
				continue
			}
			t.Run(task+"/"+how, func(t *testing.T) {
				losses, weights := traintest.Trained(t, task, card, traintest.Merged(base, more))
				for _, o := range train.Offloads[1:] {
					if o != "both" && how != "plain" {
						continue
					}
					got, ends := traintest.Trained(t, task, card, traintest.Merged(base, more, map[string]any{"offload": o}))
					if !slices.Equal(got, losses) || string(ends) != string(weights) {
						t.Errorf("--offload %s: losses %v, without %v", o, got, losses)
					}
				}
			})
		}
		if !spread.Takes(task + " in halves") {
			continue
		}
		whole, _ := traintest.Trained(t, task, card, base)
		for _, halves := range [][2]string{{"both", "none"}, {"none", "both"}, {"optimizer", "optimizer"}} {
			out := filepath.Join(t.TempDir(), "run")
			var r *train.Result
			for i, half := range halves {
				c := traintest.Config(t, task, traintest.Merged(base, map[string]any{"offload": half, "steps": 1 + 2*i}))
				c.Device = card
				if c.Out, c.Resume = out, i == 1; c.Resume {
					c.Given = map[string]bool{"steps": true, "offload": true}
				}
				r, _ = traintest.Run(t, c)
			}
			for i, s := range r.Log {
				if s.Loss != whole[i] {
					t.Errorf("%s %v: step %d has loss %v, in one run %v", task, halves, s.Step, s.Loss, whole[i])
				}
			}
		}
	}
}

// TestOffloadSaves: what a run saves on a simulated card is what the device that computes nothing says, to the byte, and both of the
// two together are more than each; the processor moves nothing and says so.
func TestOffloadSaves(t *testing.T) {
	base := map[string]any{"tokens": traintest.IDs(t, 3000), "vocab": 7, "context": 32, "layers": 3, "heads": 2, "width": 32, "batch": 8, "steps": 3}
	saved := map[string]int64{}
	for _, device := range []string{"null:a100-80", "sim:a100-80x8:6", "cpu"} {
		peaks := map[string]int64{}
		for _, o := range train.Offloads {
			traintest.Cleaned(t, device)
			c := traintest.Config(t, "gpt", traintest.Merged(base, map[string]any{"offload": o}))
			c.Device = device
			result, r := traintest.Run(t, c)
			peaks[o] = result.PeakBytes
			if noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "the memory of cpu is the host's") }); noted != (device == "cpu" && o != "none") {
				t.Errorf("%s --offload %s: notes %v", device, o, r.Notes)
			}
		}
		t.Logf("%s: %v", device, peaks)
		for o, peak := range peaks {
			if saves := peaks["none"] - peak; device == "cpu" && saves != 0 || device != "cpu" && o != "none" && saves <= 0 {
				t.Errorf("%s --offload %s saves %d bytes", device, o, saves)
			} else if said, ok := saved[o]; device == "sim:a100-80x8:6" && (!ok || said != saves) {
				t.Errorf("--offload %s saves %d bytes, and was said to save %d", o, saves, said)
			} else {
				saved[o] = saves
			}
		}
	}
}

// TestOffloadRefuses: what does not go together is an error before anything is done.
func TestOffloadRefuses(t *testing.T) {
	for text, change := range map[string]map[string]any{
		"--offload both copies to the host's memory in each step": {"offload": "both", "capture": true},
	} {
		c := traintest.Config(t, "mlp", traintest.Merged(brief(t)["mlp"], maps.Clone(change)))
		if _, err := train.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v", change, err)
		}
	}
	if _, err := train.ParseOffload("everything"); err == nil {
		t.Error("it is taken")
	}
}
