package ptx

import (
	"strconv"
)

// entry is what a name stands for in a scope; exactly one field is set.
type entry struct {
	v     *Var
	fn    *Func
	reg   *RegInfo // a single register
	group *regGroup
}

// regGroup is %r<N>, or a group of variables.
type regGroup struct {
	info  RegInfo
	v     *Var
	count int64
}

// scope is the names of a block.
type scope struct {
	outer   *scope
	names   map[string]entry
	groups  map[string]*regGroup // by prefix
	regIDs  map[string]int       // registers met so far
	labels  map[string]int
	pending []*Label // uses of labels that are not known yet
}

func newScope(outer *scope) *scope {
	return &scope{outer: outer, names: map[string]entry{}}
}

func (s *scope) declareVar(v *Var) {
	if v.Count > 0 {
		s.declareGroup(v.Name, &regGroup{v: v, count: v.Count})
		return
	}
	if v.Space == RegSpace {
		s.names[v.Name] = entry{reg: &RegInfo{Name: v.Name, Type: v.Type, Vec: v.Vec}}
		return
	}
	s.names[v.Name] = entry{v: v}
}

func (s *scope) declareGroup(prefix string, g *regGroup) {
	if s.groups == nil {
		s.groups = map[string]*regGroup{}
	}
	s.groups[prefix] = g
}

// find looks a name up in this scope alone.
func (s *scope) find(name string) (entry, bool) {
	if e, ok := s.names[name]; ok {
		return e, true
	}
	if s.groups == nil {
		return entry{}, false
	}
	const mostDigits = 8 // of a number below maxRegCount
	i := len(name)
	for i > max(0, len(name)-mostDigits) && isDigit(name[i-1]) {
		i--
	}
	// A prefix may itself end in digits ("%r1<4>" makes %r10 … %r13).
	for ; i < len(name); i++ {
		g := s.groups[name[:i]]
		if g == nil || name[i] == '0' && i+1 < len(name) {
			continue
		}
		if n, err := strconv.ParseInt(name[i:], 10, 64); err == nil && n < g.count {
			return entry{group: g, v: g.v}, true
		}
	}
	return entry{}, false
}

func (s *scope) lookup(name string) (entry, bool) {
	e, _, ok := s.lookupScope(name)
	return e, ok
}

func (s *scope) lookupScope(name string) (entry, *scope, bool) {
	for ; s != nil; s = s.outer {
		if e, ok := s.find(name); ok {
			return e, s, true
		}
	}
	return entry{}, nil, false
}

// reg finds or makes the number of a register of scope s.
func (p *parser) reg(s *scope, name string, e entry) int {
	if id, ok := s.regIDs[name]; ok {
		return id
	}
	if s.regIDs == nil {
		s.regIDs = map[string]int{}
	}
	info := RegInfo{Name: name}
	if e.reg != nil {
		info = *e.reg
	} else {
		info.Type, info.Vec = e.group.info.Type, e.group.info.Vec
	}
	id := len(p.fn.Regs)
	p.fn.Regs = append(p.fn.Regs, info)
	s.regIDs[name] = id
	return id
}

// block reads { … } with s as its scope.
func (p *parser) block(s *scope) *Block {
	p.enter()
	defer p.leave()
	b := &Block{Pos: p.expect("{").pos}
	p.scope = s
	for !p.is("}") {
		if p.tok.kind == tokEOF {
			p.fail("unclosed block", `"}"`)
		}
		b.Stmts = p.statement(b.Stmts)
	}
	p.advance()
	return b
}

// finish resolves the labels of a scope that ends; what stays unknown goes to the scope around it.
func (p *parser) finish(s *scope) {
	outer := s.outer
	for _, l := range s.pending {
		id, ok := s.labels[l.Name]
		switch {
		case ok:
			l.ID = id
		case outer == nil || outer.outer == nil:
			failAt(token{pos: l.Pos, text: l.Name}, "undefined symbol", "a register, a variable or a label of this function")
		default:
			outer.pending = append(outer.pending, l)
		}
	}
	s.pending = nil
	p.scope = outer
}

