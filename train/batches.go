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

// dryScored is how many batches are scored where nothing is computed: the first are the largest, and the second runs beside what is
// left of the first.
const dryScored = 2

// scoring is what is scored.
type scoring struct {
	turns    iter.Seq2[turn, error]
	samples  int
	dry      bool // dryScored batches are enough, and nobody is told of them
	progress func(done, of int)
	weight   func(t turn) int               // of a batch in the mean of all; nil: its samples
	measure  func(t turn, m *metric.Meters) // what the step has not, once the loss is counted; nil: nothing
}

// run goes through the turns.
func (s *scoring) run(ctx context.Context) (*scored, error) {
	var loss metric.Mean
	var m metric.Meters
	found, done := &scored{}, 0
	for t, err := range s.turns {
		if err != nil {
			return nil, stopped(ctx, err)
		}
		n := t.Size()
		found.samples += n
		if s.weight != nil {
			n = s.weight(t)
		}
		found.size += n
		loss.Add(t.loss(&m), n)
		if s.measure != nil {
			s.measure(t, &m)
		}
		if !s.dry {
			s.progress(found.samples, s.samples)
		} else if done++; done == dryScored {
			break
		}
	}
	found.loss, found.metrics = loss.Value(), m.Values()
	if share, ok := found.metrics["accuracy"]; ok {
		found.accuracy = &share
	}
	return found, nil
}

// stopped is err of a loader, which a cancelled context may have caused.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return badData(err)
}
