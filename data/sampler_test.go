package data_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// batches are the labels of each batch of some epochs of a set of n.
func batches(t *testing.T, n, epochs int, c data.Config) (out [][]int64) {
	t.Helper()
	env := fresh(t)
	for e := range epochs {
		c.Epoch = e
		out = append(out, labels(walk(t, data.Batches(env, counted(n), c)))...)
	}
	return out
}

// chi is χ² of counts against what is expected of each.
func chi(counts, expected []float64) (sum float64) {
	for i, e := range expected {
		sum += (counts[i] - e) * (counts[i] - e) / e
	}
	return sum
}

func TestWeightedIsInProportion(t *testing.T) {
	weights := []float64{1, 0, 2, 0.5, 1e-30, 4.5}
	sampler := must(data.Weighted(weights, 2000, true))
	counts := make([]float64, len(weights))
	for _, b := range batches(t, len(weights), 4, data.Config{Size: 64, Sampler: sampler}) {
		for _, i := range b {
			counts[i]++
		}
	}
	if counts[1] > 0 || counts[4] > 0 {
		t.Errorf("counts %v of weights %v", counts, weights)
	}
	some := []float64{counts[0], counts[2], counts[3], counts[5]}
	if x := chi(some, []float64{1000, 2000, 500, 4500}); x > 16.3 { // 0.1 % of draws with 3 degrees of freedom
		t.Errorf("counts %v: χ² is %.1f", some, x)
	}
}

// TestWeightedWithoutReplacement: the ordered pairs have the chances w_i/W · w_j/(W-w_i), as draws from torch.multinomial have.
func TestWeightedWithoutReplacement(t *testing.T) {
	weights := []float64{3, 1, 0, 2, 4}
	sampler := must(data.Weighted(weights, 2, false))
	const epochs, total = 6000, 10.0
	var counts, expected []float64
	place := map[[2]int64]int{}
	for i, a := range weights {
		for j, b := range weights {
			if i != j && a > 0 && b > 0 {
				place[[2]int64{int64(i), int64(j)}] = len(expected)
				expected = append(expected, epochs*a/total*b/(total-a))
			}
		}
	}
	counts = make([]float64, len(expected))
	for _, b := range batches(t, len(weights), epochs, data.Config{Size: 2, Sampler: sampler}) {
		k, ok := place[[2]int64(b)]
		if !ok {
			t.Fatalf("drawn %v", b)
		}
		counts[k]++
	}
	if x := chi(counts, expected); x > 31.3 { // 0.1 % with 11 degrees of freedom
		t.Errorf("counts %v, want %v: χ² is %.1f", counts, expected, x)
	}
	// Everything with a weight, and of weights as far apart as they can be.
	far := must(data.Weighted([]float64{5e-324, 1e300, 1}, 3, false))
	got := slices.Concat(batches(t, 3, 1, data.Config{Size: 2, Sampler: far})...)
	if !slices.Equal(got, []int64{1, 2, 0}) {
		t.Errorf("drawn %v", got)
	}
}

func TestImpossibleWeights(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		take    int
		replace bool
		want    string
	}{
		{[]float64{0, 0}, 1, true, "none of 2 weights is above 0"},
		{nil, 1, true, "none of 0 weights"},
		{[]float64{1, -1}, 1, true, "the weight of sample 1 is -1"},
		{[]float64{math.NaN()}, 1, true, "the weight of sample 0 is NaN"},
		{[]float64{1, math.Inf(1)}, 1, true, "the weight of sample 1 is +Inf"},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, 1, true, "add up to infinity"},
		{[]float64{1, 0, 1}, 3, false, "3 samples to draw without replacement, and 2 have a weight"},
		{[]float64{1}, 0, true, "0 samples to draw"},
		{[]float64{1}, -1, false, "-1 samples to draw"},
	} {
		if _, err := data.Weighted(c.weights, c.take, c.replace); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.weights, err, c.want)
		}
	}
}

// lists is a sampler of given batches.
type lists struct {
	promised int
	batches  [][]int
}

func (l lists) Batches(int, data.Config) (int, error)            { return l.promised, nil }
func (l lists) Epoch(int, data.Config, *rand.Rand) (all [][]int) { return l.batches }

func TestBadSamplersAreErrors(t *testing.T) {
	env := fresh(t)
	for _, c := range []struct {
		config data.Config
		want   string
	}{
		{data.Config{Size: 2, Shuffle: true, Sampler: data.Streams()}, "leave Shuffle, Draw and Wrap out"},
		{data.Config{Size: 2, Sampler: must(data.Weighted([]float64{1}, 1, true))}, "1 weights for a set of 3"},
		{data.Config{Size: 2, Sampler: data.Stratified([]int{1, 2})}, "2 classes for a set of 3"},
		{data.Config{Size: 2, Sampler: data.Grouped([]string{"a"})}, "1 groups for a set of 3"},
		{data.Config{Size: 2, Sampler: data.Bucketed(nil)}, "0 lengths for a set of 3"},
		{data.Config{Size: 4, Sampler: data.Streams()}, "3 samples are too few for 4 streams"},
		{data.Config{Size: 2, Sampler: lists{2, [][]int{{0}}}}, "makes 1 batches of epoch 0, and has promised 2"},
		{data.Config{Size: 2, Sampler: lists{1, [][]int{{0, 3}}}}, "sample 3, of a set of 3"},
		{data.Config{Size: 2, Sampler: lists{1, [][]int{{-1}}}}, "sample -1, of a set of 3"},
		{data.Config{Size: 2, Sampler: lists{1, [][]int{{}}}}, "0 samples, not 1 to 2"},
		{data.Config{Size: 2, Sampler: lists{1, [][]int{{0, 1, 2}}}}, "3 samples, not 1 to 2"},
		{data.Config{Size: 2, Steps: 1, Sampler: lists{0, nil}}, "make no batch"},
	} {
		for _, workers := range []int{-1, 2} {
			c.config.Workers = workers
			n := 0
			for b, err := range data.Batches(env, counted(3), c.config) {
				if n++; b != nil || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%+v: %v, want %q", c.config, err, c.want)
				}
			}
			if n != 1 {
				t.Errorf("%+v: %d turns", c.config, n)
			}
		}
	}
}

