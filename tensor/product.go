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
	givenAll("MatMul", operandNames, t, u)
	if t.Rank() == 0 || u.Rank() == 0 {
		raise("MatMul", "use Mul for a product with one number", "shapes %v and %v", t.Shape(), u.Shape())
	}
	t, u = together("MatMul", t, u)
	if t.env.policy == dtype.Invalid || !t.policed() || !u.policed() { // else both are cast to the policy's dtype, once
		t, u = promoted(t, u)
	}
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
		return apply2(ir.MatMul, ir.Attr{}, ir.Params{}, t.rows("MatMul", 1), u).Reshape(append(lead, u.Dim(1))...)
	}
	lead, err := ir.Broadcast(t.Shape()[:t.Rank()-2], u.Shape()[:u.Rank()-2])
	if err != nil {
		raise("MatMul", "leading sizes must be equal, or 1 where one is repeated", "shapes %v and %v", t.Shape(), u.Shape())
	}
	a := t.expand(append(slices.Clone(lead), t.Shape()[t.Rank()-2:]...))
	b := u.expand(append(slices.Clone(lead), u.Shape()[u.Rank()-2:]...))
	return apply2(ir.MatMul, ir.Attr{}, ir.Params{}, a, b)
}

// Linear is t·wᵀ + b over the last dimension: w is [out, in] as PyTorch keeps it, b may be nil. Where t is in 16 bits b may
// be float32, which it stays under a precision policy.
func (t *Tensor) Linear(w, b *Tensor) *Tensor { return t.LinearAct(w, b, NoAct) }

// LinearAct is act(t·wᵀ + b), by one operation. Where a gradient is recorded the sums before act are kept, of ReLU the
// result; their gradient and b's take one pass.
func (t *Tensor) LinearAct(w, b *Tensor, act Act) *Tensor {
	t.given("Linear", "the input")
	w.given("Linear", "the weight")
	if w.Rank() != 2 || t.Rank() == 0 || t.Dim(-1) != w.Dim(1) {
		raise("Linear", "the last size of the input must be the weight's second", "input %v with weight %v", t.Shape(), w.Shape())
	}
	if int(act) >= len(ir.Acts()) {
		raise("Linear", "use one of tensor's", "there is no activation %d", act)
	}
	in, out := [3]*Tensor{t, w, b}, [2]*Tensor{}
	list := in[:]
	if b == nil {
		list = in[:2]
	}
	e, attr := joinAll("Linear", list), ir.Attr{Act: ir.Act(act)}
	if act > ActReLU && records(e, list) {
		attr.Flag = ir.Before
	}
	run(e, ir.Linear, &attr, &ir.Params{}, list, out[:])
	return out[0]
}

// records reports whether e will record an operation of floating operands.
func records(e *Env, in []*Tensor) bool {
	for _, t := range in {
		if t.st.Tag != nil {
			t = t.current("Linear", e)
		}
		if _, ok := t.edge(e); ok {
			return true
		}
	}
	return false
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
	t.given("Conv2d", "the input")
	w.given("Conv2d", "the weight")
	if b == nil {
		return apply2(ir.Conv2d, c.attr(), ir.Params{}, t, w)
	}
	return apply3(ir.Conv2d, c.attr(), ir.Params{}, t, w, b)
}

// ConvTranspose describes a transposed convolution: that of which it is the gradient, and how many rows and columns more
// than the fewest the result has, where strides leave it open.
type ConvTranspose struct {
	Conv
	OutputPadding [2]int // height, width
}

