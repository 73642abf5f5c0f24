package simrun

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/testutil"
)

const examples = "../../examples/sim"

// TestExamplesAreBuilt: the PTX of the examples was made from the sources beside it.
func TestExamplesAreBuilt(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(examples, "build.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile(filepath.Join(examples, name))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))) != sum {
			t.Errorf("%s was changed: build.sh makes all of them again", name)
		}
		named++
	}
	if sources, err := filepath.Glob(filepath.Join(examples, "*.cu")); err != nil || named != 1+2*len(sources) {
		t.Errorf("%d files are named, %d sources are there (%v)", named, len(sources), err)
	}
}

// TestWordsAreTheCallers: what is found inside a word of cuda.h is of the line that uses it, here a shuffle in half a warp.
func TestWordsAreTheCallers(t *testing.T) {
	r, err := Run(t.Context(), Config{File: filepath.Join(examples, "tour.ptx"), Kernel: "dot", Block: "48", Args: []string{"f32[192]=1", "f32[192]=1", "f32[1]=0", "i32:48"}})
	if err != nil || r.Found == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	if f := r.Findings[0]; f.SourceText != "v += __shfl_down_sync(~0u, v, o);" {
		t.Errorf("%s: %s", f.Source, f.SourceText)
	}
}

// tourist runs kernels of tour.ptx under all checks, in several orders.
type tourist struct {
	*testing.T
	dir string
}

// run returns argument out as it is after the kernel, the numbers of 4 bytes as floats.
func (t tourist) run(c Config, out int) []float32 {
	t.Helper()
	name := filepath.Join(t.dir, "out.npy")
	c.File, c.Outs = filepath.Join(examples, "tour.ptx"), []string{fmt.Sprintf("%d=%s", out, name)}
	var first []float32
	for _, order := range []Config{{}, {Seed: 5}, {Seed: 6, Schedule: "independent"}} {
		c.Seed, c.Schedule = order.Seed, order.Schedule
		r, err := Run(t.Context(), c)
		if err != nil || r.Found > 0 {
			t.Fatalf("%s with seed %d: %v, %+v", c.Kernel, c.Seed, err, r)
		}
		if want := "thread 3 of block 0 has -0.5 and 0.000: done\n"; c.Kernel == "functions" && r.Output != want {
			t.Errorf("it prints %q, want %q", r.Output, want)
		}
		first = t.numbers(name)
	}
	return first
}

func (t tourist) numbers(name string) (out []float32) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for b := range slices.Chunk(a.Data, 4) {
		v := binary.LittleEndian.Uint32(b)
		if a.DType == "<f4" {
			out = append(out, math.Float32frombits(v))
		} else {
			out = append(out, float32(v))
		}
	}
	return out
}

// save writes numbers to a file and returns the word for it.
func (t tourist) save(name, dtype string, data any) string {
	t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	size := int(dtype[2] - '0')
	if err := npy.Write(&b, &npy.Array{DType: dtype, Shape: []int{len(raw) / size}, Data: raw}); err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.dir, name)
	write(t.T, name, b.String())
	return "@" + name
}

// near compares with sums in float64.
func (t tourist) near(what string, got []float32, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tol*max(1, math.Abs(w))) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], w)
		}
	}
}

func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// TestTour runs the kernels of examples/sim/tour.cu, which use the words of its cuda.h, against sums in Go.
func TestTour(t *testing.T) {
	rnd := testutil.Rand(t)
	r := tourist{t, t.TempDir()}
	x, y := normals(rnd, 4*301), normals(rnd, 4*301)
	var dot float64
	for i := range x {
		dot += float64(x[i]) * float64(y[i])
	}
	wx := r.save("x.npy", "<f4", x)
	r.near("dot", r.run(Config{Kernel: "dot", Grid: "3", Block: "96", Args: []string{wx, r.save("y.npy", "<f4", y), "f32[1]=0", "i32:301"}}, 2), []float64{dot}, 1e-4)

	bytes, bins := make([]uint8, 1000), make([]float64, 40)
	for i := range bytes {
		bytes[i] = uint8(rnd.IntN(len(bins)))
		bins[bytes[i]]++
	}
	r.near("histogram", r.run(Config{Kernel: "histogram", Grid: "3", Block: "64", Shared: 160,
		Args: []string{r.save("b.npy", "|u1", bytes), "u32[40]=0", "i32:1000", "i32:40"}}, 1), bins, 0)

	var positive []float32
	for _, v := range x[:1000] {
		if v > 0 {
			positive = append(positive, v)
		}
	}
	kept := r.run(Config{Kernel: "compact", Grid: "8", Block: "128", Args: []string{wx, "f32[1000]=0", "u32[1]=0", "i32:1000"}}, 1)
	slices.Sort(positive)
	slices.Sort(kept[:len(positive)])
	if !slices.Equal(kept[:len(positive)], positive) || slices.Max(kept[len(positive):]) != 0 {
		t.Error("compact keeps others")
	}

	rows, reversed := make([]float64, 128), make([]float64, 128)
	for i := range 128 {
		reversed[i] = float64(x[127-i])
		for row := range 9 {
			rows[i] += float64(x[row*128+127-i])
		}
	}
	r.near("staged", r.run(Config{Kernel: "staged", Block: "128", Args: []string{wx, "f32[128]", "i32:9"}}, 1), rows, 1e-5)
	r.near("exchange", r.run(Config{Kernel: "exchange", Block: "128", Args: []string{wx, "f32[128]"}}, 1), reversed, 0)
	r.functions()
	r.packed(rnd)
}

