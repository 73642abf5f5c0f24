package train

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/data/text"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// opened is a model that was read for evaluation or sampling.
type opened struct {
	from      string
	arch      zoo.Arch
	env       *tensor.Env
	model     nn.Module
	tokenizer *text.Tokenizer // nil where there is no text
	encoder   *table.Encoder  // nil where there are no rows
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
	env, err := machine.Open(device, watch.Note)
	if err != nil {
		return nil, err
	}
	env.Device().ResetPeak()
	var like zoo.Arch
	if heads > 0 {
		like.GPTConfig = &model.GPTConfig{Heads: heads}
	}
	a, err := readArch(described(from), like)
	if err != nil {
		return nil, err
	}
	if isWeights := dataset.IsFile(from); isWeights {
		a.weights = from
	}
	if heads > 0 && a.Writing().Heads != heads {
		return nil, otherHeads(&a.Arch, from, heads)
	}
	m := &opened{from: from, arch: a.Arch, env: env}
	if a.file != nil {
		if err := m.readFolder(a.file); err != nil {
			return nil, err
		}
	}
	m.model = a.Make(env)
	if m.run != nil && a.weights != from && !finished(from) {
		return m, m.newest(watch)
	}
	if err := ckpt.LoadModel(a.weights, m.model); err != nil {
		return nil, explain(err, "give a finished run: its folder has "+ckpt.ModelFile)
	}
	return m, nil
}

// described is what tells more of a file of weights than its shapes: the folder of the run that it ends. Other paths stand
// for themselves.
func described(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(path) != ckpt.ModelFile || !dataset.IsFile(path) {
		return path
	}
	if f, err := readConfig(dir); err == nil && f.Run != nil {
		return dir
	}
	return path
}

// context is how many tokens a row has that is scored: as many as the run learnt from.
func (m *opened) context() int {
	w := m.arch.Writing()
	switch {
	case m.run == nil || !m.arch.Writes():
		return w.Context
	case w.Context == 0:
		return m.run.Context
	}
	return min(m.run.Context, w.Context)
}

// otherHeads refuses a number of heads that the model does not have.
func otherHeads(a *zoo.Arch, from string, heads int) error {
	if !a.Attends() {
		return fail("leave --heads out", "--heads is for gpt, and %s is of type %s", from, a.Kind)
	}
	return fail("leave --heads out", "--heads %d contradicts %s, which has %d", heads, from, a.Writing().Heads)
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
	c, err := ckpt.Open(m.from)
	if err != nil {
		return explain(err, "give a finished run: its folder has "+ckpt.ModelFile)
	}
	defer c.Close()
	m.run.adapt(m.env, m.model)
	var mean *average
	if m.run.Average > 0 || recipe.OptimizerOf(m.run.Optimizer).Averages {
		mean = &average{mean: nn.NewEMA[any](m.model, m.run.Average)}
	}
	rows := newStreams(m.env, m.model, m.run.Batch) // which the checkpoint has too
	if err := c.Model(&weights{m.model, mean.or(nil), rows}); err != nil {
		return explain(err, "give a finished run: its folder has "+ckpt.ModelFile)
	}
	for _, w := range c.Damaged() {
		watch.Note(fmt.Sprintf("%v; taking %s", w, c.Path()))
	}
	watch.Note(fmt.Sprintf("the run is not finished: this is step %d of %d, from %s; finish it with train --resume --out %s", c.Step(), m.run.Steps, filepath.Base(c.Path()), m.from))
	m.model, m.step = mean.or(m.model).(nn.Module), c.Step()
	nn.MergeLoRA(m.model)
	return nil
}

// readFolder reads what lies beside the weights in the folder of a config.json.
func (m *opened) readFolder(f *file) (err error) {
	if f.Run != nil {
		if m.run, err = f.Run.read(m.dir()); err != nil {
			return err
		}
	}
	if m.arch.Of().Data == zoo.Table {
		m.encoder, err = loadEncoder(m.dir())
		return err
	}
	path := filepath.Join(m.dir(), tokenizerFile)
	if !m.arch.Writes() || !dataset.IsFile(path) {
		return nil
	}
	t, err := text.Load(path)
	if err != nil {
		return explain(err, "give the folder of a run")
	}
	m.tokenizer = t
	return nil
}

// dir is the folder of what was read.
func (m *opened) dir() string {
	if dataset.IsFile(m.from) {
		return filepath.Dir(m.from)
	}
	return m.from
}

