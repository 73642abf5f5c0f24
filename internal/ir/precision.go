package ir

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
)

// Precision is what becomes of the f32 operands of a product before they are multiplied; sums and results stay f32. The
// bias of a Linear or a convolution is no such operand.
type Precision uint8

// The precisions, by the names of torch.set_float32_matmul_precision.
const (
	Highest Precision = iota // nothing
	High                     // rounded to TF32, 10 bits of fraction, ties away from zero, as cvt.rna.tf32.f32 does
	Medium                   // rounded to bf16, 7 bits of fraction, ties to even; not of convolutions
)

var precisionNames = [...]string{"highest", "high", "medium"}

// Precisions are all of them, [Highest] first.
func Precisions() (list []Precision) {
	for i := range precisionNames {
		list = append(list, Precision(i))
	}
	return list
}

// String is the name in the text form.
func (p Precision) String() string {
	if int(p) >= len(precisionNames) {
		return fmt.Sprintf("precision(%d)", uint8(p))
	}
	return precisionNames[p]
}

// Rounds reports whether products of a code take a precision.
func (r *Row) Rounds() bool { return r.reads.fields&fieldPrecision != 0 }

// checkPrecision reports one that does not exist, or that is set for operands that it says nothing of.
func (o *Op) checkPrecision() error {
	p := o.Attr.Precision
	switch {
	case p == Highest:
		return nil
	case int(p) >= len(precisionNames):
		return fmt.Errorf("there is no precision %d", p)
	case p == Medium && o.Code != MatMul && o.Code != Linear:
		return fmt.Errorf("precision %s is of products of matrices", p)
	case o.In(0).DType != dtype.F32:
		return badDType("precision %s of products of %s: it is of f32", p, o.In(0).DType)
	}
	return nil
}
