package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/scanner"
)

// Expr is a node of an expression: the value of an elementwise op or a gradient of it, written in a line of text.
//
//	x / (1 + abs(x))
//	s = sigmoid(x); g * (s + x*s*(1-s))
//
// Names are x and y, the operands (c, x and y of an op of three); p and q, the launch parameters; out, the result; g, its
// gradient; pi and inf; and what was named before with =. Functions are elementwise ops without parameters, by their
// names. There are + - * /, and as the condition of where < <= > >= == !=. What is made of numbers alone is computed when
// the text is read. Equal parts of one text are one node.
type Expr struct {
	Code   Code    // of a call; Invalid for a name or number
	Args   []*Expr // of a call
	Name   Name    // of a leaf; NoName for a number
	Number float64

	id int // of the nodes of a text; above those of its operands
}

// Name is what a leaf of an expression stands for.
type Name uint8

// The names. Operand i of an op is NameX + i, parameter i NameP + i.
const (
	NoName Name = iota
	NameX
	NameY
	NameZ
	NameP
	NameQ
	NameOut
	NameG
)

var negInf, posInf = math.Inf(-1), math.Inf(1)

// ParseExpr reads an expression of an op with a number of operands.
func ParseExpr(text string, operands int) (*Expr, error) {
	return (&exprParser{}).parse(text, operands)
}

// ValueExpr is the Value of an elementwise op. Calls of ops that have a Value themselves are replaced by it, but for those
// that keep has.
func (c Code) ValueExpr(keep func(Code) bool) (*Expr, error) {
	return (&exprParser{inline: true, keep: keep}).parse(c.Row().Value, c.Row().min)
}

func (p *exprParser) parse(text string, operands int) (*Expr, error) {
	p.nodes, p.named = map[structure]*Expr{}, map[string]*Expr{}
	names := []string{"x", "y"}[:min(operands, 2)]
	if p.masked = operands == 3; p.masked {
		names = []string{"c", "x", "y"}
	}
	for i, name := range names {
		p.named[name] = p.leaf(NameX + Name(i))
	}
	for i, name := range [...]string{"p", "q", "out", "g"} {
		p.named[name] = p.leaf(NameP + Name(i))
	}
	p.named["pi"], p.named["inf"] = p.number(math.Pi), p.number(posInf)
	e, err := p.text(text)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", text, err)
	}
	return e, nil
}

// exprParser reads by descent, an operator's strength per function. Its first error stays.
type exprParser struct {
	scan   scanner.Scanner
	tok    rune
	nodes  map[structure]*Expr
	named  map[string]*Expr
	inline bool            // replace calls by values
	keep   func(Code) bool // but not of these
	masked bool            // the first operand is a condition
	err    error
}

// structure tells nodes apart, of which each operand is one node already.
type structure struct {
	code   Code
	name   Name
	number uint64 // its bits
	args   [3]*Expr
}

func (p *exprParser) text(text string) (e *Expr, err error) {
	p.scan.Init(strings.NewReader(text))
	p.scan.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanInts
	p.scan.Error = func(_ *scanner.Scanner, msg string) { p.fail("%s", msg) }
	p.next()
	for p.err == nil {
		e = p.statement()
		if p.tok != ';' {
			break
		}
		p.next()
	}
	if p.err == nil && p.tok != scanner.EOF {
		p.fail("%q is not understood", p.scan.TokenText())
	}
	if p.err == nil && boolean(e) {
		p.fail("it is a condition, not a number")
	}
	return e, p.err
}

func (p *exprParser) next() { p.tok = p.scan.Scan() }

func (p *exprParser) fail(format string, args ...any) *Expr {
	if p.err == nil {
		p.err = fmt.Errorf("column %d: %s", p.scan.Pos().Column, fmt.Sprintf(format, args...))
	}
	return p.number(0)
}

// statement is an expression, or a name with one.
func (p *exprParser) statement() *Expr {
	if p.tok == scanner.Ident && p.named[p.scan.TokenText()] == nil {
		name := p.scan.TokenText()
		if p.next(); p.tok == '=' {
			p.next()
			e := p.sum()
			p.named[name] = e
			return e
		}
		return p.rest(p.call(name))
	}
	return p.sum()
}

// rest continues after a call that began a statement.
func (p *exprParser) rest(first *Expr) *Expr { return p.sums(p.products(first)) }

func (p *exprParser) sum() *Expr { return p.sums(p.product()) }

