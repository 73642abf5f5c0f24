package train_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

func within(t *testing.T, what string, got, want, rel float64) {
	t.Helper()
	if d := math.Abs(got-want) / math.Abs(want); !(d <= rel) {
		t.Errorf("%s is %v, want %v: %.2g apart, at most %.2g", what, got, want, d, rel)
	}
}

// tensors reads a safetensors file.
func tensors(t *testing.T, path string) map[string]*tensor.Tensor {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return golden.Tensors(t, env, path)
}

// apart is |got - want| / |want|.
func apart(got, want []float64) float64 {
	var d, n float64
	for i, w := range want {
		d += (got[i] - w) * (got[i] - w)
		n += w * w
	}
	if d == 0 {
		return 0
	}
	return math.Sqrt(d / n)
}

// TestGPT2 is the run that bench/pytorch/gpt2_reference.py makes with transformers: folder in, folder out.
func TestGPT2(t *testing.T) {
	const dir = "../model/testdata/gpt2/"
	var g struct {
		Losses []float64
		Hyper  struct{ LR, Beta1, Beta2, Eps, Clip float64 }
	}
	golden.JSON(t, dir+"golden.json", &g)
	out := filepath.Join(t.TempDir(), "run")
	c := traintest.Config(t, "gpt", map[string]any{
		"init": dir + "init", "tokens": dir + "tokens.bin", "optimizer": "adamw", "lr": g.Hyper.LR, "beta1": g.Hyper.Beta1, "beta2": g.Hyper.Beta2,
		"eps": g.Hyper.Eps, "weight-decay": 0.1, "clip": g.Hyper.Clip, "order": "sequential", "batch": 8, "context": 32, "steps": 20,
	})
	c.Out = out
	result, seen := traintest.Run(t, c)
	for i, want := range g.Losses {
		within(t, fmt.Sprintf("loss of step %d", i+1), seen.Steps[i].Loss, want, 1e-5)
	}
	if mean(seen.Steps[15:]) >= mean(seen.Steps[:5]) {
		t.Errorf("the loss does not fall: %v", seen.Steps)
	}
	if result.Steps != 20 || result.ValLoss != nil {
		t.Errorf("result %+v", result)
	}
	got, want := tensors(t, out+"/model.safetensors"), tensors(t, dir+"final.safetensors")
	for name, w := range want {
		if got[name] == nil || !got[name].SameShape(w) {
			t.Fatalf("%s: %v, want %v", name, got[name], w.Shape())
		}
		if d := apart(got[name].Floats(), w.Floats()); d > 1e-3 {
			t.Errorf("%s ends %.2g apart", name, d)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tensors, want %d", len(got), len(want))
	}
}

func mean(steps []train.Step) float64 {
	sum := 0.0
	for _, s := range steps {
		sum += s.Loss
	}
	return sum / float64(len(steps))
}

// TestResNet is the thin run of bench/pytorch/resnet18_reference.py, from a bare file of weights, then an evaluation of
// the run folder.
func TestResNet(t *testing.T) {
	const dir = "../model/testdata/resnet/"
	var g struct {
		LR, Momentum float64
		Losses       []float64
		Eval         struct{ Loss, Accuracy float64 }
	}
	golden.JSON(t, dir+"golden.json", &g)
	raw, err := os.ReadFile(dir + "data.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	images, _ := f.Lookup("images")
	labels, _ := f.Lookup("labels")
	data := traintest.Archive(t, &npy.Array{DType: "<f4", Shape: images.Shape, Data: images.Data()}, &npy.Array{DType: "<i8", Shape: labels.Shape, Data: labels.Data()})
	out := filepath.Join(t.TempDir(), "run")
	c := traintest.Config(t, "resnet18", map[string]any{
		"init": dir + "init.safetensors", "data": data, "optimizer": "sgd", "momentum": g.Momentum, "lr": g.LR, "order": "sequential", "batch": 8, "steps": 6,
	})
	c.Out = out
	_, seen := traintest.Run(t, c)
	for i, want := range g.Losses {
		within(t, fmt.Sprintf("loss of step %d", i+1), seen.Steps[i].Loss, want, 1e-4)
	}
	first, want, got := tensors(t, dir+"init.safetensors"), tensors(t, dir+"final.safetensors"), tensors(t, out+"/model.safetensors")
	for name, w := range want {
		switch {
		case strings.Contains(name, "running_"):
			if d := apart(got[name].Floats(), w.Floats()); d > 2e-4 {
				t.Errorf("%s ends %.2g apart", name, d)
			}
		case !strings.HasSuffix(name, "num_batches_tracked"):
			if d := apart(difference(got[name], first[name]), difference(w, first[name])); d > 5e-2 {
				t.Errorf("the update of %s is %.2g apart", name, d)
			}
		}
	}
	r, err := train.Evaluate(t.Context(), train.EvalConfig{From: out, Device: "cpu", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "evaluation loss", r.Loss, g.Eval.Loss, 1e-4)
	within(t, "accuracy", *r.Accuracy, g.Eval.Accuracy, 1e-9)
}

func difference(a, b *tensor.Tensor) []float64 {
	out := a.Floats()
	for i, v := range b.Floats() {
		out[i] -= v
	}
	return out
}

// TestResume interrupts runs in several ways and goes on: the model's bytes are those of a run that went through.
func TestResume(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, settings := range map[string]map[string]any{
		"mlp":     {"task": "mlp", "data": traintest.Pictures(t, 50, 1, 6, 3), "batch": 8},
		"average": {"task": "digits", "data": traintest.Pictures(t, 50, 1, 8, 3), "batch": 8, "schedule": "cosine", "schedule-steps": 40},
		"drawn":   {"task": "digits", "batch": 4},
		"vae":     {"task": "vae", "data": traintest.Pictures(t, 50, 1, 8, 3), "batch": 8},
		"unet":    {"task": "unet", "batch": 2, "order": "sequential", "average": 0.9},
		"lora":    {"task": "mlp", "data": traintest.Pictures(t, 50, 1, 6, 3), "batch": 8, "lora": 2},
		"adapted": {"task": "gpt", "data": text, "batch": 2, "context": 8, "layers": 1, "heads": 2, "width": 8, "dropout": 0.1, "lora": 2, "average": 0.9},
		"freeze":  {"task": "mlp", "data": traintest.Pictures(t, 50, 1, 6, 3), "batch": 8, "freeze": "1.weight"},
		"norms":   {"task": "resnet18", "init": "../model/testdata/resnet/init.safetensors", "data": traintest.Pictures(t, 12, 3, 16, 10), "batch": 2, "optimizer": "sgd", "momentum": 0.9, "average": 0.9},
		"lstm":    {"task": "lstm", "data": text, "batch": 6, "context": 8, "layers": 2, "width": 8, "dropout": 0.1}, // 40 steps are two and a half epochs
		"gpt":     {"task": "gpt", "data": text, "batch": 2, "context": 8, "layers": 1, "heads": 2, "width": 8, "dropout": 0.1, "warmup": 30, "clip": 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make := func(out string, steps, threads int) train.Config {
				c := traintest.Config(t, settings["task"].(string), settings)
				c.Out, c.Steps, c.Threads = filepath.Join(dir, out), steps, threads
				c.Given["steps"] = true
				return c
			}
			traintest.Run(t, make("through", 40, 2))
			want := traintest.Read(t, dir+"/through/model.safetensors")

			traintest.Run(t, make("parts", 20, 1))
			c := make("parts", 40, 2)
			c.Resume = true
			delete(c.Given, "init")
			traintest.Run(t, c)
			if traintest.Read(t, dir+"/parts/model.safetensors") != want {
				t.Error("20 and 20 steps end elsewhere than 40")
			}

			ctx, cancel := context.WithCancel(t.Context())
			_, err := train.Run(ctx, make("stopped", 40, 1), &traintest.Recorder{After: 13, Cancel: cancel})
			if !errors.Is(err, train.ErrInterrupted) {
				t.Fatalf("error %v, want an interruption", err)
			}
			c = traintest.Config(t, settings["task"].(string), nil)
			c.Out, c.Resume = filepath.Join(dir, "stopped"), true
			traintest.Run(t, c)
			if traintest.Read(t, dir+"/stopped/model.safetensors") != want {
				t.Error("13 and 27 steps end elsewhere than 40")
			}
			for _, out := range []string{"parts", "stopped"} {
				steps, finals := traintest.StepsOf(t, filepath.Join(dir, out))
				if len(steps) != 40 || !slices.IsSorted(steps) || steps[0] != 1 || steps[39] != 40 || finals != 1 {
					t.Errorf("%s logs steps %v and %d ends", out, steps, finals)
				}
			}
		})
	}
}

// TestResumeAlone goes on with a run whose starting weights are gone.
func TestResumeAlone(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 2})
	c.Out = filepath.Join(t.TempDir(), "first")
	traintest.Run(t, c)
	next := traintest.Config(t, "mlp", map[string]any{"data": c.Data, "init": c.Out, "batch": 8, "steps": 2})
	next.Out = filepath.Join(t.TempDir(), "second")
	traintest.Run(t, next)
	if err := os.RemoveAll(c.Out); err != nil {
		t.Fatal(err)
	}
	again := traintest.Config(t, "mlp", map[string]any{"steps": 4})
	again.Out, again.Resume = next.Out, true
	if r, _ := traintest.Run(t, again); r.Steps != 4 {
		t.Errorf("%d steps", r.Steps)
	}
}

