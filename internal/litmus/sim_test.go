package litmus

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// kernelOf is a test as a kernel in which the first thread of a warp each does what a thread of the test does, with the blocks of its
// grid and their threads. Its parameter is the memory: 8 bytes for each location, 64 apart.
func kernelOf(test *Test) (text string, blocks, threads int) {
	ctas, inCTA := map[[2]int]int{}, map[[2]int]int{}
	var start, bodies strings.Builder
	registers := 0
	for i, th := range test.Threads {
		at := [2]int{th.GPU, th.CTA}
		if _, ok := ctas[at]; !ok {
			ctas[at] = len(ctas)
		}
		fmt.Fprintf(&start, "setp.eq.u32 %%p, %%place, %d; @%%p bra T%d;\n", ctas[at]*16+inCTA[at], i)
		inCTA[at]++
		threads = max(threads, 32*inCTA[at])
		registers = max(registers, len(th.Registers))
		fmt.Fprintf(&bodies, "T%d:\n", i)
		for r, v := range th.Init {
			fmt.Fprintf(&bodies, "mov.u64 %%r%d, %d;\n", r, v)
		}
		for k := range th.Code {
			fmt.Fprintf(&bodies, "L%d_%d: %s\n", i, k, instructionOf(i, &th.Code[k]))
		}
		fmt.Fprintf(&bodies, "L%d_%d: exit;\n", i, len(th.Code))
	}
	return fmt.Sprintf(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 memory)\n{\n"+
		".reg .b64 %%m, %%old, %%r<%d>; .reg .b32 %%lane, %%place, %%t; .reg .pred %%p;\nld.param.u64 %%m, [memory];\n"+
		"mov.u32 %%t, %%tid.x; and.b32 %%lane, %%t, 31; setp.ne.u32 %%p, %%lane, 0; @%%p exit;\n"+
		"shr.u32 %%t, %%t, 5; mov.u32 %%place, %%ctaid.x; shl.b32 %%place, %%place, 4; add.u32 %%place, %%place, %%t;\n%sexit;\n%s}\n",
		registers+1, start.String(), bodies.String()), len(ctas), threads
}

// instructionOf is an instruction in PTX.
func instructionOf(thread int, in *Instruction) string {
	operand := func(i int) string {
		if a := in.args[i]; a.reg < 0 {
			return fmt.Sprint(a.constant)
		}
		return fmt.Sprintf("%%r%d", in.args[i].reg)
	}
	order := nameOf(semantics, in.sem)
	if in.scope != noScope {
		order += "." + nameOf(scopes, in.scope)
	}
	place := fmt.Sprintf("[%%m+%d]", 64*in.loc)
	switch in.op {
	case opLoad:
		return fmt.Sprintf("ld.%s.global.u64 %%r%d, %s;", order, in.dst, place)
	case opStore:
		return fmt.Sprintf("st.%s.global.u64 %s, %s;", order, place, operand(0))
	case opAtomic:
		t := map[arith]string{cas: "b64", exch: "b64", "and": "b64", "or": "b64", "xor": "b64", "min": "s64", "max": "s64"}[in.arith]
		args := operand(0)
		if in.arith == cas {
			args += ", " + operand(1)
		}
		dst := "%old"
		if in.dst >= 0 {
			dst = fmt.Sprintf("%%r%d", in.dst)
		}
		return fmt.Sprintf("atom.%s.global.%s.%s %s, %s, %s;", order, in.arith, cmp.Or(t, "u64"), dst, place, args)
	case opFence:
		return "fence." + order + ";"
	case opBarrier:
		return "barrier.sync " + in.bar + ";"
	case opLocal:
		if in.arith == move {
			return fmt.Sprintf("mov.u64 %%r%d, %s;", in.dst, operand(0))
		}
		return fmt.Sprintf("%s.s64 %%r%d, %s, %s;", in.arith, in.dst, operand(0), operand(1))
	case opBranch:
		if len(in.args) == 0 {
			return fmt.Sprintf("bra L%d_%d;", thread, in.target)
		}
		by := map[compare]string{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[in.cmp]
		return fmt.Sprintf("setp.%s.s64 %%p, %s, %s; @%%p bra L%d_%d;", by, operand(0), operand(1), thread, in.target)
	}
	return "trap; // " + in.Text
}

// reported is what the simulator's check of global memory says of a test, under any of several schedules; empty for nothing.
func reported(t *testing.T, test *Test) string {
	t.Helper()
	text, blocks, threads := kernelOf(test)
	m, err := ptx.Parse(text)
	if err != nil {
		t.Fatal(err, text)
	}
	for seed := range uint64(6) {
		d := gpusim.NewDevice(gpusim.A100(), false)
		prog, err := d.Load(m)
		if err != nil {
			t.Fatal(err, text)
		}
		at, err := d.Alloc(64*len(test.Locations), "memory")
		if err != nil {
			t.Fatal(err)
		}
		memory := make([]byte, 64*len(test.Locations))
		for i, l := range test.Locations {
			memory[64*i] = byte(l.Init)
		}
		if err := d.Write(at, memory); err != nil {
			t.Fatal(err)
		}
		params := []byte{}
		for i := range 8 {
			params = append(params, byte(at>>(8*i)))
		}
		o := gpusim.Options{Checks: gpusim.Globalcheck, Seed: seed, StepLimit: 1 << 20}
		if seed > 2 {
			o.Schedule = gpusim.Independent
		}
		rep, err := d.Launch(prog.Kernel("k"), [3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, 0, params, o)
		if err != nil {
			return err.Error()
		}
		if len(rep.Findings) > 0 {
			return rep.Findings[0].Message()
		}
	}
	return ""
}

// skeletons are the ways in which blocks talk in the kernels of the tree, as litmus tests.
var skeletons = []string{"barrier", "grid-barrier", "last-block", "lock", "lock-fences", "lock-ticket", "look-back", "semaphore", "semaphore-fences", "work-queue"}

// TestSkeletons runs the skeletons, and each with one order weakened, on the simulator under the check of global memory. All
// that matter, as the axioms say, are reported; as they stand there is no finding.
func TestSkeletons(t *testing.T) {
	matter, found, needless := 0, 0, 0
	for _, name := range skeletons {
		test := load(t, filepath.Join(examples, name+".litmus"))
		if got := reported(t, test); got != "" {
			t.Errorf("%s as it is: %s", name, got)
		}
		for _, w := range weakenings(test) {
			r, err := Check(t.Context(), w.test, Options{})
			if err != nil {
				t.Fatal(err)
			}
			id := fmt.Sprintf("%s, line %d of %s: %s → %s", name, w.mutant.Line, w.mutant.Thread, w.mutant.From, cmp.Or(w.mutant.To, "left out"))
			says := reported(t, w.test)
			switch {
			case r.Holds && says != "":
				needless++
				t.Log("more than asked: ", id, says)
			case r.Holds:
				t.Log("needs not be: ", id)
			case says != "":
				matter++
				found++
			default:
				matter++
				t.Errorf("not reported: %s", id)
			}
		}
	}
	t.Logf("of %d mutants that matter %d are reported; of the others %d", matter, found, needless)
	if matter < 50 {
		t.Errorf("only %d mutants matter", matter)
	}
}
