// Package dataset has the data sets of the command: one form for pictures and for text, and a table of what reads them
// from files. One more reader is a file with its [Reader], and a row of [Readers].
package dataset

import (
	"iter"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/tensor"
)

// Source is a data set of any task, in batches of inputs and of what is to be found of them: of texts, the tokens that follow.
type Source interface {
	Len() int  // samples
	Size() int // samples; of a text, tokens to foretell
	Turns(env *tensor.Env, c data.Config) iter.Seq2[*data.Pair, error]
	Batches(size int) int // that Turns makes of the set in its order, of so many samples but for the last
	Blank() Source        // of zeros, which nothing reads: for figures of memory
}

// Pairs is a set of inputs with what is to be found of them.
type Pairs struct{ data.Source[data.Pair] }

// Size implements [Source].
func (s Pairs) Size() int { return s.Len() }

// Batches implements [Source].
func (s Pairs) Batches(size int) int { return batches(s.Len(), size) }

func batches(samples, size int) int { return (samples + size - 1) / size }

// Turns implements [Source].
func (s Pairs) Turns(env *tensor.Env, c data.Config) iter.Seq2[*data.Pair, error] {
	return data.Batches(env, s.Source, c)
}

// Blank implements [Source].
func (s Pairs) Blank() Source { return Pairs{blank[data.Pair](s)} }

// Texts is a set of runs of tokens.
type Texts struct{ data.Source[tokens.Batch] }

// Size implements [Source].
func (s Texts) Size() int { return s.Len() * s.Fields()[1].Shape[0] }

// Turns implements [Source].
func (s Texts) Turns(env *tensor.Env, c data.Config) iter.Seq2[*data.Pair, error] {
	return func(yield func(*data.Pair, error) bool) {
		for b, err := range data.Batches(env, s.Source, c) {
			var p *data.Pair
			if err == nil {
				p = &data.Pair{Turn: b.Turn, X: b.Tokens, Y: b.Targets}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// Batches implements [Source].
func (s Texts) Batches(size int) int { return batches(s.Len(), size) }

// Blank implements [Source].
func (s Texts) Blank() Source { return Texts{blank[tokens.Batch](s)} }

// blank is a set of samples that nobody reads.
type blank[B any] struct{ data.Source[B] }

func (blank[B]) Fill(*B, data.Row, int) error { return nil }

// InMemory tells loaders that samples cost nothing.
func (blank[B]) InMemory() bool { return true }
