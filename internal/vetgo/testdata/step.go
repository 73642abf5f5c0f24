// Package main makes steps.
package main

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

func discards(env *tensor.Env, model nn.Sequential, opt *optim.AdamW, other optim.Optimizer, x *tensor.Tensor) {
	for range 10 {
		loss := model.Forward(x).Mean()
		loss.Backward()
		opt.Discard() // want: V01
		opt.Step()

		opt.Discard() // near: V01, before Backward
		model.Forward(x).Mean().Backward()
		other.Discard() // near: V01, those of another
		opt.Step()
		opt.Discard() // near: V01, behind the step

		model.Forward(x).Sum().Backward()
		other.Discard() // want: V01
		other.Step()
	}
}

func scales(model nn.Sequential, opt, other optim.Optimizer, x *tensor.Tensor) {
	scaler := optim.NewLossScaler(optim.LossScalerConfig{})
	for range 10 {
		loss := model.Forward(x.Cast(dtype.F16)).Mean()
		scaler.Backward(loss)
		opt.Step() // want: V06

		scaler.Backward(model.Forward(x).Sum())
		report := other.Step() // want: V06
		fmt.Println(report.Skipped)

		scaler.Backward(model.Forward(x).Mean())
		scaler.Step(opt) // near: V06
		scaler.Backward(model.Forward(x).Mean())
		scaler.StepAll(opt, other) // near: V06

		model.Forward(x).Mean().Backward()
		other.Step() // near: V06, without a scale
	}
}

func drops(env *tensor.Env, model nn.Sequential, x, y *tensor.Tensor) {
	x.Detach()      // want: V16
	y.Add(x)        // want: V16
	env.Seed(3)     // want: V16
	env.Eval()      // want: V16
	y.AddInPlace(x) // near: V16
	env.Sync()      // near: V16
	x.Freeze(true)  // near: V16
	z := x.Detach() // near: V16
	env = env.NoGrad()
	_, end := env.Range("all") // near: V16
	fmt.Println(z, model)
	end()
}

type net struct {
	Body, Head *nn.Linear
	Scale      *tensor.Tensor
}

func misses(env *tensor.Env, list nn.Sequential) {
	m := &net{Body: nn.NewLinear(env, 4, 4), Head: nn.NewLinear(env, 4, 2)}
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{})
	m.Head = nn.NewLinear(env, 4, 3) // want: V19
	m.Scale = m.Body.Weight          // near: V19, nothing new
	opt.Step()

	sgd := optim.NewSGD(nn.Params(list), optim.SGDConfig{LR: 1})
	list = append(list, nn.NewLinear(env, 2, 2)) // want: V19
	sgd.Step()
}

func missesLoRA(env *tensor.Env) {
	m := &net{Body: nn.NewLinear(env, 4, 4), Head: nn.NewLinear(env, 4, 2)}
	opt := optim.NewAdam(nn.Params(m), optim.AdamWConfig{})
	nn.AddLoRA(m, nn.LoRAConfig{Rank: 4}) // want: V19
	opt.Step()
}

func replacesFirst(env *tensor.Env, list nn.Sequential) {
	m := &net{Body: nn.NewLinear(env, 4, 4)}
	m.Head = nn.NewLinear(env, 4, 3) // near: V19
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{})
	opt.Step()
	m.Head = nn.NewLinear(env, 4, 2) // near: V19, another optimizer follows
	opt = optim.NewAdamW(nn.Params(m), optim.AdamWConfig{})
	opt.Step()
	list = append(list, nn.ReLU{}) // near: V19
	fmt.Println(list)
}

func probabilities(model nn.Sequential, x, y *tensor.Tensor) {
	p := model.Forward(x).Softmax(-1)
	fmt.Println(nn.CrossEntropy(p, y))                             // want: V20
	fmt.Println(nn.BCEWithLogits(model.Forward(x).Sigmoid(), y))   // want: V20
	fmt.Println(nn.BCE(model.Forward(x).Sigmoid(), y))             // near: V20
	fmt.Println(nn.NLL(model.Forward(x).LogSoftmax(-1), y))        // near: V20
	fmt.Println(nn.CrossEntropy(model.Forward(x.Softmax(-1)), y))  // near: V20
	fmt.Println(nn.KLDiv(p.Log(), p.Clone().Detach().Scale(0.99))) // near: V20
}

func ignores(env *tensor.Env, set data.Source[data.Pair], model nn.Sequential) {
	for b := range data.Batches(env, set, data.Config{Size: 8}) { // want: V29
		fmt.Println(b.X.Shape())
	}
	for b, _ := range data.Batches(env, set, data.Config{Size: 8}) { // want: V29
		fmt.Println(b.X.Shape())
	}
	for range data.Batches(env, set, data.Config{Size: 8}) { // near: V29, nothing of the batch is read
	}
	for b, err := range data.Batches(env, set, data.Config{Size: 8}) { // near: V29
		if err != nil {
			log.Print(err)
			continue
		}
		for part := range data.Split(b, 2) { // near: V29, it has no errors
			fmt.Println(part.Size())
		}
	}
}

func twice(env *tensor.Env, model nn.Sequential, opt, other optim.Optimizer, x *tensor.Tensor) {
	for range 10 {
		first, second := model.Forward(x).Mean(), model.Forward(x).Sum()
		first.Backward()
		second.Backward() // want: V31
		opt.Step()

		loss := model.Forward(x).Mean()
		loss.Backward()
		loss.Backward() // want: V31
		opt.Step()

		model.Forward(x).Mean().Scale(0.5).Backward()
		model.Forward(x).Mean().Scale(0.5).Backward() // near: V31, halves
		opt.Step()

		model.Forward(x).Mean().Backward()
		opt.Step()
		model.Forward(x).Mean().Backward() // near: V31, a step for each
		other.Step()

		model.Forward(x).Mean().Backward(nn.Params(model[:1]))
		model.Forward(x).Mean().Backward(nn.Params(model[1:])) // near: V31, for parameters apart
		opt.Step()
		for range 4 {
			model.Forward(x).Mean().Backward() // near: V31, accumulated
		}
		opt.Step()
	}
}

func main() {}
