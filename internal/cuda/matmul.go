package cuda

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(prepareMatMul, ir.MatMul) }

// product is a product of matrices, c[batch][m][n] = a[batch][m][k]·b[batch][k][n] with c row-major. Strides count
// elements; any are allowed.
type product struct {
	m, n, k                int
	aRow, aCol, bRow, bCol int
	dims                   []batchDim
	c, a, b                ref
	end                    epilogue
	pitch                  int  // elements from row to row of c; 0: n
	wide, adds             bool // c is of the sums' type, whatever the operands; sums are added to what it holds
	tf32                   bool // f32 operands are rounded so
}

// epilogue is what becomes of sums: the kernels' struct Epilogue. bias and before are nil where there is none.
type epilogue struct {
	bias, before *ref
	act          ir.Act
	wideBias     bool // its type is that of the sums
}

func (e *epilogue) param() param {
	var s struct {
		Bias, Before  int64
		Act, WideBias int32
	}
	s.Act = int32(e.act)
	if e.wideBias {
		s.WideBias = 1
	}
	p := blob(s)
	for i, r := range []*ref{e.bias, e.before} {
		if r != nil {
			p = p.placing(8*i, *r)
		}
	}
	return p
}

// batchDim is a dimension of the batch, with the distances of neighbours in a and b.
type batchDim struct{ size, a, b int }

// batches is the number of products.
func (p *product) batches() int {
	n := 1
	for _, d := range p.dims {
		n *= d.size
	}
	return n
}

func prepareMatMul(b *builder) error {
	x, a := b.factor(0)
	y, c := b.factor(1)
	r := x.Rank()
	sx, sy := x.Strides(), y.Strides()
	p := &product{m: x.Dim(-2), n: y.Dim(-1), k: x.Dim(-1), aRow: sx[r-2], aCol: sx[r-1], bRow: sy[r-2], bCol: sy[r-1],
		c: b.out(0), a: a, b: c, wide: b.outs[0].DType != x.DType, tf32: b.precision() == ir.High}
	for i := range r - 2 {
		p.dims = append(p.dims, batchDim{x.Dim(i), sx[i], sy[i]})
	}
	p.join()
	p.fold()
	return p.plan(b, x.DType)
}

// join makes one dimension of neighbours in the batch that are walked alike, and drops those of size 1.
func (p *product) join() {
	var kept []batchDim
	for _, d := range p.dims {
		if d.size == 1 {
			continue
		}
		if n := len(kept); n > 0 && kept[n-1].a == d.size*d.a && kept[n-1].b == d.size*d.b {
			kept[n-1] = batchDim{kept[n-1].size * d.size, d.a, d.b}
			continue
		}
		kept = append(kept, d)
	}
	p.dims = kept
}

// fold makes one product of those that share b while their matrices a lie below each other.
func (p *product) fold() {
	for i := len(p.dims) - 1; i >= 0; i-- {
		d := p.dims[i]
		if d.b != 0 || p.m != 1 && d.a != p.m*p.aRow {
			return
		}
		if p.m == 1 {
			p.aRow = d.a
		}
		p.m *= d.size
		p.dims = p.dims[:i]
	}
}

// maxBatchDims is that of the kernels: every dimension of a type but the last two.
const maxBatchDims = ir.MaxRank - 2

// productParam is the kernels' struct Product.
type productParam struct {
	ARow, ACol, BRow, BCol int64
	AStep, BStep           [maxBatchDims]int64
	Size                   [maxBatchDims]int32
	Rank, M, N, K          int32
	Splits, PerSplit       int32
	Work, Pitch            int32
	Adds, Unused           int32
}

func (p *product) param(splits, perSplit, work int) param {
	s := productParam{ARow: int64(p.aRow), ACol: int64(p.aCol), BRow: int64(p.bRow), BCol: int64(p.bCol), Rank: int32(len(p.dims)),
		M: int32(p.m), N: int32(p.n), K: int32(p.k), Splits: int32(splits), PerSplit: int32(perSplit), Work: int32(work), Pitch: int32(p.n)}
	if p.pitch > 0 {
		s.Pitch = int32(p.pitch)
	}
	if p.adds {
		s.Adds = 1
	}
	for i, d := range p.dims {
		s.AStep[i], s.BStep[i], s.Size[i] = int64(d.a), int64(d.b), int32(d.size)
	}
	return blob(s)
}

