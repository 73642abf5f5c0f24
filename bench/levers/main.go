// Command levers measures what the levers of memory save of a training's most bytes at once, and what they cost of this processor's
// time: for a GPT and a ResNet-18, each lever beside the plain run, in turns.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

var (
	rounds = flag.Int("rounds", 3, "how often each lever is measured beside the plain run; medians are told")
	steps  = flag.Int("steps", 4, "steps of a run; the first two do not count, and there must be more")
	only   = flag.String("lever", "", "measure only levers whose flag has this in it")
)

// vocab is large enough for scores to be most of a step's memory, as in published models; of these the text has some.
const vocab, used = 16384, 256

// lever is a change of a run, and what the run is without it.
type lever struct {
	name          string
	plain, pulled func(c *train.Config)
}

var (
	as  = func(*train.Config) {}
	gpt = []lever{{"--accumulate 4", as, parts}, {"--head chunked", whole, as}, {"--step-in-backward", few, both(few, inward)},
		{"--recompute attention", as, recompute("attention")}, {"--recompute block", as, recompute("block")}, {"--recompute auto", as, recompute("auto")}}
	resn = []lever{{"--accumulate 4", as, parts}, {"--step-in-backward", few, both(few, inward)}, {"--recompute block", as, recompute("block")},
		{"--recompute auto", as, recompute("auto")}}
)

func both(a, b func(c *train.Config)) func(c *train.Config) {
	return func(c *train.Config) {
		a(c)
		b(c)
	}
}

func parts(c *train.Config)  { c.Accumulate = 4 }
func inward(c *train.Config) { c.InBackward = true }

// few samples of few tokens leave the gradients a part of the most.
func few(c *train.Config) { c.Batch, c.Width = 2, 256; c.Vocab = min(c.Vocab, used) }

func whole(c *train.Config) { c.Head = train.HeadWhole }

func recompute(what train.Recompute) func(c *train.Config) {
	return func(c *train.Config) { c.Recompute = what }
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	dir, err := os.MkdirTemp("", "levers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ids := filepath.Join(dir, "ids")
	if err := os.WriteFile(ids, tokens(1<<16), 0o666); err != nil {
		log.Fatal(err)
	}
	measure("gpt", gpt, func(c *train.Config) {
		c.Tokens, c.Vocab, c.Context, c.Width, c.Layers, c.Batch = ids, vocab, 64, 128, 4, 16
	})
	measure("resnet18", resn, func(c *train.Config) { c.Batch, c.Optimizer = 96, "sgd" })
}

func tokens(n int) (raw []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(r.IntN(used)))
	}
	return raw
}

// measure prints a line for each lever of a task.
func measure(task string, levers []lever, size func(c *train.Config)) {
	for _, l := range levers {
		if !strings.Contains(l.name, *only) {
			continue
		}
		var before, after int64
		var ratios []float64
		for range *rounds {
			var a, b float64
			before, a = once(task, size, l.plain)
			after, b = once(task, size, l.pulled)
			ratios = append(ratios, b/a)
		}
		fmt.Printf("%-9s %-24s %10s, %10s without: saves %10s (%2.0f %%), takes %.2f × the time\n", task, l.name, render.Bytes(after), render.Bytes(before),
			render.Bytes(before-after), 100*float64(before-after)/float64(before), peer.Median(ratios))
	}
}

// once runs a task and tells its peak and the processor's time of a step.
func once(task string, changes ...func(c *train.Config)) (peak int64, time float64) {
	c, err := train.Defaults(task)
	if err != nil {
		log.Fatal(err)
	}
	c.Device, c.Steps, c.Average, c.Given = "cpu", *steps, 0, map[string]bool{"average": true}
	for _, change := range changes {
		change(&c)
	}
	c.EvalEvery, c.Order = 0, "sequential" // nothing is held out, nothing scored
	env, err := tensor.Open(c.Device)
	if err != nil {
		log.Fatal(err)
	}
	runtime.GC() // what the run before has left is no part of this one
	env.Device().Collect()
	w := &watch{}
	r, err := train.Run(context.Background(), c, w)
	if err != nil {
		log.Fatal(err)
	}
	return r.PeakBytes, (w.last - w.first).Seconds() / float64(*steps-warm)
}

// warm is how many steps come before those that count.
const warm = 2

// watch reads the processor's time of a run.
type watch struct{ first, last time.Duration }

func (w *watch) Step(s train.Step) {
	if w.last = peer.ProcessorTime(); s.Step == warm {
		w.first = w.last
	}
}

func (w *watch) Start(train.Start) {}
func (w *watch) Score(train.Score) {}
func (w *watch) Scoring(_, _ int)  {}
func (w *watch) Note(string)       {}
