package vetgo

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/finding"
)

// waiting are calls that wait for the device.
var waiting = []string{
	"tensor.Tensor.Item", "tensor.Tensor.Floats", "tensor.Tensor.String", "tensor.Data", "tensor.Env.Sync", "optim.Report.Norm", "optim.Report.Finite",
	"optim.Report.Overflow", "optim.Report.String", "optim.LossScaler.Scale", "optim.LossScaler.State", "metric.Mean.Value", "tensor.Pending.Value",
}

// isPrinting tells whether a call prints what it is given.
func isPrinting(c *call) bool {
	path, name := c.fn.Pkg().Path(), c.fn.Name()
	return path == "fmt" && strings.Contains(name, "rint") || path == "log" && (strings.Contains(name, "rint") || strings.HasPrefix(name, "Fatal")) || path == "log/slog"
}

// isWait tells whether a call waits, itself or by printing a tensor.
func (c *checker) isWait(n *call) bool {
	if isPrinting(n) {
		return slices.ContainsFunc(n.expr.Args, func(a ast.Expr) bool { return isTensor(c.info.TypeOf(a)) || isType(c.info.TypeOf(a), "optim.Report") })
	}
	return n.is(waiting...)
}

// waits: R13.
func (c *checker) waits() {
	for _, n := range c.calls {
		if !c.isWait(n) || c.inTest(n.expr) {
			continue
		}
		loop := c.loopAround(n.expr)
		if loop == nil || !c.stepsIn(n.expr, loop) || !c.unconditional(n.expr, loop) && !c.isCondition(n.expr, loop) || c.leaves(n.expr, loop) {
			continue
		}
		if n.is("tensor.Pending.Value") && !c.is(n.recv, "tensor.Tensor.Later") {
			continue // of a turn before, or nobody knows
		}
		c.say(c.waitOf(n))
	}
}

// isCondition tells whether a call is in a condition that is asked in every turn.
func (c *checker) isCondition(n, loop ast.Node) (yes bool) {
	from := n
	c.climb(n, func(up ast.Node) bool {
		if f, ok := up.(*ast.IfStmt); ok {
			yes = (from == ast.Node(f.Cond) || from == ast.Node(f.Init)) && c.unconditional(f, loop)
			return false
		}
		from = up
		return up != loop
	})
	return yes
}

// leaves tells whether a call is part of what leaves a loop: what is behind it is not done again.
func (c *checker) leaves(n, loop ast.Node) bool {
	s, in := c.statement(n)
	if in == nil || len(in.List) == 0 {
		return false
	}
	if _, ok := s.(*ast.ReturnStmt); ok {
		return true
	}
	switch last := in.List[len(in.List)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return last.Tok == token.BREAK
	}
	return false
}

func (c *checker) waitOf(n *call) say {
	what := n.name[strings.LastIndexByte(n.name, '.')+1:]
	out := say{
		at: n.expr, title: fmt.Sprintf("%s waits for the device in every step", what), sure: finding.Medium,
		fix:  "read it every hundredth step, or add up on the device: metric.Mean, and Value behind the loop",
		gain: "the device has work while the host goes on", unless: "training on the CPU alone, or steps that take far longer than a wait",
	}
	switch {
	case isPrinting(n):
		out.title = "printing a tensor waits for the device in every step"
	case n.is("tensor.Env.Sync"):
		out.fix = "leave it out: what reads a value waits for it by itself"
	case n.is("tensor.Tensor.Item"):
		out.fix = fmt.Sprintf("ask %s.Later() in this step and its Value() in the next one, read it every hundredth step, or add up in a metric.Mean", c.text(n.recv))
	case n.is("optim.Report.Norm"):
		out.fix = fmt.Sprintf("ask %s.NormLater() in this step, and its Value() in the next one", c.text(n.recv))
	}
	return out
}

