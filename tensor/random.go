package tensor

import (
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/rng"
)

// Roots of random paths, apart from each other.
const (
	rootKey     rng.Key = 0x9e3779b97f4a7c15
	seedKey     rng.Key = 0x5eed
	drawPath            = 1 << 32
	replicaPath         = 1<<33 + 1
)

// stream is a random path: a scope's, or one of its own in place of that.
type stream struct {
	key   rng.Key
	draws atomic.Uint64
	step  *recording // in which it began; nil: in none
}

// stream is the path that e draws from.
func (e *Env) stream() *stream {
	if e.seeded != nil {
		return e.seeded
	}
	return e.live().home.random
}

// Key folds a path of stable indices (loader, epoch, batch, …) into e's random key, without drawing.
func (e *Env) Key(path ...uint64) uint64 {
	uncapturable("Key", "draw on the device, or pass what the host has drawn in the batch", "the host would draw the same numbers in each run")
	return uint64(e.folded(path))
}

func (e *Env) folded(path []uint64) rng.Key {
	s := e.stream()
	k, step := s.key, recordings.step()
	for _, p := range path {
		from := k
		if k = rng.Fold(k, p); step != nil {
			step.keys.folded(s, from, p, k)
		}
	}
	return k
}

// draw returns the key of the next random op of e's path.
func (e *Env) draw() rng.Key {
	s := e.stream()
	n := s.draws.Add(1)
	k := rng.Fold(rng.Fold(s.key, drawPath), n)
	if step := recordings.step(); step != nil {
		step.keys.drawn(s, n, k)
	}
	return k
}

// block is the key of a block's own path: the next of e's.
func (e *Env) block() rng.Key {
	from := e.draw()
	k := rng.Fold(from, 0)
	if step := recordings.step(); step != nil {
		step.keys.folded(e.stream(), from, 0, k)
	}
	return k
}

// number is draw for an operation, whose numbers would be the same in each run of a program.
func (e *Env) number() rng.Key {
	if e.program.recording() {
		raise("Record", "draw them before, and record what is made of them", "random numbers would be the same in each run")
	}
	return e.draw()
}

// Draws is the number of random operations drawn from e's own path so far. A checkpoint stores the root's.
func (e *Env) Draws() uint64 { return e.stream().draws.Load() }

// SetDraws continues a random path where a checkpoint left it.
func (e *Env) SetDraws(n uint64) { e.stream().draws.Store(n) }
