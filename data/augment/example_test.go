package augment_test

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/augment"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

func ExampleApply() {
	train, _ := digits.Split(64, 0)
	train, err := augment.Apply(data.Cache(train), // drawn once, augmented anew in each epoch
		augment.RandomCrop(28, 28, 2),
		augment.RandomRotation(10),
		augment.Normalize([]float32{0.13}, []float32{0.31}))
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range data.Batches(tensor.Best(), train, data.Config{Size: 64, Shuffle: true}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape())
	}
	// Output: [64 1 28 28]
}

func ExampleMixUp() {
	env := tensor.Best()
	model := nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 28*28, 10)}
	train, _ := digits.Split(64, 0)
	for b, err := range data.Batches(env, train, data.Config{Size: 64}) {
		if err != nil {
			log.Fatal(err)
		}
		x, y := augment.MixUp(b, 10, 0.2) // y: shares of classes
		loss := nn.CrossEntropy(model.Forward(x), y)
		loss.Backward()
		fmt.Println(y.Shape(), loss.Item() > 0)
	}
	// Output: [64 10] true
}
