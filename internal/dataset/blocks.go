package dataset

import (
	"fmt"
	"iter"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/tensor"
)

// Blocks are a text to score: rows of tokens that do not overlap, and a shorter one that has what is left.
type Blocks struct{ rows, rest Texts } // a nil Source: none

// NewBlocks cuts a set, all of whose tokens but the first are to be foretold, into rows.
func NewBlocks(set *tokens.Set, context int) (s Blocks, err error) {
	foretold := set.Len() - 1
	whole, rest := foretold/context, foretold%context
	if foretold < 1 {
		return s, fmt.Errorf("%d tokens leave nothing to foretell; give at least 2", set.Len())
	}
	if whole > 0 {
		if s.rows.Source, err = set.Blocks(context); err != nil {
			return s, err
		}
	}
	if rest > 0 {
		s.rest.Source, err = set.Part(whole*context, set.Len()).Blocks(rest)
	}
	return s, err
}

// Len implements [Source].
func (s Blocks) Len() int { return s.sum(Texts.Len) }

// Size implements [Source].
func (s Blocks) Size() int { return s.sum(Texts.Size) }

func (s Blocks) sum(of func(Texts) int) (n int) {
	for _, part := range []Texts{s.rows, s.rest} {
		if part.Source != nil {
			n += of(part)
		}
	}
	return n
}

// Batches implements [Source].
func (s Blocks) Batches(size int) int { return s.sum(func(t Texts) int { return t.Batches(size) }) }

// Turns implements [Source]. c.Skip counts the batches of both parts.
func (s Blocks) Turns(env *tensor.Env, c data.Config) iter.Seq2[*data.Pair, error] {
	return func(yield func(*data.Pair, error) bool) {
		c := c
		for _, part := range []Texts{s.rows, s.rest} {
			if part.Source == nil {
				continue
			}
			n := part.Batches(c.Size)
			if c.Skip >= n {
				c.Skip -= n
				continue
			}
			for t, err := range part.Turns(env, c) {
				if !yield(t, err) {
					return
				}
			}
			c.Skip = 0
		}
	}
}

// Blank implements [Source].
func (s Blocks) Blank() Source {
	for _, part := range []*Texts{&s.rows, &s.rest} {
		if part.Source != nil {
			part.Source = blank[tokens.Batch]{part.Source}
		}
	}
	return s
}

// Some is the set, or if it has more than n rows so many of them, evenly spaced.
func (s Blocks) Some(n int) Source {
	if s.Len() <= n {
		return s
	}
	return Texts{spaced{s.rows.Source, n}}
}

// spaced are n samples of a set, evenly spaced.
type spaced struct {
	data.Source[tokens.Batch]
	n int
}

// Len is the number of samples.
func (s spaced) Len() int { return s.n }

// Fill writes sample i.
func (s spaced) Fill(b *tokens.Batch, row data.Row, i int) error {
	return s.Source.Fill(b, row, i*s.Source.Len()/s.n)
}
