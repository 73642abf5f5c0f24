package kernel

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// origins are what an address may be computed from: bit i for parameter i of a kernel, and ownMemory.
type origins uint64

// ownMemory is the kernel's own: variables of the module, shared and local memory. maxOrigins is how many parameters there are
// bits for.
const (
	ownMemory  origins = 1 << 63
	maxOrigins         = 63
)

// writesOf lists from what the addresses are computed that a kernel writes to, each set of origins once. An empty set is an address
// of unknown origin: a pointer from memory, a call of an unknown function. It follows values through registers, local and
// shared memory and calls, and neither branches nor the order of instructions, so that a set may have too many origins, and
// never too few.
func writesOf(m *ptx.Module, kernel *ptx.Func) []origins {
	if len(kernel.Params) > maxOrigins {
		return []origins{0}
	}
	w := &tracing{m: m, regs: map[*ptx.Func][]origins{}, vars: map[*ptx.Var]origins{}}
	for i, p := range kernel.Params {
		w.vars[p] = 1 << i
	}
	w.enter(kernel)
	for w.changed = true; w.changed; {
		w.changed = false
		for i := 0; i < len(w.reached); i++ { // calls add to it
			w.follow(w.reached[i])
		}
	}
	w.stores = nil
	w.final = true
	for _, f := range w.reached {
		w.follow(f)
	}
	return w.stores
}

// tracing is what is known so far.
type tracing struct {
	m       *ptx.Module
	reached []*ptx.Func
	regs    map[*ptx.Func][]origins
	vars    map[*ptx.Var]origins // of parameters
	memory  origins              // of what lies in local or shared memory
	stores  []origins
	changed bool
	final   bool // nothing changes any more: stores count

	f *ptx.Func
}

func (w *tracing) enter(f *ptx.Func) {
	if w.regs[f] == nil {
		w.regs[f] = make([]origins, len(f.Regs)+1)
		w.reached = append(w.reached, f)
		w.changed = true
	}
}

func (w *tracing) follow(f *ptx.Func) {
	w.f = f
	for in := range f.Insts() {
		w.inst(in)
	}
}

// stored are the instructions that write to the memory of their first operand, whatever else they do; red and atom too.
var stored = []string{"st", "red", "stmatrix", "wmma", "discard", "tensormap", "multimem"}

func (w *tracing) inst(in *ptx.Inst) {
	if c, ok := in.Call(); ok {
		w.call(&c)
		return
	}
	if len(in.Args) == 0 {
		return
	}
	if in.Op == "atom" && len(in.Args) > 1 {
		w.store(in, in.Args[1], nil)
		return
	}
	if a, ok := in.Args[0].(*ptx.Addr); ok {
		if slices.Contains(stored, in.Op) && !in.Has("load") || in.Op == "cp" && in.Has("bulk") && !in.Has("prefetch") {
			w.store(in, a, in.Args[1:])
		}
		return
	}
	var from origins
	for _, a := range in.Args[1:] {
		if addr, ok := a.(*ptx.Addr); ok {
			from |= w.loaded(in, addr)
		} else {
			from |= w.of(a)
		}
	}
	if in.Op == "alloca" || in.Op == "cvta" && !in.Has("to") && !in.Has("global") && !in.Has("const") {
		from |= ownMemory
	}
	w.set(in.Args[0], from)
}

// store notes a write of values to an address.
func (w *tracing) store(in *ptx.Inst, at ptx.Operand, values []ptx.Operand) {
	var v origins
	for _, a := range values {
		v |= w.of(a)
	}
	space := in.Space()
	if space == ptx.Param {
		if s, ok := base(at).(*ptx.Sym); ok && s.Var != nil {
			w.setVar(s.Var, v)
		}
		return
	}
	to := w.of(at)
	if in.Op == "cp" && in.Has("tensor") {
		to = 0 // the address is in the tensor map
	}
	if space != ptx.Global && w.memory|v != w.memory && (space != ptx.Generic || to&ownMemory != 0) {
		w.memory |= v
		w.changed = true
	}
	if space == ptx.Global || space == ptx.Generic {
		if w.final && !slices.Contains(w.stores, to) {
			w.stores = append(w.stores, to)
		}
	}
}

// loaded is what a load gives: of parameters and of the kernel's own memory the pointers that lie there.
func (w *tracing) loaded(in *ptx.Inst, a *ptx.Addr) origins {
	switch space := in.Space(); {
	case space == ptx.Param:
		return w.of(a.Base)
	case space == ptx.Local || space == ptx.Shared || space == ptx.SharedCluster:
		return w.memory
	case space == ptx.Generic && w.of(a.Base)&ownMemory != 0:
		return w.memory
	}
	return 0
}

func (w *tracing) call(c *ptx.Call) {
	s, _ := c.Target.(*ptx.Sym)
	var callee *ptx.Func
	if s != nil {
		callee = w.m.Callee(s.Name)
	}
	if callee == nil || callee.Body == nil {
		if w.final && (s == nil || s.Name != "vprintf" && s.Name != "__assertfail") {
			w.stores = append(w.stores, 0)
		}
		return
	}
	w.enter(callee)
	for i, a := range c.Args {
		if i < len(callee.Params) {
			w.pass(callee, len(callee.Ret)+i, callee.Params[i], w.of(a))
		}
	}
	for i, r := range c.Ret {
		if i >= len(callee.Ret) {
			continue
		}
		v := w.vars[callee.Ret[i]]
		if id := callee.Formals[i]; id >= 0 {
			v |= w.regs[callee][id]
		}
		w.set(r, v)
	}
}

// pass gives a function an argument, in a register where its parameter is one.
func (w *tracing) pass(callee *ptx.Func, formal int, v *ptx.Var, from origins) {
	w.setVar(v, from)
	if id := callee.Formals[formal]; id >= 0 {
		w.setReg(callee, id, from)
	}
}

// of is what an operand is computed from.
func (w *tracing) of(a ptx.Operand) (from origins) {
	switch a := a.(type) {
	case *ptx.Reg:
		return w.regs[w.f][a.ID]
	case *ptx.Sym:
		switch {
		case a.Var == nil:
			return 0
		case a.Var.Space == ptx.Param:
			return w.vars[a.Var]
		}
		return ownMemory
	case *ptx.Addr:
		return w.of(a.Base)
	case *ptx.Vec:
		for _, e := range a.Elems {
			from |= w.of(e)
		}
	}
	return from
}

func base(a ptx.Operand) ptx.Operand {
	if addr, ok := a.(*ptx.Addr); ok {
		return addr.Base
	}
	return a
}

// set notes what a destination is computed from; predicates are no addresses.
func (w *tracing) set(a ptx.Operand, from origins) {
	switch a := a.(type) {
	case *ptx.Reg:
		if w.f.Regs[a.ID].Type != ptx.Pred {
			w.setReg(w.f, a.ID, from)
		}
	case *ptx.Sym:
		if a.Var != nil {
			w.setVar(a.Var, from)
		}
	case *ptx.Vec:
		for _, e := range a.Elems {
			w.set(e, from)
		}
	case *ptx.Pair:
		w.set(a.A, from)
		w.set(a.B, from)
	}
}

func (w *tracing) setReg(f *ptx.Func, id int, from origins) {
	if r := &w.regs[f][id]; *r|from != *r {
		*r |= from
		w.changed = true
	}
}

func (w *tracing) setVar(v *ptx.Var, from origins) {
	if old := w.vars[v]; old|from != old {
		w.vars[v] = old | from
		w.changed = true
	}
}
