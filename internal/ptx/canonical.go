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
//   - Registers have the letter of their type and a number. Values that stay between one label and the next are in small
//     ones (r3), each in the first that is free; the other registers are large (R3).
//   - A prefix that the module's own names begin with has an underscore behind it.
//   - .loc, .file and debug sections go; [Lines] has what they say.
//
// Instructions, their order and their other operands stay; so do the names that others may ask for, those of kernels,
// functions and variables of the module. m is changed, and of no further use.
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
	values *values
	regs   []string // the names of registers that are no value's, by ID
}

func (c *canon) run() {
	f := c.f
	f.plainJumps()
	c.values, c.regs = f.values(), make([]string, len(f.Regs))
	for i, v := range slices.Concat(f.Ret, f.Params) {
		if i < len(f.Formals) && f.Formals[i] >= 0 { // a parameter in a register
			v.Name = fmt.Sprint(fresh("a", c.taken), i)
			c.regs[f.Formals[i]] = v.Name
		}
	}
	f.Body.Stmts = plain(f.Body.Stmts, f.named())
	c.nameLabels()
	decls := slices.Concat(c.nameRegs(), c.nameValues())
	slices.SortFunc(decls, func(a, b Stmt) int { return strings.Compare(a.(*RegDecl).Names[0].Name, b.(*RegDecl).Names[0].Name) })
	f.Body.Stmts = append(decls, f.Body.Stmts...)
}

// nameLabels numbers the labels that are left.
func (c *canon) nameLabels() {
	names, prefix, n := map[int]string{}, fresh("L", c.taken), 0
	for s := range c.f.stmts() {
		if l, ok := s.(*LabelDef); ok {
			n++
			l.Name = fmt.Sprint(prefix, n)
			names[l.ID] = l.Name
		}
	}
	for o := range c.f.operands() {
		if l, ok := o.(*Label); ok {
			l.Name = names[l.ID]
		}
	}
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

// declaration declares registers of a class under a prefix.
func (c *canon) declaration(k regClass, prefix string) *RegDecl {
	return &RegDecl{Type: k.typ, Vec: k.vec, Names: []RegName{{Name: fresh(prefix, c.taken)}}}
}

// nameRegs names the registers that are no value's, in the order in which they occur, and returns their declarations.
func (c *canon) nameRegs() (decls []Stmt) {
	classes := map[regClass]*RegName{}
	for o := range c.f.operands() {
		r, ok := o.(*Reg)
		if !ok || c.values.has(r) {
			continue
		}
		if c.regs[r.ID] == "" {
			k := c.class(r)
			if classes[k] == nil {
				d := c.declaration(k, strings.ToUpper(k.prefix()))
				classes[k] = &d.Names[0]
				decls = append(decls, d)
			}
			c.regs[r.ID] = fmt.Sprint(classes[k].Name, classes[k].Count)
			classes[k].Count++
		}
		r.Name = c.regs[r.ID]
	}
	return decls
}

func (c *canon) class(r *Reg) regClass {
	info := c.f.Regs[r.ID]
	return regClass{info.Type, info.Vec}
}

// nameValues puts each value into the first register of its class that is free, and returns their declarations.
func (c *canon) nameValues() (decls []Stmt) {
	pools := map[regClass]*pool{}
	in := map[int]int{} // the number of the register that a value is in
	for inst := range c.f.Insts() {
		for r := range c.values.of(inst) {
			k, v := c.class(r), c.values.number[r]
			p := pools[k]
			if p == nil {
				p = &pool{decl: c.declaration(k, k.prefix())}
				pools[k] = p
				decls = append(decls, p.decl)
			}
			if _, ok := in[v]; !ok {
				in[v] = p.take()
			}
			r.Name = fmt.Sprint(p.decl.Names[0].Name, in[v])
		}
		for r := range c.values.of(inst) {
			if v := c.values.number[r]; c.values.last[v] == inst {
				pools[c.class(r)].taken[in[v]] = false
			}
		}
	}
	return decls
}

// pool is registers of a class that values share.
type pool struct {
	decl  *RegDecl
	taken []bool
}

// take finds the first that is free, or one more.
func (p *pool) take() int {
	i := slices.Index(p.taken, false)
	if i < 0 {
		i = len(p.taken)
		p.taken = append(p.taken, false)
		p.decl.Names[0].Count++
	}
	p.taken[i] = true
	return i
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
