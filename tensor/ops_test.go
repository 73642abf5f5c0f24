package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// normal draws a float64 value of a shape: different odd hundredths beyond ±0.2. Two of them, or one and half of another, or
// one and an even hundredth, are far apart beside the step of a finite difference.
func normal(env *tensor.Env, t *testing.T, shape ...int) *tensor.Tensor {
	r := testutil.Rand(t)
	n := 1
	for _, d := range shape {
		n *= d
	}
	v, taken := make([]float64, n), map[float64]bool{}
	for i := range v {
		for v[i] == 0 || taken[v[i]] {
			x := r.NormFloat64()
			v[i] = math.Copysign(2*math.Floor(50*math.Abs(x))+21, x) / 100
		}
		taken[v[i]] = true
	}
	return tensor.From(env, v, shape...)
}

// TestGradients checks what the methods build from ops: broadcasting, views, promotion. The ops themselves are checked
// by package conform.
func TestGradients(t *testing.T) {
	type in = []*tensor.Tensor
	cases := []struct {
		name   string
		shapes [][]int
		f      func(x in) *tensor.Tensor
	}{
		{"add broadcast", [][]int{{2, 3}, {3}}, func(x in) *tensor.Tensor { return x[0].Add(x[1]).Square() }},
		{"sub column", [][]int{{2, 3}, {2, 1}}, func(x in) *tensor.Tensor { return x[0].Sub(x[1]).Square() }},
		{"mul scalar", [][]int{{4}, {}}, func(x in) *tensor.Tensor { return x[0].Mul(x[1]) }},
		{"div", [][]int{{2, 2}, {2, 2}}, func(x in) *tensor.Tensor { return x[0].Div(x[1]) }},
		{"pow", [][]int{{3}, {3}}, func(x in) *tensor.Tensor { return x[0].Abs().Pow(x[1]) }},
		{"pow scalar", [][]int{{3}}, func(x in) *tensor.Tensor { return x[0].PowScalar(3) }},
		{"lerp", [][]int{{3}, {3}}, func(x in) *tensor.Tensor { return x[0].Lerp(x[1], 0.3).Square() }},
		{"maximum", [][]int{{5}, {5}}, func(x in) *tensor.Tensor { return x[0].Maximum(x[1]).Square() }},
		{"where", [][]int{{2, 3}, {3}}, func(x in) *tensor.Tensor { return tensor.Where(x[0].Gt(x[1]), x[0].Square(), x[1]) }},
		{"clamp", [][]int{{9}}, func(x in) *tensor.Tensor { return x[0].Clamp(-0.5, 0.7).Square() }},
		{"activations", [][]int{{7}}, func(x in) *tensor.Tensor {
			return x[0].GELU().Add(x[0].SiLU()).Add(x[0].GELUTanh()).Add(x[0].Sigmoid()).Add(x[0].Tanh())
		}},
		{"mean of dims", [][]int{{2, 3, 4}}, func(x in) *tensor.Tensor { return x[0].Square().Mean(0, 2) }},
		{"var", [][]int{{3, 5}}, func(x in) *tensor.Tensor { return x[0].Var(1, 1) }},
		{"prod", [][]int{{2, 3}}, func(x in) *tensor.Tensor { return x[0].Prod(1) }},
		{"max", [][]int{{3, 5}}, func(x in) *tensor.Tensor { return x[0].Max(1).Square() }},
		{"logsumexp", [][]int{{3, 5}}, func(x in) *tensor.Tensor { return x[0].LogSumExp(0) }},
		{"cumsum", [][]int{{3, 5}}, func(x in) *tensor.Tensor { return x[0].CumSum(1).Square() }},
		{"matmul", [][]int{{2, 3}, {3, 4}}, func(x in) *tensor.Tensor { return x[0].MatMul(x[1]) }},
		{"matmul batched", [][]int{{5, 1, 2, 3}, {2, 3, 2}}, func(x in) *tensor.Tensor { return x[0].MatMul(x[1]) }},
		{"matmul vectors", [][]int{{3}, {3}}, func(x in) *tensor.Tensor { return x[0].MatMul(x[1]) }},
		{"matmul row", [][]int{{3}, {3, 2}}, func(x in) *tensor.Tensor { return x[0].MatMul(x[1]) }},
		{"matmul many rows", [][]int{{2, 2, 3}, {3, 2}}, func(x in) *tensor.Tensor { return x[0].MatMul(x[1]) }},
		{"linear", [][]int{{2, 2, 3}, {4, 3}, {4}}, func(x in) *tensor.Tensor { return x[0].Linear(x[1], x[2]) }},
		{"conv2d", [][]int{{2, 4, 5, 4}, {6, 2, 3, 2}, {6}}, func(x in) *tensor.Tensor {
			return x[0].Conv2d(x[1], x[2], tensor.Conv{Stride: [2]int{2, 1}, Padding: [2]int{1, 1}, Groups: 2})
		}},
		{"pools", [][]int{{1, 2, 5, 5}}, func(x in) *tensor.Tensor {
			p := tensor.Pool{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Padding: [2]int{1, 1}}
			return x[0].MaxPool2d(p).Mul(x[0].AvgPool2d(p))
		}},
		{"softmax", [][]int{{2, 3, 2}}, func(x in) *tensor.Tensor { return x[0].Softmax(1) }},
		{"log softmax", [][]int{{2, 3}}, func(x in) *tensor.Tensor { return x[0].LogSoftmax(-1) }},
		{"layer norm", [][]int{{3, 2, 4}, {2, 4}, {2, 4}}, func(x in) *tensor.Tensor { return x[0].LayerNorm(x[1], x[2], 1e-5) }},
		{"rms norm", [][]int{{3, 4}, {4}}, func(x in) *tensor.Tensor { return x[0].RMSNorm(x[1], 1e-5) }},
		{"batch norm", [][]int{{3, 2, 2, 2}, {2}, {2}}, func(x in) *tensor.Tensor {
			y, _, _ := x[0].BatchNorm(x[1], x[2], 1e-5)
			return y
		}},
		{"batch norm with a residual and ReLU", [][]int{{3, 2, 2, 2}, {2}, {2}, {3, 2, 2, 2}}, func(x in) *tensor.Tensor {
			y, _, _ := x[0].BatchNormAct(x[1], x[2], x[3], tensor.ActReLU, 1e-5)
			return y
		}},
		{"gradient penalty through batch norm and ReLU", [][]int{{3, 2, 4}, {2}, {2}, {3, 2, 4}}, func(x in) *tensor.Tensor {
			y, _, _ := x[0].BatchNormAct(x[1], x[2], x[3], tensor.ActReLU, 1e-5)
			g := tensor.GradGraph(y.Square().Sum(), x[0], x[3])
			return g[0].Add(g[1]).Square()
		}},
		{"attention", [][]int{{1, 2, 4, 3}, {1, 2, 4, 3}, {1, 2, 4, 5}}, func(x in) *tensor.Tensor {
			return tensor.Attention(x[0], x[1], x[2], tensor.Mask{Causal: true})
		}},
		{"attention with a mask", [][]int{{1, 2, 4, 3}, {1, 2, 3, 3}, {1, 2, 3, 5}, {4, 3}}, func(x in) *tensor.Tensor {
			return tensor.Attention(x[0], x[1], x[2], tensor.Mask{Keys: x[3]})
		}},
		{"gradient penalty through a norm", [][]int{{3, 4}, {4}, {4}}, func(x in) *tensor.Tensor {
			return tensor.GradGraph(x[0].LayerNorm(x[1], x[2], 1e-5).Tanh().Sum(), x[0])[0].Square()
		}},
		{"views", [][]int{{4, 6}}, func(x in) *tensor.Tensor {
			return x[0].Reshape(2, 2, 3, 2).Permute(2, 0, 3, 1).SliceStep(0, 0, 3, 2).Select(1, 1).Flatten(0).Square()
		}},
		{"cat and stack", [][]int{{2, 3}, {2, 3}}, func(x in) *tensor.Tensor {
			return tensor.Cat(0, tensor.Cat(1, x[0], x[1]), tensor.Stack(2, x[0], x[1]).Reshape(2, 6)).Square()
		}},
		{"split and pad", [][]int{{5, 2}}, func(x in) *tensor.Tensor {
			s := x[0].Split(0, 2, 3)
			return s[0].Pad(0, 1, 0, 2).Mul(s[1])
		}},
		{"expand", [][]int{{3, 1}}, func(x in) *tensor.Tensor { return x[0].Expand(2, -1, 4).Square() }},
		{"gather", [][]int{{3, 4}}, func(x in) *tensor.Tensor {
			return x[0].Gather(1, tensor.From(x[0].Env(), []int64{0, 3, 3, 1, 2, 2}, 3, 2)).Square()
		}},
		{"scatter add", [][]int{{3, 4}, {3, 2}}, func(x in) *tensor.Tensor {
			return x[0].ScatterAdd(1, tensor.From(x[0].Env(), []int64{0, 3, 3, 3, 2, 2}, 3, 2), x[1]).Square()
		}},
		{"embedding", [][]int{{5, 3}}, func(x in) *tensor.Tensor {
			return x[0].Embedding(tensor.From(x[0].Env(), []int64{4, 0, 4}, 3)).Square()
		}},
		{"index select", [][]int{{2, 5}}, func(x in) *tensor.Tensor {
			return x[0].IndexSelect(1, tensor.From(x[0].Env(), []int64{4, 0, 4}, 3)).Square()
		}},
		{"recompute", [][]int{{4}}, func(x in) *tensor.Tensor {
			return tensor.Recompute(x[0].Scale(0.5), func(y *tensor.Tensor) *tensor.Tensor { return y.Exp().Sin() })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := open(t)
			x := make(in, len(c.shapes))
			for i, s := range c.shapes {
				x[i] = normal(env, t, s...).Scale(1 / float64(i+1))
			}
			if err := tensor.GradCheck(c.f, x, tensor.GradCheckConfig{Second: true, RTol: 1e-4, ATol: 1e-6}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGradCheckFindsAWrongGradient(t *testing.T) {
	env := open(t)
	wrong := tensor.Func{
		Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Square()} },
		Backward: func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
			return []*tensor.Tensor{g[0].Scale(2)}
		},
	}
	err := tensor.GradCheck(func(x []*tensor.Tensor) *tensor.Tensor { return wrong.Apply(x[0])[0] }, []*tensor.Tensor{normal(env, t, 3)}, tensor.GradCheckConfig{})
	if err == nil {
		t.Error("a wrong gradient passed")
	}
}

func TestShapeErrorsNameBothShapesAndTheLine(t *testing.T) {
	env := open(t)
	a, b := env.Zeros(2, 3), env.Zeros(4, 5)
	for _, c := range []struct {
		f     func()
		words []string
	}{
		{func() { a.Add(b) }, []string{"add", "[2 3]", "[4 5]"}},
		{func() { a.MatMul(b) }, []string{"MatMul", "[2 3]", "[4 5]", "3 columns meet 4 rows"}},
		{func() { a.Linear(b, nil) }, []string{"Linear", "[2 3]", "[4 5]"}},
		{func() { a.Reshape(5) }, []string{"Reshape", "[2 3]", "[5]"}},
		{func() { a.Sum(2) }, []string{"dimension 2", "[2 3]"}},
		{func() { a.Select(1, 3) }, []string{"index 3", "[2 3]"}},
		{func() { a.Slice(0, 1, 4) }, []string{"[1:4:1]", "[2 3]"}},
		{func() { tensor.Cat(0, a, b) }, []string{"cat", "[2 3]", "[4 5]"}},
		{func() { tensor.Cat(0, a, a.Cast(dtype.F8E4M3)) }, []string{"Cat", "f32", "f8e4m3", "stored only"}},
		{func() { a.Item() }, []string{"Item", "[2 3]", "6 values"}},
		{func() { tensor.Data[float64](a) }, []string{"f32[2,3]", "f64"}},
		{func() { tensor.From(env, []float32{1}, 2) }, []string{"1 values", "[2]"}},
		{func() { a.Backward() }, []string{"Backward", "[2 3]"}},
		{func() { a.CrossEntropy(b, 0, -100) }, []string{"CrossEntropy", "[2 3]", "[4 5]"}},
		{func() { a.LinearCrossEntropy(b, a, 0, -100) }, []string{"LinearCrossEntropy", "[2 3]", "[4 5]"}},
		{func() { a.LinearCrossEntropyTotal(a, nil, 0, -100) }, []string{"LinearCrossEntropy", "nil"}},
		{func() { env.Zeros(-1) }, []string{"negative"}},
		{func() { a.Add(nil) }, []string{"nil"}},
		{func() { a.Linear(nil, nil) }, []string{"Linear", "nil"}},
		{func() { a.Gather(1, a) }, []string{"Gather", "f32", "Cast"}},
		{func() { a.Embedding(env.Ones(2)) }, []string{"Embedding", "f32", "Cast"}},
		{func() { a.CrossEntropy(env.Ones(2), 0, -1) }, []string{"CrossEntropy", "f32", "Cast"}},
		{func() { a.Linear(env.Ones(2, 3).Cast(dtype.F64), nil) }, []string{"linear", "f64", "f32", "Cast"}},
		{func() {
			tensor.Func{Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{in[0].Neg()} }}.Apply(tensor.NewParam(a))
		}, []string{"Func", "Backward"}},
		{func() { a.Gather(0, env.RandInt(5, 9, 1, 3)).Floats() }, []string{"gather", "index"}}, // a device tells at the read
		{func() { a.Conv2d(b, nil, tensor.Conv{}) }, []string{"conv2d", "[2 3]", "[4 5]"}},
	} {
		fails(t, env, c.f, append(c.words, "ops_test.go")...)
	}
}

func TestPromotion(t *testing.T) {
	env := open(t)
	i, f, d, b := env.RandInt(0, 5, 3), env.Ones(3), env.FullOf(dtype.F64, 1), env.FullOf(dtype.Bool, 1, 3)
	h := env.FullOf(dtype.BF16, 1, 3)
	for _, c := range []struct {
		got  *tensor.Tensor
		want dtype.DType
	}{
		{i.Add(f), dtype.F32}, {f.Mul(d), dtype.F32}, {i.Add(d), dtype.F64}, {b.Add(b), dtype.I64}, {i.Div(i), dtype.F32},
		{h.Add(f), dtype.F32}, {h.Mul(i), dtype.BF16}, {i.Sum(), dtype.I64}, {b.Sum(), dtype.I64}, {i.Mean(), dtype.F32}, {i.Scale(2), dtype.I64},
		{i.Scale(0.5), dtype.F32}, {i.Lt(f), dtype.Bool}, {f.ArgMax(0), dtype.I64}, {tensor.Where(b, i, f), dtype.F32},
	} {
		if c.got.DType() != c.want {
			t.Errorf("%s, want %s", c.got.DType(), c.want)
		}
	}
}

func TestAutocastPolicy(t *testing.T) {
	env := open(t)
	w := tensor.NewParam(env.Randn(4, 4))
	amp := env.Autocast(dtype.BF16)
	turn(amp, 1, func(e *tensor.Env) {
		x := e.Randn(2, 4)
		y := x.Linear(w, nil)
		if y.DType() != dtype.BF16 || y.Softmax(1).DType() != dtype.F32 || y.ReLU().DType() != dtype.BF16 || y.Add(x).DType() != dtype.F32 {
			t.Error("policy:", y.DType(), y.Softmax(1).DType(), y.ReLU().DType(), y.Add(x).DType())
		}
		if d := x.Cast(dtype.F64); d.MatMul(d.Transpose(0, 1)).DType() != dtype.F64 {
			t.Error("float64 is never touched")
		}
		y.Square().Mean().Backward()
		if w.Grad().DType() != dtype.F32 {
			t.Error("gradients have the parameter's dtype, not", w.Grad().DType())
		}
	})
}

// TestLargeIntegers: integers that float64 would round are made, printed and read as they are.
func TestLargeIntegers(t *testing.T) {
	env, host := open(t), fresh(t, "cpu")
	exact := func(x *tensor.Tensor) []int64 { return tensor.Data[int64](x.To(host)) }
	want := []int64{1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64}
	x := tensor.From(env, want, len(want))
	if got := exact(x); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if got := x.String(); !strings.HasPrefix(got, "[9007199254740993 -9007199254740993 9223372036854775807 -9223372036854775808]") {
		t.Error(got)
	}
	if got := fmt.Sprintf("%.2f", x.Select(0, 0)); !strings.HasPrefix(got, "9007199254740993 ") {
		t.Error(got)
	}
	counts := map[int64]int{}
	for _, v := range exact(env.RandInt(1<<53+1, 1<<53+3, 200)) {
		counts[v]++
	}
	if n := counts[1<<53+1]; len(counts) != 2 || n+counts[1<<53+2] != 200 || n < 50 || n > 150 {
		t.Errorf("of two numbers %v", counts)
	}
	if got := exact(env.RandInt(math.MaxInt64-1, math.MaxInt64, 1))[0]; got != math.MaxInt64-1 {
		t.Errorf("of one number %d", got)
	}
	negative := 0
	for _, v := range exact(env.RandInt(math.MinInt64, math.MaxInt64, 200)) {
		if v < 0 {
			negative++
		}
	}
	if negative < 50 || negative > 150 {
		t.Errorf("of all numbers %d in 200 are negative", negative)
	}
}

func TestStringAndInfo(t *testing.T) {
	env := open(t)
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{tensor.From(env, []float32{1, 2.5, -3, 4}, 2, 2), "[[1 2.5]\n [-3 4]]  f32[2,2]"},
		{env.Arange(20), "[0 1 2 … 17 18 19]  i64[20]"},
		{env.Arange(8), "[0 1 2 3 4 5 6 7]  i64[8]"},
		{env.Arange(9).Reshape(9, 1), "[[0]\n [1]\n [2]\n …\n [6]\n [7]\n [8]]  i64[9,1]"},
		{env.Arange(20).Reshape(2, 10), "[[0 1 2 … 7 8 9]\n [10 11 12 … 17 18 19]]  i64[2,10]"},
		{env.Arange(20).Reshape(2, 10).Transpose(0, 1).Slice(1, 0, 1), "[[0]\n [1]\n [2]\n …\n [7]\n [8]\n [9]]  i64[10,1]"},
		{env.Zeros(0, 20), "[]  f32[0,20]"},
		{env.FullOf(dtype.Bool, 1), "true  bool[]"},
		{env.Zeros(0, 3), "[]  f32[0,3]"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if got := fmt.Sprintf("%.1f|%d", env.Full(2, 2), env.Full(2, 2)); got != "[2.0 2.0]  f32[2]|%!d(f32[2])" {
		t.Errorf("%q", got)
	}
	null, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	if got := null.Ones(2).String(); got != "f32[2], not computed on null:a100-80" {
		t.Errorf("%q", got)
	}
	if got := tensor.NewParam(env.Ones(2)).Info(); got != "f32[2] on "+testutil.Device()+", 8 B, parameter" {
		t.Errorf("%q", got)
	}
}

func TestAwkwardShapes(t *testing.T) {
	env := open(t)
	empty := env.Zeros(0, 3)
	equal(t, "sum of nothing", empty.Sum(), 0)
	equal(t, "product with an empty one", env.Ones(2, 0).MatMul(env.Ones(0, 2)), 0, 0, 0, 0)
	if s := tensor.Cat(0, empty, env.Ones(1, 3)).Shape(); !slices.Equal(s, []int{1, 3}) {
		t.Error(s)
	}
	equal(t, "scalar", env.Full(2).Add(env.Full(3)), 5)
	w := tensor.NewParam(empty.Cast(dtype.F64))
	w.In(env).Sum().Backward()
	if w.Grad().Size() != 0 {
		t.Error("gradient of nothing")
	}
}

func TestStatisticsOf16Bits(t *testing.T) {
	env := open(t)
	x := env.FullOf(dtype.F16, 1, 70000)
	equal(t, "mean", x.Mean(), 1)
	equal(t, "variance", env.FullOf(dtype.F16, 300, 4).Var(1), 0)
	if dt := x.Mean().DType(); dt != dtype.F16 {
		t.Errorf("mean of f16 is %s", dt)
	}
}

func TestJoinedDTypes(t *testing.T) {
	env := open(t)
	n, h, b := env.Arange(1), env.FullOf(dtype.F16, 1, 1), env.FullOf(dtype.BF16, 1, 1)
	if dt := tensor.Cat(0, n, h, b).DType(); dt != dtype.F32 {
		t.Errorf("i64, f16 and bf16 join as %s", dt)
	}
	u, m := env.FullOf(dtype.U8, 1, 2), env.FullOf(dtype.Bool, 1, 2)
	if dt := u.Add(m).DType(); dt != dtype.U8 {
		t.Errorf("u8 + bool is %s", dt)
	}
	equal(t, "bool + bool", m.Add(m), 2, 2)
}

func TestBoundsBeyond31Bits(t *testing.T) {
	env := open(t)
	x := env.Ones(1).Expand(1 << 33)
	fails(t, env, func() { x.Slice(0, 1<<32, 1<<32+10) }, "2^31")
	fails(t, env, func() { env.Ones(2).Pad(0, 1<<32, 0, 0) }, "2^31")
}
