package simrun

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/npy"
)

func TestWords(t *testing.T) {
	le := func(v any) []byte { b, _ := binary.Append(nil, binary.LittleEndian, v); return b }
	for _, c := range []struct {
		text  string
		kind  wordKind
		desc  string
		value []byte
		size  int
	}{
		{"null", null, "null", nil, 0},
		{"i32:5", scalar, "i32", le(int32(5)), 0},
		{"i32:-5", scalar, "i32", le(int32(-5)), 0},
		{"u32:0xffffffff", scalar, "u32", le(uint32(math.MaxUint32)), 0},
		{"i8:-128", scalar, "i8", []byte{0x80}, 0},
		{"u16:65535", scalar, "u16", []byte{0xff, 0xff}, 0},
		{"u64:0", scalar, "u64", make([]byte, 8), 0},
		{"i64:-9223372036854775808", scalar, "i64", le(int64(math.MinInt64)), 0},
		{"f32:1e-5", scalar, "f32", le(float32(1e-5)), 0},
		{"f64:1e-5", scalar, "f64", le(1e-5), 0},
		{"f32:-inf", scalar, "f32", []byte{0, 0, 0x80, 0xff}, 0},
		{"f16:1.5", scalar, "f16", []byte{0, 0x3e}, 0},
		{"f16:65504", scalar, "f16", []byte{0xff, 0x7b}, 0},
		{"bf16:1.5", scalar, "bf16", []byte{0xc0, 0x3f}, 0},
		{"bf16:inf", scalar, "bf16", []byte{0x80, 0x7f}, 0},
		{"bool:1", scalar, "bool", []byte{1}, 0},
		{"hex:0001ff", scalar, "struct", []byte{0, 1, 255}, 0},
		{"i32:5,f32:1.5", scalar, "struct", []byte{5, 0, 0, 0, 0, 0, 0xc0, 0x3f}, 0},
		{"u8:1,f64:1,u16:7", scalar, "struct", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 7, 0, 0, 0, 0, 0, 0, 0}, 0},
		{"u8:1,u8:2,u8:3", scalar, "struct", []byte{1, 2, 3}, 0},
		{"f32[4096,128]", newBuffer, "f32[4096,128]", nil, 4 * 4096 * 128},
		{"f64[3]=-0.5", newBuffer, "f64[3]", le(-0.5), 24},
		{"bf16[7,1]=1.5", newBuffer, "bf16[7,1]", []byte{0xc0, 0x3f}, 14},
		{"u8[1]=255", newBuffer, "u8[1]", []byte{255}, 1},
		{"@a:b[1].npy", fromFile, "", nil, 0},
		{"bf16@q.npy", fromFile, "bf16", nil, 0},
	} {
		w, err := parseWord(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if w.kind != c.kind || !bytes.Equal(w.value, c.value) || w.bytes != c.size || c.kind != fromFile && w.describe() != c.desc {
			t.Errorf("%q: %+v, %d bytes, %s", c.text, w, w.bytes, w.describe())
		}
	}
}

func TestBadWords(t *testing.T) {
	for _, s := range []string{"", "5", "nul", "i32:", "i32:2147483648", "i32:1.5", "u32:-1", "u8:256", "bool:2", "f32:1e99", "f32:x", "f16:65520",
		"bf16:3.4e38", "f128:1", ":5", "[4]", "f32[]", "f32[0]", "f32[-1]", "f32[4", "f32[4]x", "f32[4]=", "f32[4]=x", "f32[4,]", "q[4]", "@", "f32@a.npy",
		"f32[1073741824]", "f32[65536,65536,65536,65536]", "u8[9999999999999999999]",
		"hex:", "hex:1", "hex:0g", "i32:5,", "i32:5,6", ",i32:5", "i32:1,q:2"} {
		if w, err := parseWord(s); err == nil {
			t.Errorf("%q is taken for %+v", s, w)
		}
	}
}

