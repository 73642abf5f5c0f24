package vetgo

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/finding"
)

// store is a value that is put where it outlives a statement: an element or field, the end of a slice, a variable.
type store struct {
	stmt    *ast.AssignStmt
	to      ast.Expr
	values  []ast.Expr
	collect bool // the place has those of the turns before too
}

// stores are all of the package, but for those of new variables.
func (c *checker) stores(f func(store)) {
	for _, s := range c.assigns {
		if s.Tok != token.ASSIGN {
			continue
		}
		for i, to := range s.Lhs {
			if !holdsTensors(c.info.TypeOf(to)) && !isBatch(c.info.TypeOf(to)) {
				continue
			}
			value := s.Rhs[min(i, len(s.Rhs)-1)]
			st := store{stmt: s, to: to, values: []ast.Expr{value}}
			if args := c.appended(value); args != nil {
				st.values, st.collect = args, true
			}
			if x, ok := ast.Unparen(to).(*ast.IndexExpr); ok && !st.collect {
				st.collect = c.varies(x.Index)
			}
			f(st)
		}
	}
}

// appended are the values that an append puts behind what is there.
func (c *checker) appended(e ast.Expr) []ast.Expr {
	x, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(x.Args) < 2 {
		return nil
	}
	if b, ok := x.Fun.(*ast.Ident); ok && c.info.Uses[b] == types.Universe.Lookup("append") {
		return x.Args[1:]
	}
	return nil
}

// varies tells whether an index may be another one in the next turn.
func (c *checker) varies(index ast.Expr) bool { return c.info.Types[index].Value == nil }

// kept: R06.
func (c *checker) kept() {
	c.stores(func(s store) {
		if sum := c.summed(s); sum != nil {
			c.sum(s, sum)
			return
		}
		t := c.turnAround(s.stmt)
		if t == nil || !s.collect {
			return
		}
		if _, out := c.outside(s.to, t.node); !out {
			return
		}
		for _, v := range s.values {
			if in := c.value(v).turn; in != nil && c.isLeft(s.to, in) {
				c.say(c.goneWith(s, v, in))
			}
		}
	})
	c.sumsInPlace()
	c.keptByCalls()
}

// isLeft tells whether a place is there when a turn ends.
func (c *checker) isLeft(to ast.Expr, t *turn) bool {
	_, out := c.outside(to, t.node)
	return out
}

// goneWith is what is said of a value that is kept beyond its turn.
func (c *checker) goneWith(s store, v ast.Expr, t *turn) say {
	name := c.text(s.to)
	out := say{
		at: s.stmt, title: fmt.Sprintf("%s collects values that end with their %s", name, t.called()),
		fix:  fmt.Sprintf("keep %s: %s.Keep(), or its number: %s.Item() where one wait does not matter", c.text(v), c.text(v), c.text(v)),
		gain: "the values are there when they are asked for: a value is released when its " + t.called() + " ends, and reading it then is an error",
		sure: finding.High, unless: name + " being read and emptied in the same turn",
	}
	if isTensor(c.info.TypeOf(v)) {
		out.edits = insert(v.End(), ".Keep()")
		out.fix = fmt.Sprintf("write %s.Keep(), before Backward", c.text(v))
	}
	return out
}

// adding are methods by which values are added up.
var adding = []string{"tensor.Tensor.Add", "tensor.Tensor.AddScaled", "tensor.Tensor.Maximum", "tensor.Tensor.Minimum"}

// summed is the call that adds to what is there: total = total.Add(loss), or the other way round.
func (c *checker) summed(s store) *call {
	add := c.callOf(s.values[0], adding...)
	if add == nil || s.collect {
		return nil
	}
	to := c.text(s.to)
	if c.text(add.recv) == to || c.text(add.expr.Args[0]) == to {
		return add
	}
	return nil
}

