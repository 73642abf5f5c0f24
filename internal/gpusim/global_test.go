package gpusim

import (
	"fmt"
	"strings"
	"testing"
)

// talker makes a kernel of two blocks out of what thread 0 of the first does, or all of it do, and what the second does.
// data, flag and more are addresses that both know; t is the thread.
func talker(first, second string) string {
	return ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u64 flag)\n{\n" +
		".reg .b64 %data, %flag, %more, %at, %x<4>; .reg .b32 %t, %b, %r<9>; .reg .pred %p, %q, %one; .shared .align 16 .b8 s[256];\n" +
		"ld.param.u64 %data, [data]; ld.param.u64 %flag, [flag]; add.s64 %more, %flag, 64;\n" +
		"mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mul.wide.u32 %at, %t, 4; add.s64 %at, %at, %data; setp.eq.u32 %one, %t, 0;\n" +
		"setp.ne.u32 %p, %b, 0; @%p bra SECOND;\n" + first + "\nret;\nSECOND:\n" + second + "\nret;\n}\n"
}

// Parts of talkers. Of those in lower case one thread does what comes first, and the others leave.
const (
	alone   = "@!%one exit;\n"
	put     = "st.global.u32 [%data], 7;\n"
	fence   = "fence.acq_rel.gpu;\n"
	set     = "st.relaxed.gpu.global.u32 [%flag], 1;\n"
	spin    = "L: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.eq.u32 %p, %r1, 0; @%p bra L;\n"
	get     = "ld.global.u32 %r2, [%data];\n"
	barrier = "bar.sync 0;\n"
	putAll  = "st.global.u32 [%at], %t;\n"
	getAll  = "ld.global.u32 %r2, [%at];\n"
	getNext = "xor.b32 %r3, %t, 33; mul.wide.u32 %x1, %r3, 4; add.s64 %x1, %x1, %data; ld.global.u32 %r2, [%x1];\n"
)

// only guards an instruction by being thread 0.
func only(instructions string) string {
	return strings.ReplaceAll("@%one "+instructions, "; ", "; @%one ")
}

