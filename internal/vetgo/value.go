package vetgo

import (
	"go/ast"
	"go/constant"
	"go/types"
)

// value is what is known of an expression's value. The zero value is what nothing is known of.
type value struct {
	turn  *turn // at whose end it is gone
	graph bool  // it surely has a graph
}

// with is what an operation makes of two values.
func (v value) with(w value) value {
	if w.turn.depth() > v.turn.depth() {
		v.turn = w.turn
	}
	v.graph = v.graph || w.graph
	return v
}

// frame is a function that is looked into: the values of its parameters, and those of its assignments that were asked for already,
// as one that is named twice would be looked at four times two lines further down.
type frame struct {
	params map[types.Object]value
	known  map[*def]value
	depth  int
}

// maxEntered bounds how many functions are looked into, each from the one before.
const maxEntered = 8

// value says what is known of an expression.
func (p *program) value(e ast.Expr) value { return p.eval(e, frame{known: map[*def]value{}}) }

func (p *program) eval(e ast.Expr, f frame) value {
	if f.depth > 40 {
		return value{}
	}
	f.depth++
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.variable(e, f)
	case *ast.SelectorExpr:
		if _, ok := p.info.Selections[e]; ok {
			return p.eval(e.X, f)
		}
	case *ast.IndexExpr:
		return p.eval(e.X, f)
	case *ast.StarExpr:
		return p.eval(e.X, f)
	case *ast.UnaryExpr:
		return p.eval(e.X, f)
	case *ast.SliceExpr:
		return p.eval(e.X, f)
	case *ast.CompositeLit:
		return p.literalValue(e, f)
	case *ast.CallExpr:
		return p.result(e, f)
	}
	return value{}
}

func (p *program) literalValue(e *ast.CompositeLit, f frame) (v value) {
	for _, x := range e.Elts {
		if kv, ok := x.(*ast.KeyValueExpr); ok {
			x = kv.Value
		}
		if holdsTensors(p.info.TypeOf(x)) {
			v = v.with(p.eval(x, f))
		}
	}
	return v
}

// variable is the value of a variable where it is named: of its last assignment before.
func (p *program) variable(id *ast.Ident, f frame) value {
	o := p.object(id)
	if o == nil {
		return value{}
	}
	if v, ok := f.params[o]; ok {
		return v
	}
	if t := p.turnOf(o); t != nil && p.isHeld(t) {
		return value{}
	} else if t != nil {
		return value{turn: t}
	}
	d := p.definition(id, o)
	if d == nil || d.value == nil {
		return value{}
	}
	v, ok := f.known[d]
	if !ok {
		v = p.eval(d.value, f)
		f.known[d] = v
	}
	return v
}

// turnOf is the turn whose batch, or env, a variable is.
func (p *program) turnOf(o types.Object) *turn {
	if o == nil {
		return nil
	}
	for _, t := range p.turns {
		if t.own == o {
			return t
		}
	}
	return nil
}

// isHeld tells whether a turn's values are held beyond its end, by b.Hold().
func (p *program) isHeld(t *turn) bool {
	for _, u := range p.uses[t.own] {
		if s, ok := p.parents[u].(*ast.SelectorExpr); ok && s.Sel.Name == "Hold" {
			return true
		}
	}
	return false
}

// definition is the last assignment to a variable that ends before it is named.
func (p *program) definition(id *ast.Ident, o types.Object) (last *def) {
	for i, d := range p.defs[o] {
		if d.at.End() <= id.Pos() || isLoop(d.at) && d.at.Pos() <= id.Pos() {
			last = &p.defs[o][i]
		}
	}
	return last
}

// origin is what a variable was given last; any other expression is its own.
func (p *program) origin(e ast.Expr) ast.Expr {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok {
		if d := p.definition(id, p.object(id)); d != nil && d.value != nil && d.index == 0 {
			return ast.Unparen(d.value)
		}
	}
	return e
}

func isLoop(n ast.Node) bool { _, ok := n.(*ast.RangeStmt); return ok }

