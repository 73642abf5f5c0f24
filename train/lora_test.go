package train_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// floats are the float32 of a tensor's bytes.
func floats(raw string) []float64 {
	out := make([]float64, len(raw)/4)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(raw[4*i:]))))
	}
	return out
}

// TestLoRA: a run with small matrices of rank 1 begins where the weights are that it is given, changes linear layers alone, each by
// a matrix of rank 1, and leaves a model as any other, with the score that it told, whatever else it does: a run takes one way for a
// network of eleven million parameters.
func TestLoRA(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 12)
	for task, of := range map[string]struct {
		change map[string]any
		linear map[string]int // weights that change, and how many columns they have
	}{
		"mlp":      {map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 10}, map[string]int{"1.weight": 36, "3.weight": 128}},
		"resnet18": {map[string]any{"data": traintest.Pictures(t, 40, 3, 8, 3), "batch": 4}, map[string]int{"fc.weight": 512}},
		"gpt": {map[string]any{"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 8, "layers": 1, "heads": 2, "width": 16, "batch": 10}, map[string]int{
			"transformer.h.0.attn.c_attn.weight": 48, "transformer.h.0.attn.c_proj.weight": 16, "transformer.h.0.mlp.c_fc.weight": 64, "transformer.h.0.mlp.c_proj.weight": 16}},
		"vae":  {map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 10}, map[string]int{"fc1.weight": 36, "fc21.weight": 400, "fc22.weight": 400, "fc3.weight": 20, "fc4.weight": 400}},
		"lstm": {map[string]any{"tokens": traintest.IDs(t, 700), "vocab": 7, "context": 8, "width": 16, "batch": 10}, map[string]int{"head.weight": 16}},
	} {
		run := func(t *testing.T, changes ...map[string]any) (string, *train.Result, *traintest.Recorder) {
			c := traintest.Config(t, task, traintest.Merged(append([]map[string]any{of.change, {"device": "cpu", "lr": 0.02, "average": 0}}, changes...)...))
			c.Out = filepath.Join(t.TempDir(), "run")
			r, watch := traintest.Run(t, c)
			return c.Out, r, watch
		}
		start, _, _ := run(t, map[string]any{"steps": 2})
		before := weightsOf(t, start)
		_, whole, _ := run(t, map[string]any{"steps": 1, "init": start})
		ways := map[string]map[string]any{
			"plain": {}, "accumulate": {"accumulate": 2}, "capture": {"capture": true}, "step-in-backward": {"step-in-backward": true},
			"recompute": {"recompute": "block"}, "average": {"average": 0.5}, "best": {"patience": 9, "eval-every": 2},
		}
		names := slices.Sorted(maps.Keys(ways))
		if task == "resnet18" {
			names = testutil.Some(spread, names, strings.Clone)
		}
		for _, how := range names {
			lever := ways[how]
			t.Run(task+"/"+how, func(t *testing.T) {
				out, r, watch := run(t, map[string]any{"steps": 5, "init": start, "lora": 1}, lever)
				if first := r.Log[0].Loss; how != "accumulate" && math.Abs(first-whole.Loss) > 1e-6*math.Abs(first) {
					t.Errorf("the first loss is %v, without small matrices %v", first, whole.Loss)
				}
				after := weightsOf(t, out)
				if len(after) != len(before) {
					t.Errorf("%d tensors, before %d", len(after), len(before))
				}
				for name, w := range after {
					columns, learns := of.linear[name]
					if running := strings.Contains(name, "running") || strings.Contains(name, "num_batches"); running {
						continue
					}
					if changed := w != before[name]; changed != learns {
						t.Errorf("%s: changed %v, is a linear layer's %v", name, changed, learns)
					} else if changed {
						rankOne(t, name, floats(w), floats(before[name]), columns)
					}
				}
				scored, err := train.Evaluate(t.Context(), train.EvalConfig{From: out, Device: "cpu"})
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(scored.Loss-*r.ValLoss) > 1e-6**r.ValLoss {
					t.Errorf("told a score of %v, eval finds %v", *r.ValLoss, scored.Loss)
				}
				if notes := strings.Join(watch.Notes, "\n"); !strings.Contains(notes, "are frozen") || strings.Contains(notes, "no gradient") || r.Frozen == 0 {
					t.Errorf("%d frozen, notes %q", r.Frozen, notes)
				}
			})
		}
	}
}

// rankOne wants all 2×2 determinants of a difference with its largest number to be 0.
func rankOne(t *testing.T, name string, after, before []float64, columns int) {
	t.Helper()
	d, at := make([]float64, len(after)), 0
	for i := range d {
		if d[i] = after[i] - before[i]; math.Abs(d[i]) > math.Abs(d[at]) {
			at = i
		}
	}
	most := math.Abs(d[at])
	for i := range d {
		cross := d[i/columns*columns+at%columns] * d[at/columns*columns+i%columns]
		if det := d[at]*d[i] - cross; math.Abs(det) > 1e-3*most*most {
			t.Fatalf("%s changes by more than a matrix of rank 1: a determinant of %v, the largest change is %v", name, det, most)
		}
	}
}

// TestLoRACutOff: of a run that was cut off, eval takes the newest checkpoint as the model that the run would have left there.
func TestLoRACutOff(t *testing.T) {
	change := map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 10, "lora": 2, "steps": 4, "device": "cpu"}
	c := traintest.Config(t, "mlp", change)
	c.Out = filepath.Join(t.TempDir(), "run")
	r, _ := traintest.Run(t, c)
	log := traintest.Read(t, c.Out+"/log.jsonl")
	end := strings.LastIndex(strings.TrimSpace(log), "\n") + 1
	if err := errors.Join(os.WriteFile(c.Out+"/log.jsonl", []byte(log[:end]), 0o666), os.Remove(c.Out+"/model.safetensors")); err != nil {
		t.Fatal(err)
	}
	scored, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	if scored.Steps != 4 || math.Abs(scored.Loss-*r.ValLoss) > 1e-6**r.ValLoss {
		t.Errorf("a score of %v at step %d, told %v", scored.Loss, scored.Steps, *r.ValLoss)
	}
}

// TestLoRAResumesBest: a run that is to leave the weights of its best score, and was interrupted behind it, leaves the bytes of a run
// that went through.
func TestLoRAResumesBest(t *testing.T) {
	change := map[string]any{"data": traintest.Pictures(t, 60, 1, 6, 3), "batch": 10, "lora": 2, "steps": 40, "device": "cpu", "patience": 30, "eval-every": 3, "lr": 0.5}
	c := traintest.Config(t, "mlp", change)
	c.Out = filepath.Join(t.TempDir(), "run")
	_, watch := traintest.Run(t, c)
	best := slices.MinFunc(watch.Scores, func(a, b train.Score) int { return cmp.Compare(a.ValLoss, b.ValLoss) })
	if best.Step > 33 {
		t.Fatalf("the best score is that of step %d: nothing is left to go on with behind it", best.Step)
	}
	parts := traintest.Config(t, "mlp", traintest.Merged(change, map[string]any{"steps": best.Step + 5}))
	parts.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, parts)
	parts.Resume, parts.Steps = true, 40
	traintest.Run(t, parts)
	if traintest.Read(t, parts.Out+"/model.safetensors") != traintest.Read(t, c.Out+"/model.safetensors") {
		t.Errorf("resumed behind step %d, whose score is the best, it ends elsewhere", best.Step)
	}
}
