package train

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/data/text"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// job is a task made concrete: data and the description of the model that learns from it.
type job struct {
	arch      zoo.Arch
	weights   string // a file to start from, or empty
	train     dataset.Source
	test      dataset.Source      // what is scored while training; nil: nothing is held out
	learnt    int                 // samples, or tokens, to learn from
	held      int                 // that are held out
	tenth     bool                // they are the last tenth of the set
	text      string              // fingerprint of the text or the tokens
	tokenizer *text.Tokenizer     // nil where there is no text
	encoder   *table.Encoder      // nil where there are no rows
	notes     []string            // about the data, that a person should know
	set       *tokens.Set         // of a gpt, which may be a mapped file
	perEpoch  func(batch int) int // training samples, tokens for text, over those of a step: steps of an epoch
	wrap      data.Config         // the order of samples
}

// close lets go of the data.
func (j *job) close() {
	if j != nil && j.set != nil {
		j.set.Close()
	}
}

// newJob opens the data of a run and decides about its model. It is closed at the end.
func newJob(c *Config) (*job, error) { return families[zoo.TrainedBy(c.Task).Data].open(c) }

// family is how data of a kind are opened.
type family struct {
	open  func(c *Config) (*job, error)                                    // for a run
	score func(m *opened, c *EvalConfig, p *part) (dataset.Source, error)  // to score a model, which says what of them in p
	ask   func(m *opened, c *PredictConfig, input string) ([]asked, error) // to predict; nil of texts, which are no files
}

var families = map[zoo.Data]family{
	zoo.Pictures: {newImages, (*opened).images, (*opened).askPicture},
	zoo.Text:     {newText, (*opened).text, nil},
	zoo.Table:    {newTable, (*opened).rows, (*opened).askRows},
	zoo.Drawn:    {newDrawn, (*opened).drawn, (*opened).askDrawn},
}

func newImages(c *Config) (*job, error) {
	all, test, err := dataset.Pictures(c.Data)
	if err != nil {
		return nil, err
	}
	if err := units(c, all, test); err != nil {
		return nil, err
	}
	n, err := labels(c, all, test)
	if err != nil {
		return nil, err
	}
	shape := all.Fields()[0].Shape
	j := &job{arch: zoo.Classifier(c.Task, model.ImageConfig{Channels: shape[0], Height: shape[1], Width: shape[2], Classes: n})}
	if c.Init != "" {
		if err := j.initImages(c, n); err != nil {
			return nil, err
		}
	}
	if err := j.arch.Check(); err != nil {
		return nil, fail("give other pictures", "%s: %v", c.Data, err)
	}
	train := all
	if test == nil && c.Order == "random" {
		train, test = data.Subset(all, 0, all.Len()-all.Len()/10), data.Subset(all, all.Len()-all.Len()/10, all.Len())
		j.tenth = true
	}
	j.train, j.learnt = dataset.Pairs{Source: train}, train.Len()
	if test != nil && test.Len() > 0 {
		j.test, j.held = dataset.Pairs{Source: test}, test.Len()
	}
	whole := j.arch.Of().Norms && c.Order == "random" && train.Len() >= c.Batch
	j.wrap = data.Config{Shuffle: c.Order == "random", Wrap: c.Order == "sequential", DropLast: whole}
	if c.Given["batch"] && j.wrap.Shuffle && c.Batch > train.Len() {
		return nil, fail(fmt.Sprintf("give --batch %d or less", train.Len()), "--batch %d is more than the %d samples there are to learn from", c.Batch, train.Len())
	}
	j.perEpoch = j.train.Batches
	if whole {
		j.perEpoch = j.wholeBatches
	}
	return j, nil
}

// wholeBatches is how many batches there are in what is learnt from, without a smaller one at the end.
func (j *job) wholeBatches(size int) int { return j.train.Len() / size }

// units refuses pictures that a model which draws could not mean.
func units(c *Config, parts ...data.Source[data.Pair]) error {
	if c.Data == "" || !zoo.TrainedBy(c.Task).Unit {
		return nil
	}
	for _, part := range parts {
		if part == nil {
			continue
		}
		if err := dataset.Unit(c.Data, part); err != nil {
			return err
		}
	}
	return nil
}

// labels is the number of classes of the parts of a set, of which one may be nil. Drawn digits are not drawn for it.
func labels(c *Config, parts ...data.Source[data.Pair]) (int, error) {
	if c.Data == "" {
		return model.Digits.Classes, nil
	}
	const most = 1 << 16
	count := 2
	for _, part := range parts {
		if part == nil {
			continue
		}
		n, err := dataset.Classes(part, most)
		if err != nil {
			return 0, err
		}
		count = max(count, n)
	}
	return count, nil
}

