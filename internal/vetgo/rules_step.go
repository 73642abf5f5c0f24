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

// discarded: V01, gradients that are dropped between Backward and the step.
func (c *checker) discarded() {
	for _, d := range c.calls {
		if !c.isDiscard(d) {
			continue
		}
		s, in := c.statement(d.expr)
		back, step := c.beforeIn(in, s, isBackward), c.afterIn(in, s, func(n *call) bool { return isStep(n) && c.sameOptimizer(n, d) })
		if back == nil || step == nil || c.callBetween(in, back, s, isStep) || c.callBetween(in, s, step, isBackward) {
			continue
		}
		c.say(say{
			at: d.expr, title: "the gradients are dropped between Backward and Step", sure: finding.High, edits: c.remove(s),
			fix: "leave it out: Step lets go of the gradients by itself", gain: "the step changes the weights at all",
			unless: "the gradients being put elsewhere by a hook", also: related(back, "made here"),
		})
	}
}

func (c *checker) isDiscard(n *call) bool {
	return n.fn.Name() == "Discard" && n.ours() && n.fn.Pkg().Name() == "optim" && n.recv != nil
}

// sameOptimizer tells whether a step is of the optimizer that another call is of.
func (c *checker) sameOptimizer(step, other *call) bool {
	of := step.recv
	if step.is("optim.LossScaler.Step") {
		of = step.expr.Args[0]
	}
	return c.text(of) == c.text(other.recv)
}

// callsIn calls f with the calls that a block makes directly, and their statements: not in a loop, a condition or a function within it.
func (c *checker) callsIn(in *ast.BlockStmt, f func(n *call, s ast.Stmt)) {
	for _, n := range c.calls {
		if s, b := c.statement(n.expr); b == in && in != nil {
			switch s.(type) {
			case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt:
				f(n, s)
			}
		}
	}
}

// beforeIn is the last statement of a block before another that makes a call of some kind.
func (c *checker) beforeIn(in *ast.BlockStmt, s ast.Stmt, is func(*call) bool) (found ast.Stmt) {
	c.callsIn(in, func(n *call, at ast.Stmt) {
		if at.End() <= s.Pos() && is(n) {
			found = at
		}
	})
	return found
}

// afterIn is the first statement of a block behind another that makes a call of some kind.
func (c *checker) afterIn(in *ast.BlockStmt, s ast.Stmt, is func(*call) bool) (found ast.Stmt) {
	c.callsIn(in, func(n *call, at ast.Stmt) {
		if found == nil && at.Pos() >= s.End() && is(n) {
			found = at
		}
	})
	return found
}

// callBetween tells whether a call of some kind lies between two nodes.
func (c *checker) callBetween(in, from, to ast.Node, is func(*call) bool) bool {
	return slices.ContainsFunc(c.calls, func(n *call) bool {
		return n.expr.Pos() >= from.End() && n.expr.End() <= to.Pos() && within(n.expr, in) && is(n)
	})
}

// scaler: V06, a step that goes round the loss scaler.
func (c *checker) scaler() {
	for _, n := range c.calls {
		if !isStep(n) || n.is("optim.LossScaler.Step", "optim.LossScaler.StepAll") {
			continue
		}
		s, in := c.statement(n.expr)
		back := c.beforeIn(in, s, func(b *call) bool { return b.is("optim.LossScaler.Backward") })
		if back == nil || c.callBetween(in, back, s, func(b *call) bool { return isStep(b) || b.is("tensor.Tensor.Backward") }) {
			continue
		}
		scaler := "scaler"
		for _, b := range c.calls {
			if b.is("optim.LossScaler.Backward") && within(b.expr, back) {
				scaler = c.text(b.recv)
			}
		}
		c.say(say{
			at: n.expr, title: "the step takes gradients as the scaler has scaled them", sure: finding.High,
			fix: fmt.Sprintf("write %s.Step(%s)", scaler, c.text(n.recv)), edits: replace(n.expr, fmt.Sprintf("%s.Step(%s)", scaler, c.text(n.recv))),
			gain:   "steps of the right size: these are some thousands too large, and those with infinities are made, too",
			unless: "a hook dividing the gradients", also: related(back, "scaled here"),
		})
	}
}

