package gpusim

import (
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/testutil"
)

func hopperSource(t testing.TB) string {
	t.Helper()
	src, err := os.ReadFile("testdata/hopper.ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// uploadMap puts a tensor map of a matrix by rows into memory.
func (r *rig) uploadMap(elem tensormap.Elem, addr uint64, rows, cols, boxRows, boxCols int) uint64 {
	r.t.Helper()
	size := uint64(elem.Bytes())
	m := tensormap.Map{Elem: elem, Rank: 2, Addr: addr, Dim: [5]uint64{uint64(cols), uint64(rows)}, Stride: [5]uint64{size, size * uint64(cols)},
		Box: [5]int{boxCols, boxRows}, Step: [5]int{1, 1}, Swizzle: tensormap.Swizzle128}
	if err := m.Check(); err != nil {
		r.t.Fatal(err)
	}
	return r.upload(m.Bytes(), "a tensor map")
}

const gemmShared = 4*(128+256)*64*2 + 64

// gemmTMA prepares a launch of the product of [m,k] and [n,k], and returns the address of the result.
func gemmTMA(r *rig, a, b []uint16, m, n, k int) (kernel *Kernel, grid [3]int, params []byte, c uint64) {
	c = r.upload(make([]float32, m*n), "c")
	kernel = r.prog.Kernel("gemm_tma")
	params = pack(kernel, r.uploadMap(tensormap.BF16, r.upload(a, "a"), m, k, 128, 64), r.uploadMap(tensormap.BF16, r.upload(b, "b"), n, k, 256, 64),
		r.uploadMap(tensormap.F32, c, m, n, 128, 32), int32(k))
	return kernel, d2(n/256, m/128), params, c
}

// TestHopperGemm: a product by hand, with a ring of stages that boxes fill and wgmma reads, as clang compiles it.
func TestHopperGemm(t *testing.T) {
	const m, n, k = 256, 256, 320
	rnd := testutil.Rand(t)
	numbers := func(n int) (raw []uint16, x []float64) {
		for range n {
			v := dtype.BF16FromFloat64(rnd.NormFloat64())
			raw, x = append(raw, uint16(v)), append(x, v.Float64())
		}
		return raw, x
	}
	ra, a := numbers(m * k)
	rb, b := numbers(n * k)
	for i, o := range append(hopperOptions, Options{Numerics: Exact}, Options{Numerics: Truncating}) {
		if o.Schedule == Independent && testing.Short() {
			continue
		}
		r := hopper(t, hopperSource(t))
		kernel, grid, params, c := gemmTMA(r, ra, rb, m, n, k)
		rep, err := r.dev.Launch(kernel, grid, d1(384), gemmShared, params, o)
		if err != nil || len(rep.Findings) > 0 {
			t.Fatal(i, err, rep.Findings)
		}
		loose := 0.0
		if o.Numerics == Truncating {
			loose = 0x1p-20
		}
		for at, got := range download[float32](r, c, m*n) {
			want, size := 0.0, 0.0
			for l := range k {
				p := a[at/n*k+l] * b[at%n*k+l]
				want, size = want+p, size+math.Abs(p)
			}
			if !(math.Abs(float64(got)-want) <= size*(0x1p-20+loose)) {
				t.Fatalf("%+v: element %d is %g, want %g", o, at, got, want)
			}
		}
	}
}

func BenchmarkGemmTMA(b *testing.B) {
	onLevels(b, func(b *testing.B) { benchGemmTMA(b, Options{}) })
	b.Run("all", func(b *testing.B) { benchGemmTMA(b, Options{Checks: AllChecks}) })
}

func benchGemmTMA(b *testing.B, o Options) {
	const n = 512
	r := onHopper(b, hopperSource(b), o.Checks&Initcheck != 0)
	kernel, grid, params, _ := gemmTMA(r, make([]uint16, n*n), make([]uint16, n*n), n, n, n)
	o.Cores = 1
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	for b.Loop() {
		if rep, err := r.dev.Launch(kernel, grid, d1(384), gemmShared, params, o); err != nil || len(rep.Findings) > 0 {
			b.Fatal(err, rep.Findings)
		}
	}
	s := (threadTime() - start).Seconds()
	b.ReportMetric(s/float64(b.N)*1e9, "cpu-ns/launch")
	b.ReportMetric(2*n*n*n*float64(b.N)/s/1e9, "GFLOP/s")
}
