package cpu

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// folder is a reduction's arithmetic: values of T into accumulators of A.
type folder[T, A number] struct {
	identity A
	row      func(acc A, x []T) A                       // folds x into acc
	column   func(acc []A, x []T, rows int, stride int) // folds x[r·stride+i] into acc[i] for each of the rows
	merge    func(acc, part []A)
	rows     func(acc []A, x []T, n, stride int) // is row(0, x[i·stride:][:n]) for each acc[i]; may be nil
}

const (
	reduceTile  = 256     // columns folded at a time,
	reduceWide  = 1024    // or where their rows are read in place: long pieces of rows suit the memory
	reduceRows  = 4       // rows brought together where they are not contiguous
	reduceBlock = 1 << 16 // elements of a part, where few results have many elements
	reduceUnits = 32      // results, or tiles of them, that are parallel enough
	reduceParts = 64      // at most
)

// reduction computes results (the kept dimensions) from elements (the reduced ones). Both are ordered by x's strides.
// If a reduced dimension is x's innermost, each result folds runs of memory; otherwise tiles of neighbouring results
// fold row after row. Long folds of few results are cut into parts that are merged in order. All cuts follow from the
// sizes.
type reduction[T, A number] struct {
	folder[T, A]
	chunks     *loop[[]device.Arg]
	results, n int // and the elements of each
	kept, red  layout
	x          reader[T]
	whole      bool // runs of x are read in place, whatever their length
	out        sink[T]
	even       bool // rows are runs of memory, at even distances
	columns    bool
	width      int // results of a unit of work
	units      int
	parts      int
	partLen    int
}

func reduced[T, A number](k *device.Kernel, f folder[T, A]) (run, error) {
	x := k.Op.In(0)
	r := &reduction[T, A]{folder: f}
	var places layout
	r.kept, places, r.red = splitDims(x, k.Op.Attr.Axes)
	r.results, r.n = k.Out[0].Size(), count(&r.red)
	if r.n == 0 { // nothing is read; the place of the first element must still exist
		r.red = layout{}
		atLeastOne(&r.red)
	}
	r.x = operandOf[T](x, layout{})
	r.out = operandOf[T](k.Out[0], places)
	r.columns = columnwise(&r.kept, &r.red)
	r.whole = !narrow(x) && (r.columns && last(&r.kept) == 1 || !r.columns && last(&r.red) == 1)
	r.even = r.rows != nil && r.n > 0 && r.whole && !r.columns && r.kept.rank == 1 && r.red.rank == 1 && last(&r.kept) >= 0
	r.cut()
	if r.parts > 1 {
		k.Workspace = int64(r.parts) * int64(r.results) * 8
	}
	r.chunks = newLoop(r.span)
	return r.run, nil
}

// last is the stride of the innermost dimension.
func last(l *layout) int { return l.stride[l.rank-1] }

func count(l *layout) int {
	n := 1
	for _, d := range l.size[:l.rank] {
		n *= d
	}
	return n
}

// columnwise reports whether neighbouring results are nearer in memory than the elements of one.
func columnwise(kept, red *layout) bool {
	k, r := last(kept), last(red)
	return k > 0 && (r == 0 || k < r) && kept.size[kept.rank-1] > 1
}

// cut divides the work.
func (r *reduction[T, A]) cut() {
	r.width, r.units = 1, r.results
	if r.columns {
		inner := r.kept.size[r.kept.rank-1]
		r.width = min(reduceTile, inner)
		if r.whole {
			r.width = min(reduceWide, inner)
		}
		r.units = r.results / inner * ((inner + r.width - 1) / r.width)
	}
	r.parts, r.partLen = 1, r.n
	if r.units > 0 && r.units < reduceUnits && r.n*r.width > reduceBlock {
		r.partLen = max(reduceBlock/r.width, (r.n+reduceParts-1)/reduceParts)
		r.parts = (r.n + r.partLen - 1) / r.partLen
	}
}

// splitDims sorts x's dimensions into kept and reduced, each by falling stride with expanded ones first; places are
// where the kept ones are in the row-major result.
func splitDims(x *ir.Type, axes uint16) (kept, places, red layout) {
	order, outStride := x.FoldOrder(axes)
	for _, d := range order {
		switch size, stride := x.Dim(d), x.Strides()[d]; {
		case size == 1:
		case axes>>d&1 == 1:
			red.append(size, stride)
		default:
			appendBoth(&kept, &places, size, stride, outStride[d])
		}
	}
	atLeastOne(&kept)
	atLeastOne(&places)
	atLeastOne(&red)
	places.dense = places.rank == 1 && places.stride[0] == 1
	return kept, places, red
}

// appendBoth adds an inner dimension to two layouts of the same sizes, merged only where both run on.
func appendBoth(a, b *layout, size, sa, sb int) {
	i := a.rank - 1
	if i < 0 || a.stride[i] != size*sa || b.stride[i] != size*sb {
		i++
		a.rank, b.rank = i+1, i+1
		a.size[i], b.size[i] = 1, 1
	}
	a.size[i] *= size
	b.size[i] *= size
	a.stride[i], b.stride[i] = sa, sb
}

// atLeastOne gives a layout of one element a dimension.
func atLeastOne(l *layout) {
	if l.rank == 0 {
		l.rank, l.size[0], l.stride[0] = 1, 1, 1
	}
}

