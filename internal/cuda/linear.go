package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareLinear, ir.Linear)
	offer(prepareBiasGrad, ir.BiasGrad)
}

// prepareLinear plans act(x·wᵀ + bias): a product whose second operand is walked along its rows.
func prepareLinear(b *builder) error {
	y := b.outs[0]
	x, a := b.factor(0)
	w, c := b.factor(1)
	n, k := w.Dim(0), w.Dim(1)
	if y.Size() == 0 {
		return nil
	}
	p := &product{m: y.Size() / n, n: n, k: k, aRow: k, aCol: 1, bRow: 1, bCol: k, c: b.out(0), a: a, b: c,
		wide: y.DType != x.DType, tf32: b.precision() == ir.High}
	p.end.act = b.op.Attr.Act
	if b.op.NumIn() == 3 {
		bias := b.in(2)
		p.end.bias, p.end.wideBias = &bias, b.op.In(2).DType != y.DType
	}
	if len(b.outs) == 2 {
		before := b.out(1)
		p.end.before = &before
	}
	return p.plan(b, x.DType)
}

// biasRows is the least number of rows of a part: of fewer, joining the parts takes longer than a part.
const biasRows = 128

// prepareBiasGrad plans the pass over the rows.
func prepareBiasGrad(b *builder) error {
	g, sum := b.op.In(0), b.outs[0]
	rows, n := g.Dim(0), g.Dim(1)
	if g.Size() == 0 {
		b.zero(b.out(0), sum.Bytes())
		return nil
	}
	wide := ir.Wide(g.DType)
	tiles := ceilDiv(n, columnTile)
	perRange, ranges := rangesOf(rows, tiles, biasRows)
	parts, isWide := b.scratch(int64(ranges)*int64(n)*int64(wide.Size())), i32(0)
	if sum.DType == wide {
		isWide = i32(1)
	}
	d, x := i64(0), i64(0)
	if b.op.NumIn() == 2 {
		d, x = pointer(b.out(1)), pointer(b.in(1))
	}
	b.run(suffixed("bias_grad", g.DType), [3]int{tiles, ranges, 1}, [3]int{256, 1, 1}, 0,
		pointer(b.out(0)), isWide, tickets(), pointer(parts), d, pointer(b.in(0)), x, i64(rows), i32(n), i64(perRange), i32(int(b.op.Attr.Act)))
	return b.err
}
