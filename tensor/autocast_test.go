package tensor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// autocast are the operations of testdata/autocast.txt, on [4,4] operands, of which those with one take the first.
var autocast = map[string]func(x, y *tensor.Tensor) *tensor.Tensor{
	"abs": one((*tensor.Tensor).Abs), "ceil": one((*tensor.Tensor).Ceil), "contiguous": one(func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Contiguous() }),
	"cos": one((*tensor.Tensor).Cos), "erf": one((*tensor.Tensor).Erf), "exp": one((*tensor.Tensor).Exp), "expm1": one((*tensor.Tensor).Expm1),
	"floor": one((*tensor.Tensor).Floor), "gelu": one((*tensor.Tensor).GELU), "gelu_tanh": one((*tensor.Tensor).GELUTanh), "log": one((*tensor.Tensor).Log),
	"log1p": one((*tensor.Tensor).Log1p), "mish": one((*tensor.Tensor).Mish), "neg": one((*tensor.Tensor).Neg), "relu": one((*tensor.Tensor).ReLU),
	"round": one((*tensor.Tensor).Round), "rsqrt": one((*tensor.Tensor).Rsqrt), "sigmoid": one((*tensor.Tensor).Sigmoid), "sign": one((*tensor.Tensor).Sign),
	"silu": one((*tensor.Tensor).SiLU), "sin": one((*tensor.Tensor).Sin), "softsign": one((*tensor.Tensor).Softsign), "sqrt": one((*tensor.Tensor).Sqrt),
	"square": one((*tensor.Tensor).Square), "tanh": one((*tensor.Tensor).Tanh), "trunc": one((*tensor.Tensor).Trunc),
	"tan":        one((*tensor.Tensor).Tan),
	"asin":       one((*tensor.Tensor).Asin),
	"acos":       one((*tensor.Tensor).Acos),
	"atan":       one((*tensor.Tensor).Atan),
	"sinh":       one((*tensor.Tensor).Sinh),
	"cosh":       one((*tensor.Tensor).Cosh),
	"asinh":      one((*tensor.Tensor).Asinh),
	"acosh":      one((*tensor.Tensor).Acosh),
	"atanh":      one((*tensor.Tensor).Atanh),
	"exp2":       one((*tensor.Tensor).Exp2),
	"log2":       one((*tensor.Tensor).Log2),
	"log10":      one((*tensor.Tensor).Log10),
	"erfinv":     one((*tensor.Tensor).Erfinv),
	"lgamma":     one((*tensor.Tensor).Lgamma),
	"digamma":    one((*tensor.Tensor).Digamma),
	"trigamma":   one((*tensor.Tensor).Trigamma),
	"affine":     one(func(x *tensor.Tensor) *tensor.Tensor { return x.Scale(2).AddScalar(1) }),
	"pow_scalar": one(func(x *tensor.Tensor) *tensor.Tensor { return x.PowScalar(3) }),
	"clamp":      one(func(x *tensor.Tensor) *tensor.Tensor { return x.Clamp(0, 1) }),
	"dropout":    one(func(x *tensor.Tensor) *tensor.Tensor { return x.Dropout(0.5) }),
	"sum":        axis((*tensor.Tensor).Sum), "mean": axis((*tensor.Tensor).Mean), "prod": axis((*tensor.Tensor).Prod), "amax": axis((*tensor.Tensor).Max), "amin": axis((*tensor.Tensor).Min),
	"argmax": one(func(x *tensor.Tensor) *tensor.Tensor { return x.ArgMax(1) }), "argmin": one(func(x *tensor.Tensor) *tensor.Tensor { return x.ArgMin(1) }),
	"cumsum":       one(func(x *tensor.Tensor) *tensor.Tensor { return x.CumSum(1) }),
	"var":          one(func(x *tensor.Tensor) *tensor.Tensor { return x.Var(1, 1) }),
	"norm":         one(func(x *tensor.Tensor) *tensor.Tensor { return x.Norm() }),
	"logsumexp":    one(func(x *tensor.Tensor) *tensor.Tensor { return x.LogSumExp(1) }),
	"softmax":      one(func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(-1) }),
	"log_softmax":  one(func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(-1) }),
	"reshape":      one(func(x *tensor.Tensor) *tensor.Tensor { return x.Reshape(-1) }),
	"permute":      one(func(x *tensor.Tensor) *tensor.Tensor { return x.Permute(1, 0) }),
	"slice":        one(func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(0, 1, 4) }),
	"expand":       one(func(x *tensor.Tensor) *tensor.Tensor { return x.Expand(2, 4, 4) }),
	"pad":          one(func(x *tensor.Tensor) *tensor.Tensor { return x.Pad(1, 1, 1, 0) }),
	"gather":       one(func(x *tensor.Tensor) *tensor.Tensor { return x.Gather(1, zeros(x)) }),
	"index_select": one(func(x *tensor.Tensor) *tensor.Tensor { return x.IndexSelect(0, zeros(x).Select(0, 0)) }),
	"embedding":    one(func(x *tensor.Tensor) *tensor.Tensor { return x.Embedding(zeros(x)) }),
	"max_pool2d":   one(func(x *tensor.Tensor) *tensor.Tensor { return image(x).MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) }),
	"avg_pool2d":   one(func(x *tensor.Tensor) *tensor.Tensor { return image(x).AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) }),
	"interpolate": one(func(x *tensor.Tensor) *tensor.Tensor {
		return nn.Upsample{Scale: []float64{2}, Mode: nn.ModeBilinear}.Forward(image(x))
	}),
	"sort": one(func(x *tensor.Tensor) *tensor.Tensor {
		values, _ := x.Sort(1, false)
		return values
	}),
	"cross_entropy": one(func(x *tensor.Tensor) *tensor.Tensor { return nn.CrossEntropy(x, zeros(x).Select(0, 0)) }),
	"self_attention": one(func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.SelfAttention(tensor.Stack(1, x, x, x).Reshape(1, 4, 3, 1, 4), tensor.Mask{})
	}),
	"erfc": one((*tensor.Tensor).Erfc), "sinc": one((*tensor.Tensor).Sinc), "xlogy": (*tensor.Tensor).Xlogy, "xlog1py": (*tensor.Tensor).Xlog1py,
	"logaddexp": (*tensor.Tensor).LogAddExp, "logaddexp2": (*tensor.Tensor).LogAddExp2, "hypot": (*tensor.Tensor).Hypot, "fmod": (*tensor.Tensor).Fmod,
	"copysign": (*tensor.Tensor).CopySign, "ldexp": (*tensor.Tensor).LDExp, "fmax": (*tensor.Tensor).Fmax, "fmin": (*tensor.Tensor).Fmin,
	"scatter":    func(x, y *tensor.Tensor) *tensor.Tensor { return x.Scatter(1, zeros(x), y) },
	"index_add":  func(x, y *tensor.Tensor) *tensor.Tensor { return x.IndexAdd(0, zeros(x).Select(0, 0), y) },
	"index_copy": func(x, y *tensor.Tensor) *tensor.Tensor { return x.IndexCopy(0, zeros(x).Select(0, 0), y) },
	"index_put": func(x, y *tensor.Tensor) *tensor.Tensor {
		return x.IndexPut([]*tensor.Tensor{zeros(x).Select(0, 0)}, y, false)
	},
	"masked_scatter": func(x, y *tensor.Tensor) *tensor.Tensor { return x.MaskedScatter(zeros(x).Eq(zeros(x)), y) },
	"scatter_reduce": func(x, y *tensor.Tensor) *tensor.Tensor {
		return x.ScatterReduce(1, zeros(x), y, tensor.ReduceMax, true)
	},
	"atan2": (*tensor.Tensor).Atan2, "add": (*tensor.Tensor).Add, "sub": (*tensor.Tensor).Sub, "mul": (*tensor.Tensor).Mul, "div": (*tensor.Tensor).Div, "pow": (*tensor.Tensor).Pow,
	"remainder": (*tensor.Tensor).Rem, "floor_divide": (*tensor.Tensor).FloorDiv, "maximum": (*tensor.Tensor).Maximum, "minimum": (*tensor.Tensor).Minimum,
	"eq": (*tensor.Tensor).Eq, "ne": (*tensor.Tensor).Ne, "lt": (*tensor.Tensor).Lt, "le": (*tensor.Tensor).Le, "matmul": (*tensor.Tensor).MatMul,
	"where":       func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Where(zeros(x).Eq(zeros(x)), x, y) },
	"cat":         func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Cat(0, x, y) },
	"stack":       func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Stack(0, x, y) },
	"scatter_add": func(x, y *tensor.Tensor) *tensor.Tensor { return x.ScatterAdd(1, zeros(x), y) },
	"linear":      func(x, y *tensor.Tensor) *tensor.Tensor { return x.Linear(y, nil) },
	"linear_bias": func(x, y *tensor.Tensor) *tensor.Tensor { return x.Linear(y, y.Select(0, 0)) },
	"linear_gelu": func(x, y *tensor.Tensor) *tensor.Tensor { return x.LinearAct(y, y.Select(0, 0), tensor.ActGELU) },
	"conv2d":      func(x, y *tensor.Tensor) *tensor.Tensor { return image(x).Conv2d(image(y), nil, tensor.Conv{}) },
	"conv_transpose2d": func(x, y *tensor.Tensor) *tensor.Tensor {
		return image(x).ConvTranspose2d(image(y), nil, tensor.ConvTranspose{})
	},
	"attention": func(x, y *tensor.Tensor) *tensor.Tensor {
		return tensor.Attention(image(x), image(y), image(y), tensor.Mask{})
	},
	"layer_norm": func(x, y *tensor.Tensor) *tensor.Tensor { return x.LayerNorm(y.Select(0, 0), y.Select(0, 1), 1e-5) },
	"rms_norm":   func(x, y *tensor.Tensor) *tensor.Tensor { return x.RMSNorm(y.Select(0, 0), 1e-5) },
	"batch_norm": func(x, y *tensor.Tensor) *tensor.Tensor {
		out, _, _ := image4(x).BatchNorm(y.Select(0, 0), y.Select(0, 1), 1e-5)
		return out
	},
	"batch_norm_eval": func(x, y *tensor.Tensor) *tensor.Tensor {
		return image4(x).BatchNormEval(y.Select(0, 0), y.Select(0, 1), y.Select(0, 2), y.Select(0, 3), 1e-5)
	},
	"linear_cross_entropy": func(x, y *tensor.Tensor) *tensor.Tensor { return nn.LinearCrossEntropy(x, y, zeros(x).Select(0, 0)) },
	"mse_loss":             func(x, y *tensor.Tensor) *tensor.Tensor { return nn.MSE(x, y) },
	"binary_cross_entropy_with_logits": func(x, y *tensor.Tensor) *tensor.Tensor {
		return nn.BCEWithLogits(x, y)
	},
}

