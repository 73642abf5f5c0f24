// Package flow makes of a function one list of instructions with its calls inlined, and finds its basic blocks, where lanes
// that part meet again, which registers are alive where, and which may share a slot.
package flow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Flat is a function with all its calls inlined: one list of instructions over one set of registers. PTX forbids what
// would not fit (recursion needs an explicit stack, calls through registers a prototype); both are refused.
type Flat struct {
	Prog    *Module
	Fn      *ptx.Func
	Code    []Inst
	labels  []int // label -> index into code
	Regs    []ptx.RegInfo
	Locals  int64 // bytes of local memory of a thread
	Stack   int64 // where in it alloca begins
	Shared  int64 // bytes of static shared memory of a block
	dynamic int64 // alignment that dynamic shared memory asks for
	vars    map[*ptx.Var]Home
	Params  int64
	active  []*ptx.Func // being inlined
	loc     *ptx.Loc
	bytes   uint32 // of the pragma used_bytes_mask, for the next load; 0 without

	guard      bool
	lastShared *ptx.Var // placed last, and where it ends
	endShared  int64
	lastLocal  *ptx.Var   // the array of local memory that was placed last; nil where something else was
	Shift      int64      // bytes of gaps before the end of shared memory, which Shared does not count
	SharedGaps []simt.Gap // that nothing may access
	LocalGaps  []simt.Gap
}

// Inst is an instruction in its place.
type Inst struct {
	*ptx.Inst
	Frame   *frame
	Loc     *ptx.Loc
	target  int   // label of bra
	targets []int // labels of brx.idx
	Used    uint32
	Passed  []Home // of a call to a function that the simulator provides
}

// frame is one inlined copy of a function.
type frame struct {
	Reg, label int // what to add to the numbers of registers and labels
	vars       map[*ptx.Var]Home
	tables     map[int]*ptx.Targets
	End        int // label behind the copy; -1 in the kernel itself
	Stack      []Call
}

// Call is a function that an instruction is in: the kernel, or one that was inlined.
type Call struct {
	Func *ptx.Func
	Line int // of the call; 0 for the kernel
	Reg  int // number of its first register
}

// Home is where a variable lives.
type Home struct {
	Space   ptx.Space
	Off     int64 // an address in global and const, an offset elsewhere
	Dynamic bool  // behind the static shared memory
}

const maxInlined = 1 << 20 // instructions

// Module is a module of PTX whose functions are flattened.
type Module struct {
	Ptx     *ptx.Module
	Globals map[*ptx.Var]Home
	declare func(v *ptx.Var) error // gives memory, and its place in globals, to a variable that a body declares
	sizes   map[*ptx.Func]int      // see inlinedSize
}

// NewModule is for functions of m, whose variables declare places.
func NewModule(m *ptx.Module, declare func(v *ptx.Var) error) *Module {
	return &Module{Ptx: m, Globals: map[*ptx.Var]Home{}, declare: declare, sizes: map[*ptx.Func]int{}}
}

// inlinedSize is how many instructions a function has with its calls inlined, counted up to a little above maxInlined. A
// function that calls itself is refused elsewhere.
func (s *Module) inlinedSize(fn *ptx.Func) int {
	if n, ok := s.sizes[fn]; ok {
		return n
	}
	s.sizes[fn] = 0
	n := 0
	for in := range fn.Insts() {
		n++
		if c, ok := in.Call(); ok {
			if sym, ok := c.Target.(*ptx.Sym); ok {
				if to := s.Ptx.Callee(sym.Name); to != nil && to.Body != nil {
					n += s.inlinedSize(to)
				}
			}
		}
		n = min(n, maxInlined+1)
	}
	s.sizes[fn] = n
	return n
}

// CheckSize refuses what inlining would make too large.
func (s *Module) CheckSize(fn *ptx.Func) error {
	if s.inlinedSize(fn) <= maxInlined {
		return nil
	}
	kind := "function "
	if fn.Entry {
		kind = "kernel "
	}
	return &simt.Unsupported{Pos: fn.Pos, Inst: kind + fn.Name, Why: fmt.Sprintf("it has more than %d instructions once its calls are inlined", maxInlined)}
}