// TestFallBack goes on from the checkpoint before a damaged one, and says so.
func TestFallBack(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 30, "save-every": 10})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	want := traintest.Read(t, c.Out+"/model.safetensors")
	size := len(traintest.Read(t, c.Out+"/checkpoint-30/model.safetensors"))
	damaged := c.Out + "/checkpoint-30/model.safetensors"
	if err := os.Truncate(damaged, 100); err != nil {
		t.Fatal(err)
	}
	c.Resume = true
	_, seen := traintest.Run(t, c)
	if len(seen.Notes) != 1 || !strings.Contains(seen.Notes[0], fmt.Sprintf("model.safetensors has 100 bytes of %d ", size)) || !strings.Contains(seen.Notes[0], "checkpoint-20") || seen.Started.Done != 20 {
		t.Errorf("notes %q, from step %d", seen.Notes, seen.Started.Done)
	}
	if traintest.Read(t, c.Out+"/model.safetensors") != want {
		t.Error("the run ends elsewhere")
	}
	for _, name := range []string{"checkpoint-20", "checkpoint-30"} {
		if _, err := os.Stat(filepath.Join(c.Out, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(c.Out + "/checkpoint-10"); err == nil {
		t.Error("checkpoint-10 is still there")
	}
	if err := errors.Join(os.RemoveAll(c.Out+"/checkpoint-20"), os.Truncate(damaged, 100)); err != nil {
		t.Fatal(err)
	}
	var known *train.Error
	if _, err := train.Run(t.Context(), c, nil); !errors.As(err, &known) || !strings.Contains(known.Hint, "--init "+c.Out+"/model.safetensors") {
		t.Errorf("the only checkpoint is damaged: %+v", err)
	}
}

// TestLearns trains two tasks of pictures on a small problem until it is solved.
func TestLearns(t *testing.T) {
	data := traintest.Pictures(t, 120, 1, 8, 4)
	for _, task := range []string{"digits", "mlp"} {
		c := traintest.Config(t, task, map[string]any{"data": data, "batch": 16, "steps": 60, "lr": 0.01, "eval-every": 25})
		result, seen := traintest.Run(t, c)
		if result.Accuracy == nil || *result.Accuracy < 0.9 || result.ValLoss == nil {
			t.Errorf("%s: accuracy %v of what is held out", task, result.Accuracy)
		}
		if len(seen.Scores) != 3 || seen.Scores[0].Step != 25 || seen.Scores[2].Step != 60 {
			t.Errorf("%s: scores %+v", task, seen.Scores)
		}
		if seen.Started.Train != 108 || seen.Started.Test != 12 {
			t.Errorf("%s: %d samples, %d held out", task, seen.Started.Train, seen.Started.Test)
		}
		if len(result.Pictures) == 0 || len(result.Pictures[0].Pixels) != 64 {
			t.Errorf("%s: pictures %v", task, result.Pictures)
		}
	}
}

// TestRunFolder reads what a run of text leaves: scores without data, samples, and the folder as a start of another.
func TestRunFolder(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("abcdefgh ", 80)), 0o666); err != nil {
		t.Fatal(err)
	}
	c := traintest.Config(t, "gpt", map[string]any{"data": text, "batch": 4, "context": 16, "layers": 1, "heads": 2, "width": 32, "steps": 60, "lr": 0.01, "recompute": true})
	c.Out = filepath.Join(t.TempDir(), "run")
	result, _ := traintest.Run(t, c)
	if result.ValLoss == nil || *result.ValLoss > 0.5 || result.Text == "" {
		t.Fatalf("validation loss %v, text %q", result.ValLoss, result.Text)
	}
	r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "loss of what was held out", r.Loss, *result.ValLoss, 1e-12)
	var written strings.Builder
	out, err := train.Sample(t.Context(), train.SampleConfig{From: c.Out, Device: "cpu", Prompt: "abc", Length: 20}, func(s string) error {
		written.WriteString(s)
		return nil
	})
	if err != nil || out.Tokens != 20 || written.String() != "defgh abcdefgh abcde" {
		t.Errorf("%+v %q, %v", out, written.String(), err)
	}
	var published struct {
		Type   string `json:"model_type"`
		Width  int    `json:"n_embd"`
		Vocab  int    `json:"vocab_size"`
		Layers int    `json:"n_layer"`
	}
	golden.JSON(t, c.Out+"/config.json", &published)
	if published.Type != "gpt2" || published.Width != 32 || published.Vocab != 9 || published.Layers != 1 {
		t.Errorf("config.json has %+v", published)
	}
	again := traintest.Config(t, "gpt", map[string]any{"init": c.Out, "data": text, "batch": 4, "steps": 1, "width": 32})
	_, seen := traintest.Run(t, again)
	if seen.Steps[0].Loss > 0.6 {
		t.Errorf("going on from the folder starts at loss %v", seen.Steps[0].Loss)
	}
	again.Width, again.Heads = 64, 2
	if _, err := train.Run(t.Context(), again, nil); err == nil || !strings.Contains(err.Error(), "64") || !strings.Contains(err.Error(), "32") {
		t.Errorf("another width: %v", err)
	}
}

