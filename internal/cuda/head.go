package cuda

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { offer(prepareHead, ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad) }

// head is the plan of a loss of logits x·wᵀ, or of its gradients. Chunk by chunk of rows it makes logits, puts their gradient
// in their place, and makes of that the rows of dx and the chunk's share of dw. Rows of logits begin at multiples of 128
// bytes, whatever the number of classes; what lies between them is not read.
type head struct {
	b                    *builder
	dt                   dtype.DType
	n, k, classes        int
	chunk, pitch         int
	x, w, labels, logits ref
	loss                 ref // of each row, unless it is the gradients alone
	losses, gradX, gradW bool
	dx, dw               ref
	wide                 bool // dx and dw are of f32
	sums                 headSums
	most                 int64 // bytes of scratch memory
}

// headSums are the sums of dw, in parts where its rows of terms are cut: f32 that every chunk adds to.
type headSums struct {
	parts            ref
	tiling           tiling
	splits, perSplit int
}

func prepareHead(b *builder) error {
	x, w, flag := b.op.In(0), b.op.In(1), b.op.Attr.Flag
	h := &head{b: b, dt: x.DType, n: x.Dim(0), k: x.Dim(1), classes: w.Dim(0), x: b.in(0), w: b.in(1), labels: b.in(2),
		losses: b.op.Code == ir.LinearCrossEntropy, gradX: flag&ir.GradX != 0, gradW: flag&ir.GradW != 0}
	if h.dt == dtype.F64 {
		return b.unsupported(h.dt) // whose products have no kernel for tiles
	}
	if most := 1 << 28; max(h.n, h.k, h.classes) > most {
		return fmt.Errorf("%s of %d rows of %d by %d classes, sizes over 2^28: %w", b.op.Code, h.n, h.k, h.classes, device.ErrUnsupported)
	}
	h.wide = h.losses
	form := flag & (ir.Mean | ir.Total)
	h.place(form != 0)
	for row := 0; row < h.n; row += h.chunk {
		h.rows(row, min(h.chunk, h.n-row))
	}
	h.finish(form)
	return nil
}

// headChunk is how many rows' logits there are at a time. A chunk reads w twice and writes and reads the sums of dw, 12
// bytes for each of its weights; each logit is moved five times, 10 bytes: with 16 rows for each column of w the former are a
// twelfth of the latter. More than 2 GiB of logits there are not. Chunks are as even as rows of 128 allow.
func headChunk(rows, k, pitch, size int) int {
	chunk := 128
	for chunk < 16*k {
		chunk *= 2
	}
	for chunk > 128 && chunk*pitch*size > 2<<30 {
		chunk /= 2
	}
	chunks := max(1, ceilDiv(rows, chunk))
	return min(rows, roundUp(ceilDiv(rows, chunks), 128))
}

// place finds the results and reserves scratch memory.
func (h *head) place(one bool) {
	b, size := h.b, h.dt.Size()
	h.pitch = roundUp(max(h.classes, 1), 128/size)
	h.chunk = headChunk(h.n, h.k, h.pitch, size)
	h.logits = b.scratch(int64(max(h.chunk, 1)) * int64(h.pitch*size))
	next := 0
	switch {
	case one:
		h.loss, next = b.scratch(int64(max(h.n, 1))*4), 2
	case h.losses:
		h.loss, next = b.out(0), 1
	}
	if h.gradX {
		h.dx, next = b.out(next), next+1
	}
	if !h.gradW {
		return
	}
	h.dw = b.out(next)
	p := h.weightGrad(ref{}, h.chunk)
	h.sums.tiling = p.tiling(b.d, h.dt)
	h.sums.splits, h.sums.perSplit = cutTerms(p.k, p.tiles(h.sums.tiling), 128/size)
	h.sums.parts = h.dw
	if h.summed() {
		h.sums.parts = b.scratch(int64(h.sums.splits) * int64(max(h.classes*h.k, 1)) * 4)
	}
}

// summed reports whether dw comes of sums elsewhere.
func (h *head) summed() bool { return h.sums.splits > 1 || !h.wide && h.dt != dtype.F32 }

