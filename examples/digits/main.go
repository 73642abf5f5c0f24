// Command digits trains a classifier of handwritten digits: the program in the README.
package main

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func main() {
	env := tensor.Best()
	train, test := digits.Split(60_000, 2_000) // drawn on demand: nothing to download
	model := nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 784, 128), nn.ReLU{}, nn.NewLinear(env, 128, 10)}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-3})

	for epoch := range 3 {
		for b, err := range data.Batches(env, train, data.Config{Size: 128, Shuffle: true, Epoch: epoch}) {
			if err != nil {
				log.Fatal(err)
			}
			loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
			loss.Backward()
			opt.Step() // applies the gradients and lets go of them
		}
		fmt.Printf("epoch %d: accuracy %.2f %%\n", epoch, 100*metric.Accuracy(env, model, test))
	}
}
