package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() { offer(prepareCumSum, ir.CumSum) }

// scanLines is the kernels' Lines.
type scanLines struct{ lines, n, inner, partLen, parts int64 }

// Contiguous lines are scanned by warps up to warpScan elements, by blocks beyond.
const (
	warpScan = 1024
	// The fewest elements of a part.
	scanRowPart    = 4096
	scanColumnPart = 64
)

func prepareCumSum(b *builder) error {
	b.cumSum(b.out(0), b.in(0), b.op.In(0), b.op.Attr.Axis)
	return nil
}

// cumSum plans the running sums of a row-major operand: one launch, or where lines are long and few, three, for the sums
// of parts, what comes before each part, and the parts.
func (b *builder) cumSum(out, x ref, t *ir.Type, axis int8) {
	v := splitAt(t, axis)
	s := scanLines{lines: int64(v.outer * v.inner), n: int64(v.n), inner: int64(v.inner), partLen: int64(v.n), parts: 1}
	if t.Size() == 0 {
		return
	}
	kernel, blocks, least := "scan_columns", ceilDiv(int(s.lines), 256), scanColumnPart
	switch {
	case v.inner > 1:
	case v.n > warpScan:
		kernel, blocks, least = "scan_long_rows", int(s.lines), scanRowPart
	default:
		kernel, blocks, least = "scan_rows", ceilDiv(int(s.lines), 8), scanRowPart
	}
	partial := ref{}
	if parts := min(v.n/least, foldBlocks/blocks); parts > 1 {
		s.partLen = int64((ceilDiv(v.n, parts) + 15) &^ 15)
		s.parts = int64(ceilDiv(v.n, int(s.partLen)))
		partial = b.before(x, t, axis, s)
	}
	b.run(suffixed(kernel, t.DType), [3]int{blocks, int(s.parts), 1}, [3]int{256, 1, 1}, 0, pointer(out), pointer(x), pointer(partial), blob(s))
}

// before plans the sums of the elements of each line before each part.
func (b *builder) before(x ref, t *ir.Type, axis int8, s scanLines) ref {
	partial := b.scratch(s.lines * s.parts * accumulator)
	f, columns := newFold(t, 1<<axis)
	f.partLen, f.parts = s.partLen, s.parts
	b.foldInto("sum", t.DType, partial, partial, x, f, columns)
	b.run(suffixed("scan_parts", t.DType), [3]int{ceilDiv(int(s.lines), 8), 1, 1}, [3]int{256, 1, 1}, 0, pointer(partial), i64(int(s.lines)), i64(int(s.parts)))
	return partial
}
