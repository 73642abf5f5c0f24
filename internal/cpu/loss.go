package cpu

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareCrossEntropy[float32], prepareCrossEntropy[float64]), ir.CrossEntropy)
	offer(forFloats(prepareCrossEntropyGrad[float32], prepareCrossEntropyGrad[float64]), ir.CrossEntropyGrad)
}

// lossArgs are of one launch: x[rows, classes], vectors with an element per row, and the rows' statistics, two vectors.
type lossArgs[T kernels.Float] struct {
	dx, x, loss, stats, g []T
	labels                []int64
	smoothing             float64
	ignored               float64
	bad                   fault
}

// label is the label of a row. Rows with the ignored one do not count; one that is no class is noted.
func (a *lossArgs[T]) label(row, classes int) (y int, counts bool) {
	l := a.labels[row]
	if float64(l) == a.ignored {
		return 0, false
	}
	if l < 0 || l >= int64(classes) {
		a.bad.at(row)
		return 0, false
	}
	return int(l), true
}

func (a *lossArgs[T]) err(classes int) error {
	if row, bad := a.bad.first(); bad {
		return fmt.Errorf("label %d in row %d is out of range: there are %d classes, 0 to %d", a.labels[row], row, classes, classes-1)
	}
	return nil
}

// total is the sum of the rows' losses, added in their order, and the number of those that count.
func (a *lossArgs[T]) total() (total float64, count int) {
	for i, l := range a.loss {
		if float64(a.labels[i]) != a.ignored {
			total, count = total+float64(l), count+1
		}
	}
	return total, count
}

// prepareCrossEntropy computes, as PyTorch does, (1-ε)·nll + ε·mean over classes of -log p, from the largest logit m and
// s = log Σ exp(x-m): nll = s - (x[label]-m), and the mean is s - mean(x-m). A mean over the rows keeps their losses in
// the workspace and adds them in their order.
func prepareCrossEntropy[T kernels.Float](k *device.Kernel) (run, error) {
	x, labels, stats := k.Op.In(0), k.Op.In(1), k.Out[1]
	n, c := x.Dim(0), x.Dim(1)
	space := newBuffers[T](c)
	rows := newLoop(func(a *lossArgs[T], lo, hi int) {
		b := space.get()
		defer space.put(b)
		for i := lo; i < hi; i++ {
			x := a.x[i*c:][:c]
			m := largest(x)
			s := math.Log(expInto(*b, x, m))
			a.stats[i], a.stats[n+i], a.loss[i] = m, T(s), 0
			if y, counts := a.label(i, c); counts {
				a.loss[i] = T(smoothed(s, m, x, *b, y, a.smoothing))
			}
		}
	})
	launch := func(args []device.Arg, loss []T, p *device.Params) lossArgs[T] {
		in := args[len(k.Out):]
		return rows.run(n, grainOf(6*c), lossArgs[T]{loss: loss, stats: elems[T](args[1], stats), x: elems[T](in[0], x),
			labels: elems[int64](in[1], labels), smoothing: scalar(p, 0), ignored: scalar(p, 1)})
	}
	if k.Op.Attr.Flag&ir.Mean == 0 {
		return func(args []device.Arg, p *device.Params) error {
			a := launch(args, elems[T](args[0], k.Out[0]), p)
			return a.err(c)
		}, nil
	}
	k.Workspace = int64(n) * int64(x.DType.Size())
	return func(args []device.Arg, p *device.Params) error {
		var loss []T
		if n > 0 {
			loss = workspace[T](args[len(k.Out)+2], 0, n)
		}
		a := launch(args, loss, p)
		total, count := a.total()
		elems[T](args[0], k.Out[0])[0], elems[T](args[2], k.Out[2])[0] = T(total/float64(count)), T(count)
		return a.err(c)
	}, nil
}

// smoothed is the loss of a row; buf is scratch of its length.
func smoothed[T kernels.Float](s float64, m T, x, buf []T, y int, smoothing float64) float64 {
	nll := s - (float64(x[y]) - float64(m))
	if smoothing == 0 { // a logit of -∞ would give 0·∞
		return nll
	}
	rescale(buf, x, m, 1, 0)
	return (1-smoothing)*nll + smoothing*(s-sumOf(buf)/float64(len(x)))
}

// prepareCrossEntropyGrad computes g·(softmax(x) - (1-ε)·onehot - ε/classes); of a mean, g is divided by the number of
// labels that count.
func prepareCrossEntropyGrad[T kernels.Float](k *device.Kernel) (run, error) {
	x, labels, stats, g := k.Op.In(0), k.Op.In(1), k.Op.In(2), k.Op.In(3)
	n, c := x.Dim(0), x.Dim(1)
	mean := k.Op.Attr.Flag&ir.Mean != 0
	rows := newLoop(func(a *lossArgs[T], lo, hi int) {
		even := a.smoothing / float64(c)
		for i := lo; i < hi; i++ {
			dx := a.dx[i*c:][:c]
			y, counts := a.label(i, c)
			if !counts {
				clear(dx)
				continue
			}
			g := float64(a.g[0])
			if !mean {
				g = float64(a.g[i])
			}
			expInto(dx, a.x[i*c:][:c], a.stats[i])
			rescale(dx, dx, 0, T(g*math.Exp(-float64(a.stats[n+i]))), T(-g*even))
			dx[y] -= T(g * (1 - a.smoothing))
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		l := lossArgs[T]{dx: elems[T](args[0], x), x: elems[T](args[1], x), labels: elems[int64](args[2], labels),
			stats: elems[T](args[3], stats), g: elems[T](args[4], g), smoothing: scalar(p, 0), ignored: scalar(p, 1)}
		if mean {
			l.g = []T{l.g[0] / elems[T](args[5], g)[0]}
		}
		a := rows.run(n, grainOf(5*c), l)
		return a.err(c)
	}, nil
}
