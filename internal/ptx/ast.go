package ptx

import (
	"iter"
	"strconv"
)

// Version is a PTX ISA version such as 7.4.
type Version struct {
	Major, Minor int
}

func (v Version) String() string { return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) }

// Less reports whether v came before w.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Target is an architecture: sm_80, or sm_90a, whose suffix restricts a module to that very architecture ('a')
// or its family ('f').
type Target struct {
	SM     int
	Suffix byte // 0, 'a' or 'f'
}

func (t Target) String() string {
	s := "sm_" + strconv.Itoa(t.SM)
	if t.Suffix != 0 {
		s += string(t.Suffix)
	}
	return s
}

// Module is one PTX file.
type Module struct {
	Version     Version
	Target      Target
	Options     []string // further words of .target: "debug", "texmode_independent"
	AddressSize int      // 32 or 64; 0 where the directive is absent, which means 32
	Items       []Item   // in source order
}

// Item is what a module consists of: *Var, *Func, *File, *Section, *Alias, *Pragma.
type Item interface{ item() }

// Funcs iterates over the functions and kernels, declarations included, in source order.
func (m *Module) Funcs() iter.Seq[*Func] {
	return func(yield func(*Func) bool) {
		for _, it := range m.Items {
			if f, ok := it.(*Func); ok && !yield(f) {
				return
			}
		}
	}
}

// Func finds a function or kernel by name, its definition before a mere declaration; nil if there is none.
func (m *Module) Func(name string) *Func {
	var found *Func
	for f := range m.Funcs() {
		if f.Name == name && (found == nil || f.Body != nil) {
			found = f
		}
	}
	return found
}

// Callee is the function that a call of name reaches, that behind an alias where it has no body of its own;
// nil if there is none.
func (m *Module) Callee(name string) *Func {
	f := m.Func(name)
	if f != nil && f.Body != nil {
		return f
	}
	for _, it := range m.Items {
		if a, ok := it.(*Alias); ok && a.Name == name {
			return m.Func(a.Of)
		}
	}
	return f
}

// Vars iterates over the variables of module scope in source order.
func (m *Module) Vars() iter.Seq[*Var] {
	return func(yield func(*Var) bool) {
		for _, it := range m.Items {
			if v, ok := it.(*Var); ok && !yield(v) {
				return
			}
		}
	}
}

// FileName is the name that .file gave to an index, or "".
func (m *Module) FileName(index int) string {
	for _, it := range m.Items {
		if f, ok := it.(*File); ok && f.Index == index {
			return f.Name
		}
	}
	return ""
}

// Var is a variable or a parameter: everything declared with a state space but registers.
type Var struct {
	Pos     Pos
	Linkage Linkage
	Space   Space
	Managed bool // .attribute(.managed)
	Align   int  // as written; 0 means the natural alignment, see Alignment
	Vec     int  // 2 or 4 for .v2 and .v4, else 0
	Type    Type
	Name    string
	Dims    []int64  // nil for a scalar; Dims[0] is 0 where the size is left open: name[]
	Count   int64    // for name<N>: N variables name0 … name(N-1); 0 for one variable
	Ptr     *PtrAttr // for a kernel parameter with .ptr
	Init    *Init    // nil without an initialiser
}

// PtrAttr is what a kernel parameter says of the memory it points to.
type PtrAttr struct {
	Space Space
	Align int // 0 where absent, which means 4
}

// Elem is the size of one array element in bytes.
func (v *Var) Elem() int64 { return int64(max(v.Vec, 1) * v.Type.Size()) }

// Size is the size in bytes, 0 for an array without a size. Parse has bounded it.
func (v *Var) Size() int64 {
	n := v.Elem()
	for _, d := range v.Dims {
		n *= d
	}
	return n
}

