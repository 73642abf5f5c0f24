package lower

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// sumSquares widens each operand to the result's dtype before it squares.
func sumSquares(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	dt := dtype.F32
	for _, t := range op.Ins() {
		if t.DType == dtype.F64 {
			dt = dtype.F64
		}
	}
	var total ir.Value
	for _, x := range in {
		x = b.Cast(x, dt)
		s := b.Sum(b.Mul(x, x), 1<<x.Type().Rank()-1, false)
		if total == nil {
			total = s
		} else {
			total = b.Add(total, s)
		}
	}
	return []ir.Value{total}
}

// scaled is the gradient g times the scale, wide, with weight decay·w added to it.
func scaled(b ir.B, g, scale, w ir.Value, decay float64) ir.Value {
	g = b.Widen(g)
	g = b.Mul(g, b.Cast(scale, g.Type().DType))
	if decay != 0 {
		g = axpy(b, g, w, decay)
	}
	return g
}

// axpy is x + p·y.
func axpy(b ir.B, x, y ir.Value, p float64) ir.Value {
	return b.Emit(ir.Axpy, ir.Attr{}, ir.Scalars(p), x, y)[0]
}

// sgd is PyTorch's: buf = momentum·buf + g (g alone at the first step), w -= rate·buf, or g + momentum·buf for Nesterov.
func sgd(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	rate, momentum, decay, flag := param(p, 0), param(p, 1), param(p, 2), op.Attr.Flag
	group := 2
	if flag&ir.Momentum != 0 {
		group = 3
	}
	var out []ir.Value
	for i := 1; i < len(in); i += group {
		w := b.Widen(in[i])
		g := scaled(b, in[i+1], in[0], w, decay)
		step := g
		var state []ir.Value
		if flag&ir.Momentum != 0 {
			buf := g
			if flag&ir.First == 0 {
				buf = axpy(b, g, b.Widen(in[i+2]), momentum)
			}
			step, state = buf, []ir.Value{buf}
			if flag&ir.Nesterov != 0 {
				step = axpy(b, g, buf, momentum)
			}
		}
		out = append(out, narrowed(b, in[i], append([]ir.Value{axpy(b, w, step, -rate)}, state...))...)
	}
	return out
}

// narrowed converts values to the dtype of like.
func narrowed(b ir.B, like ir.Value, values []ir.Value) []ir.Value {
	for i, v := range values {
		values[i] = b.Cast(v, like.Type().DType)
	}
	return values
}

// adamW is PyTorch's AdamW, or Adam with coupled weight decay.
func adamW(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	var out []ir.Value
	for i := 1; i < len(in); i += 4 {
		w, m, v := adamStep(b, op.Attr.Flag&ir.Coupled != 0, p, in[0], in[i:i+4])
		out = append(out, narrowed(b, in[i], []ir.Value{w, m, v})...)
	}
	return out
}

// adamStep moves one parameter (w, g, m, v).
func adamStep(b ir.B, coupled bool, p *ir.Params, scale ir.Value, in []ir.Value) (w, m, v ir.Value) {
	rate, beta1, beta2, eps, decay := param(p, 0), param(p, 1), param(p, 2), param(p, 3), param(p, 4)
	c1, c2 := param(p, 5), param(p, 6)
	w = b.Widen(in[0])
	before := 0.0
	if coupled {
		before = decay
	}
	g := scaled(b, in[1], scale, w, before)
	if !coupled {
		w = b.Scale(w, 1-rate*decay)
	}
	m = axpy(b, b.Scale(b.Widen(in[2]), beta1), g, 1-beta1)
	v = axpy(b, b.Scale(b.Widen(in[3]), beta2), b.Mul(g, g), 1-beta2)
	root := b.Affine(b.Unary(ir.Sqrt, v), 1/math.Sqrt(c2), eps)
	return axpy(b, w, b.Div(m, root), -rate/c1), m, v
}
