// Command memory records the memory of a training and writes it in all forms, for people to look at and for others' tools to
// check (README.md says how):
//
//	go run ./bench/memory -model gpt -device sim:a100-80 -dir DIR
//
// counters.json has what the device counts at the same moment.
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
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	env, err := tensor.Fresh(*name)
	if err != nil {
		log.Fatal(err)
	}
	step, params := program(env)
	opt := optim.NewAdamW(params, optim.AdamWConfig{LR: 1e-3})
	h := prof.NewHistory(prof.HistoryConfig{Stacks: *stacks})
	env.Profiled(h)
	side := env.On(env.NewQueue())
	for i := range *steps {
		fmt.Println(prof.Memory(env, func() {
			e, scope := env.Scope(uint64(i))
			defer scope.End()
			loss := step(e)
			loss.In(side).Neg() // memory that another queue uses
			loss.Backward()
			opt.Step()
		}))
	}
	if err := write(h, env); err != nil {
		log.Fatal(err)
	}
}

// program is a forward of a model, and the model's parameters.
func program(env *tensor.Env) (func(e *tensor.Env) *tensor.Tensor, func(func(string, *tensor.Tensor) bool)) {
	switch *kind {
	case "gpt":
		m := model.NewGPT(env, model.GPTConfig{Vocab: 512, Context: 64, Layers: 4, Heads: 4, Width: 128})
		tokens := make([]int64, 4*64)
		return func(e *tensor.Env) *tensor.Tensor {
			return m.Loss(tensor.From(e, tokens, 4, 64), tensor.From(e, tokens, 4, 64))
		}, nn.Params(m)
	case "mlp":
		m := model.NewMLP(env, model.Digits, 256)
		return func(e *tensor.Env) *tensor.Tensor {
			return nn.CrossEntropy(m.Forward(e.Rand(128, 1, 28, 28)), tensor.From(e, make([]int64, 128), 128))
		}, nn.Params(m)
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
