package model_test

import (
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func open(t *testing.T) *tensor.Env {
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// load puts golden values behind a model's handles; every name must be there.
func load(t *testing.T, m any, values map[string]*tensor.Tensor, transposed func(string) bool) {
	t.Helper()
	for name, p := range nn.State(m) {
		v := values[name]
		if v == nil {
			t.Fatalf("no golden value for %s", name)
		}
		if transposed(name) {
			v = v.Transpose(0, 1)
		}
		p.Replace(v.Cast(p.DType()))
	}
}

func norm(t *tensor.Tensor) float64 { return math.Sqrt(tensor.SumSquares(t).Item()) }

// apart is |got - want| / |want|.
func apart(got, want *tensor.Tensor) float64 {
	w := norm(want)
	d := norm(got.Sub(want))
	if d == 0 {
		return 0
	}
	return d / w
}

func within(t *testing.T, what string, got, want, rel float64) {
	t.Helper()
	if d := math.Abs(got-want) / math.Abs(want); !(d <= rel) {
		t.Errorf("%s is %v, PyTorch's %v: %.2g apart, at most %.2g", what, got, want, d, rel)
	}
}

func plain(string) bool { return false }

// TestGPT2 trains a tiny GPT-2 beside transformers' for 20 steps of AdamW with clipping.
func TestGPT2(t *testing.T) {
	const dir = "testdata/gpt2/"
	var g struct {
		Config struct {
			Layers  int `json:"n_layer"`
			Heads   int `json:"n_head"`
			Width   int `json:"n_embd"`
			Context int `json:"n_positions"`
			Vocab   int `json:"vocab_size"`
		}
		Hyper struct {
			LR, Beta1, Beta2, Eps, Clip float64
			WeightDecay                 float64 `json:"weight_decay"`
		}
		Batch, Steps int
		Losses       []float64
	}
	golden.JSON(t, dir+"golden.json", &g)
	env := open(t)
	m := model.NewGPT(env, model.GPTConfig{Vocab: g.Config.Vocab, Context: g.Config.Context, Layers: g.Config.Layers, Heads: g.Config.Heads, Width: g.Config.Width})
	load(t, m, golden.Tensors(t, env, dir+"init/model.safetensors"), m.Transposed)

	shown := golden.Tensors(t, env, dir+"logits.safetensors")
	golden.Close(t, "logits", m.Forward(shown["tokens"].In(env.NoGrad())), shown["logits"], 1e-4, 1e-5)

	raw, err := os.ReadFile(dir + "tokens.bin")
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int64, len(raw)/2)
	for i := range tokens {
		tokens[i] = int64(binary.LittleEndian.Uint16(raw[2*i:]))
	}
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: g.Hyper.LR, Beta1: g.Hyper.Beta1, Beta2: g.Hyper.Beta2, Eps: g.Hyper.Eps,
		WeightDecay: g.Hyper.WeightDecay, Clip: g.Hyper.Clip, Rule: optim.DecayMatricesOnly})
	first := golden.Tensors(t, env, dir+"gradients.safetensors")
	size := g.Batch * g.Config.Context
	for s := range g.Steps {
		e, turn := env.Scope(uint64(s))
		x := tensor.From(e, tokens[s*size:(s+1)*size], g.Batch, g.Config.Context)
		y := tensor.From(e, tokens[s*size+1:(s+1)*size+1], g.Batch, g.Config.Context)
		loss := m.Loss(x, y)
		loss.Backward()
		if s == 0 {
			kept := e.NoGrad()
			within(t, "loss of scores that are kept", nn.CrossEntropy(m.Forward(x.In(kept)), y.In(kept)).Item(), g.Losses[s], 1e-5)
			for name, p := range nn.Params(m) {
				grad := p.Grad()
				if m.Transposed(name) {
					grad = grad.Transpose(0, 1)
				}
				if d := apart(grad, first[name]); d > 1e-5 {
					t.Errorf("first gradient of %s is %.2g apart", name, d)
				}
			}
		}
		opt.Step()
		within(t, "loss", loss.Item(), g.Losses[s], 1e-5)
		turn.End()
	}
	final := golden.Tensors(t, env, dir+"final.safetensors")
	for name, p := range nn.Params(m) {
		v := p
		if m.Transposed(name) {
			v = p.Transpose(0, 1)
		}
		if d := apart(v, final[name]); d > 1e-3 {
			t.Errorf("%s ends %.2g apart", name, d)
		}
	}
}

