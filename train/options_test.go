package train_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// option is what says in a program of one's own what a setting of the command says: fields of a Loop, or words of the library. A
// setting that is about no loop says what it is about.
type option struct {
	fields string // with spaces between them
	words  []any
	about  string
}

// options has a row for each field of a Config.
var options = map[string]option{
	"Task": {about: "model and set"}, "Data": {about: "set"}, "Tokens": {about: "set"}, "Target": {about: "set"}, "Objective": {about: "set"}, "Drop": {about: "set"}, "Invent": {about: "set"},
	"Context": {about: "model"}, "Layers": {about: "model"}, "Heads": {about: "model"}, "Width": {about: "model"}, "Vocab": {about: "model"}, "Dropout": {about: "model"}, "Head": {about: "model", words: []any{nn.LinearCrossEntropy}},
	"Given": {about: "flags"}, "Threads": {about: "process, GOMAXPROCS"}, "Device": {about: "device", words: []any{tensor.Open}}, "Memory": {about: "device", words: []any{(*tensor.Device).SetLimit, (*tensor.Device).SetMemoryFraction}},

	"Steps": {fields: "Steps"}, "Epochs": {fields: "Epochs"}, "Batch": {fields: "Data"}, "Order": {fields: "Data"}, "Seed": {fields: "Env", words: []any{(*tensor.Env).Seed}},
	"LR": {fields: "Optimizer Schedule"}, "Optimizer": {fields: "Optimizer"}, "WeightDecay": {fields: "Optimizer"}, "Clip": {fields: "Optimizer"}, "Options": {fields: "Optimizer Schedule"},
	"Average": {fields: "Average"}, "Schedule": {fields: "Schedule Plateau Momentum"}, "ScheduleSteps": {fields: "Schedule"}, "Warmup": {fields: "Schedule", words: []any{optim.Warmup}},
	"Params": {fields: "Model", words: []any{nn.Cast}}, "Init": {fields: "Model", words: []any{ckpt.LoadModel}}, "LoRA": {fields: "Model", words: []any{nn.AddLoRA, nn.MergeLoRA}}, "Freeze": {fields: "Model", words: []any{nn.Freeze, nn.Matching}},
	"Out": {fields: "Out"}, "Resume": {fields: "Resume"}, "EvalEvery": {fields: "EvalEvery"}, "Patience": {fields: "Patience"}, "Keep": {fields: "Keep"}, "SaveEvery": {fields: "SaveEvery"},
	"AMP": {fields: "Env Scaler", words: []any{(*tensor.Env).Autocast, (*tensor.Env).Products}}, "Statistics": {fields: "Statistics"}, "Anomaly": {fields: "Anomaly"}, "Accumulate": {fields: "Parts"},
	"InBackward": {fields: "InBackward"}, "Capture": {fields: "Capture"}, "Recompute": {fields: "Env", words: []any{(*tensor.Env).Recompute, plan.Recompute}}, "Slowdown": {words: []any{plan.Budget{}}},
	"Offload": {fields: "Env Optimizer", words: []any{(*tensor.Env).Offload}}, "AutoBatch": {words: []any{plan.LargestBatch}}, "Reserve": {words: []any{plan.LargestBatch}},
	"Profile": {fields: "Profile"}, "ProfileAfter": {fields: "ProfileAfter"}, "ProfileSteps": {fields: "ProfileSteps"},
}

// TestOptions: what the command can be told of a training, a Loop can be told, or the library has a word for it.
func TestOptions(t *testing.T) {
	loop := map[string]bool{"After": true, "Watch": true} // which a command line has no words for
	for f := range reflect.TypeFor[train.Config]().Fields() {
		o, ok := options[f.Name]
		if !ok || o.fields == "" && o.words == nil && o.about == "" {
			t.Errorf("Config.%s has no row: what says it in a program of one's own?", f.Name)
		}
		for _, name := range strings.Fields(o.fields) {
			loop[name] = true
		}
	}
	for name := range loop {
		if _, ok := reflect.TypeFor[train.Loop]().FieldByName(name); !ok {
			t.Errorf("a Loop has no %s", name)
		}
	}
	for f := range reflect.TypeFor[train.Loop]().Fields() {
		if !loop[f.Name] {
			t.Errorf("Loop.%s is not told of in the command's options", f.Name)
		}
	}
}

