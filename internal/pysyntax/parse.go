package pysyntax

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Error is why a file cannot be read as Python.
type Error struct {
	File    string
	At      Position
	Message string
	Line    string // the source line
}

// Error names the place and what is wrong there.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.At.Line, e.At.Column, e.Message)
}

// Parse reads a program. The error is an [*Error].
func Parse(name string, source []byte) (*File, error) { return parse(name, source, false) }

// ParseCells reads the cells of a notebook, in which commands of the shell, magics and questions of IPython are statements that do
// nothing. The error is an [*Error].
func ParseCells(name string, source []byte) (*File, error) { return parse(name, source, true) }

// rooms are for the tokens of files, which nobody has any more when a file is parsed.
var rooms = sync.Pool{New: func() any { return new([]token) }}

func parse(name string, source []byte, cells bool) (f *File, err error) {
	source, err = decode(name, source)
	if err != nil {
		return nil, err
	}
	room := rooms.Get().(*[]token)
	l := &lexer{src: source, text: string(source), end: len(source), cells: cells, tokens: slices.Grow((*room)[:0], len(source)/5+16)}
	p := &parser{lexer: l}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			f, err = nil, errorAt(name, source, r)
		default:
			panic(r)
		}
	}()
	l.file()
	f = &File{Name: name, Source: source, text: l.text, Comments: l.comments, lines: l.lines}
	p.tokens = l.tokens
	f.Body = p.file()
	clear(l.tokens) // they hold the source
	*room = l.tokens
	rooms.Put(room)
	return f, nil
}

// errorAt is a failure with its place as people count.
func errorAt(name string, source []byte, r failure) *Error {
	at := min(r.at, len(source))
	p := positionIn(source, at)
	line := source[at-p.Column+1:]
	p.Column = utf8.RuneCount(line[:p.Column-1]) + 1
	if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
		line = line[:i]
	}
	return &Error{File: name, At: p, Message: r.message, Line: string(line)}
}

// positionIn is a place in a source. Lines end in \n, \r\n or, of old, \r.
func positionIn(source []byte, at int) Position {
	before := source[:at]
	ends := bytes.Count(before, []byte("\n")) + bytes.Count(before, []byte("\r")) - bytes.Count(before, []byte("\r\n"))
	from := bytes.LastIndexAny(before, "\r\n") + 1
	return Position{ends + 1, at - from + 1}
}

