// Command trace profiles some steps of a small GPT and compares what others read of the trace with package prof's own
// figures:
//
//	go run ./bench/trace -python PYTHON     one that has HolisticTraceAnalysis
//
// It prints the trace's path and our figures, and theirs beside if there is a Python.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"

	_ "embed"
)

var (
	name   = flag.String("device", "sim:h100-80", "device to profile")
	python = flag.String("python", "", "Python with HolisticTraceAnalysis; none if empty")
	dir    = flag.String("dir", filepath.Join(os.TempDir(), "warpline-trace"), "folder of the trace")
)

//go:embed hta.py
var script string

// figures are ours, in microseconds.
type figures struct {
	Busy    float64            `json:"busy"`
	Compute float64            `json:"compute"`
	Span    float64            `json:"span"`
	Queues  []float64          `json:"queues"` // mean lengths, by stream
	Longest []int              `json:"longest"`
	Kernels map[string]float64 `json:"kernels"`
	Calls   int                `json:"calls"`
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	p := profiled()
	if err := p.WriteTable(os.Stdout, prof.Table{By: prof.Op, Top: 12}); err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(*dir, 0o777); err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(*dir, "trace.json")
	if err := p.WriteTrace(path); err != nil {
		log.Fatal(err)
	}
	fmt.Println(path)
	if *python == "" {
		return
	}
	s := p.Summary()
	ours := figures{Kernels: map[string]float64{}, Busy: float64(s.Busy) / 1e3, Compute: float64(s.Busy-s.Copies) / 1e3, Span: float64(s.Span) / 1e3}
	for _, q := range p.QueueLengths() {
		ours.Queues, ours.Longest = append(ours.Queues, q.Mean), append(ours.Longest, q.Max)
	}
	for _, r := range p.Rows(prof.Kernel) {
		ours.Kernels[r.Name] = float64(r.Self) / 1e3
		ours.Calls += r.Calls
	}
	text, err := json.Marshal(ours)
	if err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command(*python, "-c", script, *dir, string(text))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

func profiled() *prof.Profile {
	env, err := tensor.Open(*name)
	if err != nil {
		log.Fatal(err)
	}
	m := model.NewGPT(env, model.GPTConfig{Vocab: 65, Context: 32, Layers: 2, Heads: 2, Width: 32})
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
	p := prof.New(prof.Config{Warmup: 1, Active: 3, Repeat: 1, Memory: true})
	env = env.Profiled(p)
	for range 4 {
		env.Do(func(env *tensor.Env) *tensor.Tensor {
			ids := tensor.From(env, make([]int64, 2*32), 2, 32)
			loss := m.Loss(ids, ids)
			loss.Backward()
			opt.Step()
			return loss
		})
		p.Step()
	}
	p.Stop()
	return p.Last()
}
