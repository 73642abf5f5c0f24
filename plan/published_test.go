package plan_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// published is the language model of public snapshots of PyTorch's memory, those of Stanford's CS336 at 2.7B parameters, with the operations
// that its program has: norms, softmax and SwiGLU by parts, attention with all scores.
type published struct {
	env                                                *tensor.Env
	batch, length, width, heads, hidden, layers, vocab int
	cache, mask                                        *tensor.Tensor
}

func (p *published) param(shape ...int) *tensor.Tensor { return nn.NewParam(p.env.Ones(shape...)) }

func (p *published) linear(x *tensor.Tensor, out int) *tensor.Tensor {
	return x.Linear(p.param(out, x.Dim(-1)), nil)
}

func (p *published) embedded(tokens *tensor.Tensor) *tensor.Tensor {
	return p.param(p.vocab, p.width).Embedding(tokens)
}

func (p *published) norm(x *tensor.Tensor) *tensor.Tensor {
	rms := x.Square().Mean(-1).Unsqueeze(-1).AddScalar(1e-5).Rsqrt()
	return p.param(p.width).Mul(x.Mul(rms))
}

func (p *published) split(x *tensor.Tensor) *tensor.Tensor {
	return x.Reshape(p.batch, p.length, p.heads, p.width/p.heads).Transpose(1, 2)
}

func (p *published) rotated(x *tensor.Tensor) *tensor.Tensor {
	at := p.cache.IndexSelect(1, p.env.Arange(p.length))
	cos, sin := at.Select(0, 0), at.Select(0, 1)
	x1, x2 := x.SliceStep(-1, 0, p.width/p.heads, 2), x.SliceStep(-1, 1, p.width/p.heads, 2)
	return tensor.Stack(-1, cos.Mul(x1).Sub(sin.Mul(x2)), sin.Mul(x1).Add(cos.Mul(x2))).Reshape(x.Shape()...)
}

func (p *published) softmax(x *tensor.Tensor) *tensor.Tensor {
	e := x.Sub(x.Max(-1).Unsqueeze(-1)).Exp()
	return e.Div(e.Sum(-1).Unsqueeze(-1))
}

func (p *published) scores(q, k *tensor.Tensor) *tensor.Tensor {
	s := q.MatMul(k.Transpose(-1, -2)).Scale(1 / math.Sqrt(float64(p.width/p.heads)))
	if p.mask == nil {
		p.mask = p.env.Ones(p.batch, 1, p.length, p.length).Cast(dtype.Bool)
	}
	return tensor.Where(p.mask, s, p.env.Full(math.Inf(-1)))
}

func (p *published) attention(x *tensor.Tensor) *tensor.Tensor {
	q, k, v := p.split(p.linear(x, p.width)), p.split(p.linear(x, p.width)), p.split(p.linear(x, p.width))
	out := p.softmax(p.scores(p.rotated(q), p.rotated(k))).MatMul(v)
	return p.linear(out.Transpose(1, 2).Reshape(x.Shape()...), p.width)
}

func (p *published) gated(x *tensor.Tensor) *tensor.Tensor {
	gate := p.linear(x, p.hidden)
	return p.linear(gate.Mul(gate.Sigmoid()).Mul(p.linear(x, p.hidden)), p.width)
}

func (p *published) forward(tokens *tensor.Tensor) *tensor.Tensor {
	x := p.embedded(tokens)
	for range p.layers {
		x = x.Add(p.attention(p.norm(x)))
		x = x.Add(p.gated(p.norm(x)))
	}
	return p.linear(p.norm(x), p.vocab)
}

// kept are the bytes that stay behind a forward pass with gradients, by the part of the model that asked for them: casts together, as
// autocast makes them.
func (p *published) kept(out *tensor.Tensor) map[string]int64 {
	by := map[string]int64{"logits": out.Bytes()}
	p.env.Device().Collect()
	p.env.Device().Inventory(func(all *tensor.Inventory) {
		for _, v := range all.Values {
			if v.Held && v.Label != device.LabelParameter {
				by[part(&v)] += v.Bytes
			}
		}
	})
	runtime.KeepAlive(out)
	return by
}

func part(v *tensor.Value) string {
	for _, f := range v.Site.Frames() {
		if name := f.Function[strings.LastIndexByte(f.Function, '.')+1:]; strings.HasSuffix(f.File, "published_test.go") && name != "linear" {
			return name
		}
	}
	return v.Op
}

// snapshotPart is a part of what a snapshot has, with how many bytes more this library keeps, and why.
type snapshotPart struct {
	bytes, more int64
	reason      string
}