// data opens the set to score, and names it: the one that is given, whole, or what the run held out.
func (m *opened) data(c *EvalConfig) (_ dataset.Source, name string, err error) {
	if c.Skip < 0 {
		return nil, "", fail("give a number from 0 up", "--skip is %d", c.Skip)
	}
	if c.Data != "" && c.Tokens != "" {
		return nil, "", fail("give one of them", "--data %s and --tokens %s are two data sets", c.Data, c.Tokens)
	}
	given := c.Data != "" || c.Tokens != ""
	if !given {
		if m.run == nil && m.arch.Of().Data != zoo.Pictures {
			return nil, "", fail("give --data", "%s does not say what to score it on", m.from)
		}
		if m.run != nil {
			c.Data, c.Tokens = m.run.Data, m.run.Tokens
		}
	}
	p := part{held: !given && m.run != nil && m.run.Order == "random"}
	set, err := families[m.arch.Of().Data].score(m, c, &p)
	if err != nil {
		return nil, "", err
	}
	if p.whole() && m.run != nil && dataset.Absolute(c.Data) == m.run.Data && dataset.Absolute(c.Tokens) == m.run.Tokens {
		c.Watch.Note("the samples that the run trained on are among these")
	}
	return set, p.name(cmp.Or(c.Data, c.Tokens, dataset.DrawnName(m.arch.Of().Task)), c.Skip), nil
}

// part is what of a set is scored.
type part struct {
	held bool // the last tenth, unless there is a part for it
	test bool // the part for it
	lots bool // what is held was drawn by lot
}

func (p part) whole() bool { return !p.test && !p.held }

// name tells people what is scored.
func (p part) name(of string, skip int) string {
	name := "all of " + of
	switch {
	case p.test:
		name = "the test set of " + of
	case p.held && p.lots:
		name = "the tenth held out of " + of
	case p.held:
		name = "the last tenth of " + of
	}
	if skip > 0 {
		name += fmt.Sprintf(" without its first %d", skip)
	}
	return name
}

// images opens pictures. Of a set that has a part for it, that part is scored, and not the whole.
func (m *opened) images(c *EvalConfig, p *part) (dataset.Source, error) {
	if c.Tokens != "" {
		return nil, fail("give --data", "--tokens %s are no pictures", c.Tokens)
	}
	set, test, err := dataset.Pictures(c.Data)
	if err != nil {
		return nil, err
	}
	switch {
	case test != nil:
		set, p.test = test, true
	case p.held:
		set = data.Subset(set, set.Len()-set.Len()/10, set.Len())
	}
	if set.Len() == 0 {
		return nil, fail("give --data", "%s held out nothing to score", m.from)
	}
	if c.Skip >= set.Len() {
		return nil, fail("skip fewer", "--skip %d leaves nothing of %d samples", c.Skip, set.Len())
	}
	if err := m.suits(c, set); err != nil {
		return nil, err
	}
	return dataset.Pairs{Source: data.Subset(set, c.Skip, set.Len())}, nil
}

// suits compares pictures with what the model takes.
func (m *opened) suits(c *EvalConfig, set data.Source[data.Pair]) error {
	shape, a := set.Fields()[0].Shape, &m.arch
	if shape[0] != a.Channels || !a.Of().AnySize() && (shape[1] != a.Height || shape[2] != a.ImageConfig.Width) {
		return fail("give data of the model's size", "%s takes pictures of %d×%d×%d, the data has %d×%d×%d", m.from, a.Channels, a.Height, a.ImageConfig.Width, shape[0], shape[1], shape[2])
	}
	if a.Of().Unit {
		return units(&Config{Task: a.Of().Task, Data: c.Data}, set)
	}
	if c.Data == "" {
		return nil
	}
	_, err := dataset.Classes(set, a.Classes)
	return err
}

// text opens a text or tokens.
func (m *opened) text(c *EvalConfig, p *part) (dataset.Source, error) {
	var err error
	switch {
	case c.Tokens != "":
		m.set, err = tokens.Open(c.Tokens, m.arch.Writing().Vocab)
	case m.tokenizer == nil:
		return nil, fail("give --tokens", "%s has no %s to read %s with", m.from, tokenizerFile, c.Data)
	default:
		var raw []byte
		if raw, err = dataset.Text(c.Data); err == nil {
			m.set, err = m.tokenizer.Tokens(c.Data, string(raw))
		}
	}
	if err != nil {
		return nil, explain(err, "give --data a text, or --tokens a file of little-endian uint16")
	}
	set := m.set
	if p.held {
		set = set.Part(set.Len()-set.Len()/10, set.Len())
	}
	if c.Skip >= set.Len() && c.Skip > 0 {
		return nil, fail("skip fewer", "--skip %d leaves nothing of %d tokens", c.Skip, set.Len())
	}
	src, err := dataset.NewBlocks(set.Part(c.Skip, set.Len()), m.arch.Scored(m.context()))
	if err != nil {
		return nil, fail("give more text", "%s: %v", cmp.Or(c.Data, c.Tokens), err)
	}
	return src, nil
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
	vocab := m.arch.Writing().Vocab
	for _, word := range strings.Fields(prompt) {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id < 0 || id >= int64(vocab) {
			return nil, fail(fmt.Sprintf("give numbers below %d: the folder has no %s", vocab, tokenizerFile), "%q in the prompt is no token", word)
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
