package nn

import (
	"maps"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func init() {
	maps.Copy(forwards, map[string]forward{"MultiheadLayer": multiheadLayer, "TransformerEncoder": encoderCase, "TransformerDecoder": decoderCase})
}

// seenBy turns a mask of PyTorch's into ours: what it hides is what ours does not see.
func seenBy(m *tensor.Tensor) *tensor.Tensor {
	if m == nil || m.DType() != dtype.Bool {
		return m
	}
	return m.Not()
}

func multiheadLayer(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	q, k, v := in["q"], in["k"], in["v"]
	if k == nil {
		k, v = q, q
	}
	l := NewMultiheadAttention(q.Env(), q.Dim(-1), c.multihead())
	c.load(l)
	s := Sight{Causal: c.Attrs.flag("causal"), Keys: seenBy(in["key_padding_mask"]), Pairs: seenBy(in["attn_mask"])}
	if s.Causal {
		s.Pairs = nil
	}
	y, w := l.AttendWeights(q, k, v, s)
	fused := l.Attend(q, k, v, s)
	return []*tensor.Tensor{half(y, fused), w}
}

func (c *goldenCase) multihead() MultiheadConfig {
	return MultiheadConfig{Heads: c.Attrs.int("heads", 0), KeyWidth: c.Attrs.int("kdim", 0), ValueWidth: c.Attrs.int("vdim", 0), Dropout: c.Attrs.number("dropout", 0),
		NoBias: c.Attrs["bias"] == false, BatchFirst: c.Attrs.flag("batch_first"), BiasKV: c.Attrs.flag("add_bias_kv"), ZeroKey: c.Attrs.flag("add_zero_attn")}
}

// load puts the case's parameters into a model, by their names.
func (c *goldenCase) load(model any) {
	n := 0
	if y := c.t["out.y"]; y != nil && y.DType() == dtype.F64 {
		Cast(model, dtype.F64)
	}
	for path, p := range Params(model) {
		v := c.t["param."+path]
		if v == nil {
			panic("no parameter " + path)
		}
		p.Replace(v)
		c.params[path] = p
		n++
	}
	for name := range c.t {
		if len(name) > 6 && name[:6] == "param." {
			n--
		}
	}
	if n != 0 {
		panic("the model and the case have different parameters")
	}
}

func (c *goldenCase) transformer() TransformerConfig {
	config := TransformerConfig{Heads: c.Attrs.int("heads", 0), Inner: c.Attrs.int("inner", 0), Eps: c.Attrs.number("layer_norm_eps", 0), Dropout: c.Attrs.number("dropout", 0),
		BatchFirst: c.Attrs.flag("batch_first"), NormFirst: c.Attrs.flag("norm_first"), NoBias: c.Attrs["bias"] == false, NoFinalNorm: c.Attrs.int("layers", 0) < 2}
	if final, ok := c.Attrs["final"].(bool); ok {
		config.NoFinalNorm = !final
	}
	if c.Attrs.text("activation") == "gelu" {
		config.Act = GELU{}
	}
	return config
}

func encoderCase(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	l := NewTransformerEncoder(in["x"].Env(), c.Attrs.int("layers", 0), 4, c.transformer())
	finalNorm(c, l.Norm, in["x"].Env())
	c.load(l)
	sight := Sight{Causal: c.Attrs.flag("causal"), Keys: seenBy(in["keys"])}
	y := l.Encode(in["x"], sight)
	if len(l.Layers) == 1 && l.Norm == nil {
		y = half(y, (*TransformerEncoderLayer).Encode(l.Layers[0], in["x"], sight))
	}
	return []*tensor.Tensor{y}
}

// half is the mean of what a layer gives in two ways, whose gradient goes both.
func half(y, z *tensor.Tensor) *tensor.Tensor { return y.Add(z).Scale(0.5) }

func decoderCase(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	l := NewTransformerDecoder(in["x"].Env(), c.Attrs.int("layers", 0), 4, c.transformer())
	finalNorm(c, l.Norm, in["x"].Env())
	c.load(l)
	own, other := Sight{Causal: c.Attrs.flag("causal")}, Sight{Keys: seenBy(in["keys"])}
	y := l.Decode(in["x"], in["memory"], own, other)
	if len(l.Layers) == 1 && l.Norm == nil {
		y = half(y, (*TransformerDecoderLayer).Decode(l.Layers[0], in["x"], in["memory"], own, other))
	}
	return []*tensor.Tensor{y}
}

// finalNorm makes the norm of a stack that which the case has: with a bias, and PyTorch's eps.
func finalNorm(_ *goldenCase, l *LayerNorm, env *tensor.Env) {
	if l != nil {
		*l = *NewLayerNorm(env, 4)
	}
}

// TestMultiheadDropout: weights are dropped in training, samples need no dimension, and shapes that do not fit are told.
func TestMultiheadDropout(t *testing.T) {
	env := freshEnv(t)
	l := NewMultiheadAttention(env, 8, MultiheadConfig{Heads: 2, Dropout: 0.5, BatchFirst: true, BiasKV: true})
	x := env.Randn(3, 5, 8)
	y, w := l.AttendWeights(x, x, x, Sight{})
	if gone := w.Eq(w.ZerosLike()).Cast(w.DType()).Mean().Item(); gone < 0.2 || gone > 0.8 {
		t.Errorf("%v of the weights are gone", gone)
	}
	quiet := l.Forward(x.In(env.Eval()))
	if d := y.Sub(quiet).Abs().Max().Item(); d == 0 {
		t.Error("dropout changes nothing")
	}
	one := l.Forward(x.Select(0, 1).In(env.Eval()))
	if d := one.Sub(quiet.Select(0, 1)).Abs().Max().Item(); d > 1e-6 {
		t.Errorf("a sample without a batch differs by %v", d)
	}
	if b := l.BiasK.Abs().Max().Item(); b == 0 {
		t.Error("the learned key is 0")
	}
	for name, f := range map[string]func(){
		"heads":   func() { NewMultiheadAttention(env, 7, MultiheadConfig{Heads: 2}) },
		"samples": func() { l.Attend(x, env.Ones(2, 5, 8), env.Ones(2, 5, 8), Sight{}) },
		"pairs":   func() { l.Attend(x, x, x, Sight{Pairs: env.Ones(5, 4)}) },
		"keys":    func() { l.Attend(x, x, x, Sight{Keys: env.Ones(5, 5)}) },
		"nothing": func() { new(MultiheadAttention).Forward(x) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
