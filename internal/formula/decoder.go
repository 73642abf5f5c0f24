package formula

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Activation is the function of a decoder's feed-forward part.
type Activation string

// The functions.
const (
	Gated  Activation = "gated"    // SwiGLU and its like: three matrices
	Fused  Activation = "gelu"     // one kernel, that keeps its input
	NewOps Activation = "gelu_new" // GPT-2's GELU, in Hugging Face written out in elementary operations
	ReLU   Activation = "relu"     // its output is all that it keeps
)

// Decoder is a transformer that predicts the next token.
type Decoder struct {
	Layers, Width, Heads int
	KVHeads              int // heads of keys and values; 0: Heads
	HeadWidth            int // 0: Width/Heads
	FFN                  int // width of the feed-forward part; 0: 4·Width
	Vocab                int
	Context              int // tokens at most
	Activation           Activation
	LayerNorm            bool // LayerNorm with a shift, not RMSNorm
	Bias                 bool // of all linear layers
	QKVBias              bool // of queries, keys and values
	OutBias              bool // of the attention's output
	FFNBias              bool // of the feed-forward part
	QKNorm               bool // queries and keys are normalised, head by head
	Positions            bool // learnt
	Untied               bool // the head has a matrix of its own
	Dropout              bool // as it is trained by default
}

func (d *Decoder) kv() int64    { return int64(cmp.Or(d.KVHeads, d.Heads)) }
func (d *Decoder) head() int64  { return int64(cmp.Or(d.HeadWidth, d.Width/max(d.Heads, 1))) }
func (d *Decoder) query() int64 { return int64(d.Heads) * d.head() }
func (d *Decoder) keys() int64  { return d.kv() * d.head() }
func (d *Decoder) ffn() int64   { return int64(cmp.Or(d.FFN, 4*d.Width)) }

// matrices are the weights of a layer's products.
func (d *Decoder) matrices() int64 {
	h, f := int64(d.Width), d.ffn()
	n := 2*h*d.query() + 2*h*d.keys() + 2*h*f
	if d.Activation == Gated {
		n += h * f
	}
	return n
}

// vectors are a layer's norms and biases: those that tensor parallelism divides, and those that each device has.
func (d *Decoder) vectors() (divided, whole int64) {
	h := int64(d.Width)
	whole = 2 * h
	if d.shifts() {
		whole += 2 * h
	}
	if d.QKNorm {
		whole += 2 * d.head()
	}
	if d.Bias || d.QKVBias {
		divided += d.query() + 2*d.keys()
	}
	if d.Bias || d.OutBias {
		whole += h
	}
	if d.Bias || d.FFNBias {
		divided += d.ffn()
		whole += h
	}
	if d.FFNBias && d.Activation == Gated {
		divided += d.ffn()
	}
	return divided, whole
}

// shifts tells whether norms have a shift: MosaicML's models without biases have none.
func (d *Decoder) shifts() bool { return d.LayerNorm && (d.Bias || d.FFNBias || d.Positions) }

// tables are the embedding with the head, the learnt positions, and the last norm.
func (d *Decoder) tables(vocab int64) (divided, whole int64) {
	h := int64(d.Width)
	divided, whole = vocab*h, h
	if d.Untied {
		divided *= 2
	}
	if d.Positions {
		whole += int64(d.Context) * h
	}
	if d.shifts() {
		whole += h
	}
	return divided, whole
}

// Parameters is the number of them.
func (d *Decoder) Parameters() int64 { return d.share(int64(d.Vocab), 1) }

// share is the parameters on each of t tensor-parallel devices.
func (d *Decoder) share(vocab, t int64) int64 {
	divided, whole := d.vectors()
	ends, all := d.tables(vocab)
	return int64(d.Layers)*((d.matrices()+divided)/t+whole) + ends/t + all
}

// FLOPs are 6 for each parameter and token, and 12·L·s for each token and column of attention: the convention of PaLM, nanoGPT
// and MosaicML. Half is llm.c's, which counts what a causal mask leaves: 6·L·s.
func (d *Decoder) FLOPs(context int, half bool) float64 {
	s := float64(cmp.Or(context, d.Context))
	scores := 12 * float64(d.Layers) * float64(d.query()) * s
	if half {
		scores /= 2
	}
	return s * (6*float64(d.Parameters()) + scores)
}

// matter is the FLOPs that a card spends: an embedding that is looked up takes none.
func (d *Decoder) matter(s int64) float64 {
	products := float64(int64(d.Layers)*d.matrices() + int64(d.Vocab*d.Width))
	return float64(s) * (6*products + 12*float64(d.Layers)*float64(d.query())*float64(s))
}

