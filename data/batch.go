// Package data makes batches of data sets: each batch is a scope that lives for one turn of a loop.
//
//	for b, err := range data.Batches(env, src, data.Config{Size: 128, Shuffle: true}) {
//		…
//	}
//
// A data set is a [Source] of samples. Workers prepare the rows of the batches ahead, in order, in memory that the device
// copies from; the tensors are made when a batch is handed out, one upload for each field. What a batch holds, and what is drawn for it,
// depends on the env's random path, the loader's name, the epoch and the batch only: not on workers or timing.
package data

import (
	"cmp"
	"fmt"

	"github.com/warpline-ml/warpline/tensor"
)

// Turn is what a batch type embeds: one turn of a loop. When the loop goes on, and on break and panic, everything made
// in Env is released. Several goroutines may use a turn at once.
type Turn struct {
	Env *tensor.Env // where values of this turn are made

	scope    tensor.Scope
	ended    *bool
	fraction float64
	size     int
	at       Position
	first    bool
}

// Hold keeps the turn's values for a goroutine that still works on them, until release is called.
func (t *Turn) Hold() (release func()) { return t.scope.Hold() }

// Size is the number of samples of this batch.
func (t *Turn) Size() int { return t.size }

// Fraction is this batch's share of the rows of the batch it was split from, 1 for a whole batch.
func (t *Turn) Fraction() float64 { return cmp.Or(t.fraction, 1) } // 0: a batch that no loader made

// Position is where the loader is after this batch.
func (t *Turn) Position() Position { return t.at }

// First tells the first batch of an epoch: states that go from batch to batch, as with [Streams], begin anew.
func (t *Turn) First() bool { return t.first }

func (t *Turn) turn() *Turn { return t }

// end closes the turn, once. Only the goroutine of the loop calls it.
func (t *Turn) end() {
	if !*t.ended {
		*t.ended = true
		t.scope.End()
	}
}

func openTurn(env *tensor.Env, path ...uint64) Turn {
	e, s := env.Scope(path...)
	return Turn{Env: e, scope: s, ended: new(bool)}
}

// Position is a place in a run over a data set. To go on from it, give the loader its Epoch, its Batch as Skip, and
// as Done the batches since the run began.
type Position struct {
	Epoch int `json:"epoch"`
	Batch int `json:"batch"` // batches of the epoch that are done
}

// Batch is any pointer to a struct that embeds [Turn]. Its exported fields of type *tensor.Tensor, those of embedded
// structs included, are what a [Source] fills, and after them a field of type map[string]*tensor.Tensor, if it has one; it may
// have others.
type Batch interface{ turn() *Turn }

// TurnOf is the turn that a batch embeds, for code that takes batches of any type.
func TurnOf(b Batch) *Turn { return b.turn() }

// Pair is the common batch: inputs and labels.
type Pair struct {
	Turn
	X, Y *tensor.Tensor
}

// String tells where the loader is after this batch, and the batch's size.
func (t *Turn) String() string {
	return fmt.Sprintf("batch of %d, then epoch %d, batch %d", t.size, t.at.Epoch, t.at.Batch)
}
