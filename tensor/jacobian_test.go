package tensor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

type values = []*tensor.Tensor

// functions are those of bench/pytorch/jacobian_reference.py.
var functions = map[string]func(x ...*tensor.Tensor) *tensor.Tensor{
	"products":   func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]).Tanh() },
	"softmax":    func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(-1).Mul(x[0].Exp()) },
	"broadcast":  func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Sin().Mul(x[1]).Add(x[1].PowScalar(3)) },
	"first only": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Sigmoid() },
	"norm":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(x[1], nil, 1e-5) },
	"straight":   func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scale(3).Add(x[1]) },
	"one number": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[1]).Exp().Sum().Mul(x[0].Sum()) },
	"loss": func(x ...*tensor.Tensor) *tensor.Tensor {
		return x[1].MatMul(x[0]).Exp().AddScalar(1).Log().Log().Mean()
	},
	"cubes":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].PowScalar(3).Sum() },
	"straight number": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Scale(2).Sum().Add(x[1].Sum()) },
	"scalar":          func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Exp().Mul(x[0]) },
	"empty":           func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[0]) },
	"attention":       func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Attention(x[0], x[1], x[1], tensor.Mask{}) },
}

// TestJacobian compares products with derivatives, Jacobians and Hessians with PyTorch's, also of values that carry a graph and
// in an env that records nothing: the results carry none.
func TestJacobian(t *testing.T) {
	var index struct{ Cases []string }
	golden.JSON(t, "testdata/jacobian.json", &index)
	if len(index.Cases) != len(functions) {
		t.Errorf("%d cases of %d functions", len(index.Cases), len(functions))
	}
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	all := golden.Tensors(t, env, "testdata/jacobian.safetensors")
	for i, name := range index.Cases {
		t.Run(name, func(t *testing.T) {
			c := map[string]*tensor.Tensor{}
			for path, v := range all {
				if short, ok := strings.CutPrefix(path, name+":"); ok {
					c[short] = v
					if short[0] == 'x' && i%3 == 1 {
						c[short] = v.In(env.NoGrad())
					} else if short[0] == 'x' && i%3 == 2 {
						c[short] = v.RequireGrad().Scale(1)
					}
				}
			}
			derivatives(t, functions[name], c)
		})
	}
}

// several are the values NAME.0, NAME.1, ….
func several(c map[string]*tensor.Tensor, name string) (all values) {
	for i := 0; c[fmt.Sprintf("%s.%d", name, i)] != nil; i++ {
		all = append(all, c[fmt.Sprintf("%s.%d", name, i)])
	}
	return all
}

func derivatives(t *testing.T, f func(x ...*tensor.Tensor) *tensor.Tensor, c map[string]*tensor.Tensor) {
	x, v := several(c, "x"), several(c, "v")
	same := func(name string, got *tensor.Tensor) {
		t.Helper()
		if want := c[name]; want == nil {
			t.Errorf("PyTorch has no %s", name)
		} else if golden.Close(t, name, got, want, 1e-10, 1e-12); got.Recorded() {
			t.Errorf("%s carries a graph", name)
		}
	}
	each := func(name string, got values) {
		t.Helper()
		if len(got) != len(x) {
			t.Errorf("%d of %s for %d operands", len(got), name, len(x))
		}
		for i, g := range got {
			same(fmt.Sprintf("%s.%d", name, i), g)
		}
	}
	y, vjp := tensor.VJP(f, x, c["u"])
	same("y", y)
	each("vjp", vjp)
	y, jvp := tensor.JVP(f, x, v)
	same("y", y)
	same("jvp", jvp)
	each("jacobian", tensor.Jacobian(f, x...))
	if y.Size() != 1 {
		return
	}
	y, hvp := tensor.HVP(f, x, v)
	same("y", y)
	each("hvp", hvp)
	for i, row := range tensor.Hessian(f, x...) {
		each(fmt.Sprintf("hessian.%d", i), row)
	}
}

// TestJacobianErrors tells what cannot be differentiated so.
func TestJacobianErrors(t *testing.T) {
	env := open(t)
	x, v := values{env.Ones(3)}, values{env.Ones(2)}
	square := func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Square() }
	for want, f := range map[string]func(){
		"nothing to differentiate": func() { tensor.VJP(square, nil, nil) },
		"is not one number":        func() { tensor.VJP(square, x, nil) },
		"a direction of shape":     func() { tensor.JVP(square, x, v) },
		"directions for":           func() { tensor.HVP(functions["cubes"], x, nil) },
		"not one number":           func() { tensor.Hessian(square, x...) },
		"has no derivative":        func() { tensor.Jacobian(func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].ArgMax(0) }, x...) },
		"is nil":                   func() { tensor.Jacobian(square, nil) },
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
