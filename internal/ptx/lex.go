package ptx

import "strings"

// tokKind classifies tokens.
type tokKind uint8

const (
	tokEOF    tokKind = iota
	tokIdent          // name, %name, $name, _
	tokDot            // .name, with :: parts
	tokNumber         // anything that starts with a digit, or with a dot and a digit as .5 does
	tokString         // "…", text without the quotes
	tokPunct          // one character, or one of << >> <= >= == != && ||
)

// token is a piece of source text.
type token struct {
	kind  tokKind
	space bool // white space or a comment stands before it
	pos   Pos
	text  string
}

// lexer cuts source text into tokens. It is a plain value: a copy looks ahead.
type lexer struct {
	src  string
	off  int
	line int
	bol  int // offset of the first byte of the line
}

func newLexer(src string) lexer { return lexer{src: src, line: 1} }

func (l *lexer) pos() Pos { return Pos{l.line, l.off - l.bol + 1} }

// byteAt is the byte n places ahead, 0 past the end.
func (l *lexer) byteAt(n int) byte {
	if l.off+n < len(l.src) {
		return l.src[l.off+n]
	}
	return 0
}

// next cuts the next token.
func (l *lexer) next() (token, error) {
	space, err := l.skipBlank()
	if err != nil {
		return token{}, err
	}
	t := token{space: space, pos: l.pos()}
	if l.off >= len(l.src) {
		return t, nil
	}
	start := l.off
	switch c := l.src[l.off]; {
	case c == '"':
		return l.str(t)
	case isNameStart(c) || (c == '%' || c == '$' || c == '_') && isName(l.byteAt(1)) || c == '_' || c == '$':
		t.kind = tokIdent
		l.off++
		l.skipName()
	case c == '.' && isDigit(l.byteAt(1)) && l.isFraction():
		t.kind = tokNumber
		l.off++
		l.skipNumber()
	case c == '.' && isName(l.byteAt(1)):
		t.kind = tokDot
		l.skipDot()
	case isDigit(c):
		t.kind = tokNumber
		l.skipNumber()
	case c < ' ' || c > '~':
		return t, &Error{Pos: t.pos, Text: l.src[l.off : l.off+1], Msg: "invalid character"}
	default:
		t.kind = tokPunct
		l.off += l.punctLen()
	}
	t.text = l.src[start:l.off]
	return t, nil
}

// skipBlank passes white space and comments and reports whether there was any.
func (l *lexer) skipBlank() (bool, error) {
	start := l.off
	for l.off < len(l.src) {
		switch c := l.src[l.off]; {
		case c == '\n':
			l.off++
			l.line++
			l.bol = l.off
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.off++
		case c == '/' && l.byteAt(1) == '/':
			l.skipLine()
		case c == '/' && l.byteAt(1) == '*':
			if err := l.skipComment(); err != nil {
				return false, err
			}
		default:
			return l.off > start, nil
		}
	}
	return l.off > start, nil
}

func (l *lexer) skipLine() {
	if n := strings.IndexByte(l.src[l.off:], '\n'); n >= 0 {
		l.off += n
	} else {
		l.off = len(l.src)
	}
}

func (l *lexer) skipComment() error {
	n := strings.Index(l.src[l.off+2:], "*/")
	if n < 0 {
		return &Error{Pos: l.pos(), Text: "/*", Msg: "unclosed comment", Want: "*/"}
	}
	end := l.off + 2 + n + 2
	l.line += strings.Count(l.src[l.off:end], "\n")
	if i := strings.LastIndexByte(l.src[l.off:end], '\n'); i >= 0 {
		l.bol = l.off + i + 1
	}
	l.off = end
	return nil
}

func (l *lexer) str(t token) (token, error) {
	end := strings.IndexAny(l.src[l.off+1:], "\"\n")
	if end < 0 || l.src[l.off+1+end] == '\n' {
		return t, &Error{Pos: t.pos, Msg: "unclosed string", Want: `"`}
	}
	t.kind = tokString
	t.text = l.src[l.off+1 : l.off+1+end]
	l.off += end + 2
	return t, nil
}

func (l *lexer) skipName() {
	for isName(l.byteAt(0)) {
		l.off++
	}
}

// skipDot passes .name and its ::parts; ".L2::cache_hint" is one token.
func (l *lexer) skipDot() {
	l.off++
	l.skipName()
	for l.byteAt(0) == ':' && l.byteAt(1) == ':' && isName(l.byteAt(2)) {
		l.off += 2
		l.skipName()
	}
}

// isFraction is whether a dot before digits begins a number, as in .5, and no modifier, as in tex.1d.
func (l *lexer) isFraction() bool {
	if l.off > 0 && isName(l.src[l.off-1]) {
		return false
	}
	n := 1
	for isDigit(l.byteAt(n)) {
		n++
	}
	return !isName(l.byteAt(n)) || l.isExponent(n)
}

// skipNumber passes digits, letters, a fraction and an exponent; the parser judges what they mean.
func (l *lexer) skipNumber() {
	hex := l.byteAt(0) == '0' && strings.IndexByte("xXfFdDbB", l.byteAt(1)) >= 0
	for isName(l.byteAt(0)) && l.byteAt(0) != '$' {
		l.off++
		sign := l.byteAt(0) == '+' || l.byteAt(0) == '-'
		if e := l.src[l.off-1]; !hex && (e == 'e' || e == 'E') && sign && isDigit(l.byteAt(1)) {
			l.off++
		}
		if !hex && l.byteAt(0) == '.' && isDigit(l.byteAt(1)) {
			l.off++
		}
	}
	if hex || l.byteAt(0) != '.' {
		return
	}
	if !isName(l.byteAt(1)) {
		l.off++ // 5. is 5.0
	} else if l.isExponent(1) {
		l.off++
		l.skipNumber()
	}
}

// isExponent is whether n places ahead is one, as in 5.e2.
func (l *lexer) isExponent(n int) bool {
	if c := l.byteAt(n); c != 'e' && c != 'E' {
		return false
	}
	sign := l.byteAt(n+1) == '+' || l.byteAt(n+1) == '-'
	return isDigit(l.byteAt(n+1)) || sign && isDigit(l.byteAt(n+2))
}

// punctLen is the length of the operator at the current offset.
func (l *lexer) punctLen() int {
	switch l.src[l.off : l.off+1+min(1, len(l.src)-l.off-1)] {
	case "<<", ">>", "<=", ">=", "==", "!=", "&&", "||":
		return 2
	}
	return 1
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isName(c byte) bool { return isNameStart(c) || isDigit(c) || c == '_' || c == '$' }
