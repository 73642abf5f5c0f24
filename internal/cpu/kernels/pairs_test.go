package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// halfMatrix is lanes by steps of random bfloat16, one in nine of them no normal number; neighbours along k are adjacent,
// as pairs, or lanes are. What nobody may look at is NaN. values are the numbers as they count.
func halfMatrix(r *rand.Rand, lanes, steps int) (h half, values []float64) {
	h = half{lanes: lanes, lane: 1, step: lanes + r.IntN(3)}
	if steps%2 == 0 && r.IntN(2) == 0 {
		h.lane, h.step = steps+2*r.IntN(2), 1
	}
	h.data = make([]dtype.BFloat16, max(0, (lanes-1)*h.lane+(steps-1)*h.step+1))
	for i := range h.data {
		h.data[i] = 0x7fc0
	}
	values = make([]float64, lanes*steps)
	for i := range lanes {
		for l := range steps {
			v := math.Float32bits(float32(r.NormFloat64())) >> 16
			if r.IntN(9) == 0 {
				v &= 0x807f // subnormal, or zero
			}
			h.data[i*h.lane+l*h.step] = dtype.BFloat16(v)
			values[i*steps+l] = float64(normal(v << 16))
		}
	}
	return h, values
}

// TestGemmHalves compares with sums in float64, on every level: Go where there are no instructions. On one level the bits
// do not depend on the number of threads.
func TestGemmHalves(t *testing.T) {
	r := testutil.Rand(t)
	defer par.SetThreads(par.Threads())
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for range 60 {
			testGemmHalves(t, r, l)
		}
		restore()
	}
}

func testGemmHalves(t *testing.T, r *rand.Rand, l cpufeat.Level) {
	m, n, k := 1+r.IntN(70), 1+r.IntN(90), 1+r.IntN(80)
	switch r.IntN(10) {
	case 0:
		k = 1000 + r.IntN(400)
	case 1:
		n = 500 + r.IntN(60)
	}
	p := HalfProduct{M: m, N: n, K: k, CRow: n + r.IntN(3)}
	x, a := halfMatrix(r, m, k)
	y, b := halfMatrix(r, n, k)
	p.A, p.ARow, p.ACol = x.data, x.lane, x.step
	p.B, p.BCol, p.BRow = y.data, y.lane, y.step
	p.C, p.Sums = make([]dtype.BFloat16, m*p.CRow), make([]float32, m*p.CRow)
	for i := range p.C {
		p.C[i] = dtype.BFloat16(i % 7)
	}
	par.SetThreads(1)
	GemmHalves(&p)
	for at, got := range p.C {
		i, j := at/p.CRow, at%p.CRow
		if j >= n {
			if got != dtype.BFloat16(at%7) {
				t.Fatalf("%v: %d×%d×%d wrote beside row %d", l, m, n, k, i)
			}
			continue
		}
		want, size := 0.0, 0.0
		for x := range k {
			want += a[i*k+x] * b[j*k+x]
			size += math.Abs(a[i*k+x] * b[j*k+x])
		}
		// A sum of k products is rounded less than k+8 times, slices of k and an odd end included, and once more by half a
		// unit of 8 bits.
		sum := math.Ldexp(1.01*float64(k+8)*size, -24)
		if d := math.Abs(float64(got.Float32()) - want); !(d <= sum+math.Ldexp(math.Abs(want)+sum, -8)+1e-30) {
			t.Fatalf("%v: %d×%d×%d, A %d %d, B %d %d: element %d, %d is %g, want %g", l, m, n, k, p.ARow, p.ACol, p.BRow, p.BCol, i, j, got.Float32(), want)
		}
	}
	one := slices.Clone(p.C)
	par.SetThreads(2)
	if GemmHalves(&p); !slices.Equal(p.C, one) {
		t.Fatalf("%v: %d×%d×%d: other bits with two threads", l, m, n, k)
	}
}

func TestHalvesThatDoNotZip(t *testing.T) {
	p := HalfProduct{M: 3, N: 3, K: 3, A: make([]dtype.BFloat16, 9), ARow: 3, ACol: 1, B: make([]dtype.BFloat16, 9), BRow: 3, BCol: 1,
		C: make([]dtype.BFloat16, 9), CRow: 3, Sums: make([]float32, 9)}
	if p.Zips() {
		t.Error("pairs of an odd number along k")
	}
	if p.ARow, p.ACol = 1, 0; p.Zips() {
		t.Error("a column that repeats: its halves do not lie apart")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	GemmHalves(&p)
}
