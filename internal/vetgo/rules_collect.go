package vetgo

import (
	"fmt"
	"go/ast"
	"go/types"

	"github.com/warpline-ml/warpline/internal/finding"
)

// keeper is a function of the package that puts one of its parameters behind what a place has that is there before it is called.
type keeper struct {
	fn    *types.Func
	at    store
	value types.Object // the parameter
	into  types.Object // the receiver, another parameter, or a variable of the package
}

// keepers are all of the package.
func (c *checker) keepers() (all []keeper) {
	c.stores(func(s store) {
		d, ok := c.function(s.stmt).(*ast.FuncDecl)
		if !ok || !s.collect {
			return
		}
		fn, _ := c.info.Defs[d.Name].(*types.Func)
		into, out := c.outside(s.to, d.Body)
		if fn == nil || !out {
			return
		}
		for _, v := range s.values {
			if o := c.object(ast.Unparen(v)); o != nil && len(c.defs[o]) == 0 && indexOf(fn, o) >= 0 {
				all = append(all, keeper{fn, s, o, into})
			}
		}
	})
	return all
}

// indexOf is which parameter of a function a variable is, or -1.
func indexOf(fn *types.Func, o types.Object) int {
	params := fn.Signature().Params()
	for i := range params.Len() {
		if params.At(i) == o {
			return i
		}
	}
	return -1
}

// keptByCalls is R06 where a method or function collects: h.add(loss).
func (c *checker) keptByCalls() {
	all := c.keepers()
	for _, n := range c.calls {
		for _, k := range all {
			if k.fn == n.fn {
				c.keptByCall(n, k)
			}
		}
	}
}

func (c *checker) keptByCall(n *call, k keeper) {
	i := indexOf(k.fn, k.value)
	if i >= len(n.expr.Args) || n.expr.Ellipsis.IsValid() || k.fn.Signature().Variadic() {
		return
	}
	arg := n.expr.Args[i]
	t := c.value(arg).turn
	if t == nil || c.turnAround(n.expr) == nil || !c.isOutside(n, k, t) {
		return
	}
	name := c.text(k.at.to)
	out := say{
		at: n.expr, title: fmt.Sprintf("%s collects values that end with their %s", name, t.called()), sure: finding.High, also: related(k.at.stmt, "is where they go"),
		fix:    fmt.Sprintf("keep %s: %s.Keep(), or its number: %s.Item() where one wait does not matter", c.text(arg), c.text(arg), c.text(arg)),
		gain:   "the values are there when they are asked for: a value is released when its " + t.called() + " ends, and reading it then is an error",
		unless: name + " being read and emptied in the same turn",
	}
	if isTensor(c.info.TypeOf(arg)) {
		out.edits = insert(arg.End(), ".Keep()")
		out.fix = fmt.Sprintf("write %s.Keep(), before Backward", c.text(arg))
	}
	c.say(out)
}

// isOutside tells whether a place that a call collects into is there before a turn, and after it.
func (c *checker) isOutside(n *call, k keeper, t *turn) bool {
	place := n.recv
	if i := indexOf(k.fn, k.into); i >= 0 {
		place = n.expr.Args[i]
	} else if k.into.Parent() == c.pass.Pkg.Scope() {
		return true
	} else if place == nil || k.fn.Signature().Recv() != k.into {
		return false
	}
	if at, ok := ast.Unparen(place).(*ast.UnaryExpr); ok {
		place = at.X
	}
	_, out := c.outside(place, t.node)
	return out
}