// timed: R48, a clock that is read behind launches.
func (c *checker) timed() {
	for _, n := range c.calls {
		begin := c.timedFrom(n)
		if begin == nil || c.isLimit(n.expr) {
			continue
		}
		from := c.clockSet(begin, n.expr)
		if from == nil || c.function(from) != c.function(n.expr) {
			continue
		}
		work := c.unwaited(from, n.expr)
		if work == nil || c.isReadAgain(n, begin) {
			continue
		}
		edits := []analysis.TextEdit(nil)
		if env := c.envNamed(n.expr, from); env != "" {
			if s, in := c.statement(n.expr); in != nil {
				edits = insert(s.Pos(), env+".Sync()\n"+c.indent(s))
			}
		}
		c.say(say{
			at: n.expr, title: fmt.Sprintf("the clock is read while the device still works for line %d", c.line(work.Pos())), sure: finding.Medium, edits: edits,
			fix:  "call env.Sync() before the clock is read, or time by prof.Timer",
			gain: "a time of the work: without waiting it is the time that asking for it took", unless: "the work being done on the CPU",
			also: related(work, "asked for here"),
		})
	}
}

// isReadAgain tells whether a time is taken a second time behind a wait: the first is then of asking for the work, and meant.
func (c *checker) isReadAgain(n *call, begin *ast.Ident) bool {
	for _, later := range c.calls {
		if later.expr.Pos() < n.expr.End() || c.function(later.expr) != c.function(n.expr) {
			continue
		}
		if id := c.timedFrom(later); id != nil && c.definition(id, c.object(id)) == c.definition(begin, c.object(begin)) {
			return c.callBetween(c.function(n.expr), n.expr, later.expr, c.isWait)
		}
	}
	return false
}

// timedFrom is the variable with the time from which a call tells how long it is.
func (c *checker) timedFrom(n *call) *ast.Ident {
	var e ast.Expr
	switch {
	case n.is("time.Since"):
		e = n.expr.Args[0]
	case n.is("time.Time.Sub") && c.is(n.recv, "time.Now"):
		e = n.expr.Args[0]
	default:
		return nil
	}
	id, _ := ast.Unparen(e).(*ast.Ident)
	return id
}

// clockSet is the assignment of a time that is read off the clock.
func (c *checker) clockSet(id *ast.Ident, at ast.Node) ast.Node {
	d := c.definition(id, c.object(id))
	if d == nil || d.value == nil || !c.is(d.value, "time.Now") {
		return nil
	}
	return d.at
}

// isLimit tells whether a duration is only compared: with a limit, or to tell that time has come to say something.
func (c *checker) isLimit(n ast.Node) (yes bool) {
	c.climb(n, func(up ast.Node) bool {
		if b, ok := up.(*ast.BinaryExpr); ok {
			switch b.Op {
			case token.LSS, token.GTR, token.LEQ, token.GEQ:
				yes = true
			}
		}
		_, stmt := up.(ast.Stmt)
		return !yes && !stmt
	})
	return yes
}

// unwaited is the last work of the device between two places that nothing between them waits for; nil where something may wait.
func (c *checker) unwaited(from, to ast.Node) (work ast.Node) {
	fn := c.function(to)
	waited := from.End()
	for _, n := range c.calls { // what is done last ends last: a.B().C() is C after B
		if n.expr.Pos() < from.End() || n.expr.End() > to.Pos() || c.function(n.expr) != fn {
			continue
		}
		switch {
		case c.isWork(n):
			if work == nil || n.expr.End() > work.End() {
				work = n.expr
			}
		case c.mayWait(n):
			if loop := c.loopAround(n.expr); loop != nil && loop.Pos() > from.End() {
				return nil // all turns but the last one were waited for
			}
			waited = max(waited, n.expr.End())
		}
	}
	if work == nil || work.End() <= waited || c.hasUnnamed(from, to) {
		return nil
	}
	return work
}

// isWork tells whether a call launches something.
func (c *checker) isWork(n *call) bool {
	if isForward(n) || isBackward(n) || isStep(n) || n.is("tensor.Captured.Run") {
		return true
	}
	return n.is("tensor.Tensor."+n.fn.Name()) && isTensor(c.info.TypeOf(n.expr)) && !n.is("tensor.Tensor.In", "tensor.Tensor.Detach", "tensor.Tensor.Keep", "tensor.Tensor.Grad")
}

// mayWait tells whether a call waits, or is of something that may.
func (c *checker) mayWait(n *call) bool {
	if c.isWait(n) {
		return true
	}
	if n.ours() && n.fn.Pkg() != c.pass.Pkg {
		switch n.fn.Pkg().Name() {
		case "nn", "optim", "data":
			return false
		case "tensor":
			return n.fn.Name() == "To" || n.fn.Name() == "Sync" || n.fn.Name() == "Memory"
		}
		return true // metric.Accuracy, ckpt.Save, train.Fit and the like read values
	}
	if n.fn.Pkg() != c.pass.Pkg {
		return n.fn.Pkg().Name() == "sync" || n.fn.Name() == "Wait"
	}
	return c.decls[n.fn] == nil || c.inside(n, c.mayWait)
}

