package ptx

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tableMark is the first line of a table of lines.
const tableMark = "// source lines: [file:]lines further down there[*instructions]\n"

// Lines is what the .loc directives of a module say, in a form that stays apart from its text: comments that [AddLines]
// understands and an assembler passes over. It tells the source line of each instruction, and neither columns nor what
// was inlined where. Distances in place of numbers keep a table as it is when its sources get a line further up. The
// table is empty for a module without .loc.
func Lines(m *Module) string {
	w := &lineWriter{at: map[int]int{}}
	for _, it := range m.Items {
		if f, ok := it.(*File); ok {
			w.printf("//%d %s\n", f.Index, path.Clean(f.Name))
		}
	}
	for f := range m.Funcs() {
		if f.Body != nil {
			w.function(f)
		}
	}
	if len(w.at) == 0 {
		return ""
	}
	return tableMark + w.String()
}

// lineWriter writes a table.
type lineWriter struct {
	strings.Builder
	at   map[int]int // the last line told, by file
	file int         // the last file told
	run  Place       // of the instructions under way
	n    int         // their number
}

func (w *lineWriter) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// function writes one line of text for each label, so that a change behind one is a change of a line.
func (w *lineWriter) function(f *Func) {
	w.printf("//%s", f.Name)
	named := f.named()
	place := Place{}
	for s := range f.stmts() {
		switch s := s.(type) {
		case *Loc:
			if s.Line > 0 { // clang gives line 0 to what it cannot place
				place = Place{File: s.File, Line: s.Line}
			}
		case *LabelDef:
			if named[s.ID] {
				w.flush()
				w.WriteString("\n//")
			}
		case *Inst:
			if place != w.run {
				w.flush()
				w.run = place
			}
			w.n++
		}
	}
	w.flush()
	w.run = Place{}
	w.WriteString("\n")
}

// flush writes the instructions under way. Those before the first .loc of a function have no place.
func (w *lineWriter) flush() {
	if w.n == 0 {
		return
	}
	w.WriteByte(' ')
	switch {
	case w.run.Line == 0:
		w.WriteByte('?')
	default:
		if w.run.File != w.file {
			w.printf("%d:", w.run.File)
			w.file = w.run.File
		}
		w.printf("%d", w.run.Line-w.at[w.file])
		w.at[w.file] = w.run.Line
	}
	if w.n > 1 {
		w.printf("*%d", w.n)
	}
	w.n = 0
}

// AddLines gives a module the .loc directives that a table of [Lines] tells, wherever it stands in text: behind the
// module's own, or in a text of its own. Without a table it does nothing. An error says that the table is of another module.
func AddLines(m *Module, text string) error {
	_, table, ok := strings.Cut(text, tableMark)
	if !ok {
		return nil
	}
	r := &lineReader{m: m, at: map[int]int{}}
	for line := range strings.Lines(table) {
		if err := r.line(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "//")); err != nil {
			return fmt.Errorf("table of source lines: %w", err)
		}
	}
	return r.end()
}

// lineReader reads a table.
type lineReader struct {
	m    *Module
	at   map[int]int
	file int
	f    *Func
	left []*Inst        // of f, whose lines are still to be read
	locs map[*Inst]*Loc // by the first instruction that each is for
}

// line reads a file, the begin of a function, or more of one.
func (r *lineReader) line(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	if text[0] != ' ' {
		if n, err := strconv.Atoi(words[0]); err == nil && len(words) == 2 {
			r.m.Items = append(r.m.Items, &File{Index: n, Name: words[1]})
			return nil
		}
		if err := r.begin(words[0]); err != nil {
			return err
		}
		words = words[1:]
	}
	for _, w := range words {
		if err := r.run(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *lineReader) begin(name string) error {
	if err := r.end(); err != nil {
		return err
	}
	f := r.m.Func(name)
	if f == nil || f.Body == nil {
		return fmt.Errorf("the module has no function %q", name)
	}
	r.f, r.left, r.locs = f, slices.Collect(f.Insts()), map[*Inst]*Loc{}
	return nil
}

// run reads a word: a place and how many instructions it is of.
func (r *lineReader) run(w string) error {
	place, count, many := strings.Cut(w, "*")
	n := 1
	var err error
	if many {
		n, err = strconv.Atoi(count)
	}
	if err != nil || n < 1 || n > len(r.left) {
		return fmt.Errorf("%q is for more instructions, or less, than the %d that are left", w, len(r.left))
	}
	first := r.left[0]
	r.left = r.left[n:]
	if place == "?" {
		return nil
	}
	if file, rest, ok := strings.Cut(place, ":"); ok {
		r.file, err = strconv.Atoi(file)
		place = rest
	}
	d, wrong := strconv.Atoi(place)
	if err != nil || wrong != nil || r.m.FileName(r.file) == "" {
		return fmt.Errorf("%q is not [file:]distance[*instructions]", w)
	}
	r.at[r.file] += d
	r.locs[first] = &Loc{Pos: first.Pos, File: r.file, Line: r.at[r.file]}
	return nil
}

// end puts the places of a function, now complete, into its body.
func (r *lineReader) end() error {
	if r.f == nil {
		return nil
	}
	if len(r.left) > 0 {
		return fmt.Errorf("the last %d instructions of %s are missing", len(r.left), r.f.Name)
	}
	r.place(r.f.Body)
	return nil
}

func (r *lineReader) place(b *Block) {
	list := make([]Stmt, 0, len(b.Stmts))
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Inst:
			if l := r.locs[s]; l != nil {
				list = append(list, l)
			}
		case *Block:
			r.place(s)
		}
		list = append(list, s)
	}
	b.Stmts = list
}
