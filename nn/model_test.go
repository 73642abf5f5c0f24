package nn

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

func names(seq func(func(string, *tensor.Tensor) bool)) (out []string) {
	for name := range seq {
		out = append(out, name)
	}
	return out
}

type mlp struct {
	Up   *Linear `nn:"c_fc"`
	Down *Linear `nn:"c_proj"`
}

func (m *mlp) Forward(x *tensor.Tensor) *tensor.Tensor {
	return m.Down.Forward(m.Up.Forward(x).GELU())
}

type block struct {
	LN1  *LayerNorm `nn:"ln_1"`
	Attn *Attention `nn:"attn"`
	MLP  *mlp       `nn:"mlp"`
}

func (b *block) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = x.Add(b.Attn.Forward(b.LN1.Forward(x)))
	return x.Add(b.MLP.Forward(x))
}

type head struct{ Head *Linear }

type base struct {
	Shift *tensor.Tensor `nn:"shift"`
}

// gpt has every kind of field that the walk knows.
type gpt struct {
	Table *Embedding `nn:"wte"`
	H     []*block   `nn:"h"`
	base
	head
	Wrapped Module             `nn:"wrapped"`
	Experts map[string]*Linear `nn:"experts"`
	Steps   [2]*LayerNorm      `nn:"steps"`
	Norm    *BatchNorm         `nn:"norm"`
	Mask    *tensor.Tensor     `nn:"mask,transient"`
	Cache   *tensor.Tensor     `nn:"-"`
	Absent  *Linear            `nn:"absent"`
	Parent  any                `nn:"parent"`
	Sizes   []int
	private *tensor.Tensor `nn:"-"`
}

func newGPT(env *tensor.Env) *gpt {
	g := &gpt{
		Table:   NewEmbedding(env, 6, 4),
		base:    base{NewParam(env.Zeros(4))},
		head:    head{NewLinearNoBias(env, 4, 6)},
		Wrapped: Recompute(Frozen(Sequential{ReLU{}, NewLinear(env, 4, 4)})),
		Experts: map[string]*Linear{"b": NewLinearNoBias(env, 1, 1), "a": NewLinearNoBias(env, 1, 1)},
		Steps:   [2]*LayerNorm{NewLayerNorm(env, 4), nil},
		Norm:    NewBatchNorm(env, 4),
		Mask:    tensor.NewBuffer(env.Ones(2)),
		Cache:   env.Ones(1),
		Sizes:   []int{1, 2},
		private: env.Ones(1),
	}
	g.Head.Weight = g.Table.Weight // tied
	for range 2 {
		g.H = append(g.H, &block{NewLayerNorm(env, 4), NewAttention(env, 4, AttentionConfig{Heads: 2}), &mlp{NewLinear(env, 4, 8), NewLinear(env, 8, 4)}})
	}
	g.Parent = g // a cycle
	return g
}

var gptParams = strings.Fields(`
	wte.weight
	h.0.ln_1.weight h.0.ln_1.bias h.0.attn.c_attn.weight h.0.attn.c_attn.bias h.0.attn.c_proj.weight h.0.attn.c_proj.bias
	h.0.mlp.c_fc.weight h.0.mlp.c_fc.bias h.0.mlp.c_proj.weight h.0.mlp.c_proj.bias
	h.1.ln_1.weight h.1.ln_1.bias h.1.attn.c_attn.weight h.1.attn.c_attn.bias h.1.attn.c_proj.weight h.1.attn.c_proj.bias
	h.1.mlp.c_fc.weight h.1.mlp.c_fc.bias h.1.mlp.c_proj.weight h.1.mlp.c_proj.bias
	shift wrapped.1.weight wrapped.1.bias experts.a.weight experts.b.weight steps.0.weight steps.0.bias norm.weight norm.bias`)

