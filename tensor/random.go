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

// stream is an own random path, in place of the scope's.
type stream struct {
	key   rng.Key
	draws atomic.Uint64
}

func (e *Env) key() rng.Key {
	if e.seeded != nil {
		return e.seeded.key
	}
	return e.live().home.key
}

// Key folds a path of stable indices (loader, epoch, batch, …) into e's random key, without drawing.
func (e *Env) Key(path ...uint64) uint64 {
	k := e.key()
	for _, p := range path {
		k = rng.Fold(k, p)
	}
	return uint64(k)
}

func (e *Env) counter() *atomic.Uint64 {
	if e.seeded != nil {
		return &e.seeded.draws
	}
	return &e.live().home.draws
}

// draw returns the key of the next random op of e's path.
func (e *Env) draw() rng.Key {
	return rng.Fold(rng.Fold(e.key(), drawPath), e.counter().Add(1))
}

// number is draw for an operation, whose numbers would be the same in each run of a program.
func (e *Env) number() rng.Key {
	if e.program.recording() {
		raise("Record", "draw them before, and record what is made of them", "random numbers would be the same in each run")
	}
	return e.draw()
}

// Draws is the number of random operations drawn from e's own path so far. A checkpoint stores the root's.
func (e *Env) Draws() uint64 { return e.counter().Load() }

// SetDraws continues a random path where a checkpoint left it.
func (e *Env) SetDraws(n uint64) { e.counter().Store(n) }
