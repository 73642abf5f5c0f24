package ir

import (
	"fmt"
	"slices"
	"strings"
	"text/scanner"

	"github.com/warpline-ml/warpline/dtype"
)

// Rule is an optimizer's update of one element, written once: the reference, the lowering and the kernels of all engines
// are made from it. The text is assignments, in the language of [Expr]:
//
//	v = alpha*v + (1-alpha)*g*g; p = p - lr*(g/(sqrt(v)+eps))
//
// Its names are p, the weight; g, its gradient, scaled; those of the state; lr; coupled and decay, the weight decay that is
// added to the gradient or taken from the weight; the settings; t, the number of the parameter's update from 1; and further
// numbers of the parameter. What is made of numbers alone is computed in f64, once for a parameter; pow has t as its second
// operand there.
//
// An op of a rule takes (scale[], then p, g, the state, t i64[], the numbers f64[] per parameter) → p and the state in place.
// Its launch parameters are the rate, its factor, coupled, decay, the settings, and whether to skip (an integer).
type Rule struct {
	State, Settings, Numbers []string
	Text                     string
	Part                     bool // of an update, of which p may be a state
}

// ruleParams is the number of launch parameters besides the settings.
const ruleParams = 5

// Group is the number of operands of a parameter.
func (r *Rule) Group() int { return 3 + len(r.State) + len(r.Numbers) }

// The first settings of a rule's launch.
const (
	RuleRate = iota
	RuleFactor
	RuleCoupled
	RuleDecay
	RuleSettings
)

// names are all leaves of a rule's text, those that are numbers first.
func (r *Rule) names() []string {
	return slices.Concat([]string{"lr", "coupled", "decay"}, r.Settings, []string{"t"}, r.Numbers, []string{"p", "g"}, r.State)
}

const firstRuleName = NameG + 1

// Update is a rule that was read.
type Update struct {
	Rule    *Rule
	Results []*Expr // the weight and the state
	Steps   []*Expr // all calls, each once and after its operands
	scalars int     // names that are numbers
	scalar  map[*Expr]bool
}

// Update reads the code's rule, which it has.
func (c Code) Update() (*Update, error) {
	r := c.Row().Rule
	names := r.names()
	u := &Update{Rule: r, scalars: len(names) - 2 - len(r.State), scalar: map[*Expr]bool{}}
	p := &exprParser{nodes: map[structure]*Expr{}, named: map[string]*Expr{}}
	for i, name := range names {
		p.named[name] = p.leaf(firstRuleName + Name(i))
	}
	if err := p.assignments(r.Text); err != nil {
		return nil, fmt.Errorf("rule of %s: %w", c, err)
	}
	seen := map[*Expr]bool{}
	for _, name := range slices.Concat([]string{"p"}, r.State) {
		u.Results = append(u.Results, p.named[name])
		for _, n := range p.named[name].Nodes() {
			if !seen[n] && n.Code != Invalid {
				u.Steps = append(u.Steps, n)
			}
			seen[n] = true
		}
	}
	slices.SortFunc(u.Steps, func(a, b *Expr) int { return a.id - b.id })
	for n := range seen {
		u.scalar[n] = u.numbers(n)
	}
	return u, nil
}

// numbers reports a node that is made of numbers alone. A condition is one only as part of a choice between numbers.
func (u *Update) numbers(e *Expr) bool {
	for _, n := range e.Nodes() {
		if n.Name >= firstRuleName+Name(u.scalars) {
			return false
		}
	}
	return !boolean(e)
}

// Scalar reports a node that is one number for a parameter.
func (u *Update) Scalar(e *Expr) bool { return u.scalar[e] }

// Number is the place of a leaf among lr, coupled, decay, the settings, t and the numbers; not ok if it is an operand.
func (u *Update) Number(e *Expr) (i int, ok bool) {
	i = int(e.Name) - int(firstRuleName)
	return i, i >= 0 && i < u.scalars
}