func TestParams(t *testing.T) {
	g := newGPT(freshEnv(t))
	if got := names(Params(g)); !slices.Equal(got, gptParams) {
		t.Errorf("parameters\n%v, want\n%v", got, gptParams)
	}
	if got, want := names(Buffers(g)), strings.Fields("norm.running_mean norm.running_var norm.num_batches_tracked mask"); !slices.Equal(got, want) {
		t.Errorf("buffers %v, want %v", got, want)
	}
	i := slices.Index(gptParams, "shift") + 1
	want := slices.Concat(gptParams[:i], []string{"Head.weight"}, gptParams[i:], []string{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"})
	if got := names(State(g)); !slices.Equal(got, want) {
		t.Errorf("state\n%v, want\n%v", got, want)
	}
	if p := g.H[1].MLP.Up.Weight.Path(); p != "h.1.mlp.c_fc.weight" {
		t.Errorf("a parameter believes that it is %q", p)
	}
	n := 0
	for _, p := range Params(g) {
		n += p.Size()
	}
	if Count(g) != n {
		t.Errorf("Count %d, want %d", Count(g), n)
	}
	for range Params(g) {
		break // must not go on
	}
}

func TestParamsRefuses(t *testing.T) {
	env := freshEnv(t)
	loose := env.Ones(2)
	param := NewParam(loose)
	for want, model := range map[string]any{
		"A.B is a tensor that is neither":    struct{ A struct{ B *tensor.Tensor } }{struct{ B *tensor.Tensor }{loose}},
		"weight is a tensor that is neither": &Linear{Weight: loose},
		"m.0 is a tensor that is neither":    map[string][]*tensor.Tensor{"m": {loose}},
		"mean is tagged as a buffer": struct {
			M *tensor.Tensor `nn:"mean,buffer"`
		}{param},
		`the tag of M has the option "bufer"`: struct {
			M *tensor.Tensor `nn:"M,bufer"`
		}{param},
		"two tensors have the name x": struct {
			A *tensor.Tensor `nn:"x"`
			B *tensor.Tensor `nn:"x"`
		}{param, NewParam(loose)},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { names(Params(model)); return nil })
		var e *tensor.Error
		if !errors.As(err, &e) || !strings.Contains(e.Text, want) || !strings.Contains(e.Line, "model_test.go") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFreezeAndInit(t *testing.T) {
	env := freshEnv(t)
	m := Sequential{NewLinear(env, 3, 4), NewLinear(env, 4, 2)}
	Freeze(m[0], true)
	Init(m, func(path string, p *tensor.Tensor) {
		if strings.HasSuffix(path, "bias") {
			p.FillInPlace(7)
		}
	})
	m.Forward(env.Ones(1, 3)).Sum().Backward()
	for path, p := range Params(m) {
		if frozen := strings.HasPrefix(path, "0."); p.Frozen() != frozen || (p.Grad() == nil) != frozen {
			t.Errorf("%s: frozen %v, gradient %v", path, p.Frozen(), p.Grad())
		}
		if strings.HasSuffix(path, "bias") && p.Floats()[0] != 7 {
			t.Errorf("%s was not initialised", path)
		}
	}
	Freeze(m, false)
	if m[0].(*Linear).Weight.Frozen() {
		t.Error("still frozen")
	}
}

// snapshot is a model's whole state.
func snapshot(m any) map[string][]float64 {
	out := map[string][]float64{}
	for name, t := range State(m) {
		out[name] = t.Floats()
	}
	return out
}

func TestClone(t *testing.T) {
	if c := Clone[any](nil); c != nil {
		t.Errorf("a copy of nothing is %v", c)
	}
	env := freshEnv(t)
	g := newGPT(env)
	g.Shift.Freeze(true)
	before := snapshot(g)
	c := Clone(g)
	if !maps.EqualFunc(before, snapshot(c), slices.Equal) {
		t.Error("the copy has other values or names")
	}
	if c.Head.Weight != c.Table.Weight || c.Parent != any(c) {
		t.Error("ties are gone")
	}
	if !c.Shift.Frozen() || c.Table.Weight.Frozen() {
		t.Error("the copy is frozen elsewhere")
	}
	for name, p := range Params(c) {
		p.Freeze(false)
		p.FillInPlace(3)
		if p.Path() != name {
			t.Errorf("%s believes that it is %s", name, p.Path())
		}
	}
	for _, b := range Buffers(c) {
		b.FillInPlace(9)
	}
	if !maps.EqualFunc(before, snapshot(g), slices.Equal) {
		t.Error("the copy shares memory with the original")
	}
	if g.Mask.Floats()[0] != 1 || c.Mask.Floats()[0] != 9 {
		t.Error("transient state was not copied")
	}
	seq := Sequential{NewLinear(env, 2, 2), ReLU{}}
	if s := Clone(seq); s[0] == seq[0] || s[0].(*Linear).Weight == seq[0].(*Linear).Weight {
		t.Error("a slice was copied by reference")
	}
}

func TestToAndPreflight(t *testing.T) {
	env, other := freshEnv(t), freshEnv(t)
	g := newGPT(env)
	before := snapshot(g)
	w := g.Table.Weight
	type batch struct {
		Env  *tensor.Env
		X    *tensor.Tensor
		More map[string][]*tensor.Tensor
	}
	b := &batch{env, env.Ones(1), map[string][]*tensor.Tensor{"masks": {env.Ones(1), other.Ones(1)}}}
	if err := Preflight(env, g, nil); err != nil {
		t.Error(err)
	}
	if err := Preflight(env, g, b); err == nil || !strings.Contains(err.Error(), "batch.More.masks.1 on "+testutil.Device()) || strings.Contains(err.Error(), "model.") {
		t.Errorf("a stray tensor: %v", err)
	}
	g.H[0].LN1.Bias.Replace(other.Zeros(4))
	if _, err := DeviceOf(g); err == nil || !strings.Contains(err.Error(), "h.0.ln_1.bias") {
		t.Errorf("DeviceOf: %v", err)
	}
	To(other, g)
	if d, err := DeviceOf(g); err != nil || d != other.Device() {
		t.Errorf("DeviceOf %v, %v", d, err)
	}
	if g.Table.Weight != w || !maps.EqualFunc(before, snapshot(g), slices.Equal) {
		t.Error("the move changed handles or values")
	}
	err := Preflight(env, g, b)
	if err == nil || strings.Count(err.Error(), " on "+testutil.Device()) < len(gptParams) {
		t.Errorf("not every offender is named: %v", err)
	}
	if _, err := DeviceOf(Sequential{ReLU{}}); err == nil {
		t.Error("a model without tensors has a device")
	}
}

// TestPreflightFor: a device need not be here, and its names have one meaning.
func TestPreflightFor(t *testing.T) {
	env, err := tensor.Open("null:h100-80")
	if err != nil {
		t.Fatal(err)
	}
	l, x := NewLinear(env, 2, 2), map[string]*tensor.Tensor{"x": freshEnv(t).Ones(1)}
	for _, c := range []struct{ name, want, hint string }{
		{"null:h100-80", "", ""}, {"null:h100-80:0", "", ""}, {"h100-80", "", ""}, {"t4", "not on null:t4: model.weight", "nn.To"},
		{"cuda", "not on cuda:0: model.weight on null:h100-80, model.bias on null:h100-80", "nn.To"},
		{"cuda:0", "not on cuda:0: model.weight", "nn.To"}, {"cuda:7", "not on cuda:7: ", "nn.To"},
		{"null:h10-80", `there is no card "h10-80"`, "did you mean null:h100-80? "}, {"nul:t4", `no kind "nul"`, "did you mean null:t4? "},
	} {
		err := PreflightFor(c.name, l, nil)
		var e *tensor.Error
		if errors.As(err, &e) != (c.want != "") || e != nil && (!strings.Contains(e.Text, c.want) || !strings.HasPrefix(e.Hint, c.hint)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := PreflightFor("null:h100-80", l, x); err == nil || !strings.Contains(err.Error(), "batch.x on "+testutil.Device()) {
		t.Error(err)
	}
}

func TestUnexportedLayersAreAnError(t *testing.T) {
	env := freshEnv(t)
	type hidden struct {
		body *Linear
		Head *Linear
	}
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
		for range Params(&hidden{NewLinear(env, 2, 2), NewLinear(env, 2, 2)}) {
			t.Error("a model with an unexported layer was walked")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "body") || !strings.Contains(err.Error(), "export it") {
		t.Error(err)
	}
	_, err = env.Try(func(env *tensor.Env) *tensor.Tensor { return Sequential{ReLU{}, nil}.Forward(env.Ones(2)) })
	if err == nil || !strings.Contains(err.Error(), "module 1 of 2 is nil") {
		t.Error(err)
	}
	for range Params(&hidden{Head: NewLinear(env, 2, 2)}) { // an empty one holds nothing
	}
}