// Flatten inlines the calls of a function. With guard it leaves gaps between the arrays of shared and of local memory, which
// nothing may access.
func Flatten(prog *Module, fn *ptx.Func, guard bool) (*Flat, error) {
	f := &Flat{guard: guard, Prog: prog, Fn: fn, vars: map[*ptx.Var]Home{}}
	fr := f.newFrame(fn, nil, 0)
	fr.End = -1
	offsets, size := ptx.Layout(fn.Params)
	f.Params = size
	for i, v := range fn.Params {
		p := Home{Space: ptx.Param, Off: offsets[i]}
		if !fn.Entry {
			p = f.local(v) // a function checked on its own
		}
		fr.vars[v] = p
	}
	for _, v := range fn.Ret {
		fr.vars[v] = f.local(v)
	}
	if err := f.body(fn, fr); err != nil {
		return nil, err
	}
	f.Code = append(f.Code, Inst{Inst: &ptx.Inst{Pos: fn.Pos, Op: "exit"}, Frame: fr})
	f.reserveStack()
	return f, nil
}

// newFrame is for a function that is called in a line, with what has called the caller.
func (f *Flat) newFrame(fn *ptx.Func, callers []Call, line int) *frame {
	fr := &frame{Reg: len(f.Regs), label: len(f.labels), vars: map[*ptx.Var]Home{}, tables: map[int]*ptx.Targets{}}
	fr.Stack = append(slices.Clip(callers), Call{fn, line, fr.Reg})
	f.Regs = append(f.Regs, fn.Regs...)
	f.labels = append(f.labels, make([]int, len(fn.Labels))...)
	return fr
}

func (f *Flat) newLabel() int {
	f.labels = append(f.labels, 0)
	return len(f.labels) - 1
}

// local gives a variable a place in the thread's own memory.
func (f *Flat) local(v *ptx.Var) Home {
	f.Locals, f.lastLocal = simt.Align(f.Locals, max(v.Alignment(), 1)), nil
	p := Home{Space: ptx.Local, Off: f.Locals}
	f.Locals += v.Size()
	return p
}

// array is local behind a gap, if it is an array of the program's that others lie before.
func (f *Flat) array(v *ptx.Var) Home {
	from := f.Locals
	if v.Space != ptx.Local {
		return f.local(v)
	}
	gap := simt.Gap{Lo: from}
	if last := f.lastLocal; last != nil {
		gap.After, gap.Size = last.Name, last.Size()
	}
	apart := f.guard && from > 0
	if apart {
		f.Locals += localGap
	}
	p := f.local(v)
	if gap.Hi = p.Off; apart {
		f.LocalGaps = append(f.LocalGaps, gap)
	}
	f.lastLocal = v
	return p
}

func (f *Flat) body(fn *ptx.Func, fr *frame) error {
	for _, a := range f.active {
		if a == fn {
			return &simt.Unsupported{Pos: fn.Pos, Inst: "call", Why: "function " + fn.Name + " calls itself; a loop that keeps its own stack does without"}
		}
	}
	f.active = append(f.active, fn)
	defer func() { f.active = f.active[:len(f.active)-1] }()
	f.tables(fn.Body, fr)
	return f.block(fn.Body, fr)
}

// tables finds the jump tables of a body: lists of targets behind a label.
func (f *Flat) tables(b *ptx.Block, fr *frame) {
	last := -1
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *ptx.LabelDef:
			last = s.ID
		case *ptx.Targets:
			fr.tables[last] = s
		case *ptx.Block:
			f.tables(s, fr)
		}
	}
}

func (f *Flat) block(b *ptx.Block, fr *frame) error {
	for _, s := range b.Stmts {
		if err := f.stmt(s, fr); err != nil {
			return err
		}
	}
	return nil
}

