package digits

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

const pixels = side * side

// golden is the SHA-256 of the labels and levels of the first 1,000 samples of
// seed 1. Every platform must reproduce it: a data set is named by its seed.
const golden = "839d6b041967aecaed6c9077d06ab8c5f8f5075e8f59aa469695c6d3c43b306c"

func TestGolden(t *testing.T) {
	h := sha256.New()
	var dst [pixels]float32
	for i := range 1000 {
		h.Write([]byte{Draw(dst[:], 1, i)})
		for _, v := range dst {
			h.Write([]byte{byte(v*255 + 0.5)})
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != golden {
		t.Errorf("hash of 1000 samples is %s, want %s", got, golden)
	}
}

func TestPureFunctionOfSeedAndIndex(t *testing.T) {
	first, again := make([]float32, pixels), make([]float32, pixels)
	label := Draw(first, 3, 5)
	for k := range again {
		again[k] = 7 // what dst held must not show
	}
	Draw(again, 9, 1)
	if got := Draw(again, 3, 5); got != label || !slices.Equal(first, again) {
		t.Errorf("Draw(3, 5) gave %d, then %d or another picture", label, got)
	}
	for _, other := range []struct {
		seed uint64
		i    int
	}{{3, 6}, {4, 5}, {5, 3}, {3, -5}, {math.MaxUint64, math.MaxInt}} {
		Draw(again, other.seed, other.i)
		if slices.Equal(first, again) {
			t.Errorf("seed %d, sample %d is the picture of seed 3, sample 5", other.seed, other.i)
		}
	}
}

func TestLabelsUniform(t *testing.T) {
	const n = 20000
	var count, same [10]int
	var dst [pixels]float32
	last := uint8(0)
	for i := range n {
		label := Draw(dst[:], 11, i)
		count[label]++
		if label == last {
			same[label]++
		}
		last = label
	}
	chi2, repeats := 0.0, 0
	for k := range count {
		d := float64(count[k]) - n/10
		chi2 += d * d / (n / 10)
		repeats += same[k]
	}
	if chi2 > 27.88 { // 9 degrees of freedom, p = 0.001
		t.Errorf("labels %v: chi-square %.1f", count, chi2)
	}
	if math.Abs(float64(repeats)-n/10) > 4*math.Sqrt(n*0.09) {
		t.Errorf("%d of %d labels repeat the one before, want about a tenth", repeats, n)
	}
}

// TestPictures checks what MNIST's preparation promises of each picture.
func TestPictures(t *testing.T) {
	const n = 5000
	var meanX, meanY float64
	dst := make([]float32, pixels)
	for i := range n {
		label := Draw(dst, 12, i)
		var mass, x, y float64
		inked := 0
		for k, v := range dst {
			if level := v * 255; v < 0 || v > 1 || level != float32(math.Round(float64(level))) {
				t.Fatalf("sample %d: pixel %d is %v, not a level of 255", i, k, v)
			}
			if v > 0.5 {
				inked++
			}
			mass += float64(v)
			x += float64(v) * (float64(k%side) + 0.5)
			y += float64(v) * (float64(k/side) + 0.5)
		}
		if inked < 12 || inked > 330 {
			t.Errorf("sample %d, a %d: %d pixels inked", i, label, inked)
		}
		if max(math.Abs(x/mass-14), math.Abs(y/mass-14)) > 6 {
			t.Errorf("sample %d, a %d: centre of mass at %.1f, %.1f", i, label, x/mass, y/mass)
		}
		meanX += x / mass / n
		meanY += y / mass / n
	}
	if math.Abs(meanX-14) > 0.2 || math.Abs(meanY-14) > 0.2 {
		t.Errorf("mean centre of mass at %.2f, %.2f, want 14, 14", meanX, meanY)
	}
}

// TestLabelsNamePictures classifies by the nearest mean picture, a weak
// classifier that a set with wrong labels or shapeless digits would defeat.
func TestLabelsNamePictures(t *testing.T) {
	var mean [10][pixels]float64
	var count [10]float64
	dst := make([]float32, pixels)
	for i := range 5000 {
		label := Draw(dst, 13, i)
		count[label]++
		for k, v := range dst {
			mean[label][k] += float64(v)
		}
	}
	nearest := func() (best uint8) {
		least := math.Inf(1)
		for c := range mean {
			d := 0.0
			for k, v := range dst {
				e := mean[c][k]/count[c] - float64(v)
				d += e * e
			}
			if d < least {
				best, least = uint8(c), d
			}
		}
		return best
	}
	right := 0
	for i := range 1000 {
		if Draw(dst, 14, i) == nearest() {
			right++
		}
	}
	if right < 550 {
		t.Errorf("the nearest mean picture names %d of 1000 digits, want 550 or more", right)
	}
}

func TestConcurrent(t *testing.T) {
	const n, workers = 200, 4
	want := make([]float32, n*pixels)
	for i := range n {
		Draw(want[i*pixels:], 15, i)
	}
	got := make([]float32, n*pixels)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				Draw(got[i*pixels:], 15, i)
			}
		})
	}
	wg.Wait()
	if !slices.Equal(got, want) {
		t.Error("pictures drawn by four goroutines differ from those drawn by one")
	}
}

func TestNoAllocation(t *testing.T) {
	dst := make([]float32, pixels)
	i := 0
	if a := testing.AllocsPerRun(500, func() { Draw(dst, 1, i); i++ }); a != 0 {
		t.Errorf("%v allocations a sample, want none", a)
	}
}

func ExampleDraw() {
	picture := make([]float32, 28*28)
	fmt.Println("a", Draw(picture, 1, 4))
	for row := range slices.Chunk(picture, 28) {
		var line strings.Builder
		for _, v := range row {
			line.WriteByte(" .:-=+*#%@"[int(v*9.99)])
		}
		fmt.Println("|" + line.String() + "|")
	}
	// Output:
	// a 5
	// |                            |
	// |                            |
	// |                            |
	// |                            |
	// |                   .-+#-    |
	// |           :+**##@@@@@@+    |
	// |         -%@@@@@@@%#+-.     |
	// |        -@@@=...            |
	// |        %@@*                |
	// |        #@@@:               |
	// |        :@@@%.              |
	// |         :@@@%.             |
	// |          .%@@@:            |
	// |           .%@@@=           |
	// |             *@@@=          |
	// |              %@@%          |
	// |             .@@@*          |
	// |             +@@@=          |
	// |            :@@@%           |
	// |    -=      %@@@:           |
	// |   .@@@=   #@@@=            |
	// |    #@@@@+#@@@+             |
	// |     :#@@@@@@+              |
	// |       .-+#*.               |
	// |                            |
	// |                            |
	// |                            |
	// |                            |
}

func BenchmarkDraw(b *testing.B) {
	dst := make([]float32, pixels)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Draw(dst, 1, i)
	}
}