// ConvTranspose2d is the gradient of a convolution with respect to its input, with t[n,i,h,w] for the gradient of the
// result, w[i,o/groups,kh,kw], plus b[o], which may be nil.
func (t *Tensor) ConvTranspose2d(w, b *Tensor, c ConvTranspose) *Tensor {
	if t.Rank() != 4 || w.Rank() != 4 {
		raise("ConvTranspose2d", "input [n,i,h,w] and weight [i,o/groups,kh,kw]", "input %v with weight %v", t.Shape(), w.Shape())
	}
	t, w = together("ConvTranspose2d", t, w)
	t, w = t.lowered(), w.lowered()
	a := c.attr()
	conv := a.Conv()
	size := func(n, stride, pad, dilation, kernel, extra int) int {
		return (n-1)*stride - 2*pad + dilation*(kernel-1) + 1 + extra
	}
	h := size(t.Dim(2), conv.StrideH, conv.PadH, conv.DilationH, w.Dim(2), c.OutputPadding[0])
	v := size(t.Dim(3), conv.StrideW, conv.PadW, conv.DilationW, w.Dim(3), c.OutputPadding[1])
	if min(h, v, c.OutputPadding[0], c.OutputPadding[1]) < 0 || c.OutputPadding[0] >= max(conv.StrideH, conv.DilationH) || c.OutputPadding[1] >= max(conv.StrideW, conv.DilationW) {
		raise("ConvTranspose2d", "output padding is from 0 to below the stride or dilation", "input %v and weight %v give %d rows and %d columns with output padding %v", t.Shape(), w.Shape(), h, v, c.OutputPadding)
	}
	shape := []int{t.Dim(0), w.Dim(1) * conv.Groups, h, v}
	checkShape("ConvTranspose2d", shape)
	// Rows and columns beyond the stride are those of zeros behind the input.
	for i, stride := range [2]int{conv.StrideH, conv.StrideW} {
		if more := c.OutputPadding[i] / stride; more > 0 {
			t = t.Pad(2+i, 0, more, 0)
		}
	}
	a.Out = ir.Dense(t.DType(), shape...)
	y := apply2(ir.Conv2dGradInput, a, ir.Params{}, t, w)
	if b == nil {
		return y
	}
	return y.AddInPlace(b.In(y.env).Cast(y.DType()).Reshape(-1, 1, 1))
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

// Curve says of which elements a result of [Tensor.Resample] is made.
type Curve uint8

// The curves. Windows take all elements that a result covers, where results lie further apart than elements.
const (
	CurveNearest       = Curve(ir.Nearest)       // the element at ⌊o·Step⌋
	CurveNearestMiddle = Curve(ir.NearestMiddle) // at ⌊(o+½)·Step⌋
	CurveLines         = Curve(ir.Lines)         // on a line between two
	CurveCubics        = Curve(ir.Cubics)        // on Keys' curve through four, a = -0.75
	CurveLineWindows   = Curve(ir.LineWindows)   // falling with the distance, to 0 at a step or at an element, if these are further apart
	CurveCubicWindows  = Curve(ir.CubicWindows)  // by Keys' curve, a = -0.5, of twice that
)

// Resampling gives a dimension another size. Result o lies among its elements at (o+½)·Step - ½, or with Corners, which smooth
// curves have, at o·Step. Places are computed in float32, and in float64 for smooth curves through float64 values.
type Resampling struct {
	Axis, Size int
	Curve      Curve
	Corners    bool
	Step       float64
}

// Resample gives dimensions other sizes, one after the other. Beyond the ends lie elements like the outermost; windows end there.
// 16-bit values are rounded once. PyTorch's autocast makes them float32 on cards.
func (t *Tensor) Resample(list ...Resampling) *Tensor {
	t = t.floated().cardsWide()
	narrow := t.DType()
	if narrow.Size() < 4 && len(list) > 1 {
		t = t.Cast(dtype.F32)
	}
	for _, r := range list {
		a := ir.Resampling{Axis: t.axis("Resample", r.Axis), Size: r.Size, Curve: ir.Curve(r.Curve), Corners: r.Corners, Step: r.Step}
		t = apply(ir.Resample, a.Attr(), ir.Params{}, t)[0]
	}
	return t.Cast(narrow)
}

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
	return t.crossEntropy(ir.Attr{}, labels, smoothing, ignore)
}

// CrossEntropyMean is the mean of CrossEntropy's losses over the rows that are not labelled ignore, NaN where there are
// none, by one fused op.
func (t *Tensor) CrossEntropyMean(labels *Tensor, smoothing float64, ignore int) *Tensor {
	return t.crossEntropy(ir.Attr{Flag: ir.Mean}, labels, smoothing, ignore)
}

func (t *Tensor) crossEntropy(attr ir.Attr, labels *Tensor, smoothing float64, ignore int) *Tensor {
	givenAll("CrossEntropy", []string{"the logits", "the labels"}, t, labels)
	if t.Rank() != 2 || labels.Rank() != 1 || labels.Dim(0) != t.Dim(0) {
		raise("CrossEntropy", "logits are [rows, classes], labels [rows]", "logits %v with labels %v", t.Shape(), labels.Shape())
	}
	return apply(ir.CrossEntropy, attr, ir.Scalars(smoothing, float64(ignore)), t, labels.indices("CrossEntropy"))[0]
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
	t.given("LayerNorm", "the input")
	w.given("LayerNorm", "the weight")
	in := allInside("LayerNorm", t, w, b)
	if in[0].mixes(w) {
		return in[0].inF32().LayerNorm(in[1].inF32(), in[2].inF32(), eps).Cast(t.DType())
	}
	in[0], in[1] = in[0].rows("LayerNorm", w.Rank()), in[1].Flatten(0)
	if b == nil {
		in = in[:2]
	} else {
		in[2] = in[2].Flatten(0)
	}
	return apply(ir.LayerNorm, ir.Attr{}, ir.Scalars(eps), in...)[0].Reshape(t.Shape()...)
}

