// Command memory records the memory of a training and writes it in all forms, for people to look at and for others' tools to
// check (README.md says how):
//
//	go run ./bench/memory -model gpt -device sim:a100-80 -dir DIR
//
// With -captured all steps but the first two are one launch each, in memory of their own. WARPLINE_ALLOC_CONF sets the allocator:
// expandable_segments:True. One allocation fails, and cached memory goes back, in the middle of each program. counters.json has what the device counts at the same moment.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

var (
	kind   = flag.String("model", "gpt", "gpt or mlp")
	name   = flag.String("device", "null:a100-80", "device")
	dir    = flag.String("dir", filepath.Join(os.TempDir(), "warpline-memory"), "folder of the files")
	steps  = flag.Int("steps", 4, "steps of training")
	stacks = flag.Bool("stacks", false, "whole stacks")
	once   = flag.Bool("captured", false, "captured steps")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	env, err := tensor.Fresh(*name)
	if err != nil {
		log.Fatal(err)
	}
	forward, params := program(env)
	opt := optim.NewAdamW(params, optim.AdamWConfig{LR: 1e-3})
	h := prof.NewHistory(prof.HistoryConfig{Stacks: *stacks})
	env.Profiled(h)
	run := func(e *tensor.Env) {
		loss := forward(inputs(e))
		loss.In(env.On(env.NewQueue())).Neg() // memory that another queue uses
		loss.Backward()
		opt.Step()
	}
	if *once {
		c := tensor.Capture(env, func(in batch) *tensor.Tensor {
			loss := forward(in)
			loss.Backward()
			opt.Step()
			return loss
		})
		run = func(e *tensor.Env) { c.Run(inputs(e)) }
	}
	for i := range *steps {
		fmt.Println(prof.Memory(env, func() {
			e, scope := env.Scope(uint64(i))
			defer scope.End()
			run(e)
			if i == *steps/2 {
				e.Ones(64 << 20)
				_, err = e.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1 << 45) })
			}
		}))
		if i == *steps/2 {
			if err == nil {
				log.Fatal("128 TiB were there")
			}
			if err := env.Device().EmptyCache(); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := write(h, env); err != nil {
		log.Fatal(err)
	}
}

// batch is what a step is given.
type batch struct{ X, Labels *tensor.Tensor }

// inputs is a batch of the model.
func inputs(e *tensor.Env) batch {
	if *kind == "gpt" {
		tokens := tensor.From(e, make([]int64, 4*64), 4, 64)
		return batch{tokens, tokens}
	}
	return batch{e.Rand(128, 1, 28, 28), tensor.From(e, make([]int64, 128), 128)}
}

// program is a forward of a model, and the model's parameters.
func program(env *tensor.Env) (func(b batch) *tensor.Tensor, func(func(string, *tensor.Tensor) bool)) {
	switch *kind {
	case "gpt":
		m := model.NewGPT(env, model.GPTConfig{Vocab: 512, Context: 64, Layers: 4, Heads: 4, Width: 128})
		return func(b batch) *tensor.Tensor { return m.Loss(b.X, b.Labels) }, nn.Params(m)
	case "mlp":
		m := model.NewMLP(env, model.Digits, 256)
		return func(b batch) *tensor.Tensor { return nn.CrossEntropy(m.Forward(b.X), b.Labels) }, nn.Params(m)
	}
	log.Fatalf("no model %q: gpt or mlp", *kind)
	return nil, nil
}

func write(h *prof.History, env *tensor.Env) error {
	if err := os.MkdirAll(*dir, 0o777); err != nil {
		return err
	}
	h.Stop()
	m := env.Device().Memory()
	counters, err := json.Marshal(map[string]int64{"reserved": m.Reserved.Current, "allocated": m.Allocated.Current,
		"active": m.Active.Current, "requested": m.Requested.Current})
	if err != nil {
		return err
	}
	for name, write := range map[string]func(path string) error{
		"snapshot.pickle": h.WriteSnapshot, "heap.pb.gz": h.WriteHeap, "memory.html": h.WritePage, "memory.svg": h.WriteSVG,
		"counters.json": func(path string) error { return os.WriteFile(path, counters, 0o666) },
	} {
		if err := write(filepath.Join(*dir, name)); err != nil {
			return err
		}
	}
	lines, err := h.Timelines(0)
	if err != nil {
		return err
	}
	for _, t := range lines {
		fmt.Print(t.Terminal(100, 24, true))
	}
	fmt.Println(*dir)
	return nil
}
