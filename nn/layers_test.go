package nn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// TestInitialisation compares bounds and moments with what PyTorch's layers show.
func TestInitialisation(t *testing.T) {
	var file struct {
		Rows []struct {
			Layer, Parameter, Distribution string
			Attrs                          attrs
			Shape                          []int
			Bound, Mean, Std, Value        float64
		}
	}
	golden.JSON(t, "testdata/init.json", &file)
	env := freshEnv(t)
	for _, r := range file.Rows {
		name := fmt.Sprint(r.Layer, r.Attrs, " ", r.Parameter)
		var sample []float64
		const draws = 20
		for range draws {
			p := initialised(env, r.Layer, r.Attrs)[r.Parameter]
			if p == nil || !slices.Equal(p.Shape(), r.Shape) {
				t.Fatalf("%s: %v, want shape %v", name, p, r.Shape)
			}
			sample = append(sample, p.Floats()...)
		}
		mean, std, largest := moments(sample)
		slack := 6*r.Std/math.Sqrt(float64(len(sample))) + 1e-7
		if math.Abs(mean-r.Mean) > slack || math.Abs(std-r.Std) > slack {
			t.Errorf("%s: mean %v and deviation %v, want %v and %v", name, mean, std, r.Mean, r.Std)
		}
		if r.Distribution == "uniform" && (largest > r.Bound*(1+1e-6) || largest < 0.8*r.Bound) {
			t.Errorf("%s: largest %v, bound %v", name, largest, r.Bound)
		}
	}
}

func moments(sample []float64) (mean, std, largest float64) {
	for _, v := range sample {
		mean += v / float64(len(sample))
		largest = max(largest, math.Abs(v))
	}
	for _, v := range sample {
		std += (v - mean) * (v - mean) / float64(len(sample))
	}
	return mean, math.Sqrt(std), largest
}

// initialised is a fresh layer's state by PyTorch's names.
func initialised(env *tensor.Env, layer string, a attrs) map[string]*tensor.Tensor {
	n := func(key string) int { return int(a.number(key, 0)) }
	var m any
	switch layer {
	case "Linear":
		m = NewLinear(env, n("in_features"), n("out_features"))
	case "Conv2d":
		k := a.pair("kernel", 0)
		c := NewConv2d(env, n("in_channels"), n("out_channels"), k[0], ConvConfig{Groups: n("groups")})
		if k[0] != k[1] { // uneven windows are made by hand
			bound := fanBound(n("in_channels") / n("groups") * k[0] * k[1])
			c.Weight = uniform(env, bound, n("out_channels"), n("in_channels")/n("groups"), k[0], k[1])
			c.Bias = uniform(env, bound, n("out_channels"))
		}
		m = c
	case "Embedding":
		m = NewEmbedding(env, n("num_embeddings"), n("dim"))
	case "LayerNorm":
		m = NewLayerNorm(env, 6)
	case "RMSNorm":
		m = NewRMSNorm(env, 6)
	case "BatchNorm1d", "BatchNorm2d":
		m = NewBatchNorm(env, n("features"))
	case "MultiheadAttention":
		m = NewAttention(env, n("embed"), AttentionConfig{Heads: n("heads")})
	}
	torch := strings.NewReplacer("c_attn.", "in_proj_", "c_proj.", "out_proj.")
	out := map[string]*tensor.Tensor{}
	for name, t := range State(m) {
		out[torch.Replace(name)] = t
	}
	return out
}

// noisy has everything that a second run could get wrong.
func noisy(env *tensor.Env) Sequential {
	return Sequential{
		NewConv2d(env, 2, 4, 3, ConvConfig{Padding: 1, NoBias: true}), NewBatchNorm(env, 4), ReLU{}, Dropout{0.4},
		GlobalAvgPool{}, Flatten{}, NewLinear(env, 4, 3), Dropout{0.2}, Tanh{},
	}
}

// step is the loss and all gradients of one training step, and the state after.
func step(env *tensor.Env, m Module, in ...int) (loss float64, grads [][]float64, state map[string][]float64) {
	e, scope := env.Scope(5)
	defer scope.End()
	y := m.Forward(e.Randn(in...)).Square().Mean()
	y.Backward()
	for _, p := range Params(m) {
		grads = append(grads, p.Grad().Floats())
		p.DropGrad()
	}
	return y.Item(), grads, snapshot(m)
}

func equalSteps(t *testing.T, plain, again Module, env *tensor.Env, in ...int) {
	t.Helper()
	loss1, grads1, state1 := step(env, plain, in...)
	loss2, grads2, state2 := step(env, again, in...)
	if loss1 != loss2 || !slices.EqualFunc(grads1, grads2, slices.Equal) {
		t.Errorf("losses %v and %v, or their gradients, differ", loss1, loss2)
	}
	for name, v := range state1 {
		if !slices.Equal(v, state2[name]) {
			t.Errorf("%s is %v, want %v", name, state2[name], v)
		}
	}
}

