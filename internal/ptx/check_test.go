package ptx

import (
	"strings"
	"testing"
)

func TestCheckErrors(t *testing.T) {
	const wantAddr = "an address [register + integer], or of a variable in the instruction's state space"
	const has = ", the module has PTX 7.4 and sm_80"
	for _, c := range []struct {
		in   string
		want Error
	}{
		{"frob.s32 %r1, %r2;", Error{Pos{10, 1}, "frob", "unknown instruction", "", false}},
		{"add.foo.s32 %r1, %r2, %r3;", Error{Pos{10, 1}, ".foo", "unknown modifier of add", "", false}},
		{"add.ftz.s32 %r1, %r2, %r3;", Error{Pos{10, 1}, "add.ftz.s32", "no such form of the instruction", "", false}},
		{"add.s32 %r1, %f1, %r3;", Error{Pos{10, 14}, "%f1", "bad operand 2 of add.s32", "a register for .s32 or an immediate", false}},
		{"add.f32 %f1, %f2, 1;", Error{Pos{10, 19}, "1", "bad operand 3 of add.f32", "a register for .f32 or an immediate", false}},
		{"add.s32 %r1, %r2;", Error{Pos{10, 1}, "add.s32 %r1, %r2", "too few operands", "3", false}},
		{"add.s32 %r1, %r2, %r3, %r4;", Error{Pos{10, 24}, "add.s32 %r1, %r2, %r3, %r4", "too many operands", "3", false}},
		{"elect.sync %r1|%p1, -1;", Error{Pos{10, 1}, "elect.sync", "elect in this form needs PTX 8.0 or later" + has, "", false}},
		{"add.bf16 %h1, %h2, %h3;", Error{Pos{10, 1}, "add.bf16", "add in this form needs PTX 7.8 or later" + has, "", false}},
		{"cp.async.bulk.commit_group;", Error{Pos{10, 1}, "cp.async.bulk.commit_group", "cp in this form needs PTX 8.0 or later" + has, "", false}},
		{"ld.shared.b32 %r1, [gl];", Error{Pos{10, 20}, "[gl]", "bad operand 2 of ld.shared.b32", wantAddr, false}},
		{"ld.global.b32 %r1, [%f1];", Error{Pos{10, 20}, "[%f1]", "bad operand 2 of ld.global.b32", wantAddr, false}},
		{"ld.global.v2.b32 {%r1, %r2, %r3}, [%rd1];", Error{Pos{10, 18}, "{%r1, %r2, %r3}", "bad operand 1 of ld.global.v2.b32", "2 registers for .b32 in braces", false}},
		{"cp.async.cg.shared.global [%r1], [%rd1], 8;", Error{Pos{10, 42}, "8", "bad operand 3 of cp.async.cg.shared.global", "16", false}},
		{"cp.async.ca.shared.global [%r1], [%rd1], 4, 8;", Error{Pos{10, 45}, "8", "source size larger than the copy", "at most 4", false}},
		{"bar.sync 16;", Error{Pos{10, 10}, "16", "bad operand 1 of bar.sync", "a register, or an immediate in range", false}},
		{"mov.u32 %r1, %clock64;", Error{Pos{10, 14}, "%clock64", "bad operand 2 of mov.u32", "a register for .u32, an immediate, a special register or a variable", false}},
		{"mov.u16 %h1, %laneid;", Error{Pos{10, 14}, "%laneid", "bad operand 2 of mov.u16", "a register for .u16, an immediate, a special register or a variable", false}},
		{"cvt.rn.f32.u32 %f1, %tid.x;", Error{Pos{10, 21}, "%tid.x", "bad operand 2 of cvt.rn.f32.u32", "a register for .u32 or an immediate", false}},
		{"alloca.u64 %rd1, %rd2, 0;", Error{Pos{10, 24}, "0", "bad operand 3 of alloca.u64", "a power of two", false}},
		{"pmevent 16;", Error{Pos{10, 9}, "16", "bad operand 1 of pmevent", "0 to 15", false}},
		{"{ .reg .b32 %tid; mov.u32 %r1, %tid.x; }", Error{Pos{10, 32}, "%tid.x",
			"bad operand 2 of mov.u32, since %tid is the register declared in line 10 and hides the special one:", "another name for it", false}},
		{"ld.global.u32 %r1, [%rd1-8];", Error{}},
		{"mov.u64 %rd1, gl-8;", Error{}},
		{"call nope;", Error{}},
	} {
		m, err := Parse(frame(c.in))
		if c.want.Msg == "" {
			if err == nil {
				t.Errorf("%s parses", c.in)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		errs := Check(m)
		if len(errs) != 1 || *errs[0] != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.in, errs, &c.want)
		}
	}
}

