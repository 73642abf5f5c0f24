package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareLayerNorm, ir.LayerNorm)
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
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	return b.overRows("layernorm", x.DType, rows, d, pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)), pointer(b.in(0)),
		b.optional(1), b.optional(2), i64(rows), i32(d), scalar(0, x.DType))
}

func prepareRMSNorm(b *builder) error {
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	return b.overRows("rmsnorm", x.DType, rows, d, pointer(b.out(0)), pointer(b.out(1)), pointer(b.in(0)), b.optional(1),
		i64(rows), i32(d), scalar(0, x.DType))
}

func prepareLayerNormGrad(b *builder) error {
	return b.normGrad("layernormgrad", b.optional(4), []param{pointer(b.out(2))}, pointer(b.in(2)), pointer(b.in(3)))
}

func prepareRMSNormGrad(b *builder) error {
	return b.normGrad("rmsnormgrad", b.optional(3), nil, pointer(b.in(2)))
}

// normGrad plans the gradient of the rows, with weight w, and those of weight and bias, db where there is one. Sums over no rows are 0.
func (b *builder) normGrad(kernel string, w param, db []param, stats ...param) error {
	x := b.op.In(1)
	rows, d := x.Dim(0), x.Dim(1)
	from := append([]param{pointer(b.in(0)), pointer(b.in(1))}, stats...)
	params := append([]param{pointer(b.out(0))}, from...)
	if err := b.overRows(kernel, x.DType, rows, d, append(params, w, i64(rows), i32(d))...); err != nil {
		return err
	}
	if rows*d == 0 {
		for i := 1; i < len(b.outs); i++ {
			b.zero(b.out(i), int64(d*x.DType.Size()))
		}
		return nil
	}
	tiles := ceilDiv(d, columnTile)
	perRange, ranges := rangesOf(rows, tiles, columnRows)
	parts := b.scratch(int64(ranges) * int64(2*d) * int64(ir.Wide(x.DType).Size()))
	params = append([]param{pointer(parts)}, from...)
	b.run(suffixed(kernel+"_columns", x.DType), [3]int{tiles, ranges, 1}, [3]int{256, 1, 1}, 0, append(params, i64(rows), i32(d), i64(perRange))...)
	to := append([]param{pointer(b.out(1))}, db...)
	b.run(suffixed(kernel+"_join", x.DType), [3]int{(d + 255) / 256, 1, 1}, [3]int{256, 1, 1}, 0, append(to, pointer(parts), i32(ranges), i32(d))...)
	return nil
}

// The sums over columns take columnTile columns to a block, and ranges of at least columnRows rows.
const (
	columnTile = 128
	columnRows = 32
)

// enoughBlocks is how many blocks a sum is cut into, if it is long: a few for each multiprocessor of any card.
const enoughBlocks = 512

// rangesOf cuts n terms, summed by tiles blocks side by side, into ranges of at least least terms. It depends on the sizes
// only, and so do the roundings.
func rangesOf(n, tiles, least int) (perRange, ranges int) {
	ranges = max(1, min(ceilDiv(n, least), enoughBlocks/max(tiles, 1)))
	perRange = max(1, ceilDiv(n, ranges))
	return perRange, ceilDiv(n, perRange)
}
