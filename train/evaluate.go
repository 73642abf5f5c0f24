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

// scored is what an evaluation found.
type scored struct {
	loss     float64
	accuracy *float64 // nil where nothing is right or wrong
	metrics  map[string]float64
	samples  int
	size     int // samples; of a text, tokens
	right    []Picture
	wrong    []Picture
	views    []Picture // of models that have views
}

// evaluation is what is scored, and how.
type evaluation struct {
	env      *tensor.Env
	arch     *zoo.Arch
	model    nn.Module
	set      dataset.Source
	batch    int // samples at once
	batches  int // at most so many; 0: all
	show     int // pictures to keep of those that were recognised, and of those that were not
	progress func(done, of int)
}

// run runs the model over the whole set. Figures are means over samples, for text over tokens.
func (e *evaluation) run(ctx context.Context) (*scored, error) {
	var loss metric.Mean
	var meters metric.Meters
	s := &scored{}
	for b, err := range e.set.Turns(e.env.NoGrad().Eval(), data.Config{Size: e.batch, Steps: e.batches, Name: "evaluate", Context: ctx}) {
		if err != nil {
			return nil, stopped(ctx, err)
		}
		n := b.X.Dim(0)
		s.samples += n
		if g, writes := e.model.(zoo.Author); writes {
			n = b.Y.Size()
			of := g.Loss(b.X, b.Y)
			loss.Add(of, n)
			meters.Perplexity(of, n)
		} else {
			of, out := e.arch.Loss(e.model, b.X, b.Y)
			loss.Add(of, n)
			e.arch.Measure(&meters, out, b.Y)
			switch {
			case e.arch.Of().Show != nil:
				s.view(e, b)
			case e.arch.Pictured():
				s.look(b, out, e.show)
			}
		}
		s.size += n
		e.progress(s.samples, e.set.Len())
	}
	s.loss, s.metrics = loss.Value(), meters.Values()
	if share, ok := s.metrics["accuracy"]; ok {
		s.accuracy = &share
	}
	return s, nil
}

// stopped is err of a loader, which a cancelled context may have caused.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return explain(err, "check the data")
}

// look keeps pictures of a batch.
func (s *scored) look(b dataset.Turn, logits *tensor.Tensor, show int) {
	if len(s.right) >= show && len(s.wrong) >= show {
		return
	}
	guess, labels := logits.ArgMax(-1).Floats(), b.Y.Floats()
	for i := range labels {
		list := &s.right
		if guess[i] != labels[i] {
			list = &s.wrong
		}
		if len(*list) < show {
			p := stretched(b.X.Select(0, i))
			p.Label, p.Foretold = int(labels[i]), int(guess[i])
			*list = append(*list, p)
		}
	}
}

// view keeps what there is to see of the first samples, side by side, and of as many as fit among the pictures of a result.
func (s *scored) view(e *evaluation, b dataset.Turn) {
	if len(s.views) > 0 || e.show == 0 {
		return
	}
	n := min(2, b.X.Dim(0))
	var lists [][]Picture
	for _, v := range e.arch.Of().Show(e.arch, e.model, b.X.Slice(0, 0, n), b.Y.Slice(0, 0, n)) {
		lists = append(lists, shown(v.Caption, v.Greys))
	}
	for i := range n {
		for _, list := range lists {
			s.views = append(s.views, list[i])
		}
	}
}

// pictures mixes what was recognised and what was not, the latter last.
func (s *scored) pictures(n int) []Picture {
	if s.views != nil {
		return s.views
	}
	wrong := s.wrong[:min(len(s.wrong), (n+1)/2)]
	right := s.right[:min(len(s.right), n-len(wrong))]
	return append(append([]Picture{}, right...), wrong...)
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
	e := evaluation{env: m.env, arch: &m.arch, model: m.model, set: set, batch: evalBatch(&m.arch, m.context()), show: gallery, progress: c.Watch.Scoring}
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
		out.Loss, out.Accuracy, out.Metrics, out.Pictures = s.loss, s.accuracy, s.metrics, s.pictures(gallery)
	}
	return out, nil
}
