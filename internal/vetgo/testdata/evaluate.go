// Package main asks models.
package main

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

type net struct {
	Body *nn.Linear
	Norm *nn.BatchNorm
}

// Forward is the model.
func (n *net) Forward(x *tensor.Tensor) *tensor.Tensor { return n.Norm.Forward(n.Body.Forward(x)) }

func hits(y, labels *tensor.Tensor) *tensor.Tensor { return metric.Correct(y, labels) }

func evaluates(model nn.Sequential) {
	env := tensor.Best()
	train, test := digits.Split(600, 200)
	var mean metric.Mean
	for b, err := range data.Batches(env, test, data.Config{Size: 8}) { // want: R09
		if err != nil {
			log.Fatal(err)
		}
		mean.Add(nn.CrossEntropy(model.Forward(b.X), b.Y), b.Size())
	}
	seeded := env.Seed(3).Eval()
	for b, err := range data.Batches(seeded, test, data.Config{Size: 8}) { // want: R09
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hits(model.Forward(b.X), b.Y).Item())
	}
	for b, err := range data.Batches(env, test, data.Config{Size: 8}) { // near: R09
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(model.Forward(b.X.In(env.NoGrad().Eval())).ArgMax(-1))
	}
	for b, err := range data.Batches(env, train, data.Config{Size: 8}) { // near: R09, it trains
		if err != nil {
			log.Fatal(err)
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
	}
}

func given(env *tensor.Env, model nn.Sequential, set data.Source[data.Pair], step func(y *tensor.Tensor)) {
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) { // near: R09 V03, the env's modes are not known
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(model.Forward(b.X))
	}
	best := tensor.Best()
	for b, err := range data.Batches(best, set, data.Config{Size: 8}) { // near: R09 V03, what step does is not known
		if err != nil {
			log.Fatal(err)
		}
		step(model.Forward(b.X))
	}
}

func modes(set data.Source[data.Pair]) {
	env := tensor.Best()
	model := &net{nn.NewLinear(env, 4, 2), nn.NewBatchNorm(env, 2)}
	plain := nn.Sequential{nn.NewLinear(env, 4, 2), nn.ReLU{}}
	dropping := nn.Sequential{nn.NewLinear(env, 4, 2), nn.Dropout{P: 0.1}}
	for b, err := range data.Batches(env.NoGrad(), set, data.Config{Size: 8}) { // want: V03
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(model.Forward(b.X))
	}
	quiet := env.NoGrad()
	for b, err := range data.Batches(quiet, set, data.Config{Size: 8}) { // want: V03
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(dropping.Forward(b.X))
	}
	for b, err := range data.Batches(quiet, set, data.Config{Size: 8}) { // near: V03
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(plain.Forward(b.X))
	}
	for b, err := range data.Batches(quiet, set, data.Config{Size: 8}) { // near: V03
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(model.Forward(b.X.In(env.Eval())))
	}
	nn.UpdateBatchNorm(model, func() {
		for b, err := range data.Batches(quiet, set, data.Config{Size: 8}) { // near: V03
			if err != nil {
				log.Fatal(err)
			}
			model.Forward(b.X)
		}
	})
}

func main() {}
