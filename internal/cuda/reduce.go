package cuda

import (
	"math/bits"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareReduction("sum"), ir.Sum)
	offer(prepareReduction("prod"), ir.Prod)
	offer(prepareReduction("reduce_max"), ir.ReduceMax)
	offer(prepareReduction("reduce_min"), ir.ReduceMin)
	offer(prepareArg("arg_max"), ir.ArgMax)
	offer(prepareArg("arg_min"), ir.ArgMin)
}

func prepareReduction(name string) prepare {
	return func(b *builder) error {
		f, columns := newFold(b.op.In(0), b.op.Attr.Axes)
		b.reduce(name, f, columns)
		return nil
	}
}

func prepareArg(name string) prepare {
	return func(b *builder) error {
		f, columns := newFold(b.op.In(0), 1<<b.op.Attr.Axis)
		b.reduce(name, f, columns)
		return nil
	}
}

// fold is the kernels' Fold, and what else their launch depends on. How the work is cut follows from the sizes alone, so
// that a result has the same bits on every card.
type fold struct {
	results, n, partLen, parts, runs, lanes int64
	kept, places, reduced                   strided
}

// reduce plans a reduction of operand 0 into result 0.
func (b *builder) reduce(name string, f fold, columns bool) {
	dt := b.op.In(0).DType
	partial := ref{}
	if f.parts > 1 {
		partial = b.scratch(f.results * f.parts * accumulator)
	}
	b.foldInto(name, dt, b.out(0), partial, b.in(0), f, columns)
	if f.parts > 1 {
		lanes := min(powerOf2(int(f.parts)/2), 32)
		b.run(suffixed(name+"_parts", dt), [3]int{ceilDiv(int(f.results), foldThreads/lanes), 1, 1}, [3]int{foldThreads, 1, 1}, 0,
			pointer(b.out(0)), pointer(partial), i64(int(f.results)), i64(int(f.parts)), i32(lanes), blob(f.places))
	}
}

// accumulator is the most bytes that an accumulator of any fold takes.
const accumulator = 16

// foldInto plans the first stage of a reduction of x: results, or with several parts accumulators, those of a result
// side by side.
func (b *builder) foldInto(name string, dt dtype.DType, out, partial, x ref, f fold, columns bool) {
	if f.results == 0 {
		return
	}
	kernel, perBlock := "_rows", foldThreads/int(f.lanes)
	if columns {
		kernel, perBlock = "_columns", int(f.lanes)
	}
	grid := [3]int{ceilDiv(int(f.results), perBlock), int(f.parts), 1}
	b.run(suffixed(name+kernel, dt), grid, [3]int{foldThreads, 1, 1}, 0, pointer(out), pointer(partial), pointer(x), blob(f))
}

const (
	foldThreads = 256  // of a block
	foldBlocks  = 1024 // that work is cut into where a result each would make fewer
)

// powerOf2 is the least power of 2 that is not below n, and at least 1.
func powerOf2(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// newFold plans the reduction of dimensions of x. Columns tells that neighbouring results are nearer in memory than the
// elements of one.
func newFold(x *ir.Type, axes uint16) (f fold, columns bool) {
	f.results, f.n = 1, 1
	for d, size := range x.Shape() {
		if axes>>d&1 == 1 {
			f.n *= int64(size)
		} else {
			f.results *= int64(size)
		}
	}
	f.kept, f.places, f.reduced = splitDims(x, axes)
	f.parts, f.partLen, f.lanes = 1, max(f.n, 1), 1
	if f.results == 0 {
		return f, false // nothing is launched
	}
	size, k := f.kept.inner()
	_, r := f.reduced.inner()
	if size > 1 && k > 0 && (r == 0 || k < r) {
		f.cutColumns()
		return f, true
	}
	f.cutRows(x.DType.Size())
	return f, false
}

// splitDims sorts x's dimensions into kept and reduced, each by falling stride with expanded ones first, so that
// neighbours in memory are folded by neighbouring threads; places are where the kept ones are in the result.
func splitDims(x *ir.Type, axes uint16) (kept, places, reduced strided) {
	order, outStride := x.FoldOrder(axes)
	var sizes, strides, out, redSizes, redStrides []int
	for _, d := range order {
		if axes>>d&1 == 1 {
			redSizes, redStrides = append(redSizes, x.Dim(d)), append(redStrides, x.Strides()[d])
		} else {
			sizes, strides, out = append(sizes, x.Dim(d)), append(strides, x.Strides()[d]), append(out, outStride[d])
		}
	}
	return stridedOf(sizes, strides), stridedOf(sizes, out), stridedOf(redSizes, redStrides)
}

// cutRows chooses how many threads fold a result: few for short rows, a block for long ones, several blocks where there
// are few rows.
func (f *fold) cutRows(elemSize int) {
	steps := int(f.n) // loads of a thread that folds a result alone
	vector := 16 / elemSize
	if size, stride := f.reduced.inner(); stride == 1 && (f.reduced.rank == 1 || size%vector == 0) {
		f.runs = 1
		if f.reduced.multiplesOf(vector) {
			f.runs = 2
		}
		steps /= vector
	}
	f.lanes = int64(min(powerOf2(steps/4), 32))
	if steps < 1024 && (steps < 256 || f.results > 128) {
		return
	}
	f.lanes = foldThreads
	const perPart = 8 * foldThreads // steps
	f.cut(min(steps/perPart, ceilDiv(foldBlocks, max(int(f.results), 1))))
}

// cutColumns chooses how many results a block folds side by side: as many as a warp reads at once, more if there is
// little to fold, fewer if there are fewer.
func (f *fold) cutColumns() {
	width := 32
	if f.n < 32 {
		width = foldThreads / max(powerOf2(int(f.n)/8), 1)
	}
	width = min(width, powerOf2(int(f.results)))
	f.lanes = int64(width)
	height := foldThreads / width
	f.cut(min(int(f.n)/(16*height), foldBlocks/ceilDiv(int(f.results), width)))
}

// cut divides the elements of each result into parts, of a multiple of 16 elements so that vectors stay whole.
func (f *fold) cut(parts int) {
	if parts < 2 {
		return
	}
	f.partLen = int64((ceilDiv(int(f.n), parts) + 15) &^ 15)
	f.parts = int64(ceilDiv(int(f.n), int(f.partLen)))
}
