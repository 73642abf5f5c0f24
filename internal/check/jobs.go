package check

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// turn does a job once. What it makes belongs to the scope of e.
type turn func(e *tensor.Env) *tensor.Tensor

// job is work that both sides do. build draws the inputs, which it returns by name with a function that does the work.
type job struct {
	name          string
	dt            dtype.DType
	sizes         []int
	layers, heads int
	steps         bool
	build         func(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn)
}

func (j job) shape() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(j.sizes), " ", "×"), "[]")
}

// allowed is how far the results may be apart: of products in the job's dtype, or of losses after steps.
func (j job) allowed() float64 {
	switch {
	case j.steps:
		return 1e-3
	case j.dt == dtype.BF16:
		return 2e-2
	}
	return 1e-4
}

// What training the largest GPT takes of a card, measured on a planned one: weights, gradients and moments with what the
// cache keeps of them, and activations and logits of each sequence.
const (
	gptFixed = 2 << 30
	gptEach  = 1400 << 20
)

// gptSizes are the batch, the length, the vocabulary and the width of the GPT for a card: as many sequences as take three
// fifths of its memory, for PyTorch needs about as much and the screen has some; a smaller model where one is too many.
func gptSizes(memory int64, small []int) []int {
	for batch := int64(8); batch > 0; batch /= 2 {
		if gptFixed+batch*gptEach <= memory/5*3 {
			return []int{int(batch), 1024, 50257, 768}
		}
	}
	return small
}

// gptDepths are the layers and heads of the GPTs, by width.
var gptDepths = map[int]struct{ layers, heads int }{32: {1, 2}, 128: {4, 4}, 768: {12, 12}}

// jobsFor are the jobs in sizes that a kind of device with so many bytes of memory does in seconds.
func jobsFor(kind string, memory int64) []job {
	size := func(sim, cpu, cuda []int) []int {
		switch kind {
		case "sim":
			return sim
		case "cuda":
			return cuda
		}
		return cpu
	}
	dts := []dtype.DType{dtype.F32}
	if kind == "cuda" {
		dts = append(dts, dtype.BF16)
	}
	var jobs []job
	for _, dt := range dts {
		jobs = append(jobs,
			job{name: "gemm", dt: dt, sizes: size([]int{64, 64, 64}, []int{512, 512, 512}, []int{8192, 8192, 8192}), build: gemm},
			job{name: "norm", dt: dt, sizes: size([]int{64, 256}, []int{4096, 1024}, []int{16384, 4096}), build: norm},
			job{name: "attention", dt: dt, sizes: size([]int{1, 2, 64, 32}, []int{4, 8, 256, 64}, []int{8, 16, 2048, 64}), build: attention})
	}
	small := []int{16, 128, 65, 128}
	sizes := size([]int{2, 32, 65, 32}, small, gptSizes(memory, small))
	deep := gptDepths[sizes[3]]
	return append(jobs,
		job{name: "mlp step", dt: dtype.F32, steps: true, sizes: size([]int{16, 64, 64, 10}, []int{128, 784, 512, 10}, []int{1024, 784, 4096, 10}), build: mlp},
		job{name: "gpt step", dt: dtype.F32, steps: true, sizes: sizes, layers: deep.layers, heads: deep.heads, build: gpt})
}

func gemm(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn) {
	a, b := e.Randn(j.sizes[0], j.sizes[1]).Cast(j.dt), e.Randn(j.sizes[1], j.sizes[2]).Cast(j.dt)
	return map[string]*tensor.Tensor{"a": a, "b": b}, func(e *tensor.Env) *tensor.Tensor { return a.In(e).MatMul(b.In(e)) }
}

func norm(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn) {
	d := j.sizes[1]
	x, w, b := e.Randn(j.sizes...).Cast(j.dt), e.Randn(d).Cast(j.dt), e.Randn(d).Cast(j.dt)
	return map[string]*tensor.Tensor{"x": x, "w": w, "b": b}, func(e *tensor.Env) *tensor.Tensor { return x.In(e).LayerNorm(w.In(e), b.In(e), 1e-5) }
}

func attention(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn) {
	q, k, v := e.Randn(j.sizes...).Cast(j.dt), e.Randn(j.sizes...).Cast(j.dt), e.Randn(j.sizes...).Cast(j.dt)
	return map[string]*tensor.Tensor{"q": q, "k": k, "v": v}, func(e *tensor.Env) *tensor.Tensor {
		return tensor.Attention(q.In(e), k.In(e), v.In(e), tensor.Mask{Causal: true})
	}
}

// training is a job of AdamW steps.
func training(e *tensor.Env, m any, x, y *tensor.Tensor, loss func(e *tensor.Env) *tensor.Tensor) (map[string]*tensor.Tensor, turn) {
	named := map[string]*tensor.Tensor{"x": x, "y": y}
	for name, p := range nn.State(m) {
		named[name] = p
	}
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3, WeightDecay: 0.01})
	return named, func(e *tensor.Env) *tensor.Tensor {
		l := loss(e)
		l.Backward()
		opt.Step()
		return l.Detach()
	}
}

func mlp(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn) {
	batch, in, hidden, classes := j.sizes[0], j.sizes[1], j.sizes[2], j.sizes[3]
	layers := []*nn.Linear{nn.NewLinear(e, in, hidden), nn.NewLinear(e, hidden, classes)}
	x, y := e.Randn(batch, in), e.RandInt(0, classes, batch)
	return training(e, layers, x, y, func(e *tensor.Env) *tensor.Tensor {
		return nn.CrossEntropy(layers[1].Forward(layers[0].Forward(x.In(e)).ReLU()), y.In(e))
	})
}

func gpt(e *tensor.Env, j job) (map[string]*tensor.Tensor, turn) {
	g := model.NewGPT(e, model.GPTConfig{Vocab: j.sizes[2], Context: j.sizes[1], Layers: j.layers, Heads: j.heads, Width: j.sizes[3]})
	x := e.RandInt(0, j.sizes[2], j.sizes[0], j.sizes[1])
	return training(e, g, x, x, func(e *tensor.Env) *tensor.Tensor {
		return g.Loss(x.In(e), x.In(e))
	})
}
