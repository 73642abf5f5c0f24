package tensor_test

import (
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// edges have values where rounding to fewer bits differs by its rule, and what becomes of them as tf32 and bfloat16: half a
// unit of the last place and a little less, above an even and an odd neighbour; a carry through all bits.
var edges = []struct{ x, tf32, bf16 float32 }{
	{1, 1, 1}, {-3, -3, -3}, {0, 0, 0},
	{1 + 0x1p-11, 1 + 0x1p-10, 1}, {1 + 0x1p-11 - 0x1p-23, 1, 1}, {-1 - 0x1p-11, -1 - 0x1p-10, -1},
	{1 + 0x1p-10 + 0x1p-11, 1 + 0x1p-9, 1}, {1 + 0x1p-8, 1 + 0x1p-8, 1}, {1 + 0x1p-7 + 0x1p-8, 1 + 0x1p-7 + 0x1p-8, 1 + 0x1p-6},
	{2 - 0x1p-23, 2, 2}, {0x1.ffdp-3, 0x1.ffcp-3, 0x1p-2}, {-0x1p-126, -0x1p-126, -0x1p-126},
}

// TestProducts: operands of float32 products, forward and backward, are rounded as the precision says, those of a card as
// those of the CPU, and nothing else is.
func TestProducts(t *testing.T) {
	for _, device := range []string{"cpu", "sim:h100-80"} {
		root := fresh(t, device)
		for _, p := range []tensor.Precision{tensor.Highest, tensor.High, tensor.Medium} {
			for _, e := range edges {
				matrices, windows := e.x, e.x // as a product takes e.x
				switch p {
				case tensor.High:
					matrices, windows = e.tf32, e.tf32
				case tensor.Medium:
					matrices, windows = e.bf16, e.tf32
				}
				one := tensor.From(root, []float32{1}, 1, 1).In(root.Products(p))
				x := tensor.From(root, []float32{e.x}, 1, 1)
				for name, f := range map[string]func(x, w *tensor.Tensor) *tensor.Tensor{
					"MatMul": (*tensor.Tensor).MatMul,
					"Linear": func(x, w *tensor.Tensor) *tensor.Tensor { return x.Linear(w, nil) },
					"Conv2d": func(x, w *tensor.Tensor) *tensor.Tensor {
						return x.Reshape(1, 1, 1, 1).Conv2d(w.Reshape(1, 1, 1, 1), nil, tensor.Conv{}).Reshape(1, 1)
					},
				} {
					want := matrices
					if name == "Conv2d" {
						want = windows
					}
					u, v := tensor.From(root, []float32{e.x}, 1, 1).RequireGrad(), tensor.From(root.Products(p), []float32{1}, 1, 1).RequireGrad()
					y := f(u, v)
					y.Mul(x.In(root.Products(p))).Sum().Backward() // its gradient is x
					for what, got := range map[string]*tensor.Tensor{"the product": y, "the gradient of x": u.Grad(), "of the other": v.Grad()} {
						w := float64(want)
						if what == "of the other" {
							w *= w
						}
						if g := got.Item(); g != float64(float32(w)) || got.DType() != dtype.F32 {
							t.Errorf("%s on %s, %s: %s of %v is %v in %s, want %v", name, device, p, what, e.x, g, got.DType(), w)
						}
					}
					if name != "MatMul" {
						continue
					}
					if sum := one.Add(x).Item(); sum != float64(1+e.x) {
						t.Errorf("%s: a sum is %v", p, sum)
					}
					if d := f(one.Cast(dtype.F64), x.Cast(dtype.F64)).Item(); d != float64(e.x) {
						t.Errorf("%s: a product in float64 of %v is %v", p, e.x, d)
					}
					if h := f(one, x.In(root.Autocast(dtype.BF16))); h.DType() != dtype.BF16 || h.Item() != float64(e.bf16) {
						t.Errorf("%s under a policy: %v", p, h)
					}
				}
			}
		}
	}
}

// TestProductsOfNoNumbers: what is no number, and what rounds beyond the range, comes out of a product in TF32 as the card has
// it.
func TestProductsOfNoNumbers(t *testing.T) {
	for _, device := range []string{"cpu", "sim:h100-80"} {
		root := fresh(t, device)
		for x, want := range map[float32]float64{math.MaxFloat32: math.Inf(1), -math.MaxFloat32: math.Inf(-1), float32(math.Inf(1)): math.Inf(1), float32(math.NaN()): math.NaN()} {
			v := tensor.From(root, []float32{x}, 1, 1)
			if got := v.In(root.Products(tensor.High)).MatMul(root.Ones(1, 1)).Item(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %v gives %v, want %v", device, x, got, want)
			}
		}
	}
}

// TestProductsOfTwo: an env's precision is that of the values it meets, the later word counts, and two that differ are an
// error.
func TestProductsOfTwo(t *testing.T) {
	env := fresh(t, "cpu")
	x := tensor.From(env, []float32{1 + 0x1p-11}, 1, 1)
	high, medium := env.Products(tensor.High), env.Products(tensor.Medium)
	for name, c := range map[string]struct {
		got  *tensor.Tensor
		want float64
	}{
		"both":    {x.In(high).MatMul(x.In(high)), (1 + 0x1p-10) * (1 + 0x1p-10)},
		"one":     {x.In(high).MatMul(env.Ones(1, 1)), 1 + 0x1p-10},
		"no more": {x.In(high).In(env.Products(tensor.Highest)).MatMul(env.Ones(1, 1)), 1 + 0x1p-11},
		"again":   {x.In(high).In(medium).MatMul(env.Ones(1, 1)), 1},
	} {
		if got := c.got.Item(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	fails(t, env, func() { x.In(high).MatMul(x.In(medium)) }, "two precisions of products, high and medium")
	fails(t, env, func() { env.Products(7) }, "precision(7)")
	if s := high.String(); !strings.Contains(s, "products high") {
		t.Error(s)
	}
	for _, p := range []tensor.Precision{tensor.Highest, tensor.High, tensor.Medium} {
		if got, err := tensor.ParsePrecision(p.String()); got != p || err != nil {
			t.Errorf("%s reads as %s, %v", p, got, err)
		}
	}
	if _, err := tensor.ParsePrecision("low"); err == nil || !strings.Contains(err.Error(), "highest, high, medium") {
		t.Error(err)
	}
}
