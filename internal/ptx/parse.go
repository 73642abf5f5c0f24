package ptx

import (
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/slab"
)

// Bounds on what a source may ask of the parser and of those who read its result. All are far above what compilers emit.
const (
	maxDepth    = 200     // nesting of blocks, expressions and initialisers
	maxVarSize  = 1 << 40 // bytes of one variable
	maxRegCount = 1 << 24 // N of %r<N>
	maxAlign    = 1 << 16
)

// parser holds the state of Parse. Its methods panic with *Error, which Parse turns into its result.
type parser struct {
	lex   lexer
	tok   token // the current token
	mod   *Module
	scope *scope
	fn    *Func // the function whose body is parsed
	depth int

	// A module is many small things that live as long as it does.
	insts slab.Slab[Inst]
	mods  slab.Slab[string]
	args  slab.Slab[Operand]
	regs  slab.Slab[Reg]
	imms  slab.Slab[Imm]
	addrs slab.Slab[Addr]
}

// Parse reads a module. The error is an *Error with the first thing that is wrong.
func Parse(src string) (m *Module, err error) {
	p := &parser{lex: newLexer(src), mod: &Module{}, scope: newScope(nil)}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			m, err = nil, e
		default:
			panic(e)
		}
	}()
	p.advance()
	p.header()
	for p.tok.kind != tokEOF {
		p.item()
	}
	return p.mod, nil
}

func (p *parser) advance() token {
	t := p.tok
	next, err := p.lex.next()
	if err != nil {
		panic(err)
	}
	p.tok = next
	return t
}

// peek is the token after the current one.
func (p *parser) peek() token {
	l := p.lex
	t, err := l.next()
	if err != nil {
		panic(err)
	}
	return t
}

// fail reports the current token.
func (p *parser) fail(msg, want string) {
	text := p.tok.text
	if p.tok.kind == tokEOF {
		msg += " at the end of the text"
	}
	panic(&Error{Pos: p.tok.pos, Text: text, Msg: msg, Want: want})
}

func failAt(t token, msg, want string) {
	panic(&Error{Pos: t.pos, Text: t.text, Msg: msg, Want: want})
}

func (p *parser) is(punct string) bool { return p.tok.kind == tokPunct && p.tok.text == punct }

func (p *parser) accept(punct string) bool {
	if p.is(punct) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(punct string) token {
	if !p.is(punct) {
		p.fail("unexpected", strconv.Quote(punct))
	}
	return p.advance()
}

func (p *parser) isDot(name string) bool {
	return p.tok.kind == tokDot && p.tok.text[1:] == name
}

func (p *parser) acceptDot(name string) bool {
	if p.isDot(name) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) ident(what string) token {
	if p.tok.kind != tokIdent {
		p.fail("unexpected", what)
	}
	return p.advance()
}

// enter and leave bound the recursion.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nesting too deep", "at most "+strconv.Itoa(maxDepth)+" levels")
	}
}

func (p *parser) leave() { p.depth-- }

// header reads .version, .target and .address_size, which must come first.
func (p *parser) header() {
	if !p.acceptDot("version") {
		p.fail("unexpected", ".version")
	}
	p.mod.Version = p.version()
	if !p.acceptDot("target") {
		p.fail("unexpected", ".target")
	}
	p.target()
	if p.acceptDot("address_size") {
		t := p.tok
		p.mod.AddressSize = int(p.smallInt("32 or 64", 64))
		if p.mod.AddressSize != 32 && p.mod.AddressSize != 64 {
			failAt(t, "bad address size", "32 or 64")
		}
	}
}

func (p *parser) version() Version {
	t := p.tok
	major, minor, ok := strings.Cut(t.text, ".")
	a, err1 := strconv.ParseUint(major, 10, 8)
	b, err2 := strconv.ParseUint(minor, 10, 8)
	if t.kind != tokNumber || !ok || err1 != nil || err2 != nil {
		p.fail("bad version", "a number such as 7.4")
	}
	p.advance()
	return Version{int(a), int(b)}
}

func (p *parser) target() {
	for {
		t := p.ident("an architecture such as sm_80")
		if target, ok := parseTarget(t.text); ok {
			p.mod.Target = target
		} else if slices.Contains([]string{"debug", "texmode_independent", "texmode_unified", "map_f64_to_f32"}, t.text) {
			p.mod.Options = append(p.mod.Options, t.text)
		} else {
			failAt(t, "unknown target", "an architecture such as sm_80")
		}
		if !p.accept(",") {
			break
		}
	}
	if p.mod.Target.SM == 0 {
		p.fail("no architecture in .target before", "sm_80 or the like")
	}
}

