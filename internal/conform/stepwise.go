package conform

import (
	"math"

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
		dt := ir.Wide(c.Op.In(0).DType)
		out := make([]float64, len(c.want[0].Data))
		w := walk{c: c, least: dt.SmallestSubnormal() / dt.Epsilon(), known: make([]bool, e.ID()+1), values: make([][2]float64, e.ID()+1)}
		for i := range out {
			clear(w.known)
			w.at = i
			v, e := w.node(e)
			if e != e || math.IsInf(v, 0) {
				e = math.Abs(v)
			}
			out[i] = e
		}
		return [][]float64{out}
	}
}

// walk evaluates an expression at one element, each node once.
type walk struct {
	rule *ruleWalk // of an optimizer's rule; nil: of a value

	c      *Case
	at     int
	least  float64 // the spacing of subnormal numbers
	known  []bool  // by the nodes' ID
	values [][2]float64
}

// node is a node's value and error.
func (w *walk) node(e *ir.Expr) (v, err float64) {
	if id := e.ID(); !w.known[id] {
		v, err := w.compute(e)
		w.values[id], w.known[id] = [2]float64{v, err}, true
	}
	return w.values[e.ID()][0], w.values[e.ID()][1]
}

func (w *walk) compute(e *ir.Expr) (v, err float64) {
	if w.rule != nil {
		if v, err, ok := w.rule.leaf(e, w.at); ok {
			return v, err
		}
	}
	switch {
	case e.Name == ir.NameP || e.Name == ir.NameQ:
		v = w.c.scalar(int(e.Name - ir.NameP))
		return v, math.Abs(v)
	case e.Name != ir.NoName:
		return w.c.In[e.Name-ir.NameX].Data[w.at], 0
	case e.Code == ir.Invalid:
		return e.Number, math.Abs(e.Number)
	case e.Code == ir.Where:
		return w.where(e)
	}
	x, dx := w.node(e.Args[0])
	y, dy := w.node(e.Args[len(e.Args)-1])
	v = ref.Word(e.Code, x, y)
	var carried float64
	if len(e.Args) == 2 {
		carried = spread2(e.Code, x, y, dx, dy)
	} else {
		carried = slope(func(x float64) float64 { return ref.Word(e.Code, x, 0) }, x, dx)
	}
	return v, carried + rounding(e.Code, x, y, v) + w.least
}

// where has the error of the branch that is taken, also where a rounded comparison would take the other: a function that
// jumps there is none that can be computed.
func (w *walk) where(e *ir.Expr) (v, err float64) {
	test := e.Args[0]
	x, _ := w.node(test.Args[0])
	y, _ := w.node(test.Args[1])
	if ref.Compare(test.Code, x, y) {
		return w.node(e.Args[1])
	}
	return w.node(e.Args[2])
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

// leaf is the value of an operand or of a number.
func (r *ruleWalk) leaf(e *ir.Expr, at int) (v, err float64, ok bool) {
	if i, ok := r.u.Operand(e); ok {
		if v = r.group[i].Data[at]; i == 1 {
			v *= r.scale
			return v, math.Abs(v), true
		}
		return v, 0, true
	}
	if i, ok := r.u.Number(e); ok {
		return r.numbers[i], math.Abs(r.numbers[i]), true
	}
	return 0, 0, false
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
		dt := ir.Wide(group[0].Type.DType)
		numbers := ref.RuleNumbers(u, c.scalar, group[whole].Data[0], func(i int) float64 { return group[whole+1+i].Data[0] })
		errors := make([][]float64, whole-1)
		r := &ruleWalk{u: u, numbers: numbers, group: group, scale: c.In[0].Data[0]}
		w := walk{rule: r, c: c, least: dt.SmallestSubnormal() / dt.Epsilon(), known: make([]bool, ids), values: make([][2]float64, ids)}
		for j := range group[0].Data {
			clear(w.known)
			w.at = j
			for _, n := range u.Steps {
				if n.Code == ir.Lt || n.Code == ir.Le || n.Code == ir.Eq || n.Code == ir.Ne {
					continue
				}
				v, e := w.node(n)
				if u.Scalar(n) || e != e || math.IsInf(v, 0) {
					w.values[n.ID()] = [2]float64{v, math.Abs(v)}
				}
			}
			for i, result := range u.Results {
				_, e := w.node(result)
				errors[i] = append(errors[i], e)
			}
		}
		out = append(out, errors...)
	}
	return out
}
