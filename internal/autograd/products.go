package autograd

import "github.com/warpline-ml/warpline/internal/ir"

func matMulLeft(b ir.B, c Call, g ir.Value) ir.Value {
	return rounded(b, c, b.Cast(g, c.Op().In(0).DType), b.Transpose(c.In(1)))
}

func matMulRight(b ir.B, c Call, g ir.Value) ir.Value {
	return rounded(b, c, b.Transpose(c.In(0)), b.Cast(g, c.Op().In(0).DType))
}

// rounded is a product of matrices in the precision of the call's.
func rounded(b ir.B, c Call, x, y ir.Value) ir.Value {
	return emit(b, ir.MatMul, ir.Attr{Precision: c.Op().Attr.Precision}, ir.Params{}, x, y)
}

// into is the op's attributes with operand i's type as the result type.
func into(c Call, i int) ir.Attr {
	a := c.Op().Attr
	a.Out = c.Op().In(i).AsDense()
	return a
}

// conv is the op's convolution, pooling or resampling, with no result type.
func conv(c Call) ir.Attr {
	a := c.Op().Attr
	a.Out = nil
	return a
}

func convInput(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2dGradInput, into(c, 0), ir.Params{}, g, c.In(1))
}

func convWeight(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2dGradWeight, into(c, 1), ir.Params{}, g, c.In(0))
}

func convBias(b ir.B, _ Call, g ir.Value) ir.Value { return b.Sum(g, 0b1101, false) }

// The three convolution ops are the partial derivatives of one trilinear form in (g, x, w): whichever two are operands,
// the third is the result, and gradients stay among the three.

func convGradInputG(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2d, conv(c), ir.Params{}, g, c.In(1))
}

func convGradInputW(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2dGradWeight, into(c, 1), ir.Params{}, c.In(0), g)
}

func convGradWeightG(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2d, conv(c), ir.Params{}, c.In(1), g)
}

func convGradWeightX(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Conv2dGradInput, into(c, 1), ir.Params{}, c.In(0), g)
}

func maxPoolGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.MaxPool2dGrad, into(c, 0), ir.Params{}, g, c.Out(1))
}

// maxPoolGradG takes g at the places from which the pooling took its results.
func maxPoolGradG(b ir.B, c Call, g ir.Value) ir.Value {
	s, p := g.Type().Shape(), c.Op().In(1).Shape()
	planes := b.Reshape(g, s[0], s[1], s[2]*s[3])
	places := b.Reshape(c.In(1), p[0], p[1], p[2]*p[3])
	return b.Reshape(b.Gather(planes, 2, places), p...)
}

func avgPoolGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.AvgPool2dGrad, into(c, 0), ir.Params{}, g)
}

func avgPoolGradG(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.AvgPool2d, conv(c), ir.Params{}, g)
}

func resampleGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.ResampleGrad, into(c, 0), ir.Params{}, g)
}

func resampleGradG(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Resample, conv(c), ir.Params{}, g)
}

// linearSave: the weight for the input and the input for the weight; ReLU is undone from the result, the other
// activations from the sums before them, which are a result or computed again.
func linearSave(op *ir.Op, want uint64) (s Saves) {
	switch {
	case op.Attr.Act == ir.ActReLU:
		s = needOut
	case op.Attr.Act == ir.NoAct:
	case op.Attr.Flag&ir.Before != 0:
		s = Saves{Out: 1 << 1}
	default:
		return Saves{In: 1<<op.NumIn() - 1}
	}
	if want&1 != 0 {
		s.In |= needY.In
	}
	if want>>1&1 != 0 {
		s.In |= needX.In
	}
	return s
}

func linearGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, c.Op().NumIn())
	g, bias := sumsGrad(b, c)
	if len(grads) == 3 && wants(c, 2) {
		if bias == nil {
			bias = emit(b, ir.BiasGrad, ir.Attr{DType: c.Op().In(2).DType}, ir.Params{}, g)
		}
		grads[2] = bias
	}
	if wants(c, 0) {
		grads[0] = b.Reshape(rounded(b, c, g, c.In(1)), c.Op().In(0).Shape()...)
	}
	if wants(c, 1) {
		attr := ir.Attr{Precision: c.Op().Attr.Precision}
		if w, ok := c.(Wider); ok && w.Wider(1) {
			attr.DType = ir.Wide(c.Op().In(1).DType)
		}
		grads[1] = emit(b, ir.MatMul, attr, ir.Params{}, b.Transpose(g), b.Rows(c.In(0)))
	}
	return grads
}

