package conform

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// precise calls add for each precision below that of f32, where the cases are of that dtype.
func (g *gen) precise(add func(p ir.Precision)) {
	if g.dt != dtype.F32 {
		return
	}
	for _, p := range ir.Precisions() {
		if p != ir.Highest {
			add(p)
		}
	}
}

// inTF32 adds the case that a convolution of f32 is of TF32.
func (g *gen) inTF32(a ir.Attr, in ...operand) {
	if a.Precision = ir.High; g.dt == dtype.F32 {
		g.add("in TF32", a, ir.Params{}, in...)
	}
}
