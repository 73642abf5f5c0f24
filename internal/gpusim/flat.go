package gpusim

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// flat is a function with all its calls inlined: one list of instructions over one set of registers. PTX forbids what
// would not fit (recursion needs an explicit stack, calls through registers a prototype); both are refused.
type flat struct {
	prog    *Program
	fn      *ptx.Func
	code    []finst
	labels  []int // label -> index into code
	regs    []ptx.RegInfo
	locals  int64 // bytes of local memory of a thread
	stack   int64 // where in it alloca begins
	shared  int64 // bytes of static shared memory of a block
	dynamic int64 // alignment that dynamic shared memory asks for
	vars    map[*ptx.Var]place
	params  int64
	active  []*ptx.Func // being inlined
	loc     *ptx.Loc
	bytes   uint32 // of the pragma used_bytes_mask, for the next load; 0 without
}

// finst is an instruction in its place.
type finst struct {
	*ptx.Inst
	fr      *frame
	loc     *ptx.Loc
	target  int   // label of bra
	targets []int // labels of brx.idx
	used    uint32
	args    []place // of a call to a function that the simulator provides
}

// frame is one inlined copy of a function.
type frame struct {
	reg, label int // what to add to the numbers of registers and labels
	vars       map[*ptx.Var]place
	tables     map[int]*ptx.Targets
	end        int // label behind the copy; -1 in the kernel itself
}

// place is where a variable lives.
type place struct {
	space   ptx.Space
	off     int64 // an address in global and const, an offset elsewhere
	dynamic bool  // behind the static shared memory
}

const maxInlined = 1 << 20 // instructions

// inlinedSize is how many instructions a function has with its calls inlined, counted up to a little above maxInlined. A
// function that calls itself is refused elsewhere.
func (p *Program) inlinedSize(fn *ptx.Func) int {
	if n, ok := p.sizes[fn]; ok {
		return n
	}
	p.sizes[fn] = 0
	n := 0
	for in := range fn.Insts() {
		n++
		if c, ok := in.Call(); ok {
			if s, ok := c.Target.(*ptx.Sym); ok {
				if to := p.module.Callee(s.Name); to != nil && to.Body != nil {
					n += p.inlinedSize(to)
				}
			}
		}
		n = min(n, maxInlined+1)
	}
	p.sizes[fn] = n
	return n
}

// checkSize refuses what inlining would make too large.
func (p *Program) checkSize(fn *ptx.Func) error {
	if p.inlinedSize(fn) <= maxInlined {
		return nil
	}
	kind := "function "
	if fn.Entry {
		kind = "kernel "
	}
	return &unsupported{fn.Pos, kind + fn.Name, fmt.Sprintf("it has more than %d instructions once its calls are inlined", maxInlined)}
}

