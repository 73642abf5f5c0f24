package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// TestInitialisers checks moments, bounds and shape of what each draws, on shapes of every rank that it takes.
func TestInitialisers(t *testing.T) {
	kaiming := func(p *tensor.Tensor, k Kaiming) float64 {
		fan := float64(p.Size() / p.Dim(0)) // in times the kernel
		if k.FanOut {
			fan = fan / float64(p.Dim(1)) * float64(p.Dim(0))
		}
		gain := map[string]float64{"": math.Sqrt(2 / (1 + k.Slope*k.Slope)), "relu": math.Sqrt2, "tanh": 5. / 3, "selu": 0.75, "sigmoid": 1}[k.Activation]
		return gain / math.Sqrt(fan)
	}
	xavier := func(p *tensor.Tensor) float64 {
		window := float64(p.Size() / p.Dim(0) / p.Dim(1))
		return math.Sqrt(2 / (window * float64(p.Dim(0)+p.Dim(1))))
	}
	type drawn struct {
		init      func(p *tensor.Tensor)
		mean, std float64
		bound     float64 // of the distance from the mean; 0: none
	}
	flat := math.Sqrt(3)
	for _, shape := range [][]int{{100, 200}, {300, 70}, {64, 16, 5}, {32, 16, 3, 5}, {16, 8, 3, 3, 3}} {
		env := freshEnv(t)
		p := NewParam(env.Zeros(shape...))
		rows := map[string]drawn{
			"uniform":        {func(p *tensor.Tensor) { InitUniform(p, -1, 3) }, 1, 4 / math.Sqrt(12), 2},
			"normal":         {func(p *tensor.Tensor) { InitNormal(p, -2, 0.5) }, -2, 0.5, 0},
			"truncated":      {func(p *tensor.Tensor) { InitTruncNormal(p, 0, 1, -2, 2) }, 0, 0.879626, 2},
			"far truncated":  {func(p *tensor.Tensor) { InitTruncNormal(p, 0, 0.02, -2, 2) }, 0, 0.02, 2},
			"one side":       {func(p *tensor.Tensor) { InitTruncNormal(p, 0, 1, 0, 50) }, math.Sqrt(2 / math.Pi), math.Sqrt(1 - 2/math.Pi), 50},
			"xavier uniform": {func(p *tensor.Tensor) { InitXavierUniform(p, 2) }, 0, 2 * xavier(p), 2 * flat * xavier(p)},
			"xavier normal":  {func(p *tensor.Tensor) { InitXavierNormal(p, 0.5) }, 0, 0.5 * xavier(p), 0},
		}
		for _, k := range []Kaiming{{}, {Slope: math.Sqrt(5)}, {Activation: "relu", FanOut: true}, {Activation: "tanh"}, {Activation: "selu"}, {Activation: "sigmoid", FanOut: true}} {
			std := kaiming(p, k)
			rows[fmt.Sprintf("kaiming uniform %+v", k)] = drawn{func(p *tensor.Tensor) { InitKaimingUniform(p, k) }, 0, std, flat * std}
			rows[fmt.Sprintf("kaiming normal %+v", k)] = drawn{func(p *tensor.Tensor) { InitKaimingNormal(p, k) }, 0, std, 0}
		}
		for name, want := range rows {
			want.init(p)
			n := math.Sqrt(float64(p.Size()))
			mean, std := p.Mean().Item(), math.Sqrt(p.Var(0).Item())
			if math.Abs(mean-want.mean) > 5*want.std/n || math.Abs(std/want.std-1) > 5/n {
				t.Errorf("%s of %v: mean %v and deviation %v, want %v and %v", name, shape, mean, std, want.mean, want.std)
			}
			if far := p.AddScalar(-want.mean).Abs().Max().Item(); want.bound > 0 && far > want.bound*(1+1e-6) {
				t.Errorf("%s of %v: %v from the mean, bound %v", name, shape, far, want.bound)
			}
			if first := p.Floats(); want.std > 0 {
				want.init(p)
				if again := p.Floats(); first[0] == again[0] && first[1] == again[1] {
					t.Errorf("%s of %v draws the same again", name, shape)
				}
			}
		}
	}
}

// TestInitOrthogonal: rows or columns, whichever are fewer, are orthonormal.
func TestInitOrthogonal(t *testing.T) {
	env := freshEnv(t)
	for _, shape := range [][]int{{5, 5}, {100, 40}, {33, 70}, {1, 3}, {8, 2, 3, 3}, {64, 4, 3}} {
		p := NewParam(env.Zeros(shape...))
		InitOrthogonal(p, 1.5)
		m := p.Reshape(shape[0], -1)
		if m.Dim(0) > m.Dim(1) {
			m = m.Transpose(0, 1)
		}
		n := m.Dim(0)
		eye := NewParam(env.Zeros(n, n))
		InitEye(eye)
		if far := m.MatMul(m.Transpose(0, 1)).Sub(eye.Scale(2.25)).Abs().Max().Item(); far > 1e-5 {
			t.Errorf("%v: products of rows are off by %v", shape, far)
		}
	}
}

// TestInitByHand: initialisers without chance, and the share of zeros.
func TestInitByHand(t *testing.T) {
	env := freshEnv(t)
	eye := env.Zeros(2, 3)
	InitEye(eye)
	exactly(t, eye, 1, 0, 0, 0, 1, 0)
	dirac := env.Zeros(4, 2, 3)
	InitDirac(dirac, 2)
	exactly(t, dirac, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)
	x := env.Randn(2, 3, 4, 5)
	w := env.Zeros(3, 3, 3, 3)
	InitDirac(w, 1)
	if d := x.Conv2d(w, nil, tensor.Conv{Padding: [2]int{1, 1}}).Sub(x).Abs().Max().Item(); d != 0 {
		t.Errorf("a Dirac convolution changes values by %v", d)
	}
	InitConstant(eye, 3)
	exactly(t, eye, 3, 3, 3, 3, 3, 3)
	s := env.Zeros(10, 7)
	InitSparse(s, 0.25, 1)
	none := s.Eq(s.ZerosLike()).Cast(s.DType()).Sum(0)
	exactly(t, none, 3, 3, 3, 3, 3, 3, 3)
	for name, f := range map[string]func(){
		"one dimension":  func() { InitXavierNormal(env.Zeros(3), 1) },
		"an activation":  func() { InitKaimingNormal(env.Zeros(3, 3), Kaiming{Activation: "sine"}) },
		"bounds":         func() { InitTruncNormal(eye, 0, 1, 2, 1) },
		"groups":         func() { InitDirac(dirac, 3) },
		"no matrix":      func() { InitEye(x) },
		"sparsity":       func() { InitSparse(s, 1.5, 1) },
		"orthogonal row": func() { InitOrthogonal(env.Zeros(3), 1) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func exactly(t *testing.T, got *tensor.Tensor, want ...float64) {
	t.Helper()
	for i, v := range got.Floats() {
		if v != want[i] {
			t.Errorf("%v, want %v", got.Floats(), want)
			return
		}
	}
}
