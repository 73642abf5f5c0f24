package gpusim

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// flat is a function with all its calls inlined: one list of instructions over one set of registers. PTX forbids what
// would not fit (recursion needs an explicit stack, calls through registers a prototype); both are refused.
type flat struct {
	prog   *Program
	fn     *ptx.Func
	code   []finst
	labels []int // label -> index into code
	regs   []ptx.RegInfo
	locals int64 // bytes of local memory of a thread
	shared int64 // bytes of static shared memory of a block
	vars   map[*ptx.Var]place
	params int64
	active []*ptx.Func // being inlined
	loc    *ptx.Loc
	bytes  uint32 // of the pragma used_bytes_mask, for the next load; 0 without
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
			return &unsupported{fn.Pos, "call", "function " + fn.Name + " calls itself"}
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
		return f.prog.placeGlobal(v)
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
	f.vars[v] = p
	return p
}

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
	"elect": true, "mma": true, "ldmatrix": true, "movmatrix": true, "call": true, "brx": true}

func (f *flat) inst(in *ptx.Inst, fr *frame) error {
	if len(f.code) > maxInlined {
		return notSupported(in, "the kernel has more than %d instructions after inlining", maxInlined)
	}
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
		return notSupported(in, "a call through a register")
	}
	fn := f.prog.module.Func(sym.Name)
	if fn == nil {
		return notSupported(in, "function %s is not declared", sym.Name)
	}
	actual := append(append([]ptx.Operand{}, c.Ret...), c.Args...)
	places := make([]place, len(actual))
	for i, a := range actual {
		s, ok := a.(*ptx.Sym)
		if !ok || s.Var == nil || s.Off != 0 {
			return notSupported(in, "an argument that is not a .param variable")
		}
		if places[i], ok = f.find(s.Var, fr); !ok || places[i].space != ptx.Local {
			return notSupported(in, "an argument that is not a local .param variable")
		}
	}
	if fn.Body == nil {
		if sym.Name != "vprintf" && sym.Name != "__assertfail" {
			return notSupported(in, "external function %s", sym.Name)
		}
		e := f.emit(in, fr)
		e.args = places
		return nil
	}
	formal := append(append([]*ptx.Var{}, fn.Ret...), fn.Params...)
	if len(formal) != len(actual) {
		return notSupported(in, "%d arguments and results for the %d of %s", len(actual), len(formal), fn.Name)
	}
	inner := f.newFrame(fn)
	inner.end = f.newLabel()
	for i, v := range formal {
		inner.vars[v] = places[i]
	}
	err := f.body(fn, inner)
	f.labels[inner.end] = len(f.code)
	return err
}
