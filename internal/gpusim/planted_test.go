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
		{"the store not waited for", `cp\.async\.bulk\.wait_group 0;`, "", "exits while the bulk copy may still be reading"},
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
			{"a relaxed wait", `try_wait\.parity`, "try_wait.parity.relaxed.cta", "may still be writing"},
			{"a relaxed wait with a fence behind", `(?s)try_wait\.parity(.*?W;)`, "try_wait.parity.relaxed.cta$1 fence.acq_rel.cta;", ""},
			{"a relaxed wait with a barrier behind", `(?s)try_wait\.parity(.*?W;)`, "try_wait.parity.relaxed.cta$1 bar.sync 0;", ""},
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
			{"the fence of the other memory", `async\.shared::cta;`, "async.global;", "wrote without a fence.proxy.async"},
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

// TestPlantedMeetings: lanes and warps that leave before others meet, and arrays that are left for the next. What is written as
// "advice: …" is said and is no finding.
func TestPlantedMeetings(t *testing.T) {
	const (
		warpOps = "shfl.sync.bfly.b32 %r1, %lane, 1, 31, -1;\nadd.u32 %lane, %lane, %r1;\nst.global.u32 [%out], %lane;\n"
		block   = "mov.u32 %r2, s; and.b32 %r3, %lane, 31; shl.b32 %r4, %r3, 2; add.u32 %r2, %r2, %r4; setp.lt.u32 %p, %lane, 32;\n@%p st.shared.u32 [%r2], %lane;\nbar.sync 0;\nld.shared.u32 %r1, [%r2];\nst.global.u32 [%out], %r1;\n"
		local   = "and.b32 %r1, %lane, 3; shl.b32 %r1, %r1, 2; mov.u32 %r2, u; add.u32 %r2, %r2, %r1; mov.u32 %r3, 1; st.local.u32 [%r2], %r3; mov.u32 %r4, v; st.local.u32 [%r4], %r3; ld.local.u32 %r5, [%r2];\nst.global.u32 [%out], %r5;\n"
		other   = "the mask names lanes that go another way and exit without executing it: 16 to 31"
		gone    = "advice: the mask names lanes that have returned: 16 to 31"
		some    = "setp.ge.u32 %q, %lane, 16;\n"
		store   = "st.global.u32 [%out], 7; "
	)
	for _, c := range []struct {
		body string
		bugs []plantedBug
	}{
		{warpOps, []plantedBug{
			{"nothing", "$", "", ""},
			{"others return at once", "^", some + "@%q bra E;\n", gone},
			{"others exit at once", "^", some + "@%q exit;\n", gone},
			{"others work and exit", "^", some + "@%q bra L;\n", other},
			{"others work and exit, and the mask says so", `^shfl([^;]*), -1;`, some + "@%q bra L;\nshfl$1, 0xffff;", ""},
			{"others return, and the mask says so", `^shfl([^;]*), -1;`, some + "@%q bra E;\nshfl$1, 0xffff;", ""},
			{"a vote", `^shfl[^;]*;`, some + "@%q bra L;\nvote.sync.all.pred %p, 1, -1; mov.u32 %r1, 1;", other},
			{"a ballot", `^shfl[^;]*;`, some + "@%q bra L;\nvote.sync.ballot.b32 %r1, 1, -1;", other},
			{"a match", `^shfl[^;]*;`, some + "@%q bra L;\nmatch.any.sync.b32 %r1, %lane, -1;", other},
			{"a reduction", `^shfl[^;]*;`, some + "@%q bra L;\nredux.sync.add.u32 %r1, %lane, -1;", other},
			{"a barrier of the warp", `^shfl[^;]*;`, some + "@%q bra L;\nbar.warp.sync -1; mov.u32 %r1, 1;", other},
			{"a barrier of half the warp", `^shfl[^;]*;`, some + "@%q bra L;\nbar.warp.sync 0xffff; mov.u32 %r1, 1;", ""},
			{"a lane that is missing is read", `^shfl[^;]*;`, some + "@%q bra E;\nshfl.sync.bfly.b32 %r1, %lane, 16, 31, -1;", "a shuffle reads a lane that takes no part"},
		}},
		{block, []plantedBug{
			{"nothing", "$", "", ""},
			{"a warp returns at once", "^", "setp.ge.u32 %q, %lane, 96; @%q bra E;\n", "advice: 1 of the block's 4 warps had exited without coming to this barrier"},
			{"a warp leaves the barrier out, and what it reads was not written", `bar\.sync 0;`, "setp.ge.u32 %q, %lane, 96; @%q bra N; bar.sync 0; bra M; N: ld.shared.u32 %r1, [%r2]; bra E; M:", "without a barrier between them"},
			{"all warps but one return", "^", "setp.ge.u32 %q, %lane, 32; @%q exit;\n", "advice: 3 of the block's 4 warps had exited"},
			{"the barrier names those that are left", `^([^\n]*\n[^\n]*\n)bar\.sync 0;`, "setp.ge.u32 %q, %lane, 96; @%q exit;\n${1}bar.sync 0, 96;", ""},
			{"a part of a warp returns", "^", "setp.ge.u32 %q, %lane, 112; @%q exit;\n", "whose other lanes have exited"},
		}},
		{local, []plantedBug{
			{"nothing", "$", "", ""},
			{"one too many", `add\.u32 %r2, %r2, %r1;`, "add.u32 %r2, %r2, %r1; add.u32 %r2, %r2, 4;", "0 bytes past the end of u of 16 bytes"},
			{"a row too many", `add\.u32 %r2, %r2, %r1;`, "add.u32 %r2, %r2, %r1; add.u32 %r2, %r2, 16;", "0 bytes past the end of u of 16 bytes"},
		}},
	} {
		for _, b := range c.bugs {
			src := wrap(".reg .b32 %r<9>; .shared .align 16 .b8 s[128]; .local .align 4 .b8 u[16]; .local .align 4 .b8 v[16];",
				b.change(t, c.body)+"ret;\nL: "+store+"ret;\nE:")
			for _, o := range []Options{{Checks: AllChecks}, {Checks: AllChecks, Seed: 1, Schedule: Independent}, {Checks: AllChecks, Seed: 4}, {Checks: AllChecks, Seed: 3, Schedule: Independent}} {
				r := newRig(t, src, true)
				threads := 32
				if c.body == block {
					threads = 128
				}
				rep, err := r.try("k", d1(1), d1(threads), o, r.upload(make([]uint64, 4*128), "in"), r.alloc(8*128, "out"))
				got := found(rep, err)
				if says, ok := strings.CutPrefix(b.says, "advice: "); ok {
					if got != "" || len(rep.Advice) != 1 || !strings.Contains(rep.Advice[0].Msg, says) {
						t.Errorf("%s, seed %d: %q, and the advice is %v", b.name, o.Seed, got, rep.Advice)
					}
					continue
				}
				if b.says == "" && rep != nil && len(rep.Advice) > 0 {
					t.Errorf("%s, seed %d: advice %v", b.name, o.Seed, rep.Advice)
				}
				b.judge(t, got, o)
			}
		}
	}
}

