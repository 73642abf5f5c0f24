package nn_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// A server: many goroutines ask one model.
func ExampleModule_serve() {
	env := tensor.Best()
	model := nn.Sequential{nn.NewLinear(env, 2, 4), nn.ReLU{}, nn.NewLinear(env, 4, 3)}
	predict := func(row []float32) (class int) {
		env.NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
			class = int(model.Forward(tensor.From(env, row, 1, 2)).ArgMax(-1).Item())
			return nil // or a value to keep
		})
		return class
	}

	before := env.Device().Memory().Used
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 100 {
				predict([]float32{0.5, 1})
			}
		})
	}
	clients.Wait()
	fmt.Println("bytes left behind:", env.Device().Memory().Used-before)
	// Output: bytes left behind: 0
}

// A server beside the training loop: it asks copies, which are swapped between steps.
func ExamplePublish() {
	env := tensor.Best().Seed(1)
	model := nn.Sequential{nn.NewLinear(env, 2, 8), nn.NewBatchNorm(env, 8), nn.ReLU{}, nn.NewLinear(env, 8, 2)}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	live := nn.Publish(model)

	predict := func(row []float32) (class int) {
		live.Use(func(model nn.Sequential) {
			env.NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
				class = int(model.Forward(tensor.From(env, row, 1, 2)).ArgMax(-1).Item())
				return nil
			})
		})
		return class
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 100 {
				predict([]float32{0.5, 1})
			}
		})
	}

	set := data.InMemory([]float32{0, 0, 0, 1, 1, 0, 1, 1}, []int{2}, []int64{0, 1, 1, 0})
	for b, err := range data.Batches(env, set, data.Config{Size: 4, Shuffle: true, Steps: 200}) {
		if err != nil {
			log.Fatal(err)
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
		opt.Step()
		live.Update()
	}
	clients.Wait()
	fmt.Println(predict([]float32{0, 1}), predict([]float32{1, 1}))
	// Output: 1 0
}

// Statistics of a batch norm that stay as they are, while all else learns.
func ExampleEvalMode() {
	env := tensor.Best()
	backbone := nn.Sequential{nn.NewLinear(env, 3, 4), nn.NewBatchNorm(env, 4)}
	model := nn.Sequential{nn.EvalMode(backbone), nn.NewLinear(env, 4, 2)}

	norm := backbone[1].(*nn.BatchNorm)
	model.Forward(env.Randn(8, 3)).Square().Mean().Backward()
	fmt.Println(norm.RunningMean.Floats(), norm.Weight.Grad() != nil)
	// Output: [0 0 0 0] true
}
