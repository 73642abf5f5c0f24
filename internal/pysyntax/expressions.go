package pysyntax

// expressions takes one expression, or a tuple without brackets.
func (p *parser) expressions() Expr { return p.tuple(p.starNamed, p.begins) }

// tuple takes what parse takes, or several of it with commas between them as a tuple. The last comma may have nothing behind it
// that begins another.
func (p *parser) tuple(parse func() Expr, begins func() bool) Expr {
	from := p.here()
	x := parse()
	if !p.is(",") {
		return x
	}
	s := &Sequence{Kind: '(', Elements: []Expr{x}}
	for p.take(",") {
		if !begins() {
			break
		}
		s.Elements = append(s.Elements, parse())
	}
	s.span = p.since(from)
	return s
}

// begins tells whether the next token can begin an expression.
func (p *parser) begins() bool {
	t := p.peek()
	switch t.kind {
	case kName, kNumber, kString:
		return true
	case kKeyword:
		switch t.text {
		case "None", "True", "False", "not", "lambda", "await", "yield":
			return true
		}
	case kOp:
		switch t.text {
		case "(", "[", "{", "-", "+", "~", "...", "*", "**":
			return true
		}
	}
	return false
}

// starNamed takes an expression, *expression, yield or name := value.
func (p *parser) starNamed() Expr {
	switch {
	case p.is("*"):
		return p.starred()
	case p.is("yield"):
		return p.yield()
	}
	return p.named()
}

// starred takes an expression or *expression.
func (p *parser) starred() Expr {
	from := p.here()
	if !p.take("*") {
		return p.expression()
	}
	x := p.bitwise(0)
	return &Unary{expression{p.since(from)}, "*", x}
}

func (p *parser) yield() Expr {
	from := p.here()
	p.next()
	y := &Yield{From: p.take("from")}
	if y.From || p.begins() {
		y.X = p.expressions()
	}
	y.span = p.since(from)
	return y
}

// named takes an expression, or name := value.
func (p *parser) named() Expr {
	from := p.here()
	x := p.expression()
	n, ok := x.(*Name)
	if !ok || !p.take(":=") {
		return x
	}
	v := p.expression()
	return &Walrus{expression{p.since(from)}, n, v}
}

// expression takes a conditional, a lambda, or what is simpler.
func (p *parser) expression() Expr {
	p.enter()
	defer p.leave()
	from := p.here()
	if p.take("lambda") {
		l := &Lambda{Params: p.params(":", false)}
		p.want(":")
		l.Body = p.expression()
		l.span = p.since(from)
		return l
	}
	x := p.or()
	if !p.take("if") {
		return x
	}
	c := &Conditional{Then: x, Test: p.or()}
	p.want("else")
	c.Else = p.expression()
	c.span = p.since(from)
	return c
}

func (p *parser) or() Expr  { return p.logic("or", p.and) }
func (p *parser) and() Expr { return p.logic("and", p.not) }

func (p *parser) logic(word string, parse func() Expr) Expr {
	from := p.here()
	x := parse()
	for n := 0; p.take(word); p.link(&n) {
		y := parse()
		x = &Binary{expression{p.since(from)}, word, x, y}
	}
	return x
}

func (p *parser) not() Expr {
	from := p.here()
	if !p.take("not") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	x := p.not()
	return &Unary{expression{p.since(from)}, "not", x}
}

// comparisons takes the operator of a comparison; "" if there is none.
func (p *parser) comparisons() string {
	t := p.peek()
	switch t.text {
	case "<", ">", "==", ">=", "<=", "!=", "in":
		if t.kind == kOp || t.kind == kKeyword {
			p.next()
			return t.text
		}
	case "not":
		if t.kind == kKeyword && p.tokens[p.i+1].kind == kKeyword && p.tokens[p.i+1].text == "in" {
			p.i += 2
			return "not in"
		}
	case "is":
		if t.kind == kKeyword {
			p.next()
			if p.take("not") {
				return "is not"
			}
			return "is"
		}
	}
	return ""
}

func (p *parser) comparison() Expr {
	from := p.here()
	x := p.bitwise(0)
	var c *Compare
	for op := p.comparisons(); op != ""; op = p.comparisons() {
		if c == nil {
			c = &Compare{First: x}
		}
		c.Ops = append(c.Ops, op)
		c.Rest = append(c.Rest, p.bitwise(0))
	}
	if c == nil {
		return x
	}
	c.span = p.since(from)
	return c
}

// level is that of a binary operator, or -1.
func (p *parser) level() int {
	t := p.peek()
	if t.kind != kOp {
		return -1
	}
	switch t.text {
	case "|":
		return 0
	case "^":
		return 1
	case "&":
		return 2
	case "<<", ">>":
		return 3
	case "+", "-":
		return 4
	case "*", "/", "//", "%", "@":
		return 5
	}
	return -1
}

// bitwise takes binary operators of a level and closer ones, by climbing.
func (p *parser) bitwise(lowest int) Expr {
	from := p.here()
	x := p.factor()
	links := 0
	for n := p.level(); n >= lowest; n = p.level() {
		op := p.next().text
		y := p.bitwise(n + 1)
		x = &Binary{expression{p.since(from)}, op, x, y}
		p.link(&links)
	}
	return x
}