// initImages takes the model from c.Init. Its pictures must be the data's.
func (j *job) initImages(c *Config, labels int) error {
	want := j.arch
	a, err := readArch(c.Init, want)
	if err != nil {
		return err
	}
	if a.Kind != want.Kind {
		return fail(fmt.Sprintf("train %s with it", a.Of().Task), "%s is of type %s, and %s trains one of type %s", c.Init, a.Kind, c.Task, want.Kind)
	}
	if a.Channels != want.Channels || a.Height != want.Height || a.ImageConfig.Width != want.ImageConfig.Width {
		if !a.Of().AnySize() || a.Channels != want.Channels {
			return fail("give data of the model's size", "%s takes pictures of %d×%d×%d, the data has %d×%d×%d", c.Init,
				a.Channels, a.Height, a.ImageConfig.Width, want.Channels, want.Height, want.ImageConfig.Width)
		}
		a.Height, a.ImageConfig.Width = want.Height, want.ImageConfig.Width
	}
	if labels > a.Classes {
		return fail("give data of these classes", "%s tells %d classes apart, the data has %d", c.Init, a.Classes, labels)
	}
	j.arch, j.weights = a.Arch, a.weights
	return nil
}

func newText(c *Config) (*job, error) {
	j := &job{arch: zoo.Writer(c.Task, zoo.Writing{Vocab: c.Vocab, Context: c.Context, Layers: c.Layers, Heads: c.Heads, Width: c.Width})}
	if c.Init != "" {
		if err := j.initText(c); err != nil {
			return nil, err
		}
	}
	if err := j.openText(c); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// initText takes the model from c.Init. Sizes that are given must be its; only of its positions a run may use fewer.
func (j *job) initText(c *Config) error {
	like := j.arch
	if !c.Given["heads"] {
		like.GPTConfig = nil
	}
	a, err := readArch(c.Init, like)
	if err != nil {
		return err
	}
	if a.Kind != j.arch.Kind {
		return fail(fmt.Sprintf("train %s with it", a.Of().Task), "%s is of type %s and no %s", c.Init, a.Kind, j.arch.Kind)
	}
	w := a.Writing()
	for _, f := range []struct {
		name     string
		here, of int
	}{{"layers", c.Layers, w.Layers}, {"heads", c.Heads, w.Heads}, {"width", c.Width, w.Width}, {"vocab", c.Vocab, w.Vocab}} {
		if c.Given[f.name] && f.here != f.of {
			return fail(fmt.Sprintf("leave --%s out", f.name), "--%s %d contradicts %s, which has %d", f.name, f.here, c.Init, f.of)
		}
	}
	switch {
	case w.Context == 0: // any
	case c.Given["context"] && c.Context > w.Context:
		return fail(fmt.Sprintf("give --context %d or less", w.Context), "--context %d is more than the %d positions of %s", c.Context, w.Context, c.Init)
	case !c.Given["context"] && !c.Resume:
		c.Context = w.Context
	}
	j.arch, j.weights = a.Arch, a.weights
	c.Layers, c.Heads, c.Width, c.Vocab = w.Layers, cmp.Or(w.Heads, c.Heads), w.Width, w.Vocab
	return nil
}

// madeUp is how many contexts a text has that a dry run makes up, which is the largest batch that it tells.
const madeUp = 4096

// openText opens a text or tokens, and divides them.
func (j *job) openText(c *Config) (err error) {
	switch {
	case c.Tokens != "":
		err = j.openTokens(c)
	case c.textless():
		j.set = tokens.New("a text that is made up", make([]uint16, max(madeUp, 2*c.Batch)*(c.Context+1)), j.arch.Writing().Vocab)
	default:
		err = j.readText(c)
	}
	if err != nil {
		return err
	}
	w := j.arch.Writing()
	w.Dropout = c.Dropout
	j.arch.Resize(w)
	if err := j.arch.Check(); err != nil {
		return fail("change the sizes", "%v", err)
	}
	return j.split(c)
}

func (j *job) openTokens(c *Config) (err error) {
	vocab := j.arch.Writing().Vocab
	if vocab == 0 {
		return fail("give --vocab N, the number of tokens that there are", "--tokens %s without a vocabulary", c.Tokens)
	}
	if j.set, err = tokens.Open(c.Tokens, vocab); err != nil {
		return explain(err, "give --tokens a file of little-endian uint16")
	}
	f, err := os.Open(c.Tokens)
	if err == nil {
		defer f.Close()
		j.text, err = dataset.Fingerprint(f, 2*j.set.Len())
	}
	return explain(err, "give a file that can be read")
}

// readText reads a text by the tokenizer beside the weights, or by its own, of characters.
func (j *job) readText(c *Config) error {
	raw, err := dataset.Text(c.Data)
	if err == nil {
		j.text, err = dataset.Fingerprint(bytes.NewReader(raw), len(raw))
	}
	if err == nil {
		j.tokenizer, err = tokenizer(c.Data, raw, j.weights)
	}
	if err == nil {
		j.set, err = j.tokenizer.Tokens(c.Data, string(raw))
	}
	if err != nil {
		return explain(err, "give --data a text file")
	}
	n, w := j.tokenizer.Size(), j.arch.Writing()
	if w.Vocab != 0 && w.Vocab != n {
		return fail("leave --vocab out, or give the text as --tokens", "a vocabulary of %d, and %s has %d different tokens", w.Vocab, c.Data, n)
	}
	c.Vocab, w.Vocab = n, n
	j.arch.Resize(w)
	return nil
}

// tokenizer is the one beside the weights, or that of a text's characters.
func tokenizer(path string, raw []byte, weights string) (*text.Tokenizer, error) {
	if beside := filepath.Join(filepath.Dir(weights), tokenizerFile); weights != "" && dataset.IsFile(beside) {
		return text.Load(beside)
	}
	if err := isText(path, raw); err != nil {
		return nil, err
	}
	t, err := text.NewTokenizer(string(raw), text.Characters)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// isText refuses what nobody would want to learn letter by letter.
func isText(path string, raw []byte) error {
	hint := "convert it to UTF-8, or give tokens as little-endian uint16 with --tokens"
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return fail(hint, "%s is no text: byte 0x%02x at offset %d", path, raw[i], i)
		}
		i += n
	}
	if first, n := utf8.DecodeRune(raw); n > 0 && len(bytes.Trim(raw, string(first))) == 0 {
		return fail("give a text of at least two different characters", "%s has nothing to learn: all of it is %q", path, first)
	}
	return nil
}