// TestHeads: a bare file of weights does not tell its heads. Those given count, then a description beside the file, then
// the width of published models.
func TestHeads(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "ids.bin")
	if err := os.WriteFile(tokens, make([]byte, 400), 0o666); err != nil {
		t.Fatal(err)
	}
	first := traintest.Config(t, "gpt", map[string]any{"tokens": tokens, "vocab": 5, "context": 8, "layers": 1, "heads": 6, "width": 192, "batch": 2, "steps": 1})
	first.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, first)
	beside := filepath.Join(first.Out, "model.safetensors")
	alone := filepath.Join(t.TempDir(), "alone.safetensors")
	if err := os.WriteFile(alone, []byte(traintest.Read(t, beside)), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		init  string
		heads int // 0: not given
		want  string
	}{{beside, 0, " 6 heads"}, {alone, 0, " 3 heads"}, {alone, 12, " 12 heads"}, {first.Out, 6, " 6 heads"}} {
		settings := map[string]any{"tokens": tokens, "init": c.init, "batch": 2, "steps": 1}
		if c.heads > 0 {
			settings["heads"] = c.heads
		}
		if r, _ := traintest.Run(t, traintest.Config(t, "gpt", settings)); !strings.Contains(r.Model, c.want) {
			t.Errorf("%s with --heads %d is %s, want%s", filepath.Base(c.init), c.heads, r.Model, c.want)
		}
	}
	r, err := train.Evaluate(t.Context(), train.EvalConfig{From: beside, Device: "cpu", Tokens: tokens})
	if err != nil || !strings.Contains(r.Model, " 6 heads") {
		t.Errorf("evaluated as %v, %v", r, err)
	}
}

