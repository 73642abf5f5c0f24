package vetgo

import (
	"fmt"
	"go/ast"
	"go/types"

	"github.com/warpline-ml/warpline/internal/finding"
)

// evaluation is a loop over batches in which a model is only asked.
type evaluation struct {
	*turn
	forward *call
	modes   modes // of what the model is given
}

// evaluations are the loops over batches in which a model is asked, and nothing goes backward. Where a loop gives its values to
// what is not known, it is none.
func (c *checker) evaluations(f func(evaluation)) {
	for _, b := range c.calls {
		if !b.is("data.Batches") {
			continue
		}
		t := c.turns[c.loopOf(b)]
		if t == nil || c.trainsIn(t.node) || c.updatesNorms(t.node) {
			continue
		}
		for _, n := range c.calls {
			if !within(n.expr, t.node) || !isForward(n) || len(n.expr.Args) == 0 || c.turnAround(n.expr) != t || c.isInner(n) {
				continue
			}
			if m := c.modes(n.expr.Args[0]); m.known && !c.escapes(n, t) {
				f(evaluation{t, n, m})
				break
			}
		}
	}
}

func (c *checker) loopOf(b *call) ast.Node {
	if loop := c.ranged(b.expr); loop != nil {
		return loop
	}
	return nil
}

// isInner tells whether a Forward's operand is another Forward's result.
func (c *checker) isInner(n *call) bool {
	m := c.callOf(n.expr.Args[0])
	return m != nil && isForward(m)
}

// updatesNorms tells whether a loop is there for batch norms to learn by.
func (c *checker) updatesNorms(loop ast.Node) (yes bool) {
	c.climb(loop, func(up ast.Node) bool {
		if x, ok := up.(*ast.CallExpr); ok && c.is(x, "nn.UpdateBatchNorm") {
			yes = true
		}
		return !yes
	})
	return yes
}

// escapes tells whether a turn calls what is not known with values that may go backward there.
func (c *checker) escapes(n *call, t *turn) (yes bool) {
	for node := range c.parents {
		x, ok := node.(*ast.CallExpr)
		if !ok || !within(x, t.node.(*ast.RangeStmt).Body) {
			continue
		}
		tv := c.info.Types[x.Fun]
		m := c.byExpr[x]
		switch {
		case tv.IsType() || tv.IsBuiltin() || x == n.expr:
		case m == nil:
			yes = true // a variable with a function
		case m.ours() || isForward(m) || !c.givesTensors(x):
		case m.fn.Pkg() != c.pass.Pkg || c.decls[m.fn] == nil:
			yes = true
		}
	}
	return yes
}

func (c *checker) givesTensors(x *ast.CallExpr) bool {
	for _, a := range x.Args {
		if t := c.info.TypeOf(a); t != nil && holdsTensors(t) {
			if m := c.byExpr[x]; m == nil || !isPrinting(m) {
				return true
			}
		}
	}
	return false
}

// graphInEvaluation: R09.
func (c *checker) graphInEvaluation() {
	c.evaluations(func(e evaluation) {
		if e.modes.noGrad {
			return
		}
		env := c.text(e.env)
		c.say(say{
			at: e.of.expr, title: fmt.Sprintf("the model is asked in line %d with a graph, and nothing goes backward", c.line(e.forward.expr.Pos())), sure: finding.High,
			fix:  fmt.Sprintf("give Batches %s.NoGrad().Eval()", env),
			gain: "the memory of a forward pass, which keeps what Backward would need", unless: "the graph being used in another function",
			edits: insert(e.env.End(), ".NoGrad()"), also: related(e.forward.expr, "asked here"),
		})
	})
}

// evaluationMode: V03.
func (c *checker) evaluationMode() {
	c.evaluations(func(e evaluation) {
		layer := c.behavesOtherwise(e.forward)
		if e.modes.eval || layer == "" {
			return
		}
		c.say(say{
			at: e.of.expr, title: fmt.Sprintf("the model has %s and is asked as in training, in line %d", layer, c.line(e.forward.expr.Pos())), sure: finding.High,
			fix:  fmt.Sprintf("give Batches %s.Eval()", c.text(e.env)),
			gain: "scores of the model as it will be used", unless: "what training sees being what is asked", edits: insert(e.env.End(), ".Eval()"),
			also: related(e.forward.expr, "asked here"),
		})
	})
}

// behavesOtherwise names a layer of a model that behaves otherwise in training.
func (c *checker) behavesOtherwise(forward *call) string {
	if forward.recv == nil {
		return ""
	}
	if l := otherwiseIn(c.info.TypeOf(forward.recv), 0); l != "" {
		return l
	}
	l, ok := c.origin(forward.recv).(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, x := range l.Elts {
		if name := otherwiseIn(c.info.TypeOf(x), 0); name != "" {
			return name
		}
	}
	return ""
}

// otherwiseIn is the first layer of a type, and of what it is made of, that behaves otherwise in training.
func otherwiseIn(t types.Type, depth int) string {
	if t == nil || depth > 4 {
		return ""
	}
	for _, name := range []string{"Dropout", "Dropout2d", "AlphaDropout", "BatchNorm"} {
		if isType(t, "nn."+name) {
			return "an nn." + name
		}
	}
	t = types.Unalias(t)
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok && !isTensor(t) {
		for f := range s.Fields() {
			if l := otherwiseIn(f.Type(), depth+1); l != "" {
				return l
			}
		}
	}
	return ""
}
