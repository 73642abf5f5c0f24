package gpusim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// modes are what every correct kernel must pass without a finding: five schedules, and none of the checks.
var modes = []Options{
	{Counters: true},
	{Checks: AllChecks, Cores: 1},
	{Checks: AllChecks, Seed: 7, Numerics: Truncating},
	{Checks: AllChecks, Seed: 3, Schedule: Independent},
	{Checks: AllChecks, Seed: 1},
	{Checks: AllChecks, Seed: 4, Schedule: Independent},
}

// each runs f in all modes, and on all levels of assembly, on fresh devices.
func each(t *testing.T, f func(t *testing.T, r *rig, o Options)) {
	src := source(t)
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		f(t, newRig(t, src, false), Options{})
		restore()
	}
	for _, o := range modes {
		f(t, newRig(t, src, o.Checks&Initcheck != 0), o)
	}
}

func TestElementwise(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const n = 1000
		a, b := randoms(n, 1), randoms(n, 2)
		pa, pb, pc := r.upload(a, "a"), r.upload(b, "b"), r.alloc(4*n, "c")
		r.launch("add", d1(8), d1(128), o, pa, pb, pc, int32(n))
		for i, v := range download[float32](r, pc, n) {
			if v != a[i]+b[i] {
				t.Fatalf("add: element %d is %v", i, v)
			}
		}
		r.launch("saxpy", d1(3), d1(64), o, float32(1.5), pa, pb, int32(n))
		for i, v := range download[float32](r, pb, n) {
			if want := float32(1.5*float64(a[i]) + float64(b[i])); v != want {
				t.Fatalf("saxpy: element %d is %v, want %v", i, v, want)
			}
		}
	})
}

func TestReduce(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		x := randoms(1003, 3)
		var want float64
		for _, v := range x {
			want += float64(v)
		}
		out := r.alloc(4, "out")
		r.launch("reduce", d1(1), d1(256), o, r.upload(x, "x"), out, int32(len(x)))
		near(t, "reduce", download[float32](r, out, 1), []float64{want}, 1e-5)
	})
}

func TestSoftmaxAndLayerNorm(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const rows, cols = 3, 101
		x, g, b := randoms(rows*cols, 4), randoms(cols, 5), randoms(cols, 6)
		px, py := r.upload(x, "x"), r.alloc(4*rows*cols, "y")
		r.launch("softmax", d1(rows), d1(32), o, px, py, int32(cols))
		soft, norm := make([]float64, rows*cols), make([]float64, rows*cols)
		for i := range rows {
			var sum, s, q float64
			for _, v := range x[i*cols:][:cols] {
				sum += math.Exp(float64(v))
				s += float64(v)
				q += float64(v) * float64(v)
			}
			for j, v := range x[i*cols:][:cols] {
				soft[i*cols+j] = math.Exp(float64(v)) / sum
				norm[i*cols+j] = (float64(v)-s/cols)/math.Sqrt(q/cols-s/cols*s/cols+1e-5)*float64(g[j]) + float64(b[j])
			}
		}
		near(t, "softmax", download[float32](r, py, rows*cols), soft, 1e-6)
		r.launch("layernorm", d1(rows), d1(256), o, px, r.upload(g, "gain"), r.upload(b, "bias"), py, int32(cols))
		near(t, "layernorm", download[float32](r, py, rows*cols), norm, 1e-5)
	})
}

func TestTranspose(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const rows, cols = 50, 37
		x := randoms(rows*cols, 7)
		py := r.alloc(4*rows*cols, "y")
		r.launch("transpose", d2(2, 2), d2(32, 8), o, r.upload(x, "x"), py, int32(rows), int32(cols))
		y := download[float32](r, py, rows*cols)
		for i := range x {
			if y[i%cols*rows+i/cols] != x[i] {
				t.Fatalf("element %d", i)
			}
		}
	})
}

