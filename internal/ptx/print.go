package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Print writes a module as PTX. Parsing the result gives an equal module, positions aside, and printing that gives the
// same text again.
func Print(m *Module) string {
	w := &printer{}
	w.module(m)
	return w.String()
}

func (w *printer) module(m *Module) {
	w.printf(".version %s\n.target %s", m.Version, m.Target)
	for _, o := range m.Options {
		w.printf(", %s", o)
	}
	w.WriteString("\n")
	if m.AddressSize != 0 {
		w.printf(".address_size %d\n", m.AddressSize)
	}
	for _, it := range m.Items {
		w.item(it)
	}
}

type printer struct {
	strings.Builder
	depth int
	flat  bool // no white space but where it parts words
}

func (w *printer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *printer) indent() {
	if w.flat {
		return
	}
	for range w.depth {
		w.WriteByte('\t')
	}
}

func (w *printer) item(it Item) {
	switch it := it.(type) {
	case *Var:
		w.variable(it)
		w.WriteString(";\n")
	case *Func:
		w.function(it)
	case *File:
		w.file(it)
	case *Section:
		w.printf(".section %s\n{\n", it.Name)
		for _, l := range it.Lines {
			w.printf("%s\n", l)
		}
		w.WriteString("}\n")
	case *Alias:
		w.printf(".alias %s, %s;\n", it.Name, it.Of)
	case *Pragma:
		w.pragma(it)
	}
}

func (w *printer) file(f *File) {
	w.printf(".file %d \"%s\"", f.Index, f.Name)
	for _, n := range f.Extra {
		w.printf(", %d", n)
	}
	w.WriteString("\n")
}

func (w *printer) pragma(g *Pragma) {
	w.WriteString(".pragma ")
	for i, t := range g.Texts {
		if i > 0 {
			w.WriteString(", ")
		}
		w.printf("\"%s\"", t) // strings of PTX have no escapes
	}
	w.WriteString(";\n")
}

func (w *printer) dot(s string) {
	if s != "" {
		w.printf(".%s ", s)
	}
}

// variable prints a declaration without its semicolon.
func (w *printer) variable(v *Var) {
	w.dot(v.Linkage.String())
	w.dot(v.Space.String())
	if v.Managed {
		w.WriteString(".attribute(.managed) ")
	}
	if v.Align != 0 {
		w.printf(".align %d ", v.Align)
	}
	if v.Vec != 0 {
		w.printf(".v%d ", v.Vec)
	}
	w.dot(v.Type.String())
	if v.Ptr != nil {
		w.WriteString(".ptr ")
		w.dot(v.Ptr.Space.String())
		if v.Ptr.Align != 0 {
			w.printf(".align %d ", v.Ptr.Align)
		}
	}
	w.WriteString(v.Name)
	if v.Count != 0 {
		w.printf("<%d>", v.Count)
	}
	for _, d := range v.Dims {
		w.dim(d)
	}
	if v.Init != nil {
		w.WriteString(" = ")
		w.init(v.Init)
	}
}

func (w *printer) dim(d int64) {
	if d == 0 {
		w.WriteString("[]")
		return
	}
	w.printf("[%d]", d)
}

func (w *printer) init(in *Init) {
	if in.Value == nil {
		w.WriteByte('{')
		for i, e := range in.List {
			if i > 0 {
				w.WriteString(", ")
			}
			w.init(e)
		}
		w.WriteByte('}')
		return
	}
	closing := ""
	if in.Mask != 0 {
		w.printf("0x%X(", in.Mask)
		closing = ")"
	}
	if s, ok := in.Value.(*Sym); ok && in.Generic {
		w.printf("generic(%s)", s.Name)
		w.offset(s.Off)
	} else {
		w.operand(in.Value)
	}
	w.WriteString(closing)
}

func (w *printer) function(f *Func) {
	w.dot(f.Linkage.String())
	if f.Entry {
		w.WriteString(".entry ")
	} else {
		w.WriteString(".func ")
	}
	if f.Ret != nil {
		w.params(f.Ret)
		w.WriteByte(' ')
	}
	w.WriteString(f.Name)
	w.params(f.Params)
	w.WriteByte('\n')
	for _, d := range f.Directives {
		w.directive(d)
		w.WriteByte('\n')
	}
	for _, g := range f.Pragmas {
		w.pragma(g)
	}
	if f.Body == nil {
		w.WriteString(";\n")
		return
	}
	w.block(f.Body)
}

func (w *printer) params(vars []*Var) {
	w.WriteByte('(')
	for i, v := range vars {
		if i > 0 {
			w.WriteString(", ")
		}
		w.variable(v)
	}
	w.WriteByte(')')
}

func (w *printer) directive(d Directive) {
	w.printf(".%s", d.Name)
	for i, n := range d.Args {
		if i > 0 {
			w.WriteByte(',')
		}
		w.printf(" %d", n)
	}
}

func (w *printer) block(b *Block) {
	w.indent()
	w.WriteString("{\n")
	w.depth++
	for _, s := range b.Stmts {
		w.stmt(s)
	}
	w.depth--
	w.indent()
	w.WriteString("}\n")
}