// AddLayerNorm is t + f and, in the same pass, its [Tensor.LayerNorm] over the last dimension. f may be nil: the sum is t then.
// Under a policy of bfloat16 a float32 t takes an f in bfloat16 as it is, and y comes in bfloat16, which products take.
func (t *Tensor) AddLayerNorm(f, w, b *Tensor, eps float64) (sum, y *Tensor) {
	givenAll("AddLayerNorm", []string{"the input", "the weight"}, t, w)
	if ir.Wide(t.DType()) != t.DType() || w.Rank() != 1 || b == nil {
		if sum = t; f != nil {
			sum = t.Add(f)
		}
		return sum, sum.LayerNorm(w, b, eps)
	}
	in, attr := allInside("AddLayerNorm", t, w, b, f), ir.Attr{}
	if t.Env().policy == dtype.BF16 && t.DType() == dtype.F32 && (f == nil || f.DType() == dtype.BF16) {
		attr.DType = dtype.BF16
	}
	in[0] = in[0].rows("AddLayerNorm", 1)
	if f == nil {
		in = in[:3]
	} else {
		if in[3] = in[3].rows("AddLayerNorm", 1); attr.DType == 0 {
			in[3] = in[3].Cast(t.DType())
		}
	}
	out := apply(ir.AddNorm, attr, ir.Scalars(eps), in...)
	if sum = t; f != nil {
		sum = out[3].Reshape(t.Shape()...)
	}
	return sum, out[0].Reshape(t.Shape()...)
}

// RMSNorm divides by the root of the mean square over the last dimensions, whose shape is w's, and scales by w.
func (t *Tensor) RMSNorm(w *Tensor, eps float64) *Tensor {
	t.given("RMSNorm", "the input")
	w.given("RMSNorm", "the weight")
	t, w = together("RMSNorm", t, w)
	if t.mixes(w) {
		return t.inF32().RMSNorm(w.inF32(), eps).Cast(t.DType())
	}
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

// Act is an activation that an operation applies to its result in the same pass.
type Act uint8

// The activations. Norms have only ReLU.
const (
	NoAct       = Act(ir.NoAct)
	ActReLU     = Act(ir.ActReLU)
	ActGELU     = Act(ir.ActGELU)
	ActGELUTanh = Act(ir.ActGELUTanh)
	ActSiLU     = Act(ir.ActSiLU)
)

// String is the activation's name: "gelu_tanh".
func (a Act) String() string { return ir.Act(a).String() }

// BatchNorm normalises each channel of t[n,c,…] by the batch's statistics, scales by w and adds b; it also returns the
// batch's mean and biased variance per channel, without a graph.
func (t *Tensor) BatchNorm(w, b *Tensor, eps float64) (y, mean, variance *Tensor) {
	return t.BatchNormAct(w, b, nil, NoAct, eps)
}

// BatchNormAct is BatchNorm that also adds r, of t's shape, unless it is nil, and applies ReLU if asked to, all in one pass:
// act(x̂·w + b + r). So does the gradient.
func (t *Tensor) BatchNormAct(w, b, r *Tensor, act Act, eps float64) (y, mean, variance *Tensor) {
	givenAll("BatchNorm", []string{"the input", "the weight", "the bias"}, t, w, b)
	out := t.batchNorm(ir.BatchNorm, r, act, eps, w, b)
	return out[0].Reshape(t.Shape()...), out[1].quiet(), out[2].quiet()
}

// batchNorm runs an op (t, in…, optionally r).
func (t *Tensor) batchNorm(code ir.Code, r *Tensor, act Act, eps float64, in ...*Tensor) []*Tensor {
	own := len(in)
	if r != nil {
		t, r = together("BatchNorm", t, r)
		t, r = promoted(t, r)
		in = append(in, r.channels("BatchNorm"))
	}
	for i, p := range in[:own] {
		if p.DType() != ir.Wide(p.DType()) {
			in[i] = p.inside(t.env).AutoWide()
		}
	}
	return apply(code, ir.Attr{Act: ir.Act(act)}, ir.Scalars(eps), slices.Insert(in, 0, t.channels("BatchNorm"))...)
}

// BatchNormEval normalises each channel of t[n,c,…] by given statistics.
func (t *Tensor) BatchNormEval(mean, variance, w, b *Tensor, eps float64) *Tensor {
	return t.BatchNormEvalAct(mean, variance, w, b, nil, NoAct, eps)
}

// BatchNormEvalAct is BatchNormEval that also adds r, of t's shape, unless it is nil, and applies ReLU if asked to.
func (t *Tensor) BatchNormEvalAct(mean, variance, w, b, r *Tensor, act Act, eps float64) *Tensor {
	givenAll("BatchNorm", []string{"the input", "the running mean", "the running variance", "the weight", "the bias"}, t, mean, variance, w, b)
	return t.batchNorm(ir.BatchNormEval, r, act, eps, mean, variance, w, b)[0].Reshape(t.Shape()...)
}
