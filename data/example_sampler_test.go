package data_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Rare samples come as often as the others: the weight is one over the class's share.
func ExampleWeighted() {
	y := []int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
	set := data.InMemory(make([]float32, len(y)), []int{1}, y)
	weights := make([]float64, len(y))
	for i, class := range y {
		weights[i] = []float64{1.0 / 9, 1}[class]
	}
	sampler, err := data.Weighted(weights, 1000, true)
	if err != nil {
		log.Fatal(err)
	}
	ones := 0.0
	for b, err := range data.Batches(tensor.Best().Seed(1), set, data.Config{Size: 100, Sampler: sampler}) {
		if err != nil {
			log.Fatal(err)
		}
		ones += b.Y.Sum().Item()
	}
	fmt.Println(ones > 450 && ones < 550)
	// Output: true
}

func ExampleStratified() {
	y := []int64{0, 0, 0, 0, 0, 0, 1, 1, 1}
	set := data.InMemory(make([]float32, len(y)), []int{1}, y)
	for b, err := range data.Batches(tensor.Best(), set, data.Config{Size: 3, Sampler: data.Stratified(y)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Y.Sum().Item(), "of class 1")
	}
	// Output:
	// 1 of class 1
	// 1 of class 1
	// 1 of class 1
}

// A sampler of one's own: the samples of an epoch, in their order.
func ExampleOrdered() {
	set := data.InMemory([]float32{0, 1, 2, 3, 4, 5}, []int{1}, make([]int64, 6))
	backwards := data.Ordered(3, func(n int, _ *rand.Rand) []int { return []int{n - 1, n - 2, n - 3} })
	for b, err := range data.Batches(tensor.Best(), set, data.Config{Size: 2, Sampler: backwards}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Floats())
	}
	// Output:
	// [5 4]
	// [3]
}

// Sequences of different lengths, those of like length together.
func ExampleSequences() {
	x := [][]int64{{1, 2, 3}, {4}, {5, 6, 7, 8}, {9, 10}}
	set := data.Sequences(x, nil, 0, []int64{0, 1, 0, 1})
	lengths := make([]int, len(x))
	for i := range x {
		lengths[i] = len(x[i])
	}
	for b, err := range data.Batches(tensor.Best(), set, data.Config{Size: 2, Sampler: data.Bucketed(lengths)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape(), b.Lengths.Floats(), b.Mask.Cast(dtype.I64).Sum(1).Floats())
	}
	// Unordered output:
	// [2 2] [1 2] [1 2]
	// [2 4] [3 4] [3 4]
}

// A recurrent state goes from batch to batch of a text; each row of the batches is a stretch of it.
func ExampleStreams() {
	ids := []uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	set, err := tokens.New("digits", ids, 13).Blocks(2)
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range data.Batches(tensor.Best(), set, data.Config{Size: 2, Sampler: data.Streams()}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Tokens.Floats(), b.First()) // state.Detach(), or a new one in the first batch of an epoch
	}
	// Output:
	// [0 1 6 7] true
	// [2 3 8 9] false
	// [4 5 10 11] false
}

func ExampleFilter() {
	set := data.InMemory([]float32{1, 2, 3, 4}, []int{1}, []int64{0, 1, 2, 1})
	ones, err := data.Filter(set, func(row data.Row) bool { return data.Values[int64](row, 1)[0] == 1 })
	if err != nil {
		log.Fatal(err)
	}
	both := data.Concat(ones, data.Select(set, []int{3, 0}))
	for b, err := range data.Batches(tensor.Best(), both, data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Floats())
	}
	// Output: [2 4 4 1]
}

func ExampleInterleave() {
	a := data.InMemory([]float32{1, 2, 3}, []int{1}, make([]int64, 3))
	b := data.InMemory([]float32{10}, []int{1}, make([]int64, 1))
	for b, err := range data.Batches(tensor.Best(), data.Interleave(a, b), data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Floats())
	}
	// Output: [1 10 2 3]
}

// What is slow to read is read once; random changes stand above the cache, so that each epoch has its own.
func ExampleCacheDir() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	slow := Wave{4}
	kept, err := data.CacheDir(data.Source[data.Pair](slow), dir, "") // data.Cache(slow) keeps in memory
	if err != nil {
		log.Fatal(err)
	}
	defer kept.Close()
	augmented := data.Map[data.Pair](kept, func(_ *data.Pair, row data.Row) error {
		data.Values[float32](row, 0)[0] += 0.1 * row.Rand().Float32()
		return nil
	})
	for b, err := range data.Batches(tensor.Best(), augmented, data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape(), b.Y.Round().Floats())
	}
	// Output: [4 1] [0 1 0 -1]
}

// Dictionary is a source of two named tensors.
type Dictionary struct{}

// Len is the number of samples.
func (Dictionary) Len() int { return 2 }

// Fields name the tensors.
func (Dictionary) Fields() []data.Field {
	return []data.Field{{Name: "ids", DType: dtype.I64, Shape: []int{data.Any}}, {Name: "score", DType: dtype.F32}}
}

// Fill writes i+1 ids and a score.
func (Dictionary) Fill(_ *data.Named, row data.Row, i int) error {
	for k := range data.Ragged[int64](row, 0, i+1) {
		data.Values[int64](row, 0)[k] = int64(k + 1)
	}
	data.Values[float32](row, 1)[0] = float32(i)
	return nil
}

func ExampleNamed() {
	for b, err := range data.Batches(tensor.Best(), Dictionary{}, data.Config{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Tensors["ids"].Floats(), b.Tensors["score"].Floats())
	}
	// Output: [1 0 1 2] [0 1]
}
