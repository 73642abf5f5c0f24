package train_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// TestStreams: a run with a rate of 0 tells, step by step, the losses of a model that reads each row of the batch in one piece, and
// anew in each epoch. The reference reads token by token, and takes the softmax in float64.
func TestStreams(t *testing.T) {
	const rows, context, steps = 3, 5, 9
	path := traintest.IDs(t, 78)
	for _, order := range []string{"sequential", "random"} {
		c := traintest.Config(t, "lstm", map[string]any{"tokens": path, "vocab": 7, "context": context, "layers": 2, "width": 8, "batch": rows, "steps": steps,
			"optimizer": "sgd", "lr": 0, "device": "cpu", "order": order})
		c.Out = filepath.Join(t.TempDir(), "run")
		r, _ := traintest.Run(t, c)
		m := lstmOf(t, c.Out, model.LSTMConfig{Vocab: 7, Embedding: 7, Layers: 2, Width: 8})
		learnt := 78
		if order == "random" {
			learnt -= 7
		}
		per := (learnt - 1) / context / rows // steps of an epoch
		for step := range steps {
			var sum float64
			for row := range rows {
				row = row * per * context
				losses := m.losses(row, row+per*context)
				for _, l := range losses[step%per*context:][:context] {
					sum += l
				}
			}
			within(t, order, r.Log[step].Loss, sum/rows/context, 1e-5)
		}
		if order == "random" {
			var sum float64
			for _, l := range m.losses(71, 77) {
				sum += l
			}
			within(t, "what is held out", *r.ValLoss, sum/6, 1e-5)
		}
	}
}

// reader is a model that reads token by token.
type reader struct {
	env *tensor.Env
	*model.LSTM
}

func lstmOf(t *testing.T, dir string, c model.LSTMConfig) *reader {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewLSTM(env, c)
	if err := ckpt.LoadModel(filepath.Join(dir, "model.safetensors"), m); err != nil {
		t.Fatal(err)
	}
	return &reader{env.NoGrad().Eval(), m}
}

// losses are those of foretelling the tokens of ids behind each from lo to hi-1, read from lo.
func (m *reader) losses(lo, hi int) (all []float64) {
	state := m.Begin(m.env, 1)
	for i := lo; i < hi; i++ {
		scores, end := m.ForwardFrom(tensor.From(m.env, []int64{int64(i * i % 7)}, 1, 1), state)
		state = end
		total, v := 0.0, scores.Floats()
		for _, s := range v {
			total += math.Exp(s)
		}
		all = append(all, math.Log(total)-v[(i+1)*(i+1)%7])
	}
	return all
}

// TestLongRows: a text that is scored is read in one piece, as far as rows go, and not in those that the run learned from.
func TestLongRows(t *testing.T) {
	c := traintest.Config(t, "lstm", map[string]any{"tokens": traintest.IDs(t, 400), "vocab": 7, "context": 8, "layers": 1, "width": 8, "batch": 2, "steps": 1, "device": "cpu"})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	m := lstmOf(t, c.Out, model.LSTMConfig{Vocab: 7, Embedding: 7, Layers: 1, Width: 8})
	for _, n := range []int{2, 100, 129, 1025, 1300} {
		r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Tokens: traintest.IDs(t, n)})
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for lo := 0; lo < n-1; lo += 1024 {
			for _, l := range m.losses(lo, min(lo+1024, n-1)) {
				sum += l
			}
		}
		within(t, "loss", r.Loss, sum/float64(n-1), 1e-5)
		within(t, "perplexity", r.Metrics["perplexity"], math.Exp(r.Loss), 1e-9)
	}
}