func (f *Flat) stmt(s ptx.Stmt, fr *frame) error {
	switch s := s.(type) {
	case *ptx.Inst:
		return f.inst(s, fr)
	case *ptx.LabelDef:
		f.labels[fr.label+s.ID] = len(f.Code)
	case *ptx.Block:
		return f.block(s, fr)
	case *ptx.Var:
		return f.declare(s, fr)
	case *ptx.Loc:
		if s.Line > 0 || f.loc == nil { // clang gives line 0 to what it cannot place
			f.loc = s
		}
	case *ptx.Pragma:
		for _, t := range s.Texts {
			if _, err := fmt.Sscanf(t, "used_bytes_mask %v", &f.bytes); err != nil {
				f.bytes = 0
			}
		}
	}
	return nil
}

func (f *Flat) declare(v *ptx.Var, fr *frame) error {
	switch v.Space {
	case ptx.Local, ptx.Param:
		fr.vars[v] = f.array(v)
	case ptx.Shared:
		f.placeShared(v)
	case ptx.Global, ptx.ConstSpace:
		if _, ok := f.Prog.Globals[v]; ok { // placed once, however often the body is inlined
			return nil
		}
		return f.Prog.declare(v)
	default:
		return &simt.Unsupported{Pos: v.Pos, Inst: "." + v.Space.String(), Why: "variables of this space in a body"}
	}
	return nil
}

func (f *Flat) placeShared(v *ptx.Var) Home {
	if p, ok := f.vars[v]; ok {
		return p
	}
	p := Home{Space: ptx.Shared, Dynamic: v.Size() == 0}
	if !p.Dynamic {
		f.Shared = simt.Align(f.Shared, max(v.Alignment(), 1))
		if f.guard && f.lastShared != nil {
			f.openGap(v.Alignment())
		}
		p.Off = f.Shared + f.Shift
		f.Shared += v.Size()
		f.lastShared, f.endShared = v, p.Off+v.Size()
	}
	if p.Dynamic {
		f.dynamic = max(f.dynamic, v.Alignment())
	}
	f.vars[v] = p
	return p
}

// The bytes of gaps: multiples of what shared memory's 32 banks have in a row, so that conflicts are as without them.
const (
	sharedGap = 4096
	localGap  = 256
)

// openGap leaves a gap before the next array of shared memory.
func (f *Flat) openGap(alignment int64) {
	f.Shift = simt.Align(f.Shift+sharedGap, max(alignment, sharedGap))
	f.SharedGaps = append(f.SharedGaps, simt.Gap{Lo: f.endShared, Hi: f.Shared + f.Shift, After: f.lastShared.Name, Size: f.lastShared.Size(), Shift: f.Shift})
}

// DynamicStart is where dynamic shared memory begins: on 16 bytes, or what its declarations ask for.
func (f *Flat) DynamicStart() int64 { return simt.Align(f.Shared, max(f.dynamic, 16)) + f.Shift }

// Find is the place of a variable as an instruction of the frame sees it.
func (f *Flat) Find(v *ptx.Var, fr *frame) (Home, bool) {
	if p, ok := fr.vars[v]; ok {
		return p, true
	}
	if p, ok := f.Prog.Globals[v]; ok {
		return p, true
	}
	if v.Space == ptx.Shared {
		return f.placeShared(v), true
	}
	return Home{}, false
}

// Variables are the shared variables that the code names, those of the module in global and constant memory, and the kernel's own
// in local memory and parameters.
func (f *Flat) Variables() map[*ptx.Var]Home {
	all := maps.Clone(f.Prog.Globals)
	maps.Copy(all, f.vars)
	maps.Copy(all, f.Code[len(f.Code)-1].Frame.vars)
	for v, h := range all {
		if h.Dynamic {
			h.Off = f.DynamicStart()
			all[v] = h
		}
	}
	return all
}

// Converges are the opcodes whose lanes wait for each other; a predicate before one becomes a branch around it.
var Converges = map[string]bool{"bar": true, "barrier": true, "shfl": true, "vote": true, "match": true, "redux": true,
	"elect": true, "mma": true, "ldmatrix": true, "movmatrix": true, "stmatrix": true, "wgmma": true, "setmaxnreg": true, "wmma": true, "call": true, "brx": true}

