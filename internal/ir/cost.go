package ir

import "math/bits"

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

func (o *Op) flops(out []*Type) int64 {
	if f := table[o.Code].flops; f != nil {
		return f(o, out)
	}
	return 0
}

// counted is the formula of an op's floating-point operations.
type counted = func(o *Op, out []*Type) int64

// perResult is n operations per element of the first result.
func perResult(n int64) counted {
	return func(_ *Op, out []*Type) int64 { return n * int64(out[0].size) }
}

// perOperand is n operations per element of the first operand, for ops that reduce it.
func perOperand(n int64) counted {
	return func(o *Op, _ []*Type) int64 { return n * int64(o.In(0).size) }
}

// perWindow is an operation for each place of a window over each element of the result, or of its gradient.
func perWindow(grad bool) counted {
	return func(o *Op, out []*Type) int64 {
		places := out[0]
		if grad {
			places = o.In(0)
		}
		return int64(places.size * o.Attr.Pool().KernelH * o.Attr.Pool().KernelW)
	}
}

func matMulFlops(o *Op, out []*Type) int64 { return 2 * int64(out[0].size) * int64(o.In(0).Dim(-1)) }

func linearFlops(o *Op, out []*Type) int64 {
	return matMulFlops(o, out) + int64(out[0].size)*(int64(o.NumIn()-2)+actFlops[o.Attr.Act])
}

// linearCrossEntropyFlops is 2·n·c·k for the logits and for each gradient that is asked for, and for each logit 4 of its loss and 4 of its
// gradient.
func linearCrossEntropyFlops(o *Op, _ []*Type) int64 {
	logits, k := int64(o.In(2).size)*int64(o.In(1).shape[0]), int64(o.In(0).shape[1])
	each := 2*k + 4
	if asked := bits.OnesCount16(uint16(o.Attr.Flag & (GradX | GradW))); asked > 0 {
		each += int64(asked)*2*k + 4
	}
	return logits * each
}

func biasGradFlops(o *Op, _ []*Type) int64 {
	n := int64(1)
	if a := o.Attr.Act; a != NoAct {
		n += table[a.GradCode()].flops(o, []*Type{o.In(0)}) / max(int64(o.In(0).size), 1)
	}
	return n * int64(o.In(0).size)
}

func conv2dFlops(o *Op, out []*Type) int64 {
	return convFlops(int64(out[0].size), o.In(1)) + int64(out[0].size)*int64(o.NumIn()-2)
}

func convGradInputFlops(o *Op, _ []*Type) int64 { return convFlops(int64(o.In(0).size), o.In(1)) }

func convGradWeightFlops(o *Op, _ []*Type) int64 { return convFlops(int64(o.In(0).size), o.Attr.Out) }

func scatterFlops(o *Op, _ []*Type) int64 { return int64(o.In(1).size) }

var actFlops = [...]int64{NoAct: 0, ActReLU: 1, ActGELU: 5, ActGELUTanh: 8, ActSiLU: 2}

// convFlops is 2·c/g·kh·kw for each of the result's elements; both gradients take as many.
func convFlops(results int64, w *Type) int64 {
	return 2 * results * int64(w.shape[1]*w.shape[2]*w.shape[3])
}

// attentionFlops is 2·b·h·t·s·(d+e) for the two products and 5 for each score (scale, softmax); a causal one computes
// half of them. The gradient has five products: 2·b·h·t·s·(3d+2e), and 8 for each score.
func attentionFlops(o *Op, _ []*Type) int64 {
	in, grad := o.Ins(), o.Code == AttentionGrad
	if grad {
		in = in[1:]
	}
	q, k, v := in[0], in[1], in[2]
	queries := int64(q.shape[0] * q.shape[1] * q.shape[2])
	return headFlops(queries, int64(k.shape[2]), int64(q.shape[3]), int64(v.shape[3]), grad, o.Attr.Causal)
}

func selfAttentionFlops(o *Op, _ []*Type) int64 {
	qkv, grad := o.In(0), o.Code == SelfAttentionGrad
	if grad {
		qkv = o.In(1)
	}
	t, d := int64(qkv.shape[1]), int64(qkv.shape[4])
	return headFlops(int64(qkv.shape[0]*qkv.shape[3])*t, t, d, d, grad, o.Attr.Causal)
}

func headFlops(queries, keys, d, e int64, grad, causal bool) int64 {
	each := 2*(d+e) + 5
	if grad {
		each = 2*(3*d+2*e) + 8
	}
	n := queries * keys * each
	if causal {
		n /= 2
	}
	return n
}

// multiFlops counts per element of a parameter: 2 for a sum of squares or a norm, 4 for SGD, 6 with momentum, 14 for AdamW, 32 with codes.
func multiFlops(o *Op, _ []*Type) (flops int64) {
	each, group, first := int64(2), 1, 0
	switch {
	case o.Code == GradNorm:
		first = 2
	case o.Code == AdamW:
		each, group, first = 14, 5, 1
	case o.Code == Adam8bit:
		each, group, first = 32, Adam8bitGroup, 2
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
	if table[o.Code].takes {
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