// TestPlantedBulkGlobal: bulk copies and other blocks, by the memory model.
func TestPlantedBulkGlobal(t *testing.T) {
	const (
		roles   = "mov.u32 %rank, %ctaid.x; setp.ne.u32 %q, %rank, 0;\n"
		fill    = "shl.b32 %i, %t, 2; add.u32 %i, %i, %s; st.shared.b32 [%i], %t; fence.proxy.async.shared::cta; bar.sync 0;\n"
		mine    = "mul.wide.u32 %a, %rank, 256; add.s64 %out, %out, %a;\n"
		store   = "@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256;\n"
		reduce  = "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [%s], 256;\n"
		over    = "@%first cp.async.bulk.commit_group;\n@%first cp.async.bulk.wait_group 0;\n"
		set     = "@%first fence.acq_rel.gpu;\n@%first st.relaxed.gpu.global.u32 [%in], 1;\n"
		wait    = "L: ld.relaxed.gpu.global.u32 %w, [%in]; setp.eq.u32 %p, %w, 0; @%p bra L;\nfence.acq_rel.gpu;\n"
		address = "mul.wide.u32 %a, %t, 4; add.s64 %a, %a, %out;\n"
		first   = "@%q bra SECOND;\n"
	)
	load := initBarrier(1) + "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\n@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%out], 256, [%bar];\n" +
		waitFor("W", "%bar", 0)
	second := "bra E;\nSECOND:\n"
	for _, c := range []struct {
		body string
		bugs []plantedBug
	}{
		{roles + fill + mine + store + over, []plantedBug{
			{"each its own place", "$", "", ""},
			{"one place for both", `mul\.wide\.u32 %a, %rank, 256;`, "mov.u64 %a, 0;", "write of what thread 0,0,0 of block 0,0,0 writes, in no order"},
			{"places that overlap", `%rank, 256;`, "%rank, 128;", "write of what thread"},
		}},
		{roles + fill + reduce + over, []plantedBug{
			{"sums of both in one place", "$", "", ""},
			{"one of them stores", `$`, "and.pred %p, %q, %first; @%p st.global.u32 [%out+64], 1;\n", "in no order"},
		}},
		{roles + address + first + load + second + "st.global.u32 [%a+256], %t;\n", []plantedBug{
			{"one reads, the other writes elsewhere", "$", "", ""},
			{"one writes what the other reads", `\+256\]`, "]", "in no order"},
		}},
		{roles + address + first + fill + store + over + set + second + wait + "ld.global.u32 %v, [%a];\n", []plantedBug{
			{"stored, waited for, told", "$", "", ""},
			{"told before", `(?s)(@%first cp.async.bulk.global.*?wait_group 0;\n)(.*?)bra E;`, "$2$1 bra E;", "in no order"},
			{"no fence before", `@%first fence\.acq_rel\.gpu;`, "", "no fence before st.relaxed"},
			{"another flag", `(?s)L: .*?bra L;`, "ld.relaxed.gpu.global.u32 %w, [%in+64];", "in no order"},
		}},
		{roles + address + first + load + set + second + wait + "st.global.u32 [%a], %t;\n", []plantedBug{
			{"read, waited for, told", "$", "", ""},
			{"another thread tells", `(?s)@%first (fence.acq_rel.gpu;\n)@%first (st.relaxed)`, "setp.eq.u32 %first, %t, 40;\n@%first ${1}@%first $2", ""},
			{"another flag", `(?s)L: .*?bra L;`, "ld.relaxed.gpu.global.u32 %w, [%in+64];", "in no order"},
		}},
	} {
		for _, b := range c.bugs {
			src := hopperKernel("", b.change(t, c.body)+"E:")
			for _, o := range []Options{{Checks: Globalcheck}, {Checks: Globalcheck, Seed: 7}} {
				r := hopper(t, src)
				o.StepLimit = 1 << 20
				rep, err := r.try("k", d1(2), d1(64), o, r.upload(make([]uint32, 1024), "in"), r.upload(words(1024), "out"))
				if o.Seed > 0 && b.says != "" { // which of the two is first depends on it
					b.says = "global: "
				}
				b.judge(t, found(rep, err), o)
			}
		}
	}
}
