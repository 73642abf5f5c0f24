package ptx

import "math/bits"

// variables reads the declaration of one or more variables up to its semicolon and enters them in the current scope.
func (p *parser) variables(pos Pos, link Linkage) []*Var {
	space, ok := spaceOf(p.tok.text[1:])
	if !ok || space == SharedCluster {
		p.fail("unknown directive", "a state space such as .global or .shared")
	}
	p.advance()
	proto := Var{Pos: pos, Linkage: link, Space: space}
	p.varType(&proto)
	var vars []*Var
	for {
		v := proto
		v.Dims = nil
		name := p.tok
		p.varName(&v)
		if p.accept("=") {
			v.Init = p.initializer()
			p.sizeFromInit(&v, name)
		}
		p.checkRedeclared(name, &v)
		p.scope.declareVar(&v)
		vars = append(vars, &v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return vars
}

// checkRedeclared allows an .extern declaration before the definition, and nothing else.
func (p *parser) checkRedeclared(name token, v *Var) {
	e, ok := p.scope.names[v.Name]
	if !ok || e.v != nil && (e.v.Linkage == Extern || v.Linkage == Extern) {
		return
	}
	failAt(name, "name declared before", "a new name")
}

// varType reads alignment, vector and fundamental type, in any order.
func (p *parser) varType(v *Var) {
	for p.tok.kind == tokDot {
		name := p.tok.text[1:]
		switch {
		case name == "align":
			p.advance()
			v.Align = p.align()
		case name == "attribute":
			p.attribute(v)
		case name == "v2", name == "v4":
			p.advance()
			v.Vec = int(name[1] - '0')
		case ParseType(name) != NoType && v.Type == NoType:
			p.advance()
			v.Type = ParseType(name)
		case v.Type == NoType:
			p.fail("unknown type", "a type such as .b32")
		default:
			return
		}
	}
	if v.Type == NoType {
		p.fail("unexpected", "a type such as .b32")
	}
	if v.Space != RegSpace && (v.Type == Pred || v.Type.Bits() < 8) {
		failAt(token{pos: v.Pos, text: "." + v.Type.String()}, "type has no memory form", "a type such as .b32")
	}
}

func (p *parser) attribute(v *Var) {
	if t := p.peek(); t.text != "(" {
		p.advance()
		p.fail("unexpected", `"("`)
	}
	l := p.lex
	l.next()
	if t, err := l.next(); err == nil && t.text == ".managed" {
		v.Managed = true
	}
	p.skipAttribute()
}

// varName reads name, name<N>, name[2][3] and bounds the size.
func (p *parser) varName(v *Var) {
	v.Name = p.ident("a name").text
	if p.accept("<") {
		v.Count = p.count()
		p.expect(">")
	}
	size := uint64(v.Elem())
	for p.is("[") {
		open := p.advance()
		var n int64
		if !p.is("]") {
			n = p.smallInt("an array size", maxVarSize)
		} else if v.Dims != nil {
			p.fail("only the first size may be left open, unexpected", "an array size")
		}
		p.expect("]")
		v.Dims = append(v.Dims, n)
		hi, lo := bits.Mul64(size, uint64(max(n, 1)))
		if size = lo; hi != 0 || lo > maxVarSize {
			failAt(open, "variable larger than 1 TiB", "a smaller array")
		}
		if len(v.Dims) > maxDepth {
			failAt(open, "too many dimensions", "fewer")
		}
	}
}

// count reads N of name<N>.
func (p *parser) count() int64 {
	t := p.tok
	n := p.smallInt("a count", maxRegCount)
	if n == 0 {
		failAt(t, "bad count", "a positive integer")
	}
	return n
}

// sizeFromInit checks an initialiser against the dimensions and completes name[] = {…}.
func (p *parser) sizeFromInit(v *Var, name token) {
	if v.Dims == nil && v.Vec == 0 {
		if v.Init.Value == nil {
			failAt(name, "list as initialiser of a scalar", "one value")
		}
		return
	}
	if v.Init.Value != nil {
		failAt(name, "one value as initialiser of an array", "a list in braces")
	}
	if v.Dims != nil && v.Dims[0] == 0 {
		v.Dims[0] = int64(len(v.Init.List))
	}
	if len(v.Dims) == 1 && v.Vec == 0 && int64(len(v.Init.List)) > v.Dims[0] {
		failAt(name, "more initialisers than elements of", "a shorter list")
	}
}

func (p *parser) initializer() *Init {
	p.enter()
	defer p.leave()
	in := &Init{Pos: p.tok.pos}
	if !p.accept("{") {
		p.initValue(in)
		return in
	}
	for !p.is("}") {
		in.List = append(in.List, p.initializer())
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
	return in
}

// initValue reads a constant, an address, or 0xFF(address).
func (p *parser) initValue(in *Init) {
	if p.tok.kind == tokIdent && p.tok.text != "WARP_SZ" {
		p.initAddress(in)
		return
	}
	c := p.constant()
	if !p.is("(") || c.Kind > ImmUint {
		in.Value = c
		return
	}
	p.advance()
	in.Mask = c.Bits
	p.initAddress(in)
	p.expect(")")
}

// initAddress reads a symbol with an offset, or generic(sym).
func (p *parser) initAddress(in *Init) {
	if p.tok.kind != tokIdent || p.tok.text != "generic" {
		in.Value = p.initSymbol()
		return
	}
	p.advance()
	p.expect("(")
	in.Generic = true
	in.Value = p.initSymbol()
	p.expect(")")
	in.offset(p)
}

// offset reads +n after generic(sym).
func (in *Init) offset(p *parser) {
	in.Value.(*Sym).Off += p.symOffset()
}

func (p *parser) initSymbol() *Sym {
	t := p.ident("a variable or function name")
	e, ok := p.scope.lookup(t.text)
	if !ok || e.v == nil && e.fn == nil {
		failAt(t, "undefined symbol", "a variable or function declared before")
	}
	return &Sym{Pos: t.pos, Name: t.text, Var: e.v, Off: p.symOffset()}
}

// symOffset reads + and a constant expression, if there. What is subtracted must be written as +-n.
func (p *parser) symOffset() int64 {
	if !p.accept("+") {
		return 0
	}
	return p.expr(0).v
}
