package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// guard surrounds every output; no result has this value.
const guard = -12345.625

// everyLevel calls f on each level of the machine, with one thread and with
// two.
func everyLevel(f func(name string)) {
	defer par.SetThreads(par.Threads())
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for threads := 1; threads <= 2; threads++ {
			par.SetThreads(threads)
			f(fmt.Sprintf("level %v, %d threads", l, threads))
		}
		restore()
	}
}

func seeded(t *testing.T, seed uint64) *rand.Rand {
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// operandData returns a random matrix and its strides: row by row or column by
// column, with room between lines, or spread in both directions, or, if
// broadcast, one line for all rows. What nobody may look at is NaN.
func operandData[T Float](r *rand.Rand, rows, cols int, broadcast bool) (data []T, row, col int) {
	switch r.IntN(7) {
	case 0, 1, 2:
		row, col = cols+r.IntN(3), 1
	case 3, 4:
		row, col = 1, rows+r.IntN(3)
	case 5:
		row, col = 2*cols+1, 2
	default:
		row, col = cols, 1
		if broadcast {
			row = 0
		}
	}
	data = make([]T, max(0, (rows-1)*row+(cols-1)*col+1))
	for i := range data {
		data[i] = T(math.NaN())
	}
	for i := range rows {
		for j := range cols {
			data[i*row+j*col] = T(r.NormFloat64())
		}
	}
	return data, row, col
}

// randomProduct returns a product with a C that is surrounded by guards, and
// the whole of C.
func randomProduct[T Float](r *rand.Rand, m, n, k int) (*Product[T], []T) {
	p := &Product[T]{M: m, N: n, K: k, Accumulate: r.IntN(2) == 0, Act: Activation(r.IntN(4))}
	p.A, p.ARow, p.ACol = operandData[T](r, m, k, true)
	p.B, p.BRow, p.BCol = operandData[T](r, k, n, true)
	p.CRow = n + r.IntN(20)
	const around = 64
	whole := make([]T, around+m*p.CRow+around)
	for i := range whole {
		whole[i] = guard
	}
	p.C = whole[around : around+m*p.CRow]
	if r.IntN(2) == 0 {
		p.Bias = make([]T, n)
		for j := range p.Bias {
			p.Bias[j] = T(r.NormFloat64())
		}
	}
	for i := range m {
		for j := range n {
			p.C[i*p.CRow+j] = T(math.NaN())
			if p.Accumulate {
				p.C[i*p.CRow+j] = T(r.NormFloat64())
			}
		}
	}
	return p, whole
}

// reference returns an element of p in float64, and the sum of the sizes of
// the terms.
func reference[T Float](p *Product[T], i, j int, old float64) (value, size float64) {
	size = 1
	for l := range p.K {
		x := float64(p.A[i*p.ARow+l*p.ACol]) * float64(p.B[l*p.BRow+j*p.BCol])
		value += x
		size += math.Abs(x)
	}
	if p.Accumulate {
		value += old
	}
	if p.Bias != nil {
		value += float64(p.Bias[j])
	}
	switch p.Act {
	case ActReLU:
		value = max(0, value)
	case ActGELU:
		value = value / 2 * math.Erfc(-value/math.Sqrt2)
	case ActGELUTanh:
		value = value / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(value+0.044715*value*value*value)))
	}
	return value, size
}

// expected returns all elements of p before it is computed, and how far each
// may be off.
func expected[T Float](p *Product[T]) (want, tolerance []float64) {
	// An error of half a unit per step of k is the worst, for rounding up at
	// each; slopes of the activations are below 1.13.
	eps := math.Ldexp(float64(p.K)/8+4, -24)
	if _, ok := any(T(0)).(float64); ok {
		eps = math.Ldexp(float64(p.K)/8+4, -52)
	}
	for i := range p.M {
		for j := range p.N {
			value, size := reference(p, i, j, float64(p.C[i*p.CRow+j]))
			want, tolerance = append(want, value), append(tolerance, 1.2*eps*(size+1))
		}
	}
	return want, tolerance
}