// dropped: V16, a tensor or an env that is made and not kept.
func (c *checker) dropped() {
	for _, n := range c.calls {
		s, ok := c.parents[n.expr].(*ast.ExprStmt)
		if !ok || !n.ours() || n.recv == nil || n.fn.Pkg() == c.pass.Pkg {
			continue
		}
		method := n.fn.Name()
		switch {
		case n.is("tensor.Tensor."+method) && isTensor(c.info.TypeOf(n.expr)) && !strings.HasSuffix(method, "InPlace"):
			c.droppedTensor(n, s)
		case n.is("tensor.Env."+method) && isType(c.info.TypeOf(n.expr), "tensor.Env") && method != "Profiled" && !c.isWorkload(n.expr):
			name := c.text(n.recv)
			c.say(say{
				at: n.expr, title: fmt.Sprintf("%s gives a new env, and %s stays as it is", method, name), sure: finding.High, edits: c.assignTo(n.recv, s),
				fix: fmt.Sprintf("write %s = %s, or give the new env to what it is for", name, c.text(n.expr)), gain: "the mode is set at all",
				unless: "nothing",
			})
		}
	}
}

// handled are methods that nobody calls to be timed.
var handled = []string{"To", "In", "Detach", "Cast", "Keep", "Reshape", "Transpose", "Permute", "Flatten"}

func (c *checker) droppedTensor(n *call, s *ast.ExprStmt) {
	name, method := c.text(n.recv), n.fn.Name()
	if _, calls := ast.Unparen(n.recv).(*ast.CallExpr); calls || c.inTest(n.expr) || c.isWorkload(n.expr) && !slices.Contains(handled, method) {
		return // that it panics, what it launches, or how long it takes may be all that is asked
	}
	fix := fmt.Sprintf("write %s = %s", name, c.text(n.expr))
	if f := n.fn.Signature().Recv().Type(); hasMethod(f, method+"InPlace") {
		fix += fmt.Sprintf(", or %sInPlace", method)
	}
	c.say(say{
		at: n.expr, title: fmt.Sprintf("%s makes a new tensor, and %s stays as it is", method, name), sure: finding.High,
		fix: fix, edits: c.assignTo(n.recv, s), gain: "what is meant is done", unless: "the operation being run only to be timed",
	})
}

// isWorkload tells whether a node is in a function that others run, to time it or to see it fail, or that reads the clock itself.
func (c *checker) isWorkload(n ast.Node) bool {
	fn := c.function(n)
	_, ok := fn.(*ast.FuncLit)
	return ok || slices.ContainsFunc(c.calls, func(m *call) bool { return m.is("time.Now") && c.function(m.expr) == fn })
}

func hasMethod(t types.Type, name string) bool {
	o, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	return o != nil
}

// assignTo is the edit that gives a statement's value to a variable that can have it.
func (c *checker) assignTo(to ast.Expr, s *ast.ExprStmt) []analysis.TextEdit {
	if c.object(ast.Unparen(to)) == nil {
		return nil
	}
	return insert(s.Pos(), c.text(to)+" = ")
}

// probabilities: V20, a softmax before a loss that has its own.
func (c *checker) probabilities() {
	for _, n := range c.calls {
		var makes string
		switch {
		case n.is("nn.CrossEntropy"):
			makes = "tensor.Tensor.Softmax"
		case n.is("nn.BCEWithLogits"):
			makes = "tensor.Tensor.Sigmoid"
		default:
			continue
		}
		m := c.callOf(c.origin(n.expr.Args[0]), makes)
		if m == nil {
			continue
		}
		out := say{
			at: n.expr, title: fmt.Sprintf("%s is given probabilities, and takes scores", n.fn.Name()), sure: finding.High,
			fix: fmt.Sprintf("give it %s, as it is before %s", c.text(m.recv), m.fn.Name()), gain: "gradients that do not nearly vanish",
			unless: "nothing: the loss makes probabilities itself",
		}
		if ast.Unparen(n.expr.Args[0]) == ast.Expr(m.expr) {
			out.edits = []analysis.TextEdit{{Pos: m.recv.End(), End: m.expr.End()}}
		}
		c.say(out)
	}
}

