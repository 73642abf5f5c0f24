package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareLSTM, ir.LSTMStep, ir.LSTMStepGrad)
}

// prepareLSTM plans a step of an LSTM, or its gradient, over cells in float32.
func prepareLSTM(b *builder) error {
	c := b.op.In(b.op.NumIn() - 1)
	if c.DType != dtype.F32 {
		return b.unsupported(c.DType)
	}
	var params []param
	for i := range b.outs {
		params = append(params, pointer(b.out(i)))
	}
	for i := range b.op.NumIn() {
		params = append(params, pointer(b.in(i)))
	}
	b.linear(suffixed(b.op.Code.String(), c.DType), c.Size(), 256, append(params, i64(c.Size()), i64(c.Dim(1)))...)
	return nil
}
