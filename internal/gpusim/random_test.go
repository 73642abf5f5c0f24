package gpusim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// randomThreads and randomOut are the block of the kernels in testdata/random and the bytes that a thread writes.
const (
	randomThreads = 64
	randomOut     = 4 * 14
)

// TestRandomKernels runs 204 kernels that bench/oracle generated, at three levels of optimisation: what each computes has
// the hash that clang's code for another processor gave, and no check finds anything.
func TestRandomKernels(t *testing.T) {
	in, err := os.ReadFile("testdata/random/inputs.bin")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := os.ReadFile("testdata/random/answers.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"-O0", "-O1", "-O3"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			runRandom(t, level, in, answers)
		})
	}
}

func runRandom(t *testing.T, level string, in, answers []byte) {
	m := randomModule(t, level)
	d := NewDevice(A100(), true)
	p, err := d.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, d, p}
	src := r.upload(in, "in")
	compared := 0
	for s := bufio.NewScanner(bytes.NewReader(answers)); s.Scan(); compared++ {
		name, want, _ := strings.Cut(s.Text(), " ")
		dst := r.alloc(randomThreads*randomOut, "out")
		o := Options{Checks: AllChecks, Seed: uint64(compared % 4), Schedule: Schedule(compared / 2 % 2)}
		r.launch(name, d1(1), d1(randomThreads), o, src, dst)
		h := fnv.New64a()
		h.Write(download[uint8](r, dst, randomThreads*randomOut))
		if got := fmt.Sprintf("%016x", h.Sum64()); got != want {
			t.Errorf("%s gives other results than its C++ on the host", name)
		}
	}
	if compared < 200 {
		t.Errorf("%d kernels", compared)
	}
}

func randomModule(t *testing.T, level string) *ptx.Module {
	f, err := os.Open("testdata/random/k" + level + ".ptx.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ptx.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
