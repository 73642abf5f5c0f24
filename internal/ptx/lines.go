package ptx

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/slab"
)

// tableMark is the first line of a table of lines.
const tableMark = "// source lines\n"

// Lines is what the .loc directives of a module say, in a form that stays apart from its text: comments that [AddLines]
// understands and an assembler passes over. It tells the source line of each instruction, and neither columns nor what
// was inlined where. The table is empty for a module without .loc.
//
// It has the files, with their numbers, and a line for each function: its name, and its runs of instructions that share a
// line.
//
//	//1 src/a.cu
//	//2 src/b.cuh
//	//k  1:10*3 2:7 -4b2.5
//
// A run whose line the table has not had yet is a space, the file where it is another than the last that was named, and how
// much further down the line lies than the last that was told of the file: distances keep a table as it is when its sources
// get a line further up. A line that it has had is letters: a for that of the last run, b for the one before it among those
// that differ, and so on. A question mark is for no line. Behind each is the number of instructions if there are several,
// behind a distance after a star. A point stands for the run that came last behind a run like the last one, .5 for five times that.
func Lines(m *Module) string {
	w := &lineWriter{lineTable: newLineTable()}
	for _, it := range m.Items {
		if f, ok := it.(*File); ok {
			fmt.Fprintf(w, "//%d %s\n", f.Index, path.Clean(f.Name))
		}
	}
	for f := range m.Funcs() {
		if f.Body != nil {
			w.function(m, f)
		}
	}
	if len(w.recent) == 0 {
		return ""
	}
	return tableMark + w.String()
}

// lineRun is instructions one after the other that share a line.
type lineRun struct {
	Place     // the zero Place for those without
	n     int // of instructions
}

// lineTable is what writer and reader of a table know of what they have passed.
type lineTable struct {
	at     map[int]int // the last line told as a distance, by file
	file   int         // of the last
	recent []Place     // those passed, the last first
	last   lineRun     // of the function
	behind map[lineRun]lineRun
}

func newLineTable() lineTable {
	return lineTable{at: map[int]int{}, behind: map[lineRun]lineRun{}}
}

// pass remembers a run.
func (t *lineTable) pass(r lineRun) {
	t.behind[t.last] = r
	t.last = r
	if r.Line == 0 {
		return
	}
	i := slices.Index(t.recent, r.Place)
	if i < 0 {
		i = len(t.recent)
		t.recent = append(t.recent, r.Place)
	}
	copy(t.recent[1:i+1], t.recent[:i])
	t.recent[0] = r.Place
}

// place is that of a .loc. Not all have one: clang gives line 0 to what it cannot place.
func (m *Module) place(l *Loc) (Place, bool) {
	return Place{File: l.File, Line: l.Line}, l.Line > 0 && m.FileName(l.File) != ""
}

// lineWriter writes a table.
type lineWriter struct {
	strings.Builder
	lineTable
	expected int // runs that a point stands for, not yet written
}

func (w *lineWriter) function(m *Module, f *Func) {
	fmt.Fprintf(w, "//%s ", f.Name)
	w.last = lineRun{}
	for _, r := range m.runs(f) {
		w.run(r)
	}
	w.flush()
	w.WriteByte('\n')
}

// runs are the instructions of a function by line, one after the other; a .loc that no instruction follows parts none.
func (m *Module) runs(f *Func) (list []lineRun) {
	var at Place
	for s := range f.stmts() {
		switch s := s.(type) {
		case *Loc:
			if p, ok := m.place(s); ok {
				at = p
			}
		case *Inst:
			if n := len(list); n > 0 && list[n-1].Place == at {
				list[n-1].n++
			} else {
				list = append(list, lineRun{at, 1})
			}
		}
	}
	return list
}

func (w *lineWriter) run(r lineRun) {
	if w.behind[w.last] == r {
		w.expected++
	} else {
		w.flush()
		w.place(r.Place, r.n)
		w.count(r.n)
	}
	w.pass(r)
}

// flush writes the runs that a point stands for.
func (w *lineWriter) flush() {
	if w.expected > 0 {
		w.WriteByte('.')
		w.count(w.expected)
		w.expected = 0
	}
}

func (w *lineWriter) count(n int) {
	if n > 1 {
		w.WriteString(strconv.Itoa(n))
	}
}

func (w *lineWriter) place(p Place, n int) {
	i := slices.Index(w.recent, p)
	switch {
	case p.Line == 0:
		w.WriteByte('?')
	case i >= 0:
		w.WriteString(letters26(i))
	default:
		w.WriteByte(' ')
		if p.File != w.file {
			fmt.Fprintf(w, "%d:", p.File)
			w.file = p.File
		}
		w.WriteString(strconv.Itoa(p.Line - w.at[p.File]))
		w.at[p.File] = p.Line
		if n > 1 {
			w.WriteByte('*')
		}
	}
}

