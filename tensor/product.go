package tensor

import (
	"cmp"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

var inf = math.Inf(1)

// MatMul is the matrix product over the last two dimensions; leading ones broadcast. A vector on the left counts as a
// row, on the right as a column, and the added dimension is dropped again.
func (t *Tensor) MatMul(u *Tensor) *Tensor {
	if t.Rank() == 0 || u.Rank() == 0 {
		raise("MatMul", "use Mul for a product with one number", "shapes %v and %v", t.Shape(), u.Shape())
	}
	t, u = together("MatMul", t, u)
	t, u = promoted(t, u)
	row, col := t.Rank() == 1, u.Rank() == 1
	a, b := t, u
	if row {
		a = a.Unsqueeze(0)
	}
	if col {
		b = b.Unsqueeze(1)
	}
	if a.Dim(-1) != b.Dim(-2) {
		raise("MatMul", "the last size of the first must be the last but one of the second", "shapes %v and %v do not multiply: %d columns meet %d rows", t.Shape(), u.Shape(), a.Dim(-1), b.Dim(-2))
	}
	out := a.product(b)
	switch {
	case row && col:
		return out.Reshape(out.Shape()[:out.Rank()-2]...)
	case row:
		return out.Squeeze(-2)
	case col:
		return out.Squeeze(-1)
	}
	return out
}

func (t *Tensor) product(u *Tensor) *Tensor {
	if u.Rank() == 2 && t.Rank() > 2 { // one matrix for all rows: a single product
		lead := slices.Clone(t.Shape()[:t.Rank()-1])
		return apply2(ir.MatMul, ir.Attr{}, ir.Params{}, t.Reshape(-1, t.Dim(-1)), u).Reshape(append(lead, u.Dim(1))...)
	}
	lead, err := ir.Broadcast(t.Shape()[:t.Rank()-2], u.Shape()[:u.Rank()-2])
	if err != nil {
		raise("MatMul", "leading sizes must be equal, or 1 where one is repeated", "shapes %v and %v", t.Shape(), u.Shape())
	}
	a := t.expand(append(slices.Clone(lead), t.Shape()[t.Rank()-2:]...))
	b := u.expand(append(slices.Clone(lead), u.Shape()[u.Rank()-2:]...))
	return apply2(ir.MatMul, ir.Attr{}, ir.Params{}, a, b)
}

// Linear is t·wᵀ + b over the last dimension: w is [out, in] as PyTorch keeps it, b may be nil.
func (t *Tensor) Linear(w, b *Tensor) *Tensor {
	if t == nil || w == nil {
		raise("Linear", "make layers with nn.NewLinear", "the input or the weight is nil")
	}
	if w.Rank() != 2 || t.Rank() == 0 || t.Dim(-1) != w.Dim(1) {
		raise("Linear", "the last size of the input must be the weight's second", "input %v with weight %v", t.Shape(), w.Shape())
	}
	if b == nil {
		return apply2(ir.Linear, ir.Attr{}, ir.Params{}, t, w)
	}
	return apply3(ir.Linear, ir.Attr{}, ir.Params{}, t, w, b)
}

// Conv describes a two-dimensional convolution. Zero fields mean stride 1, padding 0, dilation 1, one group.
type Conv struct {
	Stride, Padding, Dilation [2]int // height, width
	Groups                    int
}

func (c Conv) attr() ir.Attr {
	d := func(v int) int { return cmp.Or(v, 1) }
	conv := ir.Conv{StrideH: d(c.Stride[0]), StrideW: d(c.Stride[1]), PadH: c.Padding[0], PadW: c.Padding[1],
		DilationH: d(c.Dilation[0]), DilationW: d(c.Dilation[1]), Groups: d(c.Groups)}
	a := conv.Attr()
	if a.Conv() != conv {
		raise("Conv2d", "give numbers below 2^31", "a convolution of %+v", c)
	}
	return a
}

// Conv2d is the convolution (cross-correlation) of t[n,c,h,w] with w[o,c/groups,kh,kw] plus b[o], which may be nil.
func (t *Tensor) Conv2d(w, b *Tensor, c Conv) *Tensor {
	if b == nil {
		return apply2(ir.Conv2d, c.attr(), ir.Params{}, t, w)
	}
	return apply3(ir.Conv2d, c.attr(), ir.Params{}, t, w, b)
}

// Pool describes a two-dimensional pooling. A zero stride is the kernel's size.
type Pool struct{ Kernel, Stride, Padding [2]int } // height, width

func (p Pool) attr() ir.Attr {
	s := p.Stride
	for i := range s {
		if s[i] == 0 {
			s[i] = p.Kernel[i]
		}
	}
	pool := ir.Pool{KernelH: p.Kernel[0], KernelW: p.Kernel[1], StrideH: s[0], StrideW: s[1], PadH: p.Padding[0], PadW: p.Padding[1]}
	a := pool.Attr()
	if a.Pool() != pool {
		raise("pooling", "give numbers below 2^31", "windows of %+v", p)
	}
	return a
}

// MaxPool2d is the largest value of each window of t[n,c,h,w].
func (t *Tensor) MaxPool2d(p Pool) *Tensor { return apply(ir.MaxPool2d, p.attr(), ir.Params{}, t)[0] }

// AvgPool2d is the average of each window of t[n,c,h,w]; padding counts as zeros.
func (t *Tensor) AvgPool2d(p Pool) *Tensor { return apply(ir.AvgPool2d, p.attr(), ir.Params{}, t)[0] }

// lastAxis runs an op of the last dimension along any.
func (t *Tensor) lastAxis(code ir.Code, axis int) *Tensor {
	t = t.floated()
	if t.Rank() == 0 {
		return t.Reshape(1).lastAxis(code, 0).Reshape()
	}
	axis = t.axis(code.String(), axis)
	last := t.Rank() - 1
	return t.Transpose(axis, last).unary(code).Transpose(axis, last)
}

// Softmax is eᵗ over its sum along a dimension.
func (t *Tensor) Softmax(axis int) *Tensor { return t.lastAxis(ir.Softmax, axis) }

// LogSoftmax is the logarithm of Softmax, without overflow.
func (t *Tensor) LogSoftmax(axis int) *Tensor { return t.lastAxis(ir.LogSoftmax, axis) }

// CrossEntropy is the loss of each row of logits t[n,c] against the class numbers labels[n]: -log softmax of the label,
// mixed with the mean over classes by smoothing (0 to 1). A row labelled ignore has loss 0. Losses of 16-bit logits are
// f32.
func (t *Tensor) CrossEntropy(labels *Tensor, smoothing float64, ignore int) *Tensor {
	if t.Rank() != 2 || labels.Rank() != 1 || labels.Dim(0) != t.Dim(0) {
		raise("CrossEntropy", "logits are [rows, classes], labels [rows]", "logits %v with labels %v", t.Shape(), labels.Shape())
	}
	return apply(ir.CrossEntropy, ir.Attr{}, ir.Scalars(smoothing, float64(ignore)), t, labels.indices("CrossEntropy"))[0]
}

// rows is t as a matrix whose rows are the last n dimensions.
func (t *Tensor) rows(op string, n int) *Tensor {
	if n > t.Rank() {
		raise(op, "the weight has the shape of the last dimensions", "%d dimensions of shape %v", n, t.Shape())
	}
	d := 1
	for _, s := range t.Shape()[t.Rank()-n:] {
		d *= s
	}
	lead := 1
	for _, s := range t.Shape()[:t.Rank()-n] {
		lead *= s
	}
	return t.Reshape(lead, d)
}

// LayerNorm normalises over the last dimensions, whose shape is w's, to mean 0 and variance 1, then scales by w and adds
// b, which may be nil.
func (t *Tensor) LayerNorm(w, b *Tensor, eps float64) *Tensor {
	in := allInside("LayerNorm", t, w, b)
	in[0], in[1] = in[0].rows("LayerNorm", w.Rank()), in[1].Flatten(0)
	if b == nil {
		in = in[:2]
	} else {
		in[2] = in[2].Flatten(0)
	}
	return apply(ir.LayerNorm, ir.Attr{}, ir.Scalars(eps), in...)[0].Reshape(t.Shape()...)
}

// RMSNorm divides by the root of the mean square over the last dimensions, whose shape is w's, and scales by w.
func (t *Tensor) RMSNorm(w *Tensor, eps float64) *Tensor {
	t, w = together("RMSNorm", t, w)
	return apply(ir.RMSNorm, ir.Attr{}, ir.Scalars(eps), t.rows("RMSNorm", w.Rank()), w.Flatten(0))[0].Reshape(t.Shape()...)
}

// channels is t[n,c,…] as [n,c,s].
func (t *Tensor) channels(op string) *Tensor {
	if t.Rank() < 2 {
		raise(op, "values are [batch, channels, …]", "shape %v", t.Shape())
	}
	s := 1
	for _, d := range t.Shape()[2:] {
		s *= d
	}
	return t.Reshape(t.Dim(0), t.Dim(1), s)
}

// BatchNorm normalises each channel of t[n,c,…] by the batch's statistics, scales by w and adds b; it also returns the
// batch's mean and biased variance per channel, without a graph.
func (t *Tensor) BatchNorm(w, b *Tensor, eps float64) (y, mean, variance *Tensor) {
	out := apply(ir.BatchNorm, ir.Attr{}, ir.Scalars(eps), t.channels("BatchNorm"), w, b)
	return out[0].Reshape(t.Shape()...), out[1].quiet(), out[2].quiet()
}

// BatchNormEval normalises each channel of t[n,c,…] by given statistics.
func (t *Tensor) BatchNormEval(mean, variance, w, b *Tensor, eps float64) *Tensor {
	return apply(ir.BatchNormEval, ir.Attr{}, ir.Scalars(eps), t.channels("BatchNorm"), mean, variance, w, b)[0].Reshape(t.Shape()...)
}

// Mask says which keys attention sees.
type Mask struct {
	Causal bool    // position i sees keys up to i
	Keys   *Tensor // broadcast to [batch, heads, queries, keys]: bool (true is seen) or added to the scores; nil: all
}

// Attention is softmax(q·kᵀ/√d)·v over q[b,h,t,d], k[b,h,s,d], v[b,h,s,e]. A query that sees no key gives zeros.
func Attention(q, k, v *Tensor, m Mask) *Tensor {
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
		raise("Attention", "operands are [batch, heads, positions, width]", "queries %v, keys %v, values %v", q.Shape(), k.Shape(), v.Shape())
	}
	in := allInside("Attention", q, k, v, m.Keys)
	mask := in[3]
	if in = in[:3]; mask != nil {
		if mask.DType() != dtype.Bool {
			mask = mask.Cast(q.DType())
		}
		in = append(in, mask.Expand(q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)))
	}
	return apply(ir.Attention, ir.Attr{Causal: m.Causal}, ir.Scalars(1/math.Sqrt(float64(q.Dim(-1)))), in...)[0]
}
