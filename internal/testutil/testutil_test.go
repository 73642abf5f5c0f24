package testutil

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// recorder stands in for the test under which a helper runs.
type recorder struct {
	testing.TB
	out     []string
	failed  bool
	cleanup []func()
}

func (r *recorder) Helper()                 {}
func (r *recorder) Failed() bool            { return r.failed }
func (r *recorder) Cleanup(f func())        { r.cleanup = append(r.cleanup, f) }
func (r *recorder) Logf(f string, a ...any) { r.out = append(r.out, fmt.Sprintf(f, a...)) }
func (r *recorder) Errorf(f string, a ...any) {
	r.failed = true
	r.Logf(f, a...)
}

func (r *recorder) text() string {
	for _, f := range r.cleanup {
		f()
	}
	return strings.Join(r.out, "\n")
}

func TestClose(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		got, want  []float64
		rtol, atol float64
		report     string // "" when close
	}{
		{nil, nil, 0, 0, ""},
		{[]float64{1, nan, inf}, []float64{1, nan, inf}, 0, 0, ""},
		{[]float64{1.01}, []float64{1}, 0.02, 0, ""},
		{[]float64{0.01}, []float64{0}, 0.02, 0.02, ""},
		{[]float64{1}, []float64{1, 2}, 1, 1, "1 elements, want 2"},
		{[]float64{1, 2.1, 3.5, 4}, []float64{1, 2, 3, 4}, 0, 0.01, "2 of 4 elements differ; worst is [2]: got 3.5, want 3"},
		{[]float64{100.5, 0.5}, []float64{100, 0.1}, 0.01, 0, "1 of 2 elements differ; worst is [1]"},
		{[]float64{nan}, []float64{1}, 1, 1, "got NaN, want 1"},
		{[]float64{1}, []float64{nan}, 1, 1, "got 1, want NaN"},
		{[]float64{inf}, []float64{-inf}, 1, 1, "got +Inf, want -Inf"},
		{[]float64{1}, []float64{inf}, 1, 1, "got 1, want +Inf"},
	} {
		r := &recorder{}
		Close(r, c.got, c.want, c.rtol, c.atol)
		if r.failed != (c.report != "") || !strings.Contains(r.text(), c.report) {
			t.Errorf("Close(%v, %v, %v, %v) reports %q, want %q", c.got, c.want, c.rtol, c.atol, r.text(), c.report)
		}
	}
}

func TestRand(t *testing.T) {
	t.Setenv(SeedEnv, "7")
	passing, failing := &recorder{}, &recorder{}
	a, b := Rand(passing), Rand(failing)
	if x, y := a.Uint64(), b.Uint64(); x != y {
		t.Errorf("a fixed seed gives %d, then %d", x, y)
	}
	failing.failed = true
	if got, want := failing.text(), "repeat with WARPLINE_TEST_SEED=7"; got != want {
		t.Errorf("a failing test logs %q, want %q", got, want)
	}
	if got := passing.text(); got != "" {
		t.Errorf("a passing test logs %q", got)
	}
	t.Setenv(SeedEnv, "")
	if x, y := Rand(t).Uint64(), Rand(t).Uint64(); x == y {
		t.Errorf("two fresh seeds both give %d", x)
	}
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "golden.txt")
	t.Setenv(UpdateEnv, "1")
	Golden(t, path, []byte("one\ntwo\n"))
	t.Setenv(UpdateEnv, "")
	Golden(t, path, []byte("one\ntwo\n"))

	r := &recorder{}
	Golden(r, path, []byte("one\n2\n"))
	if !r.failed || !strings.Contains(r.text(), `line 2 is`) {
		t.Errorf("a difference reports %q", r.text())
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("comparing changed the file: %q, %v", got, err)
	}
}

func TestFailingWriter(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		n    int64
		fail error
		want error
	}{{0, nil, syscall.ENOSPC}, {3, own, own}, {5, nil, syscall.ENOSPC}, {6, nil, nil}, {9, own, nil}} {
		var out bytes.Buffer
		w := &FailingWriter{W: &out, N: c.n, Err: c.fail}
		n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("abcdef")})
		if keep := min(c.n, 6); n != keep || out.String() != "abcdef"[:keep] || !errors.Is(err, c.want) {
			t.Errorf("N=%d: wrote %d bytes %q, %v; want %d, %v", c.n, n, out.String(), err, keep, c.want)
		}
	}
	if n, err := (&FailingWriter{N: 2}).Write([]byte("abc")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("without W: %d, %v", n, err)
	}
}

// TestSpread: each run takes about one case in n, the same for the same seed; over the seeds none is left out. All are
// taken where that is asked for.
func TestSpread(t *testing.T) {
	t.Setenv(WalkEnv, "")
	cases := make([]int, 200)
	for i := range cases {
		cases[i] = i
	}
	name := func(i int) string { return fmt.Sprintf("case %d", i) }
	times := map[int]int{}
	for seed := range uint64(100) {
		s := NewSpread(t, seed, 4)
		some := Some(s, cases, name)
		if len(some) < 25 || len(some) > 80 || !slices.Equal(some, Some(s, cases, name)) {
			t.Errorf("seed %d takes %d of %d", seed, len(some), len(cases))
		}
		for _, i := range some {
			times[i]++
		}
		if one := Some(s, cases[:1], name); len(one) != 1 || s.All() {
			t.Errorf("of one case %d are taken", len(one))
		}
		if none := Some(s, cases[:0], name); len(none) != 0 {
			t.Error("a case of none")
		}
	}
	for _, i := range cases {
		if times[i] < 8 || times[i] > 45 {
			t.Errorf("%s is taken by %d of 100 runs", name(i), times[i])
		}
	}
	t.Setenv(WalkEnv, "all")
	if s := NewSpread(t, 1, 4); !s.All() || len(Some(s, cases, name)) != len(cases) {
		t.Error("all are not all")
	}
	if some := Some(NewSpread(t, 1, 4).Of(3), cases, name); len(some) < 40 || len(some) > 95 {
		t.Errorf("one in three of all are %d of %d", len(some), len(cases))
	}
}
