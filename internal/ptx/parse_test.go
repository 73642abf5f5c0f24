package ptx

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden are the files that compilers made; testdata says how.
func golden(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.ptx")
	if err != nil || len(names) < 6 {
		t.Fatalf("golden files: %v, %v", names, err)
	}
	texts := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(b)
	}
	return texts
}

func mustParse(t testing.TB, text string) *Module {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// frame wraps statements into a kernel whose first statement is on line 10, column 1.
func frame(body string) string {
	return ".version 7.4\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n.global .align 4 .b32 gl[4];\n" +
		".visible .entry k(.param .u64 p0, .param .u32 p1)\n{\n" +
		".reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n.reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .u32 %u<4>;\n" + body + "\nret;\n}\n"
}

func TestGoldenRoundTrip(t *testing.T) {
	for name, text := range golden(t) {
		t.Run(name, func(t *testing.T) {
			m := mustParse(t, text)
			if errs := Check(m); errs != nil {
				t.Errorf("compiler output fails the check: %v", errs[0])
			}
			roundTrip(t, m)
		})
	}
}

// countInsts counts semicolons of instruction lines, independently of the parser.
func countInsts(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '.' || strings.HasPrefix(line, "{") && strings.Contains(line, ".reg") {
			continue
		}
		n += strings.Count(line, ";")
	}
	return n
}

func TestGoldenInstructionCount(t *testing.T) {
	for name, text := range golden(t) {
		if name == "mma.ptx" {
			continue // statements of inline assembly share lines
		}
		n := 0
		for f := range mustParse(t, text).Funcs() {
			for range f.Insts() {
				n++
			}
		}
		if want := countInsts(text); n != want {
			t.Errorf("%s: %d instructions, want %d", name, n, want)
		}
	}
}

func TestModule(t *testing.T) {
	m := mustParse(t, golden(t)["reduce.ptx"])
	if m.Version != (Version{7, 4}) || m.Target != (Target{SM: 80}) || m.AddressSize != 64 {
		t.Errorf("header: %v %v %d", m.Version, m.Target, m.AddressSize)
	}
	f := m.Func("row_sum")
	if f == nil || !f.Entry || f.Linkage != Visible || len(f.Params) != 3 {
		t.Fatalf("row_sum: %+v", f)
	}
	if got, ok := f.Directive("maxntid"); !ok || got[0] != 256 {
		t.Errorf(".maxntid: %v %v", got, ok)
	}
	offsets, size := Layout(f.Params)
	if !slices.Equal(offsets, []int64{0, 8, 16}) || size != 20 {
		t.Errorf("parameter layout: %v, %d bytes", offsets, size)
	}
	for in := range f.Insts() {
		if c, ok := in.Call(); ok {
			if s, ok := c.Target.(*Sym); !ok || m.Func(s.Name) == nil || len(c.Args) != 2 || len(c.Ret) != 1 {
				t.Errorf("call: %v", in)
			}
			return
		}
	}
	t.Error("no call found")
}

func TestConstInitialiser(t *testing.T) {
	m := mustParse(t, golden(t)["reduce.ptx"])
	for v := range m.Vars() {
		if v.Name != "scale" {
			continue
		}
		var floats []byte
		for _, e := range v.Init.List {
			floats = append(floats, byte(e.Value.(*Imm).Int()))
		}
		// 1.0 and 0.5 as little-endian float32.
		if v.Space != ConstSpace || v.Size() != 8 || !slices.Equal(floats, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x3f}) {
			t.Errorf("scale: %+v %v", v, floats)
		}
		return
	}
	t.Error("scale not found")
}

func TestTritonLines(t *testing.T) {
	m := mustParse(t, golden(t)["triton.ptx"])
	if m.FileName(1) != "triton_kernels.py" || m.FileName(2) != "standard.py" || m.FileName(3) != "" {
		t.Error("file table")
	}
	inlined, sections := 0, 0
	for _, s := range m.Func("histogram").Body.Stmts {
		if l, ok := s.(*Loc); ok && l.InlinedAt != nil {
			inlined++
		}
	}
	for _, it := range m.Items {
		if _, ok := it.(*Section); ok {
			sections++
		}
	}
	if inlined == 0 || sections != 4 {
		t.Errorf("%d inlined places, %d sections", inlined, sections)
	}
}

