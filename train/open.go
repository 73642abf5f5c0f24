package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/text"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// opened is a model that was read for evaluation or sampling.
type opened struct {
	from      string
	arch      arch
	env       *tensor.Env
	model     nn.Module
	tokenizer *text.Tokenizer // nil where there is no text
	run       *Config         // nil for weights that are no run's
	step      int             // of the run's checkpoint, where that stands for its model; else 0
	set       *tokens.Set     // to score; nil: none, or pictures
}

// close lets go of the data.
func (m *opened) close() {
	if m.set != nil {
		m.set.Close()
	}
}

// open reads a model from a run folder, a published model's folder or a safetensors file.
func open(from, device string, heads int, watch Watcher) (*opened, error) {
	env, err := openDevice(device, watch)
	if err != nil {
		return nil, err
	}
	env.Device().ResetPeak()
	var like arch
	if heads > 0 {
		like.GPTConfig = &model.GPTConfig{Heads: heads}
	}
	a, err := readArch(from, like)
	if err != nil {
		return nil, err
	}
	if heads > 0 && (!a.writes() || a.Heads != heads) {
		return nil, a.otherHeads(from, heads)
	}
	m := &opened{from: from, arch: a.arch, env: env}
	if a.file != nil {
		if err := m.readFolder(a.file); err != nil {
			return nil, err
		}
	}
	m.model = a.make(env)
	if m.run != nil && !finished(from) {
		return m, m.newest(watch)
	}
	if err := ckpt.LoadModel(a.weights, m.model); err != nil {
		return nil, explain(err, "give a finished run: its folder has "+ckpt.ModelFile)
	}
	return m, nil
}

// otherHeads refuses a number of heads that the model does not have.
func (a *arch) otherHeads(from string, heads int) error {
	if !a.writes() {
		return fail("leave --heads out", "--heads is for gpt, and %s is of type %s", from, a.Kind)
	}
	return fail("leave --heads out", "--heads %d contradicts %s, which has %d", heads, from, a.Heads)
}

// finished tells whether model.safetensors is of a run's newest step: its log then has an end.
func finished(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil || !saved(dir) {
		return true // a copy without them
	}
	for text := range bytes.Lines(raw) {
		var l line
		if json.Unmarshal(text, &l) == nil && l.Final {
			return true
		}
	}
	return false
}

// newest takes the weights from the newest checkpoint of a run that was cut off.
func (m *opened) newest(watch Watcher) error {
	mean := newAverage(m.model, m.run.Average)
	s := &ckpt.State{Model: &weights{m.model, mean.or(nil)}, Optimizer: optimizer(m.run, m.model)}
	path, warnings, err := ckpt.Latest(m.from, s)
	if err != nil {
		return explain(err, "give a finished run: its folder has "+ckpt.ModelFile)
	}
	for _, w := range warnings {
		watch.Note(fmt.Sprintf("%v; taking %s", w, path))
	}
	watch.Note(fmt.Sprintf("the run is not finished: this is step %d of %d, from %s; finish it with train --resume --out %s", s.Step, m.run.Steps, filepath.Base(path), m.from))
	m.model, m.step = mean.or(m.model), s.Step
	return nil
}

// readFolder reads what lies beside the weights in the folder of a config.json.
func (m *opened) readFolder(f *file) (err error) {
	if f.Run != nil {
		if m.run, err = f.Run.read(m.from); err != nil {
			return err
		}
	}
	path := filepath.Join(m.from, tokenizerFile)
	if !m.arch.writes() || !isFile(path) {
		return nil
	}
	t, err := text.Load(path)
	if err != nil {
		return explain(err, "give the folder of a run")
	}
	m.tokenizer = t
	return nil
}

// data opens the set to score: the one that is given, whole, or what the run held out.
func (m *opened) data(c *EvalConfig) (source, error) {
	if c.Skip < 0 {
		return nil, fail("give a number from 0 up", "--skip is %d", c.Skip)
	}
	if c.Data != "" && c.Tokens != "" {
		return nil, fail("give one of them", "--data %s and --tokens %s are two data sets", c.Data, c.Tokens)
	}
	given := c.Data != "" || c.Tokens != ""
	if !given {
		if m.run == nil && m.arch.writes() {
			return nil, fail("give --data, or --tokens", "%s does not say what to score it on", m.from)
		}
		if m.run != nil {
			c.Data, c.Tokens = m.run.Data, m.run.Tokens
		}
	}
	learnt := given && m.run != nil && absolute(c.Data) == m.run.Data && absolute(c.Tokens) == m.run.Tokens
	held := !given && m.run != nil && m.run.Order == "random"
	set, whole, err := source(nil), true, error(nil)
	if m.arch.writes() {
		set, err = m.text(c, held)
	} else {
		set, whole, err = m.images(c, held)
	}
	if err == nil && learnt && whole {
		c.Watch.Note("the samples that the run trained on are among these")
	}
	return set, err
}

// images opens pictures. Of a set that has a part for it, that part is scored, and not the whole; held asks for the last
// tenth of others.
func (m *opened) images(c *EvalConfig, held bool) (_ source, whole bool, err error) {
	if c.Tokens != "" {
		return nil, false, fail("give --data", "--tokens %s are no pictures", c.Tokens)
	}
	set, test, err := openImages(c.Data)
	if err != nil {
		return nil, false, err
	}
	switch {
	case test != nil:
		set = test
	case held:
		set = data.Subset(set, set.Len()-set.Len()/10, set.Len())
	}
	if set.Len() == 0 {
		return nil, false, fail("give --data", "%s held out nothing to score", m.from)
	}
	if c.Skip >= set.Len() {
		return nil, false, fail("skip fewer", "--skip %d leaves nothing of %d samples", c.Skip, set.Len())
	}
	if err := m.suits(c, set); err != nil {
		return nil, false, err
	}
	return images{data.Subset(set, c.Skip, set.Len())}, test == nil, nil
}

