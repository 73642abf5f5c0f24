package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// freshEnv is a CPU of the test's own, on which what is released turns into NaN.
func freshEnv(t testing.TB) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	env.Device().Poison(true)
	return env
}

// attrs are a golden case's attributes; numbers come as float64, lists as []any.
type attrs map[string]any

func (a attrs) number(key string, or float64) float64 {
	if v, ok := a[key].(float64); ok {
		return v
	}
	return or
}

func (a attrs) pair(key string, or int) [2]int {
	switch v := a[key].(type) {
	case float64:
		return [2]int{int(v), int(v)}
	case []any:
		return [2]int{int(v[0].(float64)), int(v[1].(float64))}
	}
	return [2]int{or, or}
}

type goldenCase struct {
	Name, Layer string
	Attrs       attrs
	t           map[string]*tensor.Tensor
	params      map[string]*tensor.Tensor
	strided     bool // inputs do not lie row-major
}

// param is a parameter with the case's value, nil if the case has none.
func (c *goldenCase) param(name string) *tensor.Tensor {
	v := c.t["param."+name]
	if v == nil {
		return nil
	}
	p := NewParam(v)
	c.params[name] = p
	return p
}

// forward computes a case's outputs from inputs that are leaves.
type forward func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor

// one is a forward of a module on x.
func one(build func(c *goldenCase) Module) forward {
	return func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{build(c).Forward(in["x"])}
	}
}

func value(m Module) forward { return one(func(*goldenCase) Module { return m }) }

var forwards = map[string]forward{
	"Linear": one(func(c *goldenCase) Module { return &Linear{Weight: c.param("weight"), Bias: c.param("bias")} }),
	"Conv2d": one(func(c *goldenCase) Module {
		return &Conv2d{Weight: c.param("weight"), Bias: c.param("bias"), Conv: tensor.Conv{Stride: c.Attrs.pair("stride", 1), Padding: c.Attrs.pair("padding", 0),
			Dilation: c.Attrs.pair("dilation", 1), Groups: int(c.Attrs.number("groups", 1))}}
	}),
	"BatchNorm1d": batchNorm,
	"BatchNorm2d": batchNorm,
	"LayerNorm": one(func(c *goldenCase) Module {
		return &LayerNorm{c.param("weight"), c.param("bias"), c.Attrs.number("eps", 0)}
	}),
	"RMSNorm": one(func(c *goldenCase) Module { return &RMSNorm{c.param("weight"), c.Attrs.number("eps", 0)} }),
	"Embedding": func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{(&Embedding{c.param("weight")}).Forward(in["index"])}
	},
	"MaxPool2d": one(func(c *goldenCase) Module {
		return MaxPool2d{int(c.Attrs.number("kernel", 0)), int(c.Attrs.number("stride", 0)), int(c.Attrs.number("padding", 0))}
	}),
	"AvgPool2d": one(func(c *goldenCase) Module {
		return AvgPool2d{int(c.Attrs.number("kernel", 0)), int(c.Attrs.number("stride", 0)), int(c.Attrs.number("padding", 0)), c.Attrs["count_include_pad"] == false}
	}),
	"AdaptiveAvgPool2d": value(GlobalAvgPool{}),
	"ReLU":              value(ReLU{}),
	"GELU":              value(GELU{}),
	"GELUTanh":          value(GELUTanh{}),
	"SiLU":              value(SiLU{}),
	"Sigmoid":           value(Sigmoid{}),
	"Tanh":              value(Tanh{}),
	"Softmax":           value(Softmax{}),
	"Identity":          value(Identity{}),
	"Flatten":           value(Flatten{}),
	"softmax": func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{in["x"].Softmax(int(c.Attrs.number("dim", 0)))}
	},
	"log_softmax": func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{in["x"].LogSoftmax(int(c.Attrs.number("dim", 0)))}
	},
	"scaled_dot_product_attention": attentionCase,
	"attention":                    attentionOptions,
	"MultiheadAttention":           multihead,
	"cross_entropy":                crossEntropyCase,
	"mse_loss":                     lossCase(MSE),
	"binary_cross_entropy_with_logits": scalar(func(c *goldenCase, in map[string]*tensor.Tensor) *tensor.Tensor {
		return BCEWithLogits(in["x"], in["target"], options[BinaryOption](c.reduction())...)
	}),
}

