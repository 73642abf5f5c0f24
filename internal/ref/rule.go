package ref

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule != nil {
			set(rule, code)
		}
	}
}

// rule is an optimizer's update, element by element as its text says.
func rule(c *call) ([]Array, error) {
	u, err := c.op.Code.Update()
	if err != nil {
		return nil, err
	}
	var out [][]float64
	for at := 1; at < len(c.in); at += u.Rule.Group() {
		group := c.in[at:][:u.Rule.Group()]
		whole := 2 + len(u.Rule.State)
		results := [][]float64{clone(group[0].Data)}
		for _, s := range group[2:whole] {
			results = append(results, clone(s.Data))
		}
		numbers := c.ruleNumbers(u, group[whole:])
		for j := range results[0] {
			if c.skips(c.op.Code.NumParams() - 1) {
				break
			}
			operands := make([]float64, whole)
			for i := range operands {
				operands[i] = group[i].Data[j]
			}
			operands[1] *= c.in[0].Data[0]
			for i, v := range RuleAt(u, numbers, operands) {
				results[i][j] = v
			}
		}
		out = append(out, results...)
	}
	return c.results(out...)
}

// ruleNumbers are those of a parameter whose last operands are the number of its update and further numbers.
func (c *call) ruleNumbers(u *ir.Update, rest []Array) []float64 {
	return RuleNumbers(u, c.scalar, float64(rest[0].int(0)), func(i int) float64 { return rest[1+i].Data[0] })
}

// RuleNumbers are the numbers of a rule's text from the launch parameters, t, and further numbers of the parameter.
func RuleNumbers(u *ir.Update, param func(i int) float64, t float64, further func(i int) float64) []float64 {
	numbers := []float64{param(ir.RuleRate) * param(ir.RuleFactor), param(ir.RuleCoupled), param(ir.RuleDecay)}
	for i := range u.Rule.Settings {
		numbers = append(numbers, param(ir.RuleSettings+i))
	}
	numbers = append(numbers, t)
	for i := range u.Rule.Numbers {
		numbers = append(numbers, further(i))
	}
	return numbers
}

// RuleAt is the results of a rule at one element, in float64.
func RuleAt(u *ir.Update, numbers, operands []float64) (results []float64) {
	var values []float64 // by the steps' ID, the last of which is the greatest
	if n := len(u.Steps); n > 0 {
		values = make([]float64, u.Steps[n-1].ID()+1)
	}
	value := func(e *ir.Expr) float64 {
		if i, ok := u.Number(e); ok {
			return numbers[i]
		}
		if i, ok := u.Operand(e); ok {
			return operands[i]
		}
		if e.IsNumber() {
			return e.Number
		}
		return values[e.ID()]
	}
	for _, n := range u.Steps {
		switch n.Code {
		case ir.Lt, ir.Le, ir.Eq, ir.Ne:
			if values[n.ID()] = 0; Compare(n.Code, value(n.Args[0]), value(n.Args[1])) {
				values[n.ID()] = 1
			}
		case ir.Where:
			if values[n.ID()] = value(n.Args[2]); value(n.Args[0]) != 0 {
				values[n.ID()] = value(n.Args[1])
			}
		default:
			values[n.ID()] = Word(n.Code, value(n.Args[0]), value(n.Args[len(n.Args)-1]))
		}
	}
	for _, r := range u.Results {
		results = append(results, value(r))
	}
	return results
}