func FuzzWord(f *testing.F) {
	for _, s := range []string{"null", "i32:5", "f32[4,5]=1e-5", "bf16@q.npy", "@a.npy", "f16:nan"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := parseWord(s)
		if err != nil || w.kind == fromFile {
			return
		}
		if n := w.bytes; n < 0 || n > maxBuffers || w.kind == newBuffer && (n == 0 || w.value != nil && n%len(w.value) != 0) {
			t.Errorf("%q: %+v of %d bytes", s, w, n)
		}
	})
}

// TestHalves compares with bit patterns of IEEE 754 and of bfloat16, ties included.
func TestHalves(t *testing.T) {
	var data []byte
	for _, f := range []float32{1, -2, 65504, 1.0009765625, 1.00048828125, 1.00390625} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	for name, want := range map[string][]uint16{
		"f16":  {0x3c00, 0xc000, 0x7bff, 0x3c01, 0x3c00, 0x3c04},
		"bf16": {0x3f80, 0xc000, 0x4780, 0x3f80, 0x3f80, 0x3f80},
	} {
		got := narrow(elems[name], data)
		for i, w := range want {
			if h := binary.LittleEndian.Uint16(got[2*i:]); h != w {
				t.Errorf("%s: element %d is %#04x, want %#04x", name, i, h, w)
			}
		}
		if back := narrow(elems[name], widen(elems[name], got)); !bytes.Equal(back, got) {
			t.Errorf("%s does not come back from float32: %x, %x", name, got, back)
		}
	}
}

