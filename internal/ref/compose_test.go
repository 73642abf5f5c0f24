package ref_test

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

type composition = func(b ir.B, g *golden) []ir.Value

// compositions says PyTorch's ops in op codes.
var compositions = map[string]composition{
	"erf": unary(ir.Erf), "tanh": unary(ir.Tanh), "sigmoid": unary(ir.Sigmoid), "silu": unary(ir.SiLU), "exp": unary(ir.Exp),
	"expm1": unary(ir.Expm1), "sin": unary(ir.Sin), "cos": unary(ir.Cos), "relu": unary(ir.ReLU), "abs": unary(ir.Abs),
	"log1p": unary(ir.Log1p), "log": unary(ir.Log), "sqrt": unary(ir.Sqrt), "rsqrt": unary(ir.Rsqrt), "round": unary(ir.Round),
	"floor": unary(ir.Floor), "ceil": unary(ir.Ceil), "trunc": unary(ir.Trunc), "sign": unary(ir.Sign), "logical_not": unary(ir.Not),
	"softmax": unary(ir.Softmax), "log_softmax": unary(ir.LogSoftmax),

	"remainder": binary(ir.Rem), "maximum": binary(ir.Maximum), "minimum": binary(ir.Minimum), "add": binary(ir.Add),
	"eq": binary(ir.Eq), "ne": binary(ir.Ne), "lt": binary(ir.Lt), "le": binary(ir.Le), "logical_and": binary(ir.And),
	"logical_or": binary(ir.Or), "logical_xor": binary(ir.Xor),
	"gt": one(func(b ir.B, g *golden) ir.Value { return b.Binary(ir.Lt, g.in(1), g.in(0)) }),
	"ge": one(func(b ir.B, g *golden) ir.Value { return b.Binary(ir.Le, g.in(1), g.in(0)) }),

	"erfc": unary(ir.Erfc), "sinc": unary(ir.Sinc), "xlogy": binary(ir.Xlogy), "xlog1py": binary(ir.Xlog1py), "logaddexp": binary(ir.LogAddExp),
	"logaddexp2": binary(ir.LogAddExp2), "hypot": binary(ir.Hypot), "copysign": binary(ir.CopySign),
	"bitwise_and": binary(ir.BitAnd), "bitwise_or": binary(ir.BitOr), "bitwise_xor": binary(ir.BitXor), "gcd": binary(ir.GCD),
	"bitwise_left_shift": binary(ir.ShiftLeft), "bitwise_right_shift": binary(ir.ShiftRight),

	"gelu": one(gelu), "softplus": one(func(b ir.B, g *golden) ir.Value { return softplus(b, g.in(0)) }),
	"reciprocal": one(func(b ir.B, g *golden) ir.Value { return b.Div(b.Number(dtype.F64, 1), g.in(0)) }),
	"div":        one(div), "fmod": binary(ir.Fmod), "pow": one(pow), "clamp": one(clamp), "lerp": one(lerp), "where": one(where), "mul": one(mul),
	"cast": one(cast), "sum": one(sum), "mean": one(mean), "var": one(variance), "prod": reduce(ir.Prod), "all": one(all), "any": one(some),
	"argmax": along(ir.ArgMax), "argmin": along(ir.ArgMin), "cumsum": along(ir.CumSum), "amax": reduce(ir.ReduceMax), "amin": reduce(ir.ReduceMin),
	"max": one(maxIndex), "logsumexp": one(logSumExp),

	"gather":      along(ir.Gather),
	"scatter_add": along(ir.ScatterAdd),
	"scatter":     one(scatter), "cat": along(ir.Cat), "stack": one(stack), "flip": one(flip), "tril": one(tril), "pad": one(pad),
	"index_select": one(func(b ir.B, g *golden) ir.Value {
		return emit(b, ir.Embedding, ir.Attr{}, ir.Params{}, g.in(0), g.in(1))
	}),
	"embedding": one(func(b ir.B, g *golden) ir.Value {
		return emit(b, ir.Embedding, ir.Attr{}, ir.Params{}, g.in(0), g.in(1))
	}),
	"slice": one(func(b ir.B, g *golden) ir.Value {
		return b.Slice(g.in(0), int(g.number("dim")), int(g.number("start")), 3, 2)
	}),
	"expand":  one(func(b ir.B, g *golden) ir.Value { return b.Expand(g.in(0), g.list("shape")) }),
	"permute": one(func(b ir.B, g *golden) ir.Value { return b.Permute(g.in(0), g.list("dims")...) }),

	"matmul": one(matMul), "conv2d": one(conv), "max_pool2d": maxPool, "avg_pool2d": one(avgPool),
	"layer_norm": norm(ir.LayerNorm), "rms_norm": norm(ir.RMSNorm), "cross_entropy": one(crossEntropy),
	"binary_cross_entropy_with_logits": one(func(b ir.B, g *golden) ir.Value {
		return b.Sub(softplus(b, g.in(0)), b.Mul(g.in(0), g.in(1)))
	}),
}

