package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// LargestBatch finds the largest batch, of up to most samples, with which a program fits on a device, by dry runs: f makes all that
// it has on the device in env and makes some steps of so many samples. The device is one that [tensor.Open] opens, or a card's
// name; limit is the bytes that the program may have of it, 0 all. The report is of that batch, or of the least that was tried where
// none fits; LimitedBy says what is in the way of more. With a limit, batches fit too for which the allocator has to give back what it
// keeps ready, so Reserved may be more than the limit. A batch for which f gives a [*TightError] does not fit. The error is f's.
func LargestBatch(device string, limit int64, most int, f func(env *tensor.Env, batch int) error) (*Report, error) {
	if most < 1 {
		return nil, fmt.Errorf("the largest batch of up to %d samples", most)
	}
	if limit < 0 {
		return nil, fmt.Errorf("a limit of %d bytes: 0 is all that the device has", limit)
	}
	reports, refusals := map[int]*Report{}, map[int]error{}
	try := func(batch int) (*Report, error) {
		r, err := rehearsed(device, func(env *tensor.Env) error { return f(env, batch) })
		if err == nil && limit > 0 {
			r.Limit = limit
		}
		refusals[batch] = err
		r, err = fitting(r, err)
		reports[batch] = r
		return r, err
	}
	begin := min(most, firstTry)
	first, err := try(begin)
	for failed := err; err != nil; first, err = try(begin) {
		if begin == most || errors.Is(err, context.Canceled) {
			return nil, failed
		}
		begin = min(most, firstTry*begin) // it may be too few samples
	}
	if err := first.Largest(begin, most, try); err != nil {
		return nil, err
	}
	least := begin
	for n, r := range reports {
		if r != nil {
			least = min(least, n)
		}
	}
	n, by := first.LargestBatch, first.LimitedBy
	if limit > 0 && n < most {
		n = squeezed(n, most, func(n int) bool { return runs(device, limit, func(env *tensor.Env) error { return f(env, n) }) })
	}
	if n == most {
		by = "samples"
	}
	if n == 0 && refusals[least] != nil {
		return nil, refusals[least]
	}
	r := reports[max(least, n)]
	if r == nil {
		if r, err = try(n); err != nil {
			return nil, err
		}
	}
	r.LargestBatch, r.LimitedBy = n, by
	return r, nil
}

// squeezed is the largest of n, which fits, and more up to most.
func squeezed(n, most int, fits func(n int) bool) int {
	step := max(1, n/16)
	for n < most && fits(min(most, n+step)) {
		n = min(most, n+step)
		step *= 2
	}
	for above := min(most+1, n+step); above-n > 1; {
		if middle := n + (above-n)/2; fits(middle) {
			n = middle
		} else {
			above = middle
		}
	}
	return n
}

// runs tells whether a program runs on a device that is like the one of a name, and has limit bytes.
func runs(name string, limit int64, f func(env *tensor.Env) error) bool {
	env, _, err := like(name)
	if err != nil {
		return false
	}
	d := env.Device()
	if name == "cpu" {
		d.SetLimit(limit)
	} else if err := d.SetMemoryFraction(float64(limit) / float64(d.Properties().Memory)); err != nil {
		return false
	}
	failed, err := tensor.Try(env, f)
	return cmp.Or(err, failed) == nil
}

// firstTry is large enough for layers that look across samples.
const firstTry = 8

// Largest finds LargestBatch and LimitedBy of a report that is of a batch, by trying others up to most. A program is taken to need
// the more the larger its batch is; one that refuses a smaller batch than all that it took has none that is smaller still. The
// error is that of a try.
func (r *Report) Largest(batch, most int, try func(batch int) (*Report, error)) error {
	s := search{above: most + 1, least: batch}
	s.add(batch, r)
	for s.above-s.below > 1 {
		n := s.next()
		x, err := fitting(try(n))
		switch {
		case err == nil:
			s.add(n, x)
		case n < s.least:
			s.refused, s.below = n, n
		default:
			return err
		}
	}
	if r.LargestBatch, r.LimitedBy = s.below, "samples"; s.below == s.refused {
		r.LargestBatch = 0
	}
	if s.over != nil {
		r.LimitedBy = s.over.largestKind()
	}
	return nil
}

// fitting is a try, whose program does not fit where it has a budget of its own and no way to keep to it.
func fitting(r *Report, err error) (*Report, error) {
	var tight *TightError
	if !errors.As(err, &tight) {
		return r, err
	}
	return &Report{Limit: tight.Bytes, Requested: tight.Least, Reserved: tight.Least, ByKind: map[string]int64{device.LabelSaved: tight.Least}, LargestBatch: -1, Loader: -1}, nil
}

// search is one for the largest batch that fits, between one that does, or 0, and one that does not.
type search struct {
	below, above int
	least        int     // that was tried
	refused      int     // the largest that is too small for the program; 0: none
	over         *Report // of above; nil while that is most + 1
	points       []point
}

// point is a batch that was tried, with what it left of the card.
type point struct{ batch, left float64 }

func (s *search) add(batch int, r *Report) {
	if r.Fits() {
		s.below = max(s.below, batch)
	} else if batch < s.above {
		s.above, s.over = batch, r
	}
	s.least = min(s.least, batch)
	s.points = append(s.points, point{float64(batch), float64(r.left())})
}

// next is the batch to try: where the line through the last two points leaves nothing, since what a program needs grows about in
// proportion, or one beside it. Where the line leads nowhere, or has led nowhere for long, it is the middle.
func (s *search) next() int {
	n := len(s.points)
	if n == 1 {
		if s.below > 0 {
			return min(2*s.below, s.above-1)
		}
		return max(1, s.above/2)
	}
	a, b := s.points[n-2], s.points[n-1]
	slope := (a.left - b.left) / (b.batch - a.batch)
	if slope <= 0 || n > manyGuesses {
		return min(s.below+(s.above-s.below)/2, stride*max(1, s.below, int(a.batch), int(b.batch)))
	}
	guess := b.batch + b.left/slope
	guess = min(guess, stride*max(a.batch, b.batch)) // segments make the first of a line flat
	if guess >= float64(s.above) {
		return s.above - 1
	}
	return max(s.below+1, int(guess))
}

// stride is how far beyond what was tried a guess goes at most.
const stride = 4

// manyGuesses is after how many tries halving is quicker than lines.
const manyGuesses = 12
