// Package main waits, and copies.
package main

import (
	"fmt"
	"log"
	"time"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func reads(env *tensor.Env, model nn.Sequential, opt optim.Optimizer, set data.Source[data.Pair]) (total float64) {
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		report := opt.Step()
		total += loss.Item()                 // want: R13
		fmt.Println(loss)                    // want: R13
		if norm := report.Norm(); norm > 1 { // want: R13
			fmt.Println("steep", loss.Item()) // near: R13, seldom
		}
		env.Sync() // want: R13
	}
	return total
}

func readsSeldom(env *tensor.Env, model nn.Sequential, opt optim.Optimizer, set data.Source[data.Pair]) float64 {
	var before *tensor.Pending
	var mean metric.Mean
	for epoch := range 3 {
		step := 0
		for b, err := range data.Batches(env, set, data.Config{Size: 8, Epoch: epoch}) {
			if err != nil {
				log.Fatal(err)
			}
			loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
			loss.Backward()
			opt.Step()
			if before != nil {
				fmt.Println(before.Value()) // near: R13, of the step before
			}
			before = loss.Later()
			mean.Add(loss, b.Size()) // near: R13
			if step++; step%100 == 0 {
				fmt.Println(loss.Item()) // near: R13
			}
			fmt.Println(loss.Shape(), step) // near: R13
		}
		fmt.Println(epoch, mean.Value()) // near: R13, once an epoch
	}
	for _, p := range nn.Params(model) {
		fmt.Println(p.Floats()[0]) // near: R13, no training
	}
	return mean.Value()
}

// Clocks.

func clocks(model nn.Sequential, x *tensor.Tensor) {
	env := tensor.Best()
	begin := time.Now()
	model.Forward(x)
	fmt.Println(time.Since(begin)) // want: R48

	begin = time.Now()
	for range 10 {
		x = x.MatMul(x)
	}
	took := time.Now().Sub(begin) // want: R48

	begin = time.Now()
	model.Forward(x)
	env.Sync()
	fmt.Println(took, time.Since(begin)) // near: R48

	begin = time.Now()
	y := model.Forward(x).Mean().Item()
	fmt.Println(y, time.Since(begin)) // near: R48
}

func clockOfSteps(env *tensor.Env, model nn.Sequential, opt optim.Optimizer, set data.Source[data.Pair]) {
	told := time.Now()
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		begin := time.Now()
		loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		log.Println(time.Since(begin))      // want: R48
		if time.Since(told) > time.Second { // near: R48, a limit
			told = time.Now()
		}
	}
	begin := time.Now()
	fmt.Println(metric.Accuracy(env, model, set), time.Since(begin)) // near: R48, it reads values
}

// Copies.

func moves(gpu *tensor.Env, model nn.Sequential, opt optim.Optimizer, set data.Source[data.Pair], pixels []float32) {
	cpu, err := tensor.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	mean, table := cpu.Ones(4), cpu.Ones(4)
	there := mean.To(gpu) // near: V30 V14, once
	for b, err := range data.Batches(gpu, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		noise := tensor.From(cpu, pixels, 4).To(b.Env) // want: V14 V30
		drawn := cpu.Randn(4).To(b.Env)                // want: V14
		other := cpu.Randn(4).To(cpu)                  // near: V14, it stays
		made := b.Env.Randn(4).To(b.Env)               // near: V14, it is made there
		same := mean.To(b.Env)                         // want: V30
		table.AddScalar(1)                             // want: V16
		x := b.X.Add(noise).Add(drawn).Add(made).Sub(same).Add(there)
		nn.CrossEntropy(model.Forward(x), b.Y).Backward()
		opt.Step()
		_ = other
	}
}

func copies(gpu *tensor.Env, model nn.Sequential, opt optim.Optimizer, set data.Source[data.Pair], pixels []float32, rows [][]float32) {
	cpu, err := tensor.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	once, step := tensor.From(gpu, pixels, 4), 0
	table := cpu.Ones(4)
	for b, err := range data.Batches(gpu, set, data.Config{Size: 8}) {
		if err != nil {
			log.Fatal(err)
		}
		for i := range pixels {
			pixels[i]++
		}
		mean := tensor.From(b.Env, pixels, 4)                    // near: V30, it changes
		row := tensor.From(b.Env, rows[step], 4)                 // near: V30, another row
		table.AddInPlace(cpu.Ones(4))                            //
		counted := table.To(b.Env)                               // near: V30, it changes
		back := tensor.From(b.Env, b.X.Floats(), b.X.Shape()...) // want: V30 R13
		nn.CrossEntropy(model.Forward(back.Sub(mean).Sub(row).Sub(once).Add(counted)), b.Y).Backward()
		opt.Step()
		step++
	}
}

type noisy struct{ Layer *nn.Linear }

var host, _ = tensor.Open("cpu")

// Forward adds noise.
func (n *noisy) Forward(x *tensor.Tensor) *tensor.Tensor {
	return n.Layer.Forward(x.Add(host.Randn(4).To(x.Env()))) // want: V14
}

func main() {}
