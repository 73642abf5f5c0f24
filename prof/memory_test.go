package prof_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// Bytes of an element.
const (
	f32 = 4
	i64 = 8
)

// crossEntropy keeps the logits [n, classes], the labels, two statistics of each row (the largest logit, and the logarithm of
// the sum of exponentials) and the number of rows that count.
func crossEntropy(n, classes int) int { return f32*n*classes + i64*n + f32*2*n + f32 }

// mlp is pictures → linear → ReLU → linear → loss. A linear layer keeps its input, for the weight; ReLU its result, which is
// the input of the next layer and counts once.
func mlp(n int) int {
	return f32*n*784 + // pictures: the first layer's input
		f32*n*128 + // ReLU's result, and the second layer's input
		crossEntropy(n, 10)
}

// convnet is twice convolution → ReLU → pooling by 2×2, then linear → ReLU → linear → loss. A convolution keeps its input;
// ReLU its result; pooling the place of each largest value as int64, and neither operand nor result.
func convnet(n int) int {
	pool := func(channels, size int) int { return i64 * n * channels * size * size }
	relu := func(channels, size int) int { return f32 * n * channels * size * size }
	return f32*n*28*28 + // pictures
		relu(16, 28) + pool(16, 14) +
		f32*n*16*14*14 + // the second convolution's input
		relu(32, 14) + pool(32, 7) +
		f32*n*32*7*7 + // the first linear layer's input
		f32*n*128 + // ReLU's result, and the second one's
		crossEntropy(n, 10)
}

// resnet18 of pictures of size×size, the first stage planes wide (64 as published): batch norm keeps its input, mean and variance of each channel and, with ReLU in the same
// pass, its result, which is the next convolution's input. A block has two of these, so 4 values of the size of its result and
// 4 statistics of each channel; where shapes change, a convolution and a norm without ReLU beside: one value and 2 statistics
// more. What is added before the last ReLU is not needed again. The mean over each channel keeps nothing.
func resnet18(n, planes, size int) int {
	value := func(channels, size int) int { return f32 * n * channels * size * size }
	sum := value(3, size) // pictures
	size /= 2
	sum += 2*value(planes, size) + f32*2*planes // the first convolution's result, and that of its norm
	size /= 2
	sum += i64*n*planes*size*size + value(planes, size) // pooling's places; its result is the first block's input
	for stage := range 4 {
		channels := planes << stage
		if stage > 0 {
			size /= 2
			sum += value(channels, size) + f32*2*channels // the shortcut
		}
		sum += 2 * (4*value(channels, size) + f32*4*channels)
	}
	return sum + f32*n*8*planes + crossEntropy(n, 10) // the linear layer's input
}

// gpt is GPT-2 without biases to count, of n sequences of t tokens: x is a value [n, t, width].
//
// A norm keeps what it normalises, which is the sum of two branches (of the first, the embeddings), and mean and reciprocal
// deviation of each row; its result is the next layer's input. Fused attention keeps queries, keys and values (3x), its
// result (x) and the logarithm of each row's sum of exponentials; with dropout it is made of its parts, which keep the weights
// after softmax and after dropout, [n, heads, t, t], and which places are seen, a byte each. Dropout itself draws again and
// keeps nothing. The MLP's first layer keeps the sums before GELU and GELU's result (4x each), its second has that result as
// input. The head keeps its gradients, for x and for the table, which it makes with the loss, and the number of rows.
func gpt(c model.GPTConfig, n, t int) int {
	x, stats := f32*n*t*c.Width, f32*2*n*t
	norm := x + stats + x
	attention := 3*x + x + f32*n*c.Heads*t
	if c.Dropout > 0 {
		attention = 3*x + x + 2*f32*n*c.Heads*t*t + t*t
	}
	block := norm + attention + norm + 2*4*x
	return i64*n*t + c.Layers*block + norm + head(c, n, t)
}

// head is the cross-entropy that makes its own logits: gradients of x and of the table, the labels, the number of rows.
func head(c model.GPTConfig, n, t int) int {
	return f32*n*t*c.Width + f32*c.Vocab*c.Width + i64*n*t + f32
}

// recomputed is gpt that keeps of each block its input only; the last norm keeps its input too.
func recomputed(c model.GPTConfig, n, t int) int {
	x, stats := f32*n*t*c.Width, f32*2*n*t
	return i64*n*t + c.Layers*x + x + stats + x + head(c, n, t)
}

var small = model.GPTConfig{Vocab: 65, Context: 16, Layers: 2, Heads: 2, Width: 32}

// program is a forward, made for an env, with the bytes that it keeps.
type program struct {
	name string
	of   func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor
	kept int
}

