package tensor_test

import (
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// perTurn is how many ops a benchmark runs in one scope, as a batch would.
const perTurn = 200

func benchmarkOps(b *testing.B, op func(e *tensor.Env, x *tensor.Tensor) func()) {
	benchmarkOpsOn(b, "cpu", op)
}

func benchmarkOpsOn(b *testing.B, device string, op func(e *tensor.Env, x *tensor.Tensor) func()) {
	env, err := tensor.Fresh(device)
	if err != nil {
		b.Fatal(err)
	}
	w := tensor.NewParam(env.Ones(4))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e, s := env.Scope(uint64(n))
		f := op(e, w)
		for range perTurn {
			f()
		}
		s.End()
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*perTurn), "ns/eager-op")
}

func BenchmarkEagerAdd(b *testing.B) {
	benchmarkOps(b, func(e *tensor.Env, _ *tensor.Tensor) func() {
		x := e.Ones(4)
		return func() { x.Add(x) }
	})
}

func BenchmarkEagerAddRecorded(b *testing.B) {
	benchmarkOps(b, func(e *tensor.Env, w *tensor.Tensor) func() {
		x := e.Ones(4)
		return func() { x.Add(w) }
	})
}

func BenchmarkEagerMulRecorded(b *testing.B) {
	benchmarkOps(b, func(e *tensor.Env, w *tensor.Tensor) func() {
		x := e.Ones(4)
		return func() { x.Mul(w) }
	})
}

func BenchmarkView(b *testing.B) {
	benchmarkOps(b, func(e *tensor.Env, _ *tensor.Tensor) func() {
		x := e.Ones(2, 2)
		return func() { x.Transpose(0, 1) }
	})
}

func BenchmarkEmptyScope(b *testing.B) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_, s := env.Scope(1)
		s.End()
	}
}