// twin is a program of one's own that does what the command does.
type twin struct {
	env   *tensor.Env
	model nn.Sequential
	step  recipe.Step
	loop  train.Loop
}

// optimizer makes that of a twin.
func (w *twin) optimizer(name string) {
	o := recipe.OptimizerOf(name)
	w.step.WeightDecay, w.step.Values = o.Decay, recipe.Values{}
	for _, s := range o.Settings {
		w.step.Values[s.Name] = s.Default
	}
	w.loop.Optimizer = o.Make(nn.Params(w.model), w.step)
}

// told are settings of the command, with the same said to a Loop. What is done to the model or to the optimizer's settings comes before
// the optimizer is made.
var told = map[string]struct {
	settings map[string]any
	before   func(w *twin)
	loop     func(w *twin)
}{
	"plain":       {},
	"accumulate":  {map[string]any{"accumulate": 2}, nil, func(w *twin) { w.loop.Parts = 2 }},
	"auto parts":  {map[string]any{"accumulate": "auto"}, nil, func(w *twin) { w.loop.Parts = train.AutoParts }},
	"capture":     {map[string]any{"capture": true}, nil, func(w *twin) { w.loop.Capture = true }},
	"in backward": {map[string]any{"step-in-backward": true}, nil, func(w *twin) { w.loop.InBackward = true }},
	"average":     {map[string]any{"average": 0.8, "eval-every": 7, "keep": "best"}, nil, func(w *twin) { w.loop.Average, w.loop.EvalEvery, w.loop.Keep = 0.8, 7, train.KeepBest }},
	"own average": {map[string]any{"optimizer": "schedulefree"}, nil, func(w *twin) { w.optimizer("schedulefree") }},
	"patience":    {map[string]any{"patience": 2, "eval-every": 2, "lr": 0.3}, func(w *twin) { w.step.LR = 0.3 }, func(w *twin) { w.loop.Patience, w.loop.EvalEvery, w.loop.Keep = 2, 2, train.KeepBest }},
	"keep 3":      {map[string]any{"keep": "3", "save-every": 3}, nil, func(w *twin) { w.loop.Keep, w.loop.SaveEvery = 3, 3 }},
	"clip":        {map[string]any{"clip": 0.5}, func(w *twin) { w.step.Clip = 0.5 }, nil},
	"schedule":    {map[string]any{"schedule": "cosine", "warmup": 3}, nil, func(w *twin) { w.loop.Schedule = recipe.ScheduleOf("cosine").Make(1e-3, 14, 3, nil) }},
	"statistics":  {map[string]any{"statistics": 3}, nil, func(w *twin) { w.loop.Statistics = 3 }},
	"anomaly":     {map[string]any{"anomaly": true}, nil, func(w *twin) { w.loop.Anomaly = true }},
	"amp bf16":    {map[string]any{"amp": "bf16"}, nil, func(w *twin) { w.loop.Env = w.env.Autocast(dtype.BF16) }},
	"amp fp16": {map[string]any{"amp": "fp16"}, nil, func(w *twin) {
		w.loop.Env, w.loop.Scaler = w.env.Autocast(dtype.F16), optim.NewLossScaler(optim.LossScalerConfig{})
	}},
	"recompute": {map[string]any{"recompute": "block"}, nil, func(w *twin) { w.loop.Env = w.env.Recompute(tensor.PartsOf(tensor.PartBlock)) }},
	"lora":      {map[string]any{"lora": 2}, func(w *twin) { nn.AddLoRA(w.model, nn.LoRAConfig{Rank: 2, Env: w.env}) }, nil},
	"freeze":    {map[string]any{"freeze": "1.*"}, func(w *twin) { nn.Freeze(w.model[1], true) }, nil},
	"captured, in parts, with a mean and a scaler": {map[string]any{"capture": true, "accumulate": 2, "average": 0.9, "amp": "fp16"}, nil, func(w *twin) {
		w.loop.Capture, w.loop.Parts, w.loop.Average, w.loop.Env, w.loop.Scaler = true, 2, 0.9, w.env.Autocast(dtype.F16), optim.NewLossScaler(optim.LossScalerConfig{})
	}},
}