func matmul(a, b []float32, m, n, k int) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for p := range k {
			for j := range n {
				c[i*n+j] += float64(a[i*k+p]) * float64(b[p*n+j])
			}
		}
	}
	return c
}

func TestSgemm(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const m, n, k = 64, 128, 32
		a, b := randoms(m*k, 8), randoms(k*n, 9)
		c := r.alloc(4*m*n, "c")
		r.launch("sgemm", d2(n/64, m/64), d1(256), o, r.upload(a, "a"), r.upload(b, "b"), c, int32(m), int32(n), int32(k))
		near(t, "sgemm", download[float32](r, c, m*n), matmul(a, b, m, n, k), 1e-5)
	})
}

func TestGemmBF16(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const m, n, k = 64, 128, 96
		a, b := randoms(m*k, 10), randoms(k*n, 11)
		bf := func(x []float32) []uint16 {
			out := make([]uint16, len(x))
			for i, v := range x {
				out[i] = uint16(math.Float32bits(v) >> 16)
				x[i] = math.Float32frombits(uint32(out[i]) << 16)
			}
			return out
		}
		pa, pb, c := r.upload(bf(a), "a"), r.upload(bf(b), "b"), r.alloc(4*m*n, "c")
		r.launch("gemm_bf16", d2(n/64, m/64), d1(128), o, pa, pb, c, int32(m), int32(n), int32(k))
		near(t, "gemm_bf16", download[float32](r, c, m*n), matmul(a, b, m, n, k), 1e-5)
	})
}

func TestHistogramAndScan(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		const n = 3000
		rnd := rand.New(rand.NewPCG(1, 2))
		x, want := make([]byte, n), make([]uint32, 256)
		for i := range x {
			x[i] = byte(rnd.IntN(256))
			want[x[i]]++
		}
		bins := r.upload(make([]uint32, 256), "bins")
		r.launch("histogram", d1(4), d1(256), o, r.upload(x, "x"), bins, int32(n))
		for i, v := range download[uint32](r, bins, 256) {
			if v != want[i] {
				t.Fatalf("bin %d is %d, want %d", i, v, want[i])
			}
		}
		sums := r.alloc(4*256, "sums")
		r.launch("scan", d1(1), d1(256), o, bins, sums)
		var s uint32
		for i, v := range download[uint32](r, sums, 256) {
			if s += want[i]; v != s {
				t.Fatalf("sum %d is %d, want %d", i, v, s)
			}
		}
	})
}

func TestForwardProgress(t *testing.T) {
	for _, o := range []Options{{}, {Seed: 5}, {Schedule: Independent, Seed: 2}, {Checks: AllChecks}} {
		r := newRig(t, source(t), o.Checks != 0)
		lock, count := r.upload([]int32{0}, "lock"), r.upload([]int32{0}, "counter")
		r.launch("spinlock", d1(2), d1(64), o, lock, count)
		if n := download[int32](r, count, 1)[0]; n != 128 {
			t.Errorf("%+v: the counter is %d", o, n)
		}
		flag, out := r.upload([]int32{0}, "flag"), r.upload([]int32{0}, "out")
		r.launch("handshake", d1(2), d1(32), o, flag, out)
		if n := download[int32](r, out, 1)[0]; n != 7 {
			t.Errorf("%+v: the handshake gave %d", o, n)
		}
	}
}

func TestCalls(t *testing.T) {
	each(t, func(t *testing.T, r *rig, o Options) {
		x := randoms(40, 12)
		y := r.alloc(4*40, "y")
		r.launch("calls", d1(1), d1(40), o, r.upload(x, "x"), y, int32(5))
		want := make([]float64, 40)
		for i, v := range x {
			v := float64(v)
			want[i] = v*v*v - 2*v*v + 3*v + 0.5 + v*(8*1+4*2+2*3+4)
		}
		near(t, "calls", download[float32](r, y, 40), want, 1e-5)
	})
}