func one(f func(*tensor.Tensor) *tensor.Tensor) func(x, y *tensor.Tensor) *tensor.Tensor {
	return func(x, _ *tensor.Tensor) *tensor.Tensor { return f(x) }
}

func axis(f func(*tensor.Tensor, ...int) *tensor.Tensor) func(x, y *tensor.Tensor) *tensor.Tensor {
	return func(x, _ *tensor.Tensor) *tensor.Tensor { return f(x, 1) }
}

func zeros(like *tensor.Tensor) *tensor.Tensor {
	return like.Env().FullOf(dtype.I64, 0, like.Shape()...)
}

func image(x *tensor.Tensor) *tensor.Tensor  { return x.Reshape(1, 1, 4, 4) }
func image4(x *tensor.Tensor) *tensor.Tensor { return x.Reshape(4, 4, 1, 1) }

// torchless are codes that no function of PyTorch's is alone, with the reason.
func torchless(code ir.Code) string {
	switch row := code.Row(); {
	case strings.HasSuffix(row.Name, "_grad"), strings.Contains(row.Name, "_grad_"):
		return "of a backward pass, which has no policy"
	case row.Group == ir.Creation:
		return "no operands"
	case row.Group == ir.Updates:
		return "an optimizer's"
	case row.Class == ir.Bools, row.Class == ir.Bits:
		return "of no floating values"
	}
	return map[ir.Code]string{ir.Cast: "says its dtype", ir.Copy: "is contiguous", ir.Axpy: "a scaled sum", ir.Lerp: "in place only", ir.And: "", ir.AddNorm: "a sum and its norm in one", ir.LSTMStep: "a part of a layer"}[code]
}

