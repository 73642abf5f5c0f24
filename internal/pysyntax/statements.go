package pysyntax

// statement takes one statement, or a line of several.
func (p *parser) statement(body []Stmt) []Stmt {
	p.links = 0
	t := p.peek()
	if t.kind == kIndent {
		p.fail(int(t.from), "the line is indented, and no block begins before it")
	}
	if t.kind == kKeyword {
		if s := p.compound(t.text); s != nil {
			return append(body, s)
		}
	}
	if t.kind == kOp && t.text == "@" {
		return append(body, p.decorated())
	}
	if p.soft("match") {
		if s := p.match(); s != nil {
			return append(body, s)
		}
	}
	return p.simple(body)
}

// compound takes a statement with blocks; nil if the keyword begins none.
func (p *parser) compound(word string) Stmt {
	switch word {
	case "if":
		return p.ifs()
	case "for", "while", "try", "with", "def", "class":
		return p.blocks(word, p.here(), false, nil)
	case "async":
		from := p.here()
		p.next()
		word := p.peek().text
		if p.peek().kind != kKeyword || word != "def" && word != "for" && word != "with" {
			p.unexpected("def, for or with")
		}
		return p.blocks(word, from, true, nil)
	}
	return nil
}

func (p *parser) blocks(word string, from int32, async bool, decorators []Expr) Stmt {
	p.next()
	switch word {
	case "for":
		return p.loop(from, async)
	case "while":
		s := &While{Test: p.named()}
		s.Body, s.Else = p.block(), p.otherwise()
		s.span = p.since(from)
		return s
	case "try":
		return p.tries(from)
	case "with":
		return p.with(from, async)
	case "def":
		return p.def(from, async, decorators)
	}
	return p.class(from, decorators)
}

func (p *parser) ifs() Stmt {
	from := p.here()
	p.enter()
	defer p.leave()
	p.next()
	s := &If{Test: p.named()}
	s.Body = p.block()
	if p.is("elif") {
		s.Else = []Stmt{p.ifs()}
	} else {
		s.Else = p.otherwise()
	}
	s.span = p.since(from)
	return s
}

func (p *parser) otherwise() []Stmt {
	if p.take("else") {
		return p.block()
	}
	return nil
}

func (p *parser) loop(from int32, async bool) Stmt {
	s := &For{Async: async, Target: p.targets()}
	p.want("in")
	s.Iter = p.expressions()
	s.Body, s.Else = p.block(), p.otherwise()
	s.span = p.since(from)
	return s
}

func (p *parser) tries(from int32) Stmt {
	s := &Try{Body: p.block()}
	for p.is("except") {
		s.Handlers = append(s.Handlers, p.handler())
	}
	s.Else = p.otherwise()
	if p.take("finally") {
		s.Finally = p.block()
	}
	if s.Handlers == nil && s.Finally == nil {
		p.unexpected("except or finally")
	}
	s.span = p.since(from)
	return s
}

func (p *parser) handler() (h Handler) {
	from := p.here()
	p.next()
	p.take("*")
	if !p.is(":") {
		h.Type = p.expressions()
		if p.take("as") {
			h.Name = p.name()
		}
	}
	h.Body = p.block()
	h.span = p.since(from)
	return h
}

func (p *parser) with(from int32, async bool) Stmt {
	s := &With{Async: async}
	// In brackets the items may have names; else what the bracket holds is an expression.
	if !p.is("(") || !p.try(func() { s.Items = p.bracketed() }) {
		s.Items = []WithItem{p.item()}
		for p.take(",") {
			s.Items = append(s.Items, p.item())
		}
	}
	s.Body = p.block()
	s.span = p.since(from)
	return s
}

