package data_test

import (
	"fmt"
	"log"
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Wave is n points of a sine: the place and the value there.
type Wave struct{ n int }

// Len is the number of samples.
func (w Wave) Len() int { return w.n }

// Fields are what a sample holds of X and of Y.
func (w Wave) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{1}}, {DType: dtype.F32, Shape: []int{1}}}
}

// Fill writes sample i. Several goroutines call it at once; a file is read here.
func (w Wave) Fill(_ *data.Pair, row data.Row, i int) error {
	x := 2 * math.Pi * float64(i) / float64(w.n)
	data.Values[float32](row, 0)[0] = float32(x)
	data.Values[float32](row, 1)[0] = float32(math.Sin(x))
	return nil
}

// A data set is any type with these three methods.
func ExampleSource() {
	env := tensor.Best()
	for b, err := range data.Batches(env, Wave{4}, data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape(), b.Y.Round().Floats())
	}
	// Output: [4 1] [0 1 0 -1]
}
