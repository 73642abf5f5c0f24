package gpusim

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// plantedBug changes a correct kernel so that a check finds something; says is part of what is found, empty if the change is none.
type plantedBug struct {
	name, from, to string
	says           string
}

// change applies a bug; from is a regular expression that must match.
func (b *plantedBug) change(t *testing.T, src string) string {
	t.Helper()
	re := regexp.MustCompile(b.from)
	if !re.MatchString(src) {
		t.Fatalf("%s: nothing like %q", b.name, b.from)
	}
	first := true
	return re.ReplaceAllStringFunc(src, func(m string) string {
		if !first {
			return m
		}
		first = false
		return re.ReplaceAllString(m, b.to)
	})
}

// found is all that a launch reports, as text.
func found(rep *Report, err error) string {
	var b strings.Builder
	if rep != nil {
		for _, f := range rep.Findings {
			fmt.Fprintln(&b, f)
		}
	}
	var fault *Fault
	if errors.As(err, &fault) {
		fmt.Fprintln(&b, fault)
	} else if err != nil {
		fmt.Fprintln(&b, "error:", err)
	}
	return b.String()
}

func (b *plantedBug) judge(t *testing.T, got string, o Options) {
	t.Helper()
	switch {
	case b.says == "" && got != "":
		t.Errorf("%s, seed %d: a near miss that is reported: %s", b.name, o.Seed, got)
	case b.says != "" && !strings.Contains(got, b.says):
		t.Errorf("%s, seed %d: not found, but %q", b.name, o.Seed, got)
	}
}

// TestPlantedInGemm: the product by hand with one thing wrong in it.
func TestPlantedInGemm(t *testing.T) {
	text, err := os.ReadFile("testdata/hopper.ptx")
	if err != nil {
		t.Fatal(err)
	}
	const m, n, k = 128, 256, 448 // more steps than stages
	for _, b := range []plantedBug{
		{"no proxy fence before the store", `fence\.proxy\.async\.shared::cta;`, "", "wrote without a fence.proxy.async"},
		{"the fence behind the barrier, by all", `fence\.proxy\.async\.shared::cta;\s*bar\.sync 1, 256;`, "bar.sync 1, 256; fence.proxy.async.shared::cta;", ""},
		{"no wait for an empty stage", `(?s)(again[^\n]*:\s*mbarrier\.try_wait\.parity\.shared::cta\.b64 done, \[%r\d+\], %r\d+;)\s*@!done bra [^;]*;`, "$1", "an mbarrier whose phase waits for 0 more"},
		{"no wait for the products", `wgmma\.wait_group\.sync\.aligned 0;`, "", "wgmma"},
		{"the newest products not waited for", `wgmma\.wait_group\.sync\.aligned 0;`, "wgmma.wait_group.sync.aligned 1;", "wgmma"},
		{"no barrier before shared memory is used again", `bar\.sync 1, 256;`, "", "may still be"},
		{"the store not waited for", `cp\.async\.bulk\.wait_group 0;`, "", ""},
		{"registers raised by dec", `setmaxnreg\.inc\.sync\.aligned\.u32 232`, "setmaxnreg.inc.sync.aligned.u32 232; setmaxnreg.dec.sync.aligned.u32 240", "setmaxnreg to 240 of a warp that has 232"},
	} {
		src := b.change(t, string(text))
		for _, o := range []Options{{Checks: AllChecks}, {Checks: AllChecks, Seed: 5}} {
			r := hopper(t, src)
			kernel, grid, params, _ := gemmTMA(r, make([]uint16, m*k), make([]uint16, n*k), m, n, k)
			o.StepLimit = 1 << 20
			rep, err := r.dev.Launch(kernel, grid, d1(384), gemmShared, params, o)
			b.judge(t, found(rep, err), o)
		}
	}
}

