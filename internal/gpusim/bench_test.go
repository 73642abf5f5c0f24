package gpusim

import "testing"

// benchmark launches a kernel again and again on one core and reports lane instructions and, where given, operations.
func benchmark(b *testing.B, name string, grid, block [3]int, flops float64, args func(r *rig) []any) {
	r := newRig(b, source(b), false)
	k, params := r.prog.Kernel(name), pack(r.prog.Kernel(name), args(r)...)
	var lanes uint64
	for b.Loop() {
		rep, err := r.dev.Launch(k, grid, block, 0, params, Options{Cores: 1})
		if err != nil {
			b.Fatal(err)
		}
		lanes += rep.Counters.LaneInstructions
	}
	s := b.Elapsed().Seconds()
	b.ReportMetric(float64(lanes)/s/1e9, "Glane-inst/s")
	if flops > 0 {
		b.ReportMetric(flops*float64(b.N)/s/1e9, "GFLOP/s")
	}
}

func BenchmarkAdd(b *testing.B) {
	const n = 1 << 18
	benchmark(b, "add", d1(n/256), d1(256), 0, func(r *rig) []any {
		return []any{r.alloc(4*n, "a"), r.alloc(4*n, "b"), r.alloc(4*n, "c"), int32(n)}
	})
}

func BenchmarkTinyLaunch(b *testing.B) {
	benchmark(b, "add", d1(1), d1(256), 0, func(r *rig) []any {
		return []any{r.alloc(4096, "a"), r.alloc(4096, "b"), r.alloc(4096, "c"), int32(256)}
	})
}

func BenchmarkSgemm(b *testing.B) {
	const n = 128
	benchmark(b, "sgemm", d2(n/64, n/64), d1(256), 2*n*n*n, func(r *rig) []any {
		return []any{r.alloc(4*n*n, "a"), r.alloc(4*n*n, "b"), r.alloc(4*n*n, "c"), int32(n), int32(n), int32(n)}
	})
}

func BenchmarkGemmBF16(b *testing.B) {
	const n = 128
	benchmark(b, "gemm_bf16", d2(n/64, n/64), d1(128), 2*n*n*n, func(r *rig) []any {
		return []any{r.alloc(2*n*n, "a"), r.alloc(2*n*n, "b"), r.alloc(4*n*n, "c"), int32(n), int32(n), int32(n)}
	})
}

func BenchmarkSoftmax(b *testing.B) {
	const rows, cols = 64, 512
	benchmark(b, "softmax", d1(rows), d1(32), 0, func(r *rig) []any {
		return []any{r.alloc(4*rows*cols, "x"), r.alloc(4*rows*cols, "y"), int32(cols)}
	})
}
