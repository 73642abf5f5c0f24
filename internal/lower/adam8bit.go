package lower

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// adam8bit decodes the moments, updates as AdamW does, and codes them again.
func adam8bit(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) (out []ir.Value) {
	unsigned, signed := b.Slice(in[1], 0, 0, ir.CodeValues, 1), b.Slice(in[1], 0, ir.CodeValues, ir.CodeValues, 1)
	for i := 2; i < len(in); i += ir.Adam8bitGroup {
		x := in[i : i+ir.Adam8bitGroup]
		if p.Value[6] != 0 {
			out = append(out, x[0], x[2], x[3], x[4], x[5])
			continue
		}
		wide := ir.Wide(x[0].Type().DType)
		w, m, v := adamStep(b, false, p, in[0], []ir.Value{x[0], x[1], decoded(b, x[2], x[4], signed, wide), decoded(b, x[3], x[5], unsigned, wide), x[6]})
		m8, mTop := coded(b, m, signed)
		v8, vTop := coded(b, v, unsigned)
		out = append(out, b.Cast(w, x[0].Type().DType), m8, v8, mTop, vTop)
	}
	return out
}

// inBlocks is x as rows of a block each, the last filled up with zeros.
func inBlocks(b ir.B, x ir.Value) ir.Value {
	n := x.Type().Size()
	if x = b.Reshape(x, n); n%ir.CodeBlock > 0 {
		x = b.Pad(x, 0, 0, ir.CodeBlock-n%ir.CodeBlock, 0, 0)
	}
	return b.Reshape(x, (n+ir.CodeBlock-1)/ir.CodeBlock, ir.CodeBlock)
}

// outOfBlocks is blocks as a tensor of a shape.
func outOfBlocks(b ir.B, x ir.Value, shape []int) ir.Value {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return b.Reshape(b.Slice(b.Reshape(x, x.Type().Size()), 0, 0, n, 1), shape...)
}

// decoded is what codes of a table stand for, times the largest of each block.
func decoded(b ir.B, codes, largest, table ir.Value, wide dtype.DType) ir.Value {
	at := b.Cast(inBlocks(b, codes), dtype.I64)
	n := at.Type().Size()
	x := b.Cast(b.Gather(table, 0, b.Reshape(at, n)), wide)
	x = b.Mul(b.Reshape(x, at.Type().Shape()...), b.Reshape(b.Cast(largest, wide), largest.Type().Size(), 1))
	return outOfBlocks(b, x, codes.Type().Shape())
}

// coded is the codes of a table nearest to x, by bisection, and the largest of each block.
func coded(b ir.B, x, table ir.Value) (codes, largest ir.Value) {
	blocks, wide := inBlocks(b, x), x.Type().DType
	n := blocks.Type().Dim(0)
	if n == 0 {
		return b.Cast(x, dtype.U8), b.Zeros(ir.Dense(dtype.F32, 0))
	}
	largest = b.Cast(b.Reduce(ir.ReduceMax, b.Unary(ir.Abs, blocks), 1<<1, false), dtype.F32)
	top := b.Reshape(b.Cast(largest, wide), n, 1)
	share := b.Where(b.Binary(ir.Eq, top, like(b, top, 0)), like(b, top, 0), b.Div(blocks, top))
	n *= ir.CodeBlock
	share = b.Reshape(share, n)
	middles := b.Cast(b.Scale(b.Add(b.Slice(table, 0, 0, ir.CodeValues-1, 1), b.Slice(table, 0, 1, ir.CodeValues-1, 1)), 0.5), wide)
	at := b.Zeros(ir.Dense(dtype.I64, n))
	for bit := ir.CodeValues / 2; bit > 0; bit /= 2 {
		probe := b.Affine(at, 1, float64(bit))
		above := b.Binary(ir.Le, b.Gather(middles, 0, b.Affine(probe, 1, -1)), share)
		at = b.Where(above, probe, at)
	}
	return b.Cast(outOfBlocks(b, at, x.Type().Shape()), dtype.U8), largest
}