// plain are methods of a tensor whose results have no graph, as they have no gradient.
var plain = map[string]bool{
	"ArgMax": true, "ArgMin": true, "ArgSort": true, "Eq": true, "Ne": true, "Lt": true, "Le": true, "Gt": true, "Ge": true, "EqScalar": true,
	"NeScalar": true, "LtScalar": true, "LeScalar": true, "GtScalar": true, "GeScalar": true, "And": true, "Or": true, "Not": true, "Detach": true,
	"Grad": true, "Sign": true, "IsNaN": true, "IsInf": true, "IsFinite": true, "OneHot": true, "Multinomial": true, "Bernoulli": true,
}

// result is the value of a call.
func (p *program) result(e *ast.CallExpr, f frame) value {
	c := p.byExpr[e]
	if c == nil {
		if b, ok := ast.Unparen(e.Fun).(*ast.Ident); ok && b.Name == "append" && p.info.Uses[b] == types.Universe.Lookup("append") {
			return p.operands(e.Args, f)
		}
		return value{}
	}
	switch {
	case c.is("tensor.Tensor.Keep", "tensor.NewParam", "tensor.NewBuffer", "nn.NewParam", "tensor.Tensor.Grad"):
		return value{} // of no turn
	case c.is("tensor.Tensor.To"):
		return value{turn: p.eval(e.Args[0], f).turn, graph: p.eval(c.recv, f).graph}
	case c.is("tensor.Tensor.In"):
		v := p.eval(c.recv, f).with(p.eval(e.Args[0], f))
		return value{turn: v.turn, graph: v.graph && !p.modes(e.Args[0]).noGrad}
	case c.is("tensor.Slot.Get"):
		return value{turn: p.eval(e.Args[0], f).turn}
	case c.is(blocks...):
		return p.blockValue(c, f)
	case c.is("tensor.Tensor.RequireGrad"):
		return value{turn: p.eval(c.recv, f).turn, graph: true}
	case isForward(c):
		v := p.operands(e.Args, f)
		return value{turn: v.turn, graph: v.graph || p.recordsWith(e.Args)}
	case !c.ours():
		return p.ownResult(c, f)
	}
	v := p.operands(e.Args, f)
	if c.recv != nil {
		v = v.with(p.eval(c.recv, f))
	}
	v.graph = v.graph && !(c.is("tensor.Tensor."+c.fn.Name()) && plain[c.fn.Name()])
	return v
}

// blockValue is the value of a block: what it returns, in the scope around.
func (p *program) blockValue(c *call, f frame) value {
	outer := c.blockEnv()
	v := value{turn: p.eval(outer, f).turn}
	lit, ok := ast.Unparen(c.expr.Args[len(c.expr.Args)-1]).(*ast.FuncLit)
	if ok && !p.modes(outer).noGrad {
		for _, r := range p.returns(lit.Body, 0) {
			v.graph = v.graph || p.eval(r, f).graph
		}
	}
	return v
}

// operands are the values of a call's arguments together.
func (p *program) operands(args []ast.Expr, f frame) (v value) {
	for _, a := range args {
		if t := p.info.TypeOf(a); holdsTensors(t) || isType(t, "tensor.Env") {
			v = v.with(p.eval(a, f))
		}
	}
	return v
}

// ownResult is what a function of this package returns, with the values of its arguments.
func (p *program) ownResult(c *call, f frame) value {
	d := p.decls[c.fn]
	if d == nil || p.busy[c.fn] || len(p.busy) == maxEntered || !holdsTensors(p.info.TypeOf(c.expr)) {
		return value{}
	}
	p.busy[c.fn] = true
	defer delete(p.busy, c.fn)
	in := frame{params: map[types.Object]value{}, known: map[*def]value{}, depth: f.depth}
	i := 0
	for _, field := range d.Type.Params.List {
		for _, name := range field.Names {
			if i < len(c.expr.Args) {
				in.params[p.info.Defs[name]] = p.eval(c.expr.Args[i], f)
			}
			i++
		}
	}
	var v value
	for n, r := range p.returns(d.Body, 0) {
		w := p.eval(r, in)
		if n > 0 {
			w.graph = w.graph && v.graph // every return has one
		}
		if w.turn == nil {
			return value{} // there is a way on which it is no value of the turn, or nobody knows
		}
		v = v.with(w)
		v.graph = w.graph
	}
	return v
}

// returns are the results at a place of a function's own return statements, where they are written out.
func (p *program) returns(body *ast.BlockStmt, index int) (all []ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if index < len(n.Results) {
				all = append(all, n.Results[index])
			}
		}
		return true
	})
	return all
}

