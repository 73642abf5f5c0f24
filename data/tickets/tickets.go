// Package tickets draws support tickets: for each up to 128 tokens as vectors of 768 features, as a language model would give them, a mask
// that tells tokens from padding, and what became of the ticket: answered, escalated or blocked. It needs no files, and what is learned
// of it takes attention: what matters are a few tokens of many, and padding holds what misleads.
//
// A token is noise of deviation 1, and a few tokens of a ticket carry one of six signs, a direction of length 8 besides. The outcome follows
// from the signs that there are:
//
//	blocked    waiting stands there, and resolved does not
//	escalated  else, urgent or angry stands there, and thanks does not
//	answered   else
//
// Some tokens carry the sign idle, which means nothing. Padding is noise with signs at random.
package tickets

import (
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// The sizes of a ticket.
const (
	Tokens   = 128 // with padding
	Features = 768 // of a token
)

// Outcomes are the classes, by label.
var Outcomes = []string{"answered", "escalated", "blocked"}

// DefaultSeed names the set that [Split] hands out.
const DefaultSeed = 1

// The signs of tokens.
const (
	waiting = iota
	resolved
	urgent
	angry
	thanks
	idle
	signs
)

const (
	shortest = 24 // tokens of a ticket
	strength = 8  // of a sign
)

// Batch is a batch of tickets.
type Batch struct {
	data.Turn
	X    *tensor.Tensor // float32 [n, Tokens, Features]
	Mask *tensor.Tensor // bool [n, Tokens]: true for tokens, false for padding
	Y    *tensor.Tensor // int64 [n]: places in Outcomes
}

// Set is a run of consecutive tickets of the set that Seed names. It draws them whenever they are read, and keeps none. It may be used by
// several goroutines at once. The same seed and index give the same ticket on every platform.
type Set struct {
	Seed  uint64
	First int // index of the first; any index is valid
	N     int
}

// Split returns train and test tickets of the default set, which have none in common. The test set is the same whatever the size of
// the other.
func Split(train, test int) (Set, Set) {
	return Set{DefaultSeed, 0, train}, Set{DefaultSeed, -test, test}
}

// Len implements [data.Source].
func (s Set) Len() int { return max(s.N, 0) }

// Fields implements [data.Source].
func (s Set) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{Tokens, Features}}, {DType: dtype.Bool, Shape: []int{Tokens}}, {DType: dtype.I64}}
}

// Fill implements [data.Source].
func (s Set) Fill(_ *Batch, row data.Row, i int) error {
	data.Values[int64](row, 2)[0] = int64(Draw(data.Values[float32](row, 0), data.Values[bool](row, 1), s.Seed, s.First+i))
	return nil
}

// Draw draws ticket i of the set that seed names: x gets Tokens rows of Features, mask whether each is a token. It gives the label.
func Draw(x []float32, mask []bool, seed uint64, i int) (label int) {
	key := rng.Fold(rng.Key(seed), uint64(i))
	r := rng.Stream{Key: rng.Fold(key, 1)}
	rng.FillNormal32(x[:Tokens*Features], rng.Fold(key, 2), 0, 0, 1)
	n := shortest + r.IntN(Tokens-shortest+1)
	for t := range Tokens {
		mask[t] = t < n
	}
	label, there := outcome(&r)
	for sign, is := range there {
		for range count(is, &r) {
			carry(x, r.IntN(n), sign, seed)
		}
	}
	for t := n; t < Tokens; t++ {
		carry(x, t, r.IntN(signs), seed)
	}
	return label
}

// count is how many tokens carry a sign.
func count(is bool, r *rng.Stream) int {
	if !is {
		return 0
	}
	return 1 + r.IntN(3)
}

// outcome draws a label, and signs that lead to it. Each is as likely as the others.
func outcome(r *rng.Stream) (label int, there [signs]bool) {
	for label = r.IntN(len(Outcomes)); ; {
		for i := range there {
			there[i] = r.IntN(2) == 0
		}
		if means(there) == label {
			return label, there
		}
	}
}

// means is the label of the signs that there are.
func means(there [signs]bool) int {
	switch {
	case there[waiting] && !there[resolved]:
		return 2
	case (there[urgent] || there[angry]) && !there[thanks]:
		return 1
	}
	return 0
}

// carry adds a sign to a token. Its direction has entries of one size and signs that the seed draws.
func carry(x []float32, token, sign int, seed uint64) {
	const size = strength / 27.712812921102035 // √Features
	key := rng.Fold(rng.Fold(rng.Key(seed), 1<<63), uint64(sign))
	row := x[token*Features:][:Features]
	for f := 0; f < Features; f += 128 {
		bits := rng.Uint32x4(key, uint64(f))
		for k := range 128 {
			if bits[k/32]>>(k%32)&1 == 0 {
				row[f+k] += size
			} else {
				row[f+k] -= size
			}
		}
	}
}
