package data

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// SampleError says which sample of which batch could not be read.
type SampleError struct {
	Position       // of the batch
	Sample   int   // its number in the source
	Err      error // the cause; a *PanicError if the source panicked
}

// Error names batch and sample.
func (e *SampleError) Error() string {
	return fmt.Sprintf("data: epoch %d, batch %d, sample %d: %v", e.Epoch, e.Batch, e.Sample, e.Err)
}

// Unwrap returns the cause.
func (e *SampleError) Unwrap() error { return e.Err }

// PanicError is a panic of a source.
type PanicError struct {
	Value any
	Stack []byte // where it happened
}

// Error is one line; Stack has the rest.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// slot is a batch on its way: host memory that is used again when the batch was handed out.
type slot[B any] struct {
	at      Position
	samples []int
	key     rng.Key // of the epoch
	first   int     // the place of the first sample in the epoch; -1: samples come once, and have numbers of their own
	busy    bool    // it stands for a batch
	fatal   error   // in place of a batch, and the end of the walk
	batch   *B
	columns []column
	err     error
	done    chan struct{}
}

func newSlot[B any](fields []Field, rows int) *slot[B] {
	s := &slot[B]{done: make(chan struct{}, 1)}
	for _, field := range fields {
		s.columns = append(s.columns, newColumn(field, rows))
	}
	return s
}

// fill reads the slot's samples.
func (s *slot[B]) fill(src Source[B]) {
	s.batch, s.err = new(B), nil
	for _, c := range s.columns {
		c.clear(len(s.samples))
	}
	at := 0
	defer func() {
		if v := recover(); v != nil {
			s.err = &SampleError{s.at, s.samples[at], &PanicError{v, debug.Stack()}}
		}
	}()
	for ; at < len(s.samples); at++ {
		if err := src.Fill(s.batch, s.row(at), s.samples[at]); err != nil {
			s.err = &SampleError{s.at, s.samples[at], err}
			return
		}
	}
}

func (s *slot[B]) row(at int) Row {
	number := uint64(s.samples[at])
	if s.first >= 0 {
		number = byPlace | uint64(s.first+at)
	}
	return Row{s.columns, at, s.key, number}
}

// stage brings the slot's rows on their way to env's device.
func (s *slot[B]) stage(env *tensor.Env) {
	if s.err != nil {
		return
	}
	for _, c := range s.columns {
		c.stage(env, len(s.samples))
	}
}

// feed prepares batches in a ring of slots: slot i mod len(ring) holds batch i, so the ring is both the order and the
// bound of the look-ahead. Without workers a batch is read when it is waited for.
type feed[B any] struct {
	env     *tensor.Env // whose device the batches are for
	src     Source[B]
	ring    []*slot[B]
	at      int
	jobs    chan *slot[B] // nil without workers
	closing atomic.Bool
	workers sync.WaitGroup
}

func newFeed[B any](env *tensor.Env, src Source[B], fields []Field, rows, workers, slots int) *feed[B] {
	f := &feed[B]{env: env, src: src}
	for range slots {
		f.ring = append(f.ring, newSlot[B](fields, rows))
	}
	if workers > 0 {
		f.jobs = make(chan *slot[B], slots)
	}
	for range min(workers, slots) {
		f.workers.Go(f.work)
	}
	return f
}

func (f *feed[B]) work() {
	for s := range f.jobs {
		if !f.closing.Load() {
			s.fill(f.src)
			s.stage(f.env)
		}
		s.done <- struct{}{}
	}
}

// head is the slot of the batch that is next in order.
func (f *feed[B]) head() *slot[B] {
	s := f.ring[f.at]
	f.at = (f.at + 1) % len(f.ring)
	return s
}

// submit hands a slot to the workers. It never blocks: the channel has room for the whole ring.
func (f *feed[B]) submit(s *slot[B]) {
	if f.jobs != nil {
		f.jobs <- s
	}
}

// wait returns when the slot's batch is ready, false when ctx ended before.
func (f *feed[B]) wait(ctx context.Context, s *slot[B]) bool {
	if ctx.Err() != nil {
		return false
	}
	if f.jobs == nil {
		s.fill(f.src)
		return true
	}
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// stop ends the workers and waits for what they are reading: afterwards nobody uses the source.
func (f *feed[B]) stop() {
	f.closing.Store(true)
	if f.jobs != nil {
		close(f.jobs)
		f.workers.Wait()
	}
	for _, s := range f.ring {
		for _, c := range s.columns {
			c.drop()
		}
	}
}
