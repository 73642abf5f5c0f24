package rng

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// Random123's kat_vectors, philox4x32 with 10 rounds.
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		var got [4]uint32
		got[0], got[1], got[2], got[3] = philox(c.counter[0], c.counter[1], c.counter[2], c.counter[3], c.key[0], c.key[1])
		if got != c.want {
			t.Errorf("philox(%08x, %08x) = %08x, want %08x", c.counter, c.key, got, c.want)
		}
	}
	if got, want := Uint32x4(0, 0), [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}; got != want {
		t.Errorf("Uint32x4(0, 0) = %08x, want %08x", got, want)
	}
}

// These figures are in checkpoints' and runs' meaning: a change of them is a change of format.
func TestStable(t *testing.T) {
	normal, normal64 := make([]float32, 4), make([]float64, 2)
	FillNormal32(normal, 42, 0, 0, 1)
	FillNormal64(normal64, 42, 0, 0, 1)
	s := Stream{Key: 42}
	got := fmt.Sprintf("%016x %016x %x %x %d %016x %v", uint64(Fold(0, 0)), uint64(Fold(7, 1<<40)), normal, normal64,
		s.IntN(1e9), s.Uint64(), Perm(8, 42))
	const want = `f08d6eaa844515e1 260dd53c86d6c833 [-0x1.f0bcb8p-01 0x1.8d59dp-03 -0x1.3c51a4p+00 0x1.ec8676p+00] [-0x1.54ac03c1a032cp-01 0x1.0938db380d762p+00] ` +
		"520238423 e22cac8b8fe60f5c [0 2 5 3 6 1 4 7]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestUsesOfAKeyDiffer(t *testing.T) {
	s := Stream{Key: 5}
	r := Uint32x4(5, 0)
	first := join(r[0], r[1])
	if fold, draw := uint64(Fold(5, 0)), s.Uint64(); fold == first || draw == first || fold == draw {
		t.Errorf("element %x, folded key %x and stream %x must differ", first, fold, draw)
	}
}

// Flipping one bit of the key or of the index flips half of the derived key's bits.
func TestFoldAvalanche(t *testing.T) {
	var flips [2][64]int
	const trials = 400
	for i := range uint64(trials) {
		key, index := Key(i*0x9e3779b97f4a7c15), i
		base := Fold(key, index)
		for bit := range 64 {
			flips[0][bit] += bits.OnesCount64(uint64(base ^ Fold(key^1<<bit, index)))
			flips[1][bit] += bits.OnesCount64(uint64(base ^ Fold(key, index^1<<bit)))
		}
	}
	for side := range flips {
		for bit, n := range flips[side] {
			mean := float64(n) / trials
			if math.Abs(mean-32) > 5*4/math.Sqrt(trials) {
				t.Errorf("input %d, bit %d: %.2f of 64 bits flip on average", side, bit, mean)
			}
		}
	}
}

func TestFoldOrderMatters(t *testing.T) {
	seen := make(map[Key][2]uint64)
	for a := range uint64(64) {
		for b := range uint64(64) {
			k := Fold(Fold(1, a), b)
			if other, ok := seen[k]; ok {
				t.Fatalf("paths %v and %v share a key", other, [2]uint64{a, b})
			}
			seen[k] = [2]uint64{a, b}
		}
	}
}

// fills are all forms over a common type.
var fills = map[string]func(dst []float64, key Key, start uint64){
	"uniform32": with(func(d []float32, k Key, s uint64) { FillUniform32(d, k, s, -2, 3) }),
	"uniform64": with(func(d []float64, k Key, s uint64) { FillUniform64(d, k, s, -2, 3) }),
	"normal32":  with(func(d []float32, k Key, s uint64) { FillNormal32(d, k, s, 1, 2) }),
	"normal64":  with(func(d []float64, k Key, s uint64) { FillNormal64(d, k, s, 1, 2) }),
	"ints64":    with(func(d []int64, k Key, s uint64) { FillInts(d, k, s, -7, 1000) }),
	"ints32":    with(func(d []int32, k Key, s uint64) { FillInts(d, k, s, -7, 1000) }),
	"bytes":     with(func(d []uint8, k Key, s uint64) { FillInts(d, k, s, 3, 250) }),
}

func with[T float32 | float64 | int64 | int32 | uint8](fill func([]T, Key, uint64)) func([]float64, Key, uint64) {
	return func(dst []float64, key Key, start uint64) {
		guarded := make([]T, len(dst)+1)
		guarded[len(dst)] = 77
		fill(guarded[:len(dst)], key, start)
		if guarded[len(dst)] != 77 {
			panic("wrote beyond the slice")
		}
		for i := range dst {
			dst[i] = float64(guarded[i])
		}
	}
}

