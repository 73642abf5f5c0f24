package ref

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Value != "" && !code.Row().ByHand {
			set(written(code), code)
		}
	}
}

// byHand reports an elementwise op whose function of numbers is in this package.
func byHand(code ir.Code) bool { return unaryFloat[code] != nil || binaryFloat[code] != nil }

// written evaluates the value in an op's row, node by node.
func written(code ir.Code) eval {
	e, err := code.ValueExpr(byHand)
	if err != nil {
		panic("ref: " + code.String() + ": " + err.Error()) // a mistake in the row
	}
	return func(c *call) ([]Array, error) {
		v := make([]float64, len(c.in[0].Data))
		for i := range v {
			v[i] = c.value(e, i)
		}
		return c.one(v)
	}
}

// value is an expression at element i.
func (c *call) value(e *ir.Expr, i int) float64 {
	switch {
	case e.Name == ir.NameP || e.Name == ir.NameQ:
		return c.scalar(int(e.Name - ir.NameP))
	case e.Name != ir.NoName:
		return c.in[e.Name-ir.NameX].Data[i]
	case e.Code == ir.Invalid:
		return e.Number
	case e.Code == ir.Where:
		if test := e.Args[0]; compare(test.Code, c.value(test.Args[0], i), c.value(test.Args[1], i)) {
			return c.value(e.Args[1], i)
		}
		return c.value(e.Args[2], i)
	}
	return Word(e.Code, c.value(e.Args[0], i), c.value(e.Args[len(e.Args)-1], i))
}

// Word is the function of an elementwise op without parameters at numbers; y counts where it has two operands. It is NaN
// for an op that has no such function here.
func Word(code ir.Code, x, y float64) float64 {
	if f := unaryFloat[code]; f != nil {
		return f(x)
	}
	if f := binaryFloat[code]; f != nil {
		return f(x, y)
	}
	return math.NaN()
}
