package nn

import (
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// grown is a layer of one's own that reports.
type grown struct {
	Inner Module  `nn:"inner"`
	Head  *Linear `nn:"head"`
}

func (g *grown) Forward(x *tensor.Tensor) *tensor.Tensor {
	return Forward(g, x, func(x *tensor.Tensor) *tensor.Tensor { return g.Head.Forward(g.Inner.Forward(x).ReLU()) })
}

func newGrown(env *tensor.Env) *grown {
	return &grown{Sequential{NewLinear(env, 4, 6).WithAct(tensor.ActGELU), NewLayerNorm(env, 6), NewLinear(env, 6, 5)}, NewLinear(env, 5, 3)}
}

// TestLoRA: a layer does at first what it did, only what was added trains, merged weights compute the same, and the sum is what
// its formula says.
func TestLoRA(t *testing.T) {
	env := freshEnv(t)
	m, x := newGrown(env), env.Randn(7, 4)
	before := m.Forward(x)
	first := m.Inner.(Sequential)[0].(*Linear)
	paths := AddLoRA(m, LoRAConfig{Rank: 2, Alpha: 3, Match: func(path string) bool { return path != "head" }})
	if !slices.Equal(paths, []string{"inner.0", "inner.2"}) {
		t.Fatal(paths)
	}
	if d := m.Forward(x).Sub(before).Abs().Max().Item(); d != 0 {
		t.Errorf("changed by %v at first", d)
	}
	m.Forward(x).Square().Mean().Backward()
	for path, p := range Params(m) {
		if small := strings.Contains(path, "lora_"); small == p.Frozen() || small == (p.Grad() == nil) {
			t.Errorf("%s: frozen %v, gradient %v", path, p.Frozen(), p.Grad())
		}
	}
	first.LoRA.B.CopyInPlace(env.Randn(6, 2))
	want := x.MatMul(first.Weight.Transpose(0, 1)).Add(first.Bias).Add(x.MatMul(first.LoRA.A.Transpose(0, 1)).MatMul(first.LoRA.B.Transpose(0, 1)).Scale(1.5)).GELU()
	if d := first.Forward(x).Sub(want).Abs().Max().Item(); d > 1e-5 {
		t.Errorf("off by %v", d)
	}
	changed := m.Forward(x)
	if merged := MergeLoRA(m); !slices.Equal(merged, paths) || first.LoRA != nil || first.Weight.Frozen() {
		t.Errorf("merged %v", merged)
	}
	if d := m.Forward(x).Sub(changed).Abs().Max().Item(); d > 1e-5 {
		t.Errorf("merging changes it by %v", d)
	}
	for name, f := range map[string]func(){
		"rank":    func() { AddLoRA(m, LoRAConfig{}) },
		"nothing": func() { AddLoRA(m, LoRAConfig{Rank: 1, Match: func(string) bool { return false }}) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if first.Weight.Frozen() {
		t.Error("a refused call leaves the model frozen")
	}
}

// TestWrap: modules in interfaces are replaced by path, in lists, maps and fields; others are told.
func TestWrap(t *testing.T) {
	env := freshEnv(t)
	m := &struct {
		Body  Module            `nn:"body"`
		Heads map[string]Module `nn:"heads"`
		Fixed *Linear           `nn:"fixed"`
	}{Sequential{NewLinear(env, 2, 3), ReLU{}}, map[string]Module{"a": NewLinear(env, 3, 1)}, NewLinear(env, 3, 3)}
	var seen []string
	paths := Wrap(m, func(path string, l Module) Module {
		seen = append(seen, path)
		if _, ok := l.(*Linear); ok && path != "fixed" {
			return NewWeightNorm(l, 0)
		}
		return l
	})
	slices.Sort(seen)
	if !slices.Equal(paths, []string{"body.0", "heads.a"}) || !slices.Equal(seen, []string{"body", "body.0", "body.1", "fixed", "heads.a"}) {
		t.Error(paths, seen)
	}
	names := []string{}
	for path := range Params(m) {
		names = append(names, path)
	}
	if want := "body.0.bias body.0.weight_g body.0.weight_v heads.a.bias heads.a.weight_g heads.a.weight_v fixed.weight fixed.bias"; strings.Join(names, " ") != want {
		t.Error(names)
	}
	if y := m.Body.Forward(env.Ones(4, 2)); y.Dim(1) != 3 {
		t.Error(y.Shape())
	}
	for name, f := range map[string]func(){
		"type":    func() { Wrap(m, func(_ string, l Module) Module { return EvalMode(l) }) },
		"nothing": func() { Wrap(m, func(string, Module) Module { return nil }) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestOwnLayersReport: a layer of one's own that runs by Forward has a row.
func TestOwnLayersReport(t *testing.T) {
	env := freshEnv(t)
	m := struct {
		A *grown `nn:"a"`
	}{newGrown(env)}
	rows := map[string]Row{}
	table := Summary(&holder{m.A}, 2, 4)
	for _, r := range table.Rows {
		rows[r.Path] = r
	}
	if r := rows["a"]; r.Kind != "grown" || !slices.Equal(r.Output, []int{2, 3}) {
		t.Errorf("%+v\n%v", r, table)
	}
	if r := rows["a.head"]; r.Kind != "Linear" {
		t.Errorf("%v", table)
	}
	if total := table.Total().Params; total != Count(m) {
		t.Errorf("%d parameters of %d", total, Count(m))
	}
}

// holder has a layer of one's own.
type holder struct {
	A *grown `nn:"a"`
}

func (h *holder) Forward(x *tensor.Tensor) *tensor.Tensor { return h.A.Forward(x) }

func init() {
	forwards["weight_norm"] = one(func(c *goldenCase) Module {
		env, dim := c.env(), c.Attrs.int("dim", 0)
		var l Module
		switch shape := c.t["param.weight_v"].Shape(); len(shape) {
		case 2:
			l = NewLinear(env, shape[1], shape[0])
		case 3:
			l = NewConv1d(env, shape[1], shape[0], shape[2], ConvConfig{})
		default:
			l = NewConv2d(env, shape[1], shape[0], shape[2], ConvConfig{})
		}
		return loaded(c, NewWeightNorm(l, dim))
	})
	forwards["lora"] = one(loraCase)
	forwards["rotary"] = scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		r := Rotary{Base: c.Attrs.number("base", 0), Width: c.Attrs.int("width", 0), Interleaved: c.Attrs.flag("interleaved"), Stretch: c.Attrs.number("stretch", 0), Start: c.Attrs.int("start", 0)}
		return r.At(in["x"], in["positions"])
	})
	forwards["alibi"] = scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		x := in["x"]
		return x.Add(ALiBi{Heads: x.Dim(1), Symmetric: c.Attrs.flag("symmetric")}.Bias(x.Env(), x.Dim(2), x.Dim(3)))
	})
}

// loraCase is a layer that was given small matrices, with the case's values, and what it merges to.
func loraCase(c *goldenCase) Module {
	var l struct {
		Layer Module  `nn:"layer"`
		Other *Linear `nn:"other"`
	}
	env, stride, padding := c.env(), c.Attrs.int("stride", 1), c.Attrs.int("padding", 0)
	l.Other = NewLinear(env, 2, 2)
	if shape := c.t["param.weight"].Shape(); len(shape) == 2 {
		l.Layer = NewLinear(env, shape[1], shape[0])
	} else {
		l.Layer = NewConv2d(env, shape[1], shape[0], shape[2], ConvConfig{Stride: stride, Padding: padding})
	}
	AddLoRA(&l, LoRAConfig{Rank: c.Attrs.int("rank", 0), Alpha: c.Attrs.number("alpha", 0), Dropout: c.Attrs.number("dropout", 0), Match: Matching("lay*"), Convs: true})
	c.load(l.Layer)
	twin := Clone(&l)
	for _, in := range []bool{true, false, true, true} {
		FoldLoRA(twin, in)
	}
	MergeLoRA(twin)
	for name, p := range Params(twin.Layer) {
		if name == "weight" {
			c.t["got.merged"] = p.Clone().Detach()
		}
	}
	for path, p := range Params(&l) {
		if small := strings.Contains(path, "lora_"); small == p.Frozen() || l.Other.LoRA != nil {
			panic(path + " is frozen, or not")
		}
	}
	return EvalMode(l.Layer)
}

// TestFoldLoRA: folded layers compute the same without a second product, and train on when they are unfolded.
func TestFoldLoRA(t *testing.T) {
	env := freshEnv(t)
	m := Sequential{NewConv2d(env, 2, 3, 3, ConvConfig{Same: true}), ReLU{}, NewConv2d(env, 3, 3, 1, ConvConfig{Groups: 3})}
	x := env.Randn(1, 2, 5, 4)
	if paths := AddLoRA(m, LoRAConfig{Rank: 2, Convs: true}); !slices.Equal(paths, []string{"0"}) {
		t.Fatal(paths) // one of groups has no place for it
	}
	a := m[0].(*Conv2d).LoRA
	a.B.CopyInPlace(env.Randn(3, 2, 1, 1))
	want := m.Forward(x)
	for _, in := range []bool{true, true, false, false} {
		FoldLoRA(m, in)
		y := m.Forward(x)
		if d := y.Sub(want).Abs().Max().Item(); d > 1e-5 || a.Folded != in {
			t.Errorf("folded %v: off by %v", in, d)
		}
		if y.Recorded() == in {
			t.Errorf("folded %v: learns %v", in, y.Recorded())
		}
	}
	m.Forward(x).Sum().Backward()
	if a.A.Grad() == nil || a.B.Grad() == nil {
		t.Error("the small matrices have no gradient")
	}
}