// TestNeeds: the version and target bounds that the specification measured with ptxas.
func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		version, target, inst, lack string
	}{
		{"7.0", "sm_80", "cvt.rn.bf16.f32 %h1, %f1;", ""},
		{"7.0", "sm_80", "cvt.f32.bf16 %f1, %h1;", "needs PTX 7.1"},
		{"7.1", "sm_80", "cvt.f32.bf16 %f1, %h1;", ""},
		{"7.3", "sm_80", "ld.global.L2::128B.b32 %r1, [%rd1];", "needs PTX 7.4"},
		{"7.3", "sm_80", "ld.global.L1::no_allocate.b32 %r1, [%rd1];", "needs PTX 7.4"},
		{"7.4", "sm_80", "ld.global.L1::no_allocate.L2::cache_hint.b32 %r1, [%rd1], %rd2;", ""},
		{"7.4", "sm_75", "cp.async.wait_all;", "needs target sm_80"},
		{"8.0", "sm_80", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", "needs target sm_90"},
		{"7.8", "sm_90", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", ""},
		{"8.0", "sm_90", "wgmma.fence.sync.aligned;", "needs target sm_90a"},
		{"8.0", "sm_90a", "wgmma.fence.sync.aligned;", ""},
		{"7.0", "sm_70", "redux.sync.add.s32 %r1, %r2, -1;", "target needs"},
		{"7.0", "sm_86", "ret;", "target needs PTX 7.1"},
	} {
		text := strings.Replace(frame(c.inst), ".version 7.4\n.target sm_80", ".version "+c.version+"\n.target "+c.target, 1)
		errs := Check(mustParse(t, text))
		if c.lack == "" && errs != nil {
			t.Errorf("%s in %s for %s: %v", c.inst, c.version, c.target, errs[0])
		}
		if c.lack != "" && c.target != "sm_70" && (len(errs) != 1 || !strings.Contains(errs[0].Msg, c.lack)) {
			t.Errorf("%s in %s for %s: %v, want %q", c.inst, c.version, c.target, errs, c.lack)
		}
		if c.target == "sm_70" && errs == nil {
			t.Errorf("%s accepted for sm_70", c.inst)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"ld.b32.global %r1, [%rd1];", "ld.global.b32"},
		{"add.f32.sat.rn.ftz %f1, %f2, %f3;", "add.rn.ftz.sat.f32"},
		{"atom.u32.gpu.add.global.relaxed %r1, [%rd1], %r2;", "atom.relaxed.gpu.global.add.u32"},
		{"cvt.f32.rn.s32 %f1, %r1;", "cvt.rn.f32.s32"},
	} {
		m := mustParse(t, frame(c.in))
		if errs := Check(m); errs != nil {
			t.Errorf("%s: %v", c.in, errs[0])
		}
		for in := range m.Func("k").Insts() {
			if got, ok := in.Canonical(); !ok || got != c.want {
				t.Errorf("%s: canonical form %s, %v; want %s", c.in, got, ok, c.want)
			}
			break
		}
	}
}

// TestTableIsUsed: each line of forms.txt belongs to a variant of the grammar, and the forms of every variant can be met.
func TestTableIsUsed(t *testing.T) {
	families := map[string]bool{}
	for op, vs := range grammar() {
		for _, v := range vs {
			if v.op != op {
				t.Errorf("%s filed under %s", v.op, op)
			}
			for facet := 1; facet <= v.facetCount(); facet++ {
				families[v.family(facet)] = true
				if forms().lines[v.family(facet)] == nil && op != "call" && op != "brx" {
					t.Errorf("no form of %s", v.family(facet))
				}
			}
		}
	}
	for f := range forms().lines {
		if !families[f] {
			t.Errorf("forms.txt has %s, the grammar has not", f)
		}
	}
}

// TestCandidates: a sample of the forms that the grammar can spell parses, and the table's verdict on a form is Check's.
func TestCandidates(t *testing.T) {
	module, body := CandidateDeclarations()
	n, accepted := 0, 0
	for c := range Candidates() {
		if n++; n%83 != 0 || strings.Contains(c.Text, "%b128_") {
			continue
		}
		m := mustParse(t, ".version 8.8\n.target sm_120\n.address_size 64\n"+module+".entry k(.param .align 16 .b8 vparam[64]) {\n"+body+c.Text+"\nTarget: ret; }")
		need, ok := forms().find(c.Family, c.Key)
		ok = ok && need.met(m) == ""
		errs := Check(m)
		if ok {
			accepted++
		}
		// The other facets of a form hold their defaults here, so its own facet decides.
		if ok != (errs == nil) {
			t.Errorf("%s: table %v, check %v", c.Text, ok, errs)
		}
	}
	if accepted < 50 {
		t.Errorf("only %d of %d candidates accepted", accepted, n)
	}
}

// TestValid takes what ptxas 12.9 takes.
func TestValid(t *testing.T) {
	for _, in := range []string{
		"ld.global.u32 %r1, [%rd1+4*8];", "ld.global.u32 %r1, [%rd1+(8+8)-4];", "ld.global.u32 %r1, [gl+WARP_SZ];", "mov.u64 %rd1, gl+4*2;",
		"mov.u16 %h1, %tid.x;", "mov.b16 %h1, %nctaid.z;", "mov.u16 %h1, %gridid;", "mov.u32 %r1, %gridid;", "mov.u64 %rd1, %gridid;",
		"cvt.u16.u32 %h1, %tid.x;", "cvt.u8.u32 %h1, %laneid;", "cvt.u32.u64 %r1, %clock64;", "cvt.u64.u16 %rd1, %clock64;", "cvt.sat.u16.u32 %h1, %ctaid.y;",
		"pmevent 1;", "pmevent.mask 65535;", "cvt.pack.sat.u2.s32.b32 %r1, %r2, %r3, %r4;", "cvt.pack.sat.s4.s32.b32 %r1, %r2, %r3, %r4;",
		"vadd.s32.u32.s32.sat.add %r1, %r2, %r3, %r4;", "vmax4.u32.u32.u32 %r1, %r2, %r3, %r4;", "vshl.u32.u32.u32.clamp %r1, %r2.b0, %r3;",
		"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4}, %r5, 0;",
		"istypep.texref %p1, %rd1;", "suld.b.1d.b32.trap {%r1}, [%rd1, {%r2}];", "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}];",
		"createpolicy.cvt.L2.b64 %rd1, %rd2;", "createpolicy.cvt.b64.L2 %rd1, 0x10F0000000000000;",
		"{ .reg .b32 %laneid; mov.u32 %laneid, 1; }", "{ .reg .v2 .b32 %tid; mov.u32 %r1, %tid.x; }",
	} {
		if errs := Check(mustParse(t, frame(in))); errs != nil {
			t.Errorf("%s: %v", in, errs[0])
		}
	}
}

// TestModuleChecks compares items of module scope with what ptxas 12.9 says of them.
func TestModuleChecks(t *testing.T) {
	const head = ".version 7.4\n.target sm_80\n.address_size 64\n"
	for _, c := range []struct{ src, want string }{
		{head + ".global .f32 t[2] = {4.0, 5};", "ptx:4:27: initialiser of another type than .f32 \"5\""},
		{head + ".global .f64 t = 4;", "initialiser of another type than .f64"},
		{head + ".global .u32 t[1] = {0f3F800000};", "initialiser of another type than .u32"},
		{head + ".global .f16 t = 1.0;", "initialiser of a .f16 \"t\""},
		{head + ".func f() { .global .f32 t = 4; ret; }", "initialiser of another type than .f32"},
		{head + ".global .f32 a = 0d3FF0000000000000; .global .b32 b = 0f3F800000; .global .b64 c = 1.0; .global .u8 d[2] = {-1, 300};", ""},
		{head + ".alias a, b;", "undefined alias \"a\""},
		{head + ".func b();\n.func a();\n.alias a, b;", "alias of an undefined function \"b\""},
		{head + ".func b() { ret; }\n.alias a, b;", "undefined alias \"a\""},
		{head + ".func b() { ret; }\n.func a();\n.alias a, b;", ""},
		{".version 99.9\n.target sm_80\n.address_size 64\n", ""}, // nothing in it is unknown
		{".version 9.5\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; add.u32 %r0, %r1, %r2; frob.b32 %r0, %r1; frob.b32 %r1, %r0; ret; }",
			"ptx:4:63: unknown instruction \"frob\", expected what PTX 8.8 has: the module is of 9.5, and what is new since then is not known here"},
		{".version 9.5\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; add.frob.u32 %r0, %r1, %r2; ret; }", "unknown modifier of add \".frob\", expected what PTX 8.8 has"},
		{".version 8.8\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; frob.b32 %r0, %r1; ret; }", "unknown instruction \"frob\""},
		{".version 9.4\n.target sm_80\n.address_size 64\n", ""},
	} {
		errs := Check(mustParse(t, c.src))
		for _, e := range errs {
			if e.Newer != strings.Contains(e.Want, "not known here") {
				t.Errorf("%+v", e)
			}
		}
		if len(errs) == 2 && errs[0].Text == errs[1].Text {
			errs = errs[:1]
		}
		if c.want == "" && errs != nil || c.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.src, errs, c.want)
		}
	}
}