// TestNull runs without arithmetic: memory as on the CPU, losses 0, no model.
func TestNull(t *testing.T) {
	figures := func(device string) *train.Result {
		c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 4, "device": device, "order": "sequential"})
		c.Out = filepath.Join(t.TempDir(), "run")
		r, _ := traintest.Run(t, c)
		if _, err := os.Stat(c.Out); (err == nil) != (device == "cpu") || (r.Out == "") != (err != nil) {
			t.Errorf("%s: the run folder %q: %v", device, r.Out, err)
		}
		return r
	}
	null, cpu := figures("null:a100-80"), figures("cpu")
	if null.Loss != 0 || null.Accuracy != nil || null.Computed {
		t.Errorf("null: loss %v, accuracy %v", null.Loss, null.Accuracy)
	}
	if m, n := null.Memory, cpu.Memory; m.Activations != n.Activations || m.Weights != n.Weights || m.Optimizer != n.Optimizer || m.Weights == 0 || m.Activations == 0 {
		t.Errorf("memory %+v, on the CPU %+v", m, n)
	}
	env, err := tensor.Open("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	if m, want := null.Memory, env.Device().Memory().Peak; m.Peak != want || null.PeakBytes != want {
		t.Errorf("a peak of %d and %d bytes, of tensors there were %d", m.Peak, null.PeakBytes, want)
	}
}

