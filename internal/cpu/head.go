package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareHead[float32], prepareHead[float64]), ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad)
}

// headChunk is how many rows' logits there are at a time: enough for the weight, which each chunk packs twice, and the sums
// of its gradient, which it reads and writes, to cost little beside products (a twentieth at 1024 rows), and what a
// second-level cache holds where the classes are few. Chunks are as even as rows of 16 allow.
func headChunk(rows, classes int) int {
	most := max(1024, 1<<18/max(classes, 1))
	chunks := max(1, (rows+most-1)/most)
	return min(rows, ((rows+chunks-1)/chunks+15)&^15)
}

// head is the loss of logits x·wᵀ with the gradients that are asked for, or those gradients alone. It makes the logits of
// a chunk of rows, puts the gradient of them in their place, and makes of that the chunk's share of the others.
type head[T kernels.Float] struct {
	n, k, classes, chunk int
	lossesAt             int64 // in the workspace, after the logits
	labels               *ir.Type
	outs, dx, dw         int // results, and which of them are gradients; -1: not asked for
	code                 ir.Code
	form                 ir.Flag // Mean, Total or neither
	rows                 *loop[headArgs[T]]
}

// headArgs are of a chunk of rows, whose logits are x.
type headArgs[T kernels.Float] struct {
	lossArgs[T]
	first, classes int
	grad           bool
}

func prepareHead[T kernels.Float](k *device.Kernel) (run, error) {
	x, w, flag := k.Op.In(0), k.Op.In(1), k.Op.Attr.Flag
	h := &head[T]{n: x.Dim(0), k: x.Dim(1), classes: w.Dim(0), chunk: headChunk(x.Dim(0), w.Dim(0)), labels: k.Op.In(2),
		outs: len(k.Out), dx: -1, dw: -1, code: k.Op.Code, form: flag & (ir.Mean | ir.Total), rows: newLoop(headOfRows[T])}
	if flag&ir.GradW != 0 {
		h.dw = h.outs - 1
	}
	if flag&ir.GradX != 0 {
		h.dx = h.outs - 1
		if h.dw >= 0 {
			h.dx--
		}
	}
	size := int64(x.DType.Size())
	h.lossesAt = aligned(int64(h.chunk*h.classes) * size)
	k.Workspace = h.lossesAt + int64(h.n)*size
	return h.run, nil
}

func (h *head[T]) run(args []device.Arg, p *device.Params) error {
	in := args[h.outs:]
	a := headArgs[T]{classes: h.classes, grad: h.dx >= 0 || h.dw >= 0}
	a.smoothing, a.ignored = scalar(p, 0), scalar(p, 1)
	a.labels = elems[int64](in[2], h.labels)
	if h.n > 0 {
		a.x, a.loss = workspace[T](in[len(in)-1], 0, h.chunk*h.classes), workspace[T](in[len(in)-1], h.lossesAt, h.n)
	}
	switch {
	case h.code == ir.LinearCrossEntropyGrad:
		a.g = values[T](in[3], h.n)
	case h.form == 0:
		a.loss = values[T](args[0], h.n)
	}
	if h.n == 0 && h.dw >= 0 {
		clear(values[T](args[h.dw], h.classes*h.k))
	}
	for lo := 0; lo < h.n; lo += h.chunk {
		if a = h.rowsFrom(lo, args, a); a.bad != (fault{}) {
			return a.err(h.classes)
		}
	}
	if h.form != 0 {
		total, count := a.total()
		if h.form == ir.Mean {
			total /= float64(count)
		}
		values[T](args[0], 1)[0], values[T](args[1], 1)[0] = T(total), T(count)
	}
	return nil
}

// rowsFrom does the chunk of rows that begins at lo.
func (h *head[T]) rowsFrom(lo int, args []device.Arg, a headArgs[T]) headArgs[T] {
	m, c, k := min(h.chunk, h.n-lo), h.classes, h.k
	x, w := rowsOf(values[T](args[h.outs], h.n*k)[lo*k:], k), rowsOf(values[T](args[h.outs+1], c*k), k)
	gemm(m, c, k, x, w.t(), a.x, c, false)
	a.first = lo
	a = h.rows.run(m, grainOf(8*c), a)
	logits := rowsOf(a.x, c)
	if h.dx >= 0 {
		gemm(m, k, c, logits, w, values[T](args[h.dx], h.n*k)[lo*k:], k, false)
	}
	if h.dw >= 0 {
		gemm(c, k, m, logits.t(), x, values[T](args[h.dw], c*k), k, lo > 0)
	}
	return a
}

// headOfRows makes losses of logits and, where it is wanted, puts their gradient in their place.
func headOfRows[T kernels.Float](a *headArgs[T], lo, hi int) {
	for i := lo; i < hi; i++ {
		row, z := a.first+i, a.x[i*a.classes:][:a.classes]
		y, counts := a.label(row, a.classes)
		if a.loss[row] = 0; !counts {
			clear(z)
			continue
		}
		m := largest(z)
		at := float64(z[y]) - float64(m)
		var mean float64
		if a.smoothing != 0 { // a logit of -∞ would give 0·∞
			mean = sumOf(z)/float64(len(z)) - float64(m)
		}
		sum := expInto(z, z, m)
		s := math.Log(sum)
		a.loss[row] = T(s - (1-a.smoothing)*at - a.smoothing*mean)
		if !a.grad {
			continue
		}
		g := 1.
		if a.g != nil {
			g = float64(a.g[row])
		}
		rescale(z, z, 0, T(g/sum), T(-g*a.smoothing/float64(len(z))))
		z[y] -= T(g * (1 - a.smoothing))
	}
}