// statement reads one statement and appends it; a declaration may add several.
func (p *parser) statement(list []Stmt) []Stmt {
	switch p.tok.kind {
	case tokDot:
		return p.bodyDirective(list)
	case tokIdent:
		if p.colonFollows() {
			return append(list, p.label())
		}
		return append(list, p.inst(nil))
	}
	switch {
	case p.is("{"):
		inner := newScope(p.scope)
		b := p.block(inner)
		p.finish(inner)
		return append(list, b)
	case p.is("@"):
		return append(list, p.inst(p.guard()))
	}
	p.fail("unexpected", "an instruction, a label, a directive or a block")
	return list
}

// colonFollows looks one character ahead, since most statements start with a name that is no label; only a comment in
// between needs a whole token.
func (p *parser) colonFollows() bool {
	rest := p.lex.src[p.lex.off:]
	for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
		rest = rest[1:]
	}
	if len(rest) > 0 && (rest[0] == '/' || rest[0] == '\n' || rest[0] == '\r') {
		return p.peek().text == ":"
	}
	return len(rest) > 0 && rest[0] == ':'
}

func (p *parser) bodyDirective(list []Stmt) []Stmt {
	switch p.tok.text {
	case ".reg":
		return append(list, p.regDecl())
	case ".loc":
		return append(list, p.loc())
	case ".file":
		return append(list, p.file())
	case ".pragma":
		return append(list, p.pragma())
	case ".branchtargets", ".calltargets":
		return append(list, p.targets())
	case ".callprototype":
		return append(list, p.prototype())
	}
	pos := p.tok.pos
	link := p.linkage()
	if p.tok.kind != tokDot {
		p.fail("unexpected", "a state space such as .shared")
	}
	for _, v := range p.variables(pos, link) {
		list = append(list, v)
	}
	return list
}