func (p *exprParser) sums(e *Expr) *Expr {
	for p.err == nil {
		switch p.tok {
		case '+':
			p.next()
			e = p.node(Add, e, p.product())
		case '-':
			p.next()
			e = p.node(Sub, e, p.product())
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) product() *Expr { return p.products(p.factor()) }

func (p *exprParser) products(e *Expr) *Expr {
	for p.err == nil {
		switch p.tok {
		case '*':
			p.next()
			e = p.node(Mul, e, p.factor())
		case '/':
			p.next()
			e = p.node(Div, e, p.factor())
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) factor() *Expr {
	text := p.scan.TokenText()
	switch p.tok {
	case '-':
		p.next()
		return p.node(Neg, p.factor())
	case '(':
		p.next()
		e := p.sum()
		p.want(')')
		return e
	case scanner.Int, scanner.Float:
		p.next()
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return p.fail("%q is no number", text)
		}
		return p.number(v)
	case scanner.Ident:
		p.next()
		if e := p.named[text]; e != nil {
			return e
		}
		return p.call(text)
	}
	return p.fail("a number, a name or ( is missing before %q", text)
}

func (p *exprParser) want(tok rune) {
	if p.tok != tok {
		p.fail("%q is missing before %q", tok, p.scan.TokenText())
		return
	}
	p.next()
}

// call reads the arguments of a function whose name was read.
func (p *exprParser) call(name string) *Expr {
	code, ok := codes()[name]
	r := code.Row()
	if !ok || r.Group != Elementwise || r.Params > 0 {
		return p.fail("%q is neither a name here nor an elementwise op without parameters", name)
	}
	var args []*Expr
	p.want('(')
	for p.err == nil {
		e := p.sum()
		if code == Where && len(args) == 0 {
			e = p.condition(e)
		}
		args = append(args, e)
		if p.tok != ',' {
			break
		}
		p.next()
	}
	p.want(')')
	if len(args) != r.min {
		return p.fail("%s takes %d operands, not %d", name, r.min, len(args))
	}
	if p.err == nil && p.inline && r.Value != "" && !p.keep(code) {
		return p.inlined(r.Value, args)
	}
	return p.node(code, args...)
}

// inlined is a function's value of arguments, among the same nodes.
func (p *exprParser) inlined(text string, args []*Expr) *Expr {
	q := &exprParser{nodes: p.nodes, inline: true, keep: p.keep, named: map[string]*Expr{"pi": p.named["pi"], "inf": p.named["inf"]}}
	for i, a := range args {
		q.named[[...]string{"x", "y"}[i]] = a
	}
	e, err := q.text(text)
	if err != nil {
		return p.fail("%v", err)
	}
	return e
}

var comparisons = map[string]Code{"<": Lt, "<=": Le, ">": Lt, ">=": Le, "==": Eq, "!=": Ne}

// condition reads a comparison after its first operand, if one is there.
func (p *exprParser) condition(x *Expr) *Expr {
	op := ""
	for strings.ContainsRune("<>=!", p.tok) {
		op += string(p.tok)
		p.next()
	}
	if op == "" {
		return x
	}
	code, ok := comparisons[op]
	if !ok {
		return p.fail("there is no comparison %q", op)
	}
	y := p.sum()
	if op[0] == '>' {
		x, y = y, x
	}
	return p.node(code, x, y)
}

func (p *exprParser) number(v float64) *Expr { return p.intern(&Expr{Number: v}) }
func (p *exprParser) leaf(n Name) *Expr      { return p.intern(&Expr{Name: n}) }

// node is a call, or the number it gives.
func (p *exprParser) node(code Code, args ...*Expr) *Expr {
	for i, a := range args {
		is := boolean(a) || p.masked && a.Name == NameX
		if want := code == Where && i == 0 || code.Row().Class == Bools; p.err == nil && is != want {
			return p.fail("operand %d of %s is a condition: %t, want %t", i, code, is, want)
		}
	}
	if f := folds[code]; f != nil && !slices.ContainsFunc(args, func(a *Expr) bool { return !a.constant() }) {
		return p.number(f(args[0].Number, args[len(args)-1].Number))
	}
	return p.intern(&Expr{Code: code, Args: args})
}

// folds are the functions of numbers that are computed when a text is read.
var folds = map[Code]func(x, y float64) float64{
	Neg: func(x, _ float64) float64 { return -x }, Sqrt: func(x, _ float64) float64 { return math.Sqrt(x) },
	Exp: func(x, _ float64) float64 { return math.Exp(x) }, Log: func(x, _ float64) float64 { return math.Log(x) },
	Add: func(x, y float64) float64 { return x + y }, Sub: func(x, y float64) float64 { return x - y },
	Mul: func(x, y float64) float64 { return x * y }, Div: func(x, y float64) float64 { return x / y },
}

// intern returns the one node of this structure.
func (p *exprParser) intern(e *Expr) *Expr {
	key := structure{code: e.Code, name: e.Name, number: math.Float64bits(e.Number)}
	copy(key.args[:], e.Args)
	if old := p.nodes[key]; old != nil {
		return old
	}
	e.id = len(p.nodes)
	p.nodes[key] = e
	return e
}

func (e *Expr) constant() bool { return e.Code == Invalid && e.Name == NoName }

// boolean reports a condition.
func boolean(e *Expr) bool {
	switch e.Code {
	case Eq, Ne, Lt, Le, Not, And, Or, Xor:
		return true
	}
	return false
}

// Nodes lists the nodes of an expression, each once and after its operands.
func (e *Expr) Nodes() []*Expr {
	var list []*Expr
	seen := map[*Expr]bool{}
	var visit func(e *Expr)
	visit = func(e *Expr) {
		if seen[e] {
			return
		}
		seen[e] = true
		for _, a := range e.Args {
			visit(a)
		}
		list = append(list, e)
	}
	visit(e)
	return list
}

// Uses is the set of names in an expression, bit n for name n.
func (e *Expr) Uses() (set uint) {
	for _, n := range e.Nodes() {
		set |= 1 << n.Name
	}
	return set
}