func (f *Flat) inst(in *ptx.Inst, fr *frame) error {
	if in.Guard != nil && Converges[in.Op] {
		over := f.newLabel()
		skip := *in.Guard
		skip.Neg = !skip.Neg
		f.emit(&ptx.Inst{Pos: in.Pos, Guard: &skip, Op: "bra"}, fr).target = over
		plain := *in
		plain.Guard = nil
		if err := f.inst(&plain, fr); err != nil {
			return err
		}
		f.labels[over] = len(f.Code)
		return nil
	}
	switch in.Op {
	case "bra":
		if len(in.Args) == 1 {
			if l, ok := in.Args[0].(*ptx.Label); ok {
				f.emit(in, fr).target = fr.label + l.ID
				return nil
			}
		}
		return simt.NotSupported(in, "wants a label")
	case "brx":
		return f.indexed(in, fr)
	case "ret":
		if fr.End < 0 {
			f.emit(&ptx.Inst{Pos: in.Pos, Guard: in.Guard, Op: "exit"}, fr)
		} else {
			f.emit(&ptx.Inst{Pos: in.Pos, Guard: in.Guard, Op: "bra"}, fr).target = fr.End
		}
	case "call":
		return f.call(in, fr)
	default:
		f.emit(in, fr)
	}
	return nil
}

func (f *Flat) emit(in *ptx.Inst, fr *frame) *Inst {
	f.Code = append(f.Code, Inst{Inst: in, Frame: fr, Loc: f.loc, Used: f.bytes})
	f.bytes = 0
	return &f.Code[len(f.Code)-1]
}

func (f *Flat) indexed(in *ptx.Inst, fr *frame) error {
	if len(in.Args) != 2 || !in.Has("idx") {
		return simt.NotSupported(in, "wants an index and a table")
	}
	l, ok := in.Args[1].(*ptx.Label)
	if !ok || fr.tables[l.ID] == nil {
		return simt.NotSupported(in, "wants the label of a .branchtargets")
	}
	var targets []int
	for _, n := range fr.tables[l.ID].Names {
		t, ok := n.(*ptx.Label)
		if !ok {
			return simt.NotSupported(in, "a table of something but labels")
		}
		targets = append(targets, fr.label+t.ID)
	}
	f.emit(in, fr).targets = targets
	return nil
}

// call inlines a function of the module; vprintf and __assertfail are the simulator's.
func (f *Flat) call(in *ptx.Inst, fr *frame) error {
	c, ok := in.Call()
	sym, direct := c.Target.(*ptx.Sym)
	if !ok || !direct {
		return simt.NotSupported(in, "a call through a register, as of a function pointer or a virtual function; %s", instead)
	}
	fn := f.Prog.Ptx.Callee(sym.Name)
	if fn == nil {
		return simt.NotSupported(in, "function %s is not declared", sym.Name)
	}
	if fn.Body == nil {
		return f.provided(in, fr, sym.Name, slices.Concat(c.Ret, c.Args))
	}
	if len(fn.Ret) != len(c.Ret) || len(fn.Params) != len(c.Args) {
		return simt.NotSupported(in, "%d arguments and %d results for the %d and %d of %s", len(c.Args), len(c.Ret), len(fn.Params), len(fn.Ret), fn.Name)
	}
	inner := f.newFrame(fn, fr.Stack, in.Pos.Line)
	inner.End = f.newLabel()
	pass := passing{f: f, in: in, outer: fr, inner: inner}
	for i, v := range fn.Params {
		if err := pass.param(v, fn.Formals[len(fn.Ret)+i], c.Args[i], false); err != nil {
			return err
		}
	}
	for i, v := range fn.Ret {
		if err := pass.param(v, fn.Formals[i], c.Ret[i], true); err != nil {
			return err
		}
	}
	giveBack := func() {}
	if takesStack(fn) {
		giveBack = f.keepStack(in.Pos, fr)
	}
	if err := f.body(fn, inner); err != nil {
		return err
	}
	f.labels[inner.End] = len(f.Code)
	giveBack()
	for _, r := range pass.results {
		f.emit(r, fr)
	}
	return nil
}

