package data

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime"

	"github.com/warpline-ml/warpline/internal/rng"
)

// Config says how to batch. The zero value of everything but Size is a good choice.
type Config struct {
	Size     int  // samples of a batch
	DropLast bool // leave the last batch of an epoch out when it is short

	// The order of samples: by default that of the set.
	Shuffle bool    // a new permutation in each epoch
	Draw    bool    // each sample drawn independently, for sets too large to permute; all batches are full
	Wrap    bool    // in the set's order without end: the sample after the last is the first; all batches are full
	Sampler Sampler // chooses the samples of each batch; nil: one of the orders above

	// What part of the run. With Wrap and Draw an epoch has no end while Steps lasts.
	Epoch int // the first epoch
	Skip  int // batches of the first epoch that are done: resumes in its middle
	Steps int // batches of the run in all, over as many epochs as that takes; 0: to the end of the first epoch
	Done  int // of Steps: batches that were made before. A run that has done them all makes none

	Name    string          // tells the random paths of loaders apart
	Context context.Context // ends the run when it is done, with its cause as the last error

	Workers  int // goroutines that read ahead; 0: chosen, none for a source in memory; negative: none
	Prefetch int // batches that each worker may be ahead; 0: 2
}

// check refuses what has no meaning.
func (c *Config) check() error {
	switch {
	case c.Size <= 0:
		return fmt.Errorf("data: batch size %d; set Config.Size to at least 1", c.Size)
	case c.Epoch < 0 || c.Skip < 0 || c.Steps < 0 || c.Done < 0 || c.Prefetch < 0:
		return fmt.Errorf("data: epoch %d, skip %d, steps %d, done %d, prefetch %d; none may be negative", c.Epoch, c.Skip, c.Steps, c.Done, c.Prefetch)
	case c.Done > 0 && c.Steps == 0:
		return fmt.Errorf("data: %d steps done of no number; set Config.Steps to all of the run's", c.Done)
	case c.Epoch > most || c.Skip > most/c.Size || c.Steps > most/c.Size:
		return fmt.Errorf("data: epoch %d, skip %d, steps %d of size %d: more than 2^48 samples", c.Epoch, c.Skip, c.Steps, c.Size)
	case c.Shuffle && c.Draw || c.Shuffle && c.Wrap || c.Draw && c.Wrap:
		return errors.New("data: Shuffle, Draw and Wrap are three orders; set one of them")
	case c.Sampler != nil && (c.Shuffle || c.Draw || c.Wrap):
		return errors.New("data: a Sampler chooses the order itself; leave Shuffle, Draw and Wrap out")
	}
	return nil
}

// most bounds the samples of a run, so that positions never overflow.
const most = 1 << 48

// maxChosen bounds the workers that are chosen automatically.
const maxChosen = 8

func (c *Config) workers(resident bool) int {
	switch {
	case c.Workers > 0:
		return c.Workers
	case c.Workers < 0 || resident:
		return 0
	}
	return min(max(runtime.GOMAXPROCS(0)-1, 1), maxChosen)
}

func (c *Config) ahead() int {
	if c.Prefetch == 0 {
		return 2
	}
	return c.Prefetch
}

// plan says which samples make which batch.
type plan struct {
	Config
	n        int                     // samples of the set
	perEpoch int                     // batches
	key      func(...uint64) rng.Key // of a path under the loader's
	at       Position                // the next batch
	left     int                     // batches to make
	order    []int                   // of epoch ordered, when shuffled
	batches  [][]int                 // of epoch ordered, of a sampler
	repeats  bool                    // a sample may come twice in an epoch
	ordered  int
}

func newPlan(c Config, n int, key func(...uint64) rng.Key) (*plan, error) {
	p := &plan{Config: c, n: n, key: key, at: Position{c.Epoch, c.Skip}, left: max(c.Steps-c.Done, 0), ordered: -1}
	p.repeats = p.endless()
	if p.perEpoch = n / c.Size; n%c.Size > 0 && (!c.DropLast || p.endless()) {
		p.perEpoch++
	}
	if c.Sampler != nil {
		var err error
		if p.perEpoch, err = c.Sampler.Batches(n, c); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Steps > 0 && p.perEpoch == 0:
		return nil, fmt.Errorf("data: %d samples make no batch of %d, and %d are asked for", n, c.Size, c.Steps)
	case c.Skip > p.perEpoch && !p.endless():
		return nil, fmt.Errorf("data: %d batches to skip in epochs of %d; the position is of another data set or batch size", c.Skip, p.perEpoch)
	case c.Steps == 0:
		p.left = max(p.perEpoch-c.Skip, 0)
	default:
		p.at = p.normal(p.at)
	}
	return p, nil
}

func (p *plan) endless() bool { return p.Wrap || p.Draw }

// rows is the most samples a batch has.
func (p *plan) rows() int {
	if p.endless() || p.Sampler != nil {
		return p.Size
	}
	return min(p.Size, p.n)
}

// normal moves a position at the end of an epoch to the start of the next.
func (p *plan) normal(s Position) Position {
	if !p.endless() && s.Batch == p.perEpoch {
		return Position{Epoch: s.Epoch + 1}
	}
	return s
}

// next gives the position of the next batch and its samples in buf. The error is the sampler's, and the last that comes.
func (p *plan) next(buf []int) (at Position, samples []int, ok bool, err error) {
	if p.left == 0 {
		return Position{}, nil, false, nil
	}
	p.left--
	at = p.at
	p.at = p.normal(Position{at.Epoch, at.Batch + 1})
	if err = p.sample(at.Epoch); err != nil {
		p.left = 0
		return at, nil, true, err
	}
	return at, p.samples(at, buf[:0]), true, nil
}

func (p *plan) samples(at Position, buf []int) []int {
	first := at.Batch * p.Size
	switch {
	case p.Sampler != nil:
		buf = append(buf, p.batches[at.Batch]...)
	case p.Wrap:
		for r := range p.Size {
			buf = append(buf, (first+r)%p.n)
		}
	case p.Draw:
		key := p.key(uint64(at.Epoch))
		for r := range p.Size {
			b := rng.Uint32x4(key, uint64(first+r))
			i, _ := bits.Mul64(uint64(b[0])<<32|uint64(b[1]), uint64(p.n))
			buf = append(buf, int(i))
		}
	case p.Shuffle:
		if p.ordered != at.Epoch {
			p.order, p.ordered = rng.Perm(p.n, p.key(uint64(at.Epoch))), at.Epoch
		}
		buf = append(buf, p.order[first:min(first+p.Size, p.n)]...)
	default:
		for i := first; i < min(first+p.Size, p.n); i++ {
			buf = append(buf, i)
		}
	}
	return buf
}
