package mutate

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// dataflow knows which registers go into the shared addresses of a kernel with cp.async, and which of them a loop
// carries: those count the stages of a pipeline.
type dataflow struct {
	defs    map[int][]*ptx.Inst
	slice   map[int]bool // registers that shared addresses are made of
	carried map[int]bool // of them those that depend on themselves, and what is computed from these
}

// maxStage bounds the constants that are taken for numbers of stages.
const maxStage = 4

func newDataflow(fn *ptx.Func) *dataflow {
	d := &dataflow{map[int][]*ptx.Inst{}, map[int]bool{}, map[int]bool{}}
	var roots []int
	async := false
	for in := range fn.Insts() {
		async = async || in.Op == "cp" && in.Has("async")
		for _, r := range results(in) {
			d.defs[r] = append(d.defs[r], in)
		}
		for _, a := range in.Args {
			if x, ok := a.(*ptx.Addr); ok && in.Has("shared") {
				roots = append(roots, registers(x.Base)...)
				break // of cp.async the second address is global
			}
		}
	}
	if !async {
		return d
	}
	for _, r := range roots {
		d.reach(r, d.slice)
	}
	for r := range d.slice {
		seen := map[int]bool{}
		for _, in := range d.defs[r] {
			for _, s := range sources(in) {
				d.reach(s, seen)
			}
		}
		d.carried[r] = seen[r]
	}
	return d
}

// reach adds a register and what it is computed from.
func (d *dataflow) reach(r int, seen map[int]bool) {
	if seen[r] {
		return
	}
	seen[r] = true
	for _, in := range d.defs[r] {
		if in.Op == "ld" {
			continue
		}
		for _, s := range sources(in) {
			d.reach(s, seen)
		}
	}
}

// wraps reports a selp that takes a register of a loop back to the start of a ring if the place after it, or it itself,
// equals the end.
func (d *dataflow) wraps(in *ptx.Inst) bool {
	if in.Op != "selp" || !d.slice[results(in)[0]] || !d.carried[results(in)[0]] {
		return false
	}
	next := registers(in.Args[2])
	for _, r := range next {
		for _, def := range d.defs[r] {
			next = append(next, sources(def)...)
		}
	}
	for _, p := range registers(in.Args[3]) {
		for _, c := range d.defs[p] {
			if c.Op == "setp" && c.Has("eq") && slices.ContainsFunc(registers(c.Args[1]), func(r int) bool { return slices.Contains(next, r) }) {
				return true
			}
		}
	}
	return false
}

// stages are the small constants that an instruction combines with a register that a loop carries.
func (d *dataflow) stages(in *ptx.Inst) []*ptx.Operand {
	switch in.Op {
	case "add", "sub", "selp", "setp", "xor", "mov":
	default:
		return nil
	}
	touches := false
	for _, r := range append(results(in), sources(in)...) {
		touches = touches || d.carried[r]
	}
	in0 := false
	for _, r := range results(in) {
		in0 = in0 || d.slice[r]
	}
	if !touches || !in0 {
		return nil
	}
	var out []*ptx.Operand
	for i := 1; i < len(in.Args); i++ {
		if x, ok := in.Args[i].(*ptx.Imm); ok && x.Int() >= -maxStage && x.Int() <= maxStage {
			out = append(out, &in.Args[i])
		}
	}
	return out
}

// results are the registers that an instruction writes: its first operand, unless it stores or jumps.
func results(in *ptx.Inst) []int {
	switch in.Op {
	case "st", "red", "bra", "bar", "barrier", "cp", "call", "brx":
		return nil
	}
	if len(in.Args) == 0 {
		return nil
	}
	return registers(in.Args[0])
}

func sources(in *ptx.Inst) []int {
	var out []int
	for i, a := range in.Args {
		if i > 0 {
			out = append(out, registers(a)...)
		}
	}
	return out
}

func registers(o ptx.Operand) []int {
	switch o := o.(type) {
	case *ptx.Reg:
		return []int{o.ID}
	case *ptx.Not:
		return registers(o.X)
	case *ptx.Pair:
		return append(registers(o.A), registers(o.B)...)
	case *ptx.Addr:
		return registers(o.Base)
	case *ptx.Vec:
		var out []int
		for _, e := range o.Elems {
			out = append(out, registers(e)...)
		}
		return out
	}
	return nil
}