func (p *parser) regDecl() *RegDecl {
	d := &RegDecl{Pos: p.advance().pos}
	v := Var{Pos: d.Pos, Space: RegSpace}
	p.varType(&v)
	d.Type, d.Vec = v.Type, v.Vec
	for {
		name := p.ident("a register name")
		n := RegName{Name: name.text}
		if _, ok := p.scope.names[n.Name]; ok {
			failAt(name, "name declared before", "a new name")
		}
		if p.accept("<") {
			n.Count = p.count()
			p.expect(">")
			p.declareRegs(name, d, n.Count)
		} else {
			p.scope.names[n.Name] = entry{reg: &RegInfo{Name: n.Name, Type: d.Type, Vec: d.Vec}}
		}
		d.Names = append(d.Names, n)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return d
}

func (p *parser) declareRegs(name token, d *RegDecl, count int64) {
	if p.scope.groups[name.text] != nil {
		failAt(name, "name declared before", "a new name")
	}
	p.scope.declareGroup(name.text, &regGroup{info: RegInfo{Type: d.Type, Vec: d.Vec}, count: count})
}

func (p *parser) label() *LabelDef {
	t := p.advance()
	p.advance()
	if _, ok := p.scope.labels[t.text]; ok {
		failAt(t, "label defined before", "a new name")
	}
	if p.scope.labels == nil {
		p.scope.labels = map[string]int{}
	}
	id := len(p.fn.Labels)
	p.fn.Labels = append(p.fn.Labels, t.text)
	p.scope.labels[t.text] = id
	return &LabelDef{Pos: t.pos, Name: t.text, ID: id}
}

// loc reads .loc file line col [, function_name label [+ n], inlined_at file line col].
func (p *parser) loc() *Loc {
	l := &Loc{Pos: p.advance().pos}
	at := p.place()
	l.File, l.Line, l.Col = at.File, at.Line, at.Col
	if !p.accept(",") {
		return l
	}
	p.word("function_name")
	l.Function = p.ident("a label of .debug_str").text
	l.FunctionOffset = p.symOffset()
	p.expect(",")
	p.word("inlined_at")
	inlined := p.place()
	l.InlinedAt = &inlined
	return l
}

func (p *parser) word(w string) {
	if p.tok.kind != tokIdent || p.tok.text != w {
		p.fail("unexpected", w)
	}
	p.advance()
}

func (p *parser) place() Place {
	const most = 1<<31 - 1
	return Place{int(p.smallInt("a file number", most)), int(p.smallInt("a line", most)), int(p.smallInt("a column", most))}
}

func (p *parser) targets() *Targets {
	t := p.advance()
	ts := &Targets{Pos: t.pos, Calls: t.text == ".calltargets"}
	for {
		if ts.Calls {
			ts.Names = append(ts.Names, p.initSymbol())
		} else {
			ts.Names = append(ts.Names, p.labelUse(p.ident("a label")))
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return ts
}

// labelUse makes a label operand that finish resolves.
func (p *parser) labelUse(t token) *Label {
	l := &Label{Pos: t.pos, Name: t.text, ID: -1}
	p.scope.pending = append(p.scope.pending, l)
	return l
}

// prototype reads .callprototype (ret) _ (params) directives.
func (p *parser) prototype() *Prototype {
	c := &Prototype{Pos: p.advance().pos}
	outer := p.scope
	p.scope = newScope(outer)
	if p.is("(") {
		c.Ret = p.prototypeParams()
	}
	p.word("_")
	if p.is("(") {
		c.Params = p.prototypeParams()
	}
	p.scope = outer
	for p.tok.kind == tokDot {
		c.Directives = append(c.Directives, p.directive())
	}
	p.expect(";")
	return c
}

// prototypeParams reads parameters whose names, mostly "_", mean nothing.
func (p *parser) prototypeParams() []*Var {
	var vars []*Var
	p.expect("(")
	for !p.is(")") {
		vars = append(vars, p.param(false))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return vars
}

// guard reads @p or @!p.
func (p *parser) guard() *Guard {
	p.advance()
	g := &Guard{Neg: p.accept("!")}
	t := p.tok
	r, ok := p.operand(false).(*Reg)
	if !ok || p.fn.Regs[r.ID].Type != Pred {
		failAt(t, "bad guard", "a predicate register")
	}
	g.Reg = r
	return g
}

// inst reads an instruction from its opcode to its semicolon.
func (p *parser) inst(g *Guard) *Inst {
	t := p.ident("an instruction")
	in := p.insts.New()
	*in = Inst{Pos: t.pos, Guard: g, Op: t.text}
	mods := make([]string, 0, 8)
	for p.tok.kind == tokDot {
		mods = append(mods, p.advance().text[1:])
	}
	in.Mods = p.mods.Clone(mods)
	if in.Op == "call" {
		p.callOperands(in)
		return in
	}
	branch := in.Op == "bra" || in.Op == "brx"
	args := make([]Operand, 0, 8)
	for !p.is(";") {
		args = append(args, p.operand(branch))
		if !p.accept(",") {
			break
		}
	}
	in.Args = p.args.Clone(args)
	if !p.is(";") {
		p.fail("unexpected", `"," or ";"`)
	}
	p.advance()
	return in
}

// callOperands reads (ret), target, (args), prototype.
func (p *parser) callOperands(in *Inst) {
	if p.is("(") {
		in.Args = append(in.Args, p.callList())
		p.expect(",")
	}
	t := p.tok
	target := p.operand(false)
	switch target.(type) {
	case *Reg, *Sym:
	default:
		failAt(t, "bad call target", "a function declared before, or a register")
	}
	in.Args = append(in.Args, target)
	for p.accept(",") {
		if p.is("(") {
			in.Args = append(in.Args, p.callList())
		} else {
			in.Args = append(in.Args, p.labelUse(p.ident("a prototype")))
		}
	}
	p.expect(";")
}

func (p *parser) callList() *List {
	l := &List{Pos: p.expect("(").pos}
	for !p.is(")") {
		l.Elems = append(l.Elems, p.operand(false))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return l
}
