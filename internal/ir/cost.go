package ir

// Cost returns the floating-point operations of a launch and the bytes it reads and writes; 0, 0 for a view and for an
// op that is not valid. Operations are counted as is usual: a multiplication, an addition, a comparison or a
// transcendental function is 1, a fused multiply-add 2. Moving, converting and choosing elements costs none. Bytes count
// every operand and result once; what a view repeats is counted once, what an op skips is not.
func (o *Op) Cost() (flops, bytes int64) {
	out, err := o.Infer()
	if err != nil || o.Code.View() || len(out) == 0 {
		return 0, 0
	}
	return o.flops(out), o.bytes(out)
}

// perElement is the operations per element of the first result; formulas that depend on more are in flops.
var perElement = [codeCount]int64{
	Iota: 2, Uniform: 2, Normal: 2, RandInt: 2,
	Neg: 1, Abs: 1, Sign: 1, Floor: 1, Ceil: 1, Round: 1, Trunc: 1, Sqrt: 1, Rsqrt: 1, Exp: 1, Expm1: 1, Log: 1, Log1p: 1,
	Sin: 1, Cos: 1, Tanh: 1, Sigmoid: 1, Erf: 1, ReLU: 1, Not: 1,
	Affine: 2, PowScalar: 1, Clamp: 2, Dropout: 2, Axpy: 2, Lerp: 3,
	Add: 1, Sub: 1, Mul: 1, Div: 1, Pow: 1, Rem: 4, Maximum: 1, Minimum: 1, Eq: 1, Ne: 1, Lt: 1, Le: 1, And: 1, Or: 1, Xor: 1,
	CumSum: 1,

	GELU: 5, GELUTanh: 8, SiLU: 2, ReLUGrad: 1, GELUGrad: 9, GELUTanhGrad: 14, SiLUGrad: 6,
	Softmax: 4, LogSoftmax: 4, SoftmaxGrad: 4, LogSoftmaxGrad: 4,
	CrossEntropyGrad: 4,
	LayerNorm:        8, LayerNormGrad: 14, RMSNorm: 5, RMSNormGrad: 10,
	BatchNorm: 7, BatchNormGrad: 11, BatchNormEval: 2,
}

// perOperand is the operations per element of the first operand, for ops that reduce it.
var perOperand = [codeCount]int64{
	Sum: 1, Prod: 1, ReduceMax: 1, ReduceMin: 1, ArgMax: 1, ArgMin: 1,
	CrossEntropy: 4, EmbeddingGrad: 1, MaxPool2dGrad: 1,
}

func (o *Op) flops(out []*Type) int64 {
	size := int64(out[0].size)
	switch o.Code {
	case MatMul:
		return 2 * size * int64(o.In(0).Dim(-1))
	case Linear:
		return 2*size*int64(o.In(0).Dim(-1)) + size*(int64(o.NumIn()-2)+actFlops[o.Attr.Act])
	case Conv2d:
		return convFlops(size, o.In(1)) + size*int64(o.NumIn()-2)
	case Conv2dGradInput:
		return convFlops(int64(o.In(0).size), o.In(1))
	case Conv2dGradWeight:
		return convFlops(int64(o.In(0).size), o.Attr.Out)
	case MaxPool2d, AvgPool2d:
		return size * int64(o.Attr.Pool().KernelH*o.Attr.Pool().KernelW)
	case AvgPool2dGrad:
		return int64(o.In(0).size) * int64(o.Attr.Pool().KernelH*o.Attr.Pool().KernelW)
	case ScatterAdd:
		return int64(o.In(1).size)
	case Attention, AttentionGrad:
		return o.attentionFlops()
	case SumSquares, SGD, AdamW:
		return o.multiFlops()
	}
	if n := perOperand[o.Code]; n > 0 {
		return n * int64(o.In(0).size)
	}
	return perElement[o.Code] * size
}

var actFlops = [...]int64{NoAct: 0, ActReLU: 1, ActGELU: 5, ActGELUTanh: 8}

// convFlops is 2·c/g·kh·kw for each of the result's elements; both gradients take as many.
func convFlops(results int64, w *Type) int64 {
	return 2 * results * int64(w.shape[1]*w.shape[2]*w.shape[3])
}

// attentionFlops is 2·b·h·t·s·(d+e) for the two products and 5 for each score (scale, softmax); a causal one computes
// half of them. The gradient has five products: 2·b·h·t·s·(3d+2e), and 8 for each score.
func (o *Op) attentionFlops() int64 {
	in, grad := o.Ins(), o.Code == AttentionGrad
	if grad {
		in = in[1:]
	}
	q, k, v := in[0], in[1], in[2]
	d, e := int64(q.shape[3]), int64(v.shape[3])
	each := 2*(d+e) + 5
	if grad {
		each = 2*(3*d+2*e) + 8
	}
	n := int64(q.shape[0]*q.shape[1]*q.shape[2]) * int64(k.shape[2]) * each
	if o.Attr.Causal {
		n /= 2
	}
	return n
}

// multiFlops counts per element of a parameter: 2 for the sum of squares, 4 for SGD, 6 with momentum, 14 for AdamW.
func (o *Op) multiFlops() (flops int64) {
	each, group, first := int64(2), 1, 0
	switch {
	case o.Code == AdamW:
		each, group, first = 14, 4, 1
	case o.Code == SGD && o.Attr.Flag&Momentum != 0:
		each, group, first = 6, 3, 1
	case o.Code == SGD:
		each, group, first = 4, 2, 1
	}
	for i := first; i < o.NumIn(); i += group {
		flops += each * int64(o.In(i).size)
	}
	return flops
}

func (o *Op) bytes(out []*Type) (n int64) {
	for _, t := range out {
		n += distinct(t)
	}
	in := o.Ins()
	if o.Code == Gather || o.Code == Embedding { // of the table, only what is taken
		return n + distinct(out[0]) + distinct(in[1])
	}
	for _, t := range in {
		n += distinct(t)
	}
	return n
}

// distinct is the bytes of a type, without the repetitions of an expanded view.
func distinct(t *Type) int64 {
	n := int64(t.DType.Size())
	for i, d := range t.shape {
		if t.strides[i] != 0 || d == 0 {
			n *= int64(d)
		}
	}
	return n
}