func TestRecomputeEqualsPlain(t *testing.T) {
	env := freshEnv(t)
	m := noisy(env)
	equalSteps(t, Clone(m), Recompute(Clone(m)), env, 4, 2, 5, 5)
	attn := NewAttention(env, 8, AttentionConfig{Heads: 2, Causal: true, Dropout: 0.3})
	equalSteps(t, Clone(attn), Recompute(Clone(attn)), env, 2, 5, 8)
	again := Recompute(m)
	step(env, again, 4, 2, 5, 5)
	if n := m[1].(*BatchNorm).Batches.Item(); n != 1 {
		t.Errorf("running statistics were written %v times", n)
	}
}

func TestModes(t *testing.T) {
	env := freshEnv(t)
	m := noisy(env)
	x := env.Randn(4, 2, 5, 5)
	a, b := EvalMode(m).Forward(x), m.Forward(x.In(env.Eval()))
	if !slices.Equal(a.Floats(), b.Floats()) || !a.Env().Training() {
		t.Error("EvalMode is not evaluation, or leaks it")
	}
	if n := m[1].(*BatchNorm).Batches.Item(); n != 0 {
		t.Error("evaluation wrote running statistics")
	}
	if c := m.Forward(x); slices.Equal(a.Floats(), c.Floats()) {
		t.Error("training equals evaluation")
	}
	leaf := x.RequireGrad()
	y := Frozen(Sequential{NewLinear(env, 5, 3)}).Forward(leaf.Scale(1))
	y.Sum().Backward()
	if leaf.Grad() == nil || !y.Env().Recording() {
		t.Error("no gradient flows through Frozen, or its mode leaks")
	}
}

func TestFrozenParametersGetNoGradient(t *testing.T) {
	env := freshEnv(t)
	back, head := NewLinear(env, 5, 4), NewLinear(env, 4, 2)
	head.Forward(Frozen(back).Forward(env.Randn(3, 5))).Sum().Backward()
	if back.Weight.Grad() != nil || head.Weight.Grad() == nil {
		t.Error("gradients went to the frozen part, or not to the head")
	}
}

// TestAttentionWithDropout compares the open form, which drops weights, with the fused one: without drops they agree.
func TestAttentionWithDropout(t *testing.T) {
	env := freshEnv(t)
	for _, causal := range []bool{false, true} {
		for _, masked := range []bool{false, true} {
			l := NewAttention(env, 12, AttentionConfig{Heads: 3, Causal: causal})
			open := Clone(l)
			open.Dropout = 1e-12
			x := env.Randn(2, 5, 12)
			var keys *tensor.Tensor
			if masked { // the first row sees nothing at its first positions when causal
				keys = tensor.From(env, []bool{false, true, true, false, true, false, false, false, false, false}, 2, 5)
			}
			a, b := l.ForwardMasked(x, keys), open.ForwardMasked(x, keys)
			golden.Close(t, "output", b, a, 1e-5, 1e-6)
			a.Square().Sum().Backward()
			b.Square().Sum().Backward()
			golden.Close(t, "gradient", open.QKV.Weight.Grad(), l.QKV.Weight.Grad(), 1e-4, 1e-5)
		}
	}
	l := NewAttention(env, 4, AttentionConfig{Heads: 1, Dropout: 0.5})
	x := env.Randn(1, 6, 4)
	if slices.Equal(l.Forward(x).Floats(), l.Forward(x).Floats()) {
		t.Error("no dropout in training")
	}
	if !slices.Equal(l.Forward(x.In(env.Eval())).Floats(), l.Forward(x.In(env.Eval())).Floats()) {
		t.Error("dropout in evaluation")
	}
}

func TestLossForms(t *testing.T) {
	env := freshEnv(t)
	logits, labels := env.Randn(2, 3, 5), env.RandInt(0, 5, 2, 3)
	flat := CrossEntropy(logits.Reshape(6, 5), labels.Reshape(6))
	if a := CrossEntropy(logits, labels).Item(); a != flat.Item() {
		t.Errorf("[b, t, v] gives %v, flat %v", a, flat.Item())
	}
	if u := CrossEntropy(logits, labels, Unreduced()); !slices.Equal(u.Shape(), []int{2, 3}) {
		t.Errorf("unreduced losses have shape %v", u.Shape())
	}
	if v := CrossEntropy(logits, labels.FullLike(-1), Ignore(-1)).Item(); !math.IsNaN(v) {
		t.Errorf("the mean over no label is %v", v)
	}
	half := CrossEntropy(logits.Cast(dtype.BF16), labels)
	if half.DType() != dtype.F32 {
		t.Errorf("a loss of bf16 logits is %s", half.DType())
	}
	b := BCEWithLogits(env.Zeros(4), env.Ones(4).Gt(env.Zeros(4)))
	testutil.Close(t, []float64{b.Item()}, []float64{math.Ln2}, 1e-6, 0)
}

