package bench

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// width is the length of rows, where a case has rows.
const width = 1024

// large is the usual number of elements: 8192 rows.
const large = 8192 * width

// operations are the cases of ops.
var operations = []*Case{
	overhead("add-4", "the sum of two vectors of n numbers, without a graph", 4, func(env *tensor.Env, n int) func(*tensor.Env) {
		x, y := env.NoGrad().Randn(n), env.NoGrad().Randn(n)
		return func(e *tensor.Env) { x.In(e).Add(y) }
	}),
	overhead("add-4-grad", "the same, recorded for gradients", 4, func(env *tensor.Env, n int) func(*tensor.Env) {
		x, y := env.Randn(n).RequireGrad(), env.Randn(n)
		return func(e *tensor.Env) { x.In(e).Add(y) }
	}),
	elementwise("add", "the sum of two vectors of n numbers", 1<<20, func(x *tensor.Tensor) { x.Add(x) }),
	elementwise("relu", "n numbers", large, func(x *tensor.Tensor) { x.ReLU() }),
	elementwise("exp", "n numbers", large, func(x *tensor.Tensor) { x.Exp() }),
	elementwise("tanh", "n numbers", large, func(x *tensor.Tensor) { x.Tanh() }),
	elementwise("gelu", "n numbers, by tanh", large, func(x *tensor.Tensor) { x.GELUTanh() }),
	elementwise("dropout", "n numbers, a tenth of them", large, func(x *tensor.Tensor) { x.Dropout(0.1) }),
	ofElements("rand", "n uniform numbers, rounded to their dtype", large, func(_ *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		return func(e *tensor.Env) { cast(e.Rand(n), dt) }
	}),
	ofElements("randn", "n normal numbers, rounded to their dtype", large, func(_ *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		return func(e *tensor.Env) { drawn(e, dt, n) }
	}),
	rowwise("softmax", "n numbers in rows of 1024", func(x *tensor.Tensor) { x.Softmax(-1) }),
	layerNorm,
	rowwise("sum-rows", "n numbers, of each row of 1024", func(x *tensor.Tensor) { x.Sum(1) }),
	rowwise("sum-columns", "n numbers in rows of 1024, of each column", func(x *tensor.Tensor) { x.Sum(0) }),
	rowwise("transpose", "a copy of n numbers in rows of 1024", func(x *tensor.Tensor) { x.Transpose(0, 1).Contiguous() }),
	rowwise("cat", "twice n numbers in rows of 1024, side by side", func(x *tensor.Tensor) { tensor.Cat(1, x, x) }),
	rowwise("sort", "n numbers in rows of 1024, each row", func(x *tensor.Tensor) { x.Sort(1, false) }),
	elementwise("sort-line", "n numbers", 1<<20, func(x *tensor.Tensor) { x.Sort(0, false) }),
	rowwise("topk", "n numbers in rows of 1024, of each the 50 largest", func(x *tensor.Tensor) { x.TopK(50, 1, true) }),
	elementwise("topk-line", "n numbers, of which the 50 largest", 1<<20, func(x *tensor.Tensor) { x.TopK(50, 0, true) }),
	scattering("scatter", "the last of n numbers in rows of 1024 at random places of theirs", func(x, src, idx *tensor.Tensor) { x.Scatter(1, idx, src) }),
	scattering("scatter-max", "the greatest at random places", func(x, src, idx *tensor.Tensor) { x.ScatterReduce(1, idx, src, tensor.ReduceMax, true) }),
	scattering("scatter-sum", "the sum at random places", func(x, src, idx *tensor.Tensor) { x.ScatterReduce(1, idx, src, tensor.ReduceSum, true) }),
	operation("embedding-grad", "n rows of 256 from a table of 10,000, of which 1,000 are asked for, and its gradient", "GB/s", 16384, embedding),
	operation("cross-entropy", "n rows of 50,257 classes and its gradient", "GB/s", 256, crossEntropy),
	operation("batchnorm", "n pictures of 64 channels of 28×28 and its gradients", "GB/s", 64, batchNorm),
	operation("maxpool", "2×2 over n pictures of 64 channels of 28×28 and its gradient", "GB/s", 64, maxPool),
	operation("conv2d", "3×3 over n pictures of 32 channels of 28×28 to 64", "GFLOP/s", 64, convolution(false)),
	operation("conv2d-grad", "the same and its gradients", "GFLOP/s", 64, convolution(true)),
	operation("conv-transpose", "4×4 by steps of 2 over n pictures of 64 channels of 14×14 to 32, and its gradients", "GFLOP/s", 64, convTranspose),
	operation("interpolate", "n pictures of 32 channels of 32×32 twice as large, bilinear, and its gradient", "GB/s", 16, interpolation(64, nn.Upsample{Mode: nn.ModeBilinear})),
	operation("interpolate-nearest", "the same of the nearest", "GB/s", 16, interpolation(64, nn.Upsample{})),
	operation("interpolate-bicubic", "the same, bicubic", "GB/s", 16, interpolation(64, nn.Upsample{Mode: nn.ModeBicubic})),
	operation("interpolate-antialias", "the same to 12×12, bilinear with antialias", "GB/s", 16, interpolation(12, nn.Upsample{Mode: nn.ModeBilinear, Antialias: true})),
	operation("lstm", "n steps of 32 samples of 256, as many hidden, and the gradients", "GFLOP/s", 128, recurrence(
		func(env *tensor.Env) nn.Module { return nn.NewLSTM(env, 256, 256, nn.RecurrentConfig{}) })),
	operation("gru", "the same of a GRU", "GFLOP/s", 128, recurrence(
		func(env *tensor.Env) nn.Module { return nn.NewGRU(env, 256, 256, nn.RecurrentConfig{}) })),
	operation("adamw", "a step over n parameters in ten tensors", "GB/s", 10_000_000, adamwStep),
}