// factor takes what has a sign, or a power.
func (p *parser) factor() Expr {
	from := p.here()
	for _, op := range [...]string{"-", "+", "~"} {
		if p.take(op) {
			p.enter()
			x := p.factor()
			p.leave()
			return &Unary{expression{p.since(from)}, op, x}
		}
	}
	x := p.primary()
	if !p.take("**") {
		return x
	}
	p.enter()
	defer p.leave()
	y := p.factor()
	return &Binary{expression{p.since(from)}, "**", x, y}
}

// primary takes an atom with what follows it: attributes, calls, indices.
func (p *parser) primary() Expr {
	from := p.here()
	if p.take("await") {
		p.enter()
		defer p.leave()
		x := p.primary()
		return &Unary{expression{p.since(from)}, "await", x}
	}
	x := p.atom()
	for n := 0; ; p.link(&n) {
		switch {
		case p.take("."):
			attr := p.name()
			x = &Attribute{expression{p.since(from)}, x, attr}
		case p.take("("):
			args := p.args()
			x = &Call{expression{p.since(from)}, x, args}
		case p.take("["):
			index := p.tuple(p.slice, func() bool { return p.begins() || p.is(":") })
			p.want("]")
			if u, ok := index.(*Unary); ok && u.Op == "*" {
				index = &Sequence{expression{u.span}, '(', []Expr{u}}
			}
			x = &Subscript{expression{p.since(from)}, x, index}
		default:
			return x
		}
	}
}

// args takes arguments behind a bracket, and the bracket that closes them.
func (p *parser) args() (args []Arg) {
	for !p.is(")") {
		args = append(args, p.arg())
		if !p.take(",") {
			break
		}
	}
	p.want(")")
	return args
}

func (p *parser) arg() (a Arg) {
	from := p.here()
	switch {
	case p.take("**"):
		return Arg{Star: "**", Value: p.expression()}
	case p.take("*"):
		return Arg{Star: "*", Value: p.expression()}
	}
	if t := p.tokens[p.i+1]; p.peek().kind == kName && t.kind == kOp && t.text == "=" {
		name := p.name()
		p.next()
		return Arg{Name: name, Value: p.expression()}
	}
	x := p.starNamed()
	if p.is("for") || p.is("async") {
		x = p.comprehension(from, '(', nil, x)
	}
	return Arg{Value: x}
}

// slice takes an index or a slice.
func (p *parser) slice() Expr {
	from := p.here()
	var low Expr
	if !p.is(":") {
		low = p.starNamed()
		if !p.is(":") {
			return low
		}
	}
	s := &Slice{Low: low}
	p.want(":")
	if p.begins() {
		s.High = p.expression()
	}
	if p.take(":") && p.begins() {
		s.Step = p.expression()
	}
	s.span = p.since(from)
	return s
}

func (p *parser) atom() Expr {
	t := p.next()
	at := expression{t.span}
	switch t.kind {
	case kName:
		return &Name{at, t.text}
	case kNumber:
		return &Number{at, p.text[t.from:t.to]}
	case kString:
		return p.str(t)
	case kKeyword:
		switch t.text {
		case "None", "True", "False":
			return &Name{at, t.text}
		}
	case kOp:
		switch t.text {
		case "...":
			return &Ellipsis{at}
		case "(":
			return p.group(t.from)
		case "[":
			return p.list(t.from)
		case "{":
			return p.braces(t.from)
		}
	}
	if t.kind != kEnd {
		p.i--
	}
	p.unexpected("an expression")
	return nil
}

// group takes what stands in round brackets.
func (p *parser) group(from int32) Expr {
	p.enter()
	defer p.leave()
	if p.take(")") {
		return &Sequence{expression{p.since(from)}, '(', nil}
	}
	x := p.starNamed()
	switch {
	case p.is("for") || p.is("async"):
		x = p.comprehension(from, '(', nil, x)
		p.want(")")
		return x
	case p.is(","):
		s := &Sequence{Kind: '(', Elements: p.elements(x, ")")}
		s.span = p.since(from)
		return s
	}
	p.want(")")
	return x
}

// elements takes the rest of a display behind its first element, and the bracket.
func (p *parser) elements(first Expr, end string) []Expr {
	all := []Expr{first}
	for p.take(",") && !p.is(end) {
		all = append(all, p.starNamed())
	}
	p.want(end)
	return all
}

func (p *parser) list(from int32) Expr {
	p.enter()
	defer p.leave()
	if p.take("]") {
		return &Sequence{expression{p.since(from)}, '[', nil}
	}
	x := p.starNamed()
	if p.is("for") || p.is("async") {
		x = p.comprehension(from, '[', nil, x)
		p.want("]")
		return x
	}
	s := &Sequence{Kind: '[', Elements: p.elements(x, "]")}
	s.span = p.since(from)
	return s
}

