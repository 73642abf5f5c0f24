package litmus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxBytes is how long a test may be.
const MaxBytes = 1 << 20

// A test may have so much; what is larger could not be checked whole.
const (
	maxThreads = 16
	maxCode    = 256 // instructions of a thread
	maxDepth   = 100 // of parentheses
)

// Parse reads a test; file is its name in errors, which are of type *Error.
func Parse(file string, text []byte) (*Test, error) {
	p := &parser{src: string(text), test: &Test{}}
	err := p.whole()
	if e, ok := err.(*Error); ok {
		e.File = file
	}
	if err != nil {
		return nil, err
	}
	return p.test, nil
}

type parser struct {
	src    string
	tokens []token
	at     int
	test   *Test
	labels []map[string]int // of each thread
	jumps  []map[int]token  // of each thread: where the label of a branch was named
	starts map[string]token // where registers got a value before threads were known
	inits  map[string]int64 // and which: "1:r0"
}

// at is an error at a token.
func errorAt(t token, format string, args ...any) error {
	return &Error{Pos: t.pos, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// is takes a mark or a word, if it comes next.
func (p *parser) is(text string) bool {
	if t := p.peek(); t.kind == end || t.text != text {
		return false
	}
	p.at++
	return true
}

// want takes what must come next.
func (p *parser) want(text, where string) error {
	if !p.is(text) {
		return errorAt(p.peek(), "%s%s: expected %q", found(p.peek()), where, text)
	}
	return nil
}

func found(t token) string {
	if t.kind == end {
		return "the file ends"
	}
	return fmt.Sprintf("%q", t.text)
}

func (p *parser) word(what string) (token, error) {
	t := p.take()
	if t.kind != word {
		return t, errorAt(t, "%s where %s should be", found(t), what)
	}
	return t, nil
}

// number is a constant, decimal or hexadecimal.
func (p *parser) number(what string) (int64, error) {
	t := p.take()
	if t.kind != number {
		return 0, errorAt(t, "%s where %s should be", found(t), what)
	}
	return constantOf(t)
}

func constantOf(t token) (int64, error) {
	v, err := strconv.ParseInt(t.text, 0, 64)
	if err != nil {
		if u, failed := strconv.ParseUint(t.text, 0, 64); failed == nil {
			return int64(u), nil
		}
		return 0, errorAt(t, "%q is no number of 64 bits", t.text)
	}
	return v, nil
}

// small is a number that counts something.
func (p *parser) small(what string) (int, error) {
	t := p.peek()
	v, err := p.number(what)
	if err == nil && (v < 0 || v > 1<<16) {
		err = errorAt(t, "%s is %s: give a number from 0 to 65536", what, t.text)
	}
	return int(v), err
}

// each does the steps until one fails.
func each(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) whole() error {
	if len(p.src) > MaxBytes {
		return &Error{Pos: Pos{1, 1}, Msg: fmt.Sprintf("a litmus test of %d bytes: %d are read", len(p.src), MaxBytes)}
	}
	return each(p.header, p.initial, p.threads, p.code, p.resolve, p.condition)
}

// header is all before the brace: the language, the name, and texts that nobody reads.
func (p *parser) header() error {
	first := strings.TrimLeft(p.src, " \t\r\n\uFEFF")
	if len(first) < 3 || !strings.EqualFold(first[:3], "PTX") || len(first) > 3 && (letter(first[3]) || digit(first[3])) {
		return &Error{Pos: Pos{1, 1}, Msg: `a litmus test for PTX begins with "PTX NAME"`}
	}
	line := first[:lineEnd(first)]
	if n := strings.IndexByte(line, '{'); n >= 0 {
		line = line[:n]
	}
	p.test.Name = strings.TrimSpace(line[3:])
	at, quoted := -1, false
	for i := range len(p.src) {
		switch c := p.src[i]; {
		case c == '"':
			quoted = !quoted
		case c == '{' && !quoted:
			at = i
		}
		if at >= 0 {
			break
		}
	}
	if at < 0 {
		return &Error{Pos: Pos{1, 1}, Msg: "no initial values: { and } are missing behind the name"}
	}
	var err error
	p.tokens, err = scan(p.src, at)
	return err
}

// initial is what locations and registers hold at first: {x=0; y=1; P0:r0=0; s @ surface aliases x;}
func (p *parser) initial() error {
	p.starts, p.inits = map[string]token{}, map[string]int64{}
	if err := p.want("{", " before the initial values"); err != nil {
		return err
	}
	for !p.is("}") {
		if p.is(";") {
			continue
		}
		if err := p.initialValue(); err != nil {
			return err
		}
		if t := p.peek(); t.text != "}" && t.text != ";" {
			return errorAt(t, "%s behind an initial value: expected ; or }", found(t))
		}
	}
	p.is(";")
	return nil
}

func (p *parser) initialValue() error {
	t := p.take()
	if p.is(":") {
		return p.initialRegister(t)
	}
	if t.kind != word {
		return errorAt(t, "%s where a location (x=0), a register (P0:r0=0) or } should be", found(t))
	}
	if p.find(t.text) >= 0 {
		return errorAt(t, "%s has an initial value already", t.text)
	}
	n := len(p.test.Locations)
	l := Location{Name: t.text, Memory: n, Virtual: n}
	if p.is("@") {
		return p.alias(l)
	}
	if err := p.want("=", " behind "+t.text); err != nil {
		return err
	}
	if v := p.peek(); v.text == "&" || v.kind == word {
		return errorAt(v, "%s would hold an address: locations hold numbers here", t.text)
	}
	v, err := p.number("the initial value of " + t.text)
	l.Init = v
	p.test.Locations = append(p.test.Locations, l)
	return err
}

func (p *parser) initialRegister(thread token) error {
	r, err := p.word("a register")
	if err != nil {
		return err
	}
	id, err := threadName(thread)
	if err != nil {
		return err
	}
	key := id + ":" + r.text
	if err := p.want("=", " behind "+key); err != nil {
		return err
	}
	if v := p.peek(); v.text == "&" || v.kind == word {
		return errorAt(v, "%s would hold an address: instructions name their locations here", key)
	}
	p.starts[key] = thread
	p.inits[key], err = p.number("the initial value of " + key)
	return err
}

// threadName is P1 for P1 and for 1.
func threadName(t token) (string, error) {
	digits := strings.TrimPrefix(t.text, "P")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<16 {
		return "", errorAt(t, "%s where a thread (P0) should be", found(t))
	}
	return "P" + strconv.Itoa(n), nil
}

// alias is another name for a location's memory: a generic one has a virtual address of its own.
func (p *parser) alias(l Location) error {
	k, err := p.word("a proxy")
	if err != nil {
		return err
	}
	known, ok := proxies[k.text]
	if !ok {
		return errorAt(k, "%q is no proxy: generic, constant, texture or surface", k.text)
	}
	if err := p.want("aliases", " behind the proxy"); err != nil {
		return err
	}
	of, err := p.word("a location")
	if err != nil {
		return err
	}
	base := p.find(of.text)
	if base < 0 {
		return errorAt(of, "%s is not known before %s, which aliases it", of.text, l.Name)
	}
	b := p.test.Locations[base]
	l.Memory, l.Init = b.Memory, b.Init
	if known != generic {
		l.Virtual = b.Virtual
	}
	p.test.Locations = append(p.test.Locations, l)
	return nil
}

var proxies = map[string]proxy{"generic": generic, "constant": constant, "texture": texture, "surface": surface}

// find is the index of a location, or -1.
func (p *parser) find(name string) int {
	return slices.IndexFunc(p.test.Locations, func(l Location) bool { return l.Name == name })
}

// threads is the row of their places: P0@cta 0,gpu 0 | P1@cta 1,gpu 0;
func (p *parser) threads() error {
	for {
		t := p.take()
		name, err := threadName(t)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(p.test.Threads, func(u Thread) bool { return u.Name == name }) {
			return errorAt(t, "%s is there twice", name)
		}
		if len(p.test.Threads) == maxThreads {
			return errorAt(t, "%s is one thread too many: a test may have %d", name, maxThreads)
		}
		th, err := p.place(name)
		if err != nil {
			return err
		}
		p.test.Threads = append(p.test.Threads, th)
		if p.is(";") {
			break
		}
		if err := p.want("|", " behind a thread"); err != nil {
			return err
		}
	}
	n := len(p.test.Threads)
	p.labels, p.jumps = make([]map[string]int, n), make([]map[int]token, n)
	for i := range n {
		p.labels[i], p.jumps[i] = map[string]int{}, map[int]token{}
	}
	return p.startRegisters()
}

// place is where a thread runs. A CTA that names no cluster is one by itself.
func (p *parser) place(name string) (Thread, error) {
	th := Thread{Name: name, Cluster: -1}
	err := each(
		func() error { return p.want("@", " behind "+name) },
		func() error { return p.want("cta", " behind @") },
		func() (err error) { th.CTA, err = p.small("the CTA of " + name); return err },
		func() error { return p.want(",", " behind the CTA") },
		func() (err error) {
			if !p.is("cluster") {
				return nil
			}
			if th.Cluster, err = p.small("the cluster of " + name); err != nil {
				return err
			}
			return p.want(",", " behind the cluster")
		},
		func() error { return p.want("gpu", " behind the CTA") },
		func() (err error) { th.GPU, err = p.small("the GPU of " + name); return err })
	return th, err
}

// startRegisters gives threads the registers that have initial values.
func (p *parser) startRegisters() error {
	keys := make([]string, 0, len(p.inits))
	for k := range p.inits {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, key := range keys {
		thread, r, _ := strings.Cut(key, ":")
		i := slices.IndexFunc(p.test.Threads, func(t Thread) bool { return t.Name == thread })
		if i < 0 {
			return errorAt(p.starts[key], "%s has an initial value, but there is no thread %s", key, thread)
		}
		p.test.Threads[i].Init[p.register(i, r)] = p.inits[key]
	}
	return nil
}

// register is the index of a register, which is new at its first mention.
func (p *parser) register(thread int, name string) int {
	th := &p.test.Threads[thread]
	if i := slices.Index(th.Registers, name); i >= 0 {
		return i
	}
	th.Registers, th.Init = append(th.Registers, name), append(th.Init, 0)
	return len(th.Registers) - 1
}

// code is the table of instructions.
func (p *parser) code() error {
	for !p.conditionNext() {
		if p.peek().kind == end {
			return errorAt(p.peek(), "the file ends without a condition: exists, ~exists or forall")
		}
		row := p.peek()
		for i := range p.test.Threads {
			if err := p.cell(i); err != nil {
				return err
			}
			if i+1 < len(p.test.Threads) && !p.is("|") {
				if p.peek().text == ";" {
					return errorAt(row, "this row has %d columns for %d threads", i+1, len(p.test.Threads))
				}
				return errorAt(p.peek(), "%s behind an instruction: expected |", found(p.peek()))
			}
		}
		switch {
		case p.is(";"):
		case p.peek().text == "|":
			return errorAt(p.peek(), "this row has more columns than the %d threads", len(p.test.Threads))
		default:
			return errorAt(p.peek(), "%s behind an instruction: expected ;", found(p.peek()))
		}
	}
	return nil
}

var conditionWords = []string{"exists", "forall", "~", "not", "filter", "locations", "final"}

func (p *parser) conditionNext() bool { return slices.Contains(conditionWords, p.peek().text) }

// cell is a label, an instruction, both, or nothing.
func (p *parser) cell(thread int) error {
	th := &p.test.Threads[thread]
	for p.peek().kind == word && p.tokens[p.at+1].text == ":" {
		l := p.take()
		p.take()
		if _, twice := p.labels[thread][l.text]; twice {
			return errorAt(l, "the label %s is there twice in %s", l.text, th.Name)
		}
		p.labels[thread][l.text] = len(th.Code)
	}
	first := p.peek()
	if first.text == "|" || first.text == ";" {
		return nil
	}
	if len(th.Code) == maxCode {
		return errorAt(first, "%s has more than %d instructions", th.Name, maxCode)
	}
	in := Instruction{Pos: first.pos, dst: -1, loc: -1}
	if err := p.instruction(thread, &in); err != nil {
		return err
	}
	in.Text = strings.TrimSpace(p.src[first.offset:p.peek().offset])
	if n := strings.Index(in.Text, "(*"); n >= 0 {
		in.Text = strings.TrimSpace(in.Text[:n])
	}
	th.Code = append(th.Code, in)
	return nil
}

// resolve finds the labels of branches.
func (p *parser) resolve() error {
	for i := range p.test.Threads {
		code := p.test.Threads[i].Code
		for at := range code {
			t, ok := p.jumps[i][at]
			if !ok {
				continue
			}
			if code[at].target, ok = p.labels[i][t.text]; !ok {
				return errorAt(t, "%s has no label %s", p.test.Threads[i].Name, t.text)
			}
		}
	}
	return nil
}
