// Command gemm compares our products of float32 matrices with PyTorch's and
// with the ceiling of the processor, all measured in turns in one run:
//
//	go run ./bench/gemm -python python3
//
// Without -python it measures ours alone.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
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
	torch := peer.Start(*python, script)
	fmt.Printf("%s, level %v, %d threads; GFLOP/s, medians of %d turns [least, most]\n", cpufeat.Describe().Model, cpufeat.Active(), par.Threads(), *rounds)
	for _, s := range shapes {
		if *pick == "" || slices.Contains(strings.Split(*pick, ","), s.name) {
			compare(s, torch)
		}
	}
}

var bit = map[bool]int{true: 1}

// compare measures a shape and prints a line.
func compare(s shape, torch *peer.Peer) {
	p := s.product()
	work := 2e-9 * float64(s.m) * float64(s.n) * float64(s.k)
	turns := max(1, int(budget.Seconds()/seconds(&p, 1)))
	var ours, theirs, ceilings []float64
	for range *rounds {
		ceilings = append(ceilings, 2e-9*kernels.Ceiling(cpufeat.Active()))
		ours = append(ours, work/seconds(&p, turns))
		if torch != nil {
			theirs = append(theirs, work/torch.Ask(s.m, s.n, s.k, bit[s.ta], bit[s.tb], par.Threads(), turns))
			time.Sleep(20 * time.Millisecond) // until PyTorch's threads sleep
		}
	}
	// The best turns are those that a busy machine disturbed least.
	share := 100 * slices.Max(ours) / slices.Max(ceilings) / float64(par.Threads())
	line := fmt.Sprintf("%-8s %s, %5.1f %% of the ceiling %.1f", s.name, spread(ours), share, slices.Max(ceilings))
	if torch != nil {
		line += fmt.Sprintf("; PyTorch %s, ratio %.2f, of the best turns %.2f",
			spread(theirs), peer.Median(ours)/peer.Median(theirs), slices.Max(ours)/slices.Max(theirs))
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

func spread(x []float64) string {
	return fmt.Sprintf("%6.1f [%.1f, %.1f]", peer.Median(x), slices.Min(x), slices.Max(x))
}
