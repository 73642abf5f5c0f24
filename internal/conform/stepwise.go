package conform

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// stepwise measures an op by its value: the rounding errors of the steps, each carried on to the result to first order. A
// unit is the spacing of the dtype that is computed in, at 1.
func stepwise(code ir.Code) func(c *Case) [][]float64 {
	e, err := code.ValueExpr(func(ir.Code) bool { return false })
	if err != nil {
		panic("conform: " + code.String() + ": " + err.Error()) // a mistake in the row
	}
	return func(c *Case) [][]float64 {
		out := make([]float64, len(c.want[0].Data))
		w := newWalk(c, nil, ir.Wide(c.Op.In(0).DType), e.ID()+1)
		w.over(len(out), func() {
			result := w.node(e)
			for i := range w.n {
				v, err := result.at(i)
				if err != err || math.IsInf(v, 0) {
					err = math.Abs(v)
				}
				out[w.from+i] = err
			}
		})
		return [][]float64{out}
	}
}

// walk evaluates an expression at some elements at once, each node once.
type walk struct {
	rule *ruleWalk // of an optimizer's rule; nil: of a value

	c       *Case
	from, n int      // the elements: the first, and how many
	least   float64  // the spacing of subnormal numbers
	known   []bool   // by the nodes' ID
	columns []column // each with room for all
}

// span is how many elements are walked at once: what is known of them stays in a cache.
const span = 512

// newWalk is a walk of nodes with IDs below ids, which is computed in dt.
func newWalk(c *Case, rule *ruleWalk, dt dtype.DType, ids int) *walk {
	return &walk{rule: rule, c: c, least: dt.SmallestSubnormal() / dt.Epsilon(), known: make([]bool, ids), columns: make([]column, ids)}
}

// over calls f for some elements after the others.
func (w *walk) over(size int, f func()) {
	for w.from = 0; w.from < size; w.from += span {
		w.n = min(span, size-w.from)
		clear(w.known)
		f()
	}
}

// column is the values of a node and their errors; of a number, which all elements have, just one.
type column struct{ v, err []float64 }

// at is what an element has.
func (c column) at(i int) (v, err float64) {
	i = min(i, len(c.v)-1)
	return c.v[i], c.err[i]
}

// one makes a column of a number.
func (c column) one(v float64) column {
	c.v[0], c.err[0] = v, math.Abs(v)
	return column{c.v[:1], c.err[:1]}
}

// node is a node's column.
func (w *walk) node(e *ir.Expr) column {
	id := e.ID()
	if w.known[id] {
		return w.columns[id]
	}
	if cap(w.columns[id].v) == 0 {
		w.columns[id] = column{make([]float64, span), make([]float64, span)}
	}
	to := w.columns[id]
	to = w.compute(e, column{to.v[:w.n], to.err[:w.n]})
	w.columns[id], w.known[id] = to, true
	return to
}

// compute is a node's column in a room for it.
func (w *walk) compute(e *ir.Expr, to column) column {
	if w.rule != nil {
		if c, ok := w.rule.leaf(e, w.from, to); ok {
			return c
		}
	}
	switch {
	case e.Name == ir.NameP || e.Name == ir.NameQ:
		return to.one(w.c.scalar(int(e.Name - ir.NameP)))
	case e.Name != ir.NoName:
		copy(to.v, w.c.In[e.Name-ir.NameX].Data[w.from:][:w.n])
		clear(to.err)
		return to
	case e.Code == ir.Invalid:
		return to.one(e.Number)
	case e.Code == ir.Where:
		return w.where(e, to)
	}
	first, last := w.node(e.Args[0]), w.node(e.Args[len(e.Args)-1])
	to = to.like(first, last)
	for i := range to.v {
		x, dx := first.at(i)
		y, dy := last.at(i)
		v := ref.Word(e.Code, x, y)
		var carried float64
		if len(e.Args) == 2 {
			carried = spread2(e.Code, x, y, dx, dy)
		} else {
			carried = slope(func(x float64) float64 { return ref.Word(e.Code, x, 0) }, x, dx)
		}
		to.v[i], to.err[i] = v, carried+rounding(e.Code, x, y, v)+w.least
	}
	return to
}

// like is a column with one number where all those that it is computed from have one.
func (c column) like(from ...column) column {
	for _, f := range from {
		if len(f.v) != 1 {
			return c
		}
	}
	return column{c.v[:1], c.err[:1]}
}

