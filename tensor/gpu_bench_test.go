package tensor_test

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/tensor"
)

// benchmarkGPU is what the host pays for an operation on a GPU whose driver does nothing: with all bookkeeping, through
// the driver's C interface.
func benchmarkGPU(b *testing.B, op func(e *tensor.Env, w *tensor.Tensor) func()) {
	path, _ := shimtest.NoOp(b)
	b.Setenv(libcuda.PathEnv, path)
	benchmarkOpsOn(b, "cuda:0", op)
}

func BenchmarkEagerGPU(b *testing.B) {
	benchmarkGPU(b, func(e *tensor.Env, _ *tensor.Tensor) func() {
		x := e.Ones(4)
		return func() { x.Add(x) }
	})
}

func BenchmarkEagerGPURecorded(b *testing.B) {
	benchmarkGPU(b, func(e *tensor.Env, w *tensor.Tensor) func() {
		x := e.Ones(4)
		return func() { x.Mul(w) }
	})
}

// BenchmarkCapturedGPU is what the host pays for a run of a captured step, and for each of its nodes, on a card whose driver
// does nothing, beside the step that is not captured.
func BenchmarkCapturedGPU(b *testing.B) {
	for _, layers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(layers, " layers"), func(b *testing.B) {
			root, _ := idleCard(b)
			step, _, batch, nodes := deepStep(root, layers)
			b.ReportAllocs()
			for b.Loop() {
				step.Run(batch)
			}
			b.ReportMetric(float64(nodes), "nodes")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)-50*float64(nodes), "ns-without-50/node")
		})
		b.Run(fmt.Sprint(layers, " layers, not captured"), func(b *testing.B) {
			root, _ := idleCard(b)
			_, f, batch, nodes := deepStep(root, layers)
			b.ReportAllocs()
			i := uint64(0)
			for b.Loop() {
				e, scope := root.Scope(i)
				f(&deepBatch{batch.X.In(e), batch.Y.In(e)})
				scope.End()
				i++
			}
			b.ReportMetric(float64(nodes), "nodes")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
		})
	}
}
