// Package autograd has the gradient rule of every differentiable op code: a table of functions over [ir.Op] that build
// the gradients from simpler ops through an [ir.Builder]. It knows nothing of tensors; tensor, plan and graph supply
// the builder.
package autograd

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Call is one use of a rule: the recorded op, what was saved of it, and the gradients that reached its results.
type Call interface {
	Op() *ir.Op
	Params() *ir.Params
	In(i int) ir.Value   // operand i, which the rule's Save named
	Out(i int) ir.Value  // result i, which the rule's Save named
	Grad(i int) ir.Value // gradient of result i; nil when none reached it
	Want(i int) bool     // whether operand i wants a gradient
}

// Wider is a [Call] that may take the gradient of an operand of 16 bits in its [ir.Wide] dtype: where the operand is a cast
// from that, whose own gradient would only widen it.
type Wider interface{ Wider(i int) bool }

// Saves is what a rule needs kept from the forward run: bit sets of operands and results.
type Saves struct{ In, Out uint64 }

// Rule is the gradient of one op code.
type Rule struct {
	// Save names what Grad will ask for, given the operands that want a gradient. Nil: nothing.
	Save func(op *ir.Op, want uint64) Saves
	// Grad returns a gradient for each operand, in order: nil where none is wanted or none exists. Each has the
	// operand's shape and dtype.
	Grad func(b ir.B, c Call) []ir.Value
}

// Of returns the rule of a code, or nil when it has none (comparisons, integer results, optimizer updates).
func Of(code ir.Code) *Rule { return rules[code] }

// partial is the gradient of one operand: what it needs of the forward run, and how it follows from the gradient g of
// result 0. A nil grad means that none exists.
type partial struct {
	save Saves
	grad gradient
}

type gradient = func(b ir.B, c Call, g ir.Value) ir.Value

// What most partials need.
var (
	nothing = Saves{}
	needX   = Saves{In: 1 << 0}
	needY   = Saves{In: 1 << 1}
	needXY  = Saves{In: 1<<0 | 1<<1}
	needOut = Saves{Out: 1 << 0}
)

// of makes the rule of an op with one floating result from the partials of its operands. Operands that are not floating
// get no gradient.
func of(parts ...partial) *Rule {
	return &Rule{
		Save: func(_ *ir.Op, want uint64) (s Saves) {
			for i, p := range parts {
				if want>>i&1 == 1 {
					s.In |= p.save.In
					s.Out |= p.save.Out
				}
			}
			return s
		},
		Grad: func(b ir.B, c Call) []ir.Value {
			op := c.Op()
			grads := make([]ir.Value, op.NumIn())
			g := c.Grad(0)
			if g == nil {
				return grads
			}
			for i := range grads {
				if f := parts[i].grad; f != nil && wants(c, i) {
					grads[i] = f(b, c, g)
				}
			}
			return grads
		},
	}
}

// wants reports whether operand i is to get a gradient.
func wants(c Call, i int) bool { return c.Want(i) && c.Op().In(i).DType.IsFloat() }

// fromY is the rule of a one-operand op whose gradient follows from g and the result.
func fromY(f func(b ir.B, g, y ir.Value) ir.Value) *Rule {
	return of(partial{needOut, func(b ir.B, c Call, g ir.Value) ir.Value { return f(b, g, c.Out(0)) }})
}

// fromG is the rule of a one-operand op whose gradient follows from g alone.
func fromG(f gradient) *Rule { return of(partial{nothing, f}) }

func pass(_ ir.B, _ Call, g ir.Value) ir.Value { return g }

// again is the gradient of an op that is its own transpose: the same op on g.
func again(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, c.Op().Code, c.Op().Attr, *c.Params(), g)
}

// emit is Emit of an op with one result.
func emit(b ir.B, code ir.Code, attr ir.Attr, p ir.Params, in ...ir.Value) ir.Value {
	return b.One(code, attr, p, in...)
}

// param is launch parameter i as a number.
func param(c Call, i int) float64 { return math.Float64frombits(c.Params().Value[i]) }
