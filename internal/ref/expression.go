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
		at := element{c: c, values: make([]float64, e.ID()+1), known: make([]bool, e.ID()+1)}
		for at.i = range v {
			clear(at.known)
			v[at.i] = at.value(e)
		}
		return c.one(v)
	}
}

// element evaluates an expression at element i, each node once.
type element struct {
	c      *call
	i      int
	values []float64 // by the nodes' ID
	known  []bool
}

func (at *element) value(e *ir.Expr) float64 {
	if id := e.ID(); !at.known[id] {
		at.values[id], at.known[id] = at.compute(e), true
	}
	return at.values[e.ID()]
}

func (at *element) compute(e *ir.Expr) float64 {
	switch {
	case e.Name == ir.NameP || e.Name == ir.NameQ:
		return at.c.scalar(int(e.Name - ir.NameP))
	case e.Name != ir.NoName:
		return at.c.in[e.Name-ir.NameX].Data[at.i]
	case e.Code == ir.Invalid:
		return e.Number
	case e.Code == ir.Where:
		if test := e.Args[0]; Compare(test.Code, at.value(test.Args[0]), at.value(test.Args[1])) {
			return at.value(e.Args[1])
		}
		return at.value(e.Args[2])
	}
	return Word(e.Code, at.value(e.Args[0]), at.value(e.Args[len(e.Args)-1]))
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
