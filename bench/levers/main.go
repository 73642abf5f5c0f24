// Command levers measures what the levers of memory save of a training's most bytes at once, and what they cost in time on this
// processor: for a GPT and a ResNet-18, each lever beside the plain run, in turns.
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

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/train"
)

var (
	rounds = flag.Int("rounds", 3, "how often each lever is measured beside the plain run; medians are told")
	steps  = flag.Int("steps", 4, "steps of a run; the first two do not count")
)

// vocab is large enough for scores to be most of a step's memory, as in published models.
const vocab = 16384

// lever is a change of a run, and what the run is without it.
type lever struct {
	name          string
	plain, pulled func(c *train.Config)
}

var (
	as   = func(*train.Config) {}
	gpt  = []lever{{"--accumulate 4", as, parts}, {"--head chunked", whole, as}}
	resn = []lever{{"--accumulate 4", as, parts}}
)

func parts(c *train.Config) { c.Accumulate = 4 }
func whole(c *train.Config) { c.Head = train.HeadWhole }

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
	measure("resnet18", resn, func(c *train.Config) { c.Batch = 16 })
}

func tokens(n int) (raw []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(r.IntN(vocab)))
	}
	return raw
}

// measure prints a line for each lever of a task.
func measure(task string, levers []lever, size func(c *train.Config)) {
	for _, l := range levers {
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

// once runs a task and tells its peak and the milliseconds of a step.
func once(task string, changes ...func(c *train.Config)) (peak int64, ms float64) {
	c, err := train.Defaults(task)
	if err != nil {
		log.Fatal(err)
	}
	c.Device, c.Steps, c.Average, c.Given = "cpu", *steps, 0, map[string]bool{"average": true}
	for _, change := range changes {
		change(&c)
	}
	c.EvalEvery, c.Order = 0, "sequential" // nothing is held out, nothing scored
	r, err := train.Run(context.Background(), c, nil)
	if err != nil {
		log.Fatal(err)
	}
	var all []float64
	for _, s := range r.Log[2:] {
		all = append(all, s.MS)
	}
	return r.PeakBytes, peer.Median(all)
}