// where has the error of the branch that is taken, also where a rounded comparison would take the other: a function that
// jumps there is none that can be computed.
func (w *walk) where(e *ir.Expr, to column) column {
	test := e.Args[0]
	left, right, yes, no := w.node(test.Args[0]), w.node(test.Args[1]), w.node(e.Args[1]), w.node(e.Args[2])
	to = to.like(left, right, yes, no)
	for i := range to.v {
		x, _ := left.at(i)
		y, _ := right.at(i)
		if ref.Compare(test.Code, x, y) {
			to.v[i], to.err[i] = yes.at(i)
		} else {
			to.v[i], to.err[i] = no.at(i)
		}
	}
	return to
}

// rounding is what one step adds.
func rounding(code ir.Code, x, y, v float64) float64 {
	switch code.Row().Tolerance {
	case ir.Exact:
		return 0
	case ir.Rounded:
		return math.Abs(v)
	case ir.Powers:
		return 4 * amplified(x, y)
	}
	if code == ir.Sin || code == ir.Cos {
		return 4 * (1 + math.Abs(x))
	}
	return 4 * math.Abs(v)
}

// spread2 is the error that operands' errors make of a function of two.
func spread2(code ir.Code, x, y, dx, dy float64) float64 {
	switch code {
	case ir.Add, ir.Sub:
		return dx + dy
	case ir.Mul:
		return math.Abs(y)*dx + math.Abs(x)*dy
	case ir.Div:
		return dx/math.Abs(y) + math.Abs(x/y/y)*dy
	case ir.Maximum, ir.Minimum:
		return max(dx, dy)
	}
	return slope(func(x float64) float64 { return ref.Word(code, x, y) }, x, dx) + slope(func(y float64) float64 { return ref.Word(code, x, y) }, y, dy)
}

// slope is |f'(x)|·dx from a difference.
func slope(f func(float64) float64, x, dx float64) float64 {
	if dx == 0 {
		return 0
	}
	h := 1e-6 * max(math.Abs(x), 1e-3)
	d := math.Abs(f(x+h)-f(x-h)) / (2 * h)
	if d != d {
		return 0 // beyond the function's domain, or infinite
	}
	return d * dx
}

// ruleWalk is what a rule's leaves and numbers are for one parameter.
type ruleWalk struct {
	u       *ir.Update
	numbers []float64
	group   []ref.Array // p, g and the state
	scale   float64
}

// leaf is the column of an operand or of a number, from an element on.
func (r *ruleWalk) leaf(e *ir.Expr, from int, to column) (column, bool) {
	if i, ok := r.u.Operand(e); ok {
		copy(to.v, r.group[i].Data[from:][:len(to.v)])
		clear(to.err)
		if i == 1 {
			for j := range to.v {
				to.v[j] *= r.scale
				to.err[j] = math.Abs(to.v[j])
			}
		}
		return to, true
	}
	if i, ok := r.u.Number(e); ok {
		return to.one(r.numbers[i]), true
	}
	return to, false
}

// ruleErrors is the error of each result of a rule, carried through its steps. Numbers are exact but for one rounding.
func ruleErrors(c *Case) (out [][]float64) {
	u, err := c.Op.Code.Update()
	if err != nil {
		panic("conform: " + err.Error()) // a mistake in the row
	}
	whole, ids := 2+len(u.Rule.State), 0
	for _, result := range u.Results {
		for _, n := range result.Nodes() {
			ids = max(ids, n.ID()+1)
		}
	}
	for at := 1; at < len(c.In); at += u.Rule.Group() {
		group := c.In[at:][:u.Rule.Group()]
		numbers := ref.RuleNumbers(u, c.scalar, group[whole].Data[0], func(i int) float64 { return group[whole+1+i].Data[0] })
		errors := make([][]float64, whole-1)
		r := &ruleWalk{u: u, numbers: numbers, group: group, scale: c.In[0].Data[0]}
		w := newWalk(c, r, ir.Wide(group[0].Type.DType), ids)
		w.over(len(group[0].Data), func() {
			w.steps(u)
			for i, result := range u.Results {
				of := w.node(result)
				for j := range w.n {
					_, err := of.at(j)
					errors[i] = append(errors[i], err)
				}
			}
		})
		out = append(out, errors...)
	}
	return out
}

// steps walks the steps of a rule. A number is rounded once, and so is what has no error that could be told.
func (w *walk) steps(u *ir.Update) {
	for _, n := range u.Steps {
		if n.Code == ir.Lt || n.Code == ir.Le || n.Code == ir.Eq || n.Code == ir.Ne {
			continue
		}
		of, scalar := w.node(n), u.Scalar(n)
		for i, err := range of.err {
			if v := of.v[i]; scalar || err != err || math.IsInf(v, 0) {
				of.err[i] = math.Abs(v)
			}
		}
	}
}