// sum is about a sum of tensors that goes on from turn to turn.
func (c *checker) sum(s store, add *call) {
	o, ok := c.outside(s.to, s.stmt)
	if !ok {
		return
	}
	other := add.expr.Args[0]
	if c.text(other) == c.text(s.to) {
		other = add.recv
	}
	v := c.value(other)
	t, loop := c.turnAround(s.stmt), c.loopAround(s.stmt)
	out := say{at: s.stmt, sure: finding.High, unless: c.text(s.to) + " going backward in another function"}
	switch {
	case t != nil && t.kind != block && v.turn == t && c.isLeft(s.to, t):
		out.title = fmt.Sprintf("%s adds up values of one %s after another, and ends with the first", c.text(s.to), t.called())
		out.fix = fmt.Sprintf("write %s.Keep(), or add to a metric.Mean", c.text(other))
		out.gain = "the sum is there at the end: what is made of a batch's values is released with the batch"
		out.edits = insert(other.End(), ".Keep()")
	case v.turn == nil && v.graph && loop != nil && c.isBefore(o, loop) && c.trainsIn(loop) && !c.leadsBack(o):
		out.title = fmt.Sprintf("%s adds up losses with their graphs, which grow from step to step", c.text(s.to))
		out.fix = fmt.Sprintf("write %s.Detach()", c.text(other))
		out.gain = "the memory of all steps before"
		out.edits = insert(other.End(), ".Detach()")
	default:
		return
	}
	c.say(out)
}

func (c *checker) isBefore(o types.Object, loop ast.Node) bool {
	return o.Pos() < loop.Pos() || o.Pos() > loop.End()
}

// leadsBack tells whether a variable goes backward, or into something that may.
func (c *checker) leadsBack(o types.Object) bool {
	for _, u := range c.uses[o] {
		found := false
		c.climb(u, func(up ast.Node) bool {
			if x, ok := up.(*ast.CallExpr); ok {
				in := c.byExpr[x]
				if in != nil && (isBackward(in) || !in.ours() && in.fn.Pkg() != nil && in.fn.Pkg() == c.pass.Pkg) {
					found = true
				}
			}
			if _, ok := up.(*ast.ReturnStmt); ok {
				found = true
			}
			_, stmt := up.(ast.Stmt)
			return !found && !stmt
		})
		if found {
			return true
		}
	}
	return false
}

// sumsInPlace are total.AddInPlace(loss), which goes on with the graph of loss.
func (c *checker) sumsInPlace() {
	for _, add := range c.calls {
		if !add.is("tensor.Tensor.AddInPlace", "tensor.Tensor.AddScaledInPlace") {
			continue
		}
		loop := c.loopAround(add.expr)
		o, ok := c.outside(add.recv, add.expr)
		if loop == nil || !ok || !c.isBefore(o, loop) || !c.trainsIn(loop) || c.leadsBack(o) {
			continue
		}
		x := add.expr.Args[0]
		if !c.value(x).graph && !c.wentBack(x) {
			continue
		}
		c.say(say{
			at: add.expr, title: fmt.Sprintf("%s takes the graph of %s on, from step to step", c.text(add.recv), c.text(x)),
			fix: fmt.Sprintf("write %s.Detach()", c.text(x)), edits: insert(x.End(), ".Detach()"), sure: finding.High,
			gain: "the memory of all steps before", unless: c.text(add.recv) + " going backward in another function",
		})
	}
}

// wentBack tells whether a variable itself goes backward in its function.
func (c *checker) wentBack(e ast.Expr) bool {
	o := c.object(ast.Unparen(e))
	if o == nil {
		return false
	}
	for _, b := range c.calls {
		if isBackward(b) && b.recv != nil && c.object(ast.Unparen(b.lossOf())) == o {
			return true
		}
	}
	return false
}

// lossOf is what goes backward.
func (b *call) lossOf() ast.Expr {
	if b.is("optim.LossScaler.Backward") && len(b.expr.Args) > 0 {
		return b.expr.Args[0]
	}
	return b.recv
}

// state: V02, a value of a turn that the next turn begins with.
func (c *checker) state() {
	c.stores(func(s store) {
		if s.collect || c.summed(s) != nil {
			return
		}
		o := c.object(ast.Unparen(s.to))
		if o == nil {
			return
		}
		v := c.value(s.values[0])
		if t := c.turnAround(s.stmt); t != nil && t.kind != block {
			if v.turn == t && c.isBefore(o, t.node) {
				c.carried(s, o, t.node, t)
			}
			return
		}
		loop := c.loopAround(s.stmt)
		if loop == nil || !v.graph || !c.isBefore(o, loop) || !c.stepsIn(s.stmt, loop) {
			return
		}
		c.carried(s, o, loop, nil)
	})
}