// Alignment is the effective alignment in bytes.
func (v *Var) Alignment() int64 { return max(int64(v.Align), v.Elem()*b2i(v.Align == 0), 1) }

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Layout places variables one after the other, each on its alignment, as the parameters of a kernel are laid out.
func Layout(vars []*Var) (offsets []int64, size int64) {
	for _, v := range vars {
		a := v.Alignment()
		size = (size + a - 1) / a * a
		offsets = append(offsets, size)
		size += v.Size()
	}
	return offsets, size
}

// Init is an initialiser: a list in braces, or one value.
type Init struct {
	Pos     Pos
	List    []*Init // of a brace list
	Value   Operand // *Imm or *Sym; nil for a list
	Generic bool    // generic(sym): the generic address of a variable
	Mask    uint64  // of 0xFF00(sym): the byte of the address that is stored; 0 where absent
}

// File is the directive .file: the name behind an index of .loc.
type File struct {
	Pos   Pos
	Index int
	Name  string
	Extra []int64 // time stamp and size where given
}

// Section is a debug section, kept as text: one element per source line, comments removed. Nothing in it is resolved.
type Section struct {
	Pos   Pos
	Name  string // with its dot: ".debug_info"
	Lines []string
}

// Alias is .alias: Name is another name of the function Of.
type Alias struct {
	Pos      Pos
	Name, Of string
}

// Pragma is .pragma, of a module, a function or a place in a body.
type Pragma struct {
	Pos   Pos
	Texts []string
}

// Directive is a directive with integer arguments between the head of a function and its body, such as .reqntid 128.
type Directive struct {
	Pos  Pos
	Name string // without the dot
	Args []int64
}

// Func is a kernel (Entry) or a device function.
type Func struct {
	Pos        Pos
	Linkage    Linkage
	Entry      bool
	Name       string
	Ret        []*Var
	Params     []*Var
	Directives []Directive // .maxntid, .reqntid, .minnctapersm, .maxnreg, .noreturn, …
	Pragmas    []*Pragma   // between head and body
	Body       *Block      // nil for a declaration
	Formals    []int       // of Ret, then Params: by Reg.ID the register that one in register space is, -1 for others; nil without a body
	Regs       []RegInfo   // the registers that occur in the body, by Reg.ID
	Labels     []string    // the labels of the body, by Label.ID
}

// Directive finds a directive by name without its dot.
func (f *Func) Directive(name string) (args []int64, ok bool) {
	for _, d := range f.Directives {
		if d.Name == name {
			return d.Args, true
		}
	}
	return nil, false
}

// RegInfo describes a register of a function.
type RegInfo struct {
	Name string // as written; not unique: nested blocks may hide a name
	Type Type
	Vec  int // 2 or 4 for .v2 and .v4, else 0
}

// Stmt is a statement of a body: *Inst, *LabelDef, *Block, *RegDecl, *Var, *Loc, *Pragma, *Targets, *Prototype, *File.
type Stmt interface{ stmt() }

// Block is a list of statements in braces, with a scope of names of its own.
type Block struct {
	Pos   Pos
	Stmts []Stmt
}

// Insts iterates over the instructions of a function in source order, those of nested blocks included.
func (f *Func) Insts() iter.Seq[*Inst] {
	return func(yield func(*Inst) bool) {
		if f.Body != nil {
			f.Body.insts(yield)
		}
	}
}

func (b *Block) insts(yield func(*Inst) bool) bool {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *Inst:
			if !yield(s) {
				return false
			}
		case *Block:
			if !s.insts(yield) {
				return false
			}
		}
	}
	return true
}

// RegDecl is .reg: a type and names.
type RegDecl struct {
	Pos   Pos
	Type  Type
	Vec   int
	Names []RegName
}

// RegName is one name of a .reg directive; with Count > 0 it stands for Name0 … Name(Count-1).
type RegName struct {
	Name  string
	Count int64
}

// LabelDef marks a place in a body. ID numbers the labels of the function: nested blocks may hide names.
type LabelDef struct {
	Pos  Pos
	Name string
	ID   int
}