func interpolation(size int, up nn.Upsample) func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	up.Size = []int{size}
	return func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		x, g := nn.NewParam(drawn(env, dt, n, 32, 32, 32)), drawn(env, dt, n, 32, size, size)
		return func(e *tensor.Env) {
			weighed(up.Forward(x.In(e)), g)
			forget(x)
		}
	}
}

var layerNorm = ofElements("layernorm", "n numbers in rows of 1024", large, func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	env = env.NoGrad()
	x, w, b := rows(env, dt, n), drawn(env, dt, width), drawn(env, dt, width)
	return func(e *tensor.Env) { x.In(e).LayerNorm(w, b, 1e-5) }
})

// operation is a case of one operation, of which f makes the operands.
func operation(name, help, unit string, n int, f func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env)) *Case {
	return &Case{Bench: "ops", Name: name, Help: help, Sizes: []int{n}, Unit: unit, Own: true,
		Make: func(env *tensor.Env, n int, dt dtype.DType) (Work, error) {
			return Work{Turn: scoped(env, f(env, n, dt))}, nil
		}}
}

// ofElements is a case whose n is its number of elements.
func ofElements(name, help string, n int, f func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env)) *Case {
	c := operation(name, help, "GB/s", n, f)
	c.Own = false
	return c
}

// overhead is a case of the host's own time.
func overhead(name, help string, n int, f func(env *tensor.Env, n int) func(*tensor.Env)) *Case {
	c := operation(name, help, "ops/s", n, func(env *tensor.Env, n int, _ dtype.DType) func(*tensor.Env) { return f(env, n) })
	c.Host, c.Free, c.Only = true, true, single
	c.Make = func(env *tensor.Env, n int, _ dtype.DType) (Work, error) {
		turn := f(env, n)
		return Work{Amount: burst, Turn: scoped(env, func(e *tensor.Env) {
			for range burst {
				turn(e)
			}
		})}, nil
	}
	return c
}

// burst is how many small operations a scope has, about as many as a layer or two: the scope's own cost is shared.
const burst = 32

func elementwise(name, help string, n int, f func(x *tensor.Tensor)) *Case {
	return ofElements(name, help, n, func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		x := drawn(env.NoGrad(), dt, n)
		return func(e *tensor.Env) { f(x.In(e)) }
	})
}

func rowwise(name, help string, f func(x *tensor.Tensor)) *Case {
	return ofElements(name, help, large, func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		x := rows(env.NoGrad(), dt, n)
		return func(e *tensor.Env) { f(x.In(e)) }
	})
}

// scattering writes n numbers at places of their rows.
func scattering(name, help string, f func(x, src, idx *tensor.Tensor)) *Case {
	return ofElements(name, help, 1<<20, func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		env = env.NoGrad()
		x, src := rows(env, dt, n), rows(env, dt, n)
		idx := env.RandInt(0, width, x.Shape()...)
		return func(e *tensor.Env) { f(x.In(e), src, idx) }
	})
}

