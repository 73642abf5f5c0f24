package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// pairMatrix is lanes by steps of pairs of random bfloat16, one in nine of them no normal number, in a slice with guards;
// steps are adjacent or lanes are. values are the numbers as they count, lanes by 2·steps.
func pairMatrix(r *rand.Rand, lanes, steps int, stepsAdjacent bool) (data []float32, lane, step int, values []float64) {
	room := r.IntN(3)
	lane, step = 1, lanes+room
	if stepsAdjacent {
		lane, step = steps+room, 1
	}
	data = make([]float32, (lanes-1)*lane+(steps-1)*step+1)
	values = make([]float64, lanes*2*steps)
	for i := range lanes {
		for l := range steps {
			word := uint32(0)
			for half := range 2 {
				v := math.Float32bits(float32(r.NormFloat64())) >> 16
				if r.IntN(9) == 0 {
					v &= 0x807f // subnormal, or zero
				}
				word |= v << (16 * half)
				values[i*2*steps+2*l+half] = float64(normal(v << 16))
			}
			data[i*lane+l*step] = math.Float32frombits(word)
		}
	}
	return data, lane, step, values
}

// TestGemmPairs compares with sums in float64, on every level: Go where there are no instructions.
func TestGemmPairs(t *testing.T) {
	r := testutil.Rand(t)
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for range 60 {
			testGemmPairs(t, r, l)
		}
		restore()
	}
}

func testGemmPairs(t *testing.T, r *rand.Rand, l cpufeat.Level) {
	m, n, k := 1+r.IntN(70), 1+r.IntN(90), 1+r.IntN(40)
	if r.IntN(8) == 0 {
		k = 1000 + r.IntN(200)
	}
	p := Product[float32]{M: m, N: n, K: k, CRow: n + r.IntN(3), Accumulate: r.IntN(3) == 0}
	var a, b []float64
	p.A, p.ARow, p.ACol, a = pairMatrix(r, m, k, r.IntN(2) == 0)
	p.B, p.BCol, p.BRow, b = pairMatrix(r, n, k, r.IntN(2) == 0)
	if r.IntN(3) == 0 {
		p.Act = ActReLU
	}
	p.C = make([]float32, m*p.CRow)
	for i := range p.C {
		p.C[i] = float32(i % 7)
	}
	old := slices.Clone(p.C)
	GemmPairs(&p)
	for at, got := range p.C {
		i, j := at/p.CRow, at%p.CRow
		if j >= n {
			if got != old[at] {
				t.Fatalf("%v: %d×%d×%d wrote beside row %d", l, m, n, k, i)
			}
			continue
		}
		want, size := 0.0, 0.0
		if p.Accumulate {
			want, size = float64(old[at]), float64(old[at])
		}
		for x := range 2 * k {
			want += a[i*2*k+x] * b[j*2*k+x]
			size += math.Abs(a[i*2*k+x] * b[j*2*k+x])
		}
		if p.Act == ActReLU {
			want = max(0, want)
		}
		if d := math.Abs(float64(got) - want); !(d <= 6e-8*float64(2+2*k)*size+1e-30) {
			t.Fatalf("%v: %d×%d×%d: element %d, %d is %g, want %g", l, m, n, k, i, j, got, want)
		}
	}
}

// TestPairRows joins rows of all lengths around those of vectors.
func TestPairRows(t *testing.T) {
	r := testutil.Rand(t)
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for n := range 70 {
			low, high, dst := make([]uint16, n), make([]uint16, n), make([]float32, n+1)
			for i := range n {
				low[i], high[i] = uint16(r.Uint32()), uint16(r.Uint32())
			}
			dst[n] = 7
			for _, h := range [][]uint16{high, nil} {
				PairRows(dst[:n], low, h)
				for i := range n {
					want := uint32(low[i])
					if h != nil {
						want |= uint32(h[i]) << 16
					}
					if got := math.Float32bits(dst[i]); got != want || dst[n] != 7 {
						t.Fatalf("%v: %d of %d is %08x, want %08x", l, i, n, got, want)
					}
				}
			}
		}
		restore()
	}
}