// batchNorm trains on two batches and evaluates on a third; the case checks the statistics that each update left.
func batchNorm(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	env := in["x1"].Env()
	l := NewBatchNorm(env, int(c.Attrs.number("features", 0)))
	l.Weight, l.Bias = c.param("weight"), c.param("bias")
	l.RunningMean, l.RunningVar = tensor.NewBuffer(c.t["buffer.running_mean"]), tensor.NewBuffer(c.t["buffer.running_var"])
	l.Eps, l.Momentum = c.Attrs.number("eps", 0), c.Attrs.number("momentum", 0)
	y1 := l.Forward(in["x1"])
	c.t["got.running_mean1"], c.t["got.running_var1"] = l.RunningMean.Clone(), l.RunningVar.Clone()
	y2 := l.Forward(in["x2"])
	c.t["got.running_mean2"], c.t["got.running_var2"] = l.RunningMean.Clone(), l.RunningVar.Clone()
	return []*tensor.Tensor{y1, y2, l.Forward(in["x3"].In(env.Eval()))}
}

func attentionCase(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	m := tensor.Mask{Causal: c.Attrs["is_causal"] == true, Keys: in["key_mask"]}
	if m.Keys != nil {
		m.Keys = m.Keys.Unsqueeze(1).Unsqueeze(1)
	}
	m.Scale = c.Attrs.number("scale", 0)
	return []*tensor.Tensor{tensor.Attention(in["q"], in["k"], in["v"], m)}
}

// attentionOptions is the operation with windows, shared heads and a position of queries.
func attentionOptions(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	m := tensor.Mask{Causal: c.Attrs.flag("causal"), Keys: in["mask"], Start: c.Attrs.int("start", 0), Scale: c.Attrs.number("scale", 0)}
	m.Window = c.window()
	return []*tensor.Tensor{tensor.Attention(in["q"], in["k"], in["v"], m)}
}

// window is how far a position of the case sees, or nil.
func (c *goldenCase) window() *tensor.Window {
	if left, right := c.Attrs.int("left", -1), c.Attrs.int("right", -1); left >= 0 || right >= 0 {
		return &tensor.Window{Left: left, Right: right}
	}
	return nil
}

func multihead(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	l := &Attention{
		QKV:    &Linear{Weight: c.param("in_proj_weight"), Bias: c.param("in_proj_bias")},
		Proj:   &Linear{Weight: c.param("out_proj.weight"), Bias: c.param("out_proj.bias")},
		Heads:  int(c.Attrs.number("heads", 0)),
		Causal: c.Attrs["causal"] == true,
		Window: c.window(),
	}
	if m := in["key_padding_mask"]; m != nil {
		return []*tensor.Tensor{l.ForwardMasked(in["x"], m.Not())}
	}
	return []*tensor.Tensor{l.Forward(in["x"])}
}

func lossCase(f func(x, target *tensor.Tensor, opts ...LossOption) *tensor.Tensor) forward {
	return func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{f(in["x"], in["target"], c.reduction()...)}
	}
}

func crossEntropyCase(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
	opts := append(options[CrossEntropyOption](c.reduction()), Smoothing(c.Attrs.number("label_smoothing", 0)), Ignore(c.Attrs.int("ignore_index", -100)))
	if w := in["weight"]; w != nil {
		opts = append(opts, ClassWeights(w))
	}
	return []*tensor.Tensor{CrossEntropy(in["x"], in["target"], opts...)}
}

// options are those of all losses as options of one.
func options[O any](all []LossOption) (out []O) {
	for _, o := range all {
		out = append(out, o.(O))
	}
	return out
}

func (c *goldenCase) reduction() []LossOption {
	switch c.Attrs["reduction"] {
	case "sum":
		return []LossOption{Summed()}
	case "none":
		return []LossOption{Unreduced()}
	}
	return nil
}

