package pyenv

import (
	"regexp"
	"slices"
	"strings"
)

// tokens of markers: parentheses, operators, texts, names.
var tokens = regexp.MustCompile(`\s*(\(|\)|'[^']*'|"[^"]*"|===|==|!=|<=|>=|~=|<|>|[A-Za-z_.]+)`)

// marker evaluates an environment marker (PEP 508). One that cannot be read, or names an unknown variable, does not hold: a
// requirement that we do not understand is not judged.
func marker(text string, variables map[string]string) bool {
	p := markers{variables: variables}
	for _, m := range tokens.FindAllStringSubmatch(text, 256) {
		p.tokens = append(p.tokens, m[1])
	}
	v := p.or(0)
	return v && !p.bad && len(p.tokens) == 0
}

// markers is a parser that evaluates as it reads.
type markers struct {
	tokens    []string
	variables map[string]string
	bad       bool
}

func (p *markers) next() string {
	if len(p.tokens) == 0 {
		p.bad = true
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *markers) take(t string) bool {
	if len(p.tokens) == 0 || p.tokens[0] != t {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *markers) or(depth int) bool {
	v := p.and(depth)
	for p.take("or") {
		w := p.and(depth)
		v = v || w
	}
	return v
}

func (p *markers) and(depth int) bool {
	v := p.term(depth)
	for p.take("and") {
		w := p.term(depth)
		v = v && w
	}
	return v
}

func (p *markers) term(depth int) bool {
	if depth > 50 {
		p.bad = true
		return false
	}
	if p.take("(") {
		v := p.or(depth + 1)
		p.bad = p.bad || !p.take(")")
		return v
	}
	name := p.next()
	a := p.value(name)
	op := p.next()
	if op == "not" {
		op += " " + p.next()
	}
	other := p.next()
	return p.compare(a, op, p.value(other), strings.HasPrefix(name+other, "python_") || strings.HasSuffix(name+other, "_version"))
}

// value of a text or a variable.
func (p *markers) value(t string) string {
	if len(t) >= 2 && (t[0] == '\'' || t[0] == '"') {
		return t[1 : len(t)-1]
	}
	v, ok := p.variables[t]
	p.bad = p.bad || !ok
	return v
}

func (p *markers) compare(a, op, b string, versions bool) bool {
	switch {
	case op == "in":
		return strings.Contains(b, a)
	case op == "not in":
		return !strings.Contains(b, a)
	case versions && a != "" && clause.MatchString(op+"1"):
		return meets(a, op, b)
	case op == "==":
		return a == b
	case op == "!=":
		return a != b
	}
	p.bad = p.bad || !slices.Contains([]string{"<", ">", "<=", ">="}, op)
	return false
}
