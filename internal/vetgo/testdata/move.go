package main

import (
	"fmt"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

type ticket struct {
	features, mask, labels *tensor.Tensor
	name                   string
}

func made(env *tensor.Env) ticket { return ticket{env.Ones(2, 3), env.Ones(2, 3), env.Ones(2), "a"} }

func score(t ticket) float64 { return t.features.Mul(t.mask).Sum().Item() }

func wholeIsGiven(env, host *tensor.Env) float64 {
	b := made(host)
	b.features = b.features.To(env) // want: R01
	b.labels = tensor.Move(env, b.labels)
	return score(b)
}

func checked(env, host *tensor.Env) error {
	b := made(host)
	b.features, b.labels = b.features.To(env), b.labels.To(env) // want: R01
	return nn.Preflight(env, nil, b)
}

func pointer(env *tensor.Env, b *ticket) *tensor.Tensor {
	b.mask = b.mask.To(env) // want: R01
	return b.mask.Add(b.features)
}

func allMoved(env, host *tensor.Env) float64 {
	b := made(host)
	b.features = b.features.To(env) // near: R01
	b.mask = b.mask.To(env)
	b.labels = b.labels.To(env)
	return score(b)
}

func movedAsOne(env, host *tensor.Env) float64 {
	b := made(host)
	b.features = b.features.To(env) // near: R01
	b = tensor.Move(env, b)
	return score(b)
}

func readOnHost(env, host *tensor.Env) {
	b := made(host)
	b.features = b.features.To(env) // near: R01
	b.mask = b.mask.To(env)
	fmt.Println(b.features.Mul(b.mask).Sum().Item(), b.labels.Floats())
}

func notGiven(env, host *tensor.Env) float64 {
	b := ticket{features: host.Ones(2, 3), mask: host.Ones(2, 3)}
	b.features = b.features.To(env) // near: R01
	b.mask = b.mask.To(env)
	return score(b)
}

func madeThere(env, host *tensor.Env) float64 {
	b := made(host)
	b.features = b.features.To(env) // near: R01
	b.mask = env.Ones(2, 3)
	b.labels = nil
	return score(b)
}

func main() {}
