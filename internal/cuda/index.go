package cuda

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareGather, ir.Gather)
	offer(prepareEmbedding, ir.Embedding)
	offer(prepareScatterAdd, ir.ScatterAdd)
	offer(prepareEmbeddingGrad, ir.EmbeddingGrad)
}

// indexed is how indices name elements of x along the axis: step is the distance of neighbours there, start where each
// index would find index 0.
type indexed struct {
	size, step int
	start      strided
}

func indexedBy(x, idx *ir.Type, axis int8) indexed {
	steps := append([]int(nil), x.AsDense().Strides()...)
	v := indexed{size: x.Dim(int(axis)), step: steps[axis]}
	steps[axis] = 0
	v.start = stridedOf(idx.Shape(), steps)
	return v
}

func prepareGather(b *builder) error {
	x, idx := b.op.In(0), b.op.In(1)
	v := indexedBy(x, idx, b.op.Attr.Axis)
	b.linear(bitwise("gather", x.DType), idx.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)),
		i64(idx.Size()), i64(v.size), i64(v.step), blob(v.start), fault(), serial())
	return nil
}

// tableRows is the kernels' Rows. vectors.by is 0 where rows are no multiple of 16 bytes.
type tableRows struct {
	n, size        int64
	width, vectors divisor64
}

func prepareEmbedding(b *builder) error {
	w, n := b.op.In(0), b.op.In(1).Size()
	width, vector := w.Dim(1), 16/w.DType.Size()
	r := tableRows{n: int64(n), size: int64(w.Dim(0)), width: divideBy(width)}
	items := n * width
	if width%vector == 0 {
		r.vectors = divideBy(width / vector)
		items /= vector
	}
	b.linear(bitwise("embedding", w.DType), items, 256, pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), blob(r), fault(), serial())
	return nil
}

// The indices of ScatterAdd are taken line by line where lines are short or many, else sorted.
const (
	shortLine = 64
	manyLines = 1 << 14
)

func prepareScatterAdd(b *builder) error {
	x, idx := b.op.In(0), b.op.In(1)
	if x.DType == dtype.Bool { // which has no addition
		return b.unsupported(x.DType)
	}
	if x.Size() > 0 {
		b.copyAll(b.out(0), b.in(0), x)
	}
	v, line := indexedBy(x, idx, b.op.Attr.Axis), splitAt(idx, b.op.Attr.Axis)
	lines := line.outer * line.inner
	narrow := x.DType.Size() == 2 // what is added is rounded once, at the end
	switch {
	case idx.Size() == 0:
	case line.n == 1, x.Size() == 0, !narrow && (line.n <= shortLine || lines >= manyLines): // of nothing, any index is told to be wrong
		b.run(suffixed("scatter_lines", x.DType), [3]int{ceilDiv(lines, 256), 1, 1}, [3]int{256, 1, 1}, 0,
			pointer(b.out(0)), pointer(b.in(1)), pointer(b.in(2)), i64(lines), i64(line.n), blob(divideBy(line.inner)),
			i64(v.size), i64(v.step), blob(v.start), fault(), serial())
	default:
		keys, places, err := b.sorted(b.in(1), idx.Size(), v, x.Size())
		if err != nil {
			return err
		}
		b.run(suffixed("scatter_sorted", x.DType), [3]int{ceilDiv(idx.Size(), 256), 1, 1}, [3]int{256, 1, 1}, 0,
			pointer(b.out(0)), pointer(b.in(2)), pointer(keys), pointer(places), i32(idx.Size()), i32(x.Size()))
	}
	return nil
}

func prepareEmbeddingGrad(b *builder) error {
	w, n := b.outs[0], b.op.In(1).Size()
	if w.DType == dtype.Bool { // which has no addition
		return b.unsupported(w.DType)
	}
	b.zero(b.out(0), w.Bytes())
	if n == 0 {
		return nil
	}
	rows, width := w.Dim(0), w.Dim(1)
	keys, places, err := b.sorted(b.in(1), n, indexed{size: rows, step: 1, start: stridedOf([]int{n}, []int{0})}, rows)
	if err != nil {
		return err
	}
	b.run(suffixed("embedding_grad", w.DType), [3]int{n, ceilDiv(width, 512), 1}, [3]int{128, 1, 1}, 0,
		pointer(b.out(0)), pointer(b.in(0)), pointer(keys), pointer(places), i32(n), i32(rows), i64(width))
	return nil
}

// sortTile is the elements that a block of the sort takes.
const sortTile = 2048

// sorted plans a stable sort of the places of n indices by what they name, of which there are none things: equal keys
// come together, in order; an index out of range has the key none.
func (b *builder) sorted(idx ref, n int, v indexed, none int) (keys, places ref, err error) {
	if n > 1<<31-1 || none > 1<<31-1 {
		return keys, places, fmt.Errorf("%s of %d indices into %d elements, at most 2^31-1 of each: %w", b.op.Code, n, none, device.ErrUnsupported)
	}
	list := func() ref { return b.scratch(4 * int64(n)) }
	tiles := ceilDiv(n, sortTile)
	keys, places = list(), list()
	nextKeys, nextPlaces := list(), list()
	counts := ir.Dense(dtype.I32, 256*tiles)
	hist, ends := b.scratch(counts.Bytes()), b.scratch(counts.Bytes())
	b.linear("sort_keys", n, 256, pointer(keys), pointer(places), pointer(idx), i64(n), i64(v.size), i64(v.step), i64(none), blob(v.start), fault(), serial())
	grid, block := [3]int{tiles, 1, 1}, [3]int{256, 1, 1}
	for shift := 0; none>>shift != 0; shift += 8 {
		b.run("sort_count", grid, block, 0, pointer(hist), pointer(keys), i32(n), i32(shift))
		b.cumSum(ends, hist, counts, 0)
		b.run("sort_place", grid, block, 0, pointer(nextKeys), pointer(nextPlaces), pointer(keys), pointer(places), pointer(ends), i32(n), i32(shift))
		keys, nextKeys = nextKeys, keys
		places, nextPlaces = nextPlaces, places
	}
	return keys, places, nil
}