func one(f func(b ir.B, g *golden) ir.Value) composition {
	return func(b ir.B, g *golden) []ir.Value { return []ir.Value{f(b, g)} }
}

func emit(b ir.B, code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) ir.Value {
	return b.Emit(code, attr, p, in...)[0]
}

func unary(code ir.Code) composition {
	return one(func(b ir.B, g *golden) ir.Value { return b.Unary(code, g.in(0)) })
}

func binary(code ir.Code) composition {
	return one(func(b ir.B, g *golden) ir.Value { return b.Binary(code, g.in(0), g.in(1)) })
}

func reduce(code ir.Code) composition {
	return one(func(b ir.B, g *golden) ir.Value { return b.Reduce(code, g.in(0), g.axes(), false) })
}

// along applies an op with a dimension to all operands.
func along(code ir.Code) composition {
	return one(func(b ir.B, g *golden) ir.Value {
		var in []ir.Value
		for i := range g.In {
			in = append(in, g.in(i))
		}
		return emit(b, code, ir.Attr{Axis: int8(g.number("dim"))}, ir.Params{}, in...)
	})
}

func gelu(b ir.B, g *golden) ir.Value {
	if g.Attrs["approximate"] == "tanh" {
		return b.Unary(ir.GELUTanh, g.in(0))
	}
	return b.Unary(ir.GELU, g.in(0))
}

// softplus is PyTorch's: log(1 + exp x), and x itself above 20.
func softplus(b ir.B, x ir.Value) ir.Value {
	most := b.Number(x.Type().DType, 20)
	soft := b.Unary(ir.Log1p, b.Unary(ir.Exp, b.Binary(ir.Minimum, x, most)))
	return b.Where(b.Binary(ir.Lt, most, x), x, soft)
}

func div(b ir.B, g *golden) ir.Value {
	x, y := g.in(0), g.in(1)
	switch {
	case g.Attrs["mode"] == "floor":
		x = b.Sub(x, b.Binary(ir.Rem, x, y))
	case g.Attrs["mode"] == nil && x.Type().DType.IsInt():
		x, y = b.Cast(x, dtype.F32), b.Cast(y, dtype.F32)
	}
	return b.Div(x, y)
}

func pow(b ir.B, g *golden) ir.Value {
	if len(g.In) == 1 {
		return emit(b, ir.PowScalar, ir.Attr{}, ir.Scalars(g.number("exponent")), g.in(0))
	}
	return b.Binary(ir.Pow, g.in(0), g.in(1))
}

func clamp(b ir.B, g *golden) ir.Value {
	return emit(b, ir.Clamp, ir.Attr{}, ir.Scalars(g.number("min"), g.number("max")), g.in(0))
}

func lerp(b ir.B, g *golden) ir.Value {
	return emit(b, ir.Lerp, ir.Attr{}, ir.Scalars(g.number("weight")), g.in(0), g.in(1))
}

func where(b ir.B, g *golden) ir.Value {
	if g.Name != "where_log" {
		return b.Where(g.in(0), g.in(1), g.in(2))
	}
	zero := b.Number(dtype.F64, 0)
	x := b.Where(b.Binary(ir.Lt, zero, g.in(0)), g.in(0), zero)
	return emit(b, ir.Clamp, ir.Attr{}, ir.Scalars(-5, 1e300), b.Unary(ir.Log, x))
}