// parseTarget reads "sm_80" or "sm_90a".
func parseTarget(s string) (Target, bool) {
	num, ok := strings.CutPrefix(s, "sm_")
	var t Target
	if n := len(num); n > 0 && (num[n-1] == 'a' || num[n-1] == 'f') {
		t.Suffix = num[n-1]
		num = num[:n-1]
	}
	sm, err := strconv.ParseUint(num, 10, 10)
	t.SM = int(sm)
	return t, ok && err == nil && sm > 0
}

// item reads one thing of module scope.
func (p *parser) item() {
	if p.tok.kind != tokDot {
		p.fail("unexpected", "a directive such as .entry, .func or .global")
	}
	t := p.tok
	switch t.text {
	case ".file":
		p.mod.Items = append(p.mod.Items, p.file())
	case ".section":
		p.mod.Items = append(p.mod.Items, p.section())
	case ".pragma":
		p.mod.Items = append(p.mod.Items, p.pragma())
	case ".alias":
		p.mod.Items = append(p.mod.Items, p.alias())
	default:
		p.declaration()
	}
}

// declaration reads a function or a variable after its linkage.
func (p *parser) declaration() {
	start := p.tok
	link := p.linkage()
	switch {
	case p.isDot("entry"), p.isDot("func"):
		p.function(start.pos, link)
	case p.tok.kind == tokDot:
		for _, v := range p.variables(start.pos, link) {
			p.mod.Items = append(p.mod.Items, v)
		}
	default:
		p.fail("unexpected", ".entry, .func or a state space")
	}
}

func (p *parser) linkage() Linkage {
	if p.tok.kind != tokDot {
		return Private
	}
	l := linkageOf(p.tok.text[1:])
	if l != Private {
		p.advance()
	}
	return l
}

func (p *parser) file() *File {
	f := &File{Pos: p.advance().pos}
	f.Index = int(p.smallInt("a file number", 1<<31-1))
	if p.tok.kind != tokString {
		p.fail("unexpected", "a file name in quotes")
	}
	f.Name = p.advance().text
	for len(f.Extra) < 2 && p.accept(",") {
		f.Extra = append(f.Extra, p.smallInt("an integer", 1<<62))
	}
	return f
}