// takesAll stores its parameters, one by one, in 16 bytes each.
func takesAll() string {
	types := []string{"u64", "u32", "s32", "f32", "f64", "u16", "b16", "u8", "b64", "s64"}
	var head, body strings.Builder
	for i, typ := range types {
		fmt.Fprintf(&head, ", .param .%s p%d", typ, i)
		reg, load := "%h", strings.NewReplacer("b16", "u16", "b64", "u64").Replace(typ)
		switch typ {
		case "u64", "b64", "s64":
			reg = "%d"
		case "u32", "s32":
			reg = "%r"
		case "f32":
			reg = "%f"
		case "f64":
			reg = "%g"
		}
		fmt.Fprintf(&body, "ld.param.%s %s, [p%d];\nst.global.%s [%%o+%d], %s;\n", load, reg, i, load, 16*i, reg)
	}
	return ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry all(.param .u64 out" + head.String() + ")\n.reqntid 1\n{\n" +
		".reg .b64 %o, %d; .reg .b32 %r; .reg .b16 %h; .reg .f32 %f; .reg .f64 %g;\nld.param.u64 %o, [out];\n" + body.String() + "ret;\n}\n"
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestParameters runs a kernel that writes down what it was given.
func TestParameters(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "all.ptx", takesAll())
	r, err := Run(t.Context(), Config{File: "all.ptx", Shared: -1, Outs: []string{"0=out.npy"}, Args: []string{"u8[160]=0",
		"null", "u32:4000000000", "i32:-7", "f32:1.25", "f64:-1e300", "u16:65535", "bf16:1.5", "u8:200", "u64:0x123456789abcdef0", "i64:-1"}})
	if err != nil || r.Found != 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	raw, err := os.ReadFile("out.npy")
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []any{uint64(0), uint32(4000000000), int32(-7), float32(1.25), -1e300, uint16(65535), uint16(0x3fc0), uint8(200), uint64(0x123456789abcdef0), int64(-1)} {
		want, _ := binary.Append(nil, binary.LittleEndian, v)
		if got := a.Data[16*i : 16*i+16]; !bytes.HasPrefix(got, want) || len(bytes.TrimRight(got, "\x00")) > len(want) {
			t.Errorf("parameter %d: %x, want %x", i, got, want)
		}
	}
}

const tritonLike = `.version 7.4
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry k(.param .u64 out, .param .u64 scratch, .param .u64 profile)
{
.reg .b64 %o, %s; .reg .b32 %t, %n; .reg .pred %p;
ld.param.u64 %o, [out];
ld.param.u64 %s, [scratch];
mov.u32 %t, %tid.x;
mov.u32 %n, %ntid.x;
setp.ne.u32 %p, %t, 0;
@%p ret;
st.shared.u32 [global_smem+60], %n;
ld.shared.u32 %n, [global_smem+60];
st.global.u32 [%o], %n;
st.global.u32 [%s+4], %n;
ret;
}
`

// TestMeta takes threads, shared memory and scratch pointers from Triton's metadata.
func TestMeta(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", tritonLike)
	write(t, "k.json", `{"name": "k", "num_warps": 2, "num_ctas": 1, "shared": 64, "global_scratch_size": 8, "profile_scratch_size": 0}`)
	c := Config{File: "k.ptx", Meta: "k.json", Shared: -1, Args: []string{"i32[1]"}, Outs: []string{"0=o.npy"}}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Found != 0 || r.Block != [3]int{64, 1, 1} || r.Shared != 64 || len(r.Outs) != 1 || r.Outs[0].First[0] != "64" {
		t.Errorf("%+v", r)
	}
	c.Shared = 32 // stated, hence stronger than the metadata
	if r, err = Run(t.Context(), c); err != nil || r.Found != 1 || r.Findings[0].Check != "memcheck" || r.Findings[0].Space != "shared" {
		t.Errorf("%v, %+v", err, r)
	}
	for _, bad := range []string{"", "[]", "{}", `{"num_warps": 33}`, `{"num_warps": 1, "shared": -1}`, `{"num_warps": 1, "num_ctas": 2}`, `{"num_warps": "x"}`,
		`{"name": "k", "num_warps": 1, "global_scratch_size": 2000000000, "profile_scratch_size": 0}`} {
		write(t, "k.json", bad)
		var e *advice.Error
		if r, err := Run(t.Context(), c); !errors.As(err, &e) {
			t.Errorf("%s: %v, %+v", bad, err, r)
		}
	}
}

// TestStoppedHalfway: what an interrupted kernel did is told, and no file is written.
func TestStoppedHalfway(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r;
	.reg .pred %q;
	ld.param.u64 %a, [p];
	mov.u32 %r, %ctaid.x;
	setp.eq.u32 %q, %r, 3;
@!%q	bra E;
L:	ld.volatile.global.u32 %r, [%a];
	add.u32 %r, %r, 1;
	st.volatile.global.u32 [%a], %r;
	bra L;
E:	ret;
}
`)
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	c := Config{File: "k.ptx", Grid: "4", Block: "1", Args: []string{"i32[1]=0"}, Outs: []string{"0=o.npy"}, Progress: func(kernel string, done, all int64) {
		if told++; kernel != "k" || all != 4 || done > 3 {
			t.Errorf("%s: %d of %d", kernel, done, all)
		}
		if done == 3 {
			cancel()
		}
	}}
	r, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || r == nil || r.Found != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "interrupted") || told == 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := os.Stat("o.npy"); err == nil {
		t.Error("the output was written")
	}
}

// TestInterrupted leaves an endless kernel when its context ends.
func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nL: bra L;\n}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Config{File: "k.ptx", Block: "1", StepLimit: 1e5}
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r, err := Run(t.Context(), c)
	if err != nil || r.Found != 1 || r.Fault == nil || r.Fault.Code != int(gpusim.LaunchTimeout) || r.Findings[0].Check != gpusim.LaunchTimeout.String() {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestChecks(t *testing.T) {
	for s, want := range map[string]gpusim.Check{"": gpusim.AllChecks, "all": gpusim.AllChecks, "none": gpusim.Memcheck,
		"racecheck": gpusim.Memcheck | gpusim.Racecheck, "memcheck,initcheck": gpusim.Memcheck | gpusim.Initcheck} {
		if c, err := ParseChecks(s); err != nil || c != want {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	}
	for _, s := range []string{"race", ",", "all,none", "memcheck,"} {
		if c, err := ParseChecks(s); err == nil {
			t.Errorf("%q: %v", s, c)
		}
	}
}

// TestLong says how a kernel gets more steps.
func TestLong(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %r;\nmov.u64 %r, 0;\nL: add.u64 %r, %r, 1;\nbra L;\n}\n")
	r, err := Run(t.Context(), Config{File: "k.ptx", Block: "1", StepLimit: 1e5})
	if err != nil || r.Found != 1 || !strings.Contains(r.Findings[0].PTX, "bra L") || !strings.Contains(strings.Join(r.Notes, ";"), "--step-limit than 100000") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestInlined finds the caller of inlined code, as Triton's library functions are.
func TestInlined(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "lib.py", "a\nthe library\n")
	write(t, "k.py", "a\nb\nthe kernel\n")
	write(t, "k.ptx", `.version 7.4
.target sm_80
.address_size 64
.visible .entry k()
{
.loc 1 3 0
$L__func_begin0:
.loc 2 2 5, function_name $L__info_string0, inlined_at 1 3 7
trap;
.loc 1 1 0
ret;
}
.file 1 "k.py"
.file 2 "lib.py"
.section .debug_str
{
$L__info_string0:
.b8 107,0
}
`)
	r, err := Run(t.Context(), Config{File: "k.ptx", Block: "1"})
	if err != nil || r.Found != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	if f := r.Findings[0]; f.Source != "lib.py:2" || f.SourceText != "the library" || f.Inlined != "k.py:3" || f.PTX != "trap;" || f.Line != 9 || !strings.Contains(f.Text(), "inlined into k.py:3  the kernel") {
		t.Errorf("%+v", f)
	}
}

// TestLineTable finds the source by a table of lines, beside the file or behind its text, and refuses one of another module.
func TestLineTable(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"src", "ptx/sm_80"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "ptx"))
	const text = ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\ntrap;\nret;\n}\n"
	const table = "// source lines\n//1 src/k.cu\n//k  1:2*2\n"
	write(t, "../src/k.cu", "a\nthe source\n")
	write(t, "sm_80/k.ptx", text)
	write(t, "sm_80/k.lines", table)
	write(t, "sm_80/both.ptx", text+table)
	for _, file := range []string{"sm_80/k.ptx", "sm_80/both.ptx"} {
		r, err := Run(t.Context(), Config{File: file, Block: "1"})
		if err != nil || r.Found != 1 {
			t.Fatalf("%s: %v, %+v", file, err, r)
		}
		if f := r.Findings[0]; f.Source != "src/k.cu:2" || f.SourceText != "the source" || f.PTX != "trap;" || f.Line != 6 {
			t.Errorf("%s: %+v", file, f)
		}
	}
	write(t, "sm_80/k.lines", strings.Replace(table, "1:2*2", "1:2*3", 1))
	_, err := Run(t.Context(), Config{File: "sm_80/k.ptx", Block: "1"})
	var e *advice.Error
	if !errors.As(err, &e) || !strings.Contains(e.Error(), "sm_80/k.lines: table of source lines") {
		t.Errorf("a table of another module: %v", err)
	}
}

// TestInlinedLevels: each level at which a function was inlined is shown.
func TestInlinedLevels(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.cu", "a\nthe innermost\nthe middle\nthe outer\nthe kernel\n")
	write(t, "k.ptx", `.version 7.4
.target sm_80
.address_size 64
.visible .entry k()
{
.loc 1 5 1
$L__func_begin0:
.loc 1 4 2, function_name $L__info_string0, inlined_at 1 5 1
.loc 1 3 3, function_name $L__info_string0, inlined_at 1 4 2
.loc 1 2 4, function_name $L__info_string0, inlined_at 1 3 3
trap;
ret;
}
.file 1 "k.cu"
.section .debug_str
{
$L__info_string0:
.b8 107,0
}
`)
	r, err := Run(t.Context(), Config{File: "k.ptx", Block: "1"})
	if err != nil || r.Found != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	f := r.Findings[0]
	if f.Source != "k.cu:2" || f.Inlined != "k.cu:3" || !slices.Equal(f.Callers, []string{"k.cu:3", "k.cu:4", "k.cu:5"}) {
		t.Errorf("%+v", f)
	}
	at := -1
	for _, l := range []string{"k.cu:2  the innermost", "inlined into k.cu:3  the middle", "inlined into k.cu:4  the outer", "inlined into k.cu:5  the kernel"} {
		if i := strings.Index(f.Text(), l); i <= at {
			t.Errorf("%q is missing or out of order in\n%s", l, f.Text())
		} else {
			at = i
		}
	}
}

// TestStructs passes bytes to a parameter that is an array of them.
func TestStructs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .align 8 .b8 s[16])
{
.reg .b64 %o, %d; .reg .b32 %r; .reg .f64 %f;
ld.param.u64 %o, [out];
ld.param.u32 %r, [s]; ld.param.f64 %f, [s+8];
cvt.rn.f64.s32 %f, %r; st.global.f64 [%o], %f;
ld.param.f64 %f, [s+8]; st.global.f64 [%o+8], %f;
ret;
}
`)
	for _, word := range []string{"i32:5,f64:1.5", "hex:05000000ffffffff000000000000f83f"} {
		r, err := Run(t.Context(), Config{File: "k.ptx", Block: "1", Args: []string{"f64[2]", word}, Outs: []string{"0=o.npy"}})
		if err != nil || strings.Join(r.Outs[0].First, " ") != "5 1.5" {
			t.Errorf("%s: %v, %+v", word, err, r)
		}
	}
	var e *advice.Error
	_, err := Run(t.Context(), Config{File: "k.ptx", Block: "1", Args: []string{"f64[2]", "i32:5"}})
	if !errors.As(err, &e) || !strings.Contains(e.Text, "has 4 bytes, but parameter s is .b8[16] of 16 bytes") || !strings.Contains(e.Hint, "16 bytes, as i32:5,f32:1.5 or hex:") {
		t.Errorf("%+v", e)
	}
}

