package litmus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const examples = "../../examples/litmus"

func load(t *testing.T, name string) *Test {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	test, err := Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return test
}

func checked(t *testing.T, test *Test, o Options) *Result {
	t.Helper()
	r, err := Check(t.Context(), test, o)
	if err != nil {
		t.Fatal(test.Name, err)
	}
	return r
}

func exampleFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(examples, "*.litmus"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	return files
}

// TestExamples: the verdict of each was reasoned out by hand, in its head. Those that name a mistake are the mutants of those
// that do not: what one allows the other forbids.
func TestExamples(t *testing.T) {
	for _, f := range exampleFiles(t) {
		test := load(t, f)
		if r := checked(t, test, Options{}); !r.Holds || !r.Complete || test.Name+".litmus" != filepath.Base(f) {
			t.Errorf("%s:\n%s", f, r.Text())
		}
	}
}

// TestMutants: of the orders that examples need each matters, and what is too much does not.
func TestMutants(t *testing.T) {
	for name, want := range map[string]map[string]bool{
		"MP-release-acquire": {"st.release.gpu flag, 1→st.relaxed.gpu flag, 1": true, "st.release.gpu flag, 1→st.release.cta flag, 1": true,
			"ld.acquire.gpu r0, flag→ld.relaxed.gpu r0, flag": true, "ld.acquire.gpu r0, flag→ld.acquire.cta r0, flag": true},
		"MP-fences": {"fence.acq_rel.gpu→": true, "fence.acq_rel.gpu→fence.acq_rel.cta": true, "st.volatile flag, 1→st.weak flag, 1": true,
			"st.volatile flag, 1→st.relaxed.gpu flag, 1": false, "ld.volatile r0, flag→ld.relaxed.gpu r0, flag": false},
		"SB-fence-sc": {"fence.sc.gpu→": true, "fence.sc.gpu→fence.acq_rel.gpu": true, "fence.sc.gpu→fence.sc.cta": true},
		"barrier":     {"bar.cta.sync 0→": true},
		"lock": {"atom.acquire.gpu.cas r0, lock, 0, 1→atom.relaxed.gpu.cas r0, lock, 0, 1": true,
			"atom.release.gpu.exch r2, lock, 0→atom.relaxed.gpu.exch r2, lock, 0": true},
		"MP-cluster": {"st.release.cluster flag, 1→st.release.cta flag, 1": true},
	} {
		all, err := Mutants(t.Context(), load(t, filepath.Join(examples, name+".litmus")), Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, m := range all {
			found[m.From+"→"+m.To] = m.Matters
		}
		for k, matters := range want {
			if got, ok := found[k]; !ok || got != matters {
				t.Errorf("%s: %s: %v, %v; of %v", name, k, ok, got, found)
			}
		}
	}
}

// program is a random test that asks for all final states.
func program(r *rand.Rand, sems bool, fence string) string {
	threads, places := 2+r.IntN(2), []string{"cta 0,gpu 0", "cta 1,gpu 0", "cta 0,gpu 1", "cta 0,gpu 0"}
	var rows [][]string
	registers := make([]int, threads)
	head := []string{}
	for i := range threads {
		head = append(head, fmt.Sprintf("P%d@%s", i, places[r.IntN(len(places))]))
	}
	for range 2 + r.IntN(2) {
		row := []string{}
		for i := range threads {
			row = append(row, operation(r, sems, &registers[i]))
		}
		rows = append(rows, row)
		if fence != "" {
			rows = append(rows, slices.Repeat([]string{fence}, threads))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "PTX random\n{ x=0; y=0; }\n%s ;\n", strings.Join(head, " | "))
	for _, row := range rows {
		fmt.Fprintf(&b, "%s ;\n", strings.Join(row, " | "))
	}
	b.WriteString("locations [x; y; ")
	for i, n := range registers {
		for k := range n {
			fmt.Fprintf(&b, "P%d:r%d; ", i, k)
		}
	}
	return b.String() + "]\nexists (x == 99)\n"
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// operation is a random access. With sems it may be of any ordering and scope, else it is relaxed.sys.
func operation(r *rand.Rand, sems bool, registers *int) string {
	loc, scope, value := pick(r, "x", "y"), "sys", 1+r.IntN(2)
	ld, st, at := "relaxed", "relaxed", "relaxed"
	if sems {
		scope = pick(r, "cta", "gpu", "sys")
		ld, st, at = pick(r, "weak", "relaxed", "acquire"), pick(r, "weak", "relaxed", "release"), pick(r, "relaxed", "acquire", "release", "acq_rel")
	}
	scoped := func(sem string) string {
		if sem == "weak" {
			return "weak"
		}
		return sem + "." + scope
	}
	operand := fmt.Sprint(value)
	if *registers > 0 && r.IntN(3) == 0 {
		operand = fmt.Sprintf("r%d", r.IntN(*registers))
	}
	switch k := r.IntN(8); {
	case k < 3:
		*registers++
		return fmt.Sprintf("ld.%s r%d, %s", scoped(ld), *registers-1, loc)
	case k < 6:
		return fmt.Sprintf("st.%s %s, %s", scoped(st), loc, operand)
	case k == 6 && sems:
		return pick(r, "fence.sc.", "fence.acq_rel.") + scope
	default:
		*registers++
		return fmt.Sprintf("atom.%s.%s.%s r%d, %s, %d", at, scope, pick(r, "add", "exch"), *registers-1, loc, value)
	}
}

// inTurn is the oracle: all final states if threads take turns, one instruction at a time, on one memory.
func inTurn(t *Test) map[string]bool {
	states := map[string]bool{}
	at, memory := make([]int, len(t.Threads)), make([]int64, len(t.Locations))
	regs := make([][]int64, len(t.Threads))
	for i, th := range t.Threads {
		regs[i] = slices.Clone(th.Init)
	}
	code := make([][]Instruction, len(t.Threads))
	for i, th := range t.Threads {
		code[i] = slices.DeleteFunc(slices.Clone(th.Code), func(in Instruction) bool { return in.op == opFence })
	}
	var step func()
	step = func() {
		last := true
		for i := range t.Threads {
			if at[i] == len(code[i]) {
				continue
			}
			last = false
			saved, old := slices.Clone(regs[i]), slices.Clone(memory)
			execute(&code[i][at[i]], regs[i], memory)
			at[i]++
			step()
			at[i]--
			copy(regs[i], saved)
			copy(memory, old)
		}
		if last {
			var key strings.Builder
			for _, s := range t.Shown {
				v := s.constant
				if s.loc >= 0 {
					v = memory[s.loc]
				} else if s.thread >= 0 {
					v = regs[s.thread][s.register]
				}
				fmt.Fprintf(&key, "%s=%d ", s.Name, v)
			}
			states[key.String()] = true
		}
	}
	step()
	return states
}

func execute(in *Instruction, regs, memory []int64) {
	arg := func(i int) int64 {
		if v := in.args[i]; v.reg >= 0 {
			return regs[v.reg]
		}
		return in.args[i].constant
	}
	switch in.op {
	case opLoad:
		regs[in.dst] = memory[in.loc]
	case opStore:
		memory[in.loc] = arg(0)
	case opAtomic:
		value := arg(0)
		if in.arith == "add" {
			value += memory[in.loc]
		}
		regs[in.dst] = memory[in.loc]
		memory[in.loc] = value
	}
}

func statesOf(r *Result) map[string]bool {
	states := map[string]bool{}
	for _, s := range r.States {
		states[valuesText(s.Values)+" "] = true
	}
	return states
}

func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func parsed(t *testing.T, text string) *Test {
	t.Helper()
	test, err := Parse("random", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return test
}

// TestTurns: what threads do in turn the model allows, whatever the orderings; and where all accesses are strong for the whole
// system, with fence.sc.sys between them, it allows nothing else.
func TestTurns(t *testing.T) {
	r := random(t)
	for range 40 {
		text := program(r, true, "")
		test := parsed(t, text)
		got := statesOf(checked(t, test, Options{}))
		for s := range inTurn(test) {
			if !got[s] {
				t.Fatalf("%s\ncannot end with %s", text, s)
			}
		}
		text = program(r, false, "fence.sc.sys")
		test = parsed(t, text)
		if got, want := statesOf(checked(t, test, Options{})), inTurn(test); !maps.Equal(got, want) {
			t.Fatalf("%s\n%v\nin turn %v", text, got, want)
		}
	}
}

// TestWeaker: a weaker order forbids nothing that a stronger one allows.
func TestWeaker(t *testing.T) {
	r := random(t)
	for range 25 {
		text := program(r, true, "")
		test := parsed(t, text)
		strong := statesOf(checked(t, test, Options{}))
		for _, w := range weakenings(test) {
			weak := statesOf(checked(t, w.test, Options{}))
			for s := range strong {
				if !weak[s] {
					t.Fatalf("%s\nwith %s for %s it cannot end with %s", text, w.mutant.To, w.mutant.From, s)
				}
			}
		}
	}
}

// TestPruning: to leave branches of the search early loses nothing, nor does it to leave out the rounds of loops that wait.
func TestPruning(t *testing.T) {
	r := random(t)
	tests := []*Test{}
	for range 60 {
		tests = append(tests, parsed(t, program(r, true, "")))
	}
	for _, name := range []string{"look-back", "look-back-no-fence", "last-block", "semaphore", "grid-barrier"} {
		tests = append(tests, load(t, filepath.Join(examples, name+".litmus")))
	}
	for _, test := range tests {
		early := checked(t, test, Options{})
		late := checked(t, test, Options{late: true})
		if !maps.Equal(statesOf(early), statesOf(late)) || early.Executions > late.Executions {
			t.Errorf("%s:\n%s\nwithout pruning\n%s", test.Name, early.Text(), late.Text())
		}
	}
}

// TestRounds: a loop that waits is complete with its last round, as three loads in a row for the loop show; one that counts is
// not, and says so.
func TestRounds(t *testing.T) {
	head := "PTX rounds\n{ d=0; f=0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak d, 1 | "
	loop := parsed(t, head+"LC0: ld.acquire.gpu r0, f ;\n st.release.gpu f, 1 | bne r0, 1, LC0 ;\n st.release.gpu f, 2 | ld.weak r1, d ;\nforall (P1:r1 == 1)")
	flat := parsed(t, head+"ld.acquire.gpu r2, f ;\n st.release.gpu f, 1 | ld.acquire.gpu r3, f ;\n st.release.gpu f, 2 | ld.acquire.gpu r0, f ;\n | ld.weak r1, d ;\nfilter (P1:r0 == 1)\nforall (P1:r1 == 1)")
	a, b := checked(t, loop, Options{}), checked(t, flat, Options{})
	if !a.Holds || !a.Complete || !b.Holds {
		t.Errorf("%s\n%s", a.Text(), b.Text())
	}
	counting := parsed(t, "PTX counting\n{ n=0; }\n P0@cta 0,gpu 0 ;\nLC0: ;\n red.relaxed.gpu.add n, 1 ;\n ld.relaxed.gpu r0, n ;\n blt r0, 9, LC0 ;\nexists (n == 9)")
	if r := checked(t, counting, Options{}); r.Holds || r.Complete || !strings.Contains(r.Text(), "2 rounds") {
		t.Error(r.Text())
	}
	if r := checked(t, counting, Options{Rounds: 9}); !r.Holds {
		t.Error(r.Text())
	}
}

const good = "PTX t\n{ x=0; P0:r1=2; }\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n ld.weak r0, x | st.weak x, 1 ;\nexists (P0:r0 == 1)\n"

var wrong = []struct{ from, to, says string }{
	{"PTX t", "X86 t", "1:1: "},
	{"{ x=0; P0:r1=2; }", "", "1:1: no initial values"},
	{"x=0;", "x=;", `2:5: ";"`},
	{"x=0;", "x=0; x=1;", "2:8: x has an initial value already"},
	{"x=0;", "x=&y;", "2:5: x would hold an address"},
	{"x=0;", "x=99999999999999999999;", "2:5: \"99999999999999999999\" is no number"},
	{"x=0;", "s @ warm aliases x;", `2:7: "warm" is no proxy`},
	{"x=0;", "s @ surface aliases x;", "2:23: x is not known"},
	{"P0:r1=2", "P7:r1=2", "2:8: P7:r1 has an initial value, but there is no thread P7"},
	{"P0@cta", "Q@cta", `3:2: "Q"`},
	{"P1@cta", "P0@cta", "3:19: P0 is there twice"},
	{"cta 0,gpu 0 ;", "cta 0 gpu 0 ;", `3:28: "gpu"`},
	{"ld.weak", "ldx.weak", `4:2: there is no instruction "ldx"`},
	{"ld.weak", "ld.sc.gpu", "4:2: ld cannot be of that ordering"},
	{"ld.weak", "ld.relaxed", "4:2: ld says no scope"},
	{"ld.weak", "ld.gpu", "4:2: ld says no ordering"},
	{"ld.weak", "ld.weak.gpu", "4:2: a weak ld has no scope"},
	{"ld.weak", "ld.relaxed.acquire.gpu", "4:13: .acquire is one too many"},
	{"ld.weak", "ld.mmio.relaxed.sys", "4:5: .mmio: litmus tests do not model memory-mapped"},
	{"ld.weak r0, x", "fence.proxy.async", "4:14: .async: litmus tests do not model the asynchronous proxy"},
	{"ld.weak r0, x", "fence.sc", "4:2: fence says no scope"},
	{"ld.weak r0, x", "fence.relaxed.gpu", "4:2: fence says no ordering"},
	{"ld.weak r0, x", "atom.relaxed.gpu.inc r0, x, 1", "4:19: atom cannot inc"},
	{"ld.weak r0, x", "atom.add r0, x, 1", "4:2: atom says no ordering"},
	{"ld.weak r0, x", "red.relaxed.gpu.exch x, 1", "4:18: red cannot exch"},
	{"ld.weak r0, x", "bar.cluster.sync 0", "4:6: .cluster: litmus tests do not model"},
	{"ld.weak r0, x", "bar.sync r0", `4:11: "r0" where the barrier's number`},
	{"ld.weak r0, x", "goto LC9", "4:7: P0 has no label LC9"},
	{"ld.weak r0, x", "L: L: ld.weak r0, x", "4:5: the label L is there twice"},
	{"ld.weak r0, x", "ld.weak x, r0", "4:10: x is a location where a register"},
	{"ld.weak r0, x", "ld.weak r0, r1", "4:14: r1 is a register where a location"},
	{"st.weak x, 1", "st.weak x, x", "4:29: x is a location: load it"},
	{"| st.weak x, 1", "", "4:2: this row has 1 columns for 2 threads"},
	{"st.weak x, 1 ;", "st.weak x, 1 | ;", "4:31: this row has more columns"},
	{"st.weak x, 1 ;", "st.weak x, 1", `5:1: "exists"`},
	{"exists (P0:r0 == 1)\n", "", "5:1: the file ends without a condition"},
	{"P0:r0 ==", "P0:r7 ==", "5:12: P0 has no register r7"},
	{"P0:r0 ==", "P5:r0 ==", "5:9: the test has no thread P5"},
	{"P0:r0 ==", "z ==", "5:9: z in the condition"},
	{"== 1)", "1)", `5:15: "1" behind P0:r0`},
	{"== 1)", "== 1", "6:1: the file ends in the condition"},
	{"== 1)", "== 1) x", `5:21: "x" behind the condition`},
	{"exists", "final", `5:1: "final"`},
	{"ld.weak r0, x", "(* ld", "4:2: a comment that begins here"},
	{"ld.weak r0, x", "ld.weak r0? x", `4:12: '?' has no meaning`},
}

func TestWrong(t *testing.T) {
	if _, err := Parse("t", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range wrong {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%q is not in the test", c.from)
		}
		_, err := Parse("t", []byte(text))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "t:"+c.says) {
			t.Errorf("%q: %v, want %q", c.to, err, c.says)
		}
	}
}

// TestTooLarge: what cannot be checked whole is refused, not cut.
func TestTooLarge(t *testing.T) {
	rows := strings.Repeat("ld.weak r0, x | ld.weak r0, x | ld.weak r0, x ;\n", 30)
	test := parsed(t, "PTX t\n{ x=0; }\nP0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;\n"+rows+"exists (x == 0)")
	if _, err := Check(t.Context(), test, Options{}); err == nil || !strings.Contains(err.Error(), "events") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, load(t, filepath.Join(examples, "lock.litmus")), Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	for _, c := range wrong {
		f.Add(strings.Replace(good, c.from, c.to, 1))
	}
	for _, name := range []string{"lock", "barrier", "MP-cluster", "proxy-constant-fence", "look-back"} {
		text, err := os.ReadFile(filepath.Join(examples, name+".litmus"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		test, err := Parse("t", []byte(text))
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Col < 1 || e.Pos.Line > 1+strings.Count(text, "\n") {
				t.Fatalf("%#v", err)
			}
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if r, err := Check(ctx, test, Options{Paths: 50}); err == nil {
			r.Text()
		}
	})
}
