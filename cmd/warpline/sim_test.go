package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/npy"
)

var update = flag.Bool("update", false, "write what sim explain prints into testdata, and what the commands of docs/simulator.md print into it")

const simExamples = "../../examples/sim"

// simRoom is a room with the example kernels.
func simRoom(t *testing.T) *room {
	kernels, err := filepath.Abs(simExamples)
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t)
	t.Setenv("PATH", r.dir)                          // a ptxas there would tell registers
	files, err := filepath.Glob(kernels + "/s[ou]*") // softmax, sum
	r.check(err)
	own, err := filepath.Glob(kernels + "/../kernels/s*")
	r.check(err)
	if files = append(files, own...); len(files) != 11 {
		t.Fatalf("the examples are %v", files)
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		r.check(err)
		r.file(filepath.Base(f), content)
	}
	for _, name := range []string{"MP-fences.litmus", "lock.litmus"} {
		content, err := os.ReadFile(filepath.Join(kernels, "..", "litmus", name))
		r.check(err)
		r.file(name, content)
	}
	return r
}

func (r *room) npy(name, dtype string, shape []int, data any) {
	r.t.Helper()
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	r.check(err)
	var b bytes.Buffer
	r.check(npy.Write(&b, &npy.Array{DType: dtype, Shape: shape, Data: raw}))
	r.file(name, b.Bytes())
}

func (r *room) floats(name string) []float32 {
	r.t.Helper()
	raw, err := os.ReadFile(name)
	r.check(err)
	a, err := npy.Parse(raw)
	r.check(err)
	out := make([]float32, len(a.Data)/4)
	_, err = binary.Decode(a.Data, binary.LittleEndian, out)
	r.check(err)
	if a.DType != "<f4" {
		r.t.Errorf("%s has %s", name, a.DType)
	}
	return out
}

// TestSimSum compares the sums with those in float64, under seeds, schedules and cards.
func TestSimSum(t *testing.T) {
	r := simRoom(t)
	const n = 1000
	x := make([]float32, n)
	var want [4]float64
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
		want[i/256] += float64(x[i])
	}
	r.npy("x.npy", "<f4", []int{10, 100}, x)
	for _, flags := range []string{"", "--seed 7", "--schedule independent --seed 3", "--check none", "--card rtx-4090", "--check racecheck"} {
		args := append([]string{"sim", "run", "sum.ptx", "--grid", "4", "--block", "256", "@x.npy", "f32[4]", "i32:1000", "--out", "1=y.npy"}, strings.Fields(flags)...)
		status, stdout, stderr := command(t.Context(), args...)
		if status != exitDone || stderr != "" || !strings.Contains(stdout, "no finding by memcheck") {
			t.Fatalf("%s: status %d\n%s%s", flags, status, stdout, stderr)
		}
		for i, got := range r.floats("y.npy") {
			if math.Abs(float64(got)-want[i]) > 1e-5 {
				t.Errorf("%s: block %d has %v, want %v", flags, i, got, want[i])
			}
		}
	}
}