// TestPlantedAsync: small kernels of Hopper with one thing wrong in them.
func TestPlantedAsync(t *testing.T) {
	load := initBarrier(1) + "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 4096;\n" +
		"@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 4096, [%bar];\n" + waitFor("W", "%bar", 0) +
		"shl.b32 %i, %t, 2; add.u32 %i, %i, %s; ld.shared.b32 %v, [%i];\n"
	store := "shl.b32 %i, %t, 2; add.u32 %i, %i, %s; st.shared.b32 [%i], %t; fence.proxy.async.shared::cta; bar.sync 0;\n" +
		"@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256;\n@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group.read 0;\nbar.sync 0; st.shared.b32 [%i], 7;\n"
	cluster := "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nxor.b32 %i, %rank, 1; mapa.shared::cluster.u32 %j, %s, %i; st.shared::cluster.u32 [%j], %t;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
	product := ".reg .b32 %d<4>; .reg .b64 %dx, %dy; mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;\n" +
		"shl.b32 %i, %t, 4; add.u32 %i, %i, %s; mov.b32 %v, 0; st.shared.v4.b32 [%i], {%v,%v,%v,%v}; st.shared.v4.b32 [%i+2048], {%v,%v,%v,%v}; fence.proxy.async; bar.sync 0;\n" +
		"shr.u32 %j, %s, 4; cvt.u64.u32 %dx, %j; mov.b64 %dy, 0x1000080000; or.b64 %dx, %dx, %dy; wgmma.fence.sync.aligned;\n" +
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0,%d1,%d2,%d3}, %dx, %dx, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n" +
		"wgmma.wait_group.sync.aligned 0;\nadd.f32 %d0, %d0, %d1; bar.sync 0; st.shared.v4.b32 [%i], {%v,%v,%v,%v};\n"
	for _, c := range []struct {
		body, directives string
		threads          int
		blocks           [3]int
		bugs             []plantedBug
	}{
		{load, "", 64, [3]int{}, []plantedBug{
			{"nothing", "$", "", ""},
			{"no wait", `@!%p bra W;`, "", "without a barrier between them"},
			{"one thread of the block waits", `(?s)W: (.*)@!%p bra W;`, "@!%first bra X;\nW: $1@!%p bra W;\nX:", "may still be writing"},
			{"one waits, and a barrier", `(?s)W: (.*)@!%p bra W;`, "@!%first bra X;\nW: $1@!%p bra W;\nX: bar.sync 0;", ""},
			{"bytes missing", `_, \[%bar\], 4096`, "_, [%bar], 4112", "and for 16 bytes"},
			{"bytes too many", `_, \[%bar\], 4096`, "_, [%bar], 4080", "16 bytes more than it expects"},
			{"two arrivals expected", `\[%bar\], 1;`, "[%bar], 2;", "waits for 1 more arrivals of 2"},
			{"a copy of no multiple of 16", `\[%in\], 4096, \[%bar\]`, "[%in], 4088, [%bar]", "multiples of 16"},
			{"a misaligned destination", `bytes \[%s\]`, "bytes [%s+8]", "misaligned"},
			{"past the end of the buffer", `\[%in\], 4096, \[%bar\]`, "[%in+64], 4096, [%bar]", "out-of-bounds read"},
			{"an end without a wait", `(?s)W: .*`, "", "the block ends while"},
			{"the mbarrier ended too soon", `W: mbarrier`, "@%first mbarrier.inval.shared::cta.b64 [%bar];\nbra E;\nW: mbarrier", "copies under way will complete on"},
			{"written before", `@%first cp`, "st.shared.b32 [%s], 1; bar.sync 0;\n@%first cp", "overwrites bytes that a thread wrote without a fence"},
			{"written before, with a fence", `@%first cp`, "@%first st.shared.b32 [%s], 1; @%first fence.proxy.async; \n@%first cp", ""},
			{"written before by another, without a barrier", `@%first cp`, "setp.eq.u32 %q, %t, 40; @%q st.shared.b32 [%s+32], 1; @%q fence.proxy.async;\n@%first cp", "overwrites bytes that a thread wrote without a fence"},
			{"no mbarrier", `@%first mbarrier\.init[^;]*;`, "", "no mbarrier is initialised"},
		}},
		{store, "", 64, [3]int{}, []plantedBug{
			{"nothing", "$", "", ""},
			{"no fence", `fence\.proxy\.async\.shared::cta;`, "", "wrote without a fence.proxy.async"},
			{"one thread's fence", `fence\.proxy\.async\.shared::cta;`, "@%first fence.proxy.async.shared::cta;", "wrote without a fence.proxy.async"},
			{"the fence behind the barrier, by the thread that issues", `fence\.proxy\.async\.shared::cta; bar\.sync 0;`, "bar.sync 0; @%first fence.proxy.async.shared::cta;", ""},
			{"no wait", `@%first cp\.async\.bulk\.wait_group\.read 0;`, "", "a bulk copy may still be reading"},
			{"a wait for all but one group", `wait_group\.read 0`, "wait_group.read 1", "a bulk copy may still be reading"},
			{"no barrier behind the wait", `0;\nbar\.sync 0; st`, "0;\nst", "a bulk copy may still be reading"},
			{"no group", `@%first cp\.async\.bulk\.commit_group;`, "", "a bulk copy may still be reading"},
			{"no barrier before", `bar\.sync 0;\n@%first cp`, "\n@%first cp", "a bulk copy may still be reading"},
		}},
		{cluster, "", 32, [3]int{2, 1, 1}, []plantedBug{
			{"nothing", "$", "", ""},
			{"a block that has exited", `^`, "setp.eq.u32 %q, %rank, 0; @%q exit;\n", "of a block that has exited"},
			{"arrival twice", `barrier\.cluster\.arrive\.aligned;`, "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", "arrive again without"},
			{"a wait without arrival", `^`, "barrier.cluster.wait.aligned; ", "that have not arrived"},
			{"a block that does not come", `xor`, "setp.eq.u32 %q, %rank, 0; L: @%q bra L;\nxor", "endless loop"},
			{"a block that the cluster lacks", `xor\.b32 %i, %rank, 1`, "mov.b32 %i, 2", "a block that the cluster does not have"},
		}},
		{product, "", 128, [3]int{}, []plantedBug{
			{"nothing", "$", "", ""},
			{"no wait", `wgmma\.wait_group\.sync\.aligned 0;`, "", "a wgmma under way writes"},
			{"no fence of registers", `wgmma\.fence\.sync\.aligned;`, "", "without a wgmma.fence"},
			{"registers written behind the fence", `(wgmma\.fence\.sync\.aligned;)`, "$1 mov.b32 %d2, 0;", "without a wgmma.fence"},
			{"other registers written behind the fence", `(wgmma\.fence\.sync\.aligned;)`, "$1 mov.b32 %w, 0;", ""},
			{"registers written in flight", `(wgmma\.commit_group\.sync\.aligned;)`, "$1 mov.b32 %d3, 0;", "write of a register that a wgmma under way uses"},
			{"no proxy fence", `fence\.proxy\.async;`, "", "wrote without a fence.proxy.async"},
			{"shared memory written too soon", `wgmma\.wait_group\.sync\.aligned 0;\nadd\.f32 %d0, %d0, %d1; bar\.sync 0; (st[^;]*;)`, "$1 wgmma.wait_group.sync.aligned 0;", "a wgmma may still be reading"},
			{"a part of a group of warps", `wgmma\.fence`, "setp.lt.u32 %q, %t, 32; @%q bra.uni END; wgmma.fence", "have not executed the same wgmma"},
			{"no barrier behind the writes", `fence\.proxy\.async; bar\.sync 0;`, "fence.proxy.async;", "without a barrier"},
		}},
	} {
		for _, b := range c.bugs {
			src := hopperKernel(c.directives, b.change(t, c.body)+"V: E: END:")
			for _, o := range []Options{{Checks: AllChecks}, {Checks: AllChecks, Seed: 7}} {
				r := hopper(t, src)
				o.Cluster, o.StepLimit = c.blocks, 1<<20
				rep, err := r.try("k", [3]int{max(c.blocks[0], 1), 1, 1}, d1(c.threads), o, r.upload(words(1024), "in"), r.upload(words(1024), "out"))
				b.judge(t, found(rep, err), o)
			}
		}
	}
}
