package ptx

import "strings"

// operand reads an operand; label says that a bare name is a branch target.
func (p *parser) operand(label bool) Operand {
	p.enter()
	defer p.leave()
	a := p.primary(label)
	if !p.is("|") {
		return a
	}
	p.advance()
	return &Pair{Pos: a.Position(), A: a, B: p.primary(false)}
}

func (p *parser) primary(label bool) Operand {
	switch p.tok.kind {
	case tokIdent:
		return p.named(label)
	case tokNumber:
		return p.constant()
	}
	t := p.tok
	switch {
	case p.is("{"):
		return p.vec()
	case p.is("["):
		return p.addr()
	case p.is("!") && p.peek().kind == tokIdent:
		p.advance()
		return &Not{Pos: t.pos, X: p.operand(false)}
	case p.is("-") && p.peek().kind == tokIdent && p.peek().text != "WARP_SZ":
		p.advance()
		return &Neg{Pos: t.pos, X: p.operand(false)}
	case p.is("-"), p.is("+"), p.is("("), p.is("~"), p.is("!"):
		return p.constant()
	}
	p.fail("unexpected", "an operand")
	return nil
}

// named reads an operand that starts with a name.
func (p *parser) named(label bool) Operand {
	t := p.advance()
	if t.text == "_" {
		return &Sink{Pos: t.pos}
	}
	if t.text == "WARP_SZ" {
		return &Imm{Pos: t.pos, Bits: 32}
	}
	if id, ok := p.scope.regIDs[t.text]; ok { // most operands are registers met before in the same scope
		return p.register(t, id)
	}
	e, s, ok := p.scope.lookupScope(t.text)
	switch {
	case ok && (e.reg != nil || e.group != nil && e.v == nil):
		return p.register(t, p.reg(s, t.text, e))
	case t.text[0] == '%':
		return p.special(t)
	case label:
		return p.labelUse(t)
	case ok:
		return &Sym{Pos: t.pos, Name: t.text, Var: e.v, Off: p.symOffset()}
	}
	return p.labelUse(t)
}

// register makes the operand of a register whose name has been read.
func (p *parser) register(t token, id int) *Reg {
	r := p.regs.New()
	*r = Reg{Pos: t.pos, Name: t.text, ID: id}
	if p.tok.kind == tokDot && !p.tok.space {
		r.Sel = p.selector()
	}
	return r
}

// selector reads the part of a register: .x of a vector, .b0 and .h1 of a video operand.
func (p *parser) selector() string {
	const known = " x y z w r g b a b0 b1 b2 b3 b10 b32 h0 h1 h10 b7654 "
	sel := p.tok.text[1:]
	if !strings.Contains(known, " "+sel+" ") && !isByteSelector(sel) {
		p.fail("unknown register part", ".x, .y, .z or .w")
	}
	p.advance()
	return sel
}

// isByteSelector reports whether sel is "b" or "h" with up to four digits, as SIMD video operands have.
func isByteSelector(sel string) bool {
	if len(sel) < 2 || len(sel) > 5 || sel[0] != 'b' && sel[0] != 'h' {
		return false
	}
	for i := 1; i < len(sel); i++ {
		if sel[i] < '0' || sel[i] > '7' {
			return false
		}
	}
	return true
}

// special reads a special register whose name token is t.
func (p *parser) special(t token) Operand {
	s := &Special{Pos: t.pos, Name: t.text[1:]}
	if p.tok.kind == tokDot && !p.tok.space {
		s.Name += p.advance().text
	}
	if SpecialType(s.Name) == NoType {
		failAt(token{pos: t.pos, text: "%" + s.Name}, "unknown register", "a declared or a special register")
	}
	return s
}

func (p *parser) vec() Operand {
	v := &Vec{Pos: p.expect("{").pos}
	elems := make([]Operand, 0, 8)
	for !p.is("}") {
		elems = append(elems, p.operand(false))
		if !p.accept(",") {
			break
		}
	}
	v.Elems = p.args.Clone(elems)
	p.expect("}")
	return v
}

// addr reads [base + off] or [base, more].
func (p *parser) addr() Operand {
	a := p.addrs.New()
	a.Pos = p.expect("[").pos
	a.Base = p.operand(false)
	switch base := a.Base.(type) {
	case *Sym:
		a.Off, base.Off = base.Off, 0
	case *Reg:
		a.Off = p.symOffset()
	case *Imm:
		if base.Kind > ImmUint {
			failAt(token{pos: base.Pos}, "bad address", "a register, a variable or an integer")
		}
	default:
		failAt(token{pos: base.Position()}, "bad address", "a register, a variable or an integer")
	}
	for p.accept(",") {
		a.Rest = append(a.Rest, p.operand(false))
	}
	p.expect("]")
	return a
}
