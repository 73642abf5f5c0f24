// Command gemm compares our products of float32 matrices with PyTorch's and
// with the ceiling of the processor, all measured in turns in one run:
//
//	go run ./bench/gemm -python python3
//
// Without -python it measures ours alone.
package main

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// A shape is an M×K matrix times a K×N one, each stored transposed or not.
type shape struct {
	name    string
	m, n, k int
	ta, tb  bool
}

var shapes = []shape{
	{"8", 8, 8, 8, false, false},
	{"64", 64, 64, 64, false, false},
	{"256", 256, 256, 256, false, false},
	{"512", 512, 512, 512, false, false},
	{"1024", 1024, 1024, 1024, false, false},
	{"vector", 1, 4096, 4096, false, false},
	{"vectorT", 1, 4096, 4096, false, true},
	{"tall", 4096, 128, 128, false, false},
	{"forward", 4096, 512, 128, false, true},
	{"dX", 4096, 128, 512, false, false},
	{"dW", 512, 128, 4096, true, false},
}

var (
	python  = flag.String("python", "", "Python with PyTorch, to compare with")
	rounds  = flag.Int("rounds", 7, "turns of each")
	pick    = flag.String("shapes", "", "names of shapes, separated by commas; all if empty")
	threads = flag.Int("threads", 1, "threads")
	level   = flag.String("level", "", "level of instructions; the highest if empty")
	budget  = flag.Duration("time", 60*time.Millisecond, "time of one turn")
)

//go:embed torch_gemm.py
var script string

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *level != "" {
		l, err := cpufeat.ParseLevel(*level)
		if err != nil {
			log.Fatal(err)
		}
		cpufeat.Set(l)
	}
	par.SetThreads(*threads)
	var peer *torch
	if *python != "" {
		peer = start(*python)
	}
	fmt.Printf("%s, level %v, %d threads; GFLOP/s, medians of %d turns [least, most]\n", cpufeat.Describe().Model, cpufeat.Active(), par.Threads(), *rounds)
	for _, s := range shapes {
		if *pick == "" || slices.Contains(strings.Split(*pick, ","), s.name) {
			compare(s, peer)
		}
	}
}

// compare measures a shape and prints a line.
func compare(s shape, peer *torch) {
	p := s.product()
	work := 2e-9 * float64(s.m) * float64(s.n) * float64(s.k)
	turns := max(1, int(budget.Seconds()/seconds(&p, 1)))
	var ours, theirs, ceilings []float64
	for range *rounds {
		ceilings = append(ceilings, 2e-9*kernels.Ceiling(cpufeat.Active()))
		ours = append(ours, work/seconds(&p, turns))
		if peer != nil {
			theirs = append(theirs, work/peer.seconds(s, turns))
			time.Sleep(20 * time.Millisecond) // until PyTorch's threads sleep
		}
	}
	// The best turns are those that a busy machine disturbed least.
	share := 100 * slices.Max(ours) / slices.Max(ceilings) / float64(par.Threads())
	line := fmt.Sprintf("%-8s %s, %5.1f %% of the ceiling %.1f", s.name, spread(ours), share, slices.Max(ceilings))
	if peer != nil {
		line += fmt.Sprintf("; PyTorch %s, ratio %.2f, of the best turns %.2f",
			spread(theirs), median(ours)/median(theirs), slices.Max(ours)/slices.Max(theirs))
	}
	fmt.Println(line)
}

func (s shape) product() kernels.Product[float32] {
	p := kernels.Product[float32]{M: s.m, N: s.n, K: s.k, C: make([]float32, s.m*s.n), CRow: s.n}
	p.A, p.ARow, p.ACol = matrix(s.m, s.k, s.ta)
	p.B, p.BRow, p.BCol = matrix(s.k, s.n, s.tb)
	return p
}

func matrix(rows, cols int, transposed bool) (data []float32, row, col int) {
	data = make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(rand.NormFloat64())
	}
	if transposed {
		return data, 1, rows
	}
	return data, cols, 1
}

// seconds is the time of a product once it is warm: others had the caches.
func seconds(p *kernels.Product[float32], turns int) float64 {
	kernels.Gemm(p)
	start := time.Now()
	for range turns {
		kernels.Gemm(p)
	}
	return time.Since(start).Seconds() / float64(turns)
}

func median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }

func spread(x []float64) string {
	return fmt.Sprintf("%6.1f [%.1f, %.1f]", median(x), slices.Min(x), slices.Max(x))
}

// torch is a process that measures PyTorch: a line of sizes in, seconds out.
type torch struct {
	in  io.Writer
	out *bufio.Reader
}

func start(python string) *torch {
	cmd := exec.Command(python, "-c", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		log.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		log.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		log.Fatalf("cannot start PyTorch: %v; give a Python that has it to -python", err)
	}
	return &torch{in, bufio.NewReader(out)}
}

func (t *torch) seconds(s shape, turns int) (x float64) {
	bit := map[bool]int{true: 1}
	fmt.Fprintln(t.in, s.m, s.n, s.k, bit[s.ta], bit[s.tb], par.Threads(), turns)
	if _, err := fmt.Fscan(t.out, &x); err != nil {
		log.Fatalf("no answer from PyTorch: %v; its own message is above", err)
	}
	return x
}