// provided is a call of a function of the simulator's.
func (f *Flat) provided(in *ptx.Inst, fr *frame, name string, actual []ptx.Operand) error {
	if name != "vprintf" && name != "__assertfail" {
		return simt.NotSupported(in, "function %s has no body in this file; compile it along, or link it before", name)
	}
	places := make([]Home, len(actual))
	for i, a := range actual {
		p, ok := f.actual(a, fr)
		if !ok {
			return simt.NotSupported(in, "an argument that is not a local .param variable")
		}
		places[i] = p
	}
	f.emit(in, fr).Passed = places
	return nil
}

// actual is the place of an argument that is a local .param variable.
func (f *Flat) actual(a ptx.Operand, fr *frame) (Home, bool) {
	s, ok := a.(*ptx.Sym)
	if !ok || s.Var == nil || s.Off != 0 {
		return Home{}, false
	}
	p, ok := f.Find(s.Var, fr)
	return p, ok && p.Space == ptx.Local
}

// passing is the arguments and results of an inlined call. A .param variable given for one becomes the callee's; what is a
// register on either side is moved, loaded or stored.
type passing struct {
	f            *Flat
	in           *ptx.Inst
	outer, inner *frame
	results      []*ptx.Inst // behind the callee's body
}

// param passes a for v, which is register id of the callee, or in memory if that is -1.
func (p *passing) param(v *ptx.Var, id int, a ptx.Operand, result bool) error {
	at, inMemory := p.f.actual(a, p.outer)
	formalReg := id >= 0
	switch a.(type) {
	case *ptx.Sink:
		p.inner.vars[v] = p.f.local(v)
		return nil
	case *ptx.Reg, *ptx.Imm:
	default:
		if !inMemory {
			return simt.NotSupported(p.in, "an argument that is neither a register, a number nor a local .param variable")
		}
	}
	if !formalReg && inMemory {
		p.inner.vars[v] = at
		return nil
	}
	formal, mods := ptx.Operand(nil), []string{v.Type.String()}
	switch {
	case v.Vec > 0 || v.Dims != nil:
		return simt.NotSupported(p.in, "a vector or an array passed in a register")
	case formalReg: // as the caller's frame sees it
		formal = &ptx.Reg{Pos: p.in.Pos, Name: v.Name, ID: p.inner.Reg + id - p.outer.Reg}
	default:
		tmp := *v
		p.inner.vars[v] = p.f.local(v)
		p.outer.vars[&tmp] = p.inner.vars[v]
		formal = &ptx.Addr{Pos: p.in.Pos, Base: &ptx.Sym{Pos: p.in.Pos, Name: v.Name, Var: &tmp}}
	}
	op := "mov"
	if inMemory {
		a = &ptx.Addr{Pos: p.in.Pos, Base: a}
	}
	if inMemory || !formalReg {
		mods = []string{"param", fmt.Sprintf("b%d", v.Type.Bits())}
		if op = "st"; inMemory != result {
			op = "ld"
		}
	}
	if result {
		p.results = append(p.results, &ptx.Inst{Pos: p.in.Pos, Op: op, Mods: mods, Args: []ptx.Operand{a, formal}})
		return nil
	}
	p.f.emit(&ptx.Inst{Pos: p.in.Pos, Op: op, Mods: mods, Args: []ptx.Operand{formal, a}}, p.outer)
	return nil
}

// instead is what to do where a function is called by its address.
const instead = "a switch over what may be called does without"

// NoAddress says that a symbol has no address here.
func (s *Module) NoAddress(name string) string {
	if s.Ptx.Callee(name) == nil {
		return "the address of " + name
	}
	return "the address of " + name + ", a function, as pointers and virtual functions take it; " + instead
}

// TouchesMemory are the opcodes after which the independent schedule may switch.
var TouchesMemory = map[string]bool{"ld": true, "st": true, "atom": true, "red": true, "cp": true, "mbarrier": true, "stmatrix": true, "wgmma": true, "tensormap": true}

// Talking reports whether an instruction lets threads wait for each other outside barriers.
func Talking(in *ptx.Inst) bool {
	switch in.Op {
	case "atom", "red", "membar":
		return true
	case "fence":
		return !in.Has("proxy") && !in.Has("mbarrier_init")
	case "ld", "st":
		for _, m := range []string{"volatile", "relaxed", "acquire", "release", "mmio"} {
			if in.Has(m) {
				return true
			}
		}
	}
	return false
}