// TestGlobalRaces is what may be wrong between threads that share global memory, and the same done right.
func TestGlobalRaces(t *testing.T) {
	const spinAll = "L: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.eq.u32 %p, %r1, 0; @%p bra L;\n"
	const spinOne = "@!%one bra D; L: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.eq.u32 %p, %r1, 0; @%p bra L; "
	for _, c := range []struct{ name, first, second, want string }{
		{"right", alone + put + fence + set, alone + spin + fence + get, ""},
		{"fence.sc", alone + put + "fence.sc.gpu;" + set, alone + spin + "fence.sc.sys;" + get, ""},
		{"membar", alone + put + "membar.gl;" + "st.volatile.global.u32 [%flag], 1;", alone + strings.Replace(spin, "relaxed.gpu", "volatile", 1) + "membar.gl;" + get, ""},
		{"release and acquire", alone + put + "st.release.gpu.global.u32 [%flag], 1;", alone + strings.Replace(spin, "relaxed", "acquire", 1) + get, ""},
		{"system scope", alone + put + "st.release.sys.global.u32 [%flag], 1;", alone + strings.Replace(spin, "relaxed.gpu", "acquire.sys", 1) + get, ""},
		{"an atomic tells", alone + put + fence + "red.global.add.u32 [%flag], 1;", alone + spin + fence + get, ""},
		{"an atomic waits", alone + put + fence + set, alone + "L: atom.global.or.b32 %r1, [%flag], 0; setp.eq.u32 %p, %r1, 0; @%p bra L;" + fence + get, ""},
		{"an atomic that acquires", alone + put + "atom.global.release.gpu.exch.b32 %r1, [%flag], 1;", alone + "L: atom.acquire.gpu.global.cas.b32 %r1, [%flag], 1, 2; setp.eq.u32 %p, %r1, 0; @%p bra L;" + get, ""},
		{"generic addresses", alone + "st.u32 [%data], 7;" + fence + "st.relaxed.gpu.u32 [%flag], 1;", alone + spin + fence + "ld.u32 %r2, [%data];", ""},
		{"a block tells", putAll + barrier + only("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;"), spinAll + fence + getAll, ""},
		{"a block tells, fences first", putAll + fence + barrier + only("st.relaxed.gpu.global.u32 [%flag], 1;"), spinOne + fence + "D:" + barrier + getNext, ""},
		{"a block waits", putAll + barrier + only("st.release.gpu.global.u32 [%flag], 1;"), spinOne + fence + "D:" + barrier + getNext, ""},
		{"a block waits, fences last", putAll + barrier + only("st.release.gpu.global.u32 [%flag], 1;"), spinOne + "D:" + barrier + fence + getNext, ""},
		{"a warp tells", putAll + "bar.warp.sync -1; setp.lt.u32 %q, %t, 32; @!%q exit;" + only("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;"),
			"setp.lt.u32 %q, %t, 32; @!%q exit;" + spinAll + fence + getAll, ""},
		{"relaxed to the same place", "st.relaxed.gpu.global.u32 [%data], %t;", "st.relaxed.gpu.global.u32 [%data], %t;", ""},
		{"volatile and an atomic", "st.volatile.global.u32 [%data], %t;", "red.global.add.u32 [%data], %t;", ""},
		{"atomics of a block's scope in one block", "red.cta.global.add.u32 [%data], 1;", "exit;", ""},
		{"read by all", getAll, getAll, ""},
		{"parts of a word", "st.global.u8 [%data], 1;" + alone, "st.global.u8 [%data+1], 1;", "B"},
		{"one byte each", alone + "st.global.u8 [%data], 1;", alone + "st.global.u8 [%data+1], 1;", ""},
		{"a vector beside a word", alone + "st.global.v2.u32 [%data], {%t, %t};", alone + "st.global.u32 [%data+8], 1;", ""},
		{"in turn through a barrier", putAll + barrier + getNext + barrier + putAll, "exit;", ""},
		{"in turn within a warp", "setp.lt.u32 %q, %t, 32; @!%q exit;" + putAll + "bar.warp.sync -1; xor.b32 %r3, %t, 1; mul.wide.u32 %x1, %r3, 4; add.s64 %x1, %x1, %data; ld.global.u32 %r2, [%x1];", "exit;", ""},
		{"by way of a third place", alone + put + fence + set, alone + spin + fence + "st.relaxed.gpu.global.u32 [%more], 1;" + get, ""},
		{"a release sequence", alone + put + fence + set + "L: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.ne.u32 %p, %r1, 2; @%p bra L;" + fence + get,
			"@%one bra Q; setp.ne.u32 %q, %t, 32; @%q exit; L2: atom.global.cas.b32 %r1, [%flag], 1, 2; setp.ne.u32 %p, %r1, 1; @%p bra L2; exit;" +
				"Q: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.ne.u32 %p, %r1, 2; @%p bra Q;" + fence + get, ""},
		{"told through shared memory", alone + put + fence + set,
			spinOne + fence + "st.relaxed.cta.shared.u32 [s], 1; exit; D: setp.ne.u32 %q, %t, 32; @%q exit; S: ld.relaxed.cta.shared.u32 %r1, [s]; setp.ne.u32 %p, %r1, 1; @%p bra S; fence.acq_rel.cta;" + get, ""},

		{"no fence before", alone + put + set, alone + spin + fence + get, "no fence before st.relaxed"},
		{"no fence behind", alone + put + fence + set, alone + spin + get, "no fence of scope .gpu or wider follows ld.relaxed"},
		{"no fence", alone + put + set, alone + spin + get, "no fence before"},
		{"fence of the block before", alone + put + "fence.acq_rel.cta;" + set, alone + spin + fence + get, "has scope .cta"},
		{"fence of the block behind", alone + put + fence + set, alone + spin + "membar.cta;" + get, "no fence of scope .gpu"},
		{"flag of the block's scope", alone + put + fence + "st.relaxed.cta.global.u32 [%flag], 1;", alone + spin + fence + get, "scope .cta"},
		{"wait of the block's scope", alone + put + fence + set, alone + strings.Replace(spin, "gpu", "cta", 1) + fence + get, "scope .cta of ld.relaxed.cta"},
		{"release of the block's scope", alone + put + "st.release.cta.global.u32 [%flag], 1;", alone + strings.Replace(spin, "relaxed", "acquire", 1) + get, "scope .cta"},
		{"relaxed for release", alone + put + set, alone + strings.Replace(spin, "relaxed", "acquire", 1) + get, "no fence before"},
		{"relaxed for acquire", alone + put + "st.release.gpu.global.u32 [%flag], 1;", alone + spin + get, "no fence of scope .gpu"},
		{"flag before data", alone + fence + set + put, alone + spin + fence + get, "comes after the fence"},
		{"fence before data", alone + fence + put + set, alone + spin + fence + get, "comes after the fence"},
		{"data before the wait", alone + put + fence + set, alone + get + spin + fence, "nothing orders the two blocks"},
		{"plain flag", alone + put + fence + "st.global.u32 [%flag], 1;", alone + spin + fence + get, "is plain"},
		{"plain wait", alone + put + fence + set, alone + strings.Replace(spin, "relaxed.gpu.", "", 1) + fence + get, "is plain"},
		{"plain flag and wait", alone + put + fence + "st.global.u32 [%flag], 1;", alone + strings.Replace(spin, "relaxed.gpu.", "", 1) + fence + get, "nothing orders"},
		{"plain data to an atomic", alone + put, alone + "red.global.add.u32 [%data], 1;", "is plain"},
		{"no barrier before the fence", putAll + only("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;"), spinAll + fence + getAll, "no barrier between the thread of the other access"},
		{"barrier behind the fence", putAll + only("fence.acq_rel.gpu;") + barrier + only("st.relaxed.gpu.global.u32 [%flag], 1;"), spinAll + fence + getAll, "no barrier between the thread of the other access"},
		{"no barrier behind the wait", putAll + barrier + only("st.release.gpu.global.u32 [%flag], 1;"), spinOne + fence + "D:" + getNext, "no barrier between the thread that waits"},
		{"another flag", alone + put + fence + set, alone + "ld.relaxed.gpu.global.u32 %r1, [%more];" + fence + get, "nothing orders"},
		{"two writers", putAll, putAll, "nothing orders the blocks of a grid"},
		{"two writers of the same value", alone + put, alone + put, "nothing orders"},
		{"writer and reader", putAll, getAll, "nothing orders"},
		{"overlap of a byte", alone + "st.global.u32 [%data], 7;", alone + "st.global.u8 [%data+3], 7;", "nothing orders"},
		{"overlap of a vector", alone + "st.global.v4.u32 [%data], {%t, %t, %t, %t};", alone + "ld.global.u32 %r1, [%data+12];", "nothing orders"},
		{"strong accesses of two sizes", alone + "st.relaxed.gpu.global.u64 [%data], 7;", alone + "ld.relaxed.gpu.global.u32 %r1, [%data];", "8 bytes"},
		{"atomics of the block's scope", alone + "red.cta.global.add.u32 [%data], 1;", alone + "red.global.add.u32 [%data], 1;", "scope .cta"},
		{"no barrier in the block", putAll + getNext, "exit;", "no barrier of the block"},
		{"no syncwarp", "setp.lt.u32 %q, %t, 32; @!%q exit;" + putAll + "xor.b32 %r3, %t, 1; mul.wide.u32 %x1, %r3, 4; add.s64 %x1, %x1, %data; ld.global.u32 %r2, [%x1];", "exit;", "bar.warp.sync"},
		{"lanes to one place", putAll + put, "exit;", "bar.warp.sync"},
		{"a wait in a block by a plain load", "@%one bra T;" + strings.Replace(spin, "relaxed.gpu.", "", 1) + "exit; T:" + put + fence + set, "exit;", "B"},
		{"copied before the wait", alone + put + fence + set, alone + "mov.u32 %r4, s; cp.async.ca.shared.global [%r4], [%data], 4; cp.async.wait_all;" + spin + fence, "nothing orders"},
		{"unlocked without a fence", alone + "L: atom.global.acquire.gpu.cas.b32 %r1, [%flag], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L; ld.global.u32 %r2, [%data]; add.u32 %r2, %r2, 1; st.global.u32 [%data], %r2; atom.global.exch.b32 %r1, [%flag], 0;",
			alone + "L2: atom.global.acquire.gpu.cas.b32 %r1, [%flag], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L2; ld.global.u32 %r2, [%data]; add.u32 %r2, %r2, 1; st.global.u32 [%data], %r2; atom.global.exch.b32 %r1, [%flag], 0;", "no fence before atom.global.exch"},
		{"a flag that is overwritten", alone + put + fence + set, "@%one bra Q; setp.ne.u32 %q, %t, 32; @%q exit; st.relaxed.gpu.global.u32 [%flag], 1; exit; Q:" + spin + fence + get, "A"},
	} {
		for seed := range uint64(5) {
			o := Options{Checks: Globalcheck, Seed: seed}
			if seed > 2 {
				o.Schedule, o.Checks = Independent, AllChecks
			}
			r := newRig(t, talker(c.first, c.second), o.Checks&Initcheck != 0)
			rep, err := r.try("k", d1(2), d1(64), o, r.upload(make([]uint32, 64), "data"), r.upload(make([]uint32, 64), "flag"))
			if err != nil {
				t.Errorf("%s, seed %d: %v", c.name, seed, err)
				continue
			}
			judge(t, fmt.Sprintf("%s, seed %d", c.name, seed), rep.Findings, c.want, seed)
		}
	}
}

// judge compares the findings about global memory with what is expected: a text, or that there is one whatever it says
// (A: under some seed, B: under each). Which of two accesses comes first depends on the seed, and so may what is missing.
func judge(t *testing.T, name string, found []Finding, want string, seed uint64) {
	t.Helper()
	var global []string
	for _, f := range found {
		if f.Check == Globalcheck {
			global = append(global, f.Message())
		}
	}
	switch {
	case want == "" && len(global) > 0:
		t.Errorf("%s: %s", name, global)
	case want == "" || want == "A":
	case len(global) == 0:
		t.Errorf("%s: nothing found", name)
	case want != "B" && seed == 0 && !strings.Contains(strings.Join(global, "\n"), want):
		t.Errorf("%s: not %q but %s", name, want, global)
	}
}
