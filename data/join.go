package data

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// selected is the source of [Select].
type selected[B any] struct {
	Source[B]
	samples []int
}

// Select is the given samples of a source, in this order, as PyTorch's Subset. Others than it has are a mistake, which panics with a
// [tensor.Error]. The slice is not copied.
func Select[B any](src Source[B], samples []int) Source[B] {
	n := src.Len()
	for _, i := range samples {
		if i < 0 || i >= n {
			tensor.Raise("data.Select", fmt.Sprintf("samples count from 0 to %d", n-1), "sample %d of a set of %d", i, n)
		}
	}
	return &selected[B]{src, samples}
}

func (s *selected[B]) Len() int                        { return len(s.samples) }
func (s *selected[B]) InMemory() bool                  { return inMemory(s.Source) }
func (s *selected[B]) Fill(b *B, row Row, i int) error { return s.Source.Fill(b, row, s.samples[i]) }
func (s *selected[B]) String() string {
	return fmt.Sprintf("%d samples of (%v)", len(s.samples), s.Source)
}

// Filter is the samples of a source that keep is true of. It reads them all once, by several goroutines, and keeps their numbers:
// the set has a length and an order, and a run over it goes on in its middle as any other. What a row draws there is not what it draws
// in a batch: filter before random changes.
func Filter[B any](src Source[B], keep func(row Row) bool) (Source[B], error) {
	var kept []int
	err := scan(src, func(_ *slot[B], row Row, i int) error {
		if keep(row) {
			kept = append(kept, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &selected[B]{src, kept}, nil
}

// scanRows is how many samples a goroutine of scan reads at once.
const scanRows = 64

// scan reads all samples, several goroutines at a time, and calls each with them one after another, in order.
func scan[B any](src Source[B], each func(s *slot[B], row Row, i int) error) error {
	fields, n := src.Fields(), src.Len()
	for _, f := range fields {
		if err := f.check(f.Name, scanRows); err != nil {
			return err
		}
	}
	var slots []*slot[B]
	for range runtime.GOMAXPROCS(0) {
		slots = append(slots, newSlot[B](fields, scanRows))
	}
	for first := 0; first < n; first += len(slots) * scanRows {
		var wave sync.WaitGroup
		for k, s := range slots {
			lo := min(first+k*scanRows, n)
			s.samples, s.key, s.first, s.err = upTo(s.samples[:0], lo, min(lo+scanRows, n)), keptKey, -1, nil
			wave.Go(func() { s.fill(src) })
		}
		wave.Wait()
		for _, s := range slots {
			if s.err != nil {
				return s.err
			}
			for at, i := range s.samples {
				if err := each(s, s.row(at), i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keptKey is what samples draw from where no epoch reads them.
const keptKey rng.Key = 0x6b657074

func upTo(buf []int, lo, hi int) []int {
	for i := lo; i < hi; i++ {
		buf = append(buf, i)
	}
	return buf
}

// parts are sources one after another, or by turns.
type parts[B any] struct {
	sources []Source[B]
	fields  []Field
	n       int
}

func newParts[B any](op string, sources []Source[B]) parts[B] {
	if len(sources) == 0 {
		tensor.Raise(op, "give at least one", "no sources")
	}
	p := parts[B]{sources: sources, fields: sources[0].Fields()}
	for k, src := range sources {
		if f := src.Fields(); !slices.EqualFunc(f, p.fields, Field.equal) {
			tensor.Raise(op, "bring them to one form by data.Map, or keep them apart and walk them by data.Zip", "source %d has %v, source 0 has %v", k, f, p.fields)
		}
		p.n += src.Len()
	}
	return p
}

func (f Field) equal(g Field) bool {
	return f.DType == g.DType && slices.Equal(f.Shape, g.Shape) && f.Name == g.Name && f.Pad == g.Pad
}

func (p *parts[B]) Len() int        { return p.n }
func (p *parts[B]) Fields() []Field { return p.fields }
func (p *parts[B]) InMemory() bool {
	return !slices.ContainsFunc(p.sources, func(s Source[B]) bool { return !inMemory(s) })
}

func (p *parts[B]) String() string {
	var list []string
	for _, s := range p.sources {
		list = append(list, fmt.Sprintf("(%v)", s))
	}
	return strings.Join(list, ", ")
}

// concat is the source of [Concat].
type concat[B any] struct {
	parts[B]
	ends []int // the sum of the lengths up to each
}

// Concat is sources one after another, as PyTorch's ConcatDataset. To take more of one, draw with [Weighted]. Sources whose fields
// differ are a mistake, which panics with a [tensor.Error].
func Concat[B any](sources ...Source[B]) Source[B] {
	c := &concat[B]{parts: newParts("data.Concat", sources)}
	end := 0
	for _, s := range sources {
		end += s.Len()
		c.ends = append(c.ends, end)
	}
	return c
}

func (c *concat[B]) Fill(b *B, row Row, i int) error {
	k, _ := slices.BinarySearch(c.ends, i+1) // the first that ends behind i
	return c.sources[k].Fill(b, row, i-(c.ends[k]-c.sources[k].Len()))
}

// interleaved is the source of [Interleave].
type interleaved[B any] struct{ parts[B] }

// Interleave is a sample of each source by turns; sources that have ended are passed over. Sources whose fields differ are a mistake,
// which panics with a [tensor.Error].
func Interleave[B any](sources ...Source[B]) Source[B] {
	return &interleaved[B]{newParts("data.Interleave", sources)}
}

func (s *interleaved[B]) Fill(b *B, row Row, i int) error {
	k, at := s.place(i)
	return s.sources[k].Fill(b, row, at)
}

// place is the source of sample i, and its number there. Rounds go on until the shortest source ends, then with those that are left.
func (s *interleaved[B]) place(i int) (source, at int) {
	for round := 0; ; {
		var going []int
		end := -1 // of the next source to end
		for k, src := range s.sources {
			if n := src.Len(); n > round {
				going = append(going, k)
				if end < 0 || n < end {
					end = n
				}
			}
		}
		if i < (end-round)*len(going) {
			return going[i%len(going)], round + i/len(going)
		}
		i -= (end - round) * len(going)
		round = end
	}
}
