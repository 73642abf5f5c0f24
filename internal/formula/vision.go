package formula

import "github.com/warpline-ml/warpline/internal/advice"

// MLP is linear layers with a ReLU between each two.
type MLP struct{ Widths []int } // of the input, of each layer's output

// pairs calls f with each layer's inputs and outputs.
func (m *MLP) pairs(f func(in, out int64)) {
	for i := 1; i < len(m.Widths); i++ {
		f(int64(m.Widths[i-1]), int64(m.Widths[i]))
	}
}

// Parameters is the number of them.
func (m *MLP) Parameters() (n int64) {
	m.pairs(func(in, out int64) { n += (in + 1) * out })
	return n
}

// FLOPs are 6 for each weight. The argument is not looked at.
func (m *MLP) FLOPs(int, bool) (n float64) {
	m.pairs(func(in, out int64) { n += 6 * float64(in*out) })
	return n
}

func (m *MLP) magnitude(s *Setup) (n float64) {
	m.pairs(func(in, out int64) { n += float64(in+1)*float64(out) + 4*float64(s.Batch)*float64(in+out) })
	return n
}

func (m *MLP) check(s *Setup) error {
	if len(m.Widths) < 2 {
		return advice.Failf("as in --widths 784,512,10", "an mlp has the width of its input and of each layer's output")
	}
	for _, w := range m.Widths {
		if w < 1 {
			return advice.Failf("widths begin at 1", "a layer has %d values", w)
		}
	}
	return plain("an mlp", s)
}

// plain refuses what is for decoders alone.
func plain(what string, s *Setup) error {
	switch {
	case s.Style != Torch:
		return advice.Failf("leave --style out", "style %s is of decoders, not of %s", s.Style, what)
	case s.TP > 1 || s.Sequence:
		return advice.Failf("leave --tp out", "tensor parallelism is of decoders, not of %s", what)
	case s.Context > 0:
		return advice.Failf("leave --context out", "%s has no tokens", what)
	case s.Recompute == Attention || s.Recompute == GELU:
		return advice.Failf("only --recompute block is for all models", "%s has no %s to compute again", what, s.Recompute)
	}
	return nil
}

// bytes of values that products read and write.
func (s *Setup) bytes() int64 {
	if s.half() {
		return 2
	}
	return 4
}

func (m *MLP) count(s *Setup) counts {
	n, e := s.micro(), s.bytes()
	c := counts{parameters: m.Parameters(), flops: float64(n) * m.FLOPs(0, false)}
	m.pairs(func(in, out int64) {
		c.linear += in * out
		c.kept += n * in * e
		c.layer = max(c.layer, n*in*e)
		c.block = max(c.block, (in+1)*out)
	})
	c.logits = 12 * n * int64(m.Widths[len(m.Widths)-1])
	c.inputs = c.kept
	return c
}

// ResNet is a network of torchvision's: ResNet-18 to 152, on pictures of three colours.
type ResNet struct {
	Depths     [4]int
	Bottleneck bool
	Classes    int
	Image      int // height and width of a picture
}

// walk is what one pass over a ResNet counts, for one picture.
type walk struct {
	parameters, linear int64
	saved              int64 // values of the width of products
	wide               int64 // bytes of indices
	statistics         int64 // bytes, of a batch
	inputs, block      int64 // values of blocks' inputs; of the largest block
	largest            int64 // parameters of the largest block
	products           int64 // multiply-adds
}

// conv is a convolution without bias and the batch norm behind it: their inputs are kept.
func (w *walk) conv(in, out, kernel, side, stride int64) int64 {
	side = (side + stride - 1) / stride
	weights := in * out * kernel * kernel
	w.parameters += weights + 2*out
	w.linear += weights
	w.products += weights * side * side
	w.saved += out * side * side // the norm's input
	w.statistics += 2 * out * 4
	return side
}

