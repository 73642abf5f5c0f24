package autograd

import "github.com/warpline-ml/warpline/internal/ir"

// kept gives v, a result of a reduction, the dimensions of size 1 that the reduction dropped, so that it broadcasts
// against the operand.
func kept(b ir.B, c Call, v ir.Value) ir.Value {
	shape := make([]int, c.Op().In(0).Rank())
	for i, d := range c.Op().In(0).Shape() {
		shape[i] = d
		if c.Op().Attr.Axes>>i&1 == 1 {
			shape[i] = 1
		}
	}
	return b.Reshape(v, shape...)
}

func sumGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Expand(kept(b, c, g), c.Op().In(0).Shape())
}

// extremeGrad shares g equally among the elements equal to the extreme. Of a NaN nothing is equal, and all get NaN.
func extremeGrad(b ir.B, c Call, g ir.Value) ir.Value {
	dt := g.Type().DType
	tie := b.Binary(ir.Eq, c.In(0), kept(b, c, c.Out(0)))
	count := b.Sum(b.Cast(tie, ir.Wide(dt)), c.Op().Attr.Axes, true)
	share := b.Div(b.Mask(tie, b.Widen(kept(b, c, g))), count)
	return b.Cast(share, dt)
}

// cumSumGrad sums g from each place to the end: total - sum up to it + g.
func cumSumGrad(b ir.B, c Call, g ir.Value) ir.Value {
	axis := c.Op().Attr.Axis
	w := b.Widen(g)
	upTo := emit(b, ir.CumSum, ir.Attr{Axis: axis}, ir.Params{}, w)
	from := b.Add(b.Sub(b.Sum(w, 1<<axis, true), upTo), w)
	return b.Cast(from, g.Type().DType)
}

// prodGrad multiplies g by the product of all other elements, computed without division so that zeros do no harm.
func prodGrad(b ir.B, c Call, g ir.Value) ir.Value {
	t := c.Op().In(0)
	if t.Size() == 0 {
		return b.Zeros(t)
	}
	order, back, n := reducedLast(c.Op())
	moved := b.Permute(b.Widen(c.In(0)), order...)
	rows := b.Reshape(moved, t.Size()/n, n)
	others := b.Mul(scan(b, shift(b, rows, 1), 1), scan(b, shift(b, rows, -1), -1))
	others = b.Permute(b.Reshape(others, moved.Type().Shape()...), back...)
	return b.Cast(b.Mul(b.Widen(kept(b, c, g)), others), t.DType)
}

// reducedLast is the permutation that puts reduced dimensions last, its inverse, and the number of elements that are
// reduced to one.
func reducedLast(op *ir.Op) (order, back []int, n int) {
	t := op.In(0)
	for _, reduced := range [...]uint16{0, 1} {
		for i := range t.Rank() {
			if op.Attr.Axes>>i&1 == reduced {
				order = append(order, i)
			}
		}
	}
	back = make([]int, len(order))
	n = 1
	for i, d := range order {
		back[d] = i
		if op.Attr.Axes>>d&1 == 1 {
			n *= t.Dim(d)
		}
	}
	return order, back, n
}

// shift moves the elements of rows by k places, towards the end for k > 0, and puts 1 in the free places.
func shift(b ir.B, rows ir.Value, k int) ir.Value {
	n := rows.Type().Dim(1)
	if k < 0 {
		return b.Pad(b.Slice(rows, 1, -k, n+k, 1), 1, 0, -k, 0, 1)
	}
	return b.Pad(b.Slice(rows, 1, 0, n-k, 1), 1, k, 0, 0, 1)
}

// scan is the running product along rows in log₂ n steps: from the start for dir 1, from the end for dir -1.
func scan(b ir.B, rows ir.Value, dir int) ir.Value {
	for k := 1; k < rows.Type().Dim(1); k *= 2 {
		rows = b.Mul(rows, shift(b, rows, dir*k))
	}
	return rows
}
