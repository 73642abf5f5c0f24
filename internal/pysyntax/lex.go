package pysyntax

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	kEnd kind = iota
	kNewline
	kIndent
	kDedent
	kName
	kKeyword
	kNumber
	kString
	kOp
)

// token is a word of the source. text of operators and keywords is interned, so that comparing it is quick.
type token struct {
	kind kind
	span
	text string
}

// keywords cannot be names. Soft ones (match, case, type, _) are names that the parser knows.
var keywords = set("False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
	"except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
	"try", "while", "with", "yield")

func set(words ...string) map[string]string {
	m := make(map[string]string, len(words))
	for _, w := range words {
		m[w] = w
	}
	return m
}

// operators by their length, the longest first.
var operators = [...][]string{
	{"**=", "//=", ">>=", "<<=", "..."},
	{"**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":="},
	{"(", ")", ",", ".", "=", ":", "[", "]", "{", "}", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", ";", "!", "$", "?"},
}

// maxIndents is how many blocks stand within each other: Python's own limit.
const maxIndents = 100

// lexer makes tokens of the source between at and end.
type lexer struct {
	src      []byte
	text     string // the same
	at, end  int
	depth    int   // of brackets: line ends within them are space
	field    bool  // the source is a field of an f-string: it has no line ends
	cells    bool  // the source is a notebook's
	indents  []int // columns of the open blocks
	tokens   []token
	comments []Comment
	lines    []int32 // where lines begin; kept only of a file
	brackets []int   // where those that are open stand
}

// failure is an error on its way up to Parse.
type failure struct {
	at      int
	message string
}

func (l *lexer) fail(at int, format string, args ...any) {
	panic(failure{at, fmt.Sprintf(format, args...)})
}

func (l *lexer) add(k kind, from int, text string) {
	l.tokens = append(l.tokens, token{k, span{int32(from), int32(l.at)}, text})
}

// file makes the tokens of a file.
func (l *lexer) file() {
	l.indents = []int{0}
	l.lines = append(l.lines, 0)
	for l.at < l.end {
		if l.depth == 0 && l.indent() {
			continue
		}
		if l.cells {
			l.command()
		}
		l.line()
	}
	l.balanced()
	if n := len(l.tokens); n > 0 && l.tokens[n-1].kind != kNewline && l.tokens[n-1].kind != kDedent {
		l.add(kNewline, l.at, "")
	}
	for range l.indents[1:] {
		l.add(kDedent, l.at, "")
	}
	l.add(kEnd, l.at, "")
}

// indent reads the space before a line, and says whether there is nothing else on it.
func (l *lexer) indent() (blank bool) {
	column := 0
space:
	for ; l.at < l.end; l.at++ {
		switch l.src[l.at] {
		case ' ':
			column++
		case '\t':
			column = (column/8 + 1) * 8
		case '\f':
			column = 0
		case '\\': // a joined line takes the column of its beginning
			if !l.join() {
				break space
			}
			l.at--
		default:
			break space
		}
	}
	if l.at == l.end {
		return true
	}
	switch l.src[l.at] {
	case '#':
		l.comment()
		return true
	case '\n', '\r':
		l.newline()
		return true
	}
	l.block(column)
	return false
}

// block opens or closes blocks for a line that begins in a column.
func (l *lexer) block(column int) {
	top := l.indents[len(l.indents)-1]
	if column > top {
		if len(l.indents) > maxIndents {
			l.fail(l.at, "blocks are nested more than %d deep", maxIndents)
		}
		l.indents = append(l.indents, column)
		l.add(kIndent, l.at, "")
		return
	}
	for column < l.indents[len(l.indents)-1] {
		l.indents = l.indents[:len(l.indents)-1]
		l.add(kDedent, l.at, "")
	}
	if column != l.indents[len(l.indents)-1] {
		l.fail(l.at, "the line is indented as no line before it")
	}
}

// newline passes over the end of a line.
func (l *lexer) newline() {
	if l.src[l.at] == '\r' && l.at+1 < l.end && l.src[l.at+1] == '\n' {
		l.at++
	}
	l.at++
	l.lines = append(l.lines, int32(l.at))
}

// join passes over a backslash that ends a line, and the line's end.
func (l *lexer) join() bool {
	if l.at+1 >= l.end || l.src[l.at+1] != '\n' && l.src[l.at+1] != '\r' {
		return false
	}
	l.at++
	l.newline()
	return true
}

// comment reads to the end of the line.
func (l *lexer) comment() {
	from := l.at
	for l.at < l.end && l.src[l.at] != '\n' && l.src[l.at] != '\r' {
		l.at++
	}
	l.comments = append(l.comments, Comment{span{int32(from), int32(l.at)}, l.text[from:l.at]})
}

// line makes tokens to the end of a line that is not within brackets.
func (l *lexer) line() {
	for l.at < l.end {
		switch c := l.src[l.at]; {
		case c == ' ' || c == '\t' || c == '\f':
			l.at++
		case c == '#':
			l.comment()
		case c == '\n' || c == '\r':
			from := l.at
			l.newline()
			if l.depth == 0 && !l.field {
				l.tokens = append(l.tokens, token{kNewline, span{int32(from), int32(from)}, ""})
				return
			}
		case c == '\\':
			if !l.join() {
				l.fail(l.at, "a backslash stands within a line")
			}
		default:
			l.token(c)
		}
	}
}

// token makes one token, which begins with c.
func (l *lexer) token(c byte) {
	from := l.at
	switch {
	case c >= '0' && c <= '9' || c == '.' && l.at+1 < l.end && isDigit(l.src[l.at+1]):
		l.number()
		l.add(kNumber, from, "")
	case c == '"' || c == '\'':
		l.quoted(from, "")
	case isLetter(c) || c >= utf8.RuneSelf:
		l.word(from)
	default:
		l.operator(from)
	}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// number passes over a number: digits of a base; or digits, a point, digits and an exponent; and the mark of imaginary ones.
func (l *lexer) number() {
	if l.src[l.at] == '0' && l.at+1 < l.end {
		switch l.src[l.at+1] | 0x20 {
		case 'x', 'o', 'b':
			l.at += 2
			l.digits(isHex)
			return
		}
	}
	l.digits(isDigit)
	if l.at < l.end && l.src[l.at] == '.' {
		l.at++
		l.digits(isDigit)
	}
	l.exponent()
	if l.at < l.end && l.src[l.at]|0x20 == 'j' {
		l.at++
	}
}

func (l *lexer) digits(is func(c byte) bool) {
	for l.at < l.end && (is(l.src[l.at]) || l.src[l.at] == '_') {
		l.at++
	}
}

// exponent passes over one, if there is one: of "1else" the e is none.
func (l *lexer) exponent() {
	at := l.at
	if at >= l.end || l.src[at]|0x20 != 'e' {
		return
	}
	at++
	if at < l.end && (l.src[at] == '+' || l.src[at] == '-') {
		at++
	}
	if at < l.end && isDigit(l.src[at]) {
		l.at = at
		l.digits(isDigit)
	}
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// word makes a name, a keyword, or a string by its prefix.
func (l *lexer) word(from int) {
	ascii := true
	for l.at < l.end {
		c := l.src[l.at]
		if isLetter(c) || isDigit(c) {
			l.at++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRune(l.src[l.at:l.end])
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc, unicode.Other_ID_Start, unicode.Other_ID_Continue) {
			l.fail(l.at, "%q cannot be part of a name", r)
		}
		ascii = false
		l.at += n
	}
	text := l.text[from:l.at]
	if l.at < l.end && (l.src[l.at] == '"' || l.src[l.at] == '\'') && isPrefix(text) {
		l.quoted(from, text)
		return
	}
	if k, ok := keywords[text]; ok && ascii {
		l.add(kKeyword, from, k)
		return
	}
	l.add(kName, from, text)
}

// isPrefix tells whether a word before a quote belongs to the string.
func isPrefix(word string) bool {
	if len(word) > 2 {
		return false
	}
	for i := range len(word) {
		c := word[i]
		switch c | 0x20 {
		case 'r', 'b', 'u', 'f', 't':
		default:
			return false
		}
		if i == 1 && (c|0x20 == word[0]|0x20 || c|0x20 != 'r' && word[0]|0x20 != 'r') {
			return false
		}
	}
	return true
}

// isAlone tells whether no longer operator begins with a byte that may be one.
func isAlone(c byte) bool {
	switch c {
	case '(', ')', '[', ']', '{', '}', ',', ';', '~':
		return true
	}
	return false
}

// operator makes an operator, and keeps count of brackets.
func (l *lexer) operator(from int) {
	for i, list := range operators {
		n := len(operators) - i
		if l.at+n > l.end || n > 1 && isAlone(l.src[l.at]) {
			continue
		}
		text := l.text[l.at : l.at+n]
		for _, op := range list {
			if text == op {
				l.at += n
				l.bracket(from, op)
				l.add(kOp, from, op)
				return
			}
		}
	}
	l.fail(from, "%q means nothing here", rune(l.src[from]))
}

// bracket opens or closes a bracket.
func (l *lexer) bracket(at int, op string) {
	switch op {
	case "(", "[", "{":
		l.brackets = append(l.brackets, at)
		l.depth++
	case ")", "]", "}":
		n := len(l.brackets)
		if n == 0 {
			l.fail(at, "%q closes nothing", op)
		}
		open := l.brackets[n-1]
		if !closes(l.src[open], op[0]) {
			l.fail(at, "%q does not close %q%s", op, l.src[open], l.onLine(open))
		}
		l.brackets = l.brackets[:n-1]
		l.depth--
	}
}

// closes tells whether a bracket closes another: in ASCII it follows it, or the one behind.
func closes(open, end byte) bool { return end-open == 1 || end-open == 2 }

// onLine is " of line N", of a place that is not on the line that is read.
func (l *lexer) onLine(at int) string {
	line := positionIn(l.src, at).Line
	if line == positionIn(l.src, l.at).Line {
		return ""
	}
	return fmt.Sprintf(" of line %d", line)
}

// balanced fails at the innermost bracket that is open at the end, as Python does.
func (l *lexer) balanced() {
	if n := len(l.brackets); n > 0 {
		at := l.brackets[n-1]
		l.fail(at, "%q is not closed", l.src[at])
	}
}