// verify computes a random product in every way and compares it with the
// reference. It checks that nothing else was written.
func verify[T Float](t *testing.T, r *rand.Rand, m, n, k int) {
	t.Helper()
	p, whole := randomProduct[T](r, m, n, k)
	before := append([]T(nil), whole...)
	want, tolerance := expected(p)
	everyLevel(func(name string) {
		copy(whole, before)
		Gemm(p)
		for i := range m {
			for j := range n {
				at := i*p.CRow + j
				if got := float64(p.C[at]); !(math.Abs(got-want[i*n+j]) <= tolerance[i*n+j]) {
					t.Fatalf("%s, %d×%d×%d, A %d %d, B %d %d, accumulate %v, bias %v, activation %d: C[%d,%d] = %v, want %v",
						name, m, n, k, p.ARow, p.ACol, p.BRow, p.BCol, p.Accumulate, p.Bias != nil, p.Act, i, j, got, want[i*n+j])
				}
				p.C[at] = guard
			}
		}
		for i, v := range whole {
			if v != guard {
				t.Fatalf("%s, %d×%d×%d: wrote %v at %d of %d, outside of C", name, m, n, k, v, i, len(whole))
			}
		}
	})
}

// sizes calls f with sizes that hit every height and width of tile, slices of
// k and blocks, few rows by whole vectors of columns, primes, and random ones.
func sizes(r *rand.Rand, f func(m, n, k int)) {
	for i := range 51 {
		f(i, r.IntN(70), r.IntN(40))
		f(r.IntN(30), i, r.IntN(40))
		f(r.IntN(30), r.IntN(70), i)
		f(1, i, r.IntN(300))
		f(i, 1, r.IntN(300))
	}
	for range 12 {
		f(1+r.IntN(120), 1+r.IntN(300), r.IntN(700))
	}
	for range 24 {
		f(1+r.IntN(64), 8*(8+r.IntN(34)), 1+r.IntN(900))
	}
	f(0, 0, 0)
	f(127, 257, 131)
	f(521, 19, 1031)
	f(37, 523, 67)
	f(17, 33, 2053)
	f(1, 2300, 129)
	f(2300, 1, 129)
	f(2063, 7, 5)
	f(1, 5, 40009)
	f(5, 1, 40009)
}

func TestGemm(t *testing.T) {
	r := seeded(t, 1)
	sizes(r, func(m, n, k int) { verify[float32](t, r, m, n, k) })
}

func TestGemmFloat64(t *testing.T) {
	r := seeded(t, 2)
	sizes(r, func(m, n, k int) {
		if m*n*k < 1<<20 || m <= 64 && n%8 == 0 {
			verify[float64](t, r, m, n, k)
		}
	})
}

// bitsOf returns the results of products of many sizes on one level.
func bitsOf(seed uint64) []uint64 {
	return append(bitsIn[float32](seed), bitsIn[float64](seed)...)
}

func bitsIn[T Float](seed uint64) []uint64 {
	r := rand.New(rand.NewPCG(seed, 1))
	var bits []uint64
	for _, s := range [][3]int{{140, 110, 130}, {1, 1500, 400}, {1500, 1, 400}, {30, 600, 64}, {20, 65, 1100}, {7, 9, 11}} {
		p, _ := randomProduct[T](r, s[0], s[1], s[2])
		Gemm(p)
		for _, v := range p.C {
			bits = append(bits, math.Float64bits(float64(v)))
		}
	}
	for _, columns := range []bool{false, true} {
		p := lying[T](r, 33, 264, 900, columns)
		Gemm(p)
		for _, v := range p.C {
			bits = append(bits, math.Float64bits(float64(v)))
		}
	}
	return bits
}

