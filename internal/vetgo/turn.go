package vetgo

import (
	"go/ast"
	"go/types"
)

// turnKind says what ends a turn.
type turnKind int

const (
	overBatches turnKind = iota // for b, err := range data.Batches(…), of data.Zip
	overParts                   // for mb := range data.Split(…), data.Accumulate
	block                       // env.Do, tensor.Do, env.Try, env.Tidy
)

// turn is a piece of program that is run once or again and again, and at whose end what was made in it is released.
type turn struct {
	kind turnKind
	node ast.Node     // the loop, or the function literal
	of   *call        // data.Batches, tensor.Env.Do
	own  types.Object // the batch, or the block's env
	env  ast.Expr     // that it was given; nil of parts
	over *turn        // the turn around it
}

// depth counts turns, from 1.
func (t *turn) depth() int {
	if t == nil {
		return 0
	}
	return t.over.depth() + 1
}

// called says what a turn is called in a sentence.
func (t *turn) called() string {
	switch t.kind {
	case overBatches:
		return "batch"
	case overParts:
		return "part of the batch"
	}
	return "block"
}

// blocks are the functions that run a literal in a block of its own.
var blocks = []string{"tensor.Env.Do", "tensor.Do", "tensor.Env.Try", "tensor.Try", "tensor.Env.Tidy", "tensor.Env.Attempt"}

// inPlace are functions that run a literal now, as part of what is around them.
var inPlace = []string{"prof.Range", "prof.Memory", "tensor.Chain", "tensor.Recompute", "tensor.Offload", "optim.ScheduleFree.Averaged", "optim.ASGD.Averaged", "nn.Published.Use"}

// findTurn finds the turn that a call makes. Outer calls come before inner ones.
func (p *program) findTurn(c *call) {
	t := &turn{of: c}
	switch {
	case c.is("data.Batches", "data.Zip", "data.Split"):
		loop := p.ranged(c.expr)
		if loop == nil {
			return
		}
		t.node = loop
		t.own = p.object(loop.Key)
		if c.is("data.Split") {
			t.kind = overParts
		}
		if c.is("data.Batches") {
			t.env = c.expr.Args[0]
		}
	case c.is("data.Accumulate") && len(c.expr.Args) == 4:
		t.kind = overParts
		p.literal(t, c.expr.Args[3])
	case c.is(blocks...):
		t.kind = block
		t.env = c.blockEnv()
		p.literal(t, c.expr.Args[len(c.expr.Args)-1])
	}
	if t.node == nil {
		return
	}
	p.turns[t.node] = t
	t.over = p.turnAround(t.node)
}

// blockEnv is the env that a block is given: the receiver, or the first argument of a function.
func (c *call) blockEnv() ast.Expr {
	if c.recv == nil {
		return c.expr.Args[0]
	}
	return c.recv
}

// ranged is the loop over a call's result, or over a variable that has it alone.
func (p *program) ranged(e ast.Expr) *ast.RangeStmt {
	switch up := p.parents[e].(type) {
	case *ast.RangeStmt:
		if up.X == e {
			return up
		}
	case *ast.AssignStmt:
		if len(up.Lhs) != 1 || len(up.Rhs) != 1 {
			return nil
		}
		o := p.object(up.Lhs[0])
		if o == nil || len(p.defs[o]) != 1 {
			return nil
		}
		for _, u := range p.uses[o] {
			if loop, ok := p.parents[u].(*ast.RangeStmt); ok && loop.X == u {
				return loop
			}
		}
	}
	return nil
}

func (p *program) literal(t *turn, e ast.Expr) {
	lit, ok := ast.Unparen(e).(*ast.FuncLit)
	if !ok {
		return
	}
	t.node = lit
	if params := lit.Type.Params.List; len(params) == 1 && len(params[0].Names) == 1 {
		t.own = p.info.Defs[params[0].Names[0]]
	}
}

// runsElsewhere tells whether a function literal is not run where it stands, once.
func (p *program) runsElsewhere(lit *ast.FuncLit) bool {
	up, ok := p.parents[lit].(*ast.CallExpr)
	if !ok {
		return true
	}
	if ast.Unparen(up.Fun) == lit {
		_, gone := p.parents[up].(*ast.GoStmt)
		_, later := p.parents[up].(*ast.DeferStmt)
		return gone || later
	}
	c := p.byExpr[up]
	return c == nil || !c.is(blocks...) && !c.is(inPlace...) && !c.is("data.Accumulate")
}

// turnAround is the innermost turn that a node is executed in.
func (p *program) turnAround(n ast.Node) (t *turn) {
	from := n
	p.climb(n, func(up ast.Node) bool {
		switch up := up.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.FuncLit:
			t = p.turns[up]
			return t == nil && !p.runsElsewhere(up)
		case *ast.RangeStmt:
			if from == ast.Node(up.Body) {
				t = p.turns[up]
			}
		}
		from = up
		return t == nil
	})
	return t
}

// loopAround is the innermost loop that repeats a node, whatever it is over.
func (p *program) loopAround(n ast.Node) (loop ast.Node) {
	from := n
	p.climb(n, func(up ast.Node) bool {
		switch up := up.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.FuncLit:
			if p.runsElsewhere(up) {
				return false
			}
		case *ast.RangeStmt:
			if from == ast.Node(up.Body) {
				loop = up
			}
		case *ast.ForStmt:
			if from != ast.Node(up.Init) {
				loop = up
			}
		}
		from = up
		return loop == nil
	})
	return loop
}

// trainsIn tells whether a step is made in each turn of a loop: whether Backward is called there, directly or by a function of
// this package.
func (p *program) trainsIn(loop ast.Node) bool {
	for _, c := range p.calls {
		if within(c.expr, loop) && p.function(c.expr) == p.function(loop) && p.goesBackward(c) {
			return true
		}
	}
	return false
}

// goesBackward tells whether a call is a Backward, or of a function of this package that makes one.
func (p *program) goesBackward(c *call) bool {
	return isBackward(c) || p.inside(c, p.goesBackward)
}

// inside tells whether a function of this package, which is called, makes a call of some kind. Where is asks that of what is called
// in turn, each function is looked into once.
func (p *program) inside(c *call, is func(*call) bool) bool {
	d := p.decls[c.fn]
	if d == nil || p.entered[c.fn] {
		return false
	}
	if len(p.entered) == 0 {
		defer clear(p.entered)
	}
	p.entered[c.fn] = true
	for _, in := range p.calls {
		if within(in.expr, d) && is(in) {
			return true
		}
	}
	return false
}

func isBackward(c *call) bool {
	return c.is("tensor.Tensor.Backward", "tensor.Tensor.BackwardRetain", "optim.LossScaler.Backward")
}

// isStep tells whether a call is an optimizer's step.
func isStep(c *call) bool {
	return c.fn.Name() == "Step" && c.ours() && c.fn.Pkg().Name() == "optim" && c.recv != nil || c.is("optim.LossScaler.StepAll")
}
