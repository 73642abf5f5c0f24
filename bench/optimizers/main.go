// Command optimizers measures a step of each optimizer of train --optimizer on the parameters of a small GPT, beside torch.optim in the
// same run, both with two threads:
//
//	GOMAXPROCS=2 go run ./bench/optimizers [-python PYTHON] [-rounds N] [-turns N]
//
// PyTorch's is the quickest of its ways, fused, foreach or one parameter after another. Gradients are there before the clock runs; ours
// are given again between steps, outside of it.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

var (
	python = flag.String("python", "", "Python with PyTorch; none if empty")
	rounds = flag.Int("rounds", 5, "turns of each")
	turns  = flag.Int("turns", 10, "steps of a turn")
)

//go:embed torch.py
var script string

// shapes are those of torch.py.
func shapes() [][]int {
	list := [][]int{{65, 128}, {256, 128}}
	for range 4 {
		list = append(list, [][]int{{384, 128}, {384}, {128, 128}, {128}, {512, 128}, {512}, {128, 512}, {128}, {128}, {128}, {128}, {128}}...)
	}
	return append(list, []int{128}, []int{128})
}

// student is parameters with the gradient that they are given before each step.
type student struct {
	opt    optim.Optimizer
	params []*tensor.Tensor
	grads  []*tensor.Tensor
}

func newStudent(o *recipe.Optimizer, env *tensor.Env) *student {
	s := &student{}
	for _, shape := range shapes() {
		s.params = append(s.params, env.Randn(shape...).Scale(0.02).RequireGrad())
		s.grads = append(s.grads, env.Randn(shape...).Scale(0.01))
	}
	s.opt = o.Make(func(yield func(string, *tensor.Tensor) bool) {
		for i, p := range s.params {
			if !yield(fmt.Sprint("p", i), p) {
				return
			}
		}
	}, recipe.Step{LR: 1e-4, WeightDecay: o.Decay})
	return s
}

// step is how long a step takes.
func (s *student) step(env *tensor.Env) time.Duration {
	e, scope := env.Scope()
	defer scope.End()
	loss := e.Zeros()
	for i, p := range s.params {
		loss = loss.Add(p.In(e).Mul(s.grads[i]).Sum())
	}
	loss.Backward()
	begun := time.Now()
	s.opt.Step()
	s.params[0].Detach().Sum().Item() // waits for it
	return time.Since(begun)
}

func main() {
	flag.Parse()
	env, err := tensor.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	them := peer.Python(*python, script, "OMP_NUM_THREADS=2")
	fmt.Printf("| optimizer | PyTorch | ours | ratio |\n|---|---|---|---|\n")
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		s := newStudent(o, env)
		s.step(env)
		var ours, theirs []float64
		for range *rounds {
			total := time.Duration(0)
			for range *turns {
				total += s.step(env)
			}
			ours = append(ours, total.Seconds()/float64(*turns))
			if them != nil {
				theirs = append(theirs, them.Ask(o.Name, *turns))
			}
		}
		row(o.Name, ours, theirs)
	}
}

func row(name string, ours, theirs []float64) {
	us := 1e3 * peer.Median(ours)
	if len(theirs) == 0 || theirs[0] == 0 {
		fmt.Printf("| `%s` | | %.3f ms | |\n", name, us)
		return
	}
	them := 1e3 * peer.Median(theirs)
	fmt.Printf("| `%s` | %.3f ms | %.3f ms | %.2f |\n", name, them, us, them/us)
}
