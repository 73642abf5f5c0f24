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

// lossArgs are of one launch: x[rows, classes] and vectors with an element per row.
type lossArgs[T any] struct {
	dx, x, loss, lse, g []T
	labels              []int64
	smoothing           float64
	ignored             float64
	bad                 fault
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

// prepareCrossEntropy computes, as PyTorch does, (1-ε)·nll + ε·mean over classes of -log p, from the log-sum-exp l:
// nll = l - x[label], and the mean is l - mean(x).
func prepareCrossEntropy[T kernels.Float](k *device.Kernel) (run, error) {
	x, labels, loss := k.Op.In(0), k.Op.In(1), k.Out[0]
	n, c := x.Dim(0), x.Dim(1)
	space := newBuffers[T](c)
	rows := newLoop(func(a *lossArgs[T], lo, hi int) {
		b := space.get()
		defer space.put(b)
		for i := lo; i < hi; i++ {
			x := a.x[i*c:][:c]
			m := largest(x)
			lse := float64(m) + math.Log(expInto(*b, x, m))
			a.lse[i], a.loss[i] = T(lse), 0
			if y, counts := a.label(i, c); counts {
				a.loss[i] = T(smoothed(lse, x, y, a.smoothing))
			}
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		a := rows.run(n, grainOf(6*c), lossArgs[T]{loss: elems[T](args[0], loss), lse: elems[T](args[1], loss), x: elems[T](args[2], x),
			labels: elems[int64](args[3], labels), smoothing: scalar(p, 0), ignored: scalar(p, 1)})
		return a.err(c)
	}, nil
}

func smoothed[T kernels.Float](lse float64, x []T, y int, smoothing float64) float64 {
	nll := lse - float64(x[y])
	if smoothing == 0 { // a logit of -∞ would give 0·∞
		return nll
	}
	return (1-smoothing)*nll + smoothing*(lse-sumOf(x)/float64(len(x)))
}

// prepareCrossEntropyGrad computes g·(softmax(x) - (1-ε)·onehot - ε/classes).
func prepareCrossEntropyGrad[T kernels.Float](k *device.Kernel) (run, error) {
	x, labels, lse := k.Op.In(0), k.Op.In(1), k.Op.In(2)
	n, c := x.Dim(0), x.Dim(1)
	rows := newLoop(func(a *lossArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			dx := a.dx[i*c:][:c]
			y, counts := a.label(i, c)
			if !counts {
				clear(dx)
				continue
			}
			expInto(dx, a.x[i*c:][:c], a.lse[i])
			even, g := T(a.smoothing/float64(c)), a.g[i]
			dx[y] -= T(1 - a.smoothing)
			rescale(dx, dx, even, g, 0)
		}
	})
	return func(args []device.Arg, p *device.Params) error {
		a := rows.run(n, grainOf(5*c), lossArgs[T]{dx: elems[T](args[0], x), x: elems[T](args[1], x), labels: elems[int64](args[2], labels),
			lse: elems[T](args[3], lse), g: elems[T](args[4], lse), smoothing: scalar(p, 0), ignored: scalar(p, 1)})
		return a.err(c)
	}, nil
}