// Operand is the place of a leaf among p, g and the state; not ok if it is a number.
func (u *Update) Operand(e *Expr) (i int, ok bool) {
	i = int(e.Name) - int(firstRuleName) - u.scalars
	return i, i >= 0
}

// Turn is the place of t among the numbers, whose count is Numbers.
func (u *Update) Turn() int    { return 3 + len(u.Rule.Settings) }
func (u *Update) Numbers() int { return u.scalars }

// ID tells the nodes of a rule apart; it is above those of a node's operands.
func (e *Expr) ID() int { return e.id }

// IsNumber reports a number of the text.
func (e *Expr) IsNumber() bool { return e.constant() }

// assignments reads statements each of which names its value, anew where the name is known.
func (p *exprParser) assignments(text string) error {
	p.scan.Init(strings.NewReader(text))
	p.scan.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanInts
	p.scan.Error = func(_ *scanner.Scanner, msg string) { p.fail("%s", msg) }
	p.next()
	for p.err == nil {
		name := p.scan.TokenText()
		if p.tok != scanner.Ident {
			p.fail("%q is no name", name)
		}
		p.next()
		p.want('=')
		p.named[name] = p.sum()
		if p.tok != ';' {
			break
		}
		p.next()
	}
	if p.err == nil && p.tok != scanner.EOF {
		p.fail("%q is not understood", p.scan.TokenText())
	}
	return p.err
}

// inferRule checks (scale, then a group of operands per parameter) and returns the types of those written.
func inferRule(o *Op) ([]*Type, error) {
	r := o.Code.Row().Rule
	if s := o.In(0); s.Rank() != 0 || !s.DType.IsFloat() {
		return nil, fmt.Errorf("the scale is %s, not one floating number", s)
	}
	rest, n := o.Ins()[1:], r.Group()
	if len(rest)%n != 0 {
		return nil, fmt.Errorf("%d operands in groups of %d", len(rest), n)
	}
	var out []*Type
	for group := range slices.Chunk(rest, n) {
		written, err := r.check(group)
		if err != nil {
			return nil, err
		}
		out = append(out, written...)
	}
	return out, nil
}

// check is what is written of one parameter's operands.
func (r *Rule) check(group []*Type) (out []*Type, err error) {
	whole := 2 + len(r.State)
	for j, t := range group {
		switch {
		case j == whole && t != Dense(dtype.I64):
			return nil, fmt.Errorf("the number of an update is %s, not %s", t, Dense(dtype.I64))
		case j > whole && t != Dense(dtype.F64):
			return nil, fmt.Errorf("%s is %s, not %s", r.Numbers[j-whole-1], t, Dense(dtype.F64))
		case j >= whole:
		case !t.DType.IsFloat() || !t.SameShape(group[0]) || t.DType != group[0].DType:
			return nil, fmt.Errorf("parameter %s with %s", group[0], t)
		case !t.IsDense():
			return nil, fmt.Errorf("%s must be row-major", t)
		case j != 1:
			out = append(out, t)
		}
	}
	return out, nil
}

// ruleFlops counts the steps that are made for each element.
func ruleFlops(o *Op, _ []*Type) (flops int64) {
	u, err := o.Code.Update()
	if err != nil {
		panic("ir: " + err.Error()) // a mistake in the row
	}
	each := int64(1) // the gradient's scale
	for _, n := range u.Steps {
		if !u.Scalar(n) && n.Code != Where {
			each++
		}
	}
	for i := 1; i < o.NumIn(); i += u.Rule.Group() {
		flops += each * int64(o.In(i).size)
	}
	return flops
}

// RuleNamed is the code of a rule.
func RuleNamed(name string) (Code, bool) {
	c, ok := codes()[name]
	return c, ok && c.Row().Rule != nil
}

// UpdateNamed tells whether a name is that of a code that [Code.Updates] parameters.
func UpdateNamed(name string) bool { return codes()[name].Updates() }

// Updates tells an optimizer's update of parameters.
func (c Code) Updates() bool {
	return c == SGD || c == AdamW || c == Adam8bit || c != Invalid && c.Row().Rule != nil && !c.Row().Rule.Part
}