func flatten(prog *Program, fn *ptx.Func) (*flat, error) {
	f := &flat{prog: prog, fn: fn, vars: map[*ptx.Var]place{}}
	fr := f.newFrame(fn)
	fr.end = -1
	offsets, size := ptx.Layout(fn.Params)
	f.params = size
	for i, v := range fn.Params {
		p := place{space: ptx.Param, off: offsets[i]}
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
	f.code = append(f.code, finst{Inst: &ptx.Inst{Pos: fn.Pos, Op: "exit"}, fr: fr})
	f.reserveStack()
	return f, nil
}

func (f *flat) newFrame(fn *ptx.Func) *frame {
	fr := &frame{reg: len(f.regs), label: len(f.labels), vars: map[*ptx.Var]place{}, tables: map[int]*ptx.Targets{}}
	f.regs = append(f.regs, fn.Regs...)
	f.labels = append(f.labels, make([]int, len(fn.Labels))...)
	return fr
}

func (f *flat) newLabel() int {
	f.labels = append(f.labels, 0)
	return len(f.labels) - 1
}

// local gives a variable a place in the thread's own memory.
func (f *flat) local(v *ptx.Var) place {
	f.locals = align(f.locals, max(v.Alignment(), 1))
	p := place{space: ptx.Local, off: f.locals}
	f.locals += v.Size()
	return p
}

func align(n, a int64) int64 { return (n + a - 1) / a * a }

func (f *flat) body(fn *ptx.Func, fr *frame) error {
	for _, a := range f.active {
		if a == fn {
			return &unsupported{fn.Pos, "call", "function " + fn.Name + " calls itself; a loop that keeps its own stack does without"}
		}
	}
	f.active = append(f.active, fn)
	defer func() { f.active = f.active[:len(f.active)-1] }()
	f.tables(fn.Body, fr)
	return f.block(fn.Body, fr)
}

// tables finds the jump tables of a body: lists of targets behind a label.
func (f *flat) tables(b *ptx.Block, fr *frame) {
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

func (f *flat) block(b *ptx.Block, fr *frame) error {
	for _, s := range b.Stmts {
		if err := f.stmt(s, fr); err != nil {
			return err
		}
	}
	return nil
}

func (f *flat) stmt(s ptx.Stmt, fr *frame) error {
	switch s := s.(type) {
	case *ptx.Inst:
		return f.inst(s, fr)
	case *ptx.LabelDef:
		f.labels[fr.label+s.ID] = len(f.code)
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

func (f *flat) declare(v *ptx.Var, fr *frame) error {
	switch v.Space {
	case ptx.Local, ptx.Param:
		fr.vars[v] = f.local(v)
	case ptx.Shared:
		f.placeShared(v)
	case ptx.Global, ptx.ConstSpace:
		if _, ok := f.prog.globals[v]; ok { // placed once, however often the body is inlined
			return nil
		}
		if err := f.prog.placeGlobal(v); err != nil {
			return err
		}
		return f.prog.initialise(v)
	default:
		return &unsupported{v.Pos, "." + v.Space.String(), "variables of this space in a body"}
	}
	return nil
}

func (f *flat) placeShared(v *ptx.Var) place {
	if p, ok := f.vars[v]; ok {
		return p
	}
	p := place{space: ptx.Shared, dynamic: v.Size() == 0}
	if !p.dynamic {
		f.shared = align(f.shared, max(v.Alignment(), 1))
		p.off = f.shared
		f.shared += v.Size()
	}
	if p.dynamic {
		f.dynamic = max(f.dynamic, v.Alignment())
	}
	f.vars[v] = p
	return p
}

// dynamicStart is where dynamic shared memory begins: on 16 bytes, or what its declarations ask for.
func (f *flat) dynamicStart() int64 { return align(f.shared, max(f.dynamic, 16)) }

// find is the place of a variable as an instruction of the frame sees it.
func (f *flat) find(v *ptx.Var, fr *frame) (place, bool) {
	if p, ok := fr.vars[v]; ok {
		return p, true
	}
	if p, ok := f.prog.globals[v]; ok {
		return p, true
	}
	if v.Space == ptx.Shared {
		return f.placeShared(v), true
	}
	return place{}, false
}

// converges are the opcodes whose lanes wait for each other; a predicate before one becomes a branch around it.
var converges = map[string]bool{"bar": true, "barrier": true, "shfl": true, "vote": true, "match": true, "redux": true,
	"elect": true, "mma": true, "ldmatrix": true, "movmatrix": true, "wmma": true, "call": true, "brx": true}

func (f *flat) inst(in *ptx.Inst, fr *frame) error {
	if in.Guard != nil && converges[in.Op] {
		over := f.newLabel()
		skip := *in.Guard
		skip.Neg = !skip.Neg
		f.emit(&ptx.Inst{Pos: in.Pos, Guard: &skip, Op: "bra"}, fr).target = over
		plain := *in
		plain.Guard = nil
		if err := f.inst(&plain, fr); err != nil {
			return err
		}
		f.labels[over] = len(f.code)
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
		return notSupported(in, "wants a label")
	case "brx":
		return f.indexed(in, fr)
	case "ret":
		if fr.end < 0 {
			f.emit(&ptx.Inst{Pos: in.Pos, Guard: in.Guard, Op: "exit"}, fr)
		} else {
			f.emit(&ptx.Inst{Pos: in.Pos, Guard: in.Guard, Op: "bra"}, fr).target = fr.end
		}
	case "call":
		return f.call(in, fr)
	default:
		f.emit(in, fr)
	}
	return nil
}

func (f *flat) emit(in *ptx.Inst, fr *frame) *finst {
	f.code = append(f.code, finst{Inst: in, fr: fr, loc: f.loc, used: f.bytes})
	f.bytes = 0
	return &f.code[len(f.code)-1]
}

func (f *flat) indexed(in *ptx.Inst, fr *frame) error {
	if len(in.Args) != 2 || !in.Has("idx") {
		return notSupported(in, "wants an index and a table")
	}
	l, ok := in.Args[1].(*ptx.Label)
	if !ok || fr.tables[l.ID] == nil {
		return notSupported(in, "wants the label of a .branchtargets")
	}
	var targets []int
	for _, n := range fr.tables[l.ID].Names {
		t, ok := n.(*ptx.Label)
		if !ok {
			return notSupported(in, "a table of something but labels")
		}
		targets = append(targets, fr.label+t.ID)
	}
	f.emit(in, fr).targets = targets
	return nil
}

// call inlines a function of the module; vprintf and __assertfail are the simulator's.
func (f *flat) call(in *ptx.Inst, fr *frame) error {
	c, ok := in.Call()
	sym, direct := c.Target.(*ptx.Sym)
	if !ok || !direct {
		return notSupported(in, "a call through a register, as of a function pointer or a virtual function; %s", instead)
	}
	fn := f.prog.module.Callee(sym.Name)
	if fn == nil {
		return notSupported(in, "function %s is not declared", sym.Name)
	}
	if fn.Body == nil {
		return f.provided(in, fr, sym.Name, slices.Concat(c.Ret, c.Args))
	}
	if len(fn.Ret) != len(c.Ret) || len(fn.Params) != len(c.Args) {
		return notSupported(in, "%d arguments and %d results for the %d and %d of %s", len(c.Args), len(c.Ret), len(fn.Params), len(fn.Ret), fn.Name)
	}
	inner := f.newFrame(fn)
	inner.end = f.newLabel()
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
	f.labels[inner.end] = len(f.code)
	giveBack()
	for _, r := range pass.results {
		f.emit(r, fr)
	}
	return nil
}

// provided is a call of a function of the simulator's.
func (f *flat) provided(in *ptx.Inst, fr *frame, name string, actual []ptx.Operand) error {
	if name != "vprintf" && name != "__assertfail" {
		return notSupported(in, "function %s has no body in this file; compile it along, or link it before", name)
	}
	places := make([]place, len(actual))
	for i, a := range actual {
		p, ok := f.actual(a, fr)
		if !ok {
			return notSupported(in, "an argument that is not a local .param variable")
		}
		places[i] = p
	}
	f.emit(in, fr).args = places
	return nil
}

// actual is the place of an argument that is a local .param variable.
func (f *flat) actual(a ptx.Operand, fr *frame) (place, bool) {
	s, ok := a.(*ptx.Sym)
	if !ok || s.Var == nil || s.Off != 0 {
		return place{}, false
	}
	p, ok := f.find(s.Var, fr)
	return p, ok && p.space == ptx.Local
}

// passing is the arguments and results of an inlined call. A .param variable given for one becomes the callee's; what is a
// register on either side is moved, loaded or stored.
type passing struct {
	f            *flat
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
			return notSupported(p.in, "an argument that is neither a register, a number nor a local .param variable")
		}
	}
	if !formalReg && inMemory {
		p.inner.vars[v] = at
		return nil
	}
	formal, mods := ptx.Operand(nil), []string{v.Type.String()}
	switch {
	case v.Vec > 0 || v.Dims != nil:
		return notSupported(p.in, "a vector or an array passed in a register")
	case formalReg: // as the caller's frame sees it
		formal = &ptx.Reg{Pos: p.in.Pos, Name: v.Name, ID: p.inner.reg + id - p.outer.reg}
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
