package prof_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
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

// precision is what products compute in: float32, or with amp bfloat16 under Autocast, of weights that stay float32.
type precision struct {
	amp bool
	e   int // bytes of an element that a product takes or gives
}

var (
	single = precision{false, f32}
	mixed  = precision{true, 2}
)

// cast is what is kept of n float32 elements as a product takes them, beside themselves: nothing in float32, where a parameter
// is no value that counts; with amp the cast, which is one.
func (p precision) cast(n int) int {
	if p.amp {
		return p.e * n
	}
	return 0
}

// crossEntropy keeps the logits [n, classes], which it takes as float32, the labels, two statistics of each row (the largest
// logit, and the logarithm of the sum of exponentials) and the number of rows that count.
func crossEntropy(n, classes int) int { return f32*n*classes + i64*n + f32*2*n + f32 }

// mlp is pictures → linear → ReLU → linear → loss. A linear layer keeps its input, for the weight, and the weight as the product
// took it, for the input; but the first one's input has no gradient. ReLU keeps its result, which is the input of the next layer
// and counts once.
func mlp(p precision, n int) int {
	return p.e*n*784 + // pictures: the first layer's input
		p.e*n*128 + // ReLU's result, and the second layer's input
		p.cast(128*10) +
		crossEntropy(n, 10)
}

// convnet is twice convolution → ReLU → pooling by 2×2, then linear → ReLU → linear → loss. A convolution keeps what a linear
// layer does; ReLU its result; pooling the place of each largest value as int64, and neither operand nor result.
func convnet(p precision, n int) int {
	pool := func(channels, size int) int { return i64 * n * channels * size * size }
	relu := func(channels, size int) int { return p.e * n * channels * size * size }
	return p.e*n*28*28 + // pictures
		relu(16, 28) + pool(16, 14) +
		p.e*n*16*14*14 + p.cast(32*16*3*3) + // the second convolution's input
		relu(32, 14) + pool(32, 7) +
		p.e*n*32*7*7 + p.cast(32*7*7*128) + // the first linear layer's input
		p.e*n*128 + p.cast(128*10) + // ReLU's result, and the second one's
		crossEntropy(n, 10)
}

// resnet18 of pictures of size×size, the first stage planes wide (64 as published): batch norm keeps its input, mean and
// variance of each channel in float32 and, with ReLU in the same pass, its result, which is the next convolution's input. A
// block has two of these, so 4 values of the size of its result and 4 statistics of each channel; where shapes change, a
// convolution and a norm without ReLU beside: one value and 2 statistics more. What is added before the last ReLU is not needed
// again. The mean over each channel keeps nothing.
func resnet18(p precision, n, planes, size int) int {
	value := func(channels, size int) int { return p.e * n * channels * size * size }
	sum := value(3, size) // pictures
	size /= 2
	sum += 2*value(planes, size) + f32*2*planes // the first convolution's result, and that of its norm
	size /= 2
	sum += i64*n*planes*size*size + value(planes, size) // pooling's places; its result is the first block's input
	for stage := range 4 {
		channels, before := planes<<stage, planes<<stage
		if stage > 0 {
			size, before = size/2, channels/2
			sum += value(channels, size) + f32*2*channels + p.cast(before*channels) // the shortcut
		}
		sum += 2*(4*value(channels, size)+f32*4*channels) + p.cast(9*channels*(before+3*channels))
	}
	return sum + p.e*n*8*planes + p.cast(8*planes*10) + crossEntropy(n, 10) // the linear layer's input
}

// gpt is GPT-2 without biases to count, of n sequences of t tokens: x is the elements of a value [n, t, width], w of a weight
// [width, width].
//
// A norm keeps what it normalises, which is the sum of two branches (of the first, the embeddings) and float32 in any case, and
// mean and reciprocal deviation of each row; its result is the next layer's input. Fused attention keeps queries, keys and values
// (3x), its result (x) and the logarithm of each row's sum of exponentials; with dropout it is made of its parts: see dropping.
// Dropout itself draws again and keeps nothing. The MLP's first layer keeps the sums before GELU and GELU's result (4x each),
// its second has that result as input. Weights are 3w, w, 4w and 4w.
func gpt(p precision, c model.GPTConfig, n, t int) int {
	x, w := n*t*c.Width, c.Width*c.Width
	attention := p.e*(3*x+x) + f32*n*c.Heads*t
	if c.Dropout > 0 {
		attention = dropping(p, c, n, t)
	}
	block := norm(p, c, n, t) + attention + norm(p, c, n, t) + p.e*2*4*x + p.cast((3+1+4+4)*w)
	return i64*n*t + c.Layers*block + norm(p, c, n, t) + head(p, c, n, t)
}

