package ptx

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Canonical is a module in the form that is kept: what a compiler numbers as it goes is numbered anew, kernel by kernel and
// block by block, so that a change in one place changes the text there; and debug information is left out.
//
//   - Labels are L1, L2, … of their function, and only those that something names.
//   - Parameters of a kernel are a0, a1, ….
//   - Registers have the letter of their type and a number. Those that occur behind one label only, before the next, are
//     declared there in a block of their own and small (r3); the others, and the few of a short block, in front and
//     large (R3).
//   - A prefix that the module's own names begin with has an underscore behind it.
//   - .loc, .file and debug sections go; [Lines] has what they say.
//
// Instructions, their order and their other operands stay; so do the names that others may ask for, those of kernels,
// functions and variables of the module. m is changed: it is what the text says, with positions of the old one.
func Canonical(m *Module) string {
	m.Items = slices.DeleteFunc(m.Items, func(it Item) bool {
		switch it.(type) {
		case *File, *Section:
			return true
		}
		return false
	})
	taken := m.names()
	for f := range m.Funcs() {
		if f.Entry {
			f.nameParams(fresh("a", taken))
		}
		if f.Body != nil {
			(&canon{f: f, taken: taken}).run()
		}
	}
	w := &printer{flat: true}
	w.module(m)
	return w.String()
}

// names are those of all variables and functions.
func (m *Module) names() map[string]bool {
	taken := map[string]bool{}
	for v := range m.Vars() {
		taken[v.Name] = true
	}
	for f := range m.Funcs() {
		taken[f.Name] = true
		for s := range f.stmts() {
			if v, ok := s.(*Var); ok {
				taken[v.Name] = true
			}
		}
	}
	return taken
}

// fresh is a prefix that with a number behind it is nobody's name.
func fresh(prefix string, taken map[string]bool) string {
	for name := range taken {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.Trim(rest, "0123456789") == "" {
			return fresh(prefix+"_", taken)
		}
	}
	return prefix
}

// nameParams renames the parameters of a kernel. What refers to one has its Var.
func (f *Func) nameParams(prefix string) {
	for i, v := range f.Params {
		v.Name = fmt.Sprint(prefix, i)
	}
	for o := range f.operands() {
		if s, ok := o.(*Sym); ok && s.Var != nil && slices.Contains(f.Params, s.Var) {
			s.Name = s.Var.Name
		}
	}
}

// canon is a function under way.
type canon struct {
	f      *Func
	taken  map[string]bool // the module's names
	labels []string
	regs   []string
}

func (c *canon) run() {
	f := c.f
	f.plainJumps()
	c.labels, c.regs = make([]string, len(f.Labels)), make([]string, len(f.Regs))
	for i, v := range slices.Concat(f.Ret, f.Params) {
		if i < len(f.Formals) && f.Formals[i] >= 0 { // a parameter in a register
			v.Name = fmt.Sprint(fresh("a", c.taken), i)
			c.regs[f.Formals[i]] = v.Name
		}
	}
	f.Body.Stmts = plain(f.Body.Stmts, f.named())
	n, label := 0, fresh("L", c.taken)
	for s := range f.stmts() {
		if l, ok := s.(*LabelDef); ok {
			n++
			c.labels[l.ID] = fmt.Sprint(label, n)
			l.Name = c.labels[l.ID]
		}
	}
	f.Body.Stmts = c.declare(f.Body.Stmts)
	c.rename()
}

// plainJumps leaves .uni out of jumps that have no condition: whoever comes to one takes it.
func (f *Func) plainJumps() {
	for in := range f.Insts() {
		if in.Op == "bra" && in.Guard == nil {
			in.Mods = slices.DeleteFunc(in.Mods, func(m string) bool { return m == "uni" })
		}
	}
}

// named are the labels, by ID, that an operand names.
func (f *Func) named() map[int]bool {
	named := map[int]bool{}
	for o := range f.operands() {
		if l, ok := o.(*Label); ok {
			named[l.ID] = true
		}
	}
	return named
}

// plain leaves out debug information, declarations of registers, labels that nobody names, and braces around nothing
// that would need them: a register lives in the whole function, whichever block declared it.
func plain(list []Stmt, named map[int]bool) (kept []Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *Loc, *File, *RegDecl:
			continue
		case *LabelDef:
			if !named[s.ID] {
				continue
			}
		case *Block:
			s.Stmts = plain(s.Stmts, named)
			if !slices.ContainsFunc(s.Stmts, isVar) {
				kept = append(kept, s.Stmts...)
				continue
			}
		}
		kept = append(kept, s)
	}
	return kept
}

func isVar(s Stmt) bool { _, ok := s.(*Var); return ok }

// regClass is what one declaration declares.
type regClass struct {
	typ Type
	vec int
}

// letters are the usual ones; other types go by their names.
var letters = map[Type]string{Pred: "p", B16: "h", B32: "r", B64: "d", F32: "f", F64: "g"}

func (k regClass) prefix() string {
	s, ok := letters[k.typ]
	if !ok || k.vec != 0 {
		s = k.typ.String() + "_"
	}
	if k.vec != 0 {
		s += fmt.Sprintf("v%d_", k.vec)
	}
	return s
}

// declare names the registers. Those that occur in one section only, from a label to the next, are declared in a block of
// that section; the others in front of all.
func (c *canon) declare(list []Stmt) []Stmt {
	sections := split(list)
	in := c.places(sections)
	c.merge(in, len(sections))
	out := c.name(list, strings.ToUpper, func(id int) bool { return in[id] == several })
	for i, section := range sections {
		decls := c.name(section, strings.ToLower, func(id int) bool { return in[id] == i })
		if i == 0 {
			out = append(append(out, decls...), section...)
			continue
		}
		out = append(out, section[0]) // the label
		if section = section[1:]; len(decls) > 0 {
			section = []Stmt{&Block{Stmts: append(decls, section...)}}
		}
		out = append(out, section...)
	}
	return out
}