// block is one residual block, which keeps what each of its ReLUs, which work in place, has left.
func (w *walk) residual(r *ResNet, in, width, side, stride int64) (out, next int64) {
	before, parameters := w.saved, w.parameters
	w.inputs += in * side * side
	if r.Bottleneck {
		out = 4 * width
		w.conv(in, width, 1, side, 1)
		w.saved += width * side * side
		next = w.conv(width, width, 3, side, stride)
		w.saved += width * next * next
		w.conv(width, out, 1, next, 1)
	} else {
		out = width
		next = w.conv(in, out, 3, side, stride)
		w.saved += out * next * next
		w.conv(out, out, 3, next, 1)
	}
	if stride > 1 || in != out {
		w.conv(in, out, 1, side, stride)
	}
	w.saved += out * next * next
	w.block, w.largest = max(w.block, w.saved-before), max(w.largest, w.parameters-parameters)
	return out, next
}

func (r *ResNet) walk() *walk {
	w, side := &walk{}, int64(r.Image)
	w.saved += 3 * side * side
	side = w.conv(3, 64, 7, side, 2)
	w.saved += 64 * side * side // ReLU's, which the pooling reads
	side = (side + 1) / 2
	w.wide += 8 * 64 * side * side // where the largest stood, in int64
	w.saved += 64 * side * side
	channels := int64(64)
	for stage, depth := range r.Depths {
		for i := range depth {
			stride := int64(1)
			if stage > 0 && i == 0 {
				stride = 2
			}
			channels, side = w.residual(r, channels, 64<<stage, side, stride)
		}
	}
	w.saved += channels
	w.parameters += (channels + 1) * int64(r.Classes)
	w.linear += channels * int64(r.Classes)
	w.products += channels * int64(r.Classes)
	return w
}

// Parameters is the number of them.
func (r *ResNet) Parameters() int64 { return r.walk().parameters }

// FLOPs are six for each multiply-add of the forward pass. The arguments are not looked at.
func (r *ResNet) FLOPs(int, bool) float64 { return 6 * float64(r.walk().products) }

// A block keeps at most some 24 values of 256 channels for each 16 pixels, or fewer of more.
func (r *ResNet) magnitude(s *Setup) float64 {
	blocks := float64(r.Depths[0]) + float64(r.Depths[1]) + float64(r.Depths[2]) + float64(r.Depths[3]) + 1
	return blocks*32e6 + float64(s.Batch)*(float64(r.Image)*float64(r.Image)*(400*blocks)+12*float64(r.Classes)) + 2048*float64(r.Classes)
}

func (r *ResNet) check(s *Setup) error {
	if r.Image < 32 {
		return advice.Failf("--image is at least 32", "a picture of %d × %d is too small for a ResNet", r.Image, r.Image)
	}
	return plain("a ResNet", s)
}

func (r *ResNet) count(s *Setup) counts {
	w, n, e := r.walk(), s.micro(), s.bytes()
	stem := w.saved*e + w.wide
	return counts{
		parameters: w.parameters, linear: w.linear, block: w.largest,
		kept: n*stem + w.statistics, layer: n * w.block * e, inputs: n*w.inputs*e + n*w.wide + n*3*int64(r.Image*r.Image)*e,
		logits: 12 * n * int64(r.Classes), flops: float64(n) * r.FLOPs(0, false), again: recomputed(s, float64(n)*r.FLOPs(0, false)),
	}
}

// recomputed is one more forward pass where blocks are made again.
func recomputed(s *Setup, flops float64) float64 {
	if s.Recompute == Block {
		return flops / 3
	}
	return 0
}

// Bare is a number of parameters of a model of which nothing else is known.
type Bare int64

// Parameters is the number.
func (b Bare) Parameters() int64 { return int64(b) }

// FLOPs are the 6 that each parameter needs for a token, without attention.
func (b Bare) FLOPs(context int, _ bool) float64 { return 6 * float64(b) * float64(max(context, 1)) }

func (b Bare) magnitude(*Setup) float64 { return float64(b) }

func (b Bare) check(s *Setup) error {
	switch {
	case b < 1:
		return advice.Failf("as in 7B or 1.5e9", "a model of %d parameters has none", int64(b))
	case s.Style == Eager || s.Style == LLMC && s.TP > 1:
		return advice.Failf("take style torch, megatron or deepspeed", "style %s needs a model's sizes", s.Style)
	}
	return nil
}

func (b Bare) count(s *Setup) counts {
	return counts{parameters: (int64(b) + int64(s.TP) - 1) / int64(s.TP), flops: float64(s.micro()) * b.FLOPs(s.Context, false)}
}