func (w *printer) stmt(s Stmt) {
	if b, ok := s.(*Block); ok {
		w.block(b)
		return
	}
	if l, ok := s.(*LabelDef); ok {
		w.printf("%s:\n", l.Name)
		return
	}
	w.indent()
	switch s := s.(type) {
	case *Inst:
		w.inst(s)
	case *RegDecl:
		w.regDecl(s)
	case *Var:
		w.variable(s)
		w.WriteString(";\n")
	case *Loc:
		w.loc(s)
	case *Pragma:
		w.pragma(s)
	case *File:
		w.file(s)
	case *Targets:
		w.targets(s)
	case *Prototype:
		w.prototype(s)
	}
}

func (w *printer) regDecl(d *RegDecl) {
	w.WriteString(".reg ")
	if d.Vec != 0 {
		w.printf(".v%d ", d.Vec)
	}
	w.printf(".%s ", d.Type)
	for i, n := range d.Names {
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(n.Name)
		if n.Count != 0 {
			w.printf("<%d>", n.Count)
		}
	}
	w.WriteString(";\n")
}

func (w *printer) loc(l *Loc) {
	w.printf(".loc %d %d %d", l.File, l.Line, l.Col)
	if at := l.InlinedAt; at != nil {
		w.printf(", function_name %s", l.Function)
		w.offset(l.FunctionOffset)
		w.printf(", inlined_at %d %d %d", at.File, at.Line, at.Col)
	}
	w.WriteByte('\n')
}

func (w *printer) targets(t *Targets) {
	if t.Calls {
		w.WriteString(".calltargets ")
	} else {
		w.WriteString(".branchtargets ")
	}
	w.operands(t.Names)
	w.WriteString(";\n")
}

func (w *printer) prototype(c *Prototype) {
	w.WriteString(".callprototype ")
	if c.Ret != nil {
		w.params(c.Ret)
		w.WriteByte(' ')
	}
	w.WriteString("_ ")
	w.params(c.Params)
	for _, d := range c.Directives {
		w.WriteByte(' ')
		w.directive(d)
	}
	w.WriteString(";\n")
}

// String is the instruction as PTX text, without a semicolon.
func (in *Inst) String() string {
	w := &printer{}
	w.inst(in)
	return strings.TrimSuffix(w.String(), ";\n")
}

func (w *printer) inst(in *Inst) {
	if g := in.Guard; g != nil {
		w.WriteByte('@')
		if g.Neg {
			w.WriteByte('!')
		}
		w.operand(g.Reg)
		w.WriteByte(' ')
	}
	w.WriteString(in.Name())
	if len(in.Args) > 0 {
		w.WriteByte(' ')
		w.operands(in.Args)
	}
	w.WriteString(";\n")
}

// comma parts the operands of an instruction.
func (w *printer) comma() {
	w.WriteByte(',')
	if !w.flat {
		w.WriteByte(' ')
	}
}

func (w *printer) operands(list []Operand) {
	for i, o := range list {
		if i > 0 {
			w.comma()
		}
		w.operand(o)
	}
}

func (w *printer) operand(o Operand) {
	switch o := o.(type) {
	case *Reg:
		w.WriteString(o.Name)
		if o.Sel != "" {
			w.printf(".%s", o.Sel)
		}
	case *Special:
		w.printf("%%%s", o.Name)
	case *Imm:
		w.imm(o)
	case *Sym:
		w.WriteString(o.Name)
		w.offset(o.Off)
	case *Label:
		w.WriteString(o.Name)
	case *Addr:
		w.addr(o)
	case *Vec:
		w.list("{", o.Elems, "}")
	case *List:
		w.list("(", o.Elems, ")")
	case *Pair:
		w.operand(o.A)
		w.WriteByte('|')
		w.operand(o.B)
	case *Not:
		w.WriteByte('!')
		w.operand(o.X)
	case *Neg:
		w.WriteByte('-')
		w.operand(o.X)
	case *Sink:
		w.WriteByte('_')
	}
}

func (w *printer) list(open string, elems []Operand, closing string) {
	w.WriteString(open)
	w.operands(elems)
	w.WriteString(closing)
}

func (w *printer) addr(a *Addr) {
	w.WriteByte('[')
	w.operand(a.Base)
	w.offset(a.Off)
	if len(a.Rest) > 0 {
		w.comma()
		w.operands(a.Rest)
	}
	w.WriteByte(']')
}

// offset prints +n or +-n, nothing for 0.
func (w *printer) offset(n int64) {
	if n != 0 {
		w.printf("+%d", n)
	}
}

func (w *printer) imm(i *Imm) {
	switch i.Kind {
	case ImmInt:
		w.WriteString(signed(int64(i.Bits)))
	case ImmUint:
		w.printf("%dU", i.Bits)
	case ImmF32:
		w.printf("0f%08X", i.Bits)
	case ImmF64:
		w.printf("0d%016X", i.Bits)
	}
}

// signed writes an integer that reads as signed: the literal of the smallest one would be unsigned.
func signed(n int64) string {
	if n == math.MinInt64 {
		return "(-9223372036854775807-1)"
	}
	return strconv.FormatInt(n, 10)
}