// missed: V19, parameters that the model has got after its optimizer was made.
func (c *checker) missed() {
	for _, n := range c.calls {
		model, ok := c.optimized(n)
		if !ok {
			continue
		}
		_, in := c.statement(n.expr)
		for _, a := range c.assigns {
			if a.Pos() < n.expr.End() || c.function(a) != c.function(n.expr) || in == nil || !within(a, in) || c.loopAround(a) != c.loopAround(n.expr) {
				continue
			}
			for i, to := range a.Lhs {
				if o, part := c.partOf(to); o == model && part && c.isNewModule(a.Rhs[min(i, len(a.Rhs)-1)]) {
					c.sayMissed(a, c.text(to)+" is replaced", n, model)
				}
				if o := c.object(to); o == model && c.grows(a.Rhs[min(i, len(a.Rhs)-1)], model) {
					c.sayMissed(a, c.text(to)+" has more layers", n, model)
				}
			}
		}
		for _, l := range c.calls {
			if l.is("nn.AddLoRA") && l.expr.Pos() > n.expr.End() && c.object(ast.Unparen(l.expr.Args[0])) == model && c.function(l.expr) == c.function(n.expr) {
				c.sayMissed(l.expr, "the model gets its LoRA parameters", n, model)
			}
		}
	}
}

func (c *checker) sayMissed(at ast.Node, what string, opt *call, model types.Object) {
	if c.optimizedAgain(model, at) {
		return
	}
	c.say(say{
		at: at, title: what + " after the optimizer was made, which does not have its parameters", sure: finding.High,
		fix: fmt.Sprintf("make the optimizer behind it: %s", c.text(opt.expr)), gain: "the new parameters learn",
		unless: "the new part being frozen, or having an optimizer of its own", also: related(opt.expr, "the optimizer was made here"),
	})
}

// optimizedAgain tells whether a model gets another optimizer behind a place.
func (c *checker) optimizedAgain(model types.Object, at ast.Node) bool {
	return slices.ContainsFunc(c.calls, func(n *call) bool {
		o, ok := c.optimized(n)
		return ok && o == model && n.expr.Pos() > at.End()
	})
}

// optimized is the model whose parameters an optimizer is made of.
func (c *checker) optimized(n *call) (types.Object, bool) {
	if !n.ours() || n.fn.Pkg().Name() != "optim" || !strings.HasPrefix(n.fn.Name(), "New") || len(n.expr.Args) == 0 {
		return nil, false
	}
	params := c.callOf(n.expr.Args[0], "nn.Params")
	if params == nil {
		return nil, false
	}
	o := c.object(ast.Unparen(params.expr.Args[0]))
	return o, o != nil
}

// partOf is the variable that a field or an element belongs to.
func (c *checker) partOf(e ast.Expr) (types.Object, bool) {
	for part := false; ; part = true {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.Ident:
			return c.object(x), part
		default:
			return nil, false
		}
	}
}

// isNewModule tells whether an expression makes a module with parameters: nn.NewLinear and its like, a parameter, a list of them.
func (c *checker) isNewModule(e ast.Expr) bool {
	if l, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		return slices.ContainsFunc(l.Elts, c.isNewModule)
	}
	n := c.callOf(e)
	return n != nil && (n.ours() && n.fn.Pkg().Name() == "nn" && strings.HasPrefix(n.fn.Name(), "New") || n.is("tensor.NewParam"))
}

// grows tells whether a list of modules gets one with parameters at its end.
func (c *checker) grows(e ast.Expr, model types.Object) bool {
	args := c.appended(e)
	return args != nil && c.object(ast.Unparen(e.(*ast.CallExpr).Args[0])) == model && slices.ContainsFunc(args, c.isNewModule)
}

