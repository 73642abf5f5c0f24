package data

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Sampler chooses the samples of each batch of an epoch. Epochs have the same number of batches, and an epoch is a function of its
// random numbers alone: this is how a run goes on in its middle. Of a [Config] a sampler sees Size and DropLast.
type Sampler interface {
	// Batches is the number of batches of an epoch of a set of n samples. The error says why there can be none.
	Batches(n int, c Config) (int, error)
	// Epoch lists the samples of these batches, each of 1 to c.Size samples from 0 to n-1.
	Epoch(n int, c Config, r *rand.Rand) [][]int
}

// sample has the sampler make an epoch's batches, and judges them.
func (p *plan) sample(epoch int) error {
	if p.Sampler == nil || p.ordered == epoch {
		return nil
	}
	p.batches, p.ordered = p.Sampler.Epoch(p.n, p.Config, Row{key: p.key(uint64(epoch)), number: byPlace}.Rand()), epoch
	if len(p.batches) != p.perEpoch {
		return fmt.Errorf("data: the sampler makes %d batches of epoch %d, and has promised %d", len(p.batches), epoch, p.perEpoch)
	}
	p.repeats = false
	seen := make([]bool, p.n)
	for b, samples := range p.batches {
		if len(samples) < 1 || len(samples) > p.Size {
			return fmt.Errorf("data: the sampler gives batch %d of epoch %d %d samples, not 1 to %d", b, epoch, len(samples), p.Size)
		}
		for _, i := range samples {
			if i < 0 || i >= p.n {
				return fmt.Errorf("data: the sampler gives batch %d of epoch %d sample %d, of a set of %d", b, epoch, i, p.n)
			}
			p.repeats = p.repeats || seen[i]
			seen[i] = true
		}
	}
	return nil
}

// ordered is the sampler of [Ordered].
type ordered struct {
	take  int
	order func(n int, r *rand.Rand) []int
}

// Ordered is the sampler of an order of one's own: take samples in each epoch, as order lists them for a set of n.
func Ordered(take int, order func(n int, r *rand.Rand) []int) Sampler { return &ordered{take, order} }

func (o *ordered) Batches(_ int, c Config) (int, error) { return batchesOf(o.take, c), nil }

func (o *ordered) Epoch(n int, c Config, r *rand.Rand) [][]int { return cutOrder(o.order(n, r), c) }

// batchesOf is how many batches n samples make.
func batchesOf(n int, c Config) int {
	if n%c.Size > 0 && !c.DropLast {
		return n/c.Size + 1
	}
	return n / c.Size
}

// cutOrder cuts an order into batches.
func cutOrder(order []int, c Config) [][]int {
	var out [][]int
	for b := range slices.Chunk(order, c.Size) {
		if len(b) == c.Size || !c.DropLast {
			out = append(out, b)
		}
	}
	return out
}

// weighted is the sampler of [Weighted].
type weighted struct {
	weights []float64
	sums    []float64 // of the weights up to each
	take    int
	replace bool
}

// Weighted takes samples by chance, as PyTorch's WeightedRandomSampler: sample i with a chance in proportion to weights[i], take
// times in an epoch. With replace each is drawn from all of them; without, a sample comes once at most, and each is drawn in
// proportion among those that are left. Weights that leave nothing to draw, are negative or not finite are errors, as are more
// samples without replacement than have a weight.
func Weighted(weights []float64, take int, replace bool) (Sampler, error) {
	w := &weighted{weights: weights, take: take, replace: replace}
	total, some := 0.0, 0
	for i, v := range weights {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("data: the weight of sample %d is %v; give a number from 0 up", i, v)
		}
		if v > 0 {
			some++
		}
		total += v
		w.sums = append(w.sums, total)
	}
	switch {
	case take < 1:
		return nil, fmt.Errorf("data: %d samples to draw in an epoch; give at least 1", take)
	case some == 0:
		return nil, fmt.Errorf("data: none of %d weights is above 0; nothing can be drawn", len(weights))
	case math.IsInf(total, 1):
		return nil, fmt.Errorf("data: the weights add up to infinity; divide them by the largest, %v", slices.Max(weights))
	case !replace && take > some:
		return nil, fmt.Errorf("data: %d samples to draw without replacement, and %d have a weight above 0; draw fewer, or with replacement", take, some)
	}
	return w, nil
}

func (w *weighted) Batches(n int, c Config) (int, error) {
	return batchesOf(w.take, c), matches("weights", len(w.weights), n)
}

// matches compares how much a sampler was given with the set.
func matches(what string, given, n int) error {
	if given != n {
		return fmt.Errorf("data: %d %s for a set of %d samples; give one for each", given, what, n)
	}
	return nil
}

func (w *weighted) Epoch(_ int, c Config, r *rand.Rand) [][]int {
	if w.replace {
		return cutOrder(w.drawn(r), c)
	}
	return cutOrder(w.race(r), c)
}

func (w *weighted) drawn(r *rand.Rand) []int {
	order, total := make([]int, w.take), w.sums[len(w.sums)-1]
	for k := range order {
		u := r.Float64() * total
		i := sort.Search(len(w.sums), func(i int) bool { return w.sums[i] > u })
		for i == len(w.sums) || w.weights[i] == 0 { // u was rounded up to the total
			i--
		}
		order[k] = i
	}
	return order
}

// race draws without replacement: the order in which clocks of rates w ring is that of draws in proportion to what is left
// (Efraimidis and Spirakis, 2006).
func (w *weighted) race(r *rand.Rand) []int {
	type clock struct {
		rings float64
		i     int
	}
	var all []clock
	for i, v := range w.weights {
		if v > 0 {
			all = append(all, clock{math.Log(r.ExpFloat64()) - math.Log(v), i}) // in logarithms weights of any size differ
		}
	}
	sorting.By(all, func(a, b clock) int { return cmp.Or(cmp.Compare(a.rings, b.rings), a.i-b.i) })
	order := make([]int, w.take)
	for k := range order {
		order[k] = all[k].i
	}
	return order
}