// plan chooses the kernels.
func (p *product) plan(b *builder, dt dtype.DType) error {
	if p.m == 0 || p.n == 0 || p.batches() == 0 {
		return nil
	}
	_, small := p.tilings(b.d, dt)
	if most := 1 << 28; p.m > most || p.n > most || p.k > most || p.batches() > most || p.tiles(small) > most {
		return fmt.Errorf("%d products of [%d,%d] by [%d,%d], sizes over 2^28: %w", p.batches(), p.m, p.k, p.k, p.n, device.ErrUnsupported)
	}
	switch n, small := p.m*p.n*p.batches(), p.m <= anySide && p.n <= anySide; {
	case n <= dotElements && n*p.k <= dotProducts && !p.wide:
		b.linear(p.kernel("dot", dt), n, min(128, roundUp(n, 32)), p.params(n)...)
	case dt == dtype.F16, dt == dtype.BF16, p.tf32, dt == dtype.F32 && !small:
		if dt != dtype.F32 {
			p.pack(b, dt)
		}
		t := p.tiling(b.d, dt)
		splits, perSplit := cutTerms(p.k, p.tiles(t), 128/dt.Size())
		p.planTiles(b, dt, t, splits, perSplit)
	default:
		t := tiling{rows: anySide, cols: anySide, threads: 64}
		b.run(suffixed("gemm_any", dt), tileGrid(p.tiles(t)), [3]int{t.threads, 1, 1}, 0, p.params(p.tiles(t))...)
	}
	return nil
}

// A result of so few elements and products is left to a thread per element: filling tiles would be most of the work.
const (
	dotElements = 1 << 10
	dotProducts = 1 << 14
)

// anySide is the side of the tiles of gemm_any, the kernel that all dtypes have.
const anySide = 32

// params are those of the kernels that take all terms at once.
func (p *product) params(work int) []param {
	return []param{pointer(p.c), pointer(p.a), pointer(p.b), p.end.param(), p.param(1, p.k, work)}
}

// tiling is a size of tiles that f32 and the 16-bit dtypes have kernels for, and what a block of them takes.
type tiling struct {
	name            string
	rows, cols      int
	threads, shared int // bytes
}

// tilings are the large and the small tiles of a dtype on a card. A block has two or three stages of its operands' rows of 128 bytes.
func (p *product) tilings(d *Device, dt dtype.DType) (large, small tiling) {
	switch {
	case p.tf32:
		return tiling{"gemm128", 128, 128, 128, 2 * 256 * 128}, tiling{"gemm64", 64, 64, 128, 3 * 128 * 128}
	case dt == dtype.F32:
		return tiling{"gemm128", 128, 128, 256, 2 * 256 * 128}, tiling{"gemm64", 64, 64, 64, 2 * 128 * 128}
	}
	large = tiling{"gemm128", 128, 192, 128, 2 * 320 * 128}
	if d.older() { // a block there has no 80 KiB
		large = odd
	}
	return large, tiling{"gemm64", 64, 64, 128, 3 * 128 * 128}
}

// Fewer tiles than leastLarge are made smaller. Where there are fewer than fullGrid, two for each multiprocessor of the
// largest cards, their terms are cut in parts of at least longPart. Neither depends on the card, so that bits do not.
const (
	leastLarge = 64
	fullGrid   = 264
	longPart   = 512
)

// odd are the large tiles of 16-bit operands whose rows do not all begin at multiples of 16 bytes.
var odd = tiling{"gemmodd", 128, 128, 128, 2 * 256 * 128}

// tiling chooses large tiles if they are many and mostly full.
func (p *product) tiling(d *Device, dt dtype.DType) tiling {
	large, small := p.tilings(d, dt)
	if dt != dtype.F32 && !p.aligned() {
		large = odd
	}
	if n := p.tiles(large); n >= leastLarge && 2*p.m*p.n*p.batches() > n*large.rows*large.cols {
		return large
	}
	return small
}

// aligned reports whether the rows of 16-bit operands begin at multiples of 16 bytes from the first one.
func (p *product) aligned() bool {
	all := p.aRow*p.aCol | p.bRow*p.bCol // one of each pair is 1
	for _, d := range p.dims {
		all |= d.a | d.b
	}
	return all%8 == 0
}

// pack copies 16-bit operands whose elements are neighbours along neither dimension, as the kernels for tiles want them.
func (p *product) pack(b *builder, dt dtype.DType) {
	if p.aRow != 1 && p.aCol != 1 {
		step := func(d *batchDim) *int { return &d.a }
		p.a, p.aRow, p.aCol = p.packed(b, dt, p.a, p.m, p.aRow, p.aCol, step), roundUp(p.k, 8), 1
	}
	if p.bRow != 1 && p.bCol != 1 {
		step := func(d *batchDim) *int { return &d.b }
		p.b, p.bCol, p.bRow = p.packed(b, dt, p.b, p.n, p.bCol, p.bRow, step), roundUp(p.k, 8), 1
	}
}

