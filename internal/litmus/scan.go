package litmus

import (
	"fmt"
	"strings"
)

// Error is what is wrong with a test, and where.
type Error struct {
	File string
	Pos  Pos
	Msg  string
}

// Error has the place in front, as compilers do.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Pos.Line, e.Pos.Col, e.Msg)
}

// token is a word, a number or a mark; text is empty at the end.
type token struct {
	text   string
	pos    Pos
	offset int // of its first byte
	kind   kind
}

type kind int

const (
	end kind = iota
	word
	number
	mark
)

// scanner cuts a text into tokens.
type scanner struct {
	src  string
	at   int
	line int
	bol  int // where the line begins
}

func (s *scanner) pos() Pos { return Pos{s.line, s.at - s.bol + 1} }

// skip goes on by n bytes.
func (s *scanner) skip(n int) {
	for range n {
		if s.src[s.at] == '\n' {
			s.line++
			s.bol = s.at + 1
		}
		s.at++
	}
}

// blank skips blanks and comments.
func (s *scanner) blank() error {
	for s.at < len(s.src) {
		rest := s.src[s.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			s.skip(1)
		case strings.HasPrefix(rest, "//"):
			s.skip(len(rest[:lineEnd(rest)]))
		case strings.HasPrefix(rest, "(*"):
			n := strings.Index(rest, "*)")
			if n < 0 {
				return &Error{Pos: s.pos(), Msg: "a comment that begins here does not end: *) is missing"}
			}
			s.skip(n + 2)
		default:
			return nil
		}
	}
	return nil
}

func lineEnd(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// marks are longest first.
var marks = []string{"/\\", "\\/", "==", "!=", "<=", ">=", "{", "}", ";", "|", "@", ",", ":", ".", "(", ")", "[", "]", "&", "=", "<", ">", "~"}

// next is the next token.
func (s *scanner) next() (token, error) {
	if err := s.blank(); err != nil {
		return token{}, err
	}
	t := token{pos: s.pos(), offset: s.at}
	rest := s.src[s.at:]
	switch {
	case rest == "":
		return t, nil
	case letter(rest[0]):
		t.kind, t.text = word, rest[:run(rest, func(c byte) bool { return letter(c) || digit(c) })]
	case digit(rest[0]), rest[0] == '-' && len(rest) > 1 && digit(rest[1]):
		t.kind, t.text = number, rest[:1+run(rest[1:], func(c byte) bool { return letter(c) || digit(c) })]
	default:
		t.kind = mark
		for _, m := range marks {
			if strings.HasPrefix(rest, m) {
				t.text = m
				break
			}
		}
		if t.text == "" {
			return t, &Error{Pos: t.pos, Msg: fmt.Sprintf("%q has no meaning here", []rune(rest)[0])}
		}
	}
	s.skip(len(t.text))
	return t, nil
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '%' || c == '$'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// run is how many bytes at the start of s are of a kind.
func run(s string, of func(byte) bool) int {
	n := 0
	for n < len(s) && of(s[n]) {
		n++
	}
	return n
}

// scan is all tokens of a text, from a place on; the last is the end.
func scan(src string, from int) ([]token, error) {
	s := scanner{src: src, line: 1}
	s.skip(from)
	var all []token
	for {
		t, err := s.next()
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		if t.kind == end {
			return all, nil
		}
	}
}