// rows plans the chunk of m rows from one on.
func (h *head) rows(row, m int) {
	b, size := h.b, int64(h.dt.Size())
	x := h.x.at(int64(row*h.k) * size)
	if h.classes > 0 {
		p := &product{m: m, n: h.classes, k: h.k, aRow: h.k, aCol: 1, bRow: 1, bCol: h.k, c: h.logits, a: x, b: h.w, pitch: h.pitch}
		p.planTiles(b, h.dt, p.tiling(b.d, h.dt), 1, roundUp(h.k, 64))
	}
	loss, g := i64(0), i64(0)
	if h.losses {
		loss = pointer(h.loss.at(int64(row) * 4))
	} else {
		g = pointer(b.in(3).at(int64(row) * 4))
	}
	grads := 0
	if h.gradX || h.gradW {
		grads = 1
	}
	h.moves(m*h.k+h.classes*h.k+m*h.classes, m*h.classes*(1+grads), int(size), int(size))
	b.runRows("head", h.dt.String(), m, h.classes, loss, pointer(h.logits), pointer(h.labels.at(int64(row)*8)), g, i32(grads), i32(h.pitch),
		i64(m), i32(h.classes), number(0, h.dt), raw(1), fault(), serial())
	if h.gradX && h.k > 0 {
		h.inputGrad(row, m)
	}
	if h.gradW && h.classes*h.k > 0 {
		p := h.weightGrad(x, m)
		p.adds = row > 0
		parts := ceilDiv(m, h.sums.perSplit)
		p.runTiles(b, h.dt, h.sums.tiling, pointer(h.sums.parts), parts, h.sums.perSplit)
		h.moves(m*h.classes+m*h.k, 0, h.dt.Size(), 0)
		h.moves(0, parts*h.classes*h.k, 0, 4)
		if p.adds {
			h.moves(parts*h.classes*h.k, 0, 4, 0)
		}
	}
}

// moves counts elements that are read and written, of so many bytes each: operands once for each launch.
func (h *head) moves(read, written, size, to int) {
	h.b.read += int64(read) * int64(size)
	h.b.written += int64(written) * int64(to)
}

// inputGrad plans the rows of dx: the gradient of the logits times w.
func (h *head) inputGrad(row, m int) {
	to := h.dt.Size()
	if h.wide {
		to = 4
	}
	p := &product{m: m, n: h.k, k: h.classes, aRow: h.pitch, aCol: 1, bRow: h.k, bCol: 1, c: h.dx.at(int64(row*h.k) * int64(to)), a: h.logits, b: h.w,
		wide: h.wide && h.dt != dtype.F32}
	t, before := p.tiling(h.b.d, h.dt), h.b.work
	splits, perSplit := cutTerms(p.k, p.tiles(t), 128/h.dt.Size())
	p.planTiles(h.b, h.dt, t, splits, perSplit)
	h.most, h.b.work = max(h.most, h.b.work), before // the parts of the next chunk lie in the same place
	h.moves(m*h.classes+h.classes*h.k, m*h.k, h.dt.Size(), to)
	if splits > 1 {
		h.moves(splits*m*h.k, splits*m*h.k, 4, 4)
	}
}

// weightGrad is the share of m rows of x in dw: the gradient of their logits, transposed, times x.
func (h *head) weightGrad(x ref, m int) *product {
	return &product{m: h.classes, n: h.k, k: m, aRow: 1, aCol: h.pitch, bRow: h.k, bCol: 1, c: h.dw, a: h.logits, b: x, wide: true}
}

// finish plans what follows the last chunk: the sum or the mean of the losses, and of the parts of dw.
func (h *head) finish(form ir.Flag) {
	b := h.b
	b.work = max(b.work, h.most)
	if form != 0 {
		total := 0
		if form == ir.Total {
			total = 1
		}
		b.run(suffixed("crossentropy_mean", h.dt), [3]int{1, 1, 1}, [3]int{blockRow, 1, 1}, 0,
			pointer(b.out(0)), pointer(b.out(1)), pointer(h.loss), pointer(h.labels), i64(h.n), raw(1), i32(total))
	}
	size := h.classes * h.k
	switch {
	case !h.gradW || size == 0:
	case h.n == 0:
		b.zero(h.dw, int64(size)*int64(b.outs[len(b.outs)-1].DType.Size()))
	case h.summed():
		sum := partSum{c: h.dw, parts: h.sums.parts, perBatch: size, size: size, cols: h.k, splits: h.sums.splits}
		sum.plan(b, b.outs[len(b.outs)-1].DType)
		h.moves(h.sums.splits*size, size, 4, b.outs[len(b.outs)-1].DType.Size())
	}
}