// TestStreamsRefuse: texts and sizes that leave nothing to learn are errors that say what to do.
func TestStreamsRefuse(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "text.txt")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	long := write(strings.Repeat("abcabd", 100))
	for name, c := range map[string]struct {
		change     map[string]any
		text, hint string
	}{
		"empty":          {map[string]any{"data": write("")}, "", "text"},
		"one character":  {map[string]any{"data": write("aaaaaaa")}, "nothing to learn", "two different characters"},
		"shorter":        {map[string]any{"data": write("abcabc")}, "too few for a context", "shorter --context"},
		"too few pieces": {map[string]any{"data": long, "context": 64, "batch": 20}, "540 tokens to learn from are 8 pieces of 64, too few for 20 rows", "--batch 8 or less"},
		"no text":        {map[string]any{"data": write("ab\x00\x01")}, "is no text", "UTF-8"},
		"heads":          {map[string]any{"data": long, "heads": 2}, "--heads is for gpt", "leave --heads out"},
		"attention":      {map[string]any{"data": long, "recompute": "attention"}, "has no attention", "block"},
	} {
		run := traintest.Config(t, "lstm", c.change)
		run.Out = filepath.Join(t.TempDir(), "run")
		_, err := train.Run(t.Context(), run, nil)
		var known *train.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.text) || !strings.Contains(known.Hint, c.hint) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(run.Out); err == nil {
			t.Errorf("%s: a folder is left", name)
		}
	}
}

// TestLSTM is the run that bench/pytorch/lstm_reference.py makes with nn.LSTM: the gradients of its first step, the losses of all, and
// where it ends.
func TestLSTM(t *testing.T) {
	const dir = "../model/testdata/lstm/"
	var g struct {
		Losses []float64
		Sizes  struct{ Vocab, Embedding, Width, Layers, Rows, Context, Steps int }
		Hyper  struct {
			LR, Beta1, Beta2, Eps float64
			Decay                 float64 `json:"weight_decay"`
		}
	}
	golden.JSON(t, dir+"golden.json", &g)
	c := traintest.Config(t, "lstm", map[string]any{
		"init": dir + "init.safetensors", "tokens": dir + "tokens.bin", "vocab": g.Sizes.Vocab, "optimizer": "adamw", "lr": g.Hyper.LR, "beta1": g.Hyper.Beta1,
		"beta2": g.Hyper.Beta2, "eps": g.Hyper.Eps, "weight-decay": g.Hyper.Decay, "order": "sequential", "batch": g.Sizes.Rows, "context": g.Sizes.Context,
		"steps": g.Sizes.Steps,
	})
	c.Out = filepath.Join(t.TempDir(), "run")
	_, seen := traintest.Run(t, c)
	for i, want := range g.Losses {
		within(t, fmt.Sprintf("loss of step %d", i+1), seen.Steps[i].Loss, want, 1e-5)
	}
	got := tensors(t, c.Out+"/model.safetensors")
	for name, w := range tensors(t, dir+"final.safetensors") {
		if d := apart(got[name].Floats(), w.Floats()); d > 1e-4 {
			t.Errorf("%s ends %.2g apart", name, d)
		}
	}
	lstmGradients(t, dir, model.LSTMConfig{Vocab: g.Sizes.Vocab, Embedding: g.Sizes.Embedding, Layers: g.Sizes.Layers, Width: g.Sizes.Width}, g.Sizes.Rows, g.Sizes.Context, g.Losses[0])
}

// lstmGradients compares the first step's.
func lstmGradients(t *testing.T, dir string, c model.LSTMConfig, rows, context int, loss float64) {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewLSTM(env, c)
	if err := ckpt.LoadModel(dir+"init.safetensors", m); err != nil {
		t.Fatal(err)
	}
	raw := []byte(traintest.Read(t, dir+"tokens.bin"))
	per := (len(raw)/2 - 1) / context / rows
	var x, y []int64
	for row := range rows {
		for i := row * per * context; i < row*per*context+context; i++ {
			x, y = append(x, int64(binary.LittleEndian.Uint16(raw[2*i:]))), append(y, int64(binary.LittleEndian.Uint16(raw[2*i+2:])))
		}
	}
	got := m.Loss(tensor.From(env, x, rows, context), tensor.From(env, y, rows, context))
	within(t, "loss", got.Item(), loss, 1e-5)
	got.Backward()
	want := tensors(t, dir+"gradients.safetensors")
	for name, p := range nn.Params(m) {
		if d := apart(p.Grad().Floats(), want[name].Floats()); !(d < 1e-5) {
			t.Errorf("the gradient of %s is %.2g apart", name, d)
		}
	}
}
