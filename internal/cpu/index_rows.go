package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareEmbedding, ir.Embedding)
	offer(prepareEmbeddingGrad, ir.EmbeddingGrad)
}

// embedding copies rows of a table, as bytes.
type embedding struct {
	op     ir.Op
	chunks *loop[indexCall]
	rows   int // of the table
	n      int // indices
	bytes  int // of a row
}

func prepareEmbedding(k *device.Kernel) (run, error) {
	w, idx := k.Op.In(0), k.Op.In(1)
	e := &embedding{op: k.Op, rows: w.Dim(0), n: idx.Size(), bytes: w.Dim(1) * w.DType.Size()}
	e.chunks = newLoop(e.span)
	return e.run, nil
}

func (e *embedding) run(args []device.Arg, _ *device.Params) error {
	c := e.chunks.run(e.n, max(1, 4*grainCheap/max(e.bytes, 1)), indexCall{args: args})
	if place, ok := c.bad.first(); ok {
		return outOfRange(e.op.In(1), values[int64](args[2], e.n), place, 0, e.rows)
	}
	return nil
}

func (e *embedding) span(c *indexCall, lo, hi int) {
	out, w, idx := values[byte](c.args[0], e.n*e.bytes), values[byte](c.args[1], e.rows*e.bytes), values[int64](c.args[2], e.n)
	for i := lo; i < hi; i++ {
		if v := uint64(idx[i]); v < uint64(e.rows) {
			copy(out[i*e.bytes:(i+1)*e.bytes], w[int(v)*e.bytes:])
		} else {
			c.bad.at(i)
		}
	}
}

// embeddingGrad sorts the indices by row, keeping their order, and then adds up each row of the table: rows are
// independent of each other, so that no two threads add to one.
type embeddingGrad[T number] struct {
	op     ir.Op
	chunks *loop[[]device.Arg]
	add    pass[T, T]
	sum    func(sums []float64, x []T, stride int, places []int64) // adds rows where they lie, if it is there
	g      source[T]
	out    sink[T]
	rows   int
	n      int
	width  int
}

// prepareEmbeddingGrad has no kernel for bool, which has no addition.
func prepareEmbeddingGrad(k *device.Kernel) (run, error) {
	switch dt := k.Out[0].DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		e := embeddingGradOf(k, add32)
		if direct(k.Op.In(0)) {
			e.sum = kernels.SumPlaces
		}
		return e.run, nil
	case dtype.F64:
		return embeddingGradOf(k, add[float64]).run, nil
	case dtype.I64:
		return embeddingGradOf(k, add[int64]).run, nil
	case dtype.I32:
		return embeddingGradOf(k, add[int32]).run, nil
	case dtype.U8:
		return embeddingGradOf(k, add[uint8]).run, nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

func embeddingGradOf[T number](k *device.Kernel, add pass[T, T]) *embeddingGrad[T] {
	w := k.Out[0]
	e := &embeddingGrad[T]{op: k.Op, add: add, g: sourceOf[T](k.Op.In(0)), out: sinkOf[T](w), rows: w.Dim(0), n: k.Op.In(1).Size(), width: w.Dim(1)}
	k.Workspace = 8 * int64(e.rows+1+e.n)
	e.chunks = newLoop(e.span)
	return e
}

// sorted views the workspace: the indices' places sorted by row, those of row v from ends[v] to ends[v+1].
func (e *embeddingGrad[T]) sorted(space device.Arg) (ends, places []int64) {
	all := values[int64](space, e.rows+1+e.n)
	return all[:e.rows+1], all[e.rows+1:]
}

func (e *embeddingGrad[T]) run(args []device.Arg, _ *device.Params) error {
	if place, ok := e.sort(args); !ok {
		return outOfRange(e.op.In(1), values[int64](args[2], e.n), place, 0, e.rows)
	}
	if work := (e.rows + e.n) * e.width; work > grainCheap {
		e.chunks.run(e.rows, max(1, grainCheap*e.rows/work), args)
	} else {
		e.span(&args, 0, e.rows)
	}
	return nil
}

// sort is a counting sort. It returns the place of the first index out of range, and false, if there is one.
func (e *embeddingGrad[T]) sort(args []device.Arg) (place int, ok bool) {
	idx := values[int64](args[2], e.n)
	ends, places := e.sorted(args[3])
	clear(ends)
	for i, v := range idx {
		if uint64(v) >= uint64(e.rows) {
			return i, false
		}
		ends[v]++
	}
	var first int64
	for v, n := range ends {
		ends[v] = first
		first += n
	}
	for i, v := range idx {
		places[ends[v]] = int64(i)
		ends[v]++
	}
	// Now ends[v] is where row v ends; moved by one it is where the next begins.
	copy(ends[1:], ends[:e.rows])
	ends[0] = 0
	return 0, true
}

// span adds up rows [lo, hi), a tile of columns at a time.
func (e *embeddingGrad[T]) span(a *[]device.Arg, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	args := *a
	ends, places := e.sorted(args[3])
	for row := lo; row < hi; row++ {
		for c := 0; c < e.width; c += tile {
			n := min(tile, e.width-c)
			dst := e.out.begin(args[0], row*e.width+c, slot[T](s, slotOut, n))
			e.addUp(dst, args[1], c, places[ends[row]:ends[row+1]], s)
			e.out.commit(args[0], row*e.width+c, dst, s)
		}
	}
}

// addUp adds columns c, c+1, … of the gradients at these places.
func (e *embeddingGrad[T]) addUp(dst []T, grad device.Arg, c int, places []int64, s *scratch) {
	if clear(dst); len(places) == 0 {
		return
	}
	if e.sum != nil {
		sums := slot[float64](s, slotC, len(dst))
		clear(sums)
		e.sum(sums, values[T](grad, e.n*e.width)[c:], e.width, places)
		convertAll(dst, sums)
		return
	}
	for _, p := range places {
		e.add(dst, dst, e.g.load(grad, int(p)*e.width+c, slot[T](s, slotX, len(dst)), s), 0, 0)
	}
}