func (r *reduction[T, A]) run(args []device.Arg, _ *device.Params) error {
	if r.results == 0 {
		return nil
	}
	steps := r.units * r.parts
	if work := r.results * max(r.n, 1); work > grainCheap {
		r.chunks.run(steps, max(1, grainCheap*steps/work), args)
	} else {
		r.span(&args, 0, steps)
	}
	if r.parts > 1 {
		r.join(args)
	}
	return nil
}

// span does units [lo, hi) of all parts, part by part.
func (r *reduction[T, A]) span(a *[]device.Arg, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	for lo < hi {
		part := lo / r.units
		unit := lo - part*r.units
		from, to := part*r.partLen, min((part+1)*r.partLen, r.n)
		if r.columns {
			first, n := r.tileOf(unit)
			acc := slot[A](s, slotC, n)
			r.foldColumns((*a)[1], acc, first, from, to, s)
			r.keep(*a, part, first, acc, s)
			lo++
			continue
		}
		acc := slot[A](s, slotC, min(tile, hi-lo, r.units-unit))
		r.foldRows((*a)[1], acc, unit, from, to, s)
		r.keep(*a, part, unit, acc, s)
		lo += len(acc)
	}
}

// tileOf returns the first result of a tile, and how many it has.
func (r *reduction[T, A]) tileOf(unit int) (first, n int) {
	inner := r.kept.size[r.kept.rank-1]
	perRow := (inner + r.width - 1) / r.width
	row := unit / perRow
	col := (unit - row*perRow) * r.width
	return row*inner + col, min(r.width, inner-col)
}

// foldRows folds elements [from, to) of len(acc) results.
func (r *reduction[T, A]) foldRows(x device.Arg, acc []A, first, from, to int, s *scratch) {
	at := r.kept.seek(first)
	if r.even {
		r.rows(acc, r.x.read(x, at.off+from, 1, (len(acc)-1)*last(&r.kept)+to-from, nil, s), to-from, last(&r.kept))
		return
	}
	d := r.red.rank - 1
	start := r.red.seek(from)
	for i := range acc {
		v := r.identity
		c := start
		for j := from; j < to; r.red.row(&c) {
			n := min(r.red.size[d]-c.at[d], to-j)
			v = r.foldRun(x, v, at.off+c.off, n, s)
			j += n
		}
		acc[i] = v
		r.kept.advance(&at, r.kept.rank-1)
	}
}

// foldRun folds n elements from an offset on.
func (r *reduction[T, A]) foldRun(x device.Arg, v A, off, n int, s *scratch) A {
	stride := last(&r.red)
	if r.whole {
		return r.row(v, r.x.read(x, off, 1, n, nil, s))
	}
	for n > 0 {
		m := min(n, tile)
		v = r.row(v, r.x.read(x, off, stride, m, slot[T](s, slotX, m), s))
		off, n = off+m*stride, n-m
	}
	return v
}

// foldColumns folds elements [from, to) of a tile of results.
func (r *reduction[T, A]) foldColumns(x device.Arg, acc []A, first, from, to int, s *scratch) {
	fill(acc, r.identity)
	at := r.kept.seek(first)
	d := r.red.rank - 1
	c := r.red.seek(from)
	for j := from; j < to; r.red.row(&c) {
		n := min(r.red.size[d]-c.at[d], to-j)
		r.foldBlock(x, acc, at.off+c.off, n, s)
		j += n
	}
}

// foldBlock folds rows from an offset on.
func (r *reduction[T, A]) foldBlock(x device.Arg, acc []A, off, rows int, s *scratch) {
	width, down, across := len(acc), last(&r.red), last(&r.kept)
	if r.whole {
		r.column(acc, r.x.read(x, off, 1, (rows-1)*down+width, nil, s), rows, down)
		return
	}
	buf := slot[T](s, slotX, reduceRows*width)
	for rows > 0 {
		n := min(rows, reduceRows)
		for i := range n {
			row := buf[i*width : (i+1)*width]
			copy(row, r.x.read(x, off+i*down, across, width, row, s))
		}
		r.column(acc, buf, n, width)
		off, rows = off+n*down, rows-n
	}
}

// keep stores the accumulators of results first, first+1, …: as results, or for join.
func (r *reduction[T, A]) keep(args []device.Arg, part, first int, acc []A, s *scratch) {
	if r.parts > 1 {
		copy(values[A](args[2], r.parts*r.results)[part*r.results+first:], acc)
		return
	}
	v := r.out.begin(args[0], first, slot[T](s, slotOut, len(acc)))
	convertAll(v, acc)
	r.out.commit(args[0], first, v, s)
}

func convertAll[T, A number](dst []T, acc []A) {
	for i, a := range acc {
		dst[i] = T(a)
	}
}

// join merges the parts of all results in order.
func (r *reduction[T, A]) join(args []device.Arg) {
	s := borrow()
	defer s.giveBack()
	acc := values[A](args[2], r.parts*r.results)
	for lo := 0; lo < r.results; lo += tile {
		v := r.out.begin(args[0], lo, slot[T](s, slotOut, min(tile, r.results-lo)))
		sum := acc[lo:][:len(v)]
		for p := 1; p < r.parts; p++ {
			r.merge(sum, acc[p*r.results+lo:][:len(v)])
		}
		convertAll(v, sum)
		r.out.commit(args[0], lo, v, s)
	}
}
