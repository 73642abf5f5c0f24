package kernels

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// BenchmarkGemm reports the rate of one thread as a share of the ceiling of
// the processor, measured in turns with it, in processor time where the system
// tells it: a busy machine does not count.
func BenchmarkGemm(b *testing.B) {
	defer par.SetThreads(par.Threads())
	par.SetThreads(1)
	for _, l := range cpufeat.Levels() {
		for _, n := range []int{8, 64, 256, 1024} {
			if l == cpufeat.Generic && n > 256 {
				continue
			}
			b.Run(fmt.Sprintf("%v/%d", l, n), func(b *testing.B) {
				defer cpufeat.Set(l)()
				benchmarkSquare(b, l, n)
			})
		}
	}
}

func benchmarkSquare(b *testing.B, l cpufeat.Level, n int) {
	runtime.LockOSThread() // the time is the thread's
	defer runtime.UnlockOSThread()
	p := square(n)
	var ceilings, seconds float64
	each := max(1, 1<<28/(n*n*n)) // products in a turn
	turns := 0
	for b.Loop() {
		var work float64
		t := cpuTime(func() { work = ceiling(l, ceilingTurns) })
		ceilings += work / t.Seconds()
		Gemm(&p)
		seconds += cpuTime(func() {
			for range each {
				Gemm(&p)
			}
		}).Seconds()
		turns++
	}
	rate := float64(turns*each) * float64(n*n*n) / seconds
	b.ReportMetric(2e-9*rate, "GFLOP/s")
	b.ReportMetric(1e9*seconds/float64(turns*each), "ns/product")
	if ceilings > 0 {
		b.ReportMetric(100*rate*float64(turns)/ceilings, "%ceiling")
	}
}

// square returns a product of random square matrices.
func square(n int) Product[float32] {
	r := rand.New(rand.NewPCG(1, 1))
	p := Product[float32]{M: n, N: n, K: n, A: make([]float32, n*n), ARow: n, ACol: 1, B: make([]float32, n*n), BRow: n, BCol: 1, C: make([]float32, n*n), CRow: n}
	for i := range p.A {
		p.A[i], p.B[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	return p
}

// cpuTime is the processor time of f on this thread.
func cpuTime(f func()) time.Duration {
	start := threadTime()
	f()
	return threadTime() - start
}