// suits compares pictures with what the model takes.
func (m *opened) suits(c *EvalConfig, set data.Source[data.Pair]) error {
	shape, a := set.Fields()[0].Shape, &m.arch
	if shape[0] != a.Channels || !a.kind().anySize() && (shape[1] != a.Height || shape[2] != a.ImageConfig.Width) {
		return fail("give data of the model's size", "%s takes pictures of %d×%d×%d, the data has %d×%d×%d", m.from, a.Channels, a.Height, a.ImageConfig.Width, shape[0], shape[1], shape[2])
	}
	if c.Data == "" {
		return nil
	}
	_, err := classes(set, a.Classes)
	return err
}

// text opens a text or tokens; held asks for the last tenth.
func (m *opened) text(c *EvalConfig, held bool) (source, error) {
	var err error
	switch {
	case c.Tokens != "":
		m.set, err = tokens.Open(c.Tokens, m.arch.Vocab)
	case m.tokenizer == nil:
		return nil, fail("give --tokens", "%s has no %s to read %s with", m.from, tokenizerFile, c.Data)
	default:
		m.set, err = m.tokenizer.Open(c.Data)
	}
	if err != nil {
		return nil, explain(err, "give --data a text, or --tokens a file of little-endian uint16")
	}
	set := m.set
	if held {
		set = set.Part(set.Len()-set.Len()/10, set.Len())
	}
	if c.Skip >= set.Len() && c.Skip > 0 {
		return nil, fail("skip fewer", "--skip %d leaves nothing of %d tokens", c.Skip, set.Len())
	}
	src, err := newBlocks(set.Part(c.Skip, set.Len()), m.arch.Context)
	if err != nil {
		return nil, fail("give more text", "%s: %v", cmp.Or(c.Data, c.Tokens), err)
	}
	return src, nil
}

// SampleConfig says what Sample writes.
type SampleConfig struct {
	From        string // a run folder of a gpt
	Device      string // as tensor.Open takes it; empty: the best there is
	Prompt      string // text, or numbers of tokens where the folder has no tokenizer; empty: token 0
	Length      int    // tokens to add
	Temperature float64
	TopK        int // 0: all
	Seed        uint64
	Threads     int // of the CPU; 0: all
	Heads       int // of a bare file of weights; 0: as many as are 64 wide

	Watch Watcher // told in notes; nil: nobody
}

// check refuses numbers without meaning.
func (c *SampleConfig) check() error {
	switch {
	case c.Length < 1:
		return fail("give a number from 1 up", "--length is %d", c.Length)
	case !(c.Temperature >= 0 && c.Temperature < 1e6):
		return fail("give a number from 0 up", "--temperature is %v", c.Temperature)
	case c.TopK < 0:
		return fail("give a number from 0 up", "--top-k is %d", c.TopK)
	}
	return nil
}

// Sample lets a language model go on with a prompt. write gets each piece as it is chosen; the number of tokens comes
// back. It stops after the token under way when ctx is cancelled.
func Sample(ctx context.Context, c SampleConfig, write func(piece string) error) (n int, err error) {
	defer recovered(&err)
	defer setThreads(c.Threads)()
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.Watch == nil {
		c.Watch = silent{}
	}
	m, err := open(c.From, c.Device, c.Heads, c.Watch)
	if err != nil {
		return 0, err
	}
	defer allowWaits(m.env.Device())()
	if !m.env.Device().Computes() {
		return 0, fail("give --device cpu", "%s computes nothing, so it has no text to write", c.Device)
	}
	g, ok := m.model.(*model.GPT)
	if !ok {
		return 0, fail("give the folder of a gpt", "%s is of type %s, which writes no text", c.From, m.arch.Kind)
	}
	prompt, err := m.encode(c.Prompt)
	if err != nil {
		return 0, explain(err, "change --prompt")
	}
	for id := range g.Generate(m.env, prompt, c.Length, model.SampleConfig{Temperature: c.Temperature, TopK: c.TopK, Seed: c.Seed}) {
		n++
		piece, err := m.decode(id)
		if err == nil {
			err = write(piece)
		}
		if err != nil {
			return n, err
		}
		if ctx.Err() != nil && n < c.Length {
			return n, ErrInterrupted
		}
	}
	return n, nil
}

func (m *opened) encode(prompt string) ([]int64, error) {
	if prompt == "" {
		return []int64{0}, nil
	}
	var out []int64
	if m.tokenizer != nil {
		ids, err := m.tokenizer.Encode(prompt)
		for _, id := range ids {
			out = append(out, int64(id))
		}
		return out, err
	}
	for _, word := range strings.Fields(prompt) {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id < 0 || id >= int64(m.arch.Vocab) {
			return nil, fail(fmt.Sprintf("give numbers below %d: the folder has no %s", m.arch.Vocab, tokenizerFile), "%q in the prompt is no token", word)
		}
		out = append(out, id)
	}
	return out, nil
}

func (m *opened) decode(id int64) (string, error) {
	if m.tokenizer == nil {
		return strconv.FormatInt(id, 10) + " ", nil
	}
	return m.tokenizer.Decode(id)
}
