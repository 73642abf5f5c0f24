package litmus

import "strings"

// condition is what stands behind the code: filter, locations, and what is asked.
func (p *parser) condition() error {
	for {
		switch t := p.take(); {
		case t.text == "filter":
			c, err := p.disjunction(0)
			if err != nil {
				return err
			}
			p.test.Filter = c
			p.is(";")
		case t.text == "locations":
			if err := p.shown(); err != nil {
				return err
			}
		case t.text == "exists":
			return p.asked(Exists)
		case t.text == "forall":
			return p.asked(Forall)
		case t.text == "~", t.text == "not":
			if err := p.want("exists", " behind "+t.text); err != nil {
				return err
			}
			return p.asked(Never)
		default:
			return errorAt(t, "%s where the condition should be: exists, ~exists or forall", found(t))
		}
	}
}

// shown is locations [x; P0:r0].
func (p *parser) shown() error {
	if err := p.want("[", " behind locations"); err != nil {
		return err
	}
	for !p.is("]") {
		t, err := p.term()
		if err != nil {
			return err
		}
		p.test.Shown = addTerm(p.test.Shown, t)
		if !p.is(";") && p.peek().text != "]" {
			return errorAt(p.peek(), "%s in the list of locations: expected ; or ]", found(p.peek()))
		}
	}
	return nil
}

// asked is the condition behind its quantifier, up to the end of the file.
func (p *parser) asked(q Quantifier) error {
	from := p.peek()
	c, err := p.disjunction(0)
	if err != nil {
		return err
	}
	t := &p.test.Quantifier
	*t, p.test.Cond = q, c
	p.test.source = strings.Join(strings.Fields(p.src[from.offset:p.peek().offset]), " ")
	p.is(";")
	if last := p.peek(); last.kind != end {
		return errorAt(last, "%s behind the condition, where the file should end", found(last))
	}
	others := p.test.Shown
	p.test.Shown = terms(c, nil)
	if p.test.Filter != nil {
		p.test.Shown = terms(p.test.Filter, p.test.Shown)
	}
	for _, o := range others {
		p.test.Shown = addTerm(p.test.Shown, o)
	}
	return nil
}

func (p *parser) disjunction(depth int) (Cond, error) {
	a, err := p.conjunction(depth)
	for err == nil && p.is("\\/") {
		var b Cond
		b, err = p.conjunction(depth)
		a = Or{a, b}
	}
	return a, err
}

func (p *parser) conjunction(depth int) (Cond, error) {
	a, err := p.factor(depth)
	for err == nil && p.is("/\\") {
		var b Cond
		b, err = p.factor(depth)
		a = And{a, b}
	}
	return a, err
}

func (p *parser) factor(depth int) (Cond, error) {
	if depth > maxDepth {
		return nil, errorAt(p.peek(), "more than %d parentheses inside each other", maxDepth)
	}
	switch {
	case p.is("~"), p.is("not"):
		c, err := p.factor(depth + 1)
		return Not{c}, err
	case p.is("("):
		c, err := p.disjunction(depth + 1)
		if err != nil {
			return nil, err
		}
		return c, p.want(")", " in the condition")
	}
	return p.comparison()
}

func (p *parser) comparison() (Cond, error) {
	a, err := p.term()
	if err != nil {
		return nil, err
	}
	t := p.take()
	switch t.text {
	case "==", "=", "!=", "<", "<=", ">", ">=":
	default:
		return nil, errorAt(t, "%s behind %s: expected ==, !=, <, <=, > or >=", found(t), a.Name)
	}
	b, err := p.term()
	return Compare{a, b, compare(t.text)}, err
}

// term is P0:r0, 0:r0, x, [x] or a constant.
func (p *parser) term() (Term, error) {
	bracket := p.is("[")
	t := p.take()
	switch {
	case (t.kind == word || t.kind == number) && p.is(":"):
		return p.registerTerm(t)
	case t.kind == number:
		v, err := constantOf(t)
		return Term{Name: t.text, thread: -1, loc: -1, constant: v}, err
	case t.kind != word:
		return Term{}, errorAt(t, "%s in the condition where a register (P0:r0), a location or a number should be", found(t))
	}
	loc := p.find(t.text)
	if loc < 0 {
		return Term{}, errorAt(t, "%s in the condition: the test has no such location", t.text)
	}
	if bracket {
		if err := p.want("]", " behind the location"); err != nil {
			return Term{}, err
		}
	}
	return Term{Name: t.text, thread: -1, loc: loc}, nil
}

func (p *parser) registerTerm(t token) (Term, error) {
	name, err := threadName(t)
	if err != nil {
		return Term{}, err
	}
	r, err := p.word("a register")
	if err != nil {
		return Term{}, err
	}
	for i, th := range p.test.Threads {
		if th.Name != name {
			continue
		}
		for k, known := range th.Registers {
			if known == r.text {
				return Term{Name: name + ":" + r.text, thread: i, register: k, loc: -1}, nil
			}
		}
		return Term{}, errorAt(r, "%s has no register %s", name, r.text)
	}
	return Term{}, errorAt(t, "the test has no thread %s", name)
}