// TestLevelsAgree: what processors have instructions for is to the bit what Go makes, or no number in both, for any length, start,
// range and deviation.
func TestLevelsAgree(t *testing.T) {
	r := testutil.Rand(t)
	inf, none := float32(math.Inf(1)), float32(math.NaN())
	zero, negative := float32(0), float32(math.Copysign(0, -1))
	odd := []float32{zero, negative, 1, -1, 1e-45, -1e-45, 3e38, -3e38, inf, -inf, none}
	some := func() float32 {
		if r.IntN(3) == 0 {
			return odd[r.IntN(len(odd))]
		}
		return float32(math.Ldexp(r.NormFloat64(), r.IntN(60)-30))
	}
	var rows [][2]float32
	for _, a := range odd {
		for _, b := range odd {
			rows = append(rows, [2]float32{a, b})
		}
	}
	for range 300 {
		rows = append(rows, [2]float32{some(), some()})
	}
	if levels := cpufeat.Levels(); runtime.GOARCH == "amd64" && len(levels) > 1 {
		restore := cpufeat.Set(levels[1])
		if _, _, turns := sixteens(99, 1); turns != 6 {
			t.Errorf("assembly makes %d sixteens of 99 numbers from the second on", turns)
		}
		restore()
	}
	for name, fill := range map[string]func(dst []float32, key Key, start uint64, a, b float32){"uniform": FillUniform32, "normal": FillNormal32} {
		for i, row := range rows {
			n := r.IntN(100)
			if i%100 == 0 {
				n = 1<<18 + r.IntN(16)
			}
			key, start := Key(r.Uint64()), r.Uint64()>>r.IntN(64)
			bits := func(level cpufeat.Level) []uint32 {
				defer cpufeat.Set(level)()
				dst := make([]float32, n+1)
				dst[n] = 77
				fill(dst[:n], key, start, row[0], row[1])
				all := make([]uint32, n+1)
				for i, v := range dst {
					if all[i] = math.Float32bits(v); v != v {
						all[i] = math.Float32bits(none)
					}
				}
				return all
			}
			want := bits(cpufeat.Generic)
			for _, level := range cpufeat.Levels() {
				if !slices.Equal(bits(level), want) {
					t.Fatalf("%s: %d elements from %d of %d with %v on %v are others than in Go", name, n, start, key, row, level)
				}
			}
		}
	}
}

func TestPartitionDoesNotMatter(t *testing.T) {
	r := testutil.Rand(t)
	for name, fill := range fills {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 31, 257} {
			for _, start := range []uint64{0, 1, 2, 3, 4, 5, 1<<34 - 3} {
				whole := make([]float64, n)
				fill(whole, 9, start)
				for range 3 {
					parts := make([]float64, n)
					for at := 0; at < n; {
						end := at + 1 + r.IntN(n-at)
						fill(parts[at:end], 9, start+uint64(at))
						at = end
					}
					if !slices.Equal(whole, parts) {
						t.Fatalf("%s: %d elements from %d depend on the partition", name, n, start)
					}
				}
			}
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	for name, fill := range fills {
		a, b := make([]float64, 64), make([]float64, 64)
		fill(a, 1, 0)
		fill(b, 2, 0)
		if slices.Equal(a, b) {
			t.Errorf("%s: keys 1 and 2 draw the same", name)
		}
	}
}

// moments checks mean, variance, skewness and excess kurtosis within five standard
// errors (those of the skewness and kurtosis for about normal tails).
func TestMoments(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		name               string
		mean, std          float64
		skewness, kurtosis float64
	}{
		{"uniform32", 0.5, 5 / math.Sqrt(12), 0, -1.2},
		{"uniform64", 0.5, 5 / math.Sqrt(12), 0, -1.2},
		{"normal32", 1, 2, 0, 0},
		{"normal64", 1, 2, 0, 0},
		{"ints64", 496, math.Sqrt((1007*1007 - 1) / 12.0), 0, -1.2},
		{"bytes", 126, math.Sqrt((247*247 - 1) / 12.0), 0, -1.2},
	} {
		x := make([]float64, n)
		fills[c.name](x, 2024, 0)
		var m [5]float64
		for _, v := range x {
			z := (v - c.mean) / c.std
			for p, power := 1, z; p < 5; p, power = p+1, power*z {
				m[p] += power / n
			}
		}
		for p, want := range [5]float64{0, 0, 1, c.skewness, 3 + c.kurtosis} {
			limit := 5 * []float64{0, 1, math.Sqrt2, math.Sqrt(15), math.Sqrt(96)}[p] / math.Sqrt(n)
			if p > 0 && math.Abs(m[p]-want) > limit {
				t.Errorf("%s: moment %d is %.4f, want %.4f ± %.4f", c.name, p, m[p], want, limit)
			}
		}
	}
}

