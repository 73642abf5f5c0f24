package autograd

import "github.com/warpline-ml/warpline/internal/ir"

// addNormSave: what is normalised, x or x+f, and its statistics, and for it the weight.
func addNormSave(op *ir.Op, want uint64) (s Saves) {
	if want&^0b100 == 0 {
		return nothing
	}
	s = Saves{In: needXY.In, Out: 0b0110}
	if op.NumIn() == 4 {
		s = Saves{In: needY.In, Out: 0b1110}
	}
	return s
}

// summedCall is an AddNorm as a LayerNorm of what it normalises.
type summedCall struct{ Call }

func (c summedCall) In(i int) ir.Value {
	if i == 0 && c.Op().NumIn() == 4 {
		return c.Out(3)
	}
	return c.Call.In(i)
}

// addNormGrad: what reaches x+f reaches both, f in its own dtype.
func addNormGrad(b ir.B, c Call) []ir.Value {
	op, sum := c.Op(), summedCall{c}
	grads := make([]ir.Value, op.NumIn())
	var dx, low ir.Value
	added := len(grads) == 4
	if added {
		dx = c.Grad(3)
	}
	if g := c.Grad(0); g != nil && !c.Want(0) && !c.Want(1) && !(added && c.Want(3)) {
		grads[2] = emit(b, ir.BiasGrad, ir.Attr{DType: op.In(2).DType}, ir.Params{}, g)
		return grads
	} else if g != nil {
		in, attr := []ir.Value{sum.In(0), g, c.Out(1), c.Out(2), c.In(1)}, ir.Attr{}
		if dx != nil {
			in = append(in, dx)
		}
		if added && wants(c, 3) && op.In(3).DType != op.In(0).DType {
			attr.DType = op.In(3).DType
		}
		out := b.Emit(ir.AddNormGrad, attr, ir.Params{}, in...)
		wanted(c, grads, out[:3])
		if dx = out[0]; attr.DType != 0 {
			low = out[3]
		}
	}
	if stats := rowStatsGrad(b, sum, 2); stats != nil {
		dx, low = plus(b, dx, stats), nil
	}
	if wants(c, 0) {
		grads[0] = dx
	}
	if added && wants(c, 3) && dx != nil {
		if low == nil {
			low = b.Cast(dx, op.In(3).DType)
		}
		grads[3] = low
	}
	return grads
}

// addNormTwiceSave is LayerNormGrad's; what was added to dx is not needed.
func addNormTwiceSave(op *ir.Op, want uint64) Saves {
	const norm = 1<<5 - 1
	if want&norm == 0 {
		return nothing
	}
	return Saves{In: swapped(layerNormTwiceSave(op, swapped(want&norm)).In & norm)}
}

// swapped exchanges the first two operands of a set, which LayerNormGrad has in the other order.
func swapped(set uint64) uint64 { return set&^0b11 | set&1<<1 | set>>1&1 }

// addNormTwice: what reaches dx + h, in either form, reaches dx and h.
func addNormTwice(b ir.B, c Call) []ir.Value {
	op := c.Op()
	norm := normCall{Call: c, b: b, op: ir.New(ir.LayerNormGrad, ir.Attr{}, op.In(1).As(op.In(0).DType), op.In(0), op.In(2), op.In(3), op.In(4)), dx: c.Grad(0)}
	if op.Attr.DType != 0 {
		if low := c.Grad(3); low != nil {
			norm.dx = plus(b, norm.dx, b.Cast(low, op.In(0).DType))
		}
	}
	grads := make([]ir.Value, op.NumIn())
	if len(grads) == 6 && c.Want(5) {
		grads[5] = norm.dx
	}
	for i := range 5 {
		if wants(c, i) {
			copy(grads, layerNormTwice(b, &norm))
			break
		}
	}
	grads[0], grads[1] = grads[1], grads[0]
	if grads[1] != nil {
		grads[1] = b.Cast(grads[1], op.In(1).DType)
	}
	return grads
}

// normCall is an AddNormGrad as the LayerNormGrad that it has in it.
type normCall struct {
	Call
	b  ir.B
	op ir.Op
	dx ir.Value
}

func (c *normCall) Op() *ir.Op { return &c.op }

func (c *normCall) In(i int) ir.Value {
	switch i {
	case 0:
		return c.b.Cast(c.Call.In(1), c.op.In(0).DType)
	case 1:
		return c.Call.In(0)
	}
	return c.Call.In(i)
}

func (c *normCall) Want(i int) bool {
	if i < 2 {
		i = 1 - i
	}
	return c.Call.Want(i)
}

func (c *normCall) Grad(i int) ir.Value {
	if i == 0 {
		return c.dx
	}
	return c.Call.Grad(i)
}