func (p *parser) pragma() *Pragma {
	g := &Pragma{Pos: p.advance().pos}
	for {
		if p.tok.kind != tokString {
			p.fail("unexpected", "a pragma in quotes")
		}
		g.Texts = append(g.Texts, p.advance().text)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return g
}

func (p *parser) alias() *Alias {
	a := &Alias{Pos: p.advance().pos}
	a.Name = p.ident("a function name").text
	p.expect(",")
	a.Of = p.ident("a function name").text
	p.expect(";")
	return a
}

// section keeps a debug section line by line.
func (p *parser) section() *Section {
	s := &Section{Pos: p.advance().pos}
	if p.tok.kind != tokDot {
		p.fail("unexpected", "a section name such as .debug_info")
	}
	s.Name = p.advance().text
	p.expect("{")
	var line strings.Builder
	at := p.tok.pos.Line
	for !p.is("}") {
		if p.tok.kind == tokEOF {
			p.fail("unclosed section", `"}"`)
		}
		if p.tok.pos.Line != at && line.Len() > 0 {
			s.Lines = append(s.Lines, line.String())
			line.Reset()
		}
		at = p.tok.pos.Line
		if line.Len() > 0 && p.tok.space {
			line.WriteByte(' ')
		}
		line.WriteString(p.tok.source())
		p.advance()
	}
	if line.Len() > 0 {
		s.Lines = append(s.Lines, line.String())
	}
	p.expect("}")
	return s
}

// source is the token as it was written.
func (t token) source() string {
	if t.kind == tokString {
		return `"` + t.text + `"`
	}
	return t.text
}

// function reads .entry or .func from there on.
func (p *parser) function(pos Pos, link Linkage) {
	f := &Func{Pos: pos, Linkage: link, Entry: p.advance().text == ".entry"}
	outer := p.scope
	p.scope = newScope(outer)
	defer func() { p.scope = outer }()
	for p.isDot("attribute") {
		p.skipAttribute()
	}
	if !f.Entry && p.is("(") {
		f.Ret = p.params(false)
	}
	name := p.ident("a function name")
	f.Name = name.text
	if p.is("(") {
		f.Params = p.params(f.Entry)
	}
	p.directives(f)
	p.declareFunc(outer, name, f)
	p.mod.Items = append(p.mod.Items, f)
	if p.accept(";") {
		return
	}
	if !p.is("{") {
		p.fail("unexpected", `"{", ";" or a directive such as .maxntid`)
	}
	p.fn = f
	f.Body = p.block(p.scope)
	p.formals(f)
	p.finish(p.scope)
	p.fn = nil
}

// formals numbers the parameters in register space, used or not.
func (p *parser) formals(f *Func) {
	for _, v := range slices.Concat(f.Ret, f.Params) {
		id := -1
		if v.Space == RegSpace {
			id = p.reg(p.scope, v.Name, p.scope.names[v.Name])
		}
		f.Formals = append(f.Formals, id)
	}
}

// declareFunc enters a function; further declarations are welcome, a second body is not.
func (p *parser) declareFunc(s *scope, name token, f *Func) {
	if e, ok := s.names[name.text]; ok && e.fn == nil {
		failAt(name, "name declared before", "a new name")
	}
	if old := s.names[name.text].fn; old != nil && old.Body != nil && p.is("{") {
		failAt(name, "function defined before", "a new name")
	}
	s.names[name.text] = entry{fn: f}
}

// skipAttribute passes .attribute(.unified(…)), which changes nothing that the package models.
func (p *parser) skipAttribute() {
	p.advance()
	p.expect("(")
	for depth := 1; depth > 0; p.advance() {
		switch {
		case p.is("("):
			depth++
		case p.is(")"):
			depth--
		case p.tok.kind == tokEOF:
			p.fail("unclosed attribute", `")"`)
		}
	}
}

// directives reads what stands between head and body.
func (p *parser) directives(f *Func) {
	for p.tok.kind == tokDot {
		if p.isDot("pragma") {
			f.Pragmas = append(f.Pragmas, p.pragma())
			continue
		}
		f.Directives = append(f.Directives, p.directive())
	}
}

// funcDirectives gives how many integers follow a directive at most.
var funcDirectives = map[string]int{
	"maxntid": 3, "reqntid": 3, "minnctapersm": 1, "maxnctapersm": 1, "maxnreg": 1, "noreturn": 0,
	"explicitcluster": 0, "reqnctapercluster": 3, "maxclusterrank": 1, "blocksareclusters": 0,
	"abi_preserve": 1, "abi_preserve_control": 1,
}

func (p *parser) directive() Directive {
	name := p.tok.text[1:]
	most, ok := funcDirectives[name]
	if !ok {
		p.fail("unknown directive", `"{", ";" or a directive such as .maxntid`)
	}
	d := Directive{Pos: p.advance().pos, Name: name}
	for len(d.Args) < most {
		d.Args = append(d.Args, p.smallInt("an integer", 1<<31-1))
		if len(d.Args) == most || !p.accept(",") {
			break
		}
	}
	return d
}

// params reads a parameter list in parentheses.
func (p *parser) params(entry bool) []*Var {
	var vars []*Var
	p.expect("(")
	for !p.is(")") {
		v := p.param(entry)
		if e, ok := p.scope.names[v.Name]; ok && e.v != nil {
			failAt(token{pos: v.Pos, text: v.Name}, "parameter declared before", "a new name")
		}
		p.scope.declareVar(v)
		vars = append(vars, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return vars
}

func (p *parser) param(entry bool) *Var {
	v := &Var{Pos: p.tok.pos}
	switch {
	case p.acceptDot("param"):
		v.Space = Param
	case !entry && p.acceptDot("reg"):
		v.Space = RegSpace
	default:
		p.fail("unexpected", ".param")
	}
	p.varType(v)
	if entry && p.acceptDot("ptr") {
		p.ptr(v)
	}
	p.varName(v)
	if v.Space == RegSpace && (v.Dims != nil || v.Count != 0) {
		p.fail("array in register space before", "a scalar")
	}
	return v
}

// ptr reads the rest of .ptr .global .align 16.
func (p *parser) ptr(v *Var) {
	v.Ptr = &PtrAttr{}
	if p.tok.kind == tokDot {
		if s, ok := spaceOf(p.tok.text[1:]); ok {
			v.Ptr.Space = s
			p.advance()
		}
	}
	if p.acceptDot("align") {
		v.Ptr.Align = p.align()
	}
}

func (p *parser) align() int {
	t := p.tok
	n := p.smallInt("an alignment", maxAlign)
	if n <= 0 || n&(n-1) != 0 {
		failAt(t, "bad alignment", "a power of two up to "+strconv.Itoa(maxAlign))
	}
	return int(n)
}
