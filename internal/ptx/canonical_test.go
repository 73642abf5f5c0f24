package ptx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compiled is the PTX of the repository that clang and Triton wrote and nobody changed.
func compiled(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"testdata/*.ptx", "../gpusim/testdata/*.ptx", "../simrun/testdata/*/*.ptx", "../../examples/sim/*.ptx"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(f)] = string(text)
		}
	}
	return texts
}

func parsed(t *testing.T, name, text string) *Module {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// TestCanonicalForm: the form says what the compiler's text says, is valid, and is its own canonical form.
func TestCanonicalForm(t *testing.T) {
	for name, text := range compiled(t) {
		m := parsed(t, name, text)
		table := Lines(m)
		short := Canonical(m)
		if err := Same(text, short+table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(short)+len(table) >= len(text) {
			t.Errorf("%s: %d bytes, and %d of lines, of %d", name, len(short), len(table), len(text))
		}
		again := parsed(t, name, short)
		for _, e := range Check(again) {
			t.Errorf("%s in canonical form: %v", name, e)
		}
		if err := AddLines(again, table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if second := Lines(again); second != table {
			t.Errorf("%s: the table that is read gives another:\n%s\n---\n%s", name, table, second)
		}
		if second := Canonical(again); second != short {
			t.Errorf("%s: the canonical form has another:\n%s\n---\n%s", name, short, second)
		}
	}
}

// TestSplit: each value has a register of its own, and the function is the same.
func TestSplit(t *testing.T) {
	for name, text := range compiled(t) {
		short := Canonical(parsed(t, name, text))
		m := parsed(t, name, short)
		for f := range m.Funcs() {
			if f.Body == nil {
				continue
			}
			f.Split()
			v, of := f.values(), map[int]int{}
			for r, n := range v.number {
				if other, ok := of[r.ID]; ok && other != n {
					t.Errorf("%s: values %d and %d of %s are in one register", name, n, other, f.Name)
				}
				of[r.ID] = n
			}
		}
		if again := Canonical(m); again != short {
			t.Errorf("%s: the canonical form has become another:\n%s\n---\n%s", name, short, again)
		}
	}
}

// odd has what compilers seldom write: registers and labels of inner blocks, names that look canonical, vectors, tables of
// labels, parameters in registers, instructions without a source line.
const odd = `.version 7.4
.target sm_80
.address_size 64
.file 1 "./a.cu"
.file 2 "dir/../b.cu"
.global .u32 L1, a3, R2;
.shared .align 4 .b8 p0[64];
.func (.reg .b32 out) id(.reg .b32 in) { .reg .b32 %t; add.s32 %t, in, 1; mov.b32 out, %t; ret; }
.func (.param .b32 r) two(.param .b32 a) { .reg .u32 %x; ld.param.u32 %x, [a]; st.param.u32 [r], %x; ret; }
.visible .entry k(.param .u64 in, .param .u32 n)
{
	.reg .v4 .f32 v;
	.reg .pred q, unused;
	.reg .u32 %a<4>, i;
	.reg .s32 %b;
	.reg .b64 %rd<3>;
	.reg .f16 %h;
	mov.u32 i, %tid.x;
	.loc 1 10 2
	mov.u32 %a1, L1;
	.loc 2 3 1
	mov.u32 %a2, p0;
	mov.u32 i, i;
unnamed:
	.loc 1 0 0
	{
		.reg .u32 i;
		.loc 1 12 0
		mov.u32 i, 7;
		add.u32 %a0, i, %a1;
	inner:
		.reg .pred p;
		setp.lt.u32 p, i, %a0;
		@p bra inner;
	}
again:
	add.u32 i, i, 1;
	{
		.param .b32 x;
		.param .b32 y;
		.reg .u32 %z;
		st.param.b32 [x], i;
		call.uni (y), two, (x);
		ld.param.b32 %z, [y];
		mov.u32 %a3, %z;
	}
	setp.gt.u32 q, %a3, %a0;
	@!q bra again;
table: .branchtargets again, done;
	brx.idx i, table;
	.pragma "nounroll";
done:
	.loc 2 1 1
	mov.v4.f32 v, {0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000};
	ret;
}
`

func TestCanonicalOddities(t *testing.T) {
	m, err := Parse(odd)
	if err != nil {
		t.Fatal(err)
	}
	table := Lines(m)
	short := Canonical(m)
	if err := Same(odd, short+table); err != nil {
		t.Errorf("%v\n%s", err, short)
	}
	again, err := Parse(short)
	if err != nil {
		t.Fatalf("%v\n%s", err, short)
	}
	if second := Canonical(again); second != short {
		t.Errorf("the canonical form has another:\n%s\n---\n%s", short, second)
	}
	for _, gone := range []string{".loc", "unnamed", "unused", "./a.cu"} {
		if strings.Contains(short+table, gone) {
			t.Errorf("%q is still there:\n%s%s", gone, short, table)
		}
	}
}

// TestSame: a module in which something else is done, or on another line, is not the same.
func TestSame(t *testing.T) {
	m, err := Parse(odd)
	if err != nil {
		t.Fatal(err)
	}
	table := Lines(m)
	short := Canonical(m)
	if err := Same(short, short); err != nil {
		t.Error(err)
	}
	for _, edit := range [][2]string{
		{"sm_80", "sm_86"},
		{".shared .align 4", ".shared .align 8"},
		{"add.u32 i, i, 1", "add.u32 i, i, 2"},
		{"add.u32 %a0, i, %a1", "add.u32 %a0, %a1, i"},
		{"add.u32 %a0, i, %a1", "add.u32 %a0, i, i"},
		{"add.s32 %t, in, 1", "add.s32 %t, %t, 1"},
		{".reg .s32 %b;", ".reg .s32 %b; mov.s32 %b, 1;"},
		{"@!q bra again", "@q bra again"},
		{"@!q bra again", "@!q bra done"},
		{".branchtargets again, done", ".branchtargets done, again"},
		{".pragma \"nounroll\";", ""},
		{".reg .u32 %z;", ".reg .s32 %z;"},
		{".loc 2 3 1", ".loc 2 4 1"},
		{".loc 2 3 1", ".loc 1 3 1"},
		{"in, .param .u32 n", "in, .param .u64 n"},
	} {
		other := strings.Replace(odd, edit[0], edit[1], 1)
		if _, err := Parse(other); err != nil || other == odd {
			t.Fatalf("%q: error %v", edit, err)
		}
		if Same(other, short+table) == nil {
			t.Errorf("%q in place of %q passes", edit[1], edit[0])
		}
	}
}

// TestLinesErrors: a table that is not the module's is refused, and nothing else happens.
func TestLinesErrors(t *testing.T) {
	m, err := Parse(odd)
	if err != nil {
		t.Fatal(err)
	}
	table := Lines(m)
	for _, edit := range [][2]string{
		{"//k ?", "//j ?"}, {"//k ?", "//k ?9999"}, {"//k ?", "//k "}, {"//k ?", "//k .?"}, {"//1 a.cu\n", ""}, {"1:10", "1:x"}, {"1:10", "1:10*0"},
		{"1:10", "1:-1"}, {"1:10", "x:10"}, {"1:10", "7:10"}, {"1:10", "Ba"}, {"1:10", "A"}, {"1:10", "1:99999999999999999999"}, {"//k", "// 1"},
	} {
		bad := strings.Replace(table, edit[0], edit[1], 1)
		if bad == table {
			t.Fatalf("no %q in\n%s", edit[0], table)
		}
		if AddLines(parsed(t, "odd", Canonical(parsed(t, "odd", odd))), bad) == nil {
			t.Errorf("%q in place of %q passes", edit[1], edit[0])
		}
	}
}

// FuzzAddLines: no table makes it panic, or take memory beyond the module's.
func FuzzAddLines(f *testing.F) {
	m, err := Parse(odd)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(Lines(m))
	f.Fuzz(func(t *testing.T, table string) {
		m := parsed(t, "odd", odd)
		_ = AddLines(m, tableMark+table)
	})
}

// FuzzCanonical: whatever parses has a canonical form that says the same.
func FuzzCanonical(f *testing.F) {
	f.Add(odd)
	for _, text := range []string{"add.u32 %r1, %r1, 1;", "{ .reg .u32 %r1; mov.u32 %r1, 1; }", "x: bra x;", ".loc 7 1 0\nret;"} {
		f.Add(frame(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		table := Lines(m)
		short := Canonical(m)
		if err := Same(text, short+table); err != nil {
			t.Errorf("%v\n%s%s", err, short, table)
		}
	})
}