func rows(env *tensor.Env, dt dtype.DType, n int) *tensor.Tensor {
	return drawn(env, dt, max(1, n/width), width)
}

// weighed is the gradient of a value that each element counts for differently.
func weighed(y, by *tensor.Tensor) { y.Mul(by).Sum().Backward() }

func embedding(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	table, ids, g := nn.NewParam(drawn(env, dt, 10_000, 256)), env.RandInt(0, 1000, n), drawn(env, dt, n, 256)
	return func(e *tensor.Env) {
		weighed(table.Embedding(ids.In(e)), g)
		forget(table)
	}
}

// forget lets go of gradients, as an optimizer's step does.
func forget(ts ...*tensor.Tensor) {
	for _, t := range ts {
		t.DropGrad()
	}
}

func crossEntropy(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	x, y := nn.NewParam(drawn(env, dt, n, 50257)), env.RandInt(0, 50257, n)
	return func(e *tensor.Env) {
		nn.CrossEntropy(x.In(e), y).Backward()
		forget(x)
	}
}

func batchNorm(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	x, g := nn.NewParam(drawn(env, dt, n, 64, 28, 28)), drawn(env, dt, n, 64, 28, 28)
	norm := nn.NewBatchNorm(env, 64)
	return func(e *tensor.Env) {
		weighed(norm.Forward(x.In(e)), g)
		forget(x)
		for _, p := range nn.Params(norm) {
			forget(p)
		}
	}
}

func maxPool(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	x, g := nn.NewParam(drawn(env, dt, n, 64, 28, 28)), drawn(env, dt, n, 64, 14, 14)
	return func(e *tensor.Env) {
		weighed(x.In(e).MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}), g)
		forget(x)
	}
}

func convolution(grad bool) func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	return func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		same := tensor.Conv{Padding: [2]int{1, 1}}
		x, w, b := drawn(env, dt, n, 32, 28, 28), drawn(env, dt, 64, 32, 3, 3), drawn(env, dt, 64)
		if !grad {
			return func(e *tensor.Env) { x.In(e.NoGrad()).Conv2d(w, b, same) }
		}
		x, w, b = nn.NewParam(x), nn.NewParam(w), nn.NewParam(b)
		g := drawn(env, dt, n, 64, 28, 28)
		return func(e *tensor.Env) {
			weighed(x.In(e).Conv2d(w, b, same), g)
			forget(x, w, b)
		}
	}
}

func convTranspose(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	up := tensor.ConvTranspose{Conv: tensor.Conv{Stride: [2]int{2, 2}, Padding: [2]int{1, 1}}}
	x, w, b := nn.NewParam(drawn(env, dt, n, 64, 14, 14)), nn.NewParam(drawn(env, dt, 64, 32, 4, 4)), nn.NewParam(drawn(env, dt, 32))
	g := drawn(env, dt, n, 32, 28, 28)
	return func(e *tensor.Env) {
		weighed(x.In(e).ConvTranspose2d(w, b, up), g)
		forget(x, w, b)
	}
}

// recurrence runs n steps and their gradients.
func recurrence(layer func(env *tensor.Env) nn.Module) func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	return func(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
		l := layer(env)
		nn.Cast(l, dt)
		x, g := nn.NewParam(drawn(env, dt, n, 32, 256)), drawn(env, dt, n, 32, 256)
		all := []*tensor.Tensor{x}
		for _, p := range nn.Params(l) {
			all = append(all, p)
		}
		return func(e *tensor.Env) {
			weighed(l.Forward(x.In(e)), g)
			forget(all...)
		}
	}
}

// adamwStep updates ten tensors with gradients that are there.
func adamwStep(env *tensor.Env, n int, dt dtype.DType) func(*tensor.Env) {
	env = env.NoGrad()
	var p, g, m, v, counts []*tensor.Tensor
	for range 10 {
		size := max(1, n/10)
		p, g = append(p, drawn(env, dt, size)), append(g, drawn(env, dt, size))
		m, v = append(m, env.Zeros(size).Cast(dt)), append(v, env.Zeros(size).Cast(dt))
		counts = append(counts, env.Zeros().Cast(dtype.I64))
	}
	one := env.Ones()
	step := tensor.AdamWStep{LR: tensor.NewCell(env, 1e-3), Scale: 1, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01}
	return func(*tensor.Env) { tensor.AdamWInPlace(step, one, p, g, m, v, counts) }
}
