package lower

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			rules[code] = ruled(code)
		}
	}
}

// ruled is the decomposition of an optimizer's rule into its steps.
func ruled(code ir.Code) Rule {
	u, err := code.Update()
	if err != nil {
		panic("lower: " + err.Error()) // a mistake in the row
	}
	n, whole := u.Rule.Group(), 2+len(u.Rule.State)
	return func(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) (out []ir.Value) {
		for i := 1; i < len(in); i += n {
			group := in[i : i+n]
			if p.Value[p.N-1] != 0 {
				out = append(append(out, group[0]), group[2:whole]...)
				continue
			}
			r := ruleBuilder{b: b, u: u, values: map[*ir.Expr]ir.Value{}, wide: ir.Wide(group[0].Type().DType)}
			out = append(out, narrowed(b, group[0], r.results(p, in[0], group))...)
		}
		return out
	}
}

// ruleBuilder computes one parameter's update: numbers in f64, what is of elements in wide.
type ruleBuilder struct {
	b       ir.B
	u       *ir.Update
	values  map[*ir.Expr]ir.Value
	numbers []ir.Value
	in      []ir.Value // p, g and the state
	wide    dtype.DType
}

func (r *ruleBuilder) results(p *ir.Params, scale ir.Value, group []ir.Value) (out []ir.Value) {
	whole := 2 + len(r.u.Rule.State)
	for i, v := range group[:whole] {
		if v = r.b.Cast(v, r.wide); i == 1 {
			v = r.b.Mul(v, r.b.Cast(scale, r.wide))
		}
		r.in = append(r.in, v)
	}
	r.number(param(p, ir.RuleRate) * param(p, ir.RuleFactor))
	for i := ir.RuleCoupled; i < ir.RuleSettings+len(r.u.Rule.Settings); i++ {
		r.number(param(p, i))
	}
	for _, v := range group[whole:] {
		r.numbers = append(r.numbers, r.b.Cast(v, dtype.F64))
	}
	for _, n := range r.u.Steps {
		r.values[n] = r.step(n)
	}
	for _, e := range r.u.Results {
		out = append(out, r.value(e, false))
	}
	return out
}

func (r *ruleBuilder) number(v float64) { r.numbers = append(r.numbers, r.b.Number(dtype.F64, v)) }

// step makes a call. A condition of numbers has the shape of elements.
func (r *ruleBuilder) step(n *ir.Expr) ir.Value {
	scalar := r.u.Scalar(n)
	var args []ir.Value
	for _, a := range n.Args {
		v := r.value(a, scalar)
		if !scalar && v.Type().Rank() < r.in[0].Type().Rank() {
			v = r.b.Expand(v, r.in[0].Type().Shape())
		}
		args = append(args, v)
	}
	switch {
	case n.Code == ir.Where:
		return r.b.Where(args[0], args[1], args[2])
	case len(args) == 1:
		return r.b.Unary(n.Code, args[0])
	}
	return r.b.Binary(n.Code, args[0], args[1])
}

// value is that of a node, numbers as those of elements unless they are for one.
func (r *ruleBuilder) value(e *ir.Expr, scalar bool) (v ir.Value) {
	if i, ok := r.u.Operand(e); ok {
		return r.in[i]
	}
	i, ok := r.u.Number(e)
	switch {
	case ok:
		v = r.numbers[i]
	case e.IsNumber():
		v = r.b.Number(dtype.F64, e.Number)
	default:
		v = r.values[e]
	}
	if !scalar && v.Type().DType == dtype.F64 && r.wide != dtype.F64 {
		v = r.b.Cast(v, r.wide)
	}
	return v
}