// TestNullScores: the peak of a run without arithmetic has that of scoring what is held out, as far as its largest batch.
func TestNullScores(t *testing.T) {
	peak := func(device, order string) int64 {
		c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 4000, 1, 16, 4), "batch": 2, "steps": 3, "device": device, "order": order})
		traintest.Cleaned(t, device)
		r, seen := traintest.Run(t, c)
		for _, s := range seen.Steps {
			if (s.MS > 0) != r.Computed {
				t.Errorf("%s: step %d took %v ms", device, s.Step, s.MS)
			}
		}
		if (r.Stepping > 0) != r.Computed {
			t.Errorf("%s: %v s of steps", device, r.Stepping)
		}
		return r.PeakBytes
	}
	const batch = 256 * 16 * 16 * 4
	null, cpu := peak("null:l4", "random"), peak("cpu", "random")
	if least := peak("null:l4", "sequential") + batch/2; null < least {
		t.Errorf("a peak of %d with scores, less than %d", null, least)
	}
	if null < cpu*85/100 || null > cpu*125/100 { // whose kernels take memory of their own
		t.Errorf("a peak of %d, on the CPU %d", null, cpu)
	}
}

// TestNullLeavesRunsAlone: going on without arithmetic gives figures, and the run is as it was.
func TestNullLeavesRunsAlone(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 3})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	files := func() map[string]string {
		found := map[string]string{}
		err := filepath.WalkDir(c.Out, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found[path] = traintest.Read(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := files()
	again := traintest.Config(t, "mlp", map[string]any{"steps": 5, "device": "null:a100-80"})
	again.Out, again.Resume = c.Out, true
	if r, _ := traintest.Run(t, again); r.Computed || r.Steps != 5 || r.PeakBytes == 0 {
		t.Errorf("%d steps, computed %v", r.Steps, r.Computed)
	}
	if after := files(); !maps.Equal(before, after) {
		t.Errorf("the run has changed: files %v, before %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// TestNotANumber stops a run that diverges, and keeps what was good.
func TestNotANumber(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"data": traintest.Pictures(t, 40, 1, 6, 3), "batch": 8, "steps": 3, "optimizer": "sgd", "save-every": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	c = traintest.Config(t, "mlp", map[string]any{"data": c.Data, "init": c.Out, "batch": 8, "steps": 9, "optimizer": "sgd", "lr": 1e37, "save-every": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	_, err := train.Run(t.Context(), c, nil)
	var known *train.Error
	if !errors.As(err, &known) || !strings.Contains(known.Text, "at step") || !strings.Contains(known.Hint, "--lr") {
		t.Fatalf("error %#v", err)
	}
	if steps, finals := traintest.StepsOf(t, c.Out); len(steps) == 0 || finals != 0 {
		t.Errorf("the log has steps %v and %d ends", steps, finals)
	}
}

// TestSteps: --steps wins over --epochs, and an epoch is a pass over what is not held out.
func TestSteps(t *testing.T) {
	data := traintest.Pictures(t, 50, 1, 6, 3) // 45 to train on
	c := traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 10, "epochs": 2})
	if r, _ := traintest.Run(t, c); r.Steps != 10 {
		t.Errorf("2 epochs are %d steps", r.Steps)
	}
	c = traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 10, "epochs": 2, "steps": 3})
	if r, _ := traintest.Run(t, c); r.Steps != 3 {
		t.Errorf("3 steps and 2 epochs are %d steps", r.Steps)
	}
	c = traintest.Config(t, "mlp", map[string]any{"data": data, "batch": 10, "epochs": 2, "order": "sequential"})
	r, seen := traintest.Run(t, c)
	if r.Steps != 10 || seen.Started.Test != 0 || r.Accuracy != nil {
		t.Errorf("sequential: %d steps, %d held out", r.Steps, seen.Started.Test)
	}
}
