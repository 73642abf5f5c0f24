package data_test

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func ExampleBatches() {
	env := tensor.Best()
	set := data.InMemory([]float32{1, 2, 3, 4, 5, 6}, []int{2}, []int64{0, 1, 0}) // three samples of two numbers
	for b, err := range data.Batches(env, set, data.Config{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Floats(), b.Y.Floats(), b.Position())
	}
	// Output:
	// [1 2 3 4] [0 1] {0 1}
	// [5 6] [0] {1 0}
}

func ExampleSplit() {
	env := tensor.Best()
	model := nn.NewLinear(env, 2, 2)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	set := data.InMemory([]float32{1, 2, 3, 4, 5, 6, 7, 8}, []int{2}, []int64{0, 1, 0, 1})

	for b, err := range data.Batches(env, set, data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		for mb := range data.Split(b, 2) { // the gradients add up to those of the whole batch
			loss := nn.CrossEntropy(model.Forward(mb.X), mb.Y)
			loss.Scale(mb.Fraction()).Backward()
			fmt.Println(mb.X.Shape(), mb.Fraction())
		}
		opt.Step()
	}
	// Output:
	// [2 2] 0.5
	// [2 2] 0.5
}

func ExampleAccumulate() {
	env := tensor.Best()
	model := nn.NewLinear(env, 2, 2)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	set := data.InMemory([]float32{1, 2, 3, 4, 5, 6, 7, 8}, []int{2}, []int64{0, 1, 0, 1})

	parts := data.Divisors(4) // 1, 2, 4: whole batches, until memory runs out
	for b, err := range data.Batches(env, set, data.Config{Size: 4}) {
		if err != nil {
			log.Fatal(err)
		}
		parts = data.Accumulate(b, parts, opt.Discard, func(mb *data.Pair) {
			loss := nn.CrossEntropy(model.Forward(mb.X), mb.Y)
			loss.Scale(mb.Fraction()).Backward()
		})
		opt.Step()
		fmt.Println("in parts:", parts[0])
	}
	// Output: in parts: 1
}

func ExampleMap() {
	env := tensor.Best()
	set := data.InMemory([]float32{0, 50, 100, 150}, []int{2}, []int64{0, 1})
	scaled := data.Map(set, func(_ *data.Pair, row data.Row) error {
		x := data.Values[float32](row, 0)
		for i := range x {
			x[i] /= 100 // random changes draw from row.Rand()
		}
		return nil
	})
	for b, err := range data.Batches(env, scaled, data.Config{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X)
	}
	// Output:
	// [[0 0.5]
	//  [1 1.5]]  f32[2,2]
}

func ExampleZip() {
	env := tensor.Best()
	real := data.InMemory([]float32{1, 2, 3, 4}, []int{1}, make([]int64, 4))
	other := data.InMemory([]float32{10, 20}, []int{1}, make([]int64, 2))
	both := data.Zip(
		data.Batches(env, real, data.Config{Size: 2, Name: "real"}),
		data.Batches(env, other, data.Config{Size: 1, Name: "other"}),
	)
	for t, err := range both {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.A.X.Floats(), t.B.X.Floats())
	}
	// Output:
	// [1 2] [10]
	// [3 4] [20]
}
