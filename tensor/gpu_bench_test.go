package tensor_test

import (
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