// TestHints: what a load or a launch refuses says what to do instead.
func TestHints(t *testing.T) {
	t.Chdir(t.TempDir())
	kernel := func(version, target, body string) string {
		return ".version " + version + "\n.target " + target + "\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<4>;\n" + body + "\nret;\n}\n"
	}
	for _, c := range []struct{ src, card, text, hint string }{
		{kernel("8.0", "sm_90a", "wgmma.fence.sync.aligned;"), "", "a module for sm_90a", "compile for sm_80"},
		{kernel("8.0", "sm_90a", "wgmma.fence.sync.aligned;"), "b200", "a module for sm_90a", "such as h100-80"},
		{kernel("8.1", "sm_90", "multimem.red.add.u32 [%r0], %r1;"), "h100-pcie", "multimem.red.add.u32 is not supported", "Limits"},
		{kernel("8.6", "sm_100a", "tcgen05.fence::before_thread_sync;"), "b200", "tcgen05.fence::before_thread_sync is not supported", "compile for sm_80"},
		{kernel("8.0", "sm_90", ""), "", "a module for sm_90 on a card", "compute capability 9.0 or above with --card"},
		{kernel("7.4", "sm_80", ""), "t4", "a module for sm_80 on a card", "compile for sm_75, or choose a card of compute capability 8.0"},
		{kernel("7.4", "sm_80", "vadd.s32.s32.s32 %r0, %r1, %r2;"), "", "vadd.s32.s32.s32 is not supported", "Limits"},
		{kernel("7.4", "sm_80", "add.ftz.s32 %r0, %r1, %r2;"), "", "no such form", "ptxas, NVIDIA's assembler, refuses"},
		{kernel("9.5", "sm_80", "frob.b32 %r0, %r1;"), "", "k.ptx:7:1: unknown instruction \"frob\"", "compile for an older PTX version"},
		{kernel("7.4", "sm_80", "vadd.s32.s32.s32 %r0, %r1, %r2;") + ".visible .entry other() { ret; }\n", "", "vadd.s32.s32.s32 is not supported", "Limits"},
		{tritonLike, "", "3 parameters, and is given 1 argument", "--meta"},
	} {
		write(t, "k.ptx", c.src)
		var args []string
		if c.src == tritonLike {
			args = []string{"i32[1]"}
		}
		var e *advice.Error
		_, err := Run(t.Context(), Config{File: "k.ptx", Kernel: "k", Block: "1", Card: c.card, Args: args})
		if !errors.As(err, &e) || !strings.Contains(e.Text, c.text) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q on %q: %+v (%v)", c.text, c.card, e, err)
		}
	}
	write(t, "k.ptx", kernel("7.4", "sm_80", "vadd.s32.s32.s32 %r0, %r1, %r2;")+".visible .entry other() { ret; }\n")
	if _, err := Run(t.Context(), Config{File: "k.ptx", Kernel: "other", Block: "1"}); err != nil {
		t.Error(err)
	}
	if l, err := Explain("k.ptx", ""); err != nil || l.Problem != "" || !strings.Contains(l.Kernels[0].Problem, "vadd") || l.Kernels[1].Problem != "" || strings.Count(l.Text(100), "it cannot run:") != 1 {
		t.Errorf("%v, %+v", err, l)
	}
	write(t, "k.ptx", tritonLike)
	r, err := Run(t.Context(), Config{File: "k.ptx", Block: "1", Args: []string{"i32[1]", "u8[8]", "null"}})
	if err != nil || r.Found == 0 || !strings.Contains(strings.Join(r.Notes, ""), "--shared") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestDynamic: that shared memory has no size is noted for the kernels that use it, also by a function that they call.