// TestLoopIsTheCommand: a program that tells Fit what a command line says has its losses, weights and lines,
// bit for bit, in one piece and in two.
func TestLoopIsTheCommand(t *testing.T) {
	path := traintest.Pictures(t, 60, 1, 6, 4)
	all, _, err := dataset.Pictures(path)
	if err != nil {
		t.Fatal(err)
	}
	learn, held := data.Subset(all, 0, 54), data.Subset(all, 54, 60)
	for name, c := range told {
		command := func(out string) *train.Result {
			of := traintest.Config(t, "mlp", traintest.Merged(map[string]any{"data": path, "batch": 8, "steps": 14}, c.settings))
			of.Out = out
			r, _ := traintest.Run(t, of)
			return r
		}
		program := func(out string, steps int, resume bool) *train.Result {
			env, err := tensor.Open("cpu")
			if err != nil {
				t.Fatal(err)
			}
			w := &twin{env: env.Seed(0), step: recipe.Step{LR: 1e-3}}
			w.model = model.NewMLP(w.env, model.ImageConfig{Channels: 1, Height: 6, Width: 6, Classes: 4}, 128)
			w.loop = train.Loop{Env: w.env, Model: w.model, Data: data.Config{Size: 8, Shuffle: true}, Steps: steps, EvalEvery: 1000, Keep: 2, Out: out, Resume: resume}
			if c.before != nil {
				c.before(w)
			}
			w.optimizer("adamw")
			if c.loop != nil {
				c.loop(w)
			}
			r, err := train.Fit(t.Context(), w.loop, learn, held, func(b *data.Pair, m *metric.Meters) *tensor.Tensor {
				y := w.model.Forward(b.X)
				m.Accuracy(y, b.Y)
				return nn.CrossEntropy(y, b.Y)
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c.settings["lora"] != nil { // which the command merges
				nn.MergeLoRA(w.model)
				if err := ckpt.SaveModel(filepath.Join(out, ckpt.ModelFile), w.model); err != nil {
					t.Fatal(err)
				}
			}
			return r
		}
		t.Run(name, func(t *testing.T) {
			theirs, ours, parts := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "c")
			want, got := command(theirs), program(ours, 14, false)
			compare(t, "the command", want, got)
			same(t, theirs, ours)
			if c.settings["eval-every"] != nil { // the end of the first of two pieces has a score, which counts
				return
			}
			program(parts, 7, false)
			compare(t, "one piece", got, program(parts, 14, true))
			same(t, ours, parts)
		})
	}
}

// compare wants the losses and scores of two trainings to be the same.
func compare(t *testing.T, what string, want, got *train.Result) {
	t.Helper()
	losses := func(r *train.Result) (all []float64) {
		for _, s := range r.Log {
			all = append(all, s.Loss)
		}
		return all
	}
	if !slices.Equal(losses(want), losses(got)) || want.Steps != got.Steps || want.Session == got.Session && want.Captured != got.Captured || want.Frozen != got.Frozen {
		t.Errorf("%d steps with losses %v, %s has %d with %v", got.Steps, losses(got), what, want.Steps, losses(want))
	}
	if !reflect.DeepEqual(want.Scale, got.Scale) || !reflect.DeepEqual(want.Left, got.Left) {
		t.Errorf("the scaler has left out %v steps, with %s %v", got.Left, what, want.Left)
	}
}

// same wants two folders to have the same weights, and the same lines of steps, but for their times.
func same(t *testing.T, a, b string) {
	t.Helper()
	for name, read := range map[string]func(raw []byte) string{ckpt.ModelFile: func(raw []byte) string { return string(raw) }, "log.jsonl": steps} {
		want, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(b, name)); err != nil || read(got) != read(want) {
			t.Errorf("%v: %s differs", err, name)
		}
	}
}

// steps are the lines of a log that are of steps and looks, without times.
func steps(raw []byte) string {
	var kept strings.Builder
	for line := range strings.Lines(string(raw)) {
		if !strings.Contains(line, `"score"`) && !strings.Contains(line, `"final"`) {
			kept.WriteString(ms.ReplaceAllString(line, ""))
		}
	}
	return kept.String()
}

var ms = regexp.MustCompile(`"ms":[^,}]*`)
