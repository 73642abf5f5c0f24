package cuda

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// hugeOp is an operation on operands of more than 2³¹ elements.
type hugeOp struct {
	op      ir.Op
	lacking string // what the error says, if there is one
}

func hugeOps() []hugeOp {
	const over = 1<<31 + 40
	f := func(shape ...int) *ir.Type { return ir.Dense(dtype.F32, shape...) }
	ids := func(shape ...int) *ir.Type { return ir.Dense(dtype.I64, shape...) }
	half := func(shape ...int) *ir.Type { return ir.Dense(dtype.BF16, shape...) }
	turned := ir.Strided(dtype.F32, []int{1 << 16, 1<<15 + 1}, []int{1, 1 << 16})
	conv := ir.Conv{StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Groups: 1}.Attr()
	to := func(a ir.Attr, out *ir.Type) ir.Attr { a.Out = out; return a }
	pool := ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}.Attr()
	causal := ir.Attr{Causal: true}
	heads := half(64, 1<<10, 1<<9, 128)
	stats := f(64, 1<<10, 1<<9)
	return []hugeOp{
		{op: ir.New(ir.Add, ir.Attr{}, f(over), f(over))},
		{op: ir.New(ir.Add, ir.Attr{}, turned, turned.AsDense())},
		{op: ir.New(ir.Exp, ir.Attr{}, f(over))},
		{op: ir.New(ir.Where, ir.Attr{}, ir.Dense(dtype.Bool, over), f(over), f(over))},
		{op: ir.New(ir.Cast, ir.Attr{DType: dtype.BF16}, f(over))},
		{op: ir.New(ir.Copy, to(ir.Attr{}, turned.AsDense()), turned)},
		{op: ir.New(ir.Cat, ir.Attr{}, f(over), f(3), f(over))},
		{op: ir.New(ir.Pad, ir.Attr{Dims: [ir.MaxRank]int32{1, 1}}, f(over))},
		{op: ir.New(ir.Full, to(ir.Attr{}, f(over)))},
		{op: ir.New(ir.Iota, to(ir.Attr{}, f(over)))},
		{op: ir.New(ir.Normal, to(ir.Attr{}, f(over)))},
		{op: ir.New(ir.Dropout, ir.Attr{}, f(over))},
		{op: ir.New(ir.Sum, ir.Attr{Axes: 1}, f(over))},
		{op: ir.New(ir.Sum, ir.Attr{Axes: 1}, f(3, over))},
		{op: ir.New(ir.Sum, ir.Attr{Axes: 2}, f(over, 3))},
		{op: ir.New(ir.ArgMax, ir.Attr{}, f(over, 2))},
		{op: ir.New(ir.CumSum, ir.Attr{}, f(over))},
		{op: ir.New(ir.CumSum, ir.Attr{}, f(over, 2))},
		{op: ir.New(ir.CumSum, ir.Attr{Axis: 1}, f(over, 2))},
		{op: ir.New(ir.Softmax, ir.Attr{}, f(over, 3))},
		{op: ir.New(ir.Softmax, ir.Attr{}, f(3, most32))},
		{op: ir.New(ir.Softmax, ir.Attr{}, f(3, math.MaxInt32)), lacking: "rows of 2147483647 elements"},
		{op: ir.New(ir.CrossEntropy, ir.Attr{}, f(1<<20, 50257), ids(1<<20))},
		{op: ir.New(ir.CrossEntropyGrad, ir.Attr{}, half(1<<20, 50257), ids(1<<20), f(2, 1<<20), f(1<<20))},
		{op: ir.New(ir.LinearCrossEntropy, ir.Attr{Flag: ir.Total | ir.GradX | ir.GradW}, half(1<<20, 4096), half(50257, 4096), ids(1<<20))},
		{op: ir.New(ir.LinearCrossEntropyGrad, ir.Attr{Flag: ir.GradX | ir.GradW}, f(1<<17, 1<<14+1), f(1<<17, 1<<14+1), ids(1<<17), f(1<<17))},
		{op: ir.New(ir.LinearCrossEntropy, ir.Attr{}, half(over, 1), half(3, 1), ids(over)), lacking: "sizes over 2^28"},
		{op: ir.New(ir.LayerNorm, ir.Attr{}, f(1<<20, 4096), f(4096), f(4096))},
		{op: ir.New(ir.LayerNormGrad, ir.Attr{}, f(1<<20, 4096), f(1<<20, 4096), f(1<<20), f(1<<20), f(4096))},
		{op: ir.New(ir.LayerNormGrad, ir.Attr{}, f(2, most32), f(2, most32), f(2), f(2), f(most32))},
		{op: ir.New(ir.LayerNormGrad, ir.Attr{}, f(2, math.MaxInt32), f(2, math.MaxInt32), f(2), f(2), f(math.MaxInt32)), lacking: "rows of 2147483647 elements"},
		{op: ir.New(ir.BatchNorm, ir.Attr{}, f(1<<12, 64, 1<<14), f(64), f(64))},
		{op: ir.New(ir.MatMul, ir.Attr{}, half(1<<17, 1<<15), half(1<<15, 1<<16))},
		{op: ir.New(ir.MatMul, ir.Attr{}, f(70000, 300, 200), f(70000, 200, 300))},
		{op: ir.New(ir.Linear, ir.Attr{}, half(over, 2), half(3, 2)), lacking: "sizes over 2^28"},
		{op: ir.New(ir.Conv2d, conv, half(1<<10, 64, 256, 256), half(64, 64, 3, 3))},
		{op: ir.New(ir.Conv2dGradInput, to(conv, f(1<<10, 64, 256, 256)), f(1<<10, 64, 256, 256), f(64, 64, 3, 3))},
		{op: ir.New(ir.Conv2dGradWeight, to(conv, f(64, 64, 3, 3)), f(1<<10, 64, 256, 256), f(1<<10, 64, 256, 256))},
		{op: ir.New(ir.Conv2d, conv, f(1, 1, 1<<16, 1<<16), f(1, 1, 3, 3)), lacking: "over 2^31"},
		{op: ir.New(ir.MaxPool2d, pool, f(1, 3, 1<<16, 1<<16))},
		{op: ir.New(ir.MaxPool2dGrad, to(pool, f(1<<20, 64, 8, 8)), f(1<<20, 64, 4, 4), ids(1<<20, 64, 4, 4))},
		{op: ir.New(ir.Gather, ir.Attr{}, f(over), ids(over))},
		{op: ir.New(ir.ScatterAdd, ir.Attr{}, f(over), ids(70), f(70)), lacking: "at most 2^31-1"},
		{op: ir.New(ir.ScatterAdd, ir.Attr{}, f(3, over), ids(3, over), f(3, over))},
		{op: ir.New(ir.Embedding, ir.Attr{}, f(50257, 4096), ids(1<<20))},
		{op: ir.New(ir.EmbeddingGrad, to(ir.Attr{}, f(50257, 4096)), f(1<<20, 4096), ids(1<<20))},
		{op: ir.New(ir.EmbeddingGrad, to(ir.Attr{}, f(2, 1<<25)), f(70, 1<<25), ids(70)), lacking: "more than a card has"},
		{op: ir.New(ir.Attention, causal, heads, heads, heads)},
		{op: ir.New(ir.AttentionGrad, causal, heads, heads, heads, heads, heads, stats)},
		{op: ir.New(ir.SumSquares, ir.Attr{}, f(over), half(over))},
		{op: ir.New(ir.SGD, ir.Attr{}, f(), f(over), f(over))},
		{op: ir.New(ir.AdamW, ir.Attr{}, f(), f(over), f(over), f(over), f(over), ids())},
	}
}

// TestHuge plans what no test has the memory to run: every launch of more elements than 32 bits count is one that a card
// takes, or the engine says what it lacks.
func TestHuge(t *testing.T) {
	for _, c := range hugeOps() {
		_, err := planner().Prepare(c.op)
		switch lacking := errors.Is(err, device.ErrUnsupported); {
		case c.lacking == "" && err != nil:
			t.Errorf("%s of %v: %v", c.op.Code, c.op.Ins(), err)
		case c.lacking != "" && (!lacking || !strings.Contains(err.Error(), c.lacking)):
			t.Errorf("%s of %v: error %v, want one of %q", c.op.Code, c.op.Ins(), err, c.lacking)
		}
	}
}
