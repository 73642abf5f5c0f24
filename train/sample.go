package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/tensor"
)

// SampleConfig says what Sample writes or draws.
type SampleConfig struct {
	From    string // a run folder of a model that writes or draws
	Device  string // as tensor.Open takes it; empty: the best there is
	Seed    uint64
	Threads int // of the CPU; 0: all

	// The following are of models that write.
	Prompt      string // text, or numbers of tokens where the folder has no tokenizer; empty: token 0
	Length      int    // tokens to add
	Temperature float64
	TopK        int // 0: all
	Heads       int // of a bare file of weights; 0: as many as are 64 wide

	// The following are of models that draw.
	Count int    // pictures
	Out   string // a PNG that there is not yet; empty: sample.png in the folder of From, which it replaces

	Given map[string]bool // settings, by the command's names, that somebody chose: one of models of the other kind is refused
	Watch Watcher         // told in notes; nil: nobody
}

// Sampled is what Sample came to.
type Sampled struct {
	Tokens   int       // that were written
	Pictures []Picture // that were drawn
	Out      string    // the file that has them; empty: a text was written
}

// check refuses numbers without meaning, and settings that the model would ignore.
func (c *SampleConfig) check(writes bool) error {
	const whoWrite, whoDraw = "prompt length temperature top-k heads", "count out"
	names, of := whoWrite, zoo.Tasks(true)
	if writes {
		names, of = whoDraw, zoo.Painters()
	}
	for _, name := range strings.Fields(names) {
		if c.Given[name] {
			return fail(fmt.Sprintf("leave --%s out", name), "--%s is for %s, and %s has another model", name, advice.List(of), c.From)
		}
	}
	switch {
	case writes && c.Length < 1:
		return fail("give a number from 1 up", "--length is %d", c.Length)
	case writes && !(c.Temperature >= 0 && c.Temperature < 1e6):
		return fail("give a number from 0 up", "--temperature is %v", c.Temperature)
	case writes && c.TopK < 0:
		return fail("give a number from 0 up", "--top-k is %d", c.TopK)
	case !writes && (c.Count < 1 || c.Count > mostDrawn):
		return fail(fmt.Sprintf("give a number from 1 to %d", mostDrawn), "--count is %d", c.Count)
	}
	return nil
}

// mostDrawn is how many pictures one file has at most.
const mostDrawn = 4096

// Sample lets a model go on with a prompt, or draw pictures. write gets each piece of a text as it is chosen. It stops after the token
// under way when ctx is cancelled, and tells beside [ErrInterrupted] what there is.
func Sample(ctx context.Context, c SampleConfig, write func(piece string) error) (out *Sampled, err error) {
	defer machine.Recovered(&err)
	defer setThreads(c.Threads)()
	if c.Watch == nil {
		c.Watch = silent{}
	}
	m, err := open(c.From, c.Device, c.Heads, c.Watch)
	if err != nil {
		return nil, err
	}
	defer machine.AllowWaits(m.env.Device())()
	if !m.env.Device().Computes() {
		return nil, fail("give --device cpu", "%s computes nothing, so it has nothing to show", c.Device)
	}
	switch g := m.model.(type) {
	case zoo.Author:
		if err := c.check(true); err != nil {
			return nil, err
		}
		return m.write(ctx, &c, g, write)
	case zoo.Painter:
		if err := c.check(false); err != nil {
			return nil, err
		}
		return m.draw(&c, g)
	}
	return nil, fail("ask it by predict or score it by eval, or give the folder of a run of one of "+strings.Join(append(zoo.Tasks(true), zoo.Painters()...), ", "), "%s is of type %s, which neither writes nor draws", c.From, m.arch.Kind)
}

// write goes on with a prompt.
func (m *opened) write(ctx context.Context, c *SampleConfig, g zoo.Author, write func(piece string) error) (*Sampled, error) {
	out := &Sampled{}
	prompt, err := m.encode(c.Prompt)
	if err != nil {
		return out, explain(err, "change --prompt")
	}
	for id := range g.Generate(m.env, prompt, c.Length, model.SampleConfig{Temperature: c.Temperature, TopK: c.TopK, Seed: c.Seed}) {
		out.Tokens++
		piece, err := m.decode(id)
		if err == nil {
			err = write(piece)
		}
		if err != nil {
			return out, err
		}
		if ctx.Err() != nil && out.Tokens < c.Length {
			return out, ErrInterrupted
		}
	}
	return out, nil
}

// draw leaves a file of pictures.
func (m *opened) draw(c *SampleConfig, g zoo.Painter) (*Sampled, error) {
	out := &Sampled{Out: cmp.Or(c.Out, filepath.Join(m.dir(), "sample.png"))}
	if _, err := os.Lstat(out.Out); c.Out != "" && !errors.Is(err, os.ErrNotExist) {
		return nil, fail("remove it, or give another --out", "%s exists, and is not replaced", c.Out)
	}
	var sheet image.Image
	m.env.Seed(c.Seed).NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
		x := g.Draw(env, c.Count)
		sheet, out.Pictures = grid(x), shown("", x.Mean(1))
		return nil
	})
	return out, explain(savePNG(out.Out, sheet), "give another --out")
}
