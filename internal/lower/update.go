package lower

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func sumSquares(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	return []ir.Value{squares(b, in)}
}

func castAll(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	out := make([]ir.Value, len(in))
	for i, x := range in {
		out[i] = b.Cast(x, op.Attr.DType)
	}
	return out
}

// trackMoments goes from the nearer of two values: x + (y-x) need not be y.
func trackMoments(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	towards := func(x, y ir.Value) ir.Value {
		f := param(p, 0)
		if f >= 0.5 {
			x, y, f = y, x, 1-f
		}
		return b.Emit(ir.Lerp, ir.Attr{}, ir.Scalars(f), x, y)[0]
	}
	return []ir.Value{towards(in[0], in[3]), towards(in[1], b.Scale(in[4], param(p, 1))), b.Affine(in[2], 1, 1)}
}

// squares widens each operand to f64 if one of them is, else f32, before it squares.
func squares(b ir.B, in []ir.Value) ir.Value {
	dt := dtype.F32
	for _, x := range in {
		if x.Type().DType == dtype.F64 {
			dt = dtype.F64
		}
	}
	total := b.Number(dt, 0)
	for _, x := range in {
		x = b.Cast(x, dt)
		total = b.Add(total, b.Sum(b.Mul(x, x), 1<<x.Type().Rank()-1, false))
	}
	return total
}

// finite is whether x is a number that is not infinite.
func finite(b ir.B, x ir.Value) ir.Value { return b.Binary(ir.Eq, b.Sub(x, x), like(b, x, 0)) }

func gradNorm(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	clip, factor, judge := param(p, 0), param(p, 1), p.Value[2] != 0
	norm := b.Scale(b.Unary(ir.Sqrt, squares(b, in[2:])), factor)
	scale := like(b, norm, factor)
	if clip > 0 {
		part := b.Div(like(b, norm, clip), b.Affine(norm, 1, 1e-6))
		scale = b.Scale(b.Binary(ir.Minimum, part, like(b, norm, 1)), factor)
	}
	counts := b.Add(in[0], in[1])
	if !judge {
		return []ir.Value{norm, scale, b.Number(dtype.I64, 0), counts}
	}
	skip := b.Unary(ir.Not, finite(b, norm))
	return []ir.Value{norm, scale, b.Cast(skip, dtype.I64), b.Where(skip, in[0], counts)}
}

// lossScale computes scales in f64 and rounds them to f32.
func lossScale(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	wide := b.Cast(in[0], dtype.F64)
	rounded := func(x ir.Value) ir.Value { return b.Cast(b.Cast(x, dtype.F32), dtype.F64) }
	inverse := func(x ir.Value) ir.Value { return rounded(b.Div(like(b, x, 1), x)) }
	usable := func(x ir.Value) ir.Value {
		return b.Binary(ir.And, b.Binary(ir.Lt, like(b, x, 0), x), b.Binary(ir.And, finite(b, x), finite(b, inverse(x))))
	}
	found := b.Binary(ir.Ne, like(b, wide, 0), like(b, wide, 0))
	for _, skip := range in[3:] {
		found = b.Binary(ir.Or, found, b.Binary(ir.Ne, skip, like(b, skip, 0)))
	}
	up, down := rounded(b.Scale(wide, param(p, 0))), rounded(b.Scale(wide, param(p, 1)))
	good := b.Affine(b.Binary(ir.Maximum, in[2], like(b, in[2], 0)), 1, 1)
	grown := b.Binary(ir.Le, like(b, good, float64(p.Value[2])), good)
	up = b.Where(b.Binary(ir.And, grown, usable(up)), up, wide)
	none := like(b, good, 0)
	scale := b.Where(found, b.Where(usable(down), down, wide), up)
	good = b.Where(found, b.Where(usable(down), none, like(b, good, -1)), b.Where(grown, none, good))
	return []ir.Value{b.Cast(scale, dtype.F32), inverse(scale), good}
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

// sgd is PyTorch's: buf = momentum·buf + g, w -= rate·buf, or g + momentum·buf for Nesterov.
func sgd(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	rate, momentum, decay, flag := param(p, 0)*param(p, 3), param(p, 1), param(p, 2), op.Attr.Flag
	group := 2
	if flag&ir.Momentum != 0 {
		group = 3
	}
	var out []ir.Value
	for i := 1; i < len(in); i += group {
		if p.Value[4] != 0 {
			out = append(append(out, in[i]), in[i+2:i+group]...)
			continue
		}
		w := b.Widen(in[i])
		g := scaled(b, in[i+1], in[0], w, decay)
		step := g
		var state []ir.Value
		if flag&ir.Momentum != 0 {
			buf := axpy(b, g, b.Widen(in[i+2]), momentum)
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
	for i := 1; i < len(in); i += 5 {
		if p.Value[6] != 0 {
			out = append(out, in[i], in[i+2], in[i+3])
			continue
		}
		w, m, v := adamStep(b, op.Attr.Flag&ir.Coupled != 0, p, in[0], in[i:i+5])
		out = append(out, narrowed(b, in[i], []ir.Value{w, m, v})...)
	}
	return out
}

// adamStep moves one parameter (w, g, m, v, t).
func adamStep(b ir.B, coupled bool, p *ir.Params, scale ir.Value, in []ir.Value) (w, m, v ir.Value) {
	rate, beta1, beta2, eps, decay := param(p, 0)*param(p, 5), param(p, 1), param(p, 2), param(p, 3), param(p, 4)
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
	t := b.Cast(in[4], dtype.F64)
	correct := func(beta float64) ir.Value { // 1 - βᵗ
		return b.Affine(b.Binary(ir.Pow, like(b, t, beta), t), -1, 1)
	}
	dt := w.Type().DType
	c1, c2 := b.Cast(correct(beta1), dt), b.Cast(b.Unary(ir.Sqrt, correct(beta2)), dt)
	root := b.Affine(b.Div(b.Unary(ir.Sqrt, v), c2), 1, eps)
	return axpy(b, w, b.Div(m, b.Mul(root, c1)), -rate), m, v
}