// TestBCEWithLogits: value, slope and curvature are those of -t·log σ(x) - (1-t)·log(1-σ(x)), at 0 and where σ rounds to 0
// or 1; an infinite logit costs infinity unless the target agrees with it.
func TestBCEWithLogits(t *testing.T) {
	env := freshEnv(t).Grad()
	for _, target := range []float64{0, 0.3, 1} {
		logits := []float64{0, math.Copysign(0, -1), 1e-3, -1e-3, 5, -5, 36, -36, 700, -700}
		var value, slope, curve []float64
		for _, x := range logits {
			sigma, less := 1/(1+math.Exp(-x)), 1/(1+math.Exp(x))
			value = append(value, target*math.Log1p(math.Exp(-math.Abs(x)))+(1-target)*math.Log1p(math.Exp(-math.Abs(x)))+math.Max(-x, 0)*target+math.Max(x, 0)*(1-target))
			slope = append(slope, (1-target)*sigma-target*less)
			curve = append(curve, sigma*less)
		}
		x := tensor.NewParam(tensor.From(env, logits, len(logits)))
		y := BCEWithLogits(x, x.Detach().FullLike(target), Unreduced())
		first := tensor.GradGraph(y.Sum(), x)[0]
		testutil.Close(t, y.Floats(), value, 1e-14, 0)
		testutil.Close(t, first.Floats(), slope, 1e-14, 1e-16)
		testutil.Close(t, tensor.Grad(first.Sum(), x)[0].Floats(), curve, 1e-14, 1e-16)
	}
	inf := math.Inf(1)
	x := tensor.From(env, []float64{inf, inf, -inf, -inf}, 4)
	testutil.Close(t, BCEWithLogits(x, tensor.From(env, []float64{0, 0.3, 0.3, 1}, 4), Unreduced()).Floats(), []float64{inf, inf, inf, inf}, 0, 0)
}

