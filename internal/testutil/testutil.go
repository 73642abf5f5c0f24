// Package testutil holds what tests of several packages share: printed seeds,
// golden files, closeness of slices, a writer that fails, and a process of a
// test's own.
package testutil

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Tests have memory to spare rather than time: Go's collector comes when what lives has grown by four times itself, or to
// 3 GiB, unless the environment says otherwise. What tensors collect by themselves is not changed by it.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(3 << 30)
	}
}

// Environment variables that steer tests.
const (
	// SeedEnv fixes the seed of [Rand], to repeat a failure.
	SeedEnv = "WARPLINE_TEST_SEED"
	// DeviceEnv names the device that tests of the public packages run on.
	DeviceEnv = "WARPLINE_TEST_DEVICE"
	// WalkEnv, set to all, makes a [Spread] take every case.
	WalkEnv = "WARPLINE_TEST_WALK"
	// UpdateEnv, set to 1, makes [Golden] rewrite its files.
	UpdateEnv = "WARPLINE_UPDATE"
)

// Device is the device to test on, as tensor.Open takes it: the CPU, or that of WARPLINE_TEST_DEVICE.
func Device() string { return cmp.Or(os.Getenv(DeviceEnv), "cpu") }

// Rand returns a generator with a fresh seed, or with that of WARPLINE_TEST_SEED.
// When the test fails, it logs the assignment that repeats it.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := Seed(t)
	return rand.New(rand.NewPCG(seed, seed))
}

// Seed is a fresh seed, or that of WARPLINE_TEST_SEED. When the test fails, it
// logs the assignment that repeats it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(SeedEnv); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s=%q: want an unsigned decimal number", SeedEnv, s)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with %s=%d", SeedEnv, seed)
		}
	})
	return seed
}

// Spread divides the cases of a test that has many over its runs. Each run takes
// one in n, by a seed; WARPLINE_TEST_WALK=all takes them all, as CI does in a step
// of its own.
type Spread struct{ seed, n uint64 }

// NewSpread takes one case in n, of every n cases about another one with each seed.
func NewSpread(t testing.TB, seed uint64, n int) Spread {
	t.Helper()
	switch walk := os.Getenv(WalkEnv); walk {
	case "":
		return Spread{seed, uint64(n)}
	case "all":
		return Spread{seed, 1}
	default:
		t.Fatalf("%s=%q: want all, or nothing", WalkEnv, walk)
		return Spread{}
	}
}

// All reports whether every case is taken.
func (s Spread) All() bool { return s.n <= 1 }

// Of takes one in n of what s takes.
func (s Spread) Of(n int) Spread { return Spread{s.seed, s.n * uint64(n)} }

// Takes reports whether this run takes the case with that name.
func (s Spread) Takes(name string) bool {
	if s.All() {
		return true
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", s.seed, name))
	return binary.LittleEndian.Uint64(sum[:])%s.n == 0
}

// Some are the cases that this run takes: at least one, if there are any.
func Some[T any](s Spread, cases []T, name func(T) string) []T {
	some := slices.DeleteFunc(slices.Clone(cases), func(c T) bool { return !s.Takes(name(c)) })
	if len(some) == 0 && len(cases) > 0 {
		some = append(some, cases[s.seed%uint64(len(cases))])
	}
	return some
}

// Allocations is how often f allocates at least, on average over runs: what other goroutines allocate meanwhile counts too, so
// that only the best of some measurements is of f alone.
func Allocations(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for try := 1; try < 5 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

// Golden compares got with the file at path, usually in testdata. With
// WARPLINE_UPDATE=1 it writes the file instead: the diff is then the review.
func Golden(t testing.TB, path string, got []byte) {
	t.Helper()
	if os.Getenv(UpdateEnv) == "1" {
		update(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with %s=1)", err, UpdateEnv)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (rewrite with %s=1): %s", path, UpdateEnv, firstDifference(got, want))
	}
}

func update(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o666); err != nil {
		t.Fatal(err)
	}
}

// firstDifference names the first line in which got and want differ.
func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is\n\t%q, want\n\t%q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// Close demands |got[i] − want[i]| ≤ atol + rtol·|want[i]| for every i, NaN only
// where NaN is wanted and infinities equal. It reports the number of elements
// outside and the one farthest outside, relative to its tolerance.
func Close(t testing.TB, got, want []float64, rtol, atol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d elements, want %d", len(got), len(want))
		return
	}
	bad, worst, at := 0, 0.0, 0
	for i := range got {
		e := excess(got[i], want[i], atol+rtol*math.Abs(want[i]))
		if e > 1 {
			bad++
		}
		if e > worst {
			worst, at = e, i
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d elements differ; worst is [%d]: got %v, want %v, difference %.3g (%.3g times the tolerance; rtol %g, atol %g)",
			bad, len(got), at, got[at], want[at], math.Abs(got[at]-want[at]), worst, rtol, atol)
	}
}

// excess returns |got − want| in units of tol; above 1 is outside.
func excess(got, want, tol float64) float64 {
	switch {
	case got == want || math.IsNaN(got) && math.IsNaN(want):
		return 0
	case math.IsNaN(got), math.IsNaN(want), math.IsInf(got, 0), math.IsInf(want, 0), tol == 0:
		return math.Inf(1)
	}
	return math.Abs(got-want) / tol
}

// FailingWriter passes its first N bytes to W and then fails, within a write,
// as a full disk does.
type FailingWriter struct {
	W   io.Writer // where bytes go; nil discards them
	N   int64     // bytes left before the failure
	Err error     // the failure; nil stands for syscall.ENOSPC
}

// Write implements [io.Writer].
func (f *FailingWriter) Write(p []byte) (int, error) {
	keep := min(int64(len(p)), f.N)
	n, err := f.pass(p[:keep])
	f.N -= int64(n)
	switch {
	case err != nil || n == len(p):
		return n, err
	case f.Err != nil:
		return n, f.Err
	}
	return n, syscall.ENOSPC
}

func (f *FailingWriter) pass(p []byte) (int, error) {
	if f.W == nil {
		return len(p), nil
	}
	return f.W.Write(p)
}
