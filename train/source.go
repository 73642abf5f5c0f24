package train

import (
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/data/idx"
	"github.com/warpline-ml/warpline/data/npz"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/tensor"
)

// turn is a batch of any task: inputs and the classes to find.
type turn struct {
	env   *tensor.Env
	x, y  *tensor.Tensor
	state data.Position // after it
}

// source is a data set of any task.
type source interface {
	len() int  // samples
	size() int // samples; of a text, tokens to foretell
	turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error]
}

// images is a set of pictures with labels.
type images struct{ data.Source[data.Pair] }

func (s images) len() int  { return s.Len() }
func (s images) size() int { return s.Len() }

func (s images) turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return turns(data.Batches(env, s.Source, c), func(b *data.Pair) turn { return turn{b.Env, b.X, b.Y, b.Position()} })
}

// texts is a set of runs of tokens.
type texts struct{ data.Source[tokens.Batch] }

func (s texts) len() int  { return s.Len() }
func (s texts) size() int { return s.Len() * s.Fields()[1].Shape[0] }

func (s texts) turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return turns(data.Batches(env, s.Source, c), func(b *tokens.Batch) turn { return turn{b.Env, b.Tokens, b.Targets, b.Position()} })
}

// blocks are a text to score: rows of tokens that do not overlap, and a shorter one that has what is left.
type blocks struct{ rows, rest texts } // a nil Source: none

// mostBatches bounds what is scored of a long text while training.
const mostBatches = 200

// newBlocks cuts a set, all of whose tokens but the first are to be foretold, into rows.
func newBlocks(set *tokens.Set, context int) (s blocks, err error) {
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

func (s blocks) len() int  { return s.sum(texts.len) }
func (s blocks) size() int { return s.sum(texts.size) }

func (s blocks) sum(of func(texts) int) (n int) {
	for _, part := range []texts{s.rows, s.rest} {
		if part.Source != nil {
			n += of(part)
		}
	}
	return n
}

func (s blocks) turns(env *tensor.Env, c data.Config) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		for _, part := range []texts{s.rows, s.rest} {
			if part.Source == nil {
				continue
			}
			for t, err := range part.turns(env, c) {
				if !yield(t, err) {
					return
				}
			}
		}
	}
}

// some is the set, or if it has more than n rows so many of them, evenly spaced.
func (s blocks) some(n int) source {
	if s.len() <= n {
		return s
	}
	return texts{spaced{s.rows.Source, n}}
}

// spaced are n samples of a set, evenly spaced.
type spaced struct {
	data.Source[tokens.Batch]
	n int
}

func (s spaced) Len() int { return s.n }

func (s spaced) Fill(b *tokens.Batch, row data.Row, i int) error {
	return s.Source.Fill(b, row, i*s.Source.Len()/s.n)
}

// summed bounds what a checksum reads.
const summed = 64 << 20

// fingerprint tells whether a file of n bytes is the one that it was: by its size, and a checksum of its first 64 MiB.
func fingerprint(f io.Reader, n int) (string, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, io.LimitReader(f, summed)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes with checksum %08x", n, sum.Sum32()), nil
}

func turns[B any](seq iter.Seq2[*B, error], open func(*B) turn) iter.Seq2[turn, error] {
	return func(yield func(turn, error) bool) {
		for b, err := range seq {
			var t turn
			if err == nil {
				t = open(b)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// sizes of the set of drawn digits.
const (
	drawnTrain = 60_000
	drawnTest  = 2_000
)

// openImages reads a set of pictures. test is nil when the set has no part of its own for it.
func openImages(path string) (train, test data.Source[data.Pair], err error) {
	pictures, labels, pair := twoFiles(path)
	switch {
	case path == "":
		train, test = digits.Split(drawnTrain, drawnTest)
		return train, test, nil
	case pair:
		train, err = idx.Open(pictures, labels)
	case strings.HasSuffix(path, ".npz"):
		train, err = npz.Open(path)
	case isFile(path):
		err = fmt.Errorf("%s is one file and no .npz", path)
	default:
		train, test, err = idx.OpenDir(path)
	}
	if err == nil && train.Len() == 0 {
		err = fmt.Errorf("%s has no pictures", path)
	}
	return train, test, explain(err, "give --data a folder with MNIST's file names, IMAGES,LABELS in IDX, or an .npz with images and labels")
}

// twoFiles splits IMAGES,LABELS, unless that is the name of something.
func twoFiles(path string) (images, labels string, ok bool) {
	if _, err := os.Stat(path); err == nil {
		return path, "", false
	}
	return strings.Cut(path, ",")
}

// samplesAtOnce is how many samples of a shape are read together where nothing asks for a number: most, but no more than
// 16 MiB of float32.
func samplesAtOnce(shape []int, most int) int {
	room := 4 << 20
	for _, d := range shape {
		room /= max(d, 1)
	}
	return max(1, min(most, room))
}

// classes is one more than the largest label of a set, of at most limit classes.
func classes(src data.Source[data.Pair], limit int) (int, error) {
	host, err := tensor.Open("cpu")
	if err != nil {
		return 0, err
	}
	most, at := int64(-1), 0
	for b, err := range data.Batches(host.NoGrad(), src, data.Config{Size: samplesAtOnce(src.Fields()[0].Shape, 1024)}) {
		if err != nil {
			return 0, explain(err, "check the files of --data")
		}
		for i, y := range tensor.Data[int64](b.Y) {
			if y < 0 || y >= int64(limit) {
				return 0, fail("relabel the data, or train a model of more classes", "label %d of sample %d is not one of the %d classes", y, at+i, limit)
			}
			most = max(most, y)
		}
		at += b.Y.Size()
	}
	return int(most) + 1, nil
}
