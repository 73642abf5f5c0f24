package tensor

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Precision is how exactly products of float32 values are computed: MatMul, Linear, Conv2d and their gradients. Sums and
// results are float32 in any.
type Precision uint8

// The precisions, by PyTorch's names.
const (
	Highest Precision = 1 + iota // every product in float32
	High                         // operands rounded to TF32, 10 bits of fraction, as the tensor cores of cards take them
	Medium                       // operands rounded to bfloat16, 7 bits of fraction; of convolutions as High
)

var precisionNames = [...]string{"unset", "highest", "high", "medium"}

// String is PyTorch's name.
func (p Precision) String() string {
	if int(p) >= len(precisionNames) {
		return fmt.Sprintf("precision(%d)", uint8(p))
	}
	return precisionNames[p]
}

// ParsePrecision reads PyTorch's names.
func ParsePrecision(name string) (Precision, error) {
	for p := Highest; int(p) < len(precisionNames); p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("precision %q: choose one of highest, high, medium", name)
}

// Products derives an env whose products of float32 values run in a precision, Highest where nothing is said; gradients run in
// that of the products that they are of. It is torch.set_float32_matmul_precision for what is computed in e, where
// convolutions belong to it. Values keep their dtypes: nothing else changes, and other dtypes are left alone. High is what
// cards are fast at; the CPU rounds as they do and then multiplies float32.
func (e *Env) Products(p Precision) *Env {
	if p < Highest || p > Medium {
		raise("Products", "use tensor.Highest, tensor.High or tensor.Medium", "there is no %s", p)
	}
	return e.with(func(c *Env) { c.products = p })
}

// precisely is an operation's attributes with the precision that e asks for its operands.
func (e *Env) precisely(code ir.Code, attr *ir.Attr, in []*Tensor) *ir.Attr {
	if !code.Row().Rounds() || in[0].DType() != dtype.F32 || in[1].DType() != dtype.F32 {
		return attr
	}
	a := *attr
	if a.Precision = ir.High; e.products == Medium && (code == ir.MatMul || code == ir.Linear) {
		a.Precision = ir.Medium
	}
	return &a
}
