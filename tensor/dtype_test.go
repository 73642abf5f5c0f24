package tensor_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// TestEveryDType takes each dtype through what a tensor does without arithmetic, on a processor, a simulated GPU and a
// device without arithmetic: made, cast from and to every other, moved, joined, printed, read.
func TestEveryDType(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0", "null:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		for _, dt := range dtype.All() {
			x := env.FullOf(dt, 1, 2, 3)
			parts := []*tensor.Tensor{x, x.Clone(), x.Transpose(0, 1).Contiguous().Reshape(2, 3), tensor.Cat(0, x, x).Slice(0, 1, 3), tensor.Where(env.FullOf(dtype.Bool, 1, 2, 3), x, x)}
			for _, to := range dtype.All() {
				parts = append(parts, x.Cast(to).Cast(dt))
			}
			for i, y := range parts {
				if y.DType() != dt || device != "null:0" && !reflect.DeepEqual(y.Floats(), []float64{1, 1, 1, 1, 1, 1}) {
					t.Errorf("%s: part %d of %s is %v", device, i, dt, y)
				}
			}
			if text := x.String(); !strings.Contains(text, dt.String()) {
				t.Errorf("%s prints as %q", dt, text)
			}
		}
	}
}

// TestStorageDTypes: what is only stored is converted as PyTorch has it, and everything else says Cast.
func TestStorageDTypes(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	v := tensor.From(env, []float32{0, -1.0625, 449, -70000, float32(math.Inf(1)), 0.001}, 6)
	for dt, want := range map[dtype.DType][]float64{
		dtype.F8E4M3: {0, -1, 448, -448, 448, 0.001953125},
		dtype.F8E5M2: {0, -1, 448, math.Inf(-1), math.Inf(1), 0.0009765625},
	} {
		if got := v.Cast(dt).Cast(dtype.F32).Floats(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", dt, got, want)
		}
	}
	f8 := v.Cast(dtype.F8E4M3)
	low := f8.In(env.Autocast(dtype.BF16))
	for name, f := range map[string]func(){
		"add": func() { f8.Add(f8) }, "mixed": func() { f8.Mul(v) }, "scale": func() { f8.Scale(2) }, "relu": func() { f8.ReLU() },
		"sum": func() { f8.Sum() }, "matmul": func() { f8.Reshape(2, 3).MatMul(f8.Reshape(3, 2)) }, "autocast": func() { low.Reshape(2, 3).MatMul(low.Reshape(3, 2)) },
		"compare": func() { f8.Lt(f8) }, "max": func() { f8.Max(0) }, "mean": func() { f8.Mean() }, "softmax": func() { f8.Softmax(0) },
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), "Cast") || !strings.Contains(err.Error(), "f8e4m3") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownDType: no op takes a dtype that is none.
func TestUnknownDType(t *testing.T) {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if code.Row().Class.Has(dtype.DType(200)) || code.Row().Class.Has(dtype.Invalid) {
			t.Errorf("%s takes dtype 200", code)
		}
	}
}
