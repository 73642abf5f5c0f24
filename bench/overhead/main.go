// Command overhead measures what an open window of package prof costs the program that it looks at: for each eager operation,
// and of a step of a small GPT on the processor; and what PyTorch's profiler costs the same step, in the same run:
//
//	go run ./bench/overhead [-python PYTHON] [-rounds N]
//
// "memory" records what is allocated and reserved too, as train --profile does. With and without take turns, by the processor's time of the whole process; the median of the differences counts.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

var (
	python = flag.String("python", "", "Python with PyTorch; none if empty")
	rounds = flag.Int("rounds", 21, "turns of each")
)

//go:embed torch.py
var script string

// The GPT and its batch.
var (
	config = model.GPTConfig{Vocab: 65, Context: 64, Layers: 4, Heads: 4, Width: 128}
	batch  = 12
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	env, err := tensor.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	cases := []struct {
		name  string
		f     func()
		count int
		per   int
		unit  time.Duration
	}{
		{"op", ops(env), 100, 1000, time.Nanosecond},
		{"step", steps(env), 5, 1, time.Microsecond},
	}
	them := torch()
	for _, c := range cases {
		turn := func(how string) float64 { return ours(env, c.f, c.count, how).Seconds() / float64(c.per) }
		report("warpline", c.name, c.unit, turn, "on")
		report("warpline, memory", c.name, c.unit, turn, "memory")
		if them != nil {
			ask := func(how string) float64 { return them.Ask(c.name, how) }
			report("PyTorch", c.name, c.unit, ask, "on")
			report("PyTorch, shapes and stacks", c.name, c.unit, ask, "full")
		}
	}
}

func torch() *peer.Peer {
	if *python == "" {
		return nil
	}
	args := []string{"-c", script}
	for _, n := range []int{config.Vocab, config.Context, config.Layers, config.Heads, config.Width, batch} {
		args = append(args, strconv.Itoa(n))
	}
	cmd := exec.Command(*python, args...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "KINETO_LOG_LEVEL=99", "PYTHONWARNINGS=ignore")
	return peer.Start(cmd)
}

// report measures without and with, in turns, and prints the medians.
func report(who, what string, unit time.Duration, turn func(how string) float64, how string) {
	var off, on, more, ratio []float64
	for range *rounds {
		a, b := turn("off"), turn(how)
		off, on, more, ratio = append(off, a), append(on, b), append(more, b-a), append(ratio, b/a)
	}
	in := func(x []float64) float64 { return peer.Median(x) / unit.Seconds() }
	fmt.Printf("%-5s %-28s off %8.0f  on %8.0f  more %8.0f %v  %.3f ×\n", what, who, in(off), in(on), in(more), unit, peer.Median(ratio))
}

// ours is the processor's time that f takes, of count times after a first one.
func ours(env *tensor.Env, f func(), count int, how string) time.Duration {
	p := prof.New(prof.Config{Memory: how == "memory"})
	if how != "off" {
		env.Profiled(p)
		defer p.Stop()
	}
	f()
	begun := peer.ProcessorTime()
	for range count {
		f()
		p.Step()
	}
	return (peer.ProcessorTime() - begun) / time.Duration(count)
}

// ops are a thousand operations on little data.
func ops(env *tensor.Env) func() {
	x := env.Ones(4)
	return func() {
		for range 10 {
			env.Do(func(env *tensor.Env) *tensor.Tensor {
				y := x.In(env)
				for range 100 {
					y.Add(y)
				}
				return nil
			})
		}
	}
}

// steps are steps of a GPT.
func steps(env *tensor.Env) func() {
	m := model.NewGPT(env, config)
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
	ids := make([]int64, batch*config.Context)
	return func() {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			ids := tensor.From(env, ids, batch, config.Context)
			loss := m.Loss(ids, ids)
			loss.Backward()
			opt.Step()
			return loss
		})
	}
}