// few registers of a section are not worth a block: its braces and declarations are longer than their longer names.
const few = 2

// merge gives the registers of sections that have few to the function.
func (c *canon) merge(in []int, sections int) {
	n := make([]int, sections)
	for id, i := range in {
		if i > 0 && c.regs[id] == "" {
			n[i]++
		}
	}
	for id, i := range in {
		if i > 0 && n[i] <= few {
			in[id] = several
		}
	}
}

// several is the place of a register that occurs in more than one section.
const several = -1

// places finds the section of each register.
func (c *canon) places(sections [][]Stmt) []int {
	in := make([]int, len(c.f.Regs))
	seen := make([]bool, len(c.f.Regs))
	for i, list := range sections {
		for o := range (&Block{Stmts: list}).operands() {
			switch r, ok := o.(*Reg); {
			case !ok:
			case !seen[r.ID]:
				in[r.ID], seen[r.ID] = i, true
			case in[r.ID] != i:
				in[r.ID] = several
			}
		}
	}
	return in
}

// split cuts a list before each label, but not before one that stands before the table that it names.
func split(list []Stmt) (sections [][]Stmt) {
	begin := 0
	for i, s := range list {
		if _, ok := s.(*LabelDef); ok && !(i+1 < len(list) && isTable(list[i+1])) {
			sections = append(sections, list[begin:i])
			begin = i
		}
	}
	return append(sections, list[begin:])
}

func isTable(s Stmt) bool {
	switch s.(type) {
	case *Targets, *Prototype:
		return true
	}
	return false
}

// name names the registers of a list that wanted holds for and returns their declarations.
func (c *canon) name(list []Stmt, letter func(string) string, wanted func(id int) bool) (decls []Stmt) {
	var classes []*RegDecl
	b := Block{Stmts: list}
	for o := range b.operands() {
		r, ok := o.(*Reg)
		if !ok || c.regs[r.ID] != "" || !wanted(r.ID) {
			continue
		}
		info := c.f.Regs[r.ID]
		k := regClass{info.Type, info.Vec}
		i := slices.IndexFunc(classes, func(d *RegDecl) bool { return regClass{d.Type, d.Vec} == k })
		if i < 0 {
			i = len(classes)
			classes = append(classes, &RegDecl{Type: k.typ, Vec: k.vec, Names: []RegName{{Name: fresh(letter(k.prefix()), c.taken)}}})
		}
		n := &classes[i].Names[0]
		c.regs[r.ID] = fmt.Sprint(n.Name, n.Count)
		n.Count++
	}
	slices.SortFunc(classes, func(a, b *RegDecl) int { return strings.Compare(a.Names[0].Name, b.Names[0].Name) })
	for _, d := range classes {
		decls = append(decls, d)
	}
	return decls
}

// rename gives registers and labels their new names, wherever they stand.
func (c *canon) rename() {
	for o := range c.f.operands() {
		switch o := o.(type) {
		case *Reg:
			o.Name = c.regs[o.ID]
		case *Label:
			o.Name = c.labels[o.ID]
		}
	}
	for id, name := range c.regs {
		c.f.Regs[id].Name = name
	}
	copy(c.f.Labels, c.labels)
}

// stmts are all statements of a function, those of inner blocks behind their block.
func (f *Func) stmts() iter.Seq[Stmt] {
	return func(yield func(Stmt) bool) {
		if f.Body != nil {
			f.Body.each(yield)
		}
	}
}

func (b *Block) stmts() iter.Seq[Stmt] { return func(yield func(Stmt) bool) { b.each(yield) } }

func (b *Block) each(yield func(Stmt) bool) bool {
	for _, s := range b.Stmts {
		if !yield(s) {
			return false
		}
		if inner, ok := s.(*Block); ok && !inner.each(yield) {
			return false
		}
	}
	return true
}

// operands are those of all statements of a function, with the parts of each.
func (f *Func) operands() iter.Seq[Operand] {
	return func(yield func(Operand) bool) {
		if f.Body != nil {
			f.Body.operands()(yield)
		}
	}
}

func (b *Block) operands() iter.Seq[Operand] {
	return func(yield func(Operand) bool) {
		for s := range b.stmts() {
			for o := range operands(s) {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// operands are those of a statement in the order of the text, with the parts of each behind it.
func operands(s Stmt) iter.Seq[Operand] {
	return func(yield func(Operand) bool) {
		switch s := s.(type) {
		case *Inst:
			if s.Guard != nil && !yield(s.Guard.Reg) {
				return
			}
			each(s.Args, yield)
		case *Targets:
			each(s.Names, yield)
		}
	}
}

func each(list []Operand, yield func(Operand) bool) bool {
	for _, o := range list {
		if !yield(o) || !each(parts(o), yield) {
			return false
		}
	}
	return true
}

// parts are the operands that one is made of.
func parts(o Operand) []Operand {
	switch o := o.(type) {
	case *Addr:
		return append([]Operand{o.Base}, o.Rest...)
	case *Vec:
		return o.Elems
	case *List:
		return o.Elems
	case *Pair:
		return []Operand{o.A, o.B}
	case *Not:
		return []Operand{o.X}
	case *Neg:
		return []Operand{o.X}
	}
	return nil
}