// functions compares what the words for numbers give with package math.
func (r tourist) functions() {
	v := make([]float32, 32)
	for i := range v {
		v[i] = float32(i-4) / 2
	}
	got := r.run(Config{Kernel: "functions", Block: "32", Args: []string{r.save("v.npy", "<f4", v), "f32[256]"}}, 1)
	table := []float64{1, 2, 4, 8}
	var want []float64
	for i := range v {
		x := float64(v[i])
		want = append(want, math.Exp(x), math.Log(math.Abs(x)+1), math.Sqrt(max(x, 0))+math.Floor(x), 2*x+1, x,
			table[i%4]*min(x, 1.5), math.Tanh(x), float64(v[i^1]))
	}
	r.near("functions", got, want, 1e-3)
	r.rounding()
}

// rounding compares what the words that round give with package math; the half between two numbers is among them.
func (r tourist) rounding() {
	v := make([]float32, 32)
	for i := range v {
		v[i] = float32(i-17)/4 + 0.25*float32(i/17) // without 0
	}
	got := r.run(Config{Kernel: "rounding", Block: "32", Args: []string{r.save("v.npy", "<f4", v), "f32[384]"}}, 1)
	var want []float64
	for i := range v {
		x := float64(v[i])
		want = append(want, math.Round(x), math.RoundToEven(x)+100*math.Floor(x), math.Trunc(x)+100*math.Ceil(x), x*x+1/x,
			x/3+math.Sqrt(math.Abs(x))+2*x+1, min(max(x, 0), 1)+math.Copysign(2, x), 31, float64(63-i+100*(i+1)), math.Erf(x), 2*x+4, 4*x+10, math.Pi)
	}
	r.near("rounding", got, want, 1e-6)
}

// packed compares the words for bits and for pairs of 16-bit floats.
func (r tourist) packed(rnd *rand.Rand) {
	x := make([]uint32, 96)
	for i := range x {
		x[i] = rnd.Uint32()
	}
	var words, pairs []float64
	for t := range 32 {
		a, b, c := x[t], x[t+32], x[t+64]
		for _, v := range bitWords(a, b, c) {
			words = append(words, float64(v&(1<<24-1)))
		}
		h, g, p, q := float64(a%64), float64(b%64), float64(a%16), float64(b%16)
		pairs = append(pairs, max(h+0.5, min(h, 4))+0.5, max(-2+g, -2)+g, max(p/2+p+0.5, min(p, p/2)), max(-2*q-2+q, min(-2, -2*q)))
	}
	c := Config{Kernel: "packed", Block: "32", Args: []string{r.save("u.npy", "<u4", x), "f32[320]", "f32[128]"}}
	r.near("bits", r.run(c, 1), words, 0)
	r.near("pairs", r.run(c, 2), pairs, 0)
}

// bitWords is what kernel packed computes of a thread's three numbers.
func bitWords(a, b, c uint32) []uint32 {
	ab, ba := uint64(a)<<32|uint64(b), uint64(b)<<32|uint64(a)
	var perm, signed, unsigned uint32
	for i := range 4 {
		at := 8 * i
		perm |= uint32(ba>>(8*(c>>(4*i)&7))) & 0xff << at
		signed += uint32(int32(int8(a>>at)) * int32(int8(b>>at)))
		unsigned += a >> at & 0xff * (b >> at & 0xff)
	}
	first := 0
	if v := ab << (c % 64); v != 0 {
		first = bits.TrailingZeros64(v) + 1
	}
	return []uint32{perm, uint32(ab << (c % 32) >> 32), uint32(ab << min(c%40, 32) >> 32), uint32(ab >> (c % 32)), uint32(ab >> min(c%40, 32)),
		signed + c, unsigned + c, uint32(bits.LeadingZeros64(ab>>(c%64)) + 100*first), uint32(bits.Reverse64(ab) >> 16), 0}
}