// packed plans the copy of an operand of so many lines to scratch memory, in rows of roundUp(k, 8), and sets the steps of
// the batch in it. What a dimension of the batch repeats stays one.
func (p *product) packed(b *builder, dt dtype.DType, from ref, lines, byLine, byTerm int, step func(*batchDim) *int) ref {
	sizes, strides := []int{lines, p.k}, []int{byLine, byTerm}
	row := roundUp(p.k, 8)
	dense, all := []int{row, 1}, lines*row
	for i := len(p.dims) - 1; i >= 0; i-- {
		if s := step(&p.dims[i]); *s != 0 {
			sizes, strides, dense = slices.Insert(sizes, 0, p.dims[i].size), slices.Insert(strides, 0, *s), slices.Insert(dense, 0, all)
			*s, all = all, all*p.dims[i].size
		}
	}
	to := b.scratch(int64(all * dt.Size()))
	b.copy(to, ir.Strided(dt, sizes, dense), from, ir.Strided(dt, sizes, strides))
	return to
}

// planTiles plans the kernels that copy tiles ahead, 16 bytes at a time where the operands' rows allow.
func (p *product) planTiles(b *builder, dt dtype.DType, t tiling, splits, perSplit int) {
	partial, size := i64(0), p.m*p.n*p.batches()
	apart := splits > 1 || p.wide && p.end != (epilogue{}) // the kernels' own is for sums in the operands' dtype
	var parts ref
	switch {
	case apart:
		parts = b.scratch(int64(splits) * int64(size) * 4)
		partial = pointer(parts)
	case p.wide:
		partial = pointer(p.c)
	}
	p.runTiles(b, dt, t, partial, splits, perSplit)
	if apart {
		sum := partSum{c: p.c, parts: parts, end: p.end, perBatch: p.m * p.n, size: size, cols: p.n, splits: splits}
		if p.wide {
			dt = ir.Wide(dt)
		}
		sum.plan(b, dt)
	}
}

// runTiles plans the kernel for tiles. Partial sums go to partial, if it is not null.
func (p *product) runTiles(b *builder, dt dtype.DType, t tiling, partial param, splits, perSplit int) {
	name := fmt.Sprintf("%s_%c%c", t.name, along(p.aCol, p.aRow, 'm'), along(p.bRow, p.bCol, 'n'))
	b.run(p.kernel(name, dt), tileGrid(p.tiles(t)*splits), [3]int{t.threads, 1, 1}, t.shared,
		pointer(p.c), pointer(p.a), pointer(p.b), p.end.param(), partial, p.param(splits, perSplit, p.tiles(t)*splits))
}

// kernel is the name of one for the operands.
func (p *product) kernel(name string, dt dtype.DType) string {
	if p.tf32 {
		return name + "_tf32"
	}
	return suffixed(name, dt)
}

// along names the dimension in which an operand's elements are neighbours, k unless only its lines are.
func along(byTerm, byLine int, line rune) rune {
	if byLine == 1 && byTerm != 1 {
		return line
	}
	return 'k'
}

func (p *product) tiles(t tiling) int {
	return ceilDiv(p.m, t.rows) * ceilDiv(p.n, t.cols) * p.batches()
}

// cutTerms is the number of parts that k terms are cut into when there are so many tiles, and the terms of each part, a
// multiple of depth.
func cutTerms(k, tiles, depth int) (splits, perSplit int) {
	splits = max(1, min(ceilDiv(fullGrid, tiles), k/longPart))
	perSplit = roundUp(ceilDiv(k, splits), depth)
	if short := k / splits / depth * depth; ceilDiv(k, max(perSplit, 1)) < splits && short >= longPart {
		perSplit = short // that much rounded up leaves too few
	}
	return max(1, ceilDiv(k, max(perSplit, 1))), perSplit
}

// partSum is the sum of the parts of a product's terms, for size elements of matrices of perBatch.
type partSum struct {
	c, parts             ref
	end                  epilogue
	perBatch, size, cols int
	splits               int
}

func (s *partSum) plan(b *builder, dt dtype.DType) {
	b.linear(suffixed("gemm_sum", dt), s.size, 256,
		pointer(s.c), pointer(s.parts), s.end.param(), i64(s.perBatch), i64(s.size), i32(s.cols), i32(s.splits))
}

// tileGrid is the grid of a kernel that walks over tiles: each has a block unless they are very many.
func tileGrid(tiles int) [3]int { return [3]int{min(tiles, 1<<20), 1, 1} }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, to int) int { return ceilDiv(n, to) * to }