func (d *Decoder) magnitude(s *Setup) float64 {
	f := func(n int) float64 { return float64(n) }
	layers, width, heads, head := f(d.Layers), f(d.Width), f(d.Heads), f(cmp.Or(d.HeadWidth, d.Width/max(d.Heads, 1)))
	ffn, vocab, context := f(cmp.Or(d.FFN, 4*d.Width)), f(d.Vocab)+128*f(s.TP), f(cmp.Or(s.Context, d.Context))
	weights := layers*(4*width*heads*head+3*width*ffn+8*width+2*ffn+3*heads*head) + (2*vocab+f(d.Context)+1)*width
	tokens := f(s.Batch) * context
	return weights + tokens*(layers*(16*width+8*ffn+8*heads*head+4*heads*context)+16*width+4*vocab)
}

func (d *Decoder) check(s *Setup) error {
	for _, f := range []struct {
		name string
		v    int
	}{{"layers", d.Layers}, {"width", d.Width}, {"heads", d.Heads}, {"vocab", d.Vocab}} {
		if f.v < 1 {
			return advice.Failf("give --"+f.name, "a decoder needs %s, and has %d", f.name, f.v)
		}
	}
	if d.Context == 0 && s.Context == 0 {
		return advice.Failf("give --context", "nobody says how many tokens a sample has")
	}
	if d.Positions && s.Context > d.Context {
		return advice.Failf("--context is at most that", "the model has learnt %d positions, fewer than %d tokens", d.Context, s.Context)
	}
	if d.HeadWidth == 0 && d.Width%d.Heads != 0 {
		return advice.Failf("let heads divide the width, or give --head-width", "a width of %d is no %d heads", d.Width, d.Heads)
	}
	if d.Heads%int(d.kv()) != 0 {
		return advice.Failf("let --kv-heads divide --heads", "%d heads of queries do not share %d of keys and values evenly", d.Heads, d.kv())
	}
	return d.divides(s)
}

// divides tells whether tensor parallelism can share out a layer.
func (d *Decoder) divides(s *Setup) error {
	t := int64(s.TP)
	switch {
	case s.Chunked && s.Style != Torch && s.Style != DeepSpeed:
		return advice.Failf("leave --head out", "style %s has no chunked head", s.Style)
	case int64(d.Heads)%t != 0:
		return advice.Failf("--tp has to divide the heads", "%d heads are not shared evenly by %d devices", d.Heads, t)
	case t <= d.kv() && d.kv()%t != 0:
		return advice.Failf("--tp has to divide the heads of keys and values", "%d heads of keys and values are not shared evenly by %d devices", d.kv(), t)
	case d.ffn()%t != 0:
		return advice.Failf("--tp has to divide the feed-forward width", "a feed-forward part of %d columns is not shared evenly by %d devices", d.ffn(), t)
	case t > 1 && s.Style == LLMC:
		return advice.Failf("leave --tp out", "llm.c has no tensor parallelism")
	}
	return nil
}

// padded is the vocabulary as the style's tables have it.
func (d *Decoder) padded(s *Setup) int64 {
	unit := int64(1)
	switch s.Style {
	case Megatron:
		unit = 128 * int64(s.TP)
	case LLMC:
		unit = 128
	}
	return (int64(d.Vocab) + unit - 1) / unit * unit
}

// kept is what a style keeps of a decoder, in bytes.
type kept struct {
	layer   int64 // of a block
	input   int64 // of it its input
	outside int64 // of all blocks
	logits  int64
}

func (d *Decoder) count(s *Setup) counts {
	tokens := s.micro() * int64(cmp.Or(s.Context, d.Context))
	form := decoders[s.Style]
	k := form(d, s, &size{d: d, s: int64(cmp.Or(s.Context, d.Context)), b: s.micro(), t: int64(s.TP), vocab: d.padded(s)})
	t, layers := int64(s.TP), int64(d.Layers)
	divided, whole := d.vectors()
	ends, _ := d.tables(d.padded(s))
	c := counts{
		parameters: d.share(d.padded(s), t), linear: (layers*d.matrices() + int64(d.Vocab*d.Width)) / t, block: (d.matrices()+divided)/t + whole,
		root: ends / t,
		kept: layers*k.layer + k.outside, layer: k.layer, inputs: layers*k.input + k.outside, logits: k.logits,
		flops: float64(s.micro()) * d.matter(tokens/s.micro()) / float64(t),
	}
	if s.Recompute == Block {
		c.again = c.flops / 3
	}
	if t > 1 { // two reductions of a layer's output forward and two backward, two bytes a value
		c.reduced = 4 * layers * 2 * tokens * int64(d.Width)
	}
	return c
}
