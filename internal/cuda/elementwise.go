package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareArithmetic, ir.Neg, ir.Abs, ir.Sign, ir.Floor, ir.Ceil, ir.Round, ir.Trunc, ir.Sqrt, ir.Rsqrt, ir.ReLU, ir.Affine, ir.Clamp,
		ir.Axpy, ir.Lerp, ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Rem, ir.Maximum, ir.Minimum, ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.ReLUGrad,
		ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight, ir.GCD)
	offer(prepareMath, ir.Exp, ir.Expm1, ir.Log, ir.Log1p, ir.Sin, ir.Cos, ir.Tanh, ir.Sigmoid, ir.Erf, ir.Pow, ir.PowScalar, ir.GELU, ir.GELUTanh,
		ir.SiLU, ir.GELUGrad, ir.GELUTanhGrad, ir.SiLUGrad)
	offer(prepareLogic, ir.Not, ir.And, ir.Or, ir.Xor)
	offer(prepareWhere, ir.Where)
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if row := code.Row(); row.Value != "" && !row.ByHand {
			offer(prepareMath, code)
		}
	}
}

// The elements that a thread of a kernel takes at once, as in the kernels' sources: vectors of 16 bytes, or fewer
// elements where they are bytes or the arithmetic is long.

func vectorOf(size int) int { return min(16/size, 8) }

func mathVector(size int) int {
	if size == 8 {
		return 1
	}
	return 4
}

func prepareArithmetic(b *builder) error {
	dt := b.op.In(0).DType
	return b.elementwise(suffixed(b.op.Code.String(), dt), vectorOf(dt.Size()), b.elementwiseParams(dt)...)
}

func prepareMath(b *builder) error {
	dt := b.op.In(0).DType
	return b.elementwise(suffixed(b.op.Code.String(), dt), mathVector(dt.Size()), b.elementwiseParams(dt)...)
}

// prepareLogic avoids C++'s names for the operators.
func prepareLogic(b *builder) error {
	return b.elementwise(suffixed("logical_"+b.op.Code.String(), dtype.Bool), vectorOf(1))
}

func prepareWhere(b *builder) error {
	size := b.outs[0].DType.Size()
	return b.elementwise(bySize("where", size), vectorOf(size))
}

// elementwiseParams passes the launch parameters in the type that the op computes in, those of sums also from cells. Clamp
// takes float64, whose bounds it moves into the range of an integer type.
func (b *builder) elementwiseParams(dt dtype.DType) (p []param) {
	for i := range b.op.Code.NumParams() {
		switch b.op.Code {
		case ir.Affine, ir.Axpy, ir.Lerp:
			p = append(p, number(i, dt))
		case ir.Clamp:
			p = append(p, word(i))
		default:
			p = append(p, scalar(i, dt))
		}
	}
	return p
}

// elementwise plans a kernel over operands of any strides with a row-major result; more are the parameters after the
// layout. Large transposed operands are made row-major first: the kernels would read a memory sector per element.
func (b *builder) elementwise(kernel string, width int, more ...param) error {
	if b.outs[0].Size() == 0 {
		return nil
	}
	types := append([]*ir.Type(nil), b.op.Ins()...)
	refs := make([]ref, len(types))
	for i, t := range types {
		refs[i] = b.in(i)
		if _, ok := turnOf(t.AsDense(), t); ok && t.Size() >= largeView {
			refs[i], types[i] = b.scratch(t.Bytes()), t.AsDense()
			b.copy(refs[i], types[i], b.in(i), t)
		}
	}
	l := layoutOf(types...)
	for _, p := range l.parts(mostElements) {
		params := []param{pointer(b.out(0).at(bytesOf(b.outs[0], p.out)))}
		for i, t := range types {
			params = append(params, pointer(refs[i].at(bytesOf(t, p.at[i]))))
		}
		chunks, _ := p.chunks(width)
		b.linear(kernel, chunks, 256, append(append(params, p.param(width)), more...)...)
	}
	return b.err
}

// largeView is from how many elements on a transposed operand is worth a pass of its own.
const largeView = 1 << 14

// bytesOf is the size of n elements.
func bytesOf(t *ir.Type, n int) int64 { return int64(n) * int64(t.DType.Size()) }
