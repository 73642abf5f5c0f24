package main

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

// width is that of the rows of operations, as in internal/bench.
const width = 1024

// gomlx runs GoMLX on its backend in Go, the one that needs no C.
func gomlx(q question) func() {
	if q.dtype != "f32" {
		return nil
	}
	backend, err := simplego.New(fmt.Sprintf("parallelism=%d", q.threads))
	if err != nil {
		log.Fatal(err)
	}
	switch q.bench {
	case "gemm":
		m, n, k, plain := q.sides()
		if !plain {
			return nil
		}
		a, b := random(m, k), random(k, n)
		product, err := graph.NewExec(backend, graph.Dot)
		return called(product, err, a, b)
	case "ops":
		return operation(backend, q)
	case "train":
		return steps(backend, q)
	}
	return nil
}

func random(dims ...int) *tensors.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return tensors.FromFlatDataAndDimensions(draw[float32](n), dims...)
}

// called is a turn that runs a graph and frees what it returns.
func called(e *graph.Exec, err error, args ...any) func() {
	if err != nil {
		log.Fatal(err)
	}
	return func() {
		for _, t := range e.MustExec(args...) {
			t.MustFinalizeAll()
		}
	}
}

var unary = map[string]func(x *graph.Node) *graph.Node{
	"exp":         graph.Exp,
	"tanh":        graph.Tanh,
	"relu":        activations.Relu,
	"gelu":        activations.GeluApproximate,
	"add":         func(x *graph.Node) *graph.Node { return graph.Add(x, x) },
	"softmax":     func(x *graph.Node) *graph.Node { return graph.Softmax(x, -1) },
	"sum-rows":    func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, 1) },
	"sum-columns": func(x *graph.Node) *graph.Node { return graph.ReduceSum(x, 0) },
	"transpose":   func(x *graph.Node) *graph.Node { return graph.Transpose(x, 0, 1) },
}

func operation(backend backends.Backend, q question) func() {
	f := unary[q.name]
	if f == nil {
		return nil
	}
	e, err := graph.NewExec(backend, f)
	return called(e, err, random(max(1, q.n/width), width))
}

// steps are whole training steps.
func steps(backend backends.Backend, q question) func() {
	if q.name != "mlp" && q.name != "mlp-adamw" { // of the others its backend lacks the gradient of max-pool
		return nil
	}
	var opt optimizers.Interface = optimizers.Adam().LearningRate(1e-3).WeightDecay(0.01).Done()
	if q.name == "mlp" {
		opt = optimizers.StochasticGradientDescent().WithDecay(false).WithLearningRate(1e-3).Done()
	}
	x, labels := random(q.n, 784), make([]int32, q.n)
	for i := range labels {
		labels[i] = rand.Int32N(10)
	}
	y := tensors.FromFlatDataAndDimensions(labels, q.n, 1)
	trainer := train.NewTrainer(backend, context.New(), mlp, losses.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
	return func() {
		out, err := trainer.TrainStep(nil, []*tensors.Tensor{x}, []*tensors.Tensor{y})
		if err != nil {
			log.Fatal(err)
		}
		for _, t := range out {
			t.MustFinalizeAll()
		}
	}
}

func mlp(ctx *context.Context, _ any, in []*graph.Node) []*graph.Node {
	x := activations.Relu(layers.DenseWithBias(ctx.In("a"), in[0], 512))
	x = activations.Relu(layers.DenseWithBias(ctx.In("b"), x, 512))
	return []*graph.Node{layers.DenseWithBias(ctx.In("c"), x, 10)}
}