// norm is a layer norm of float32 values, whose result is in the dtype of products.
func norm(p precision, c model.GPTConfig, n, t int) int {
	return f32*n*t*c.Width + f32*2*n*t + p.e*n*t*c.Width
}

// dropping is attention in parts: queries, keys, values and the result as above; of [n, heads, t, t] the weights after softmax,
// which is float32, and after dropout, as the product takes them; which places are seen, a byte each.
func dropping(p precision, c model.GPTConfig, n, t int) int {
	x, weights := n*t*c.Width, n*c.Heads*t*t
	return p.e*(3*x+x) + f32*weights + p.e*weights + t*t
}

// head is the cross-entropy that makes its own logits: gradients of x and of the table, which it makes in float32 with the loss,
// the table as the product took it, the labels, the number of rows.
func head(p precision, c model.GPTConfig, n, t int) int {
	table := c.Vocab * c.Width
	return f32*n*t*c.Width + f32*table + p.cast(table) + i64*n*t + f32
}

// recomputed is gpt that keeps of each block its input only; the last norm keeps its input too.
func recomputed(p precision, c model.GPTConfig, n, t int) int {
	return i64*n*t + c.Layers*f32*n*t*c.Width + norm(p, c, n, t) + head(p, c, n, t)
}

var small = model.GPTConfig{Vocab: 65, Context: 16, Layers: 2, Heads: 2, Width: 32}

// program is a forward, made for an env, with the bytes that it keeps.
type program struct {
	name string
	of   func(env *tensor.Env) func(e *tensor.Env) *tensor.Tensor
	kept func(p precision) int
}

// programs have networks of some planes: the simulated GPU draws the weights of few.
func programs(planes int) []program {
	res := model.ResNet18(10)
	res.Planes = planes
	drops := small
	drops.Heads, drops.Dropout = 4, 0.1 // so that weights of attention are more than x
	return []program{
		{"mlp", pictures(5, 1, 28, func(env *tensor.Env) nn.Module { return model.NewMLP(env, model.Digits, 128) }), func(p precision) int { return mlp(p, 5) }},
		{"convnet", pictures(3, 1, 28, func(env *tensor.Env) nn.Module { return model.NewConvnet(env, model.Digits) }), func(p precision) int { return convnet(p, 3) }},
		{"resnet18", pictures(2, 3, 32, func(env *tensor.Env) nn.Module { return model.NewResNet(env, res) }), func(p precision) int { return resnet18(p, 2, planes, 32) }},
		{"gpt", text(small, false), func(p precision) int { return gpt(p, small, 3, 16) }},
		{"gpt with dropout", text(drops, false), func(p precision) int { return gpt(p, drops, 3, 16) }},
		{"gpt recomputed", text(small, true), func(p precision) int { return recomputed(p, small, 3, 16) }},
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
				e = e.Recompute(tensor.PartsOf(tensor.PartBlock))
			}
			return g.Loss(labels(e, 3, 16), labels(e, 3, 16))
		}
	}
}

// TestKept: what forwards keep for the backward is, to the byte, on every engine and in both precisions, the sum that follows by
// hand from what each layer's gradient needs. It is the same whether Backward is in the scope or not.
func TestKept(t *testing.T) {
	for name, planes := range map[string]int{"cpu": 64, "null:a100-80": 64, "sim:a100-80:3": 8} {
		for _, p := range programs(planes) {
			t.Run(p.name+" on "+name, func(t *testing.T) {
				env := open(t, name)
				loss := p.of(env)
				keeps(t, env, loss, p.kept(single))
				keeps(t, env.Autocast(dtype.BF16), loss, p.kept(mixed))
			})
		}
	}
}

func keeps(t *testing.T, env *tensor.Env, loss func(e *tensor.Env) *tensor.Tensor, want int) {
	t.Helper()
	for _, backward := range []bool{false, true} {
		e, scope := env.Scope()
		m := prof.Memory(e, func() {
			l := loss(e)
			if backward {
				l.Backward()
			}
		})
		scope.End()
		if m.Kept != int64(want) {
			t.Errorf("%d bytes are kept with Backward %v, by hand %d", m.Kept, backward, want)
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