// lying returns a product that is computed as its operands lie: the rows of B are apart, the columns of A adjacent, or its rows.
func lying[T Float](r *rand.Rand, m, n, k int, columns bool) *Product[T] {
	row := n + 16
	p := &Product[T]{M: m, N: n, K: k, A: make([]T, m*k), ARow: k, ACol: 1, B: make([]T, k*row), BRow: row, BCol: 1, C: make([]T, m*n), CRow: n}
	if columns {
		p.ARow, p.ACol = 1, m
	}
	for _, x := range [][]T{p.A, p.B} {
		for i := range x {
			x[i] = T(r.NormFloat64())
		}
	}
	return p
}

func TestBitsDoNotDependOnThreads(t *testing.T) {
	defer par.SetThreads(par.Threads())
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for seed := range uint64(2) {
			par.SetThreads(1)
			one := bitsOf(seed)
			par.SetThreads(2)
			for i, b := range bitsOf(seed) {
				if b != one[i] {
					t.Fatalf("level %v, seed %d: element %d is %#x with one thread, %#x with two", l, seed, i, one[i], b)
				}
			}
		}
		restore()
	}
}

// TestConcurrentCallers runs products from several goroutines at once.
func TestConcurrentCallers(t *testing.T) {
	everyLevel(func(name string) {
		want := bitsOf(9)
		var w sync.WaitGroup
		for range 3 {
			w.Go(func() {
				if !slices.Equal(bitsOf(9), want) {
					t.Errorf("%s: other bits beside other callers", name)
				}
			})
		}
		w.Wait()
	})
}

// TestBatch compares a batch with its products one by one, bit for bit.
func TestBatch(t *testing.T) {
	t.Run("float32", testBatch[float32])
	t.Run("float64", testBatch[float64])
}