// programs have networks of some planes: the simulated GPU draws the weights of few.
func programs(planes int) []program {
	res := model.ResNet18(10)
	res.Planes = planes
	dropping := small
	dropping.Dropout = 0.1
	return []program{
		{"mlp", pictures(5, 1, 28, func(env *tensor.Env) nn.Module { return model.NewMLP(env, model.Digits, 128) }), mlp(5)},
		{"convnet", pictures(3, 1, 28, func(env *tensor.Env) nn.Module { return model.NewConvnet(env, model.Digits) }), convnet(3)},
		{"resnet18", pictures(2, 3, 32, func(env *tensor.Env) nn.Module { return model.NewResNet(env, res) }), resnet18(2, planes, 32)},
		{"gpt", text(small, false), gpt(small, 3, 16)},
		{"gpt with dropout", text(dropping, false), gpt(dropping, 3, 16)},
		{"gpt recomputed", text(small, true), recomputed(small, 3, 16)},
	}
}

func labels(e *tensor.Env, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return tensor.From(e, make([]int64, n), shape...)
}

func pictures(n, channels, size int, m func(env *tensor.Env) nn.Module) func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor {
	return func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor {
		made := m(env)
		return func(e *tensor.Env) *tensor.Tensor {
			return nn.CrossEntropy(made.Forward(e.Rand(n, channels, size, size)), labels(e, n))
		}
	}
}

func text(c model.GPTConfig, again bool) func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor {
	return func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor {
		g := model.NewGPT(env, c)
		return func(e *tensor.Env) *tensor.Tensor {
			if again {
				return g.LossRecompute(labels(e, 3, 16), labels(e, 3, 16))
			}
			return g.Loss(labels(e, 3, 16), labels(e, 3, 16))
		}
	}
}

// TestKept: what forwards keep for the backward is, to the byte and on every engine, the sum that follows by hand from what
// each layer's gradient needs. It is the same whether Backward is in the scope or not.
func TestKept(t *testing.T) {
	for name, planes := range map[string]int{"cpu": 64, "null:a100-80": 64, "sim:a100-80:3": 8} {
		for _, p := range programs(planes) {
			t.Run(p.name+" on "+name, func(t *testing.T) {
				env := open(t, name)
				loss := p.of(env)
				for _, backward := range []bool{false, true} {
					e, scope := env.Scope()
					m := prof.Memory(e, func() {
						l := loss(e)
						if backward {
							l.Backward()
						}
					})
					scope.End()
					if m.Kept != int64(p.kept) {
						t.Errorf("%d bytes are kept with Backward %v, by hand %d", m.Kept, backward, p.kept)
					}
				}
			})
		}
	}
}

func open(t *testing.T, name string) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestFootprint: peak and net change are what the device counts, and who was there at the peak adds up to it.
func TestFootprint(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80", "sim:a100-80:3"} {
		env := open(t, name)
		g := model.NewGPT(env, small)
		opt := optim.NewAdamW(nn.Params(g), optim.AdamWConfig{})
		for step := range 3 {
			d := env.Device()
			d.ResetPeak()
			before := d.Memory()
			e, scope := env.Scope()
			m := prof.Memory(e, func() {
				tokens := tensor.From(e, make([]int64, 16), 1, 16)
				g.Loss(tokens, tokens).Backward()
				opt.Step()
			})
			after := d.Memory()
			if m.Peak != after.Peak || m.Before != before.Used || m.Net != after.Used-before.Used || m.Allocated != after.Allocated.Peak ||
				m.Reserved != after.Reserved.Peak {
				t.Errorf("%s, step %d: %+v\nthe device counts %+v, before %d", name, step, m, after, before.Used)
			}
			var top, kinds int64
			lines := 0
			for _, h := range m.Top {
				top += h.Bytes
				if strings.HasPrefix(h.Line, "memory_test.go:") {
					lines++
				}
			}
			for _, k := range m.Kinds {
				kinds += k.Bytes
			}
			if top != m.Peak || kinds != m.Peak || lines < len(m.Top)/2 {
				t.Errorf("%s, step %d: holders of %d bytes, kinds of %d, at a peak of %d; %d of %d at lines of this file", name, step, top, kinds, m.Peak, lines, len(m.Top))
			}
			if s := m.String(); strings.Contains(s, "\n") || !strings.Contains(s, "kept for backward") {
				t.Errorf("%q", s)
			}
			scope.End()
		}
	}
}

// TestNestedScopes: each has its own peak, and those around it the highest.
func TestNestedScopes(t *testing.T) {
	env := open(t, "cpu")
	fill := func(n int) {
		e, scope := env.Scope()
		e.Ones(n)
		scope.End()
	}
	var small, large, none prof.Footprint
	outer := prof.Memory(env, func() {
		small = prof.Memory(env, func() { fill(10) })
		large = prof.Memory(env, func() { fill(1000) })
		none = prof.Memory(env, func() {})
	})
	if small.Peak != 40 || large.Peak != 4000 || none.Peak != 0 || outer.Peak != 4000 || outer.Net != 0 || outer.Kept != 0 {
		t.Errorf("peaks of %d, %d and %d within %+v", small.Peak, large.Peak, none.Peak, outer)
	}
}

// TestFootprintOfPanic: a panic passes through, and nobody observes afterwards.
func TestFootprintOfPanic(t *testing.T) {
	env := open(t, "cpu")
	defer func() {
		if recover() != "oh" || env.Device().Ranged() {
			t.Error("no panic, or somebody still observes")
		}
	}()
	prof.Memory(env, func() { panic("oh") })
}
