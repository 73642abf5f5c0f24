package npy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/warpline-ml/warpline/internal/claim"
)

// fields are the three entries of a header.
type fields struct {
	descr   string
	fortran bool
	shape   []int
}

// parseHeader reads the one Python literal a header may be: a dict with the
// keys descr (a string), fortran_order (True or False) and shape (a tuple of
// integers), each once, in any order.
func parseHeader(text []byte) (fields, error) {
	p := &parser{text: text}
	var f fields
	seen := map[string]bool{}
	if err := p.expect('{'); err != nil {
		return f, err
	}
	for !p.accept('}') {
		key, err := p.str()
		if err != nil {
			return f, err
		}
		if seen[key] {
			return f, fmt.Errorf("key %s appears twice", claim.Quote(key))
		}
		seen[key] = true
		if err := p.value(key, &f); err != nil {
			return f, fmt.Errorf("%s: %w", claim.Quote(key), err)
		}
		if p.accept(',') {
			continue
		}
		if p.peek() != '}' {
			return f, p.want(", or }")
		}
	}
	if p.peek(); p.at < len(p.text) {
		return f, p.want("nothing more")
	}
	if len(seen) != 3 {
		return f, fmt.Errorf("%d of the keys descr, fortran_order and shape, want all", len(seen))
	}
	return f, nil
}

// parser walks over the text, byte by byte; it never recurses.
type parser struct {
	text []byte
	at   int
}

// value reads ": value" of a key into f.
func (p *parser) value(key string, f *fields) (err error) {
	if err := p.expect(':'); err != nil {
		return err
	}
	switch key {
	case "descr":
		if p.peek() == '[' {
			return errors.New("arrays of records are not read; save each field as an array of its own")
		}
		f.descr, err = p.str()
	case "fortran_order":
		f.fortran, err = p.boolean()
	case "shape":
		f.shape, err = p.tuple()
	default:
		err = errors.New("unknown key; want descr, fortran_order and shape")
	}
	return err
}

// str reads a string in either quote. What NumPy writes here has no escapes.
func (p *parser) str() (string, error) {
	mark := p.peek()
	if mark != '\'' && mark != '"' {
		return "", p.want("a string")
	}
	start := p.at + 1
	for i := start; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == mark:
			p.at = i + 1
			return string(p.text[start:i]), nil
		case c == '\\' || c < ' ':
			p.at = i
			return "", p.want("a string without escapes")
		}
	}
	p.at = len(p.text)
	return "", p.want("the end of the string")
}

func (p *parser) boolean() (bool, error) {
	p.peek()
	start := p.at
	for p.at < len(p.text) && isLetter(p.text[p.at]) {
		p.at++
	}
	switch string(p.text[start:p.at]) {
	case "True":
		return true, nil
	case "False":
		return false, nil
	}
	p.at = start
	return false, p.want("True or False")
}

// tuple reads (), (n,), (n, m) and so on; (n) is a number in Python, not a tuple.
func (p *parser) tuple() ([]int, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	shape := []int{}
	for !p.accept(')') {
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		if shape = append(shape, n); len(shape) > maxRank {
			return nil, fmt.Errorf("more than %d dimensions, NumPy's limit", maxRank)
		}
		if p.accept(',') {
			continue
		}
		if p.peek() != ')' || len(shape) == 1 {
			return nil, p.want("a comma")
		}
	}
	return shape, nil
}

// integer reads a dimension: digits, and the L that Python 2 put behind a long.
func (p *parser) integer() (int, error) {
	p.peek()
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	digits := string(p.text[start:p.at])
	if digits == "" || (digits[0] == '0' && len(digits) > 1) {
		p.at = start
		return 0, p.want("a dimension, 0 or more")
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("dimension %s is beyond what can be counted", claim.Quote(digits))
	}
	if p.at < len(p.text) && p.text[p.at] == 'L' {
		p.at++
	}
	return n, nil
}

// peek skips white space and returns the byte after it, 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.text); p.at++ {
		if c := p.text[p.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(c byte) error {
	if !p.accept(c) {
		return p.want(string(rune(c)))
	}
	return nil
}

// want says what should have been at the present place, and what is.
func (p *parser) want(what string) error {
	if p.at >= len(p.text) {
		return fmt.Errorf("ends early: want %s", what)
	}
	return fmt.Errorf("byte %d: got %s, want %s", p.at, claim.Quote(string(p.text[p.at:])), what)
}

func isLetter(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z'
}