// isForward tells whether a call is of a module: a method named Forward that maps tensors to one.
func isForward(c *call) bool {
	if c.is("nn.Forward", "nn.Block") {
		return true
	}
	s := c.fn.Signature()
	return c.fn.Name() == "Forward" && s.Recv() != nil && s.Params().Len() > 0 && s.Results().Len() > 0 && isTensor(s.Params().At(0).Type()) && isTensor(s.Results().At(0).Type())
}

// recordsWith tells whether modules record what they do with arguments: whether none of these is known to be without gradients,
// and one is known not to be.
func (p *program) recordsWith(args []ast.Expr) (yes bool) {
	for _, a := range args {
		m := p.modes(a)
		if m.noGrad {
			return false
		}
		yes = yes || m.known
	}
	return yes
}

// modes are what is known of the modes of an env, or of a value.
type modes struct {
	known        bool // all that were set are
	noGrad, eval bool
}

// set are the modes behind a method of an Env.
func (m modes) set(method string) modes {
	switch method {
	case "NoGrad":
		m.noGrad = true
	case "Grad":
		m.noGrad = false
	case "Eval":
		m.eval = true
	case "Train":
		m.eval = false
	}
	return m
}

// over are modes with those of another env set over them.
func (m modes) over(n modes) modes {
	return modes{known: m.known && n.known, noGrad: m.noGrad || n.noGrad, eval: m.eval || n.eval}
}

// modes says what is known of the modes of an env, or of a value.
func (p *program) modes(e ast.Expr) modes { return p.modesAt(e, 0) }

func (p *program) modesAt(e ast.Expr, depth int) modes {
	if depth > 40 {
		return modes{}
	}
	depth++
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return p.modesOfVariable(e, depth)
	case *ast.SelectorExpr:
		if _, ok := p.info.Selections[e]; ok {
			return p.modesAt(e.X, depth)
		}
	case *ast.CallExpr:
		return p.modesOfCall(e, depth)
	}
	return modes{}
}

func (p *program) modesOfVariable(id *ast.Ident, depth int) modes {
	t := p.turnOf(p.object(id))
	switch {
	case t == nil:
		if e := p.origin(id); e != ast.Expr(id) {
			return p.modesAt(e, depth)
		}
	case t.env != nil:
		return p.modesAt(t.env, depth)
	case t.kind == overParts && len(t.of.expr.Args) > 0:
		return p.modesAt(t.of.expr.Args[0], depth)
	}
	return modes{}
}

func (p *program) modesOfCall(e *ast.CallExpr, depth int) modes {
	c := p.byExpr[e]
	switch {
	case c == nil:
		return modes{}
	case c.is("tensor.Best", "tensor.Open", "tensor.Fresh", "tensor.Simulated", "tensor.Rehearse"):
		return modes{known: true}
	case c.is("tensor.Tensor.In", "tensor.Tensor.To"):
		return p.modesAt(c.recv, depth).over(p.modesAt(e.Args[0], depth))
	case c.is("tensor.From") && len(e.Args) > 0:
		return p.modesAt(e.Args[0], depth)
	case c.recv != nil && c.is("tensor.Env."+c.fn.Name()):
		return p.modesAt(c.recv, depth).set(c.fn.Name())
	case c.recv != nil && c.is("tensor.Tensor."+c.fn.Name()) && c.fn.Name() != "Keep":
		return p.modesAt(c.recv, depth)
	case isForward(c) && len(e.Args) > 0:
		return p.modesAt(e.Args[0], depth)
	}
	return modes{}
}

// isConstant tells whether an expression is a constant text.
func (p *program) isConstant(e ast.Expr, text string) bool {
	v := p.info.Types[e].Value
	return v != nil && v.Kind() == constant.String && constant.StringVal(v) == text
}

// outside tells whether a variable, field or element belongs to something from before a node, and says to what.
func (p *program) outside(e ast.Expr, node ast.Node) (types.Object, bool) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			if _, ok := p.info.Selections[x]; !ok {
				o := p.info.Uses[x.Sel] // of a package
				return o, o != nil
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.Ident:
			o := p.object(x)
			return o, o != nil && x.Name != "_" && (o.Pos() < node.Pos() || o.Pos() > node.End())
		default:
			return nil, false
		}
	}
}