// braces takes a dictionary or a set.
func (p *parser) braces(from int32) Expr {
	p.enter()
	defer p.leave()
	if p.take("}") {
		return &Dict{expression: expression{p.since(from)}}
	}
	if p.is("**") {
		return p.dict(from, nil, nil)
	}
	x := p.starNamed()
	switch {
	case p.take(":"):
		v := p.expression()
		if p.is("for") || p.is("async") {
			c := p.comprehension(from, '{', x, v)
			p.want("}")
			return c
		}
		return p.dict(from, x, v)
	case p.is("for") || p.is("async"):
		c := p.comprehension(from, '{', nil, x)
		p.want("}")
		return c
	}
	s := &Sequence{Kind: '{', Elements: p.elements(x, "}")}
	s.span = p.since(from)
	return s
}

// dict takes the rest of a dictionary behind its first entry, if it has been read.
func (p *parser) dict(from int32, key, value Expr) Expr {
	d := &Dict{}
	if value != nil {
		d.Keys, d.Values = []Expr{key}, []Expr{value}
		if !p.take(",") {
			p.want("}")
			d.span = p.since(from)
			return d
		}
	}
	for !p.is("}") {
		key = nil
		if !p.take("**") {
			key = p.expression()
			p.want(":")
			value = p.expression()
		} else {
			value = p.bitwise(0)
		}
		d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
		if !p.take(",") {
			break
		}
	}
	p.want("}")
	d.span = p.since(from)
	return d
}

// comprehension takes its clauses.
func (p *parser) comprehension(from int32, kind byte, key, element Expr) Expr {
	c := &Comprehension{Kind: kind, Key: key, Element: element}
	for p.is("for") || p.is("async") {
		one := Clause{Async: p.take("async")}
		p.want("for")
		one.Target = p.targets()
		p.want("in")
		one.Iter = p.or()
		for p.take("if") {
			one.Conds = append(one.Conds, p.condition())
		}
		c.Clauses = append(c.Clauses, one)
	}
	c.span = p.since(from)
	return c
}

// condition takes that of a comprehension: no conditional, for the next "if" is another condition.
func (p *parser) condition() Expr {
	from := p.here()
	x := p.or()
	n, ok := x.(*Name)
	if !ok || !p.take(":=") {
		return x
	}
	v := p.or()
	return &Walrus{expression{p.since(from)}, n, v}
}

// targets takes what a loop or a del writes: no comparisons, for "in" ends it.
func (p *parser) targets() Expr { return p.tuple(p.starTarget, p.begins) }

func (p *parser) starTarget() Expr {
	from := p.here()
	if p.take("*") {
		x := p.bitwise(0)
		return &Unary{expression{p.since(from)}, "*", x}
	}
	return p.bitwise(0)
}

// str takes strings that stand in a row as one.
func (p *parser) str(t *token) Expr {
	s := &String{}
	from := t.from
	for {
		p.fields(s, t)
		if p.peek().kind != kString {
			break
		}
		t = p.next()
	}
	s.span = p.since(from)
	return s
}

// fields adds a string to those before it, with the expressions within it.
func (p *parser) fields(s *String, t *token) {
	text := p.src[t.from:t.to]
	n := 0
	for n < len(text) && text[n] != '"' && text[n] != '\'' {
		n++
	}
	prefix, quoted := string(text[:n]), text[n:]
	q := 1
	if len(quoted) >= 6 && quoted[1] == quoted[0] && quoted[2] == quoted[0] {
		q = 3
	}
	s.Value += string(quoted[q : len(quoted)-q])
	formatted := false
	for i := range len(prefix) {
		c := prefix[i] | 0x20
		s.Bytes = s.Bytes || c == 'b'
		formatted = formatted || c == 'f' || c == 't'
	}
	if !formatted {
		return
	}
	l := &lexer{src: p.src, text: p.text, at: int(t.from) + n, end: int(t.to)}
	l.literal(prefix, func(from, to int) {
		if x := p.field(from, to); x != nil {
			s.Fields = append(s.Fields, x)
		}
	})
}

// field is the expression of a field of an f-string; nil where it is empty. "x=" prints itself.
func (p *parser) field(from, to int) Expr {
	for to > from && (isSpace(p.src[to-1])) {
		to--
	}
	if to > from && p.src[to-1] == '=' && (to-2 < from || !isComparison(p.src[to-2])) {
		to--
	}
	p.enter()
	defer p.leave()
	l := &lexer{src: p.src, text: p.text, at: from, end: to, field: true}
	l.line()
	l.balanced()
	if len(l.tokens) == 0 {
		p.fail(from, "a field of the string is empty")
	}
	l.at = to
	l.add(kEnd, to, "")
	sub := &parser{lexer: l, tokens: l.tokens, deep: p.deep, links: p.links}
	x := sub.expressions()
	p.links = sub.links
	if sub.peek().kind != kEnd {
		sub.unexpected("the end of the field")
	}
	return x
}

func isSpace(c byte) bool      { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
func isComparison(c byte) bool { return c == '=' || c == '!' || c == '<' || c == '>' }
