package vetgo

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// movedField is b.F = b.F.To(env), or by tensor.Move: a field of a variable that is moved by itself.
type movedField struct {
	at   *ast.AssignStmt
	of   types.Object // b
	to   ast.Expr     // env
	name string       // F
}

// movedInPart: R01, a struct of which some tensors are moved one by one, and others are used where they were.
func (c *checker) movedInPart() {
	moved := map[types.Object][]movedField{}
	var order []types.Object
	for _, a := range c.assigns {
		for i := range min(len(a.Lhs), len(a.Rhs)) {
			m, ok := c.movedField(a, a.Lhs[i], a.Rhs[i])
			if !ok {
				continue
			}
			if moved[m.of] == nil {
				order = append(order, m.of)
			}
			moved[m.of] = append(moved[m.of], m)
		}
	}
	for _, o := range order {
		all := moved[o]
		for _, field := range c.left(o, all) {
			c.leftBehind(all, field)
		}
	}
}

// movedField takes what is assigned as the move of a field.
func (c *checker) movedField(a *ast.AssignStmt, left, right ast.Expr) (m movedField, ok bool) {
	to, ok := left.(*ast.SelectorExpr)
	move := c.callOf(right, "tensor.Tensor.To", "tensor.Move")
	if !ok || move == nil {
		return m, false
	}
	from, env := move.recv, move.expr.Args[0]
	if move.recv == nil {
		from = move.expr.Args[1]
	}
	o := c.object(to.X)
	if o == nil || c.text(from) != c.text(to) || !isTensor(c.info.TypeOf(to)) {
		return m, false
	}
	return movedField{a, o, env, to.Sel.Name}, true
}

// left are the tensors that a variable has beside those that are moved, as far as it has been given any.
func (c *checker) left(o types.Object, moved []movedField) (names []string) {
	t := o.Type()
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || slices.ContainsFunc(c.defs[o], func(d def) bool { return d.at.Pos() > moved[0].at.Pos() }) {
		return nil
	}
	for f := range s.Fields() {
		if isTensor(f.Type()) && c.given(o, f.Name()) && !slices.ContainsFunc(moved, func(m movedField) bool { return m.name == f.Name() }) && !c.setsField(o, f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names
}

// given tells whether a field may be set by the literal of which a variable is made; what is made elsewhere may have all.
func (c *checker) given(o types.Object, name string) bool {
	return !slices.ContainsFunc(c.defs[o], func(d def) bool {
		e := d.value
		if ptr, ok := e.(*ast.UnaryExpr); ok {
			e = ptr.X
		}
		lit, ok := e.(*ast.CompositeLit)
		keyed := func(x ast.Expr) bool {
			kv, ok := x.(*ast.KeyValueExpr)
			return !ok || c.text(kv.Key) == name
		}
		return ok && !slices.ContainsFunc(lit.Elts, keyed)
	})
}

// setsField tells whether something is assigned to a field of a variable.
func (c *checker) setsField(o types.Object, name string) bool {
	return slices.ContainsFunc(c.assigns, func(a *ast.AssignStmt) bool {
		return slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
			s, ok := e.(*ast.SelectorExpr)
			return ok && s.Sel.Name == name && c.object(s.X) == o
		})
	})
}

// leftBehind tells of a field that is used behind the moves of others.
func (c *checker) leftBehind(moved []movedField, field string) {
	last := moved[len(moved)-1]
	name := last.of.Name()
	for _, u := range c.uses[last.of] {
		if u.Pos() < last.at.End() || c.function(u) != c.function(last.at) || !c.meets(u, field) {
			continue
		}
		env := c.text(last.to)
		var others []string
		for _, m := range moved {
			others = append(others, name+"."+m.name)
		}
		c.say(say{
			at: moved[0].at, title: fmt.Sprintf("%s.%s stays where it was, while %s moves", name, field, strings.Join(others, " and ")), sure: finding.High,
			also: related(u, "is used with what was moved"),
			fix:  fmt.Sprintf("%[1]s = tensor.Move(%[2]s, %[1]s), which moves all of it", name, env), gain: "the program runs on a device other than the host",
			unless: fmt.Sprintf("%s.%s being on %s before", name, field, env),
		})
		return
	}
}

// meets tells whether a use of a variable brings a field to others: as an operand by itself, or within the whole. What only reads it
// may do so on the host.
func (c *checker) meets(u *ast.Ident, field string) bool {
	at := ast.Expr(u)
	if s, ok := c.parents[u].(*ast.SelectorExpr); ok && s.X == u {
		if s.Sel.Name != field {
			return false
		}
		at = s
	}
	call, ok := c.parents[at].(*ast.CallExpr)
	if !ok || !slices.Contains(call.Args, at) {
		return false
	}
	n := c.byExpr[call]
	return n != nil && !n.is("tensor.Move") && (n.ours() || at == u && n.fn.Pkg() == c.pass.Pkg)
}
