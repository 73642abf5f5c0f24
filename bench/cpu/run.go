package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/tensor"
)

// shown is how often PyTorch is measured as people run it, which no bar is about.
const shown = 3

// result is what a row gave with a number of threads, in seconds of a turn.
type result struct {
	row     *row
	threads int
	ours    []float64
	theirs  map[string][]float64 // by layout, in the rounds of ours
	people  []float64            // PyTorch's, as people run it, in the better layout
	ceiling []float64            // FLOP/s of one thread, in the rounds of ours
	flops   float64
}

// run measures a row and prints its line.
func (r *runner) run(row *row, threads int) {
	par.SetThreads(threads)
	dt, err := dtype.Parse(row.dtype)
	if err != nil {
		log.Fatal(err)
	}
	w := prepared(bench.Find(row.bench, row.name), row.n, dt)
	w.Turn()
	res := &result{row: row, threads: threads, theirs: map[string][]float64{}}
	res.flops = work(row, dt)
	time := ticker(threads)
	turns := max(1, int(budget.Seconds()/seconds(w.Turn, 1, time)))
	layouts := row.layouts
	if *compile && row.bench == "train" && (row.name == "gpt-128" || row.name == "gpt-384") {
		layouts = append(slices.Clone(layouts), "compiled")
	}
	for i := range *rounds {
		if row.share > 0 {
			res.ceiling = append(res.ceiling, 2*kernels.Ceiling(cpufeat.Active()))
		}
		res.ours = append(res.ours, seconds(w.Turn, turns, time))
		for _, l := range layouts {
			if r.kept != nil {
				res.theirs[l] = append(res.theirs[l], ask(r.kept, row, l, threads, turns))
			}
		}
		if r.plain != nil && i < shown {
			res.people = append(res.people, ask(r.plain, row, res.layout(), threads, turns))
		}
	}
	if w.Close != nil {
		w.Close()
	}
	r.tell(res)
	r.otherGo(res, turns)
}

// work is the FLOP of a row's turn.
func work(row *row, dt dtype.DType) float64 {
	if row.bench != "gemm" {
		return 0
	}
	env, err := tensor.Fresh("cpu")
	if err != nil {
		log.Fatal(err)
	}
	w, err := bench.Find(row.bench, row.name).Make(env, row.n, dt)
	if err != nil {
		log.Fatal(err)
	}
	return float64(bench.Record(env.Device(), w.Turn).FLOPs())
}

// seconds is the time of a turn once it is warm: the other side had the caches.
func seconds(turn func(), turns int, now func() time.Duration) float64 {
	turn()
	start := now()
	for range turns {
		turn()
	}
	return (now() - start).Seconds() / float64(turns)
}

var began = time.Now()

// ticker is the clock for so many threads.
func ticker(threads int) func() time.Duration {
	if threads == 1 && *clock == "cpu" {
		return peer.ProcessorTime
	}
	return func() time.Duration { return time.Since(began) }
}

// ask measures PyTorch.
func ask(p *peer.Peer, row *row, layout string, threads, turns int) float64 {
	c := "wall"
	if threads == 1 && *clock == "cpu" && row.bench != "data" {
		c = "cpu"
	}
	s := p.Ask(row.bench, row.name, row.n, row.dtype, layout, threads, turns, c)
	time.Sleep(20 * time.Millisecond) // until PyTorch's threads sleep
	return s
}

// layout is the one that PyTorch is faster in so far.
func (r *result) layout() string {
	best := r.row.layouts[0]
	for _, l := range r.row.layouts {
		if len(r.theirs[l]) > 0 && peer.Median(r.theirs[l]) < peer.Median(r.theirs[best]) {
			best = l
		}
	}
	return best
}

// ratio is the ratio of PyTorch's times in a layout to ours: its mean and the lower 95 % bound of that, over the rounds and
// of logarithms.
func (r *result) ratio(layout string) (mean, lower float64) {
	var logs []float64
	for i, t := range r.theirs[layout] {
		logs = append(logs, math.Log(t/r.ours[i]))
	}
	return bound(logs)
}

// bound is the mean of ratios and its lower 95 % bound, by Student's distribution, from their logarithms.
func bound(logs []float64) (mean, lower float64) {
	n := float64(len(logs))
	sum, squares := 0.0, 0.0
	for _, l := range logs {
		sum += l
	}
	for _, l := range logs {
		squares += (l - sum/n) * (l - sum/n)
	}
	if n < 2 {
		return math.Exp(sum / n), 0
	}
	return math.Exp(sum / n), math.Exp(sum/n - student(len(logs)-1)*math.Sqrt(squares/(n-1)/n))
}

// student is the 95th percentile of Student's distribution of n degrees of freedom; of many, that of the normal one.
func student(n int) float64 {
	table := []float64{6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725}
	if n <= len(table) {
		return table[n-1]
	}
	return 1.645 + 1.6/float64(n)
}

// start measures a process from its start to the end of its first step of the MLP.
func (r *runner) start() {
	const limit = 0.15
	once := func(name string, args ...string) float64 {
		start := time.Now()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			log.Fatalf("%s: %v\n%s", name, err, out)
		}
		return time.Since(start).Seconds()
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	var ours, theirs []float64
	for range *rounds {
		ours = append(ours, once(self, "-first"))
		if *python != "" && len(theirs) < shown {
			theirs = append(theirs, once(*python, "-c", "import torch\nm=torch.nn.Linear(784,512)\nm(torch.rand(128,784)).sum().backward()\ntorch.optim.SGD(m.parameters(),lr=1e-3).step()"))
		}
	}
	s := slices.Sorted(slices.Values(ours))
	beside := ""
	if len(theirs) > 0 {
		beside = duration(peer.Median(theirs))
	}
	r.line("start to the first step of mlp", "", beside, "", duration(s[len(s)/2]), "", "", fmt.Sprintf("≤ %.2f s", limit), r.judge(s[len(s)/2] <= limit))
}

// memory compares the most bytes of tensors in a network of structs.
func (r *runner) memory() {
	for _, training := range []bool{true, false} {
		name := map[bool]string{true: "training", false: "evaluation"}[training]
		ours, err := peak(training)
		if err != nil {
			log.Fatal(err)
		}
		theirs := 0.0
		if r.kept != nil {
			theirs = r.kept.Ask("peak", name, 1, "f32", "nchw", 1, 1, "wall")
		}
		mib := func(n float64) string { return fmt.Sprintf("%.1f MiB", n/(1<<20)) }
		verdict, ratio := "", ""
		if theirs > 0 {
			ratio, verdict = fmt.Sprintf("%.2f", float64(ours)/theirs), r.judge(float64(ours) <= theirs)
		}
		r.line("peak bytes of tensors, "+name, "", mib(theirs), "", mib(float64(ours)), ratio, "", "≤ 1.0", verdict)
	}
}