func (p *parser) bracketed() (items []WithItem) {
	p.want("(")
	for !p.is(")") {
		items = append(items, p.item())
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	if !p.is(":") || items == nil {
		p.unexpected(":")
	}
	return items
}

func (p *parser) item() (i WithItem) {
	i.Context = p.expression()
	if p.take("as") {
		i.Target = p.starTarget()
	}
	return i
}

func (p *parser) decorated() Stmt {
	from := p.here()
	var decorators []Expr
	for p.take("@") {
		decorators = append(decorators, p.named())
		p.lineEnd()
	}
	async := p.take("async")
	switch {
	case p.is("def"):
		return p.blocks("def", from, async, decorators)
	case p.is("class") && !async:
		return p.blocks("class", from, false, decorators)
	}
	p.unexpected("def or class")
	return nil
}

func (p *parser) def(from int32, async bool, decorators []Expr) Stmt {
	s := &Function{Async: async, Decorators: decorators, Name: p.name()}
	p.typeParams()
	p.want("(")
	s.Params = p.params(")", true)
	p.want(")")
	if p.take("->") {
		s.Returns = p.expressions()
	}
	s.Body = p.block()
	s.span = p.since(from)
	return s
}

// params takes parameters up to a bracket, or a lambda's colon.
func (p *parser) params(end string, annotated bool) (list []Param) {
	for !p.is(end) {
		var one Param
		switch {
		case p.take("/"):
		case p.take("**"):
			one.Star = "**"
		case p.take("*"):
			one.Star = "*"
		}
		if p.peek().kind == kName {
			one.Name = p.name()
			if annotated && p.take(":") {
				one.Annotation = p.starred()
			}
			if p.take("=") {
				one.Default = p.expression()
			}
			list = append(list, one)
		} else if t := p.tokens[max(p.i-1, 0)]; t.text != "/" && t.text != "*" {
			p.unexpected("a parameter")
		}
		if !p.take(",") {
			break
		}
	}
	return list
}

func (p *parser) class(from int32, decorators []Expr) Stmt {
	s := &Class{Decorators: decorators, Name: p.name()}
	p.typeParams()
	if p.take("(") {
		s.Bases = p.args()
	}
	s.Body = p.block()
	s.span = p.since(from)
	return s
}

// typeParams passes over the type parameters of PEP 695.
func (p *parser) typeParams() {
	if !p.take("[") {
		return
	}
	for !p.is("]") {
		if !p.take("*") {
			p.take("**")
		}
		p.name()
		if p.take(":") {
			p.expression()
		}
		if p.take("=") {
			p.starred()
		}
		if !p.take(",") {
			break
		}
	}
	p.want("]")
}

// simple takes a line of statements without blocks.
func (p *parser) simple(body []Stmt) []Stmt {
	for {
		body = append(body, p.small())
		if !p.take(";") {
			break
		}
		if p.peek().kind == kNewline {
			break
		}
	}
	p.lineEnd()
	return body
}

func (p *parser) lineEnd() {
	switch p.peek().kind {
	case kNewline:
		p.next()
	case kEnd:
	default:
		if i := p.i - 1; i >= 0 && p.tokens[i].kind == kName && (p.tokens[i].text == "print" || p.tokens[i].text == "exec") {
			p.fail(int(p.tokens[i].from), "%s is a statement of Python 2; this reads Python 3", p.tokens[i].text)
		}
		p.unexpected("the end of the statement")
	}
}

func (p *parser) small() Stmt {
	from := p.here()
	if t := p.peek(); t.kind == kKeyword {
		if s := p.keyword(t.text, from); s != nil {
			return s
		}
	}
	if p.soft("type") {
		if s := p.alias(from); s != nil {
			return s
		}
	}
	return p.assignment(from)
}

// keyword takes a statement that begins with a keyword; nil if it begins an expression.
func (p *parser) keyword(word string, from int32) (s Stmt) {
	switch word {
	case "pass", "break", "continue":
		p.next()
		return &Branch{statement{p.since(from)}, word}
	case "return":
		p.next()
		x := p.rest()
		return &Return{statement{p.since(from)}, x}
	case "raise":
		p.next()
		s := &Raise{X: p.rest()}
		if p.take("from") {
			s.From = p.expression()
		}
		s.span = p.since(from)
		return s
	case "global", "nonlocal":
		p.next()
		names := []string{p.name()}
		for p.take(",") {
			names = append(names, p.name())
		}
		return &Scope{statement{p.since(from)}, word, names}
	case "del":
		p.next()
		bracket := p.is("(")
		targets := []Expr{p.targets()}
		if t, ok := targets[0].(*Sequence); ok && t.Kind == '(' && (!bracket || len(t.Elements) > 0 && start(t) == start(t.Elements[0])) {
			targets = t.Elements
		}
		return &Delete{statement{p.since(from)}, targets}
	case "assert":
		p.next()
		s := &Assert{Test: p.expression()}
		if p.take(",") {
			s.Message = p.expression()
		}
		s.span = p.since(from)
		return s
	case "import":
		return p.imports(from)
	case "from":
		return p.importFrom(from)
	}
	return nil
}

func start(n Node) int {
	from, _ := n.Span()
	return from
}

// rest takes expressions, if the statement has any.
func (p *parser) rest() Expr {
	if t := p.peek(); t.kind == kNewline || t.kind == kEnd || p.is(";") || p.is("from") {
		return nil
	}
	return p.expressions()
}

func (p *parser) dotted() string {
	name := p.name()
	for p.take(".") {
		name += "." + p.name()
	}
	return name
}

func (p *parser) as() string {
	if p.take("as") {
		return p.name()
	}
	return ""
}

func (p *parser) imports(from int32) Stmt {
	p.next()
	s := &Import{}
	for {
		name := p.dotted()
		s.Names = append(s.Names, Alias{name, p.as()})
		if !p.take(",") {
			break
		}
	}
	s.span = p.since(from)
	return s
}

func (p *parser) importFrom(from int32) Stmt {
	p.next()
	s := &ImportFrom{}
	for {
		switch {
		case p.take("."):
			s.Level++
			continue
		case p.take("..."):
			s.Level += 3
			continue
		}
		break
	}
	if !p.is("import") {
		s.Module = p.dotted()
	}
	p.want("import")
	if p.take("*") {
		s.Names = []Alias{{Name: "*"}}
		s.span = p.since(from)
		return s
	}
	open := p.take("(")
	for {
		name := p.name()
		s.Names = append(s.Names, Alias{name, p.as()})
		if !p.take(",") || open && p.is(")") {
			break
		}
	}
	if open {
		p.want(")")
	}
	s.span = p.since(from)
	return s
}

// alias takes "type Name = Value"; nil if type is a name here.
func (p *parser) alias(from int32) Stmt {
	if t := p.tokens[p.i+1]; t.kind != kName {
		return nil
	}
	p.next()
	s := &TypeAlias{Name: p.name()}
	p.typeParams()
	p.want("=")
	s.Value = p.expression()
	s.span = p.since(from)
	return s
}

// augmented are the assignments that compute.
var augmented = set("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")

func (p *parser) assignment(from int32) Stmt {
	x := p.expressions()
	t := p.peek()
	switch {
	case t.kind != kOp:
	case t.text == "=":
		return p.assign(from, x)
	case t.text == ":":
		p.next()
		s := &AnnAssign{Target: x, Annotation: p.expression()}
		if p.take("=") {
			s.Value = p.expressions()
		}
		s.span = p.since(from)
		return s
	case augmented[t.text] != "":
		p.next()
		s := &AugAssign{Target: x, Op: t.text[:len(t.text)-1], Value: p.expressions()}
		s.span = p.since(from)
		return s
	}
	return &ExprStmt{statement{p.since(from)}, x}
}

func (p *parser) assign(from int32, x Expr) Stmt {
	s := &Assign{Targets: []Expr{x}}
	for p.take("=") {
		s.Value = p.expressions()
		if p.is("=") {
			s.Targets = append(s.Targets, s.Value)
		}
	}
	s.span = p.since(from)
	return s
}

// match takes a match; nil if match is a name here.
func (p *parser) match() Stmt {
	from := p.here()
	i := p.i
	s := &Match{}
	if !p.try(func() {
		p.next()
		s.Subject = p.expressions()
		p.want(":")
		if p.next().kind != kNewline || p.next().kind != kIndent || !p.soft("case") {
			p.unexpected("case")
		}
	}) {
		p.i = i
		return nil
	}
	for p.soft("case") {
		s.Cases = append(s.Cases, p.matched())
	}
	if p.peek().kind != kDedent {
		p.unexpected("case")
	}
	p.next()
	s.span = p.since(from)
	return s
}

// matched takes a case. Patterns are written as expressions, but for names and "as".
func (p *parser) matched() (c Case) {
	from := p.here()
	p.next()
	p.pattern(&c)
	if p.take("if") {
		c.Guard = p.named()
	}
	c.Body = p.block()
	c.span = p.since(from)
	return c
}

// pattern passes over a pattern up to its guard or colon, and keeps the names that it binds.
func (p *parser) pattern(c *Case) {
	depth := 0
	for {
		t := p.peek()
		switch {
		case t.kind == kEnd || t.kind == kNewline:
			p.unexpected("\":\"")
		case depth == 0 && (p.is(":") || p.is("if")):
			return
		case p.is("(") || p.is("[") || p.is("{"):
			depth++
		case p.is(")") || p.is("]") || p.is("}"):
			depth--
		case t.kind == kName && p.binds():
			c.Binds = append(c.Binds, t.text)
		}
		p.next()
	}
}

// binds tells whether a name in a pattern is bound there, and is not that of a class, a module or a keyword.
func (p *parser) binds() bool {
	t, before, after := p.tokens[p.i], p.tokens[p.i-1], p.tokens[p.i+1]
	return t.text != "_" && before.text != "." && after.text != "." && after.text != "(" && after.text != "="
}