func testBatch[T Float](t *testing.T) {
	r := seeded(t, 3)
	everyLevel(func(name string) {
		for _, s := range [][3]int{{5, 7, 3}, {64, 64, 32}, {1, 40, 30}, {40, 1, 30}, {33, 100, 70}, {0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {200, 200, 120}} {
			one, _ := randomProduct[T](r, s[0], s[1], s[2])
			batch := []BatchDim{{3, len(one.A) + 5, 0, 0}, {2, 0, len(one.B), 0}}
			batch[1].C = len(one.C) + 1
			batch[0].C = 2 * batch[1].C
			p := *one
			fill := func(n int) []T {
				x := make([]T, n)
				for i := range x {
					x[i] = T(r.NormFloat64())
				}
				return x
			}
			p.A, p.B, p.C = fill(3*batch[0].A), fill(2*batch[1].B), fill(3*batch[0].C)
			want := append([]T(nil), p.C...)
			for i := range 3 {
				for j := range 2 {
					q := p
					q.A, q.B, q.C = p.A[i*batch[0].A:], p.B[j*batch[1].B:], want[i*batch[0].C+j*batch[1].C:]
					Gemm(&q)
				}
			}
			GemmBatch(&p, batch)
			for i, v := range p.C {
				if math.Float64bits(float64(v)) != math.Float64bits(float64(want[i])) {
					t.Fatalf("%s, %v: element %d is %v in a batch, %v alone", name, s, i, v, want[i])
				}
			}
		}
		GemmBatch(&Product[T]{M: 1, N: 1, K: 1}, []BatchDim{{}}) // a batch of none
	})
}

// TestNotFinite checks that NaN and infinity reach the elements that depend on
// them, and no others, through every activation.
func TestNotFinite(t *testing.T) {
	everyLevel(func(name string) {
		for _, s := range [][3]int{{3, 5, 4}, {1, 20, 9}, {20, 1, 9}, {30, 70, 33}, {65, 40, 40}} {
			for act := ActNone; act <= ActGELUTanh; act++ {
				p := notFinite(s[0], s[1], s[2], act)
				Gemm(&p)
				for i := range p.M {
					for j := range p.N {
						want := []float64{notFiniteSum(&p, i, j)}
						Activate(act, want)
						if got := float64(p.C[i*p.N+j]); !alike(got, want[0]) {
							t.Fatalf("%s, %v, activation %d: C[%d,%d] = %v, want %v", name, s, act, i, j, got, want[0])
						}
					}
				}
			}
		}
	})
}

// notFinite is a product of ones, but NaN in the first row of A, infinity in
// its last, and minus infinity in the last column of B.
func notFinite(m, n, k int, act Activation) Product[float32] {
	p := Product[float32]{M: m, N: n, K: k, A: make([]float32, m*k), ARow: k, ACol: 1, B: make([]float32, k*n), BRow: n, BCol: 1, C: make([]float32, m*n), CRow: n, Act: act}
	for i := range p.A {
		p.A[i] = 1
	}
	for i := range p.B {
		p.B[i] = 1
	}
	p.A[(m-1)*k] = float32(math.Inf(1))
	p.A[k-1] = float32(math.NaN())
	p.B[k*n-1] = float32(math.Inf(-1))
	return p
}

// notFiniteSum is what element (i, j) of it must be before the activation.
func notFiniteSum(p *Product[float32], i, j int) float64 {
	last := i == p.M-1
	switch {
	case i == 0 || last && j == p.N-1:
		return math.NaN()
	case last:
		return math.Inf(1)
	case j == p.N-1:
		return math.Inf(-1)
	}
	return float64(p.K)
}

// alike compares values that may be infinite or NaN.
func alike(x, y float64) bool {
	return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-3
}

func TestActivateNotFinite(t *testing.T) {
	for act := ActNone; act <= ActGELUTanh; act++ {
		x := []float32{float32(math.NaN()), float32(math.Inf(1)), -100, 0}
		Activate(act, x)
		if x[0] == x[0] || !math.IsInf(float64(x[1]), 1) || act != ActNone && x[2] != 0 || x[3] != 0 {
			t.Errorf("activation %d: %v", act, x)
		}
	}
}

func TestBadProducts(t *testing.T) {
	good := func() Product[float32] {
		return Product[float32]{M: 2, N: 3, K: 4, A: make([]float32, 8), ARow: 4, ACol: 1, B: make([]float32, 12), BRow: 3, BCol: 1, C: make([]float32, 6), CRow: 3}
	}
	p := good()
	Gemm(&p)
	for want, spoil := range map[string]func(p *Product[float32]) []BatchDim{
		"A is":    func(p *Product[float32]) []BatchDim { p.A = p.A[:7]; return nil },
		"B is":    func(p *Product[float32]) []BatchDim { p.BRow = 4; return nil },
		"C is":    func(p *Product[float32]) []BatchDim { p.C = p.C[:5]; return nil },
		"A is -1": func(p *Product[float32]) []BatchDim { p.M = -1; return nil },
		"apart":   func(p *Product[float32]) []BatchDim { p.CRow = 2; return nil },
		"bias":    func(p *Product[float32]) []BatchDim { p.Bias = make([]float32, 2); return nil },
		"from 1":  func(p *Product[float32]) []BatchDim { return []BatchDim{{2, 1, 0, 0}} },
		"batch":   func(p *Product[float32]) []BatchDim { return []BatchDim{{-1, 0, 0, 0}} },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), want) {
					t.Errorf("%q: panic %v", want, v)
				}
			}()
			p := good()
			GemmBatch(&p, spoil(&p))
		}()
	}
}

func TestNoAllocations(t *testing.T) {
	if !hasAssembly() {
		return // Go's loops are shared by functions made for each call
	}
	defer par.SetThreads(par.Threads())
	par.SetThreads(2)
	noAllocations[float32](t)
	noAllocations[float64](t)
}

func noAllocations[T Float](t *testing.T) {
	x, c := make([]T, 128*128), make([]T, 128*128)
	for _, n := range []int{4, 64, 128} {
		count := testing.AllocsPerRun(50, func() {
			p := Product[T]{M: n, N: n, K: n, A: x, ARow: n, ACol: 1, B: x, BRow: n, BCol: 1, C: c, CRow: n}
			Gemm(&p)
			GemmBatch(&p, []BatchDim{{1, 0, 0, 0}})
		})
		if count != 0 {
			t.Errorf("%v allocations in a product of %d", count, n)
		}
	}
}

func hasAssembly() bool { return len(cpufeat.Levels()) > 1 }