// cookie is how a file names its encoding, in one of its first two lines (PEP 263).
var cookie = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// decode makes UTF-8 of a source. Of other encodings it knows Latin-1, which is that of most old files, and those that are part of
// UTF-8.
func decode(name string, source []byte) ([]byte, error) {
	source = bytes.TrimPrefix(source, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(source, []byte("\xff\xfe")) || bytes.HasPrefix(source, []byte("\xfe\xff")) {
		return nil, errorAt(name, source, failure{0, "the file is in UTF-16, which Python does not read either; save it as UTF-8"})
	}
	encoding := "utf-8"
	head := source
	for range 2 {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		if m := cookie.FindSubmatch(line); m != nil {
			encoding = strings.ReplaceAll(strings.ToLower(string(m[1])), "_", "-")
			break
		}
		head = rest
	}
	switch encoding {
	case "latin-1", "iso-8859-1", "latin1", "iso8859-1", "iso-8859-15", "cp1252", "windows-1252":
		return latin(source), nil
	}
	if i := bytes.IndexByte(source, 0); i >= 0 {
		return nil, errorAt(name, source, failure{i, "a byte of the source is zero"})
	}
	if !utf8.Valid(source) {
		at := 0
		for at < len(source) {
			r, n := utf8.DecodeRune(source[at:])
			if r == utf8.RuneError && n <= 1 {
				break
			}
			at += n
		}
		return nil, errorAt(name, source, failure{at, fmt.Sprintf("byte 0x%02x is not UTF-8; the file says that it is %s", source[at], encoding)})
	}
	return source, nil
}

// latin makes UTF-8 of Latin-1.
func latin(source []byte) []byte {
	out := make([]byte, 0, len(source)+len(source)/16)
	for _, c := range source {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}

// parser makes a tree of tokens.
type parser struct {
	*lexer
	tokens []token
	i      int
	deep   int
	links  int // of long expressions in a statement
}

// maxDeep is how deep expressions and statements stand within each other; Python's own parser gives up at 6,000 of its frames.
const maxDeep = 400

func (p *parser) enter() {
	if p.deep++; p.deep > maxDeep {
		p.fail(int(p.peek().from), "the program is nested too deeply")
	}
}

func (p *parser) leave() { p.deep-- }

// What goes on and on makes a tree as deep as what is nested: a.b.c, or 1 + 2 + 3. Beyond the first fewLinks of each such expression, a
// statement may have maxLinks in all; Python 3.11 refuses 3,000 in one.
const (
	fewLinks = 100
	maxLinks = 10_000
)

// link counts that an expression goes on for the nth time.
func (p *parser) link(n *int) {
	if *n++; *n <= fewLinks {
		return
	}
	if p.links++; p.links > maxLinks {
		p.fail(int(p.peek().from), "the expression is too long")
	}
}

func (p *parser) peek() *token { return &p.tokens[p.i] }

// next takes a token. The last one stays.
func (p *parser) next() *token {
	t := &p.tokens[p.i]
	if t.kind != kEnd {
		p.i++
	}
	return t
}

// is tells whether the next token is an operator or a keyword.
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == kOp || t.kind == kKeyword) && t.text == text
}

// take takes an operator or a keyword, if it is next.
func (p *parser) take(text string) bool {
	if p.is(text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if !p.take(text) {
		p.unexpected("%q", text)
	}
}

// unexpected fails at the next token, where something else belongs.
func (p *parser) unexpected(format string, args ...any) {
	p.fail(int(p.peek().from), "%s is missing before %s", fmt.Sprintf(format, args...), p.describe(p.peek()))
}

func (p *parser) describe(t *token) string {
	switch t.kind {
	case kEnd:
		return "the end of the file"
	case kNewline:
		return "the end of the line"
	case kIndent:
		return "an indented line"
	case kDedent:
		return "the end of the block"
	}
	return fmt.Sprintf("%q", p.src[t.from:t.to])
}

// name takes a name.
func (p *parser) name() string {
	if p.peek().kind != kName {
		p.unexpected("a name")
	}
	return p.next().text
}

// soft tells whether the next token is a soft keyword.
func (p *parser) soft(word string) bool {
	t := p.peek()
	return t.kind == kName && t.text == word
}

// since is from a place to the end of the token that was taken last.
func (p *parser) since(from int32) span {
	to := from
	if p.i > 0 {
		to = max(to, p.tokens[p.i-1].to)
	}
	return span{from, to}
}

func (p *parser) here() int32 { return p.peek().from }

// try parses, and goes back where it fails.
func (p *parser) try(parse func()) (ok bool) {
	i, deep := p.i, p.deep
	defer func() {
		switch r := recover().(type) {
		case nil:
			ok = true
		case failure:
			p.i, p.deep, ok = i, deep, false
		default:
			panic(r)
		}
	}()
	parse()
	return true
}

func (p *parser) file() (body []Stmt) {
	for p.peek().kind != kEnd {
		body = p.statement(body)
	}
	return body
}

// block takes the statements behind a colon.
func (p *parser) block() (body []Stmt) {
	p.want(":")
	if p.peek().kind != kNewline {
		return p.simple(nil)
	}
	p.next()
	if p.peek().kind != kIndent {
		p.unexpected("an indented block")
	}
	p.next()
	p.enter()
	defer p.leave()
	for p.peek().kind != kDedent && p.peek().kind != kEnd {
		body = p.statement(body)
	}
	if p.peek().kind == kDedent {
		p.next()
	}
	return body
}
