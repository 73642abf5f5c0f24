package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareLayerNorm, ir.LayerNorm)
	offer(prepareAddNorm, ir.AddNorm)
	offer(prepareAddNormGrad, ir.AddNormGrad)
	offer(prepareRMSNorm, ir.RMSNorm)
	offer(prepareLayerNormGrad, ir.LayerNormGrad)
	offer(prepareRMSNormGrad, ir.RMSNormGrad)
}

// optional is the address of operand i, or null.
func (b *builder) optional(i int) param {
	if i < b.op.NumIn() {
		return pointer(b.in(i))
	}
	return i64(0)
}

func prepareLayerNorm(b *builder) error {
	return b.layerNorm(b.op.In(0).DType.String(), i64(0), i64(0))
}

// layerNorm plans the norm of x, or of x+f, which then goes to sum.
func (b *builder) layerNorm(types string, f, sum param) error {
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	return b.overRowsOf("layernorm", types, rows, d, pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)), pointer(b.in(0)),
		b.optional(1), b.optional(2), i64(rows), i32(d), scalar(0, x.DType), f, sum)
}

// beside names the kernels for rows of x with others of a type beside them.
func beside(x *ir.Type, low dtype.DType) string {
	if low == x.DType {
		return low.String()
	}
	return x.DType.String() + "_" + low.String()
}

func prepareAddNorm(b *builder) error {
	x, low := b.op.In(0), b.outs[0].DType
	if b.op.NumIn() == 3 {
		return b.layerNorm(beside(x, low), i64(0), i64(0))
	}
	if f := b.op.In(3).DType; f != low || x.DType == dtype.F64 {
		return b.unsupported(f)
	}
	return b.layerNorm(beside(x, low), pointer(b.in(3)), pointer(b.out(3)))
}

func prepareAddNormGrad(b *builder) error {
	x, g := b.op.In(0), b.op.In(1)
	low := i64(0)
	if len(b.outs) == 4 {
		if dt := b.outs[3].DType; dt != g.DType || dt == x.DType {
			return b.unsupported(dt)
		}
		low = pointer(b.out(3))
	}
	if x.DType == dtype.F64 && b.op.NumIn() == 6 {
		return b.unsupported(x.DType)
	}
	return b.normGrad("layernormgrad", beside(x, g.DType), b.optional(4), []param{b.optional(5), low}, []param{pointer(b.out(2))}, pointer(b.in(2)), pointer(b.in(3)))
}

func prepareRMSNorm(b *builder) error {
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	return b.overRows("rmsnorm", x.DType, rows, d, pointer(b.out(0)), pointer(b.out(1)), pointer(b.in(0)), b.optional(1),
		i64(rows), i32(d), scalar(0, x.DType))
}

func prepareLayerNormGrad(b *builder) error {
	return b.normGrad("layernormgrad", b.op.In(1).DType.String(), b.optional(4), []param{i64(0), i64(0)}, []param{pointer(b.out(2))}, pointer(b.in(2)), pointer(b.in(3)))
}

func prepareRMSNormGrad(b *builder) error {
	return b.normGrad("rmsnormgrad", b.op.In(1).DType.String(), b.optional(3), nil, nil, pointer(b.in(2)))
}

// normGrad plans the gradient of the rows, with weight w and more parameters at the end, and those of weight and bias, db
// where there is one, by kernels for the types. Sums over no rows are 0.
func (b *builder) normGrad(kernel, types string, w param, more, db []param, stats ...param) error {
	x, at, g := b.op.In(1), b.in(1), b.in(0)
	if b.op.Code == ir.AddNormGrad {
		x, at, g = b.op.In(0), b.in(0), b.in(1)
	}
	rows, d := x.Dim(0), x.Dim(1)
	from := append([]param{pointer(g), pointer(at)}, stats...)
	params := append([]param{pointer(b.out(0))}, from...)
	if err := b.overRowsOf(kernel, types, rows, d, append(append(params, w, i64(rows), i32(d)), more...)...); err != nil {
		return err
	}
	if rows*d == 0 {
		for i := 1; i < min(len(b.outs), 3); i++ {
			b.zero(b.out(i), int64(d*x.DType.Size()))
		}
		return nil
	}
	tiles := ceilDiv(d, columnTile)
	perRange, ranges := rangesOf(rows, tiles, columnRows)
	to := append([]param{pointer(b.out(1))}, db...)
	to = append(to, tickets(), pointer(b.scratch(int64(ranges)*int64(2*d)*int64(ir.Wide(x.DType).Size()))))
	b.run(kernel+"_columns_"+types, [3]int{tiles, ranges, 1}, [3]int{256, 1, 1}, 0, append(append(to, from...), i64(rows), i32(d), i64(perRange))...)
	return nil
}

// The sums over columns take columnTile columns to a block, and ranges of at least columnRows rows.
const (
	columnTile = 128
	columnRows = 32
)

// enoughBlocks is how many blocks a sum is cut into, if it is long: a few for each multiprocessor of any card.
const enoughBlocks = 512

// rangesOf cuts n terms, summed by tiles blocks side by side, into ranges of at least least terms: several where there are
// maxTickets tiles at most. It depends on the sizes only, and so do the roundings.
func rangesOf(n, tiles, least int) (perRange, ranges int) {
	ranges = max(1, min(ceilDiv(n, least), enoughBlocks/max(tiles, 1)))
	perRange = max(1, ceilDiv(n, ranges))
	return perRange, ceilDiv(n, perRange)
}