// chiSquare fails if counts over equally likely bins are too uneven, or too even:
// beyond 5 standard deviations of the statistic.
func chiSquare(t *testing.T, name string, counts []int) {
	t.Helper()
	total := 0
	for _, c := range counts {
		total += c
	}
	expected := float64(total) / float64(len(counts))
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	free := float64(len(counts) - 1)
	if math.Abs(chi-free) > 5*math.Sqrt(2*free) {
		t.Errorf("%s: chi-square %.1f with %g degrees of freedom", name, chi, free)
	}
}

func TestChiSquare(t *testing.T) {
	const n, bins = 200_000, 512
	for name, cdf := range map[string]func(x float64) float64{
		"uniform32": func(x float64) float64 { return (x + 2) / 5 },
		"uniform64": func(x float64) float64 { return (x + 2) / 5 },
		"normal32":  func(x float64) float64 { return math.Erfc(-(x-1)/2/math.Sqrt2) / 2 },
		"normal64":  func(x float64) float64 { return math.Erfc(-(x-1)/2/math.Sqrt2) / 2 },
		"ints64":    func(x float64) float64 { return (x + 7) / 1007 },
	} {
		x := make([]float64, n)
		fills[name](x, 77, 0)
		buckets := bins
		if name == "ints64" {
			buckets = 1007
		}
		counts, pairs := make([]int, buckets), make([]int, 32*32)
		for i, v := range x {
			p := cdf(v)
			counts[min(int(p*float64(buckets)+1e-9), buckets-1)]++
			if i%2 == 1 { // neighbours, in one block
				pairs[int(cdf(x[i-1])*31.999999)*32+int(p*31.999999)]++
			}
		}
		chiSquare(t, name, counts)
		if name != "ints64" {
			chiSquare(t, name+" pairs", pairs)
		}
	}
}

// Corresponding elements of sibling keys are independent.
func TestSiblingKeys(t *testing.T) {
	counts := make([]int, 32*32)
	a, b := make([]float64, 64), make([]float64, 64)
	for i := range uint64(1000) {
		FillUniform64(a, Fold(1, i), 0, 0, 32)
		FillUniform64(b, Fold(1, i+1), 0, 0, 32)
		for j := range a {
			counts[int(a[j])*32+int(b[j])]++
		}
	}
	chiSquare(t, "siblings", counts)
}

func TestUniformStaysInside(t *testing.T) {
	var x [4096]float32
	for _, c := range []struct{ lo, hi float32 }{{0, 1}, {1, math.Nextafter32(1, 2)}, {16777215, 16777216}, {-1e-45, 0}, {5, 5}} {
		FillUniform32(x[:], 1, 0, c.lo, c.hi)
		for _, v := range x {
			if v < c.lo || v > c.hi || v == c.hi && c.lo < c.hi {
				t.Fatalf("%v outside [%v, %v)", v, c.lo, c.hi)
			}
		}
	}
	FillUniform32(x[:], 1, 0, 0, 1)
	for _, v := range x {
		if s := v * (1 << 24); s != float32(math.Trunc(float64(s))) {
			t.Fatalf("%v is no multiple of 2⁻²⁴", v)
		}
	}
}

func TestIntsLimits(t *testing.T) {
	x := make([]int64, 1000)
	FillInts(x, 1, 0, math.MinInt64, math.MaxInt64)
	if low, high := slices.Min(x), slices.Max(x); low > -9e18 || high < 9e18 {
		t.Errorf("the whole range gives [%d, %d]", low, high)
	}
	FillInts(x, 1, 0, 4, 4)
	if slices.Min(x) != 4 || slices.Max(x) != 4 {
		t.Error("an empty range must give lo")
	}
	FillInts(x, 1, 0, -2, 1)
	if slices.Min(x) != -2 || slices.Max(x) != 0 {
		t.Errorf("[-2, 1) gives [%d, %d]", slices.Min(x), slices.Max(x))
	}
}

func TestLogAndSincos(t *testing.T) {
	r := testutil.Rand(t)
	for _, u := range []float64{1, 0.5, 0.25, math.Sqrt2 / 2, math.Nextafter(math.Sqrt2/2, 0), 0x1p-54, 0x1p-33, math.Nextafter(1, 0)} {
		checkLog(t, u)
	}
	for range 100_000 {
		checkLog(t, math.Ldexp(0.5+r.Float64()/2, -r.IntN(54)))
		checkSincos(t, r.Uint64()>>11<<11)
	}
	for eighth := range uint64(8) {
		for _, d := range []int64{-1 << 11, 0, 1 << 11} {
			checkSincos(t, eighth<<61+uint64(d))
		}
	}
}

