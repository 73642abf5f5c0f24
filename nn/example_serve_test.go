package nn_test

import (
	"fmt"
	"sync"

	"github.com/warpline-ml/warpline/nn"
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
