package prof_test

import (
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// TestPrecision walks the rows of a small model under each policy, on both engines: products in 16 bits, the loss in float32.
func TestPrecision(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		model := nn.Sequential{nn.NewLinear(env, 8, 6), nn.ReLU{}, nn.NewLinear(env, 6, 3)}
		labels := env.FullOf(dtype.I64, 1, 4)
		loss := func(y *tensor.Tensor) *tensor.Tensor { return nn.CrossEntropy(y, labels) }
		for _, low := range []dtype.DType{dtype.F32, dtype.BF16, dtype.F16} {
			p := prof.Precision(model, env.Ones(4, 8).In(env.Autocast(low)), loss)
			found := map[string]string{}
			for _, r := range p.Rows {
				if r.Calls < 1 || r.Reason == "" || !strings.Contains(r.Line, ".go:") {
					t.Errorf("%s, %s: %+v", device, low, r)
				}
				if !r.Backward {
					found[r.Op] = r.In[0] + ", " + r.Reason
				}
			}
			want := "f32, a product without a policy, or of values that it leaves alone"
			if low != dtype.F32 {
				want = low.String() + ", products run in the policy's dtype"
			}
			if found["linear"] != want || found["cross_entropy"] != "f32, needs float32's range or digits" {
				t.Errorf("%s, %s: %q", device, low, found)
			}
			if len(p.Traps) > 0 {
				t.Errorf("%s, %s: traps %q", device, low, p.Traps)
			}
			for path, w := range nn.Params(model) {
				if w.Grad() != nil {
					t.Errorf("%s has a gradient", path)
				}
			}
			var text strings.Builder
			if err := p.WriteText(&text, 100); err != nil || !strings.Contains(text.String(), "linear") || !strings.Contains(text.String(), "gradients by exponent") {
				t.Errorf("%v\n%s", err, text.String())
			}
		}
	}
}

// halves is a model with a parameter in 16 bits.
type halves struct {
	W *tensor.Tensor `nn:"w"`
}

func (h *halves) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MatMul(h.W.Cast(dtype.F32)) }

// TestPrecisionTraps: each trap is found where it is set, and says what to do.
func TestPrecisionTraps(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	model := nn.Sequential{nn.NewLinear(env, 8, 6)}
	amp := env.Autocast(dtype.F16)
	sum := func(scale float64) func(y *tensor.Tensor) *tensor.Tensor {
		return func(y *tensor.Tensor) *tensor.Tensor { return y.Cast(dtype.F32).Sum().Scale(scale) }
	}
	half := &halves{nn.NewParam(env.Ones(8, 6).Cast(dtype.BF16))}
	for word, p := range map[string]*prof.Precisions{
		"the loss is f16":                    prof.Precision(model, env.Ones(4, 8).In(amp), func(y *tensor.Tensor) *tensor.Tensor { return y.Mean() }),
		"softmax at":                         prof.Precision(model, env.Ones(4, 8).In(amp.CPULists()), func(y *tensor.Tensor) *tensor.Tensor { return y.Softmax(-1).Cast(dtype.F32).Sum() }),
		"float16 rounds to 0":                prof.Precision(model, env.Ones(4, 8).In(amp), sum(1e-9)),
		"1 parameters have 16 bits, w first": prof.Precision(half, env.Ones(4, 8)),
		"4 of the gradients are NaN or inf":  prof.Precision(nn.Sequential{nn.NewLinearNoBias(env, 3, 2)}, tensor.From(env, []float32{1, float32(math.Inf(1)), float32(math.NaN())}, 1, 3), sum(1)),
		"beyond float16's 65504":             prof.Precision(model, env.Ones(4, 8).In(amp), sum(1e6)),
	} {
		if len(p.Traps) == 0 || !strings.Contains(strings.Join(p.Traps, "\n"), word) {
			t.Errorf("%s: traps %q", word, p.Traps)
		}
	}
}

// TestPrecisionCounts: of gradients that are 1, infinite, NaN and 0, each is counted as what it is, and the text says so.
func TestPrecisionCounts(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.From(env, []float32{1, float32(math.Inf(-1)), float32(math.NaN()), 0, 0}, 1, 5)
	p := prof.Precision(nn.Sequential{nn.NewLinearNoBias(env, 5, 1)}, x, func(y *tensor.Tensor) *tensor.Tensor { return y.Sum() })
	if e := p.Exponents; len(e.Count) != 1 || e.Count[0] != 1 || e.NotFinite != 2 || e.Zeros != 2 {
		t.Errorf("%+v", e)
	}
	var text strings.Builder
	if err := p.WriteText(&text, 200); err != nil || !strings.Contains(text.String(), "2 zeros and 2 NaN or infinite") || !strings.Contains(text.String(), "trap: 2 of the gradients") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestExponents compares the histogram with the logarithms of the values.
func TestExponents(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	model := nn.Sequential{nn.NewLinearNoBias(env, 4, 2)}
	x, up := env.Rand(3, 4), env.Randn(3, 2)
	p := prof.Precision(model, x, func(y *tensor.Tensor) *tensor.Tensor { return y.Mul(up).Sum() })
	want := map[int]int{}
	for _, v := range up.Transpose(0, 1).MatMul(x).Floats() {
		want[int(math.Floor(math.Log2(math.Abs(v))))]++
	}
	for at, n := range want {
		if p.Exponents.Count[at] != n {
			t.Errorf("2^%d: %d, want %d", at, p.Exponents.Count[at], n)
		}
	}
	if p.Exponents.Below(-1000) != 0 || p.Exponents.Below(1000) != 1 {
		t.Errorf("%+v", p.Exponents)
	}
	w := model[0].(*nn.Linear).Weight
	w.Sum().Backward()
	_, err = env.Try(func(e *tensor.Env) *tensor.Tensor { prof.Precision(model, x); return nil })
	if err == nil || !strings.Contains(err.Error(), "0.weight has a gradient") {
		t.Error(err)
	}
}