func checkLog(t *testing.T, u float64) {
	t.Helper()
	got, want := logUnit(u), math.Log(u)
	if math.Abs(got-want) > 0x1p-51*math.Abs(want) {
		t.Fatalf("ln %v = %v, want %v", u, got, want)
	}
}

func checkSincos(t *testing.T, turn uint64) {
	t.Helper()
	sin, cos := sincosTurn(turn)
	wantSin, wantCos := math.Sincos(2 * math.Pi * (float64(int64(turn)) * 0x1p-64)) // within half a turn
	if math.Abs(sin-wantSin) > 0x1p-50 || math.Abs(cos-wantCos) > 0x1p-50 {
		t.Fatalf("%#x: sin %v cos %v, want %v %v", turn, sin, cos, wantSin, wantCos)
	}
}

func TestPerm(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 2, 3, 10, 1009} {
		p := Perm(n, 5)
		if !slices.Equal(p, Perm(n, 5)) {
			t.Fatalf("Perm(%d) differs from itself", n)
		}
		sorted := slices.Clone(p)
		sort.Ints(sorted)
		for i, v := range sorted {
			if v != i {
				t.Fatalf("Perm(%d) is no permutation: %v", n, p)
			}
		}
		if len(p) != max(n, 0) {
			t.Fatalf("Perm(%d) has %d elements", n, len(p))
		}
	}
	counts := make(map[string]int)
	for k := range Key(24_000) {
		counts[fmt.Sprint(Perm(4, k))]++
	}
	all := make([]int, 0, 24)
	for _, c := range counts {
		all = append(all, c)
	}
	if len(all) != 24 {
		t.Fatalf("%d of 24 permutations appear", len(all))
	}
	chiSquare(t, "perm", all)
}

func TestStream(t *testing.T) {
	s := Stream{Key: 6}
	copied := s
	counts := make([]int, 100)
	var sum, squares float64
	const n = 50_000
	for range n {
		counts[s.IntN(100)]++
		if u := s.Float64(); u < 0 || u >= 1 {
			t.Fatalf("Float64 gives %v", u)
		}
		z := s.Norm()
		sum += z
		squares += z * z
	}
	chiSquare(t, "IntN", counts)
	if math.Abs(sum) > 5*math.Sqrt(n) || math.Abs(squares-n) > 5*math.Sqrt(2*n) {
		t.Errorf("Norm has mean %v and mean square %v", sum/n, squares/n)
	}
	if s.IntN(0) != 0 || s.IntN(-4) != 0 || s.IntN(1) != 0 {
		t.Error("IntN of less than two values must be 0")
	}
	resumed := Stream{Key: s.Key, Counter: s.Counter}
	if a, b := s.Uint64(), resumed.Uint64(); a != b {
		t.Errorf("resumed stream draws %x, want %x", b, a)
	}
	if a, b := copied.Uint64(), (&Stream{Key: 6}).Uint64(); a != b {
		t.Errorf("a copy draws %x, want %x", a, b)
	}
	var _ rand.Source = &s
}

func benchmark[T any](b *testing.B, fill func(dst []T)) {
	dst := make([]T, 4096)
	for b.Loop() {
		fill(dst)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/element")
}

func BenchmarkFillUniform32(b *testing.B) {
	benchmark(b, func(d []float32) { FillUniform32(d, 1, 0, 0, 1) })
}

func BenchmarkFillUniform64(b *testing.B) {
	benchmark(b, func(d []float64) { FillUniform64(d, 1, 0, 0, 1) })
}

func BenchmarkFillNormal32(b *testing.B) {
	benchmark(b, func(d []float32) { FillNormal32(d, 1, 0, 0, 1) })
}

func BenchmarkFillNormal64(b *testing.B) {
	benchmark(b, func(d []float64) { FillNormal64(d, 1, 0, 0, 1) })
}

func BenchmarkFillInts(b *testing.B) {
	benchmark(b, func(d []int64) { FillInts(d, 1, 0, 0, 1000) })
}

func BenchmarkStreamUint64(b *testing.B) {
	s := Stream{Key: 1}
	for b.Loop() {
		s.Uint64()
	}
}

func BenchmarkFold(b *testing.B) {
	k := Key(1)
	for b.Loop() {
		k = Fold(k, 3)
	}
}
