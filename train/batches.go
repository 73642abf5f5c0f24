package train

import (
	"context"
	"iter"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/tensor"
)

// turn is a batch of any type, or a part of one, with the step that takes it.
type turn struct {
	*data.Turn
	batch any
	loss  func(m *metric.Meters) *tensor.Tensor // the mean; m measures where it is scored, and is nil in training

	split      func(n int, learn func(part turn))                                 // as data.Split
	accumulate func(parts []int, undo func(), learn func(part turn)) (left []int) // as data.Accumulate
}

// batches are what a session learns from, or is scored on.
type batches struct {
	turns func(env *tensor.Env, c data.Config) iter.Seq2[turn, error]

	// capture gives learn as a captured step, and how many of its runs were done as one launch.
	capture func(env *tensor.Env, learn func(t turn) *tensor.Tensor) (run func(t turn) *tensor.Tensor, replayed func() (runs, recorded int))
}

// pointer is a pointer to a batch of type B.
type pointer[B any] interface {
	*B
	data.Batch
}

// of are batches of one type, with the step that takes them.
func of[B any, P pointer[B]](all func(env *tensor.Env, c data.Config) iter.Seq2[*B, error], step func(b P, m *metric.Meters) *tensor.Tensor) batches {
	var open func(b P) turn
	open = func(b P) turn {
		return turn{
			Turn: data.TurnOf(b), batch: b, loss: func(m *metric.Meters) *tensor.Tensor { return single(step(b, m)) },
			split: func(n int, learn func(part turn)) {
				for part := range data.Split(b, n) {
					learn(open(part))
				}
			},
			accumulate: func(parts []int, undo func(), learn func(part turn)) (left []int) {
				return data.Accumulate(b, parts, undo, func(part P) { learn(open(part)) })
			},
		}
	}
	return batches{
		turns: func(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
			return func(yield func(turn, error) bool) {
				for b, err := range all(env, c) {
					var t turn
					if err == nil {
						t = open(b)
					}
					if !yield(t, err) {
						return
					}
				}
			}
		},
		capture: func(env *tensor.Env, learn func(t turn) *tensor.Tensor) (run func(t turn) *tensor.Tensor, replayed func() (runs, recorded int)) {
			c := tensor.Capture(env, func(b P) *tensor.Tensor { return learn(open(b)) })
			return func(t turn) *tensor.Tensor { return c.Run(t.batch.(P)) }, c.Replayed
		},
	}
}

// single is a loss, which must be one number.
func single(loss *tensor.Tensor) *tensor.Tensor {
	switch {
	case loss == nil:
		tensor.Raise("train.Fit", "return the mean loss of the batch, also while it is scored", "the step has returned nil")
	case loss.Size() != 1:
		tensor.Raise("train.Fit", "return their mean", "the step has returned %d losses, of shape %v", loss.Size(), loss.Shape())
	}
	return loss
}

// scored is what was found of what is held out.
type scored struct {
	loss     float64
	accuracy *float64 // nil where nothing is right or wrong
	metrics  map[string]float64
	samples  int
	size     int // samples; of a text, tokens
}

// figures grow while something is scored, in memory that the next score takes again.
type figures struct {
	loss   metric.Mean
	meters metric.Meters
	tried  int  // batches of the last score that were gone through
	drifts bool // others may need more memory, of any score
}

// scoring is what is scored.
type scoring struct {
	set      batches
	env      *tensor.Env
	data     data.Config
	count    int // batches
	samples  int
	figures  *figures
	progress func(done, of int)
	weight   func(t turn) int               // of a batch in the mean of all; nil: its samples
	measure  func(t turn, m *metric.Meters) // what the step has not, once the loss is counted; nil: nothing
}

// run goes through the batches. Where nothing is computed, those are left out that need no memory but what others need, and nobody is told.
func (s *scoring) run(ctx context.Context) (*scored, error) {
	f := s.figures
	f.loss.Clear()
	f.meters.Reset()
	f.tried = 0
	found := &scored{}
	c := s.data
	c.Context = ctx
	for c.Skip < s.count {
		next, err := s.walk(c, found)
		if err != nil {
			return nil, stopped(ctx, err)
		}
		c.Skip = next
	}
	found.loss, found.metrics = f.loss.Value(), f.meters.Values()
	if share, ok := found.metrics["accuracy"]; ok {
		found.accuracy = &share
	}
	return found, nil
}

// walk goes through the batches from c.Skip on, and tells where to go on.
func (s *scoring) walk(c data.Config, found *scored) (next int, err error) {
	d := s.env.Device()
	ends := max(c.Skip, s.count-endBatches)
	var left uint64
	for t, err := range s.set.turns(s.env, c) {
		if err != nil {
			return 0, err
		}
		s.add(t, found)
		s.figures.tried++
		c.Skip++
		if d.Computes() {
			s.progress(found.samples, s.samples)
			continue
		}
		now := layout(d)
		if (now == left || s.figures.tried >= mostScored) && c.Skip < ends {
			s.figures.drifts = s.figures.drifts || now != left
			return ends, nil
		}
		left = now
	}
	return s.count, nil
}

// endBatches is how many batches at the end of a set may be smaller than others: of a text its last rows, and what is left behind them.
const endBatches = 2

// mostScored is how many batches are scored at most, but for the last two, where nothing is computed: usually memory is the same again behind
// the third.
var mostScored = 8

// add takes in a batch.
func (s *scoring) add(t turn, found *scored) {
	n := t.Size()
	found.samples += n
	if s.weight != nil {
		n = s.weight(t)
	}
	found.size += n
	s.figures.loss.Add(t.loss(&s.figures.meters), n)
	if s.measure != nil {
		s.measure(t, &s.figures.meters)
	}
}

// stopped is err of a loader, which a cancelled context may have caused.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return badData(err)
}