// hasUnnamed tells whether a function without a name is called between two places, or another goroutine waited for: nobody knows
// what it does.
func (c *checker) hasUnnamed(from, to ast.Node) (yes bool) {
	for n := range c.parents {
		if n.Pos() < from.End() || n.End() > to.Pos() {
			continue
		}
		switch x := n.(type) {
		case *ast.UnaryExpr:
			yes = yes || x.Op == token.ARROW
		case *ast.SelectStmt:
			yes = true
		case *ast.CallExpr:
			tv := c.info.Types[x.Fun]
			yes = yes || c.byExpr[x] == nil && !tv.IsType() && !tv.IsBuiltin()
		}
	}
	return yes
}

// envNamed is the name of an env that is there at a place, by which to wait.
func (c *checker) envNamed(at ast.Node, from ast.Node) string {
	scope := c.pass.Pkg.Scope().Innermost(at.Pos())
	for ; scope != nil && scope != types.Universe; scope = scope.Parent() {
		if _, o := scope.LookupParent("env", from.Pos()); o != nil && isType(o.Type(), "tensor.Env") {
			return "env"
		}
	}
	return ""
}

// makers are functions that make a tensor of an env, which is their receiver, or their first operand.
var makers = []string{"tensor.Env.Zeros", "tensor.Env.Ones", "tensor.Env.Full", "tensor.Env.FullOf", "tensor.Env.Rand", "tensor.Env.Randn", "tensor.Env.RandInt",
	"tensor.Env.RandPerm", "tensor.Env.Arange", "tensor.Env.Linspace", "tensor.Env.Eye", "tensor.From", "tensor.FromMatrix"}

// madeThenMoved: V14, a tensor that is made on the host and moved.
func (c *checker) madeThenMoved() {
	for _, n := range c.calls {
		if !n.is("tensor.Tensor.To") || !c.isRepeated(n.expr) {
			continue
		}
		m := c.callOf(n.recv, makers...)
		if m == nil {
			continue
		}
		made := m.recv
		if m.is("tensor.From", "tensor.FromMatrix") {
			made = m.expr.Args[0]
		}
		if !c.isHost(made, 0) || c.isHost(n.expr.Args[0], 0) {
			continue
		}
		there := c.text(n.expr.Args[0])
		edits := append(replace(made, there), analysis.TextEdit{Pos: n.recv.End(), End: n.expr.End()})
		if !c.isUsedOtherwise(made) {
			edits = nil // Go refuses a variable that nobody uses
		}
		c.say(say{
			at: n.expr, title: "a tensor is made on the host and then moved, each time", edits: edits, sure: finding.High,
			fix:  fmt.Sprintf("make it there: %s in place of %s, without To", there, c.text(made)),
			gain: "a copy for each turn, and the wait for it", unless: there + " being the host's",
		})
	}
}

// isUsedOtherwise tells whether an env is named for more than to make tensors that are moved, or need not be.
func (c *checker) isUsedOtherwise(env ast.Expr) bool {
	o, ok := c.object(ast.Unparen(env)).(*types.Var)
	if !ok || o.Parent() == c.pass.Pkg.Scope() {
		return true
	}
	return slices.ContainsFunc(c.uses[o], func(u *ast.Ident) (yes bool) {
		yes = true
		c.climb(u, func(up ast.Node) bool {
			x, ok := up.(*ast.CallExpr)
			if ok && c.is(x, "tensor.Tensor.To") {
				yes = false
			}
			_, stmt := up.(ast.Stmt)
			return yes && !stmt
		})
		return yes
	})
}

// isRepeated tells whether a node is executed again and again: in a loop, or in a Forward.
func (c *checker) isRepeated(n ast.Node) bool {
	if c.loopAround(n) != nil {
		return true
	}
	d, ok := c.function(n).(*ast.FuncDecl)
	return ok && d.Recv != nil && d.Name.Name == "Forward"
}

