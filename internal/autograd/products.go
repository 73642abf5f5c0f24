package autograd

import "github.com/warpline-ml/warpline/internal/ir"

func matMulLeft(b ir.B, c Call, g ir.Value) ir.Value { return b.MatMul(g, b.Transpose(c.In(1))) }

func matMulRight(b ir.B, c Call, g ir.Value) ir.Value { return b.MatMul(b.Transpose(c.In(0)), g) }

// into is the op's attributes with operand i's type as the result type.
func into(c Call, i int) ir.Attr {
	a := c.Op().Attr
	a.Out = c.Op().In(i).AsDense()
	return a
}

// conv is the op's convolution or pooling, with no result type.
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

// linearSave: the weight for the input and the input for the weight; ReLU is undone from the result, the other
// activations from the value before them, computed again.
func linearSave(op *ir.Op, want uint64) (s Saves) {
	switch op.Attr.Act {
	case ir.ActGELU, ir.ActGELUTanh:
		return Saves{In: 1<<op.NumIn() - 1}
	case ir.ActReLU:
		s = needOut
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
	g := b.Rows(beforeAct(b, c))
	grads := make([]ir.Value, c.Op().NumIn())
	if wants(c, 0) {
		grads[0] = b.Reshape(b.MatMul(g, c.In(1)), c.Op().In(0).Shape()...)
	}
	if wants(c, 1) {
		grads[1] = b.MatMul(b.Transpose(g), b.Rows(c.In(0)))
	}
	if len(grads) == 3 && wants(c, 2) {
		grads[2] = b.Sum(g, 1<<0, false)
	}
	return grads
}

// beforeAct is the gradient of a Linear's product, before its activation.
func beforeAct(b ir.B, c Call) ir.Value {
	g := c.Grad(0)
	switch c.Op().Attr.Act {
	case ir.ActReLU:
		return b.Binary(ir.ReLUGrad, c.Out(0), g)
	case ir.ActGELU:
		return geluGrad(b, g, product(b, c))
	case ir.ActGELUTanh:
		return geluTanhGrad(b, g, product(b, c))
	}
	return g
}

// product computes a Linear again without its activation.
func product(b ir.B, c Call) ir.Value {
	in := make([]ir.Value, c.Op().NumIn())
	for i := range in {
		in[i] = c.In(i)
	}
	return emit(b, ir.Linear, ir.Attr{}, ir.Params{}, in...)
}