// operandText parses one instruction and prints its operands.
func TestOperands(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"mov.b32 %r1, 0x10;", "mov.b32 %r1, 16"},
		{"mov.b32 %r1, 017;", "mov.b32 %r1, 15"},
		{"mov.b32 %r1, 0b101U;", "mov.b32 %r1, 5U"},
		{"mov.b64 %rd1, 0xffffffffffffffff;", "mov.b64 %rd1, 18446744073709551615U"},
		{"mov.b64 %rd1, -9223372036854775807-1;", "mov.b64 %rd1, (-9223372036854775807-1)"},
		{"mov.f32 %f1, 0F3f800000;", "mov.f32 %f1, 0f3F800000"},
		{"mov.f64 %fd1, -0d3FF0000000000000;", "mov.f64 %fd1, 0dBFF0000000000000"},
		{"mov.f64 %fd1, 1.5e1;", "mov.f64 %fd1, 0d402E000000000000"},
		{"mov.f64 %fd1,.5;", "mov.f64 %fd1, 0d3FE0000000000000"},
		{"mov.f64 %fd1, -5.;", "mov.f64 %fd1, 0dC014000000000000"},
		{"mov.f64 %fd1, 5.E+2;", "mov.f64 %fd1, 0d407F400000000000"},
		{"mov.b32 %r1, (1+2*3<<2|1)^WARP_SZ;", "mov.b32 %r1, 61"},
		{"mov.b32 %r1, 7 > 3 ? 5/2 : ~0;", "mov.b32 %r1, 2"},
		{"mov.b64 %rd1, (.u64)(0-1) >> 63;", "mov.b64 %rd1, 1U"},
		{"ld.global.b32 { %r1 }, [ %rd1 + 0 ];", "ld.global.b32 {%r1}, [%rd1]"},
		{"ld.global.b32 %r1, [%rd1+-4];", "ld.global.b32 %r1, [%rd1+-4]"},
		{"ld.global.b32 %r1, [gl+8-4];", "ld.global.b32 %r1, [gl+4]"},
		{"ld.local.b32 %r1, [16];", "ld.local.b32 %r1, [16]"},
		{"mov.b64 %rd1, gl+4;", "mov.b64 %rd1, gl+4"},
		{"mov.b32 {%h1, _}, %r1;", "mov.b32 {%h1, _}, %r1"},
		{"setp.lt.and.s32 %p1|%p2, %r1, 3, !%p3;", "setp.lt.and.s32 %p1|%p2, %r1, 3, !%p3"},
		{"@!%p1 mov.u32 %r1, %tid.x;", "@!%p1 mov.u32 %r1, %tid.x"},
		{"ld.b32.global.L2::128B %r1, [%rd1];", "ld.b32.global.L2::128B %r1, [%rd1]"},
	} {
		m, err := Parse(frame(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		for in := range m.Func("k").Insts() {
			if got := in.String(); got != c.want {
				t.Errorf("%s: got %s, want %s", c.in, got, c.want)
			}
			break
		}
		roundTrip(t, m)
	}
}

func TestStatements(t *testing.T) {
	for _, body := range []string{
		"{ }", "{\n.reg .b32 %r<2>;\nmov.b32 %r1, 1;\n}\nmov.b32 %r1, 2;",
		"bra.uni DONE;\n{\nL: bra L;\nbra DONE;\n}\nL:\nDONE:",
		".loc 1 2 3\n.pragma \"nounroll\", \"used_bytes_mask 0xfff\";",
		"T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: B:",
		".shared .align 8 .v2 .f32 a[3][2], b;\nld.shared.v2.f32 {%f1,%f2}, [a+8];",
		"P: .callprototype (.param .b32 _) _ (.param .b64 _, .reg .f32 _) .noreturn;\n{\n.param .b32 x;\n.param .b64 y;\n.param .f32 z;\ncall (x), %rd1, (y, z), P;\n}",
		".reg .v4 .f32 %v;\nmov.f32 %v.x, %v.w;",
	} {
		m, err := Parse(frame(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		roundTrip(t, m)
	}
}

func TestScopes(t *testing.T) {
	f := mustParse(t, frame("mov.b32 %r1, 1;\n{\n.reg .f32 %r1;\nmov.f32 %r1, 0f00000000;\nL: bra L;\n}\nL: bra L;")).Func("k")
	if len(f.Regs) != 2 || f.Regs[0].Type != B32 || f.Regs[1].Type != F32 {
		t.Errorf("registers: %v", f.Regs)
	}
	var ids []int
	for in := range f.Insts() {
		if in.Op == "bra" {
			ids = append(ids, in.Args[0].(*Label).ID)
		}
	}
	if !slices.Equal(ids, []int{0, 1}) {
		t.Errorf("labels: %v", ids)
	}
}

func TestModuleScope(t *testing.T) {
	head := ".version 7.4\n.target sm_80, debug\n.address_size 64\n"
	for _, text := range []string{
		".global .b8 _$_str[11] = {72, 101, 108, 0};\n.global .u64 at = generic(_$_str)+4;\n.global .b8 lo[8] = {0xFF(at), 0xFF00(at), 2};",
		".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .func f() { ret; }\n.weak .func g() .noreturn { trap; }\n.alias h, f;",
		".const .align 8 .f32 t[2][2] = {{1.0, 2.0}, {0f3F800000, -1.5}};\n.extern .global .b32 x;\n.visible .global .b32 x = 1, y;",
		".func (.reg .b32 out) id(.reg .b32 in) { mov.b32 out, in; ret; }",
		".entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[24])\n.reqntid 32, 2, 1\n.minnctapersm 2\n.maxnreg 64\n.pragma \"x\";\n{ ret; }",
		".global .attribute(.managed) .u32 m;\n.file 1 \"a.cu\", 12, 34\n.pragma \"q\";\n.section .debug_str { L: .b8 1, 2\n.b32 L+4 }",
	} {
		m, err := Parse(head + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		roundTrip(t, m)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Error
	}{
		{"", Error{Pos{1, 1}, "", "unexpected at the end of the text", ".version", false}},
		{".version 7", Error{Pos{1, 10}, "7", "bad version", "a number such as 7.4", false}},
		{".version 7.4\n.target gfx90", Error{Pos{2, 9}, "gfx90", "unknown target", "an architecture such as sm_80", false}},
		{frame("add.s32 %r1, %r9, 1;"), Error{Pos{10, 14}, "%r9", "unknown register", "a declared or a special register", false}},
		{frame("  mov.u32 %r1, %tid.q;"), Error{Pos{10, 16}, "%tid.q", "unknown register", "a declared or a special register", false}},
		{frame("bra NOWHERE;"), Error{Pos{10, 5}, "NOWHERE", "undefined symbol", "a register, a variable or a label of this function", false}},
		{frame("{ IN: }\nbra IN;"), Error{Pos{11, 5}, "IN", "undefined symbol", "a register, a variable or a label of this function", false}},
		{frame("A:\nA:"), Error{Pos{11, 1}, "A", "label defined before", "a new name", false}},
		{frame("add.s32 %r1 %r2;"), Error{Pos{10, 13}, "%r2", "unexpected", `"," or ";"`, false}},
		{frame("@%r1 bra A;\nA:"), Error{Pos{10, 2}, "%r1", "bad guard", "a predicate register", false}},
		{frame("mov.f32 %f1, 0f3F80;"), Error{Pos{10, 14}, "0f3F80", "bad number", "8 hexadecimal digits after 0f", false}},
		{frame("mov.b32 %r1, 1/0;"), Error{Pos{10, 15}, "/", "division by zero in a constant expression", "another divisor", false}},
		{frame("mov.b32 %r1, 0x;"), Error{Pos{10, 14}, "0x", "bad number", "an integer of at most 64 bits", false}},
		{frame("mov.b32 %r1, é;"), Error{Pos{10, 14}, "\xc3", "invalid character", "", false}},
		{frame("/* open"), Error{Pos{10, 1}, "/*", "unclosed comment", "*/", false}},
		{frame(".shared .b8 x[1099511627777];"), Error{Pos{10, 15}, "1099511627777", "number out of range", "an array size up to 1099511627776", false}},
		{frame(".shared .b64 x[1048576][1048576];"), Error{Pos{10, 24}, "[", "variable larger than 1 TiB", "a smaller array", false}},
		{frame(".reg .b32 %q<0>;"), Error{Pos{10, 14}, "0", "bad count", "a positive integer", false}},
		{frame(".reg .f128 %q;"), Error{Pos{10, 6}, ".f128", "unknown type", "a type such as .b32", false}},
		{frame("mov.b32 %r1, " + strings.Repeat("(", 300) + "1;"), Error{Pos{10, 113}, "(", "nesting too deep", "at most 200 levels", false}},
		{frame(strings.Repeat("{", 300)), Error{Pos{10, 200}, "{", "nesting too deep", "at most 200 levels", false}},
		{".version 7.4\n.target sm_80\n.entry k() { ret", Error{Pos{3, 17}, "", "unexpected at the end of the text", "an operand", false}},
	} {
		_, err := Parse(c.in)
		var got *Error
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("%.60q:\ngot  %+v\nwant %+v", c.in, err, &c.want)
		}
	}
}

// TestHostile: input made to cost much ends in an error or a small module.
func TestHostile(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 100_000) }
	for _, c := range []struct {
		in    string
		parse bool
	}{
		{frame("mov.b32 %r" + many("1") + ", 0;"), false},
		{frame("mov.b32 %r1, " + many("-") + "1;"), false},
		{frame("mov.b32 %r1, " + many("1+") + "1;"), true},
		{frame("mov.b32 %r1, 1" + many("?1:1") + ";"), false},
		{frame(".reg .b32 %z<16777216>;\nmov.b32 %z16777215, 1;"), true},
		{frame(".reg .b32 %z<16777217>;"), false},
		{frame(".shared .b8 " + many("x, ") + "y;"), false},
		{frame(".local .b8 a[1099511627776];"), true},
		{frame(".shared .b8 a" + many("[1]") + ";"), false},
		{frame("{" + many("bra A;") + "}\nA:"), true},
		{frame("call (" + many("%r1, ") + "%r1), k;"), true},
		{".version 7.4\n.target sm_80\n.global .b8 x[] = " + many("{"), false},
		{".version 7.4\n.target sm_80\n.global .b8 x[] = {" + many("1,") + "1};", true},
		{".version 7.4\n.target sm_80\n.section .debug_x {" + many("\n1"), false},
		{".version 7.4\n.target sm_80\n" + many(".file 1 \"x\""), true},
	} {
		m, err := Parse(c.in)
		if (err == nil) != c.parse {
			t.Errorf("%.80q…: %v", c.in[max(0, len(c.in)-100):], err)
		}
		if err == nil && len(Check(m)) > maxErrors {
			t.Error("more findings than Check promises")
		}
	}
}