// Loc is .loc: the place in the kernel's own source that the following instructions came from.
type Loc struct {
	Pos             Pos
	File, Line, Col int
	Function        string // of function_name: a label in .debug_str; "" where absent
	FunctionOffset  int64
	InlinedAt       *Place // where the function was inlined; nil where absent
}

// Place is a place in a source file of .file.
type Place struct {
	File, Line, Col int
}

// Targets is .branchtargets or .calltargets; the label before it names it.
type Targets struct {
	Pos   Pos
	Calls bool // .calltargets
	Names []Operand
}

// Prototype is .callprototype; the label before it names it.
type Prototype struct {
	Pos         Pos
	Ret, Params []*Var
	Directives  []Directive // .noreturn, .abi_preserve
}

// Guard is the predicate before an instruction: @p or @!p.
type Guard struct {
	Reg *Reg
	Neg bool
}

// Inst is an instruction.
type Inst struct {
	Pos   Pos
	Guard *Guard // nil without a predicate
	Op    string // the part before the first dot: "ld"
	Mods  []string
	Args  []Operand
}

// Has reports whether the instruction has a modifier, written without its dot.
func (in *Inst) Has(mod string) bool {
	for _, m := range in.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// Types returns the modifiers that are types, in source order.
func (in *Inst) Types() []Type {
	var ts []Type
	for _, m := range in.Mods {
		if t := ParseType(m); t != NoType {
			ts = append(ts, t)
		}
	}
	return ts
}

// Type is the last type modifier, the one that most instructions are named by; NoType if there is none.
func (in *Inst) Type() Type {
	for i := len(in.Mods) - 1; i >= 0; i-- {
		if t := ParseType(in.Mods[i]); t != NoType {
			return t
		}
	}
	return NoType
}

// Space is the first state space modifier, Generic if there is none.
func (in *Inst) Space() Space {
	for _, m := range in.Mods {
		if s, ok := spaceOf(m); ok {
			return s
		}
	}
	return Generic
}

// VecLen is 2, 4 or 8 for .v2, .v4 and .v8, else 1.
func (in *Inst) VecLen() int {
	for _, m := range in.Mods {
		if len(m) == 2 && m[0] == 'v' && m[1] >= '2' && m[1] <= '8' {
			return int(m[1] - '0')
		}
	}
	return 1
}

// Name is the opcode with its modifiers as written.
func (in *Inst) Name() string { return string(in.appendName(nil)) }

func (in *Inst) appendName(b []byte) []byte {
	b = append(b, in.Op...)
	for _, m := range in.Mods {
		b = append(append(b, '.'), m...)
	}
	return b
}

// Call is the parts of a call instruction.
type Call struct {
	Ret       []Operand
	Target    Operand // *Sym of a function, or *Reg for an indirect call
	Args      []Operand
	Prototype *Label // of an indirect call: its .callprototype or .calltargets
}

// Call takes a call instruction apart; ok is false for any other.
func (in *Inst) Call() (c Call, ok bool) {
	if in.Op != "call" {
		return c, false
	}
	for _, a := range in.Args {
		switch a := a.(type) {
		case *List:
			if c.Target == nil {
				c.Ret = a.Elems
			} else {
				c.Args = a.Elems
			}
		case *Label:
			c.Prototype = a
		default:
			c.Target = a
		}
	}
	return c, c.Target != nil
}

func (*Var) item()     {}
func (*Func) item()    {}
func (*File) item()    {}
func (*Section) item() {}
func (*Alias) item()   {}
func (*Pragma) item()  {}

func (*Inst) stmt()      {}
func (*LabelDef) stmt()  {}
func (*Block) stmt()     {}
func (*RegDecl) stmt()   {}
func (*Var) stmt()       {}
func (*Loc) stmt()       {}
func (*Pragma) stmt()    {}
func (*Targets) stmt()   {}
func (*Prototype) stmt() {}
func (*File) stmt()      {}
