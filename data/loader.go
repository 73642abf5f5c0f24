package data

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"reflect"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// pointer is *B, which must be a batch.
type pointer[B any] interface {
	*B
	Batch
}

// Batches yields the batches of a data set, each in a scope of its own that ends when the loop goes on. A sample that
// cannot be read gives a [SampleError] in its batch's place; the loop may go on to the next batch. After other errors
// (of the configuration, of the context) there are no more. The sequence may be walked several times, and its workers
// live as long as a walk.
func Batches[B any, P pointer[B]](env *tensor.Env, src Source[B], c Config) iter.Seq2[*B, error] {
	return func(yield func(*B, error) bool) {
		l, err := newLoader[B, P](env, src, c)
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.feed.stop()
		l.run(yield)
	}
}

// loader is one walk over a data set.
type loader[B any, P pointer[B]] struct {
	env    *tensor.Env
	ctx    context.Context
	name   uint64 // the loader's step in the random path
	plan   *plan
	feed   *feed[B]
	fields *tensorFields
}

func newLoader[B any, P pointer[B]](env *tensor.Env, src Source[B], c Config) (*loader[B, P], error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l := &loader[B, P]{env: env, ctx: c.Context, name: nameKey(c.Name), fields: fieldsOf(reflect.TypeFor[B]())}
	if l.ctx == nil {
		l.ctx = context.Background()
	}
	key := func(path ...uint64) rng.Key { return rng.Key(env.Key(append([]uint64{l.name}, path...)...)) }
	var err error
	if l.plan, err = newPlan(c, src.Len(), key); err != nil {
		return nil, err
	}
	fields, rows := src.Fields(), l.plan.rows()
	if err := l.fields.check(reflect.TypeFor[B](), fields, rows); err != nil {
		return nil, err
	}
	workers := c.workers(inMemory(src))
	l.feed = newFeed(env, src, fields, rows, workers, max(1, min(workers*c.ahead(), l.plan.left)))
	return l, nil
}

func nameKey(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// run hands out the batches in order.
func (l *loader[B, P]) run(yield func(*B, error) bool) {
	for i := range l.feed.ring {
		l.order(l.feed.ring[i])
	}
	for {
		s := l.feed.head()
		if !s.busy {
			return
		}
		if s.fatal != nil {
			yield(nil, s.fatal)
			return
		}
		if !l.waited(s) {
			yield(nil, fmt.Errorf("data: stopped before epoch %d, batch %d: %w", s.at.Epoch, s.at.Batch, context.Cause(l.ctx)))
			return
		}
		if !l.turn(s, yield) {
			return
		}
	}
}

// waited waits for a slot's batch, in a range by which profiles tell what a program loses to its data.
func (l *loader[B, P]) waited(s *slot[B]) bool {
	_, end := l.env.Range("loader")
	defer end()
	return l.feed.wait(l.ctx, s)
}

// order gives a slot the next batch to prepare, if there is one.
func (l *loader[B, P]) order(s *slot[B]) {
	if s.at, s.samples, s.busy, s.fatal = l.plan.next(s.samples); !s.busy || s.fatal != nil {
		return
	}
	s.key, s.first = l.plan.key(uint64(s.at.Epoch)), -1
	if l.plan.repeats {
		s.first = s.at.Batch * l.plan.Size
	}
	l.feed.submit(s)
}

// turn is one turn of the user's loop: its scope ends on return, break and panic alike. The slot goes back to work
// before the user gets the batch.
func (l *loader[B, P]) turn(s *slot[B], yield func(*B, error) bool) bool {
	if err := s.err; err != nil {
		l.order(s)
		return yield(nil, err)
	}
	t := openTurn(l.env, l.name, uint64(s.at.Epoch), uint64(s.at.Batch))
	defer t.end()
	t.size = len(s.samples)
	t.at, t.first = l.plan.normal(Position{s.at.Epoch, s.at.Batch + 1}), s.at.Batch == 0
	b := s.batch
	*P(b).turn() = t
	v := reflect.ValueOf(b).Elem()
	for i, c := range s.columns {
		x := c.upload(t.Env, len(s.samples))
		x.Label(device.LabelBatch, "")
		l.fields.set(v, i, c.field().Name, x)
	}
	l.order(s)
	return yield(b, nil)
}