// TestAutocastIsPyTorchs compares the dtype of every operation with PyTorch's under both lists, for every mixture of
// operands, and sees that every code is among them.
func TestAutocastIsPyTorchs(t *testing.T) {
	raw, err := os.ReadFile("testdata/autocast.txt")
	if err != nil {
		t.Fatal(err)
	}
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[ir.Code]bool{}
	defer env.Device().Observe(func(e *device.Event) { seen[e.Kernel.Op.Code] = true }, device.KindLaunch)()
	rows := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		var name, cards, cpu string
		if n, _ := fmt.Sscan(line, &name, &cards, &cpu); n != 3 || name == "#" {
			continue
		}
		rows[name] = true
		f := autocast[name]
		if f == nil {
			t.Errorf("nothing is called for %s", name)
			continue
		}
		for _, low := range []dtype.DType{dtype.F16, dtype.BF16} {
			for which, want := range map[string]string{"CUDA": cards, "CPU": cpu} {
				e := env.Autocast(low)
				if which == "CPU" {
					e = e.CPULists()
				}
				if got := autocastLetters(t, e, low, f, want); got != want {
					t.Errorf("%s under %s's lists, %s: %s, PyTorch %s", name, which, low, got, want)
				}
			}
		}
	}
	for name := range autocast {
		if !rows[name] {
			t.Errorf("the table has no %s", name)
		}
	}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if !seen[code] && !code.View() && torchless(code) == "" {
			t.Errorf("no row of the table reaches %s", code)
		}
	}
}