// TestResNetSizes: as many parameters as torchvision's have.
func TestResNetSizes(t *testing.T) {
	env, err := tensor.Fresh("null:h200")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[int]model.ResNetConfig{11_689_512: model.ResNet18(1000), 25_557_032: model.ResNet50(1000)} {
		got := 0
		for _, p := range nn.Params(model.NewResNet(env, c)) {
			got += p.Size()
		}
		if got != want {
			t.Errorf("%+v has %d parameters, want %d", c, got, want)
		}
	}
}

// TestResNetRefuses a number of blocks that is none.
func TestResNetRefuses(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.Try(func(env *tensor.Env) *tensor.Tensor {
		model.NewResNet(env, model.ResNetConfig{Blocks: [4]int{1, -1, 1, 1}, Planes: 2, Channels: 1, Classes: 2})
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "the blocks of the stages are [1 -1 1 1]") {
		t.Error(err)
	}
}

// TestResNet trains thin residual networks beside torchvision's for six steps, then evaluates.
func TestResNet(t *testing.T) {
	t.Run("basic", func(t *testing.T) { testResNet(t, "testdata/resnet/", false) })
	t.Run("bottleneck", func(t *testing.T) { testResNet(t, "testdata/resnet50/", true) })
}

func testResNet(t *testing.T, dir string, bottleneck bool) {
	var g struct {
		Layers         [4]int
		Planes         int
		Classes        int
		Batch, Samples int
		LR, Momentum   float64
		Losses         []float64
		Eval           struct{ Loss, Accuracy float64 }
	}
	golden.JSON(t, dir+"golden.json", &g)
	env := open(t)
	m := model.NewResNet(env, model.ResNetConfig{Blocks: g.Layers, Bottleneck: bottleneck, Planes: g.Planes, Channels: 3, Classes: g.Classes})
	start := golden.Tensors(t, env, dir+"init.safetensors")
	load(t, m, start, plain)
	d := golden.Tensors(t, env, dir+"data.safetensors")
	shown := golden.Tensors(t, env, "testdata/resnet/data.safetensors")
	x, y := shown["images"], shown["labels"]
	quiet := env.NoGrad().Eval()
	golden.Close(t, "logits in evaluation", m.Forward(x.Slice(0, 0, 8).In(quiet)), d["logits.eval"], 1e-4, 1e-5)

	opt := optim.NewSGD(nn.Params(m), optim.SGDConfig{LR: g.LR, Momentum: g.Momentum})
	first := golden.Tensors(t, env, dir+"gradients.safetensors")
	for s := range g.Losses {
		e, turn := env.Scope(uint64(s))
		rows := make([]int64, g.Batch)
		for i := range rows {
			rows[i] = int64((s*g.Batch + i) % g.Samples)
		}
		idx := tensor.From(e, rows, g.Batch)
		logits := m.Forward(x.In(e).IndexSelect(0, idx))
		loss := nn.CrossEntropy(logits, y.In(e).Unsqueeze(1).IndexSelect(0, idx).Squeeze(1))
		loss.Backward()
		if s == 0 {
			golden.Close(t, "logits in training", logits, d["logits.train"], 1e-4, 1e-5)
			for name, p := range nn.Params(m) {
				if d := apart(p.Grad(), first[name]); d > 1e-4 {
					t.Errorf("first gradient of %s is %.2g apart", name, d)
				}
			}
		}
		opt.Step()
		within(t, "loss", loss.Item(), g.Losses[s], 1e-4)
		turn.End()
	}
	final := golden.Tensors(t, env, dir+"final.safetensors")
	for name, v := range nn.State(m) {
		want := final[name]
		if v.DType().IsFloat() && !v.IsParam() {
			if d := apart(v, want); d > 2e-4 {
				t.Errorf("%s ends %.2g apart", name, d)
			}
		}
	}
	for name, p := range nn.Params(m) {
		if d := apart(p.Sub(start[name]), final[name].Sub(start[name])); d > 5e-2 {
			t.Errorf("the update of %s is %.2g apart", name, d)
		}
	}
	scores := m.Forward(x.In(quiet))
	within(t, "evaluation loss", nn.CrossEntropy(scores, y).Item(), g.Eval.Loss, 1e-4)
	hits := scores.ArgMax(1).Eq(y).Sum().Item()
	within(t, "accuracy", hits/float64(g.Samples), g.Eval.Accuracy, 1e-9)
}