// TestSimBug wants both mistakes of sum_bug.cu found where they are.
func TestSimBug(t *testing.T) {
	simRoom(t)
	args := []string{"sim", "run", "sum_bug.ptx", "--grid", "4", "--block", "256", "f32[1000]=1", "f32[4]", "i32:1000", "--out", "1=y.npy"}
	status, stdout, stderr := command(t.Context(), args...)
	if status != exitFound || stderr != "" {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{
		"racecheck: read after a write by another thread", "./sum_bug.cu:13  part[t] += part[t + o];",
		"memcheck: out-of-bounds read", "./sum_bug.cu:8  part[t] = i <= n ? x[i] : 0;", "thread    232,0,0 of block 3,0,0 in sum",
		"0 bytes past the end of the allocation of 4000 bytes", "made by argument 0, f32[1000]", "ld.global.f32", "CUDA error 700, illegal address", "y.npy is not written",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if _, err := os.Stat("y.npy"); err == nil {
		t.Error("y.npy was written")
	}
	// With one element more than n the other mistake alone is left.
	args[7] = "f32[1024]=1"
	if status, stdout, _ := command(t.Context(), args...); status != exitFound || strings.Contains(stdout, "memcheck:") || !strings.Contains(stdout, "racecheck:") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

func TestSimInitcheck(t *testing.T) {
	simRoom(t)
	status, stdout, _ := command(t.Context(), "sim", "run", "sum.ptx", "--block", "256", "f32[256]", "f32[2]=1", "i32:256")
	if status != exitFound || !strings.Contains(stdout, "initcheck:") || !strings.Contains(stdout, "sum.cu:8") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if status, stdout, _ := command(t.Context(), "sim", "run", "sum.ptx", "--block", "256", "f32[256]", "f32[2]", "i32:256", "--check", "racecheck"); status != exitDone {
		t.Errorf("status %d\n%s", status, stdout)
	}
	status, stdout, _ = command(t.Context(), "sim", "run", "sum.ptx", "--block", "256", "f32[256]=1", "f32[2]", "i32:256", "--out", "1=y.npy")
	if status != exitDone || !strings.Contains(stdout, "1 of 2 elements were never written") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// half stores its argument's elements of 16 bits times two.
const half = `.version 7.4
.target sm_80
.address_size 64
.visible .entry half(.param .u64 x)
.reqntid 4, 1, 1
{
.reg .b64 %x, %o; .reg .b32 %t, %v, %two;
ld.param.u64 %x, [x];
mov.u32 %t, %tid.x;
mul.wide.u32 %o, %t, 4;
add.s64 %x, %x, %o;
ld.global.b32 %v, [%x];
mov.b32 %two, 0x40004000;
fma.rn.bf16x2 %v, %v, %two, %v;
st.global.b32 [%x], %v;
ret;
}
`

// TestSimHalf converts both ways: 16 bits are float32 in files.
func TestSimHalf(t *testing.T) {
	r := simRoom(t)
	r.file("half.ptx", []byte(half))
	r.npy("x.npy", "<f4", []int{2, 4}, []float32{1, 2, -3, 0.5, 100, 0, -1, 8})
	status, stdout, stderr := command(t.Context(), "sim", "run", "half.ptx", "bf16@x.npy", "--out", "0=y.npy", "--json")
	if status != exitDone {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if got, want := r.floats("y.npy"), []float32{3, 6, -9, 1.5, 300, 0, -3, 24}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSimJSON(t *testing.T) {
	simRoom(t)
	status, stdout, stderr := command(t.Context(), "sim", "run", "sum_bug.ptx", "--grid", "4", "--block", "256", "f32[1000]=1", "f32[4]", "i32:1000", "--json")
	if status != exitFound || !strings.Contains(stderr, "racecheck:") {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	lines := decode(t, stdout)
	for _, f := range lines[:len(lines)-1] {
		has(t, f, "finding", "check", "kernel", "block", "thread", "ptx_line", "ptx", "source", "source_text", "inlined_at", "inlined_into", "message", "space", "address", "size", "allocation", "count")
	}
	final := lines[len(lines)-1]
	has(t, final, "final", "kernel", "target", "card", "grid", "block", "checks", "findings", "fault", "instructions", "lane_instructions", "lanes", "classes", "branches",
		"divergent_branches", "global_requests", "global_sectors", "shared_requests", "shared_wavefronts", "bank_conflicts", "registers", "registers_by", "shared_bytes",
		"occupancy", "output", "outs", "counted_blocks", "sample_error", "model", "lines", "advice", "against", "device", "notes")
	if final["findings"] != float64(len(lines)-1) || final["final"] != true || len(lines) < 3 {
		t.Errorf("%d lines end with %v", len(lines), final)
	}
	for _, args := range []string{"sim explain sum.ptx --json", "sim cards --json"} {
		if status, stdout, stderr := command(t.Context(), strings.Fields(args)...); status != exitDone || len(decode(t, stdout)) == 0 || stderr == "" {
			t.Errorf("%s: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}

// TestSimCounters compares with figures derived by hand: 4 blocks of 8 warps read 1000 floats, which are 125 sectors, and
// write one each.
func TestSimCounters(t *testing.T) {
	simRoom(t)
	_, stdout, _ := command(t.Context(), "sim", "run", "sum.ptx", "--grid", "4", "--block", "256", "f32[1000]=1", "f32[4]", "i32:1000", "--json")
	lines := decode(t, stdout)
	final := lines[len(lines)-1]
	for key, want := range map[string]float64{"global_requests": 32 + 4, "global_sectors": 125 + 4, "bank_conflicts": 0, "shared_bytes": 1024,
		// A block writes 8 times, then 4+2+1+5×1 warps read twice and write once, and one reads the result.
		"shared_requests": 4 * (8 + 3*12 + 1), "shared_wavefronts": 4 * (8 + 3*12 + 1)} {
		if final[key] != want {
			t.Errorf("%s is %v, want %v", key, final[key], want)
		}
	}
}

// TestSimModel: a run says what it would take and what its lines did, and the lines add up to its counters.
func TestSimModel(t *testing.T) {
	simRoom(t)
	run := func(flags string) map[string]any {
		args := append([]string{"sim", "run", "sum.ptx", "--grid", "4000", "--block", "256", "f32[1024000]=1", "f32[4000]", "i32:1024000", "--json"}, strings.Fields(flags)...)
		status, stdout, stderr := command(t.Context(), args...)
		if status != exitDone || !strings.Contains(stderr, "by the model of the card, not measured") {
			t.Fatalf("%s: status %d\n%s%s", flags, status, stdout, stderr)
		}
		lines := decode(t, stdout)
		return lines[len(lines)-1]
	}
	all, some := run(""), run("--sample 8")
	model := all["model"].(map[string]any)
	// 1,024,000 floats are read and 4000 written: they fit in L2, and come from memory once.
	if model["modelled"] != true || model["memory_bytes"] != 4.0*(1024000+4000) || model["seconds"].(float64) < 1.5e-6 || all["counted_blocks"] != 4000.0 {
		t.Errorf("%v", model)
	}
	sums := map[string]float64{}
	for _, l := range all["lines"].([]any) {
		for _, key := range []string{"global_sectors", "shared_wavefronts", "divergent_branches"} {
			sums[key] += l.(map[string]any)[key].(float64)
		}
	}
	for key, sum := range sums {
		if sum != all[key] || sum == 0 {
			t.Errorf("%s: lines have %v, all %v", key, sum, all[key])
		}
	}
	for _, key := range []string{"instructions", "global_sectors", "shared_wavefronts"} {
		if some[key] != all[key] || some["counted_blocks"] != 8.0 {
			t.Errorf("%s of a sample is %v, of all %v", key, some[key], all[key])
		}
	}
	if e, ok := some["sample_error"].(map[string]any); !ok || e["instructions"] != 0.0 || e["global_sectors"] != 0.0 || all["sample_error"] != nil {
		t.Errorf("off by %v and %v", some["sample_error"], all["sample_error"])
	}
	warm := run("--sample 8 --warm")["model"].(map[string]any)
	if warm["warm"] != true || warm["memory_bytes"] != 0.0 || model["warm"] != false || warm["seconds"].(float64) >= model["seconds"].(float64) {
		t.Errorf("warm: %v", warm)
	}
	other := run("--against sum.ptx")["against"].(map[string]any)
	for _, c := range other["counters"].([]any) {
		if c := c.(map[string]any); c["this"] != c["other"] {
			t.Errorf("a kernel differs from itself: %v", c)
		}
	}
	if other["file"] != "sum.ptx" || other["kernel"] != "sum" || other["findings"] != 0.0 {
		t.Errorf("%v", other)
	}
	if grid := run("--against sum.ptx --against-grid 2000")["against"].(map[string]any); !reflect.DeepEqual(grid["grid"], []any{2000.0, 1.0, 1.0}) ||
		!reflect.DeepEqual(grid["block"], []any{256.0, 1.0, 1.0}) {
		t.Errorf("%v", grid)
	}
	if status, stdout, _ := command(t.Context(), "sim", "run", "sum.ptx", "--grid", "4", "--block", "256", "f32[1000]=1", "f32[4]", "i32:1000", "--against", "sum_bug.ptx"); status != exitFound ||
		!strings.Contains(stdout, "the other has 3 findings") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

func TestSimExplain(t *testing.T) {
	golden, err := filepath.Abs("testdata/explain_sum.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := simRoom(t)
	status, stdout, stderr := command(t.Context(), "sim", "explain", "sum.ptx")
	if status != exitDone {
		t.Fatal(stderr)
	}
	if *update {
		r.check(os.WriteFile(golden, []byte(stdout), 0o666))
	}
	want, err := os.ReadFile(golden)
	r.check(err)
	if stdout != string(want) {
		t.Errorf("it prints\n%s\nwant\n%s", stdout, want)
	}
	if status, stdout, _ := command(t.Context(), "sim", "cards"); status != exitDone || !strings.Contains(stdout, "gtx-1650") || !strings.Contains(stdout, "b200") {
		t.Errorf("%d\n%s", status, stdout)
	}
}

// TestSimDocs runs the commands of docs/simulator.md and docs/kernels.md, which stand after a dollar, and compares what they print.
func TestSimDocs(t *testing.T) {
	for page, least := range map[string]int{"simulator.md": 3, "kernels.md": 2} {
		t.Run(page, func(t *testing.T) { simDoc(t, page, least) })
	}
}

func simDoc(t *testing.T, name string, least int) {
	page, err := filepath.Abs("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	r := simRoom(t)
	parts := strings.Split(string(text), "```console\n$ warpline ")
	if len(parts) <= least {
		t.Fatalf("%d commands", len(parts)-1)
	}
	got := parts[0]
	for _, part := range parts[1:] {
		block, rest, _ := strings.Cut(part, "```")
		line, shown, _ := strings.Cut(block, "\n")
		r.types(shown)
		status, stdout, stderr := command(t.Context(), strings.Fields(line)...)
		if status == exitFailed {
			t.Errorf("%s: %s", line, stderr)
		}
		got += "```console\n$ warpline " + line + "\n" + stdout + "```" + rest
	}
	if *update {
		r.check(os.WriteFile(page, []byte(got), 0o666))
	} else if got != string(text) {
		t.Errorf("docs/%s should be\n%s", name, got)
	}
}

// types makes the standard input what a shown session has behind its prompts.
func (r *room) types(shown string) {
	var lines strings.Builder
	for line := range strings.Lines(shown) {
		if typed, ok := strings.CutPrefix(line, "(sim) "); ok {
			lines.WriteString(typed)
		}
	}
	r.file("typed", []byte(lines.String()))
	f, err := os.Open("typed")
	r.check(err)
	stdin := os.Stdin
	os.Stdin = f
	r.t.Cleanup(func() { os.Stdin = stdin; f.Close() })
}

var badSim = []struct{ args, names string }{
	{"sim nothing", "nothing"},
	{"sim run", "FILE.ptx"},
	{"sim run none.ptx", "none.ptx"},
	{"sim run .", "folder"},
	{"sim run text.ptx", "text.ptx:1:1: "},
	{"sim run empty.ptx", "empty.ptx"},
	{"sim run nokernel.ptx", "no kernel"},
	{"sim run newer.ptx --block 1", "sm_90"},
	{"sim run invalid.ptx --block 1", "invalid.ptx:7:1: "},
	{"sim run two.ptx --block 1", "a, b"},
	{"sim run two.ptx --block 1 --kernel c", `"c"`},
	{"sim run sum.ptx f32[256]=1 f32[1] i32:256", "--block"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1]", "3 parameters"},
	{"sim run sum.ptx --block 256", "3 parameters"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] i32:256 null", "4 arguments"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] i64:256", "8 bytes"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] f32:256", "float"},
	{"sim run sum.ptx --block 256 f32[256]=1 i32:5 i32:256", "4 bytes"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] null", "address"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] f32[1]", "address"},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] 256", `"256"`},
	{"sim run sum.ptx --block 256 f32[256]=1 f32[1] i32:3000000000", "does not fit"},
	{"sim run sum.ptx --block 256 f32[0] f32[1] i32:256", `"0"`},
	{"sim run sum.ptx --block 256 g32[4] f32[1] i32:256", "g32"},
	{"sim run sum.ptx --block 256 f32[600000000] f32[1] i32:256", "bytes"},
	{"sim run sum.ptx --block 256 u8[600000000] u8[600000000] i32:256", "bytes"},
	{"sim run sum.ptx --block 256 @none.npy f32[1] i32:256", "none.npy"},
	{"sim run sum.ptx --block 256 @text.ptx f32[1] i32:256", "text.ptx"},
	{"sim run sum.ptx --block 256 @zero.npy f32[1] i32:256", "no elements"},
	{"sim run sum.ptx --block 256 bf16@int.npy f32[1] i32:256", "i32"},
	{"sim run sum.ptx --block 256 f32@int.npy f32[1] i32:256", "f32"},
	{"sim run sum.ptx --block 0 f32[256]=1 f32[1] i32:256", "--block 0"},
	{"sim run sum.ptx --block 1,2,3,4 f32[256]=1 f32[1] i32:256", "4 numbers"},
	{"sim run sum.ptx --block 2048 f32[256]=1 f32[1] i32:256", "2048"},
	{"sim run sum.ptx --block 256 --grid x f32[256]=1 f32[1] i32:256", `"x"`},
	{"sim run sum.ptx --block 256 --grid 1,70000 f32[256]=1 f32[1] i32:256", "70000"},
	{"sim run sum.ptx --block 256 --shared -1 f32[256]=1 f32[1] i32:256", "--shared is -1"},
	{"sim run sum.ptx --block 256 --shared 999999 f32[256]=1 f32[1] i32:256", "shared memory"},
	{"sim run sum.ptx --block 256 --card p100 f32[256]=1 f32[1] i32:256", "p100"},
	{"sim run sum.ptx --block 256 --card t4 f32[256]=1 f32[1] i32:256", "7.5"},
	{"sim run sum.ptx --block 256 --check race f32[256]=1 f32[1] i32:256", "race"},
	{"sim run sum.ptx --block 256 --schedule x f32[256]=1 f32[1] i32:256", "x"},
	{"sim run sum.ptx --block 256 --numerics x f32[256]=1 f32[1] i32:256", "x"},
	{"sim run sum.ptx --block 256 --seed -1 f32[256]=1 f32[1] i32:256", "-1"},
	{"sim run sum.ptx --block 256 --step-limit -1 f32[256]=1 f32[1] i32:256", "-1"},
	{"sim run sum.ptx --meta none.json f32[256]=1 f32[1] i32:256", "none.json"},
	{"sim run sum.ptx --meta text.ptx f32[256]=1 f32[1] i32:256", "metadata"},
	{"sim run sum.ptx --block 256 --out 1= f32[256]=1 f32[1] i32:256", "K=FILE"},
	{"sim run sum.ptx --block 256 --out x=y.npy f32[256]=1 f32[1] i32:256", `"x"`},
	{"sim run sum.ptx --block 256 --out 3=y.npy f32[256]=1 f32[1] i32:256", "0 to 2"},
	{"sim run sum.ptx --block 256 --out 2=y.npy f32[256]=1 f32[1] i32:256", "not a buffer"},
	{"sim run sum.ptx --block 256 --out 0=y.npy --out 1=y.npy f32[256]=1 f32[1] i32:256", "same file"},
	{"sim run sum.ptx --block 256 --out 1=none/y.npy f32[256]=1 f32[1] i32:256", "none/y.npy"},
	{"sim run sum.ptx --block 256 --sample -1 f32[256]=1 f32[1] i32:256", "--sample is -1"},
	{"sim run sum.ptx --block 256 --lines -1 f32[256]=1 f32[1] i32:256", "--lines is -1"},
	{"sim run sum.ptx --block 256 --sample 4 --out 1=y.npy f32[256]=1 f32[1] i32:256", "--sample"},
	{"sim run sum.ptx --block 256 --against none.ptx f32[256]=1 f32[1] i32:256", "none.ptx"},
	{"sim run sum.ptx --block 256 --against half.ptx f32[256]=1 f32[1] i32:256", "half"},
	{"sim run half.ptx --block 8 f32[4]=1", "half"},
	{"sim run sum.ptx --against-grid 4", "--against"},
	{"sim run sum.ptx --against sum.ptx --block 256 f32[256]=1 f32[1] i32:256 --against-grid x", "grid"},
	{"sim explain", "FILE.ptx"},
	{"sim explain none.ptx", "none.ptx"},
	{"sim explain sum.ptx --card p100", "p100"},
	{"sim cards all", "all"},
	{"sim debug", "FILE.ptx"},
	{"sim debug none.ptx", "none.ptx"},
	{"sim debug sum.ptx --block 256 f32[256]=1 f32[1]", "3 parameters"},
	{"sim debug sum.ptx --block 256 --shared -1 f32[256]=1 f32[1] i32:256", "--shared is -1"},
	{"sim debug invalid.ptx --block 1", "invalid.ptx:7:1: "},
	{"sim litmus", "FILE"},
	{"sim litmus none.litmus", "none.litmus"},
	{"sim litmus .", "folder"},
	{"sim litmus text.ptx", "text.ptx:1:1: "},
	{"sim litmus lock.litmus wrong.litmus", "wrong.litmus:3:19: "},
	{"sim litmus large.litmus", "large.litmus:1:1: an execution with 91 events"},
	{"sim litmus lock.litmus --rounds 0", "--rounds is 0"},
}

func TestSimBad(t *testing.T) {
	r := simRoom(t)
	head := ".version 7.4\n.target sm_80\n.address_size 64\n"
	r.file("text.ptx", []byte("this is not PTX"))
	r.file("empty.ptx", nil)
	r.file("nokernel.ptx", []byte(head))
	r.file("newer.ptx", []byte(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"))
	r.file("invalid.ptx", []byte(head+".visible .entry k()\n{\n.reg .f32 %f;\nadd.rn.pred %f, %f, %f;\nret;\n}\n"))
	r.file("two.ptx", []byte(head+".visible .entry a()\n{\nret;\n}\n.visible .entry b()\n{\nret;\n}\n"))
	r.file("half.ptx", []byte(half))
	r.file("wrong.litmus", []byte("PTX wrong\n{ x=0; }\n P0@cta 0,gpu 0 | Q ;\n"))
	r.file("large.litmus", []byte("PTX large\n{ x=0; }\nP0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n"+strings.Repeat("ld.weak r0, x | ld.weak r0, x ;\n", 45)+"exists (x == 0)\n"))
	r.npy("zero.npy", "<f4", []int{0, 3}, []float32{})
	r.npy("int.npy", "<i4", []int{2}, []int32{1, 2})
	for _, c := range badSim {
		status, stdout, stderr := command(t.Context(), strings.Fields(c.args)...)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		if status != exitFailed || stdout != "" || len(lines) != 2 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasPrefix(lines[1], "hint: ") || !strings.Contains(stderr, c.names) {
			t.Errorf("%s: status %d, want %q in two lines\n%s\n%s", c.args, status, c.names, stdout, stderr)
		}
		if len(lines[0]) < 15 || len(lines[1]) < 15 {
			t.Errorf("%s:\n%s", c.args, stderr)
		}
	}
}
