package autograd

import "github.com/warpline-ml/warpline/internal/ir"

func reshapeGrad(b ir.B, c Call, g ir.Value) ir.Value { return b.Reshape(g, c.Op().In(0).Shape()...) }

func permuteGrad(b ir.B, c Call, g ir.Value) ir.Value {
	dims := make([]int, c.Op().In(0).Rank())
	for i := range dims {
		dims[c.Op().Attr.Dims[i]] = i
	}
	return b.Permute(g, dims...)
}

func expandGrad(b ir.B, c Call, g ir.Value) ir.Value { return b.SumTo(g, c.Op().In(0).Shape()) }

func sliceGrad(b ir.B, c Call, g ir.Value) ir.Value {
	a := &c.Op().Attr
	axis, start, n, step := int(a.Axis), int(a.Dims[0]), int(a.Dims[1]), int(a.Dims[2])
	size := c.Op().In(0).Dim(axis)
	if n == 0 {
		return b.Zeros(c.Op().In(0))
	}
	return b.Pad(g, axis, start, size-(start+(n-1)*step+1), step-1, 0)
}

func castGrad(b ir.B, c Call, g ir.Value) ir.Value {
	if !c.Op().Attr.DType.IsFloat() {
		return nil
	}
	return b.Cast(g, c.Op().In(0).DType)
}

func padGrad(b ir.B, c Call, g ir.Value) ir.Value {
	a := &c.Op().Attr
	axis := int(a.Axis)
	return b.Slice(g, axis, int(a.Dims[0]), c.Op().In(0).Dim(axis), int(a.Dims[2])+1)
}

func saveNothing(*ir.Op, uint64) Saves { return nothing }

func catGrad(b ir.B, c Call) []ir.Value {
	op := c.Op()
	axis, start := int(op.Attr.Axis), 0
	grads := make([]ir.Value, op.NumIn())
	for i, t := range op.Ins() {
		n := t.Dim(axis)
		if wants(c, i) {
			grads[i] = b.Slice(c.Grad(0), axis, start, n, 1)
		}
		start += n
	}
	return grads
}

// sortGrad puts g where its elements came from.
func sortGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.ScatterAdd, ir.Attr{Axis: c.Op().Attr.Axis}, ir.Params{}, b.Zeros(c.Op().In(0)), c.Out(1), g)
}

func gatherGrad(b ir.B, c Call, g ir.Value) ir.Value {
	zeros := b.Zeros(c.Op().In(0))
	return emit(b, ir.ScatterAdd, ir.Attr{Axis: c.Op().Attr.Axis}, ir.Params{}, zeros, c.In(1), g)
}

func scatterSource(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Gather(g, int(c.Op().Attr.Axis), c.In(1))
}

func embeddingGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.EmbeddingGrad, ir.Attr{Out: c.Op().In(0).AsDense()}, ir.Params{}, g, c.In(1))
}

func embeddingGradG(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.Embedding, ir.Attr{}, ir.Params{}, g, c.In(1))
}
