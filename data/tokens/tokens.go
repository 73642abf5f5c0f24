// Package tokens makes batches for language models of a long row of token ids: a file of little-endian uint16, which is
// mapped and not read up front, or ids in memory.
package tokens

import (
	"encoding/binary"
	"fmt"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/tensor"
)

// Batch is what a language model learns from: rows of tokens, and for each token the one that follows it.
type Batch struct {
	data.Turn
	Tokens  *tensor.Tensor // int64 [rows, context]
	Targets *tensor.Tensor // int64 [rows, context]
}

// Set is a row of token ids. It may be used by several goroutines at once.
type Set struct {
	name  string        // for errors
	file  *hostmem.File // nil in memory
	raw   []byte        // little-endian, two bytes an id
	first int           // position of raw in the file
	vocab int           // ids are below it; 0: any
}

// Open maps a file of little-endian uint16. Ids are compared with the size of the vocabulary, unless 0, when they are
// read.
func Open(path string, vocab int) (*Set, error) {
	f, err := hostmem.MapFile(path)
	if err != nil {
		return nil, err
	}
	n := len(f.Bytes())
	if n == 0 || n%2 != 0 {
		f.Close()
		return nil, fmt.Errorf("%s: %d bytes are no tokens; give a file of little-endian uint16", path, n)
	}
	return &Set{name: path, file: f, raw: f.Bytes(), vocab: vocab}, nil
}

// New is a set of ids in memory. The name stands in errors.
func New(name string, ids []uint16, vocab int) *Set {
	raw := make([]byte, 0, 2*len(ids))
	for _, id := range ids {
		raw = binary.LittleEndian.AppendUint16(raw, id)
	}
	return &Set{name: name, raw: raw, vocab: vocab}
}

// Close unmaps the file, also under every [Set.Part]: no loader may be at work on them.
func (s *Set) Close() error {
	s.raw = nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Len is the number of tokens.
func (s *Set) Len() int { return len(s.raw) / 2 }

// Vocab is the size of the vocabulary, 0 when it is not known.
func (s *Set) Vocab() int { return s.vocab }

// Part is the tokens at positions lo to hi-1, as far as there are any.
func (s *Set) Part(lo, hi int) *Set {
	lo = min(max(lo, 0), s.Len())
	hi = max(lo, min(hi, s.Len()))
	p := *s
	p.raw, p.first = s.raw[2*lo:2*hi], s.first+lo
	return &p
}

// ID is the token at position i, from 0 to Len-1.
func (s *Set) ID(i int) (int64, error) {
	if i < 0 || i >= s.Len() {
		return 0, fmt.Errorf("%s: there is no token %d of %d; positions count from 0", s.name, i, s.Len())
	}
	id := int64(binary.LittleEndian.Uint16(s.raw[2*i:]))
	if s.vocab > 0 && id >= int64(s.vocab) {
		return 0, fmt.Errorf("%s: token %d at position %d is beyond the vocabulary of %d; give a larger one, or the tokens it belongs to", s.name, id, s.first+i, s.vocab)
	}
	return id, nil
}

// source has samples of context tokens that begin at multiples of stride.
type source struct {
	*Set
	context, stride, n int
}

// Consecutive is for training in the file's order: with data.Config{Size: b, Wrap: true}, step s gets the tokens
// s·b·context to (s+1)·b·context, counted from 0 and modulo the set's length, in rows one after another.
func (s *Set) Consecutive(context int) (data.Source[Batch], error) {
	if err := s.check(context); err != nil {
		return nil, err
	}
	return &source{s, context, context, s.Len() / gcd(s.Len(), context)}, nil
}

// Windows is for training in random order: every run of context tokens that has a target for each is a sample. Use it
// with data.Config{Draw: true}.
func (s *Set) Windows(context int) (data.Source[Batch], error) {
	if err := s.check(context); err != nil {
		return nil, err
	}
	return &source{s, context, 1, s.Len() - context}, nil
}

// Blocks is for evaluation: samples that do not overlap and have a target for each token. What is left at the end, less
// than one sample, is not scored.
func (s *Set) Blocks(context int) (data.Source[Batch], error) {
	if err := s.check(context); err != nil {
		return nil, err
	}
	return &source{s, context, context, (s.Len() - 1) / context}, nil
}

func (s *Set) check(context int) error {
	if context < 1 {
		return fmt.Errorf("a context of %d tokens; give at least 1", context)
	}
	if s.Len() <= context {
		return fmt.Errorf("%s: %d tokens are too few for a context of %d and a target; give a shorter context or more text", s.name, s.Len(), context)
	}
	return nil
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Len implements [data.Source].
func (s *source) Len() int { return s.n }

// InMemory tells loaders that reading is cheap, except for a file's first pass.
func (s *source) InMemory() bool { return s.file == nil }

// Fields implements [data.Source].
func (s *source) Fields() []data.Field {
	row := []int{s.context}
	return []data.Field{{DType: dtype.I64, Shape: row}, {DType: dtype.I64, Shape: row}}
}

// Fill implements [data.Source].
func (s *source) Fill(_ *Batch, row data.Row, i int) error {
	in, out := data.Values[int64](row, 0), data.Values[int64](row, 1)
	at, n := i*s.stride%s.Set.Len(), s.Set.Len()
	id, err := s.ID(at)
	for k := range in {
		if err != nil {
			return err
		}
		in[k] = id
		if at++; at == n {
			at = 0
		}
		id, err = s.ID(at)
		out[k] = id
	}
	return err
}

// String is the set's name and length.
func (s *Set) String() string { return fmt.Sprintf("%s, %d tokens", s.name, s.Len()) }

func (s *source) String() string {
	return fmt.Sprintf("%d samples of %d tokens from %v", s.n, s.context, s.Set)
}
