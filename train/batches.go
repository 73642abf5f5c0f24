package train

import (
	"context"
	"iter"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/tensor"
)

// batches are what a session learns from, of any type, with the step that takes them.
type batches interface {
	turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error]

	// capture gives learn as a captured step, and how many of its runs were done as one launch.
	capture(env *tensor.Env, learn func(t turn) *tensor.Tensor) (run func(t turn) *tensor.Tensor, replayed func() (runs, recorded int))
}

// turn is a batch, or a part of one.
type turn interface {
	Size() int
	Fraction() float64
	Position() data.Position
	First() bool

	env() *tensor.Env
	loss(m *metric.Meters) *tensor.Tensor // the mean; m measures where it is scored, and is nil in training
	weight() int                          // of the loss in the mean of all that is scored
	measure(m *metric.Meters)             // what the step has not, once the loss is counted

	split(n int, learn func(part turn))                                      // as data.Split
	accumulate(parts []int, undo func(), learn func(part turn)) (left []int) // as data.Accumulate
}

// pointer is a pointer to a batch of type B.
type pointer[B any] interface {
	*B
	data.Batch
	Size() int
	Fraction() float64
	Position() data.Position
	First() bool
}

// typed are batches of one type.
type typed[B any, P pointer[B]] struct {
	of     func(env *tensor.Env, c data.Config) iter.Seq2[*B, error]
	step   func(b P, m *metric.Meters) *tensor.Tensor
	weight func(b P) int               // nil: the size
	after  func(b P, m *metric.Meters) // nil: the step measures everything
}

func (s *typed[B, P]) turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		for b, err := range s.of(env, c) {
			if !yield(&typedTurn[B, P]{P(b), s}, err) {
				return
			}
		}
	}
}

func (s *typed[B, P]) capture(env *tensor.Env, learn func(t turn) *tensor.Tensor) (run func(t turn) *tensor.Tensor, replayed func() (runs, recorded int)) {
	c := tensor.Capture(env, func(b P) *tensor.Tensor { return learn(&typedTurn[B, P]{b, s}) })
	return func(t turn) *tensor.Tensor { return c.Run(t.(*typedTurn[B, P]).b) }, c.Replayed
}

type typedTurn[B any, P pointer[B]] struct {
	b  P
	of *typed[B, P]
}

func (t *typedTurn[B, P]) Size() int               { return t.b.Size() }
func (t *typedTurn[B, P]) Fraction() float64       { return t.b.Fraction() }
func (t *typedTurn[B, P]) Position() data.Position { return t.b.Position() }
func (t *typedTurn[B, P]) First() bool             { return t.b.First() }
func (t *typedTurn[B, P]) env() *tensor.Env        { return data.EnvOf(t.b) }

func (t *typedTurn[B, P]) loss(m *metric.Meters) *tensor.Tensor { return t.of.step(t.b, m) }

func (t *typedTurn[B, P]) weight() int {
	if t.of.weight == nil {
		return t.b.Size()
	}
	return t.of.weight(t.b)
}

func (t *typedTurn[B, P]) measure(m *metric.Meters) {
	if t.of.after != nil {
		t.of.after(t.b, m)
	}
}

func (t *typedTurn[B, P]) split(n int, learn func(part turn)) {
	for part := range data.Split(t.b, n) {
		learn(&typedTurn[B, P]{part, t.of})
	}
}

func (t *typedTurn[B, P]) accumulate(parts []int, undo func(), learn func(part turn)) (left []int) {
	return data.Accumulate(t.b, parts, undo, func(part P) { learn(&typedTurn[B, P]{part, t.of}) })
}

// scored is what was found of what is held out.
type scored struct {
	loss     float64
	accuracy *float64 // nil where nothing is right or wrong
	metrics  map[string]float64
	samples  int
	size     int // samples; of a text, tokens
}

// judged goes through the turns of what is held out, of so many samples.
func judged(ctx context.Context, turns iter.Seq2[turn, error], of int, progress func(done, of int)) (*scored, error) {
	var loss metric.Mean
	var m metric.Meters
	s := &scored{}
	for t, err := range turns {
		if err != nil {
			return nil, stopped(ctx, err)
		}
		loss.Add(t.loss(&m), t.weight())
		t.measure(&m)
		s.samples, s.size = s.samples+t.Size(), s.size+t.weight()
		progress(s.samples, of)
	}
	s.loss, s.metrics = loss.Value(), m.Values()
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