// sumsGrad is the gradient of a Linear's sums, before its activation, as rows, and where the same pass gives it that of
// the bias.
func sumsGrad(b ir.B, c Call) (sums, bias ir.Value) {
	act, direct := c.Op().Attr.Act, ir.Value(nil)
	if c.Op().Attr.Flag&ir.Before != 0 {
		direct = c.Grad(1)
	}
	switch g := c.Grad(0); {
	case g == nil:
		return b.Rows(direct), nil
	case act == ir.NoAct:
		sums = b.Rows(g)
	case c.Op().NumIn() == 3 && c.Want(2) && direct == nil:
		out := b.Emit(ir.BiasGrad, ir.Attr{Act: act, DType: c.Op().In(2).DType}, ir.Params{}, b.Rows(g), b.Rows(actOperand(b, c)))
		return out[1], out[0]
	default:
		sums = b.Rows(b.Binary(act.GradCode(), actOperand(b, c), g))
	}
	if direct != nil {
		sums = b.Add(sums, b.Rows(direct))
	}
	return sums, nil
}

// actOperand is what the gradient of a Linear's activation goes by.
func actOperand(b ir.B, c Call) ir.Value {
	switch {
	case c.Op().Attr.Act == ir.ActReLU:
		return c.Out(0)
	case c.Op().Attr.Flag&ir.Before != 0:
		return c.Out(1)
	}
	return product(b, c)
}

// biasGradSave is what the activation's gradient saves, with its operands in a BiasGrad's order.
func biasGradSave(op *ir.Op, want uint64) Saves {
	if op.NumIn() == 1 {
		return nothing
	}
	swap := func(bits uint64) uint64 { return bits&1<<1 | bits>>1&1 }
	return Saves{In: swap(slopeRules[op.Attr.Act].Save(op, swap(want)).In)}
}

// biasGradGrad: with s the gradient of the sums and d that of what is summed, u = d + s in every row reaches it, and passes
// the activation's gradient.
func biasGradGrad(b ir.B, c Call) []ir.Value {
	op, grads := c.Op(), make([]ir.Value, c.Op().NumIn())
	var u ir.Value
	if len(grads) == 2 {
		u = c.Grad(1)
	}
	if s := c.Grad(0); s != nil {
		s = b.Expand(b.Cast(s, op.In(0).DType), op.In(0).Shape())
		if u == nil {
			u = s
		} else {
			u = b.Add(u, s)
		}
	}
	if len(grads) == 1 {
		grads[0] = u
		return grads
	}
	slope := slopeCall{Call: c, op: ir.New(op.Attr.Act.GradCode(), ir.Attr{}, op.In(1), op.In(0)), u: u}
	both := slopeRules[op.Attr.Act].Grad(b, &slope)
	grads[0], grads[1] = both[1], both[0]
	return grads
}

// slopeRules are the rules of the activations' gradients.
var slopeRules = func() (list []*Rule) {
	for _, act := range ir.Acts() {
		list = append(list, written(act.GradCode()))
	}
	return list
}()

// slopeCall is a BiasGrad as a call of its activation's gradient (x, g), where its operands are (g, x).
type slopeCall struct {
	Call
	op ir.Op
	u  ir.Value
}

func (s *slopeCall) Op() *ir.Op        { return &s.op }
func (s *slopeCall) In(i int) ir.Value { return s.Call.In(1 - i) }
func (s *slopeCall) Grad(int) ir.Value { return s.u }
func (s *slopeCall) Want(i int) bool   { return s.Call.Want(1 - i) }

// product computes a Linear again without its activation.
func product(b ir.B, c Call) ir.Value {
	in := make([]ir.Value, c.Op().NumIn())
	for i := range in {
		in[i] = c.In(i)
	}
	return emit(b, ir.Linear, ir.Attr{Precision: c.Op().Attr.Precision}, ir.Params{}, in...)
}