// stepsIn tells whether a step is made in the turn of a loop that a statement is in, and not only around it.
func (c *checker) stepsIn(s ast.Node, loop ast.Node) bool {
	for _, b := range c.calls {
		if isBackward(b) && within(b.expr, loop) && c.loopAround(b.expr) == loop && c.function(b.expr) == c.function(s) {
			return true
		}
	}
	return false
}

// carried tells of a variable whose value of the turn before is used in a turn.
func (c *checker) carried(s store, o types.Object, loop ast.Node, t *turn) {
	used := c.usedAhead(o, s.stmt, loop)
	if used == nil {
		return
	}
	name := o.Name()
	out := say{
		at: s.stmt, title: fmt.Sprintf("%s goes on into the next turn with its graph", name), sure: finding.High,
		fix:  "go on with its Detach(), which is taken before Backward",
		gain: "Backward of the next turn ends where that turn began", unless: "nothing of the next turn going backward",
		also: related(used, "the value of the turn before is used here"),
	}
	if t != nil {
		out.title = fmt.Sprintf("%s goes on into the next %s, and is released with its own", name, t.called())
		out.fix = fmt.Sprintf("take a tensor.Slot: slot.Set(%s) before Backward, slot.Get(b.Env) in the next turn", name)
		out.gain = "the value is there in the next turn, without its graph"
		out.unless = "the value being made elsewhere, and only returned in this turn"
	}
	c.say(out)
}

// usedAhead is where a variable is used in a turn before it is assigned there.
func (c *checker) usedAhead(o types.Object, s ast.Stmt, loop ast.Node) (used ast.Node) {
	first := s.End()
	for _, d := range c.defs[o] {
		if within(d.at, loop) && d.at != loop && d.at.End() < first && c.unconditional(d.at, loop) {
			first = d.at.End() // it has a value of this turn from here on
		}
	}
	for _, u := range c.uses[o] {
		if !within(u, loop) || u.Pos() >= first || c.isAssigned(u) || c.isCompared(u) {
			continue
		}
		if used == nil || u.Pos() < used.Pos() {
			used = u
		}
	}
	return used
}

// unconditional tells whether a statement is executed in every turn of a loop.
func (c *checker) unconditional(n, loop ast.Node) bool {
	always := true
	c.climb(n, func(up ast.Node) bool {
		switch up.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.CommClause:
			always = false
		}
		return always && up != loop
	})
	return always
}