func TestMistakes(t *testing.T) {
	env := freshEnv(t)
	for want, f := range map[string]func(){
		"logits [2 3] with labels [3]":      func() { CrossEntropy(env.Zeros(2, 3), env.Arange(3)) },
		"values [2] with targets [3]":       func() { MSE(env.Zeros(2), env.Zeros(3)) },
		"values [1] with targets [1 1]":     func() { BCEWithLogits(env.Zeros(1), env.Zeros(1, 1)) },
		"smoothing 2":                       func() { Smoothing(2) },
		"width 5 in 2 heads":                func() { NewAttention(env, 5, AttentionConfig{Heads: 2}) },
		"in 0 heads":                        func() { NewAttention(env, 5, AttentionConfig{}) },
		"input of shape [2 4]":              func() { NewAttention(env, 4, AttentionConfig{Heads: 2}).Forward(env.Zeros(2, 4)) },
		"3 inputs and 4 outputs in 2":       func() { NewConv2d(env, 3, 4, 1, ConvConfig{Groups: 2}) },
		"one value per channel in training": func() { NewBatchNorm(env, 2).Forward(env.Zeros(1, 2)) },
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "layers_test.go:") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMemoryIsFlat(t *testing.T) {
	env := freshEnv(t)
	m := noisy(env)
	var early tensor.Memory
	for i := range 200 {
		step(env, m, 4, 2, 5, 5)
		if i == 20 {
			env.Device().Collect()
			early = env.Device().Memory()
		}
	}
	if late := env.Device().Memory(); late.Used != early.Used {
		t.Errorf("%d bytes used after 200 steps, %d after 20", late.Used, early.Used)
	}
}

func TestAutocast(t *testing.T) {
	env := freshEnv(t)
	m := noisy(env)
	x := env.Randn(4, 2, 5, 5)
	want := m.Forward(x.In(env.Eval()))
	got := m.Forward(x.In(env.Eval().Autocast(dtype.BF16)))
	golden.Close(t, "output", got.Cast(dtype.F32), want, 0.05, 0.02)
	loss := m.Forward(x.In(env.Autocast(dtype.BF16))).Square().Mean()
	loss.Backward()
	for name, p := range Params(m) {
		if p.Grad() == nil || p.Grad().DType() != dtype.F32 {
			t.Errorf("%s has no f32 gradient", name)
		}
	}
}

func TestSummary(t *testing.T) {
	env := freshEnv(t)
	conv := Sequential{NewConv2d(env, 3, 8, 3, ConvConfig{Padding: 1, Stride: 2}), NewBatchNorm(env, 8), ReLU{}, MaxPool2d{Kernel: 2},
		Frozen(Sequential{Flatten{}}), NewLinear(env, 8*4*4, 10)}
	Freeze(conv[0], true)
	before := env.Draws()
	s := Summary(conv, 2, 3, 16, 16)
	if env.Draws() != before {
		t.Error("a summary drew random numbers of the program")
	}
	want := []Row{
		{Path: "0", Kind: "Conv2d", Output: []int{2, 8, 8, 8}, Params: 224, Bytes: 896, OutBytes: 4096, Products: 2 * 8 * 8 * 8 * 27},
		{Path: "1", Kind: "BatchNorm", Output: []int{2, 8, 8, 8}, Params: 16, Bytes: 64, OutBytes: 4096, Trainable: 16},
		{Path: "2", Kind: "ReLU", Output: []int{2, 8, 8, 8}, OutBytes: 4096},
		{Path: "3", Kind: "MaxPool2d", Output: []int{2, 8, 4, 4}, OutBytes: 1024},
		{Path: "4.0", Kind: "Flatten", Output: []int{2, 128}, OutBytes: 1024},
		{Path: "5", Kind: "Linear", Output: []int{2, 10}, Params: 1290, Bytes: 5160, OutBytes: 80, Products: 2560, Trainable: 1290},
	}
	equal := func(a, b Row) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	if !slices.EqualFunc(s.Rows, want, equal) {
		t.Errorf("rows\n%v, want\n%v", s.Rows, want)
	}
	if total := s.Total(); total.Params != Count(conv) {
		t.Errorf("%d parameters in all, want %d", total.Params, Count(conv))
	}
	if text := s.String(); !strings.Contains(text, "2×8×8×8") || !strings.Contains(text, "224 parameters are frozen") || strings.Count(text, "\n") != 10 {
		t.Errorf("text:\n%s", text)
	}
	b := &block{NewLayerNorm(env, 8), NewAttention(env, 8, AttentionConfig{Heads: 2}), &mlp{NewLinear(env, 8, 16), NewLinear(env, 16, 8)}}
	s = Summary(b, 1, 4, 8)
	var paths []string
	for _, r := range s.Rows {
		paths = append(paths, r.Path)
	}
	if want := strings.Fields("ln_1 attn.c_attn attn.c_proj attn mlp.c_fc mlp.c_proj"); !slices.Equal(paths, want) {
		t.Errorf("layers %v, want %v", paths, want)
	}
	if total := s.Total(); total.Params != Count(b) || total.Products != 4*8*24+4*8*8+2*4*4*8+2*4*8*16 {
		t.Errorf("totals %+v", total)
	}
}

// TestTied checks that a tied weight gets the gradients of both uses.
func TestTied(t *testing.T) {
	env := freshEnv(t)
	e := NewEmbedding(env, 3, 2)
	m := &struct {
		In  *Embedding `nn:"wte"`
		Out *Linear    `nn:"head"`
	}{e, &Linear{Weight: e.Weight}}
	m.Out.Forward(m.In.Forward(tensor.From(env, []int64{1}, 1))).Sum().Backward()
	w := e.Weight.Floats()
	// d/dw of Σ_j w[1]·w[j]: w[1] for every row, and Σ_j w[j] more for row 1.
	want := make([]float64, 6)
	for j := range 3 {
		for d := range 2 {
			want[2*j+d] += w[2+d]
			want[2+d] += w[2*j+d]
		}
	}
	testutil.Close(t, e.Weight.Grad().Floats(), want, 1e-5, 1e-6)
	if n := len(names(Params(m))); n != 1 {
		t.Errorf("%d parameters, want 1", n)
	}
	if got := names(State(m)); !slices.Equal(got, []string{"wte.weight", "head.weight"}) {
		t.Errorf("state %v", got)
	}
}

// TestReplicas trains copies side by side, while a third model is summarised: each must do what it does alone.
func TestReplicas(t *testing.T) {
	env := freshEnv(t)
	m := noisy(env)
	alone := Clone(m)
	for range 10 {
		step(env, alone, 4, 2, 5, 5)
	}
	want := snapshot(alone)
	var wg sync.WaitGroup
	for range 3 {
		c := Clone(m)
		wg.Go(func() {
			for range 10 {
				step(env, c, 4, 2, 5, 5)
			}
			if !maps.EqualFunc(want, snapshot(c), slices.Equal) {
				t.Error("a replica differs")
			}
		})
	}
	wg.Go(func() {
		if s := Summary(Clone(m), 4, 2, 5, 5); len(s.Rows) != len(m) {
			t.Errorf("%d rows for %d layers", len(s.Rows), len(m))
		}
	})
	wg.Wait()
}