func TestDynamic(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", `.version 7.4
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 pool[];
.func zero()
{
.reg .b32 %r;
mov.u32 %r, pool;
ret;
}
.visible .entry direct()
{
.reg .b32 %r;
mov.u32 %r, 1;
st.shared.u32 [pool], %r;
ret;
}
.visible .entry calls()
{
call zero, ();
ret;
}
.visible .entry without()
{
ret;
}
`)
	for kernel, want := range map[string]bool{"direct": true, "calls": true, "without": false} {
		for _, shared := range []int{-1, 64} {
			r, err := Run(t.Context(), Config{File: "k.ptx", Kernel: kernel, Block: "1", Shared: shared})
			if err != nil {
				t.Fatalf("%s: %v", kernel, err)
			}
			if noted := strings.Contains(strings.Join(r.Notes, "\n"), "dynamic shared memory"); noted != (want && shared < 0) {
				t.Errorf("%s with %d bytes: notes %q", kernel, shared, r.Notes)
			}
		}
	}
}

// TestMangled: a kernel goes by its name in C++ where no other has it.
func TestMangled(t *testing.T) {
	t.Chdir(t.TempDir())
	text := ".version 7.4\n.target sm_80\n.address_size 64\n"
	for _, name := range []string{"_Z3sumPf", "_Z4sumsPf", "_Z5scaleILi4EEvPf", "_Z5scaleILi8EEvPf"} {
		text += ".visible .entry " + name + "()\n{\nret;\n}\n"
	}
	write(t, "k.ptx", text)
	for name, want := range map[string]string{"sum": "_Z3sumPf", "sums": "_Z4sumsPf", "_Z5scaleILi8EEvPf": "_Z5scaleILi8EEvPf"} {
		if r, err := Run(t.Context(), Config{File: "k.ptx", Kernel: name, Block: "1"}); err != nil || r.Kernel != want {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	for name, want := range map[string]string{"scale": "_Z5scaleILi4EEvPf, _Z5scaleILi8EEvPf", "su": "_Z3sumPf, _Z4sumsPf, _Z5"} {
		var e *advice.Error
		if _, err := Run(t.Context(), Config{File: "k.ptx", Kernel: name, Block: "1"}); !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShow shows a buffer that goes to no file.
func TestShow(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\nret;\n}\n")
	r, err := Run(t.Context(), Config{File: "k.ptx", Block: "4", Args: []string{"f32[4]=1.5"}, Outs: []string{"0"}})
	if err != nil || len(r.Outs) != 1 || strings.Join(r.Outs[0].First, " ") != "1.5 1.5 1.5 1.5" || !strings.Contains(r.Text(100), "argument 0, f32[4]: 1.5 1.5 1.5 1.5\n") {
		t.Errorf("%v, %+v", err, r)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