func (c *checker) isAssigned(u *ast.Ident) bool {
	s, ok := c.parents[u].(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, e := range s.Lhs {
		if e == u {
			return true
		}
	}
	return false
}

// isCompared tells whether a variable is only compared, with nil for one.
func (c *checker) isCompared(u *ast.Ident) bool {
	b, ok := c.parents[u].(*ast.BinaryExpr)
	return ok && (b.Op == token.EQL || b.Op == token.NEQ)
}

// afterTurn: V27, a value that is used when its turn is over.
func (c *checker) afterTurn() {
	c.stores(func(s store) {
		o := c.object(ast.Unparen(s.to))
		if o == nil || s.collect || c.summed(s) != nil {
			return
		}
		t := c.value(s.values[0]).turn
		if t == nil || !within(s.stmt, t.node) || !c.isBefore(o, t.node) || c.reassigned(o, s, t) || c.keptEach(o, s, t) {
			return
		}
		for _, u := range c.uses[o] {
			if u.Pos() < t.node.End() || c.isAssigned(u) || c.isCompared(u) || c.redefined(o, t.node.End(), u) || c.function(u) != c.function(t.node) {
				continue
			}
			v := s.values[0]
			out := say{
				at: u, title: fmt.Sprintf("%s is used when its %s is over, with which it was released", o.Name(), t.called()), sure: finding.High,
				fix:  fmt.Sprintf("take it out in line %d: %s.Keep(), before Backward; or its numbers: Item, Floats", c.line(s.stmt.Pos()), c.text(v)),
				gain: "the program goes on: reading a released value is an error", unless: "the loop being left before it is assigned",
				also: related(s.stmt, "made in the "+t.called()),
			}
			if _, many := c.info.TypeOf(v).Underlying().(*types.Slice); many {
				out.fix = fmt.Sprintf("take out each tensor of line %d by its Keep(), before Backward; or its numbers: Item, Floats", c.line(s.stmt.Pos()))
			}
			if isTensor(c.info.TypeOf(v)) && len(s.stmt.Lhs) == len(s.stmt.Rhs) {
				out.edits = insert(v.End(), ".Keep()")
			}
			c.say(out)
			return
		}
	})
}

// reassigned tells whether a later assignment of the same turn takes the place of a store.
func (c *checker) reassigned(o types.Object, s store, t *turn) bool {
	for _, d := range c.defs[o] {
		if d.at.Pos() > s.stmt.End() && within(d.at, t.node) && c.unconditional(d.at, t.node) {
			return true
		}
	}
	return false
}

// keptEach tells whether a loop over a slice, later in the same turn, puts what Keep gives of each element in its place.
func (c *checker) keptEach(o types.Object, s store, t *turn) bool {
	for _, m := range c.calls {
		a, ok := c.parents[m.expr].(*ast.AssignStmt)
		if !ok || !m.is("tensor.Tensor.Keep") || a.Pos() < s.stmt.End() || len(a.Lhs) != 1 {
			continue
		}
		to, ok := a.Lhs[0].(*ast.IndexExpr)
		if !ok || c.object(ast.Unparen(to.X)) != o {
			continue
		}
		block, _ := c.parents[a].(*ast.BlockStmt)
		over, ok := c.parents[block].(*ast.RangeStmt)
		if ok && c.object(ast.Unparen(over.X)) == o && over.Key != nil && c.object(over.Key) == c.object(ast.Unparen(to.Index)) && !leaves(block) &&
			within(over, t.node) && c.unconditional(over, t.node) && c.function(over) == c.function(s.stmt) {
			return true
		}
	}
	return false
}

// leaves tells whether something may end a turn of a loop's body, or the loop.
func leaves(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.BranchStmt, *ast.ReturnStmt:
			found = true
		}
		return !found
	})
	return found
}

// redefined tells whether a variable has another value between a place and a use.
func (c *checker) redefined(o types.Object, from token.Pos, u *ast.Ident) bool {
	for _, d := range c.defs[o] {
		if d.at.Pos() >= from && d.at.End() <= u.Pos() {
			return true
		}
	}
	return false
}

// afterBackward: V28, a value that Backward has released, and that is used or kept behind it.
func (c *checker) afterBackward() {
	for _, b := range c.calls {
		if !b.is("tensor.Tensor.Backward", "optim.LossScaler.Backward") {
			continue
		}
		stmt, in := c.statement(b.expr)
		if in == nil {
			continue
		}
		for _, later := range c.calls {
			ls, lin := c.statement(later.expr)
			if lin != in || later.expr.Pos() < stmt.End() {
				continue
			}
			if x := c.released(later, b, in); x != nil {
				c.say(c.keptLate(later, x, b, stmt, ls))
			}
		}
	}
}

// released is the operand of a call that an earlier Backward has released: a variable of this block with a graph, which a module
// with parameters has taken before.
func (c *checker) released(later, b *call, in *ast.BlockStmt) *ast.Ident {
	x := later.recv
	if later.is("tensor.Slot.Set") {
		x = later.expr.Args[0]
	} else if !later.is("tensor.Tensor." + later.fn.Name()) {
		return nil
	}
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok || later.is(handles...) {
		return nil
	}
	o := c.object(id)
	d := c.definition(id, o)
	if d == nil || d.value == nil || !within(d.at, in) || d.at.End() > b.expr.Pos() {
		return nil
	}
	if m := c.callOf(d.value); m == nil || !c.isHidden(m) {
		return nil
	}
	for _, u := range c.uses[o] {
		if u.Pos() > d.at.End() && u.Pos() < b.expr.End() && c.feeds(u) {
			return id
		}
	}
	return nil
}

