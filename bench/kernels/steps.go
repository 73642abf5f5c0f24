package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/train"
)

// run is a training of which the report says what compiling its kernels takes.
type run struct {
	name   string
	change func(c *train.Config)
}

func gpt(c *train.Config) { c.Task, c.Vocab = "gpt", 65 }

// gpt2 has GPT-2's sizes, but for the number of layers, which are alike.
func gpt2(c *train.Config) {
	gpt(c)
	c.Vocab, c.Context, c.Layers, c.Heads, c.Width, c.Batch, c.Dropout = 50257, 256, 1, 12, 768, 4, 0.1
}

func amp(f func(c *train.Config)) func(c *train.Config) {
	return func(c *train.Config) {
		f(c)
		c.AMP = train.AMPBF16
	}
}

func task(name string) func(c *train.Config) { return func(c *train.Config) { c.Task = name } }

var runs = []run{
	{"train gpt", gpt}, {"train gpt --amp", amp(gpt)}, {"GPT-2's sizes", gpt2}, {"GPT-2's sizes, --amp", amp(gpt2)},
	{"train mlp", task("mlp")}, {"train digits", task("digits")}, {"train digits --amp", amp(task("digits"))},
}

// modules are what a run has the driver compile: in its first steps, and when all is done, scores included.
type modules struct{ step, all []string }

// recorder is a simulated GPU whose kernels do nothing, which tells the modules that it was given.
type recorder struct {
	sync.Mutex
	names  map[string]string // by PTX
	loaded map[string]bool
	step   []string
}

const kind = "recorded"

func newRecorder() *recorder {
	r := &recorder{names: map[string]string{}}
	for _, m := range modulesFor("80") {
		if text, err := m.PTX(); err == nil {
			r.names[string(text)] = m.Name
		}
	}
	device.Register(kind, device.Engine{Open: r.open})
	return r
}

func (r *recorder) open(n device.Name) (device.Device, error) {
	s, err := simcuda.New(simcuda.Config{Card: cards.Default, Devices: 1})
	if err != nil {
		return nil, err
	}
	api := *s.API()
	api.Lines = false // so that the text is the module's alone
	load := api.ModuleLoadData
	api.ModuleLoadData = func(image []byte) (driver.Module, string, driver.Result) {
		r.Lock()
		defer r.Unlock()
		r.loaded[r.names[string(image)]] = true
		return load(image)
	}
	api.LaunchKernelEx = func(*driver.LaunchConfig, driver.Function, []byte) driver.Result { return driver.Success }
	return cuda.New(&api, 0, n.String(), cuda.Options{})
}

// list is what is loaded so far.
func (r *recorder) list() []string {
	r.Lock()
	defer r.Unlock()
	return slices.Sorted(maps.Keys(r.loaded))
}

// Step and the others make it a train.Watcher.
func (r *recorder) Step(train.Step)   { r.step = r.list() }
func (r *recorder) Start(train.Start) {}
func (r *recorder) Score(train.Score) {}
func (r *recorder) Scoring(_, _ int)  {}
func (r *recorder) Note(string)       {}

// record trains for two steps on a device of its own.
func (r *recorder) record(index int, change func(c *train.Config), tokens string) (m modules, err error) {
	var named train.Config
	change(&named)
	c, err := train.Defaults(named.Task)
	if err != nil {
		return m, err
	}
	change(&c)
	c.Steps, c.Device = 2, fmt.Sprint(kind, ":", index)
	if c.Task == "gpt" {
		c.Tokens = tokens
	}
	r.loaded = map[string]bool{}
	if _, err := train.Run(context.Background(), c, r); err != nil {
		return m, err
	}
	return modules{r.step, r.list()}, nil
}

// reportRuns prints what the modules of each run take together, by what each takes.
func reportRuns(took map[string]time.Duration) error {
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(strings.Repeat("\x07\x00\x09\x00", 1<<14)), 0o666); err != nil {
		return err
	}
	sum := func(names []string) (s float64) {
		for _, n := range names {
			s += took[n].Seconds()
		}
		return s
	}
	fmt.Print("\n## What a run compiles\n\nSeconds of all modules together; the driver compiles those that Preload names side by side.\n\n")
	fmt.Print("| run | a step | with scores | modules of a step, by time | only scores |\n|---|---|---|---|---|\n")
	r := newRecorder()
	for i, job := range runs {
		m, err := r.record(i, job.change, tokens)
		if err != nil {
			return fmt.Errorf("%s: %w", job.name, err)
		}
		only := slices.DeleteFunc(slices.Clone(m.all), func(n string) bool { return slices.Contains(m.step, n) })
		slices.SortFunc(m.step, func(a, b string) int { return int(took[b] - took[a]) })
		fmt.Printf("| %s | %.1f | %.1f | %s | %s |\n", job.name, sum(m.step), sum(m.all), strings.Join(m.step, " "), strings.Join(only, " "))
	}
	return nil
}
