// Command step compares whole training steps (forward, Backward, AdamW) on the CPU with PyTorch's, in turns in one run:
//
//	go run ./bench/step -python python3
//
// Without -python it measures ours alone.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// job is a model with random data of a fixed shape.
type job struct {
	name    string
	unit    string
	samples int
	build   func(env *tensor.Env) (params any, loss func(e *tensor.Env) *tensor.Tensor)
}

// images is a classifier's job.
func images(build func(*tensor.Env) nn.Module, shape ...int) func(*tensor.Env) (any, func(*tensor.Env) *tensor.Tensor) {
	return func(env *tensor.Env) (any, func(*tensor.Env) *tensor.Tensor) {
		m := build(env)
		x, y := env.Rand(shape...), env.RandInt(0, 10, shape[0])
		return m, func(e *tensor.Env) *tensor.Tensor { return nn.CrossEntropy(m.Forward(x.In(e)), y.In(e)) }
	}
}

func gpt(c model.GPTConfig, batch int) func(*tensor.Env) (any, func(*tensor.Env) *tensor.Tensor) {
	return func(env *tensor.Env) (any, func(*tensor.Env) *tensor.Tensor) {
		g := model.NewGPT(env, c)
		tokens := env.RandInt(0, c.Vocab, batch, c.Context)
		return g, func(e *tensor.Env) *tensor.Tensor { return nn.CrossEntropy(g.Forward(tokens.In(e)), tokens.In(e)) }
	}
}

var jobs = []job{
	{"mlp", "samples", 128, images(func(e *tensor.Env) nn.Module { return model.NewMLP(e, model.Digits, 128) }, 128, 1, 28, 28)},
	{"convnet", "samples", 128, images(func(e *tensor.Env) nn.Module { return model.NewConvnet(e, model.Digits) }, 128, 1, 28, 28)},
	{"gpt", "tokens", 16 * 128, gpt(model.GPTConfig{Vocab: 65, Context: 128, Layers: 4, Heads: 4, Width: 128}, 16)},
	{"resnet18", "samples", 8, images(func(e *tensor.Env) nn.Module { return model.NewResNet(e, model.ResNet18(10)) }, 8, 3, 64, 64)},
}

var (
	python  = flag.String("python", "", "Python with PyTorch, to compare with")
	rounds  = flag.Int("rounds", 5, "turns of each")
	pick    = flag.String("jobs", "", "names of jobs, separated by commas; all if empty")
	threads = flag.Int("threads", par.Threads(), "threads")
	budget  = flag.Duration("time", time.Second, "time of one turn")
)

//go:embed torch_step.py
var script string

func main() {
	log.SetFlags(0)
	flag.Parse()
	par.SetThreads(*threads)
	torch := peer.Start(*python, script)
	fmt.Printf("%s, level %v, %d threads; per second, medians of %d turns\n", cpufeat.Describe().Model, cpufeat.Active(), par.Threads(), *rounds)
	for _, j := range jobs {
		if *pick == "" || slices.Contains(strings.Split(*pick, ","), j.name) {
			j.compare(torch)
		}
	}
}

func (j job) compare(torch *peer.Peer) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		log.Fatal(err)
	}
	params, loss := j.build(env)
	opt := optim.NewAdamW(nn.Params(params), optim.AdamWConfig{LR: 1e-3})
	turns := max(1, int(budget.Seconds()/seconds(env, opt, loss, 1)))
	var ours, theirs []float64
	for range *rounds {
		ours = append(ours, float64(j.samples)/seconds(env, opt, loss, turns))
		if torch != nil {
			theirs = append(theirs, float64(j.samples)/torch.Ask(j.name, par.Threads(), turns))
			time.Sleep(20 * time.Millisecond) // until PyTorch's threads sleep
		}
	}
	line := fmt.Sprintf("%-9s %9.0f %s/s [%.0f, %.0f]", j.name, peer.Median(ours), j.unit, slices.Min(ours), slices.Max(ours))
	if torch != nil {
		line += fmt.Sprintf("; PyTorch %.0f [%.0f, %.0f], ratio %.2f", peer.Median(theirs), slices.Min(theirs), slices.Max(theirs), peer.Median(ours)/peer.Median(theirs))
	}
	fmt.Println(line)
}

// seconds is the time of a step once it is warm.
func seconds(env *tensor.Env, opt optim.Optimizer, loss func(*tensor.Env) *tensor.Tensor, turns int) float64 {
	step := func() {
		e, s := env.Scope(0)
		defer s.End()
		loss(e).Backward()
		opt.Step()
	}
	step()
	start := time.Now()
	for range turns {
		step()
	}
	return time.Since(start).Seconds() / float64(turns)
}
