package cuda

import (
	"fmt"
	"math"

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
	act                    ir.Act
	c, a, b, bias          ref
	biased                 bool
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
	x, y := b.op.In(0), b.op.In(1)
	r := x.Rank()
	sx, sy := x.Strides(), y.Strides()
	p := &product{m: x.Dim(-2), n: y.Dim(-1), k: x.Dim(-1), aRow: sx[r-2], aCol: sx[r-1], bRow: sy[r-2], bCol: sy[r-1],
		c: b.out(0), a: b.in(0), b: b.in(1)}
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
	Batches                int32
	Splits, PerSplit       int32
	Act                    int32
}

func (p *product) param(splits, perSplit int) param {
	s := productParam{ARow: int64(p.aRow), ACol: int64(p.aCol), BRow: int64(p.bRow), BCol: int64(p.bCol), Rank: int32(len(p.dims)),
		M: int32(p.m), N: int32(p.n), K: int32(p.k), Batches: int32(p.batches()), Splits: int32(splits), PerSplit: int32(perSplit), Act: int32(p.act)}
	for i, d := range p.dims {
		s.AStep[i], s.BStep[i], s.Size[i] = int64(d.a), int64(d.b), int32(d.size)
	}
	return blob(s)
}

func (p *product) biasParam() param {
	if p.biased {
		return pointer(p.bias)
	}
	return i64(0)
}

// plan chooses the kernels.
func (p *product) plan(b *builder, dt dtype.DType) error {
	if p.m == 0 || p.n == 0 || p.batches() == 0 {
		return nil
	}
	if most := math.MaxInt32; p.m > most || p.n > most || p.k > most || p.batches() > most {
		return fmt.Errorf("%d products of [%d,%d] by [%d,%d], sizes over 2^31: %w", p.batches(), p.m, p.k, p.k, p.n, device.ErrUnsupported)
	}
	p.planAny(b, dt)
	return nil
}

// planAny plans a kernel that every dtype and any strides have.
func (p *product) planAny(b *builder, dt dtype.DType) {
	params := []param{pointer(p.c), pointer(p.a), pointer(p.b), p.biasParam(), p.param(1, p.k)}
	if n := p.m * p.n * p.batches(); n <= dotElements && p.k <= dotTerms {
		b.linear(suffixed("dot", dt), n, min(128, (n+31)/32*32), params...)
		return
	}
	const side = 32
	b.run(suffixed("gemm_any", dt), tileGrid(ceilDiv(p.m, side)*ceilDiv(p.n, side)*p.batches()), [3]int{64, 1, 1}, 0, params...)
}

// A product with at most so many elements and terms is left to a thread per element: filling tiles would be most of the
// work.
const (
	dotElements = 512
	dotTerms    = 64
)

// tileGrid is the grid of a kernel that walks over tiles.
func tileGrid(tiles int) [3]int { return [3]int{min(tiles, math.MaxInt32), 1, 1} }

func ceilDiv(a, b int) int { return (a + b - 1) / b }
