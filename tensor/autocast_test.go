package tensor_test

import (
	"reflect"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// PyTorch's CUDA lists of autocast, for the ops that have a function there. What is in neither runs in the dtype it is
// given.
var (
	torchLow = map[ir.Code]string{ir.MatMul: "matmul", ir.Linear: "linear", ir.Conv2d: "conv2d", ir.Attention: "scaled_dot_product_attention",
		ir.SelfAttention: "scaled_dot_product_attention", ir.LinearCrossEntropy: "linear, and what follows of it in float32"}

	torchWide = map[ir.Code]string{ir.Exp: "exp", ir.Expm1: "expm1", ir.Log: "log", ir.Log1p: "log1p", ir.Rsqrt: "rsqrt", ir.Pow: "pow",
		ir.PowScalar: "pow", ir.Sum: "sum", ir.Prod: "prod", ir.CumSum: "cumsum", ir.Softmax: "softmax", ir.LogSoftmax: "log_softmax",
		ir.CrossEntropy: "nll_loss", ir.LayerNorm: "layer_norm"}

	// apartFromTorch says what differs on purpose: docs/pytorch.md has it too.
	apartFromTorch = map[ir.Code]string{ir.RMSNorm: "computed in float32, as LayerNorm"}
)

// TestAutocastLists holds every code against PyTorch's lists.
func TestAutocastLists(t *testing.T) {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		want := ir.CastNone
		if torchLow[code] != "" {
			want = ir.CastLow
		}
		if torchWide[code] != "" {
			want = ir.CastWide
		}
		if got := code.Row().Autocast; (got == want) == (apartFromTorch[code] != "") {
			t.Errorf("%s: class %d, PyTorch's is %d; on purpose: %q", code, got, want, apartFromTorch[code])
		}
	}
}

// policied are the methods that the lists speak of, called with f16 values under Autocast(F16), and what PyTorch gives.
var policied = map[string]struct {
	f    func(x, w *tensor.Tensor) *tensor.Tensor
	want dtype.DType
}{
	"MatMul": {func(x, w *tensor.Tensor) *tensor.Tensor { return x.Cast(dtype.F32).MatMul(w) }, dtype.F16},
	"Linear": {func(x, w *tensor.Tensor) *tensor.Tensor { return x.Cast(dtype.F32).Linear(w, nil) }, dtype.F16},
	"Conv2d": {func(x, w *tensor.Tensor) *tensor.Tensor {
		return x.Cast(dtype.F32).Reshape(1, 1, 2, 2).Conv2d(w.Reshape(1, 1, 2, 2), nil, tensor.Conv{})
	}, dtype.F16},
	"ConvTranspose2d": {func(x, w *tensor.Tensor) *tensor.Tensor {
		return x.Cast(dtype.F32).Reshape(1, 1, 2, 2).ConvTranspose2d(w.Reshape(1, 1, 2, 2), w.Select(0, 0).Slice(0, 0, 1), tensor.ConvTranspose{})
	}, dtype.F16},
	"Square":    {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Square() }, dtype.F32},
	"PowScalar": {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.PowScalar(2) }, dtype.F32},
	"Pow":       {func(x, w *tensor.Tensor) *tensor.Tensor { return x.Pow(w.Cast(dtype.F16)) }, dtype.F32},
	"Sum":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Sum() }, dtype.F32},
	"Prod":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Prod() }, dtype.F32},
	"CumSum":    {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.CumSum(0) }, dtype.F32},
	"Norm":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Norm() }, dtype.F32},
	"LogSumExp": {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.LogSumExp(0) }, dtype.F32},
	"Softmax":   {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Softmax(0) }, dtype.F32},
	"Exp":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Exp() }, dtype.F32},
	"Mean":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Mean() }, dtype.F16},
	"Var":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Var(1) }, dtype.F16},
	"Max":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Max() }, dtype.F16},
	"ReLU":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.ReLU() }, dtype.F16},
	"GELU":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.GELU() }, dtype.F16},
	"Sqrt":      {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Sqrt() }, dtype.F16},
	"Abs":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Abs() }, dtype.F16},
	"Div":       {func(x, _ *tensor.Tensor) *tensor.Tensor { return x.Div(x) }, dtype.F16},
	"Add":       {func(x, w *tensor.Tensor) *tensor.Tensor { return x.Add(w) }, dtype.F32},
	"Cat":       {func(x, w *tensor.Tensor) *tensor.Tensor { return tensor.Cat(0, x, w) }, dtype.F32},
}

// TestAutocastOfMethods also sees that 300² is not infinite, and that every method without operands of its own, which the
// table does not name, keeps the dtype.
func TestAutocastOfMethods(t *testing.T) {
	env := open(t)
	amp := env.Autocast(dtype.F16)
	x, w := amp.FullOf(dtype.F16, 300, 2, 2), env.Ones(2, 2)
	for name, c := range policied {
		if y := c.f(x, w); y.DType() != c.want {
			t.Errorf("%s gives %s, PyTorch %s", name, y.DType(), c.want)
		}
	}
	equal(t, "300²", x.Square().Slice(0, 0, 1).Slice(1, 0, 1), 90000)
	equal(t, "the norm", x.Norm(), 600)

	codes := map[string]ir.Code{}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		codes[code.String()] = code
	}
	typ := reflect.TypeFor[*tensor.Tensor]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		if m.Type.NumIn() != 1 || m.Type.NumOut() != 1 || m.Type.Out(0) != typ {
			continue
		}
		if _, named := policied[m.Name]; named || m.Name == "Grad" || m.Name == "AutoWide" {
			continue
		}
		y := m.Func.Call([]reflect.Value{reflect.ValueOf(x)})[0].Interface().(*tensor.Tensor)
		want := dtype.F16
		for code, name := range torchWide {
			if equalFold(name, m.Name) || equalFold(code.String(), m.Name) {
				want = dtype.F32
			}
		}
		if m.Name == "Not" {
			want = dtype.Bool
		}
		if y.DType() != want {
			t.Errorf("%s gives %s, want %s", m.Name, y.DType(), want)
		}
	}
}

func equalFold(a, b string) bool {
	fold := func(s string) (out []byte) {
		for _, c := range []byte(s) {
			if c != '_' {
				out = append(out, c|0x20)
			}
		}
		return out
	}
	return string(fold(a)) == string(fold(b))
}