// isHost tells whether an env is surely the CPU's.
func (c *checker) isHost(e ast.Expr, depth int) bool {
	if depth > 40 {
		return false
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		from := c.origin(e)
		return from != ast.Expr(e) && c.isHost(from, depth+1)
	case *ast.CallExpr:
		m := c.byExpr[e]
		if m == nil {
			return false
		}
		if m.is("tensor.Open", "tensor.Fresh") {
			return c.isConstant(e.Args[0], "cpu")
		}
		return m.recv != nil && m.is("tensor.Env."+m.fn.Name()) && c.isHost(m.recv, depth+1)
	}
	return false
}

// copied: V30, what is copied to the device again in every step.
func (c *checker) copied() {
	for _, n := range c.calls {
		if c.inTest(n.expr) {
			continue
		}
		switch {
		case n.is("tensor.From") && len(n.expr.Args) > 1:
			if f := c.callOf(n.expr.Args[1], "tensor.Tensor.Floats", "tensor.Data"); f != nil && c.isRepeated(n.expr) {
				c.say(c.roundTrip(n, f))
				continue
			}
			c.copiedAgain(n, n.expr.Args[1])
		case n.is("tensor.Tensor.To"):
			c.copiedAgain(n, n.recv)
		case n.is("nn.To") && len(n.expr.Args) == 2:
			c.copiedAgain(n, n.expr.Args[1])
		}
	}
}

func (c *checker) roundTrip(n, f *call) say {
	of := "its operand"
	if f.recv != nil {
		of = c.text(f.recv)
	}
	return say{
		at: n.expr, title: "a value goes to the host and back, each time", sure: finding.Medium,
		fix:  fmt.Sprintf("stay on the device: %s.Detach() is the value without its graph, %s.Keep() one that outlives its batch", of, of),
		gain: "two copies and a wait for each turn", unless: "the way through float64 being meant, or another device",
	}
}

// copiedAgain is about a copy of what is the same in each turn of a loop that trains or goes over batches.
func (c *checker) copiedAgain(n *call, what ast.Expr) {
	id, ok := ast.Unparen(what).(*ast.Ident)
	loop := c.loopAround(n.expr)
	if !ok || loop == nil || !c.stepsIn(n.expr, loop) && !c.overBatches(loop) || !c.unconditional(n.expr, loop) {
		return
	}
	o := c.object(id)
	if o == nil || !c.isBefore(o, loop) || c.changesIn(o, loop, n.expr) {
		return
	}
	if n.is("tensor.Tensor.To") && c.value(id).turn != nil && within(loop, c.value(id).turn.node) && loop != c.value(id).turn.node {
		return // a batch, in a loop over something within it
	}
	c.say(say{
		at: n.expr, title: fmt.Sprintf("%s is copied to the device in every step, and is the same each time", o.Name()), sure: finding.Medium,
		fix:  "do it once, before the loop",
		gain: "a copy for each step", unless: o.Name() + " being changed by another function, or the copy being made on the same device",
	})
}

// overBatches tells whether a loop is one over batches.
func (c *checker) overBatches(loop ast.Node) bool {
	t := c.turns[loop]
	return t != nil && t.kind == overBatches
}

// changesIn tells whether a variable may change in a loop: whether it is assigned, or its elements are, or it is given to something.
func (c *checker) changesIn(o types.Object, loop, but ast.Node) bool {
	for _, d := range c.defs[o] {
		if within(d.at, loop) {
			return true
		}
	}
	for _, u := range c.uses[o] {
		if within(u, loop) && !within(u, but) && c.mayChange(u) {
			return true
		}
	}
	return false
}

// mayChange tells whether a use of a variable may change what it has.
func (c *checker) mayChange(u *ast.Ident) (yes bool) {
	var from ast.Node = u
	c.climb(u, func(up ast.Node) bool {
		switch up := up.(type) {
		case *ast.AssignStmt:
			yes = slices.ContainsFunc(up.Lhs, func(e ast.Expr) bool { return ast.Node(e) == from })
			return false
		case *ast.UnaryExpr:
			yes = up.Op == token.AND
		case *ast.IncDecStmt:
			yes = true
		case *ast.CallExpr:
			m := c.byExpr[up]
			yes = m == nil && !c.info.Types[up.Fun].IsBuiltin() || m != nil && (!m.ours() || strings.HasSuffix(m.fn.Name(), "InPlace") || m.is("tensor.Tensor.Replace"))
			if b, ok := up.Fun.(*ast.Ident); ok && b.Name == "copy" {
				yes = true
			}
			return false
		case ast.Stmt:
			return false
		}
		from = up
		return !yes
	})
	return yes
}