// TestGolden compares every layer and loss with PyTorch: outputs, gradients of inputs and parameters, buffers after.
func TestGolden(t *testing.T) {
	var index struct{ Cases []goldenCase }
	golden.JSON(t, "testdata/index.json", &index)
	if len(index.Cases) < 50 {
		t.Fatalf("only %d cases", len(index.Cases))
	}
	for _, c := range index.Cases {
		t.Run(c.Name, func(t *testing.T) { c.check(t) })
	}
}

func (c *goldenCase) check(t *testing.T) {
	env := freshEnv(t)
	c.t, c.params = golden.Tensors(t, env, "testdata/"+c.Name+".safetensors"), map[string]*tensor.Tensor{}
	in := c.leaves()
	f := forwards[c.Layer]
	if f == nil {
		t.Fatalf("no layer for %s", c.Layer)
	}
	c.compare(t, in, f(c, in))
	c.unrecorded(t, env)
}

// unrecorded wants a case to leave no graph where none is asked for, although it has parameters.
func (c *goldenCase) unrecorded(t *testing.T, env *tensor.Env) {
	t.Helper()
	in := map[string]*tensor.Tensor{}
	for name := range c.leaves() {
		in[name] = c.t["in."+name].In(env.NoGrad())
	}
	if len(in) == 0 {
		return
	}
	params := c.params
	c.params = map[string]*tensor.Tensor{}
	defer func() { c.params = params }()
	for i, y := range forwards[c.Layer](c, in) {
		if y != nil && y.Recorded() {
			t.Errorf("result %d carries a graph where none is recorded", i)
		}
	}
}

// leaves are the inputs, those with a gradient as leaves.
func (c *goldenCase) leaves() map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(c.t)) {
		if short, ok := strings.CutPrefix(name, "in."); ok {
			in[short] = c.t[name]
			if c.strided {
				in[short] = strided(in[short])
			}
			if c.Attrs.number("dropout", 0) > 0 { // which drops nothing in evaluation
				in[short] = in[short].In(in[short].Env().Eval())
			}
			if c.t["grad."+short] != nil {
				in[short] = in[short].Detach().RequireGrad()
			}
		}
	}
	return in
}

// strided has the values of t, its last two dimensions swapped in memory, or one that takes every second place.
func strided(t *tensor.Tensor) *tensor.Tensor {
	switch {
	case t.Size() < 2:
		return t
	case t.Rank() == 1:
		return tensor.Stack(1, t, t).Flatten(0).SliceStep(0, 0, 2*t.Size(), 2)
	}
	return t.Transpose(-1, -2).Contiguous().Transpose(-1, -2)
}

// weigh compares results, and is their sum with the case's weights, nil where none has any.
func (c *goldenCase) weigh(t *testing.T, out []*tensor.Tensor) (total *tensor.Tensor) {
	t.Helper()
	for i, y := range out {
		name := "y"
		if len(out) > 1 {
			name = fmt.Sprintf("y%d", i+1)
		}
		golden.Close(t, name, y, c.t["out."+name], 1e-5, 2e-6)
		if up := c.t["up."+name]; up != nil {
			part := y.Mul(up).Sum()
			if total == nil {
				total = part
			} else {
				total = total.Add(part)
			}
		}
	}
	return total
}

func (c *goldenCase) compare(t *testing.T, in map[string]*tensor.Tensor, out []*tensor.Tensor) {
	total := c.weigh(t, out)
	total.Backward()
	leaves := maps.Clone(in)
	maps.Copy(leaves, c.params)
	checked := 0
	for name, want := range c.t {
		if short, ok := strings.CutPrefix(name, "grad."); ok {
			golden.Close(t, name, leaves[short].Grad(), want, 2e-5, 1e-5)
			checked++
		}
		if short, ok := strings.CutPrefix(name, "got."); ok {
			golden.Close(t, short, want, c.t["out."+short], 1e-5, 1e-6)
		}
	}
	if checked == 0 {
		t.Error("no gradient was checked")
	}
}
