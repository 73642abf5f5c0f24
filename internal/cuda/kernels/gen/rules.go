package main

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ir"
)

// ruled are the units of a source for optimizers whose update is a rule in their row: one for each, and each floating dtype.
func ruled(source string) (units []unit, err error) {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Rule == nil {
			continue
		}
		u, err := code.Update()
		if err != nil {
			return nil, err
		}
		text, err := newRuleText(u)
		if err != nil {
			return nil, fmt.Errorf("the rule of %s: %w", code, err)
		}
		for _, dt := range dtype.All() {
			if !code.Row().Class.Has(dt) {
				continue
			}
			name := code.String() + "_" + dt.String()
			units = append(units, unit{source: source, name: "rule_" + name, target: kernels.Base, defines: append([]string{
				"-DT=" + dt.String(), "-DFUNCTION=" + name, fmt.Sprintf("-DOPERANDS=%d", 2+len(u.Rule.State))}, text.defines()...)})
		}
	}
	return units, nil
}

// ruleText is a rule in C++: numbers in f64, and steps in C, the type that elements are computed in.
type ruleText struct {
	u                     *ir.Update
	settings              []string
	numbers, loads, steps strings.Builder
	inNumbers, inSteps    map[*ir.Expr]string
	count                 int
}

func (t *ruleText) defines() []string {
	return []string{
		fmt.Sprintf("-DCOUNT=%d", max(t.count, 1)), "-DSETTINGS=" + strings.Join(t.settings, ""), "-DNUMBERS=" + strings.TrimSpace(t.numbers.String()),
		"-DLOADS=" + strings.TrimSpace(t.loads.String()), "-DSTEPS=" + strings.TrimSpace(t.steps.String()),
	}
}

func newRuleText(u *ir.Update) (*ruleText, error) {
	t := &ruleText{u: u, inNumbers: map[*ir.Expr]string{}, inSteps: map[*ir.Expr]string{}}
	t.leaves()
	for i, n := range u.Steps {
		if err := t.step(n, fmt.Sprintf("v%d", i)); err != nil {
			return nil, err
		}
	}
	for i, e := range u.Results {
		at := i // of an operand: the gradient is no result
		if i > 0 {
			at++
		}
		if v := t.element(e); v != t.operand(at) {
			fmt.Fprintf(&t.steps, "%s = %s; ", t.operand(at), v)
		}
	}
	return t, nil
}

// leaves declares the launch's settings and the numbers of a parameter.
func (t *ruleText) leaves() {
	t.settings = []string{", Word<f64> n0", ", Word<f64> factor"}
	t.numbers.WriteString("[[maybe_unused]] const f64 a0 = f64(n0) * f64(factor); ")
	for i := 1; i < t.u.Turn(); i++ {
		t.settings = append(t.settings, fmt.Sprintf(", Word<f64> n%d", i))
		fmt.Fprintf(&t.numbers, "[[maybe_unused]] const f64 a%d = n%d; ", i, i)
	}
	fmt.Fprintf(&t.numbers, "[[maybe_unused]] const i64 turn = *t.number[mine]; [[maybe_unused]] const f64 a%d = f64(turn); ", t.u.Turn())
	for i := range t.u.Rule.Numbers {
		fmt.Fprintf(&t.numbers, "[[maybe_unused]] const f64 a%d = *(const f64 *)t.number[%d * 36 + mine]; ", t.u.Turn()+1+i, i+1)
	}
}

func (t *ruleText) operand(i int) string { return fmt.Sprintf("s.v[%d][k]", i) }

// number is a node in f64.
func (t *ruleText) number(e *ir.Expr) string {
	if i, ok := t.u.Number(e); ok {
		return fmt.Sprintf("a%d", i)
	}
	if e.IsNumber() {
		return strings.Replace(leaf(e), "C(", "f64(", 1)
	}
	return t.inNumbers[e]
}

// element is a node in C. A number comes there through shared memory, once.
func (t *ruleText) element(e *ir.Expr) string {
	if i, ok := t.u.Operand(e); ok {
		return t.operand(i)
	}
	if e.IsNumber() {
		return leaf(e)
	}
	if _, leaf := t.u.Number(e); (leaf || t.u.Scalar(e)) && t.inSteps[e] == "" {
		fmt.Fprintf(&t.numbers, "computed[%d] = %s; ", t.count, t.number(e))
		fmt.Fprintf(&t.loads, "const C c%d = C(computed[%d]); ", t.count, t.count)
		t.inSteps[e] = fmt.Sprintf("c%d", t.count)
		t.count++
	}
	return t.inSteps[e]
}

// step writes a call: as a statement of its own, so that nothing is fused that the other engines round.
func (t *ruleText) step(n *ir.Expr, name string) error {
	format, ok := words[n.Code]
	if !ok {
		return fmt.Errorf("%s has no word in C++", n.Code)
	}
	scalar := t.u.Scalar(n)
	if scalar && n.Code == ir.Pow {
		t.inNumbers[n] = name
		fmt.Fprintf(&t.numbers, "const f64 %s = power(%s, turn); ", name, t.number(n.Args[0]))
		return nil
	}
	var numbers, elements []any
	all := true
	for _, a := range n.Args {
		_, leaf := t.u.Number(a)
		all = all && (leaf || a.IsNumber() || t.u.Scalar(a) || t.inNumbers[a] != "")
	}
	for _, a := range n.Args {
		if all {
			numbers = append(numbers, t.number(a))
		}
		if !scalar {
			elements = append(elements, t.element(a))
		}
	}
	if all { // a condition of numbers may be of a choice between numbers
		t.inNumbers[n] = name
		fmt.Fprintf(&t.numbers, "[[maybe_unused]] const auto %s = %s; ", name, fmt.Sprintf(format, numbers...))
	}
	if !scalar {
		t.inSteps[n] = name
		fmt.Fprintf(&t.steps, "const auto %s = %s; ", name, fmt.Sprintf(format, elements...))
	}
	return nil
}