// autocastLetters is a row of the table as it is here, of those mixtures that want has, and without what it has no answer for.
func autocastLetters(t *testing.T, e *tensor.Env, low dtype.DType, f func(x, y *tensor.Tensor) *tensor.Tensor, want string) (out string) {
	for i, dts := range [][2]dtype.DType{{dtype.F32, dtype.F32}, {low, low}, {dtype.F32, low}, {low, dtype.F32}} {
		if want[i] == '.' || want[i] == 'x' { // what is an error there may work here
			out += want[i : i+1]
			continue
		}
		y, err := e.Try(func(e *tensor.Env) *tensor.Tensor {
			return f(e.FullOf(dts[0], 1, 4, 4), e.FullOf(dts[1], 1, 4, 4))
		})
		switch {
		case err != nil:
			t.Log(err)
			out += "x"
		case y.DType() == dtype.F32:
			out += "w"
		case y.DType() == low:
			out += "l"
		default:
			out += "i"
		}
	}
	return out
}

// TestAutocastOfLargeNumbers: 300² is not infinite where squares are computed in float32.
func TestAutocastOfLargeNumbers(t *testing.T) {
	amp := open(t).Autocast(dtype.F16)
	x := amp.FullOf(dtype.F16, 300, 2, 2)
	equal(t, "300²", x.Square().Slice(0, 0, 1).Slice(1, 0, 1), 90000)
	equal(t, "the norm", x.Norm(), 600)
}