func mul(b ir.B, g *golden) ir.Value {
	x := b.Mul(g.in(0), g.in(1))
	if len(g.In) == 3 {
		x = b.Add(x, g.in(2))
	}
	return x
}

func cast(b ir.B, g *golden) ir.Value {
	for _, dt := range dtype.All() {
		if dt.String() == g.Attrs["to"] {
			return b.Cast(g.in(0), dt)
		}
	}
	return nil
}

// sum of bool and narrow integers is i64 in PyTorch.
func sum(b ir.B, g *golden) ir.Value {
	x := g.in(0)
	if !x.Type().DType.IsFloat() {
		x = b.Cast(x, dtype.I64)
	}
	return b.Sum(x, g.axes(), false)
}

func mean(b ir.B, g *golden) ir.Value { return b.Scale(sum(b, g), 1/float64(g.in(0).Type().Dim(1))) }

func variance(b ir.B, g *golden) ir.Value {
	x, n := g.in(0), float64(g.in(0).Type().Dim(1))
	d := b.Sub(x, b.Scale(b.Sum(x, g.axes(), true), 1/n))
	return b.Scale(b.Sum(b.Mul(d, d), g.axes(), false), 1/(n-g.number("correction")))
}

func all(b ir.B, g *golden) ir.Value {
	return b.Cast(b.Reduce(ir.Prod, b.Cast(b.Cast(g.in(0), dtype.Bool), dtype.I64), g.axes(), false), dtype.Bool)
}

func some(b ir.B, g *golden) ir.Value {
	return b.Cast(b.Sum(b.Cast(b.Cast(g.in(0), dtype.Bool), dtype.I64), g.axes(), false), dtype.Bool)
}

func maxIndex(b ir.B, g *golden) ir.Value {
	axis := int8(g.number("dim"))
	at := emit(b, ir.ArgMax, ir.Attr{Axis: axis, Keep: true}, ir.Params{}, g.in(0))
	return b.Reshape(b.Gather(g.in(0), int(axis), at), g.in(0).Type().Dim(0))
}

// logSumExp treats the maximum as a constant, and as 0 where it is infinite.
func logSumExp(b ir.B, g *golden) ir.Value {
	x := g.in(0)
	free := ir.B{Builder: &tape{}}
	m := free.Reduce(ir.ReduceMax, x, g.axes(), true)
	m = free.Mask(free.Binary(ir.Eq, free.Sub(m, m), free.Number(dtype.F64, 0)), m)
	s := b.Unary(ir.Log, b.Sum(b.Unary(ir.Exp, b.Sub(x, m)), g.axes(), true))
	return b.Reshape(b.Add(s, m), x.Type().Dim(0))
}

// scatter of indices without duplicates.
func scatter(b ir.B, g *golden) ir.Value {
	x, idx, src := g.in(0), g.in(1), g.in(2)
	put := func(src ir.Value) ir.Value {
		return emit(b, ir.ScatterAdd, ir.Attr{Axis: 1}, ir.Params{}, b.Full(x.Type(), 0), idx, src)
	}
	hit := b.Cast(put(b.Full(src.Type(), 1)), dtype.Bool)
	return b.Where(hit, put(src), x)
}

func stack(b ir.B, g *golden) ir.Value {
	x := b.Reshape(g.in(0), 2, 1, 3)
	y := b.Reshape(g.in(1), 2, 1, 3)
	return emit(b, ir.Cat, ir.Attr{Axis: 1}, ir.Params{}, x, y)
}

func flip(b ir.B, g *golden) ir.Value {
	t := g.in(0).Type()
	back := emit(b, ir.Iota, ir.Attr{Out: ir.Dense(dtype.I64, t.Dim(1))}, ir.Scalars(float64(t.Dim(1)-1), -1))
	return b.Gather(g.in(0), 1, b.Expand(back, t.Shape()))
}

