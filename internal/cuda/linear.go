package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() { offer(prepareLinear, ir.Linear) }

// prepareLinear plans act(x·wᵀ + bias): a product whose second operand is walked along its rows.
func prepareLinear(b *builder) error {
	w, y := b.op.In(1), b.outs[0]
	n, k := w.Dim(0), w.Dim(1)
	if y.Size() == 0 {
		return nil
	}
	p := &product{m: y.Size() / n, n: n, k: k, aRow: k, aCol: 1, bRow: 1, bCol: k, act: b.op.Attr.Act, c: b.out(0), a: b.in(0), b: b.in(1)}
	if b.op.NumIn() == 3 {
		p.biased, p.bias = true, b.in(2)
	}
	return p.plan(b, y.DType)
}
