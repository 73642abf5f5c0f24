package data

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// byKey is the samples of each key, the keys in order.
func byKey[K cmp.Ordered](keys []K) [][]int {
	place := map[K]int{}
	names := slices.Compact(slices.Sorted(slices.Values(keys)))
	for i, k := range names {
		place[k] = i
	}
	out := make([][]int, len(names))
	for i, k := range keys {
		out[place[k]] = append(out[place[k]], i)
	}
	return out
}

func shuffle[T any](list []T, r *rand.Rand) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// shuffled is a copy of groups, each in a new order.
func shuffled(groups [][]int, r *rand.Rand) [][]int {
	out := make([][]int, len(groups))
	for g, list := range groups {
		out[g] = slices.Clone(list)
		shuffle(out[g], r)
	}
	return out
}

// stratified is the sampler of [Stratified].
type stratified struct {
	n       int
	classes [][]int
}

// Stratified takes each sample once in an epoch, in a random order in which every run of samples, hence every batch, has each class
// in the set's proportion: fewer than two samples away from it. classes[i] is the class of sample i.
func Stratified[C cmp.Ordered](classes []C) Sampler { return &stratified{len(classes), byKey(classes)} }

func (s *stratified) Batches(n int, c Config) (int, error) {
	return batchesOf(n, c), matches("classes", s.n, n)
}

func (s *stratified) Epoch(n int, c Config, r *rand.Rand) [][]int {
	classes := shuffled(s.classes, r)
	shuffle(classes, r) // who comes first among equals
	order := make([]int, 0, n)
	for _, k := range evenly(classes, n) {
		order = append(order, classes[k][0])
		classes[k] = classes[k][1:]
	}
	if n > 0 {
		from := r.IntN(n) // a turn of the circle keeps proportions
		order = append(order[from:], order[:from]...)
	}
	return cutOrder(order, c)
}

// evenly is the order of n turns in which class k has had, after t of them, less than one turn more or fewer than its share of t:
// Tijdeman's solution of the chairman assignment problem (1980). A class may have its next turn once its share asks for it, and of
// those that may, the one that must soonest has it.
func evenly(classes [][]int, n int) []int {
	slack := 0.5
	if len(classes) > 1 {
		slack = 1 / float64(2*len(classes)-2)
	}
	waiting, ready := &turns{}, &turns{}
	next := func(k, had int) {
		if share := float64(len(classes[k])) / float64(n); had < len(classes[k]) {
			heap.Push(waiting, turn{k, had, (float64(had) + slack) / share, (float64(had) + 1 - slack) / share})
		}
	}
	for k := range classes {
		next(k, 0)
	}
	order := make([]int, 0, n)
	for t := 1; t <= n; t++ {
		for waiting.Len() > 0 && ((*waiting)[0].from <= float64(t) || ready.Len() == 0) {
			w := heap.Pop(waiting).(turn)
			w.from = w.due // ready is ordered by when it must be
			heap.Push(ready, w)
		}
		now := heap.Pop(ready).(turn)
		order = append(order, now.class)
		next(now.class, now.had+1)
	}
	return order
}

// turn is a class's next turn: from when it may be, and by when it must.
type turn struct {
	class, had int
	from, due  float64
}

// turns is a heap by from.
type turns []turn

func (h turns) Len() int { return len(h) }
func (h turns) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].from, h[j].from), h[i].class-h[j].class) < 0
}
func (h turns) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turns) Push(v any)   { *h = append(*h, v.(turn)) }
func (h *turns) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// grouped is the sampler of [Grouped].
type grouped struct {
	n      int
	groups [][]int
}

// Grouped takes each sample once in an epoch, in batches that have samples of one group only, such as pictures of one shape. Batches
// come in random order; the last one of each group may be short, and is left out with DropLast. groups[i] is the group of sample i.
func Grouped[G cmp.Ordered](groups []G) Sampler { return &grouped{len(groups), byKey(groups)} }

func (g *grouped) Batches(n int, c Config) (batches int, err error) {
	for _, list := range g.groups {
		batches += batchesOf(len(list), c)
	}
	return batches, matches("groups", g.n, n)
}

func (g *grouped) Epoch(_ int, c Config, r *rand.Rand) (out [][]int) {
	for _, list := range shuffled(g.groups, r) {
		out = append(out, cutOrder(list, c)...)
	}
	shuffle(out, r)
	return out
}

// bucketed is the sampler of [Bucketed].
type bucketed struct{ lengths []int }

// bucketBatches is how many batches are sorted together: PyTorch-NLP's default.
const bucketBatches = 100

// Bucketed takes each sample once in an epoch, in batches of samples of like length, so that there is little to pad: samples are
// shuffled, those of 100 batches sorted by length, cut into batches, and the batches come in random order. lengths[i] is the length of
// sample i.
func Bucketed(lengths []int) Sampler { return &bucketed{lengths} }

func (b *bucketed) Batches(n int, c Config) (int, error) {
	return batchesOf(n, c), matches("lengths", len(b.lengths), n)
}

func (b *bucketed) Epoch(n int, c Config, r *rand.Rand) (out [][]int) {
	bucket := n // of so many batches that their samples are no number
	if c.Size < n/bucketBatches {
		bucket = c.Size * bucketBatches
	}
	for part := range slices.Chunk(r.Perm(n), max(bucket, 1)) {
		sorting.By(part, func(i, j int) int { return b.lengths[i] - b.lengths[j] })
		out = append(out, cutOrder(part, c)...)
	}
	shuffle(out, r)
	return out
}

// streams is the sampler of [Streams].
type streams struct{}

// Streams is for truncated back-propagation through time over a set whose samples follow one another, such as the blocks of a text: row
// r of the batches of an epoch is the r-th of Size runs of samples, in order, so that a state that goes from batch to batch carries
// on where its row has ended. States begin anew where [Turn.First] says so. Samples at the end that make no whole batch are left out.
func Streams() Sampler { return streams{} }

func (streams) Batches(n int, c Config) (int, error) {
	if n < c.Size {
		return 0, fmt.Errorf("data: %d samples are too few for %d streams; give a smaller Size, or shorter samples", n, c.Size)
	}
	return n / c.Size, nil
}

func (streams) Epoch(n int, c Config, _ *rand.Rand) [][]int {
	long := n / c.Size
	out := make([][]int, long)
	for t := range out {
		for r := range c.Size {
			out[t] = append(out[t], r*long+t)
		}
	}
	return out
}