// letters26 counts a, b, …, z, Aa, Ab, …, Zz, AAa, ….
func letters26(i int) string {
	s := string(rune('a' + i%26))
	for i /= 26; i > 0; i = (i - 1) / 26 {
		s = string(rune('A'+(i-1)%26)) + s
	}
	return s
}

// AddLines gives a module the .loc directives that a table of [Lines] tells, wherever it stands in text: behind the
// module's own, or in a text of its own. Without a table it does nothing. An error says that the table is of another module.
func AddLines(m *Module, text string) error {
	_, table, ok := strings.Cut(text, tableMark)
	if !ok {
		return nil
	}
	r := &lineReader{lineTable: newLineTable(), m: m}
	for line := range strings.Lines(table) {
		r.text = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "//")
		if err := r.line(); err != nil {
			return fmt.Errorf("table of source lines: %w", err)
		}
	}
	return nil
}

// lineReader reads a table.
type lineReader struct {
	lineTable
	m    *Module
	text string         // of the line, as far as it is still to be read
	left []*Inst        // of the function, whose lines are still to be read
	locs map[*Inst]*Loc // by the first instruction that each is for
	made slab.Slab[Loc]
}

// line reads a file, or a function.
func (r *lineReader) line() error {
	if n, name, ok := strings.Cut(r.text, " "); ok {
		if index, err := strconv.Atoi(n); err == nil {
			r.m.Items = append(r.m.Items, &File{Index: index, Name: name})
			return nil
		}
	}
	name, runs, _ := strings.Cut(r.text, " ")
	r.text = runs
	f := r.m.Func(name)
	if f == nil || f.Body == nil {
		return fmt.Errorf("the module has no function %q", name)
	}
	return r.function(f)
}

func (r *lineReader) function(f *Func) error {
	r.left, r.locs, r.last = slices.Collect(f.Insts()), map[*Inst]*Loc{}, lineRun{}
	for r.text != "" {
		if err := r.word(); err != nil {
			return fmt.Errorf("%w, %d bytes before the end of %s", err, len(r.text), f.Name)
		}
	}
	if len(r.left) > 0 {
		return fmt.Errorf("the last %d instructions of %s are missing", len(r.left), f.Name)
	}
	r.place(f.Body)
	return nil
}

// word reads a run, or a point.
func (r *lineReader) word() error {
	expected := r.cut(".")
	var p Place
	var err error
	if !expected {
		p, err = r.told()
	}
	n, wrong := r.number(1)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	if !expected {
		return r.run(lineRun{p, n})
	}
	for range n {
		if err := r.run(r.behind[r.last]); err != nil {
			return err
		}
	}
	return nil
}

// cut takes a prefix off the text, if it is there.
func (r *lineReader) cut(prefix string) (ok bool) {
	r.text, ok = strings.CutPrefix(r.text, prefix)
	return ok
}

// number takes a number off the text, or is without.
func (r *lineReader) number(without int) (int, error) {
	i := 0
	for i < len(r.text) && (r.text[i] >= '0' && r.text[i] <= '9' || i == 0 && r.text[i] == '-') {
		i++
	}
	if i == 0 {
		return without, nil
	}
	n, err := strconv.Atoi(r.text[:i])
	r.text = r.text[i:]
	return n, err
}

// told reads a place.
func (r *lineReader) told() (p Place, err error) {
	switch {
	case r.cut("?"):
		return Place{}, nil
	case r.cut(" "):
		return r.distance()
	}
	i := 0
	for r.text != "" && r.text[0] >= 'A' && r.text[0] <= 'Z' && i < len(r.recent) {
		i = i*26 + int(r.text[0]-'A') + 1
		r.text = r.text[1:]
	}
	if r.text == "" || r.text[0] < 'a' || r.text[0] > 'z' {
		return p, errors.New("neither a place nor a letter")
	}
	if i = i*26 + int(r.text[0]-'a'); i >= len(r.recent) {
		return p, fmt.Errorf("%d places are told, and not %d", len(r.recent), i+1)
	}
	r.text = r.text[1:]
	return r.recent[i], nil
}

// distance reads [file:]distance, with the star if there is one.
func (r *lineReader) distance() (p Place, err error) {
	d, err := r.number(0)
	if r.cut(":") && err == nil {
		r.file = d
		d, err = r.number(0)
	}
	r.cut("*")
	r.at[r.file] += d
	if err != nil || r.at[r.file] < 1 || r.m.FileName(r.file) == "" {
		return p, errors.New("no [file:]distance")
	}
	return Place{File: r.file, Line: r.at[r.file]}, nil
}

// run gives instructions their place.
func (r *lineReader) run(run lineRun) error {
	if run.n < 1 || run.n > len(r.left) {
		return fmt.Errorf("a line for %d of the %d instructions that are left", run.n, len(r.left))
	}
	if run.Line != 0 {
		loc := r.made.New()
		*loc = Loc{Pos: r.left[0].Pos, File: run.File, Line: run.Line}
		r.locs[r.left[0]] = loc
	}
	r.left = r.left[run.n:]
	r.pass(run)
	return nil
}

// place puts the places of a function into its body.
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