// TestStratifiedKeepsProportions: every sample once, and in each batch fewer than two samples more or fewer of a class than its share.
func TestStratifiedKeepsProportions(t *testing.T) {
	for _, sizes := range [][]int{{90, 10}, {1}, {50, 1, 1, 1, 1, 1, 1, 1}, {7, 7, 7}, {100, 33, 3, 1, 20}, {1, 1, 1}} {
		var classes []string
		for c, n := range sizes {
			for range n {
				classes = append(classes, fmt.Sprint("class ", c))
			}
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
		n := len(classes)
		for _, size := range []int{1, 2, 10, 16} {
			var epochs [2][]int64
			for e := range epochs {
				for _, b := range batches(t, n, 1, data.Config{Size: size, Epoch: e, Sampler: data.Stratified(classes)}) {
					count := map[string]int{}
					for _, i := range b {
						count[classes[i]]++
					}
					for c, of := range sizes {
						share := float64(len(b)) * float64(of) / float64(n)
						if got := float64(count[fmt.Sprint("class ", c)]); math.Abs(got-share) >= 2 {
							t.Errorf("%v in batches of %d: %v of class %d, its share is %.2f", sizes, size, got, c, share)
						}
					}
					epochs[e] = append(epochs[e], b...)
				}
				slices.Sort(epochs[e])
				if len(slices.Compact(epochs[e])) != n {
					t.Errorf("%v in batches of %d: not every sample once", sizes, size)
				}
			}
		}
	}
}

func TestGroupedKeepsGroupsApart(t *testing.T) {
	groups := []string{"a", "b", "a", "c", "a", "b", "a", "a", "b", "a", "a"}
	for _, drop := range []bool{false, true} {
		var seen []int64
		first := map[string]bool{}
		for _, b := range batches(t, len(groups), 1, data.Config{Size: 2, DropLast: drop, Sampler: data.Grouped(groups)}) {
			for _, i := range b {
				if groups[i] != groups[b[0]] {
					t.Errorf("batch %v mixes groups", b)
				}
			}
			if drop && len(b) < 2 {
				t.Errorf("batch %v is short", b)
			}
			first[groups[b[0]]] = true
			seen = append(seen, b...)
		}
		slices.Sort(seen)
		if want := map[bool]int{false: len(groups), true: 8}[drop]; len(slices.Compact(seen)) != want || len(seen) != want {
			t.Errorf("drop %v: %d samples, want %d", drop, len(seen), want)
		}
	}
	if got := batches(t, len(groups), 2, data.Config{Size: 2, Sampler: data.Grouped(groups)}); reflect.DeepEqual(got[:7], got[7:]) {
		t.Error("two epochs have the same order")
	}
}

// TestBucketedPadsLittle: of lengths from 1 to 100, padding is a small part of what it is in random order.
func TestBucketedPadsLittle(t *testing.T) {
	const n, size = 1000, 8
	r := rand.New(rand.NewPCG(1, 1))
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = 1 + r.IntN(100)
	}
	padding := func(c data.Config) (sum int) {
		var seen []int64
		for _, b := range batches(t, n, 1, c) {
			longest := 0
			for _, i := range b {
				longest = max(longest, lengths[i])
			}
			for _, i := range b {
				sum += longest - lengths[i]
			}
			seen = append(seen, b...)
		}
		slices.Sort(seen)
		if len(slices.Compact(seen)) != n {
			t.Error("not every sample once")
		}
		return sum
	}
	random, bucketed := padding(data.Config{Size: size, Shuffle: true}), padding(data.Config{Size: size, Sampler: data.Bucketed(lengths)})
	if bucketed*20 > random {
		t.Errorf("padding of %d items in buckets, %d at random", bucketed, random)
	}
}

// TestStreams: rows go on from batch to batch, and the first batch of an epoch says so.
func TestStreams(t *testing.T) {
	env := fresh(t)
	var got [][]int64
	var first []bool
	for b, err := range data.Batches(env, counted(11), data.Config{Size: 3, Sampler: data.Streams(), Steps: 4}) {
		if err != nil {
			t.Fatal(err)
		}
		got, first = append(got, look(b).y), append(first, b.First())
	}
	if want := [][]int64{{0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 3, 6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(first, []bool{true, false, false, true}) {
		t.Errorf("first %v", first)
	}
}
