package train

import (
	"context"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// evaluation is what is scored of a task's model, and how.
type evaluation struct {
	env      *tensor.Env
	arch     *zoo.Arch
	model    nn.Module
	set      dataset.Source
	batch    int // samples at once
	figures  *figures
	show     int // pictures to keep of those that were recognised, and of those that were not
	progress func(done, of int)

	out          *tensor.Tensor // of the batch; of a text its loss
	right, wrong []Picture
	views        []Picture // of models that have views
}

// run runs the model over the whole set. Figures are means over samples, for text over tokens.
func (e *evaluation) run(ctx context.Context) (*scored, error) {
	all := scoring{
		set: of(e.set.Turns, e.step), env: e.env.NoGrad().Eval(), data: data.Config{Size: e.batch, Name: "evaluate"}, count: e.set.Batches(e.batch),
		samples: e.set.Len(), figures: e.figures, progress: e.progress, weight: e.weight, measure: e.measure,
	}
	return all.run(ctx)
}

// step is the loss of a batch.
func (e *evaluation) step(b *data.Pair, _ *metric.Meters) (loss *tensor.Tensor) {
	if g, writes := e.model.(zoo.Author); writes {
		e.out = g.Loss(b.X, b.Y)
		return e.out
	}
	loss, e.out = e.arch.Loss(e.model, b.X, b.Y)
	return loss
}

// measure measures and shows a batch.
func (e *evaluation) measure(t turn, m *metric.Meters) {
	b := t.batch.(*data.Pair)
	if _, writes := e.model.(zoo.Author); writes {
		m.Perplexity(e.out, b.Y.Size())
		return
	}
	e.arch.Measure(m, e.out, b.Y)
	switch {
	case e.arch.Of().Show != nil:
		e.view(b)
	case e.arch.Pictured():
		e.look(b, e.out)
	}
}

// weight is what of a batch is to be found: of a text each token.
func (e *evaluation) weight(t turn) int {
	b := t.batch.(*data.Pair)
	if _, writes := e.model.(zoo.Author); writes {
		return b.Y.Size()
	}
	return b.X.Dim(0)
}

// look keeps pictures of a batch.
func (e *evaluation) look(b *data.Pair, logits *tensor.Tensor) {
	if len(e.right) >= e.show && len(e.wrong) >= e.show {
		return
	}
	guess, labels := logits.ArgMax(-1).Floats(), b.Y.Floats()
	for i := range labels {
		list := &e.right
		if guess[i] != labels[i] {
			list = &e.wrong
		}
		if len(*list) < e.show {
			p := stretched(b.X.Select(0, i))
			p.Label, p.Foretold = int(labels[i]), int(guess[i])
			*list = append(*list, p)
		}
	}
}

// view keeps what there is to see of the first samples, side by side, and of as many as fit among the pictures of a result.
func (e *evaluation) view(b *data.Pair) {
	if len(e.views) > 0 || e.show == 0 {
		return
	}
	n := min(2, b.X.Dim(0))
	var lists [][]Picture
	for _, v := range e.arch.Of().Show(e.arch, e.model, b.X.Slice(0, 0, n), b.Y.Slice(0, 0, n)) {
		lists = append(lists, shown(v.Caption, v.Greys))
	}
	for i := range n {
		for _, list := range lists {
			e.views = append(e.views, list[i])
		}
	}
}

// pictures mixes what was recognised and what was not, the latter last.
func (e *evaluation) pictures(n int) []Picture {
	if e.views != nil {
		return e.views
	}
	wrong := e.wrong[:min(len(e.wrong), (n+1)/2)]
	right := e.right[:min(len(e.right), n-len(wrong))]
	return append(append([]Picture{}, right...), wrong...)
}

// score measures a model while it is trained.
func (r *run) score(ctx context.Context, model any) (*scored, error) {
	found, _, err := r.evaluated(ctx, model.(nn.Module), 0)
	return found, err
}

// evaluated measures a model of the run, if something is held out, and shows some predictions.
func (r *run) evaluated(ctx context.Context, model nn.Module, show int) (*scored, *evaluation, error) {
	if r.test == nil {
		return nil, nil, nil
	}
	e := &evaluation{env: r.Params.policy(r.env), arch: &r.arch, model: model, set: r.test, batch: evalBatch(&r.arch, r.Context), figures: &r.figures, show: show, progress: r.Watch.Scoring}
	found, err := e.run(ctx)
	return found, e, err
}

// rowsAtOnce is how many of the long rows of models that read piece by piece are scored at once: fewer are slow.
const rowsAtOnce = 16

// evalBatch is how many samples are scored at once; of a text they have so many tokens.
func evalBatch(a *zoo.Arch, context int) int {
	if a.Writes() {
		return max(1, max(2048, rowsAtOnce*a.Of().Row)/a.Scored(context))
	}
	most := 256
	if a.Of().Areas { // what is computed of each pixel takes more than the picture
		most = 32
	}
	return dataset.SamplesAtOnce(a.Input(), most)
}

// EvalConfig says what Evaluate scores.
type EvalConfig struct {
	From    string // a run folder, a published model's folder, or a safetensors file
	Device  string // as tensor.Open takes it; empty: the best there is
	Data    string // as in [Config]; empty: what the run held out
	Tokens  string // as in [Config]
	Heads   int    // of a bare file of GPT weights; 0: as many as are 64 wide
	Skip    int    // samples, tokens of a text, that are left out at the start of what is scored
	Threads int    // of the CPU; 0: all

	Watch Watcher // told of progress and in notes; nil: nobody
}

// Evaluate scores a model on a whole data set. The newest checkpoint stands for the model of a run that was cut off. On
// a device without arithmetic only memory is measured.
func Evaluate(ctx context.Context, c EvalConfig) (r *Result, err error) {
	defer machine.Recovered(&err)
	defer setThreads(c.Threads)()
	began := time.Now()
	if c.Watch == nil {
		c.Watch = silent{}
	}
	m, err := open(c.From, c.Device, c.Heads, c.Watch)
	if err != nil {
		return nil, err
	}
	defer m.close()
	defer machine.AllowWaits(m.env.Device())()
	set, name, err := m.data(&c)
	if err != nil {
		return nil, err
	}
	e := evaluation{env: m.env, arch: &m.arch, model: m.model, set: set, batch: evalBatch(&m.arch, m.context()), figures: &figures{}, show: gallery, progress: c.Watch.Scoring}
	s, err := e.run(ctx)
	if err != nil {
		return nil, err
	}
	if finite(s.loss) == nil {
		return nil, fail("check the data and the weights", "the loss of %s over %d samples is %v", c.From, s.samples, s.loss)
	}
	out := &Result{
		Final: true, Task: m.arch.Of().Task, Model: m.arch.Title(), Parameters: nn.Count(m.model), Samples: s.samples, Set: name, Held: s.size, Units: m.arch.Units(),
		Computed: m.env.Device().Computes(), Steps: m.step, Seconds: time.Since(began).Seconds(),
		PeakBytes: m.env.Device().Memory().Peak, Memory: modelMemory(m.env, m.model),
	}
	if out.Computed {
		out.Loss, out.Accuracy, out.Metrics, out.Pictures = s.loss, s.accuracy, s.metrics, e.pictures(gallery)
	}
	return out, nil
}
