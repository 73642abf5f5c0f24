package formula

// size is a decoder's sizes for a micro-batch, as the forms write them.
type size struct {
	d     *Decoder
	s, b  int64 // tokens of a sample; samples
	t     int64 // tensor-parallel devices
	vocab int64 // padded
}

func (z *size) tokens() int64 { return z.b * z.s }

// scores is the elements of all heads' attention: a·b·s².
func (z *size) scores() int64 { return int64(z.d.Heads) * z.b * z.s * z.s / z.t }

// decoders are the forms, by style.
var decoders = map[Style]func(d *Decoder, s *Setup, z *size) kept{
	Torch: torch, DeepSpeed: torch, Eager: eager, Megatron: megatron, LLMC: llmc,
}

// torch is what autograd saves of Hugging Face's modules, counted tensor by tensor (bench/plan has the script, and testdata
// what it found). A residual stream of float32 goes through norms in float32; products' inputs and outputs are of the
// products' width. Under autocast each product that reads a float32 value makes a copy of its own.
func torch(d *Decoder, s *Setup, z *size) kept {
	stream, e := int64(4), int64(4) // bytes of the residual stream, of products
	if s.half() {
		e = 2
		if s.Weights16 || s.Style == DeepSpeed || s.ZeRO == 3 { // FSDP gathers weights in two bytes
			stream = 2
		}
	}
	autocast := s.half() && stream == 4
	h, q, k, f := int64(d.Width), d.query()/z.t, max(d.keys()/z.t, d.head()), d.ffn()/z.t
	readers := func(n int64) int64 { // of a norm's output: a copy each under autocast, the output itself without
		if autocast {
			return n
		}
		return 1
	}
	first, second := readers(3), readers(2)
	if d.LayerNorm {
		first, second = 1, 1 // queries, keys and values are one product
	}
	part := int64(1) // of norms and the residual stream that each device has
	if s.Sequence {
		part = z.t
	}
	token := (2*d.norm(stream) + h*e*(first+second)) / part
	token += e * (2*q + 2*k)    // queries, keys, values, and the output of attention
	token += 4 * (q / d.head()) // the logarithms of the softmax's sums
	if d.QKNorm {
		heads := (q + k) / d.head()
		token += (q+k)*(4+e) + 4*heads
	}
	token += e * f * d.functions()
	if s.Dropout || d.Dropout {
		token += 2 * h / part
	}
	layer := z.tokens() * token
	if s.Whole && s.Recompute != Attention {
		layer += z.scores() * (4 + e) // the softmax in float32, and what multiplies the values
		if s.Dropout || d.Dropout {
			layer += z.scores() * (1 + e)
		}
	}
	outside := z.tokens() * (d.norm(stream) + h*e + 8 + 8) // tokens and targets are int64
	if d.Positions {
		outside += 8 * z.s
	} else {
		outside += 2 * d.head() * stream * z.s // cosines and sines
	}
	score := int64(12) // the scores, and in float32 their softmax and its gradient
	if s.Forward {
		score = 4
	}
	logits := score * z.tokens() * z.vocab / z.t
	if s.Chunked {
		logits = score*min(z.tokens(), chunk)*z.vocab/z.t + z.tokens()*h*e // and the gradient of all rows' inputs
	}
	return kept{layer, h * stream * z.tokens(), outside, logits}
}

// chunk is the rows of scores that a chunked head makes at a time, as Liger's does of models of common sizes.
const chunk = 1024

// norm is what a norm keeps of a token: its input in float32, a statistic or two; an RMSNorm in elementary operations what it
// has normalised too.
func (d *Decoder) norm(stream int64) int64 {
	h := int64(d.Width)
	if d.LayerNorm {
		return h*stream + 8
	}
	return 4*h + 4 + h*stream
}

// functions is the values of the feed-forward width that are kept of a token.
func (d *Decoder) functions() int64 {
	switch d.Activation {
	case Gated:
		return 4 // gate, up, the gate's function, their product
	case NewOps:
		return 5
	case ReLU:
		return 1
	}
	return 2
}

// eager is a decoder with RMSNorm, rotated queries and keys, SwiGLU and attention in elementary operations, byte by byte as
// six public memory snapshots of PyTorch have it. E and F are hidden and feed-forward values in float32, q the scores.
func eager(d *Decoder, s *Setup, z *size) kept {
	tokens, heads := z.tokens(), int64(d.Heads)/z.t
	h := int64(d.Width)
	E, F, q := 4*tokens*h, 4*tokens*d.ffn()/z.t, z.scores()
	rows := 8*tokens*d.head() + 12*tokens*heads + 16*tokens
	layer := 5*F + 10*E + 9*q + rows
	outside := E + 2*E + 8*tokens
	width := int64(4)
	if s.half() {
		layer = 5*F/2 + 15*E/2 + 7*q + rows + 4*h
		outside, width = E+E+8*tokens+2*h, 2
	}
	if s.Recompute == Attention {
		layer -= 9 * q
		if s.half() {
			layer += 2 * q
		}
	}
	if !s.Forward {
		width += 8 // the loss keeps its softmax, and the gradient of the scores comes beside them
	}
	return kept{layer, E, outside, width * tokens * z.vocab / z.t}
}

// megatron is the table of arXiv 2205.05198, in bytes for each token and column: 34 + 5·a·s/h, which tensor parallelism
// divides but for 10, and sequence parallelism altogether. Keys and values of grouped heads are counted as they are; a
// feed-forward part of another width than 4·h takes its share of the 16.
func megatron(d *Decoder, s *Setup, z *size) kept {
	h, tokens := int64(d.Width), z.tokens()
	divided := 2*d.query() + 4*d.keys() + 2*d.query() + 4*d.ffn() // queries, keys with values, the projection's input; into and out of GELU
	if d.Activation == Gated {
		divided += 4 * d.ffn() // a second product, and the product of both
	}
	whole := 10 * h // both parts' inputs, both norms' inputs, masks of dropout
	ends := 5 * h   // mask of the embedding's dropout, inputs of the last norm and of the head
	if s.Sequence {
		whole, ends = whole/z.t, ends/z.t
	}
	layer := tokens * (divided/z.t + whole)
	if s.Whole && s.Recompute != Attention {
		layer += 5 * z.scores()
	}
	if !s.Whole {
		layer += 4 * tokens * int64(d.Heads) / z.t // the softmax's sums
	}
	input := 2 * h
	if s.Sequence {
		input /= z.t
	}
	return kept{layer, input * tokens, tokens * (ends + 8), 6 * tokens * z.vocab / z.t}
}

// llmc is llm.c's list of activations, which it allocates in one piece, with cuDNN's attention. Its GELU's output is made again if
// Recompute is GELU, then one buffer serves all layers; scores and their gradient share one buffer.
func llmc(d *Decoder, s *Setup, z *size) kept {
	e := int64(4)
	if s.half() {
		e = 2
	}
	h, f, tokens, heads := int64(d.Width), d.ffn(), z.tokens(), int64(d.Heads)
	layer := tokens * (e*(8*h+f) + 4*4 + 4*heads) // norms' outputs, attention's, two sums, queries with keys and values; statistics
	outside := tokens * (e*(2*h+f+h) + 3*4)       // the embedding, the last norm, two buffers for gradients; statistics and losses
	widest := max(3*h, z.vocab)
	if s.Whole {
		layer += tokens * (e*heads*z.s - 4*heads)
		widest = max(widest, heads*z.s)
	}
	if s.Recompute == GELU {
		outside += tokens * e * f
	} else {
		layer += tokens * e * f
	}
	return kept{layer, e * h * tokens, outside, tokens * e * widest}
}
