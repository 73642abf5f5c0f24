package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/par"
)

func init() { offer(prepareBiasGrad, ir.BiasGrad) }

// prepareBiasGrad plans the sum of a gradient's rows, with an activation those of its product with the slope.
func prepareBiasGrad(k *device.Kernel) (run, error) {
	if k.Op.NumIn() == 1 {
		sum := device.Kernel{Op: ir.New(ir.Sum, ir.Attr{Axes: 1 << 0}, k.Op.In(0)), Out: k.Out}
		f, err := prepareSum(&sum)
		k.Workspace = sum.Workspace
		return f, err
	}
	return forFloats(
		func(k *device.Kernel) (run, error) { return slopes(k, words[k.Op.Attr.Act.GradCode()].f32) },
		func(k *device.Kernel) (run, error) { return slopes(k, words[k.Op.Attr.Act.GradCode()].f64) })(k)
}

// biasArgs are the arguments of a launch, and the sums of the ranges of rows.
type biasArgs[T any] struct {
	db, d, g, x []T
	parts       []float64
}

// biasRows is how many rows are summed while they are in the first-level cache, and biasParts in how many ranges with sums
// of their own they are cut.
const (
	biasRows  = 4
	biasParts = 32
)

func slopes[T kernels.Float](k *device.Kernel, slope pass[T, T]) (run, error) {
	g := k.Op.In(0)
	r, n := g.Dim(0), g.Dim(1)
	parts, size := par.Chunks(r, max((r+biasParts-1)/biasParts, grainOf(8*n)))
	rows := newLoop(func(a *biasArgs[T], lo, hi int) {
		sums := a.parts[lo/size*n:][:n]
		clear(sums)
		for ; lo < hi; lo += biasRows {
			m := min(biasRows, hi-lo)
			d := a.d[lo*n:][:m*n]
			slope(d, a.x[lo*n:][:m*n], a.g[lo*n:][:m*n], 0, 0)
			addColumns(sums, d, m, n)
		}
	})
	join := newLoop(func(a *biasArgs[T], lo, hi int) {
		for j := lo; j < hi; j++ {
			sum := 0.0
			for p := range parts {
				sum += a.parts[p*n+j]
			}
			a.db[j] = T(sum)
		}
	})
	k.Workspace = int64(parts) * int64(n) * 8
	return func(args []device.Arg, _ *device.Params) error {
		a := biasArgs[T]{db: values[T](args[0], n), d: elems[T](args[1], g), g: elems[T](args[2], g), x: elems[T](args[3], g)}
		if k.Workspace > 0 {
			a.parts = workspace[float64](args[4], 0, parts*n)
		}
		rows.run(r, size, a)
		join.run(n, 1<<10, a)
		return nil
	}, nil
}

// addColumns adds m rows of n to the sums of the columns.
func addColumns[T kernels.Float](sums []float64, x []T, m, n int) {
	if f, ok := any(x).([]float32); ok {
		kernels.SumRows(sums, f, m, n)
		return
	}
	for i, v := range x[:m*n] {
		sums[i%n] += float64(v)
	}
}
