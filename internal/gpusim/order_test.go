package gpusim

import (
	"strings"
	"testing"
)

// orderings are bodies over shared memory s: lane addresses are in %m, the number of the warp in %z, %p is for warp 0.
const orderings = "mov.u32 %r0, s; shl.b32 %r1, %lane, 2; add.u32 %m, %r0, %r1; shr.u32 %z, %lane, 5; and.b32 %y, %lane, 31; setp.eq.u32 %p, %z, 0; " +
	"setp.eq.u32 %q, %lane, 0; @%q st.shared.u32 [s+2048], 0; @%q st.shared.u32 [s+2052], 0; @%q st.shared.u32 [s+2056], 0; bar.sync 0; "

// TestOrder: what fences, strong accesses and barriers put in order, and what they do not.
func TestOrder(t *testing.T) {
	const (
		poll  = "W: ld.volatile.shared.u32 %r5, [s+2048]; setp.eq.u32 %c1, %r5, 0; @%c1 bra W; "
		swap  = "xor.b32 %r4, %lane, 32; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r0; "
		take  = "L: atom.shared.cas.b32 %r5, [s+2048], 0, 1; setp.ne.u32 %c1, %r5, 0; @%c1 bra L; "
		count = "ld.shared.u32 %r6, [s+2052]; add.u32 %r6, %r6, 1; st.shared.u32 [s+2052], %r6; "
		give  = "atom.shared.exch.b32 %r5, [s+2048], 0; "
		free  = "st.volatile.shared.u32 [s+2048], 0; "
	)
	for _, c := range []struct {
		name, body string
		race       bool
	}{
		{"histogram", "and.b32 %r3, %lane, 7; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r0; setp.lt.u32 %c1, %lane, 8; @%c1 st.shared.u32 [%m], 0; bar.sync 0; atom.shared.add.u32 %r6, [%r3], 1; bar.sync 0; ld.shared.u32 %r5, [%r3];", false},
		{"histogram without a barrier before", "and.b32 %r3, %lane, 7; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r0; setp.lt.u32 %c1, %lane, 8; @%c1 st.shared.u32 [%m], 0; atom.shared.add.u32 %r6, [%r3], 1; bar.sync 0;", true},
		{"histogram without a barrier behind", "atom.shared.add.u32 %r6, [s+2052], 1; ld.shared.u32 %r5, [s+2052];", true},
		{"atomics of all kinds", "atom.shared.add.u32 %r6, [s+2052], 1; red.shared.max.u32 [s+2052], %lane; atom.shared.cas.b32 %r6, [s+2052], 0, %lane; atom.shared.exch.b32 %r6, [s+2052], %lane; atom.relaxed.cta.shared.or.b32 %r6, [s+2052], 4;", false},
		{"lock", take + "membar.cta; " + count + "membar.cta; " + give, false},
		{"lock freed by a store", take + "fence.acq_rel.cta; " + count + "membar.cta; " + free, false},
		{"lock with semantics of its own", strings.Replace(take, "atom.", "atom.acquire.cta.", 1) + count + strings.Replace(give, "atom.", "atom.release.cta.", 1), false},
		{"lock without fences", take + count + give, true},
		{"lock without a fence behind", take + "membar.cta; " + count + free, true},
		{"lock without a fence before", take + count + "membar.cta; " + give, true},
		{"flag", swap + "@!%p bra W; st.shared.u32 [%m], %lane; membar.cta; bar.warp.sync -1; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "membar.cta; ld.shared.u32 %r6, [%r4]; E:", false},
		{"flag after __syncwarp and a fence of one lane", swap + "@!%p bra W; st.shared.u32 [%m], %lane; bar.warp.sync -1; @%q membar.cta; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "membar.cta; ld.shared.u32 %r6, [%r4]; E:", false},
		{"flag with semantics of its own", swap + "@!%p bra W; st.shared.u32 [%m], %lane; bar.warp.sync -1; @%q st.release.cta.shared.u32 [s+2048], 1; bra E; " + strings.Replace(poll, "volatile", "acquire.cta", 1) + "ld.shared.u32 %r6, [%r4]; st.shared.u32 [%r4], 0; E:", false},
		{"flag without fences", swap + "@!%p bra W; st.shared.u32 [%m], %lane; bar.warp.sync -1; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "ld.shared.u32 %r6, [%r4]; E:", true},
		{"flag without a fence of the reader", swap + "@!%p bra W; st.shared.u32 [%m], %lane; membar.cta; bar.warp.sync -1; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "ld.shared.u32 %r6, [%r4]; E:", true},
		{"flag of one lane for all", swap + "@!%p bra W; st.shared.u32 [%m], %lane; @%q membar.cta; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "membar.cta; ld.shared.u32 %r6, [%r4]; E:", true},
		{"flag alone", "@!%p bra W; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " + poll + "E:", false},
		{"flag that carries a value", "@!%p bra W; @%q st.volatile.shared.u32 [s+2048], 9; bra E; " + poll + "cvt.u64.u32 %d, %r5; E:", false},
		{"flag handed on", swap + "@!%p bra V; st.shared.u32 [%m], %lane; membar.cta; bar.warp.sync -1; @%q st.volatile.shared.u32 [s+2048], 1; bra E; " +
			"V: setp.eq.u32 %c2, %z, 1; @!%c2 bra X; " + poll + "membar.cta; @%c2 st.volatile.shared.u32 [s+2056], 1; bra E; " +
			"X: ld.volatile.shared.u32 %r5, [s+2056]; setp.ne.u32 %c1, %r5, 1; @%c1 bra X; membar.cta; shl.b32 %r4, %y, 2; add.u32 %r4, %r4, %r0; ld.shared.u32 %r6, [%r4]; E:", false},
		{"neighbours", "xor.b32 %r4, %lane, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r0; st.volatile.shared.u32 [%m], %lane; ld.volatile.shared.u32 %r6, [%r4]; cvt.u64.u32 %d, %r6;", true},
		{"neighbours by relaxed accesses", "xor.b32 %r4, %lane, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r0; st.relaxed.cta.shared.u32 [%m], %lane; ld.relaxed.cta.shared.u32 %r6, [%r4]; cvt.u64.u32 %d, %r6;", true},
		{"neighbours with __syncwarp", "xor.b32 %r4, %lane, 1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r0; st.volatile.shared.u32 [%m], %lane; bar.warp.sync -1; ld.volatile.shared.u32 %r6, [%r4]; cvt.u64.u32 %d, %r6;", false},
		{"own volatile", "st.volatile.shared.u32 [%m], %lane; ld.volatile.shared.u32 %r6, [%m]; cvt.u64.u32 %d, %r6;", false},
		{"volatile reduction", volatileReduction(""), true},
		{"volatile reduction with __syncwarp", volatileReduction("bar.warp.sync -1; "), false},
		{"arrival is no wait", "shl.b32 %r3, %y, 4; add.u32 %r3, %r3, %r0; setp.gt.u32 %c2, %z, 1; @%c2 bra E; @%p bra A; bar.arrive 1, 64; ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r3]; bra E; A: st.shared.v4.u32 [%r3], {%lane, %lane, %lane, %lane}; bar.sync 1, 64; E:", true},
	} {
		for _, o := range []Options{{}, {Seed: 5}, {Seed: 8, Schedule: Independent}} {
			threads := 64
			switch {
			case c.name == "flag handed on":
				threads = 96
			case strings.HasPrefix(c.name, "lock"):
				threads = 36 // who waits for a lock spins long
			}
			got := findingsOf(t, threads, o, orderings+c.body)
			if race := strings.Contains(got, "racecheck"); race != c.race || !race && got != "" {
				t.Errorf("%s, %+v: %q", c.name, o, got)
			}
		}
	}
}

// volatileReduction is the sum of a warp as it was written before __syncwarp, in the first warp.
func volatileReduction(sync string) string {
	b := "setp.ge.u32 %c1, %lane, 32; @%c1 bra E; mov.u32 %r6, 1; st.volatile.shared.u32 [%m], %r6; st.volatile.shared.u32 [%m+128], 0; " + sync
	for _, o := range []string{"64", "32", "16", "8", "4"} {
		b += "ld.volatile.shared.u32 %r7, [%m+" + o + "]; " + sync + "add.u32 %r6, %r6, %r7; setp.lt.u32 %c2, %lane, " + o + "; @%c2 st.volatile.shared.u32 [%m], %r6; " + sync
	}
	return strings.Replace(b, "setp.lt.u32 %c2, %lane, 64", "setp.lt.u32 %c2, %lane, 16", 1) + "E:"
}

// TestAligned: barriers that are for whole warps.
func TestAligned(t *testing.T) {
	for _, c := range []struct {
		name, body string
		threads    int
		want       string // of the findings; none if empty
	}{
		{"half a warp, the rest exits", "setp.lt.u32 %p, %lane, 16; @!%p bra E; bar.sync 0; E:", 32, "part of a warp"},
		{"half of each warp", "and.b32 %y, %lane, 16; setp.eq.u32 %p, %y, 0; @%p bar.sync 0;", 64, "part of a warp"},
		{"loops of different length", "and.b32 %y, %lane, 1; mov.u32 %z, 0; L: bar.sync 0; add.u32 %z, %z, 1; setp.le.u32 %p, %z, %y; @%p bra L;", 32, "part of a warp"},
		{"half a warp by barrier", "setp.lt.u32 %p, %lane, 16; @!%p bra E; barrier.sync 0; E:", 32, ""},
		{"a whole warp exits before", "setp.lt.u32 %p, %lane, 32; @!%p exit; bar.sync 0;", 64, ""},
		{"a block that does not fill its last warp", "bar.sync 0;", 40, ""},
		{"two barriers in one instruction", "and.b32 %y, %lane, 1; bar.sync %y, 32;", 64, "different barriers"},
		{"two barriers in one instruction by barrier", "and.b32 %y, %lane, 1; barrier.sync %y, 32;", 64, ""},
		{"one never completes", "and.b32 %y, %lane, 1; barrier.sync %y;", 32, "deadlock"},
		{"a warp passes by and exits", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.sync 0; W:", 64, ""},
		{"a warp passes by to the next", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.sync 0;\nW: bar.sync 0;", 64, "different bar instructions, and one without a number of threads is for all of the block (the other is bar.sync"},
		{"one for each warp", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.sync 0; bra E;\nW: bar.sync 0; E:", 64, "different bar instructions, and one"},
		{"one for each warp by number", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.sync 0, 64; bra E;\nW: bar.sync 0, 64; E:", 64, ""},
		{"one for each warp by barrier", "setp.lt.u32 %p, %lane, 32; @!%p bra W; barrier.sync 0; bra E;\nW: barrier.sync 0; E:", 64, ""},
		{"with and without reduction", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.red.popc.u32 %y, 0, 64, %p; bra E;\nW: bar.sync 0, 64; E:", 64, "with and without .red"},
		{"parts of a warp arrive", "and.b32 %y, %lane, 16; setp.lt.u32 %p, %lane, 32; setp.eq.u32 %q, %y, 0; @!%p bra W; @!%q bra A; bar.arrive 1, 64; bra E; A: bar.arrive 1, 64; bra E; W: bar.sync 1, 64; E:", 64, "arrive by a part"},
		{"parts of a warp arrive by barrier", "and.b32 %y, %lane, 16; setp.lt.u32 %p, %lane, 32; setp.eq.u32 %q, %y, 0; @!%p bra W; @!%q bra A; barrier.arrive 1, 64; bra E; A: barrier.arrive 1, 64; bra E; W: barrier.sync 1, 64; E:", 64, ""},
		{"by number, and a warp has exited", "setp.lt.u32 %p, %lane, 32; @!%p exit; bar.sync 0, 64;", 64, "deadlock"},
	} {
		for _, o := range schedules {
			got := findingsOf(t, c.threads, o, c.body)
			if !strings.Contains(got, c.want) || c.want == "" && got != "" || c.want == "deadlock" && strings.Count(got, "\n") != 1 {
				t.Errorf("%s, %+v: %q", c.name, o, got)
			}
		}
	}
}

// TestSharedBarrier: warps that call a function from two places execute the same barrier.
func TestSharedBarrier(t *testing.T) {
	r, err := load(t, `.func meet()
{
	bar.sync 0;
	ret;
}
.visible .entry k()
{
	.reg .b32 %t; .reg .pred %p;
	mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;
	@!%p bra W;
	call meet; bra E;
W:
	call meet;
E:
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	r.launch("k", d1(1), d1(64), Options{Checks: AllChecks})
}