// handles are methods that read no values.
var handles = []string{"tensor.Tensor.Shape", "tensor.Tensor.Dim", "tensor.Tensor.Rank", "tensor.Tensor.Size", "tensor.Tensor.DType", "tensor.Tensor.Env",
	"tensor.Tensor.Grad", "tensor.Tensor.Backward", "tensor.Tensor.Label", "tensor.Tensor.Path", "tensor.Tensor.Info", "tensor.Tensor.Recorded", "tensor.Tensor.Bytes"}

// isHidden tells whether a call makes a value within a graph: by a module, or by an operation on one.
func (c *checker) isHidden(m *call) bool {
	if isForward(m) {
		for _, a := range m.expr.Args {
			if c.modes(a).noGrad {
				return false
			}
		}
		return true
	}
	if m.recv == nil || !m.is("tensor.Tensor."+m.fn.Name()) || plain[m.fn.Name()] || m.fn.Name() == "Keep" {
		return false
	}
	inner := c.callOf(m.recv)
	return inner != nil && c.isHidden(inner)
}

// feeds tells whether a value goes into a module that has parameters.
func (c *checker) feeds(u *ast.Ident) (yes bool) {
	c.climb(u, func(up ast.Node) bool {
		if x, ok := up.(*ast.CallExpr); ok && c.byExpr[x] != nil && isForward(c.byExpr[x]) {
			recv := c.info.TypeOf(c.byExpr[x].recv)
			yes = recv != nil && hasParameters(recv)
		}
		_, stmt := up.(ast.Stmt)
		return !yes && !stmt
	})
	return yes
}

// hasParameters tells whether a module surely has some: whether it is a struct of the library's with a weight, or one of one's own
// with such a field.
func hasParameters(t types.Type) bool { return parametersWithin(t, 0) }

func parametersWithin(t types.Type, depth int) bool {
	t = types.Unalias(t)
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 3 {
		return false
	}
	for f := range s.Fields() {
		if f.Exported() && (isTensor(f.Type()) || parametersWithin(f.Type(), depth+1)) {
			return true
		}
	}
	return false
}

// keptLate is what is said of a value that is used behind the Backward that released it.
func (c *checker) keptLate(later *call, x *ast.Ident, b *call, back, ls ast.Stmt) say {
	out := say{
		at: later.expr, title: fmt.Sprintf("%s is used behind Backward, which has released it", x.Name), sure: finding.High,
		fix:  fmt.Sprintf("put it before Backward in line %d", c.line(b.expr.Pos())),
		gain: "the value is there: Backward releases what the graph has made, but for its head",
		also: related(b.expr, "released here"), unless: x.Name + " being no part of what goes backward",
	}
	if e, ok := ls.(*ast.ExprStmt); ok && later.is("tensor.Slot.Set") && e.X == ast.Expr(later.expr) {
		indent := c.indent(back)
		out.edits = append(insert(back.Pos(), c.text(ls)+"\n"+indent), c.remove(ls)...)
	}
	return out
}

// remove is the edit that takes a statement out: its lines, where nothing but a comment stands beside it there.
func (c *checker) remove(s ast.Stmt) []analysis.TextEdit {
	before, behind := c.between(c.lineStart(s), s.Pos()), strings.TrimSpace(c.between(s.End(), c.lineEnd(s)))
	if strings.TrimSpace(before) != "" || behind != "" && !strings.HasPrefix(behind, "//") {
		return replace(s, "")
	}
	return []analysis.TextEdit{{Pos: c.lineStart(s), End: c.lineEnd(s)}}
}

// indent is the white space before a statement.
func (c *checker) indent(n ast.Node) string {
	before := c.between(c.lineStart(n), n.Pos())
	if strings.TrimSpace(before) != "" {
		return ""
	}
	return before
}

func (c *checker) lineStart(n ast.Node) token.Pos {
	f := c.pass.Fset.File(n.Pos())
	return f.LineStart(f.Line(n.Pos()))
}

// lineEnd is where the line behind a statement's last begins.
func (c *checker) lineEnd(n ast.Node) token.Pos {
	f := c.pass.Fset.File(n.Pos())
	if l := f.Line(n.End()); l < f.LineCount() {
		return f.LineStart(l + 1)
	}
	return n.End()
}