// shares are the parts of the snapshots, read off three of them; the others have just these, to the byte.
func (p *published) shares(amp bool) map[string]snapshotPart {
	b, s, h, a, l := int64(p.batch), int64(p.length), int64(p.width), int64(p.heads), int64(p.layers)
	e, f, q := 4*b*s*h, 4*b*s*int64(p.hidden), b*a*s*s
	const (
		rows    = "the reciprocal of each row's root once; theirs has two numbers a row"
		turns   = "cosines and sines of a text are those of all texts"
		masks   = "one mask of all layers and heads, where theirs expands a bool for each score; and what Max chooses from, of which theirs keeps indices in 64 bits"
		highest = "the largest score of a row in place of its index in 64 bits"
	)
	parts := map[string]snapshotPart{
		"embedded":  {bytes: e},
		"gated":     {bytes: 5 * f * l},
		"norm":      {(4*e+16*b*s)*l + 2*e + 8*b*s, -4 * b * s * (2*l + 1), rows},
		"rotated":   {(2*e + 8*b*s*h/a) * l, 8 * s * h / a * (1 - b) * l, turns},
		"scores":    {q * l, b*s*s + (4*q-q)*l, masks},
		"softmax":   {(8*q + 12*b*a*s) * l, -4 * b * a * s * l, highest},
		"attention": {bytes: 2 * e * l}, "forward": {bytes: 2 * e * l}, "logits": {bytes: 4 * b * s * int64(p.vocab)},
	}
	if !amp {
		return parts
	}
	linear := int64(p.vocab)*h + l*(4*h*h+3*h*int64(p.hidden))
	parts["gated"] = snapshotPart{bytes: 5 * f / 2 * l}
	parts["norm"] = snapshotPart{(e+16*b*s)*l + e/2 + 8*b*s, e/2*(2*l+1) - 4*b*s*(2*l+1), rows + "; theirs multiplies by the weight with einsum, which autocast has in bfloat16"}
	parts["rotated"] = snapshotPart{8 * b * s * h / a * l, 8 * s * h / a * (1 - b) * l, turns}
	parts["scores"] = snapshotPart{q * l, b*s*s + (2*q-q)*l, masks}
	parts["softmax"] = snapshotPart{(4*q + 12*b*a*s) * l, (2 - 8) * b * a * s * l, highest}
	parts["attention"] = snapshotPart{bytes: e * l}
	parts["logits"] = snapshotPart{bytes: 2 * b * s * int64(p.vocab)}
	parts["cast"] = snapshotPart{2*linear + (5*e/2+e+2*q)*l + e/2 + 4*h*l + 2*h, -(4*h*l + 2*h), "gains of norms stay float32"}
	return parts
}

// TestPublishedSnapshots runs the program of six public snapshots of PyTorch's memory, forward with gradients, and compares what stays
// in memory with theirs, part by part: equal to the byte, but where a difference is named.
func TestPublishedSnapshots(t *testing.T) {
	const workspace = 32 << 20 // that cuBLAS takes with the first product
	for _, x := range []struct {
		amp            bool
		length         int
		net, workspace int64 // of the snapshot
	}{
		{false, 128, 5_723_951_104, workspace}, {false, 256, 12_588_752_896, 0}, {false, 512, 30_009_344_000, 0},
		{true, 128, 10_239_517_696, workspace}, {true, 256, 14_589_031_424, 0}, {true, 512, 26_173_740_032, 0},
	} {
		env, err := tensor.Rehearse("null:h100-80")
		if err != nil {
			t.Fatal(err)
		}
		if x.amp {
			env = env.Autocast(dtype.BF16)
		}
		p := &published{env: env, batch: 4, length: x.length, width: 2560, heads: 32, hidden: 10240, layers: 32, vocab: 10000}
		tokens := env.Zeros(p.batch, p.length).Cast(dtype.I64)
		p.cache = tensor.NewBuffer(env.Ones(2, p.length, p.width/p.heads/2))
		kept, sum := p.kept(p.forward(tokens)), x.workspace
		delete(kept, "TestPublishedSnapshots") // the tokens, which theirs had before
		for name, s := range p.shares(x.amp) {
			sum += s.bytes
			if kept[name] != s.bytes+s.more || s.more != 0 && s.reason == "" {
				t.Errorf("bfloat16 %v, %d tokens: %s keeps %d bytes; PyTorch's %d, from which %d are to differ: %s", x.amp, x.length, name, kept[name], s.bytes, s.more, s.reason)
			}
			delete(kept, name)
		}
		if len(kept) > 0 || sum != x.net {
			t.Errorf("bfloat16 %v, %d tokens: nobody expects %v; the parts of the snapshot are %d bytes, and it has %d: %d", x.amp, x.length, kept, sum, x.net, sum-x.net)
		}
	}
}
