package autograd

import (
	"github.com/warpline-ml/warpline/internal/ir"
)

// written is the rule of an elementwise op whose row has a gradient for each operand as an expression. What the
// expressions name is saved.
func written(code ir.Code) *Rule {
	row := code.Row()
	parts := make([]partial, len(row.Gradient.Of))
	for i, text := range row.Gradient.Of {
		if text == "" {
			continue
		}
		e, err := ir.ParseExpr(text, len(parts))
		if err != nil {
			panic("autograd: the gradient of " + code.String() + ": " + err.Error()) // a mistake in the row
		}
		parts[i] = partial{savedOf(e.Uses(), len(parts)), func(b ir.B, c Call, g ir.Value) ir.Value {
			return b.Expr(e, c.Op().In(i), c.Params(), func(n ir.Name) ir.Value {
				switch n {
				case ir.NameG:
					return g
				case ir.NameOut:
					return c.Out(0)
				}
				return c.In(int(n - ir.NameX))
			})
		}}
	}
	return of(parts...)
}

// savedOf is what a set of names stands for.
func savedOf(names uint, operands int) (s Saves) {
	for i := range operands {
		if names>>(ir.NameX+ir.Name(i))&1 == 1 {
			s.In |= 1 << i
		}
	}
	if names>>ir.NameOut&1 == 1 {
		s.Out = 1
	}
	return s
}