// ignored: V29, a loop over batches that does not look at their errors.
func (c *checker) ignored() {
	for _, n := range c.calls {
		if !n.is("data.Batches", "data.Zip") || c.inTest(n.expr) {
			continue // a test that crashes has failed
		}
		loop := c.ranged(n.expr)
		if loop == nil || loop.Key == nil || !isBlank(loop.Value) {
			continue
		}
		c.say(say{
			at: loop, title: "the errors of the batches are ignored: a batch that could not be read is nil", sure: finding.High,
			fix: fmt.Sprintf("write for %s, err := range …, and look at err first", c.text(loop.Key)), edits: c.lookAtErrors(loop),
			gain: "the reason, in place of a crash", unless: "nothing: settings that do not fit come as an error, too",
		})
	}
}

func isBlank(e ast.Expr) bool {
	if e == nil {
		return true
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// lookAtErrors is the edit that names the error and returns it, or panics where the function returns none.
func (c *checker) lookAtErrors(loop *ast.RangeStmt) (edits []analysis.TextEdit) {
	if loop.Tok != token.DEFINE {
		return nil
	}
	if loop.Value == nil {
		edits = insert(loop.Key.End(), ", err")
	} else {
		edits = replace(loop.Value, "err")
	}
	inner := c.indent(loop) + "\t"
	do := "panic(err)"
	if c.returnsError(loop) {
		do = "return err"
	}
	return append(edits, insert(loop.Body.Lbrace+1, fmt.Sprintf("\n%sif err != nil {\n%s\t%s\n%s}", inner, inner, do, inner))...)
}

// returnsError tells whether the function around a node returns an error and nothing else.
func (c *checker) returnsError(n ast.Node) bool {
	var t *ast.FuncType
	c.climb(n, func(up ast.Node) bool {
		switch up := up.(type) {
		case *ast.FuncDecl:
			t = up.Type
		case *ast.FuncLit:
			t = up.Type
		}
		return t == nil
	})
	return t != nil && t.Results != nil && t.Results.NumFields() == 1 && types.Identical(c.info.TypeOf(t.Results.List[0].Type), types.Universe.Lookup("error").Type())
}

// twice: V31, two Backward for one step.
func (c *checker) twice() {
	for _, b := range c.calls {
		if !c.isPlainBackward(b) {
			continue
		}
		s, in := c.statement(b.expr)
		step := c.afterIn(in, s, isStep)
		next := c.afterIn(in, s, func(n *call) bool { return isBackward(n) })
		if step == nil || next == nil || next.Pos() > step.Pos() || c.callBetween(in, s, next, func(n *call) bool { return c.isDiscard(n) || n.is("tensor.Tensor.DropGrad", "tensor.Tensor.Grad") }) {
			continue
		}
		var second *call
		c.callsIn(in, func(n *call, at ast.Stmt) {
			if at == next && c.isPlainBackward(n) {
				second = n
			}
		})
		if second == nil {
			continue
		}
		first, other := c.text(b.lossOf()), c.text(second.lossOf())
		out := say{
			at: second.expr, title: fmt.Sprintf("the gradients of %s are added to those of %s, for one step", other, first), sure: finding.Medium,
			fix:  fmt.Sprintf("add the losses where both are meant, %s.Add(%s).Backward(); else a Step for each", first, other),
			gain: "one walk through what the losses share, or the step that was meant", unless: "the two having nothing in common, and both being meant",
			also: related(b.expr, "the first one"),
		}
		if _, made := ast.Unparen(second.lossOf()).(*ast.CallExpr); first == other && !made {
			out.title, out.sure, out.unless = other+" goes backward twice, and its graph is gone after the first time", finding.High, "nothing"
			out.fix, out.gain = "leave the second one out, or call BackwardRetain first", "the program goes on"
		}
		c.say(out)
	}
}

// isPlainBackward tells whether a Backward is of a whole loss, for all parameters: parts are scaled.
func (c *checker) isPlainBackward(b *call) bool {
	switch {
	case b.is("tensor.Tensor.Backward"):
		return len(b.expr.Args) == 0 && !c.isScaled(b.recv)
	case b.is("optim.LossScaler.Backward"):
		return len(b.expr.Args) == 1 && !c.isScaled(b.expr.Args[0])
	}
	return false
}

// isScaled tells whether a loss is a share of one.
func (c *checker) isScaled(e ast.Expr) bool {
	return c.is(c.origin(e), "tensor.Tensor.Scale", "tensor.Tensor.Div", "tensor.Tensor.Mul")
}