func tril(b ir.B, g *golden) ir.Value {
	t := g.in(0).Type()
	row := b.Affine(b.Count(t.Dim(0), 1), 1, g.number("diagonal"))
	return b.Mask(b.Binary(ir.Le, b.Count(t.Dim(1)), row), g.in(0))
}

// pad takes pairs from the last dimension on; negative ones cut off.
func pad(b ir.B, g *golden) ir.Value {
	x := g.in(0)
	pairs := g.list("pad")
	for i := 0; i < len(pairs); i += 2 {
		axis := x.Type().Rank() - 1 - i/2
		before, after := pairs[i], pairs[i+1]
		cut := max(-before, 0)
		x = b.Slice(x, axis, cut, x.Type().Dim(axis)-cut-max(-after, 0), 1)
		x = b.Pad(x, axis, max(before, 0), max(after, 0), 0, g.number("value"))
	}
	return x
}

// matMul is PyTorch's, with vectors and broadcast leading dimensions.
func matMul(b ir.B, g *golden) ir.Value {
	x, y := g.in(0), g.in(1)
	left, right := x.Type().Rank() == 1, y.Type().Rank() == 1
	if left {
		x = b.Reshape(x, 1, x.Type().Dim(0))
	}
	if right {
		y = b.Reshape(y, y.Type().Dim(0), 1)
	}
	xs, ys := x.Type().Shape(), y.Type().Shape()
	lead, err := ir.Broadcast(xs[:len(xs)-2], ys[:len(ys)-2])
	if err != nil {
		panic(err)
	}
	x, y = b.Expand(x, slices.Concat(lead, xs[len(xs)-2:])), b.Expand(y, slices.Concat(lead, ys[len(ys)-2:]))
	z := b.MatMul(x, y)
	if !left {
		lead = append(lead, xs[len(xs)-2])
	}
	if !right {
		lead = append(lead, ys[len(ys)-1])
	}
	return b.Reshape(z, lead...)
}

func conv(b ir.B, g *golden) ir.Value {
	c := ir.Conv{Groups: 1}
	c.StrideH, c.StrideW = g.pair("stride", 1)
	c.PadH, c.PadW = g.pair("padding", 0)
	c.DilationH, c.DilationW = g.pair("dilation", 1)
	c.Groups, _ = g.pair("groups", 1)
	return emit(b, ir.Conv2d, c.Attr(), ir.Params{}, g.in(0), g.in(1), g.in(2))
}

func poolAttr(g *golden) ir.Attr {
	k, s, p := int(g.number("kernel")), int(g.number("stride")), int(g.number("padding"))
	return ir.Pool{KernelH: k, KernelW: k, StrideH: s, StrideW: s, PadH: p, PadW: p}.Attr()
}

func maxPool(b ir.B, g *golden) []ir.Value {
	return b.Emit(ir.MaxPool2d, poolAttr(g), ir.Params{}, g.in(0))
}

// avgPool that does not count the padding divides by the part of the window that is no padding.
func avgPool(b ir.B, g *golden) ir.Value {
	y := emit(b, ir.AvgPool2d, poolAttr(g), ir.Params{}, g.in(0))
	if g.Attrs["count_include_pad"] == true {
		return y
	}
	return b.Div(y, emit(b, ir.AvgPool2d, poolAttr(g), ir.Params{}, b.Full(g.in(0).Type(), 1)))
}

func norm(code ir.Code) composition {
	return one(func(b ir.B, g *golden) ir.Value {
		in := []ir.Value{g.in(0), g.in(1)}
		if len(g.In) == 3 {
			in = append(in, g.in(2))
		}
		return emit(b, code, ir.Attr{}, ir.Scalars(g.number("eps")), in...)
	})
}

func crossEntropy(b ir.B, g *golden) ir.Value {
	loss := emit(b, ir.CrossEntropy, ir.Attr{}, ir.Scalars(0, -100), g.in(0), g.in(1))
	if g.Attrs["reduction"] == "none" {
		return loss
	}
	ignored := b.Number(dtype.I64, g.number("ignore_index"))
	count := b.Sum(b.Cast(b.Binary(ir.Ne, g.in(1), ignored), dtype.F64), 1, false)
	return b.Div(b.Sum(loss, 1, false), count)
}