// split makes the training and the held-out part of a text.
func (j *job) split(c *Config) error {
	if j.arch.Of().Row > 0 {
		return j.splitStreams(c)
	}
	set, context := j.set, c.Context
	j.perEpoch = func(batch int) int { return max((set.Len()+batch*context-1)/(batch*context), 1) }
	if c.Order == "sequential" {
		src, err := set.Consecutive(c.Context)
		j.train, j.learnt, j.wrap = dataset.Texts{Source: src}, set.Len(), data.Config{Wrap: true}
		return explain(err, "give more text, or a shorter --context")
	}
	cut := set.Len() - set.Len()/10
	src, err := set.Part(0, cut).Windows(c.Context)
	if err != nil {
		return explain(err, "give more text, or a shorter --context")
	}
	j.train, j.learnt, j.wrap = dataset.Texts{Source: src}, cut, data.Config{Draw: true}
	j.holdOut(set.Part(cut, set.Len()), c)
	return nil
}

// splitStreams is split for a model that reads piece by piece.
func (j *job) splitStreams(c *Config) error {
	set, cut := j.set, j.set.Len()
	if c.Order == "random" {
		cut -= cut / 10
	}
	src, err := set.Part(0, cut).Blocks(c.Context)
	if err != nil {
		return explain(err, "give more text, or a shorter --context")
	}
	if src.Len() < c.Batch {
		return fail(fmt.Sprintf("give more text, a shorter --context, or --batch %d or less", src.Len()), "%d tokens to learn from are %d pieces of %d, too few for %d rows of text", cut, src.Len(), c.Context, c.Batch)
	}
	j.train, j.learnt, j.wrap = dataset.Texts{Source: src}, cut, data.Config{Sampler: data.Streams(), DropLast: true}
	j.perEpoch = j.wholeBatches
	if c.Order == "random" {
		j.holdOut(set.Part(cut, set.Len()), c)
	}
	return nil
}

// holdOut makes the part of a text that is scored, unless it is too short.
func (j *job) holdOut(set *tokens.Set, c *Config) {
	if test, err := dataset.NewBlocks(set, j.arch.Scored(c.Context)); err == nil {
		j.tenth, j.held = true, test.Size()
		j.test = test.Some(mostBatches * evalBatch(&j.arch, c.Context))
	}
}

// mostBatches bounds what is scored of a long text while training.
const mostBatches = 200

// build makes the model in env and loads what it starts from.
func (j *job) build(env *tensor.Env) (nn.Module, error) {
	m := j.arch.Make(env)
	if j.weights == "" {
		return m, nil
	}
	return m, explain(ckpt.LoadModel(j.weights, m), "give weights of this model")
}
