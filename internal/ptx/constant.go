package ptx

import (
	"math"
	"strconv"
	"strings"
)

// value is an integer while a constant expression is folded.
type value struct {
	v        int64
	unsigned bool
}

// smallInt reads an integer constant in 0 … most.
func (p *parser) smallInt(what string, most int64) int64 {
	t := p.tok
	if t.kind != tokNumber {
		p.fail("unexpected", what)
	}
	imm := p.number()
	if imm.Kind > ImmUint || imm.Bits > uint64(most) {
		failAt(t, "number out of range", what+" up to "+strconv.FormatInt(most, 10))
	}
	return int64(imm.Bits)
}

// constant reads a literal or a constant expression and folds it.
func (p *parser) constant() *Imm {
	pos := p.tok.pos
	neg := p.is("-") && p.peek().kind == tokNumber
	if neg {
		l := p.lex
		t, _ := l.next()
		neg = isFloat(t.text)
	}
	if neg {
		p.advance()
		return p.number().negated(pos)
	}
	if p.tok.kind == tokNumber && isFloat(p.tok.text) {
		return p.number()
	}
	v := p.expr(0)
	imm := p.imms.New()
	*imm = Imm{Pos: pos, Bits: uint64(v.v)}
	if v.unsigned {
		imm.Kind = ImmUint
	}
	return imm
}

// negated flips the sign of a float.
func (i *Imm) negated(pos Pos) *Imm {
	sign := uint64(1) << 63
	if i.Kind == ImmF32 {
		sign = 1 << 31
	}
	return &Imm{Pos: pos, Kind: i.Kind, Bits: i.Bits ^ sign}
}

// isFloat reports whether a number token is a float: 0f…, 0d…, or decimal with a point or an exponent.
func isFloat(s string) bool {
	if len(s) > 1 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F', 'd', 'D':
			return true
		case 'x', 'X', 'b', 'B':
			return false
		}
	}
	return strings.ContainsAny(s, ".eE")
}

// number reads one literal.
func (p *parser) number() *Imm {
	t := p.advance()
	if isFloat(t.text) {
		return floatLiteral(t)
	}
	digits := strings.TrimSuffix(t.text, "U")
	imm := &Imm{Pos: t.pos}
	if len(digits) < len(t.text) {
		imm.Kind = ImmUint
	}
	base, body := 10, digits
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] {
		case 'x', 'X':
			base, body = 16, digits[2:]
		case 'b', 'B':
			base, body = 2, digits[2:]
		default:
			base, body = 8, digits[1:]
		}
	}
	n, err := strconv.ParseUint(body, base, 64)
	if err != nil {
		failAt(t, "bad number", "an integer of at most 64 bits")
	}
	if imm.Bits = n; n > math.MaxInt64 {
		imm.Kind = ImmUint
	}
	return imm
}

func floatLiteral(t token) *Imm {
	kind, width := ImmF64, 16
	switch t.text[1:2] {
	case "f", "F":
		kind, width = ImmF32, 8
	case "d", "D":
	default:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			failAt(t, "bad number", "a decimal fraction")
		}
		return &Imm{Pos: t.pos, Kind: ImmF64, Bits: math.Float64bits(f)}
	}
	n, err := strconv.ParseUint(t.text[2:], 16, 64)
	if err != nil || len(t.text) != 2+width {
		failAt(t, "bad number", strconv.Itoa(width)+" hexadecimal digits after "+t.text[:2])
	}
	return &Imm{Pos: t.pos, Kind: kind, Bits: n}
}

// binaryPrec gives the precedence of the binary operators of constant expressions, as in C.
var binaryPrec = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
	"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

// expr reads an integer expression whose operators bind at least as tightly as min.
func (p *parser) expr(min int) value {
	p.enter()
	defer p.leave()
	v := p.unary()
	for p.tok.kind == tokPunct {
		prec := binaryPrec[p.tok.text]
		// A bar between operands pairs a destination with a predicate; constants meet it inside parentheses only.
		if prec == 0 || prec < max(min, 1) {
			break
		}
		op := p.advance()
		v = fold(op, v, p.expr(prec+1))
	}
	if min == 0 && p.is("?") {
		return p.conditional(v)
	}
	return v
}

func (p *parser) conditional(cond value) value {
	p.advance()
	a := p.expr(0)
	p.expect(":")
	b := p.expr(0)
	if cond.v != 0 {
		return a
	}
	return b
}

// unary reads a literal, a parenthesis, a cast or a prefixed operand.
func (p *parser) unary() value {
	p.enter()
	defer p.leave()
	switch {
	case p.accept("-"):
		v := p.unary()
		return value{-v.v, v.unsigned}
	case p.accept("+"):
		return p.unary()
	case p.accept("~"):
		v := p.unary()
		return value{^v.v, v.unsigned}
	case p.accept("!"):
		return value{b2i(p.unary().v == 0), false}
	case p.accept("("):
		return p.parenthesis()
	case p.tok.kind == tokIdent && p.tok.text == "WARP_SZ":
		p.advance()
		return value{32, false}
	}
	if p.tok.kind != tokNumber || isFloat(p.tok.text) {
		p.fail("unexpected", "an integer")
	}
	imm := p.number()
	return value{int64(imm.Bits), imm.Kind == ImmUint}
}

// parenthesis reads a cast (.u64)x or an expression in parentheses.
func (p *parser) parenthesis() value {
	if p.isDot("s64") || p.isDot("u64") {
		unsigned := p.advance().text == ".u64"
		p.expect(")")
		return value{p.unary().v, unsigned}
	}
	v := p.expr(0)
	p.expect(")")
	return v
}

// fold applies a binary operator; one unsigned side makes the operation unsigned.
func fold(op token, a, b value) value {
	u := a.unsigned || b.unsigned
	less := a.v < b.v
	if u {
		less = uint64(a.v) < uint64(b.v)
	}
	switch op.text {
	case "+":
		return value{a.v + b.v, u}
	case "-":
		return value{a.v - b.v, u}
	case "*":
		return value{a.v * b.v, u}
	case "&":
		return value{a.v & b.v, u}
	case "|":
		return value{a.v | b.v, u}
	case "^":
		return value{a.v ^ b.v, u}
	case "<<", ">>":
		return shift(op.text, a, uint64(b.v))
	case "/", "%":
		return divide(op, a, b, u)
	}
	return value{b2i(compare(op.text, a.v, b.v, less)), false}
}

func compare(op string, a, b int64, less bool) bool {
	switch op {
	case "<":
		return less
	case ">":
		return !less && a != b
	case "<=":
		return less || a == b
	case ">=":
		return !less
	case "==":
		return a == b
	case "!=":
		return a != b
	case "&&":
		return a != 0 && b != 0
	}
	return a != 0 || b != 0
}

func shift(op string, a value, n uint64) value {
	switch {
	case op == "<<":
		return value{a.v << n, a.unsigned}
	case a.unsigned:
		return value{int64(uint64(a.v) >> n), true}
	}
	return value{a.v >> n, false}
}

func divide(op token, a, b value, unsigned bool) value {
	if b.v == 0 {
		failAt(op, "division by zero in a constant expression", "another divisor")
	}
	switch {
	case unsigned && op.text == "/":
		return value{int64(uint64(a.v) / uint64(b.v)), true}
	case unsigned:
		return value{int64(uint64(a.v) % uint64(b.v)), true}
	case b.v == -1 && op.text == "/":
		return value{-a.v, false}
	case b.v == -1:
		return value{0, false}
	case op.text == "/":
		return value{a.v / b.v, false}
	}
	return value{a.v % b.v, false}
}
