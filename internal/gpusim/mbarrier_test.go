package gpusim

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// pipelined passes values between threads through shared memory in three phases of one mbarrier, as cuda::barrier does.
const pipelined = `.visible .entry k(.param .u64 out)
{
	.reg .b64 %o, %d, %state; .reg .b32 %i, %a, %b, %n, %v; .reg .pred %p, %q;
	.shared .align 8 .b8 bar[8]; .shared .b32 s[96];
	ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 4; add.u64 %o, %o, %d;
	mov.u32 %a, s; shl.b32 %b, %i, 2; add.u32 %a, %a, %b; // own place
	mov.u32 %b, s; mov.u32 %v, 95; sub.u32 %v, %v, %i; shl.b32 %v, %v, 2; add.u32 %b, %b, %v; // the opposite
	setp.eq.u32 %p, %i, 0;
	@%p mbarrier.init.shared.b64 [bar], 96;
	bar.sync 0; // after init
	mov.u32 %n, 0; mov.u32 %v, %i;
LOOP:
	st.shared.u32 [%a], %v;
	mbarrier.arrive.shared.b64 %state, [bar];
WAIT1:
	mbarrier.test_wait.shared.b64 %q, [bar], %state;
	@!%q bra WAIT1; // first wait
	ld.shared.u32 %v, [%b];
	add.u32 %v, %v, 1;
	mbarrier.arrive.shared.b64 %state, [bar];
WAIT2:
	mbarrier.test_wait.shared.b64 %q, [bar], %state;
	@!%q bra WAIT2; // second wait
	add.u32 %n, %n, 1;
	setp.lt.u32 %q, %n, 3;
	@%q bra LOOP;
	st.global.u32 [%o], %v;
	ret;
}
`

var mbarrierOptions = []Options{{}, {Seed: 4}, {Checks: inBlock}, {Checks: inBlock, Schedule: Independent, Seed: 9}}

func TestMbarrierPhases(t *testing.T) {
	for _, o := range mbarrierOptions {
		for _, src := range []string{pipelined, strings.NewReplacer( // the same by parity
			"test_wait.shared.b64 %q, [bar], %state;\n	@!%q bra WAIT1", "test_wait.parity.shared.b64 %q, [bar], 0;\n	@!%q bra WAIT1",
			"test_wait.shared.b64 %q, [bar], %state;\n	@!%q bra WAIT2", "test_wait.parity.shared.b64 %q, [bar], 1;\n	@!%q bra WAIT2",
			"arrive.shared.b64 %state", "arrive.shared.b64 _").Replace(pipelined)} {
			r, err := load(t, src)
			if err != nil {
				t.Fatal(err)
			}
			out := r.alloc(4*96, "out")
			r.launch("k", d1(2), d1(96), o, out)
			for i, v := range download[uint32](r, out, 96) {
				want := uint32(95-i) + 3
				if v != want {
					t.Fatalf("%+v: thread %d has %d, want %d", o, i, v, want)
				}
			}
		}
	}
}

// TestMbarrierRaces takes what orders away, bit by bit.
func TestMbarrierRaces(t *testing.T) {
	for _, gone := range []string{"bar.sync 0; // after init", "@!%q bra WAIT1; // first wait", "@!%q bra WAIT2; // second wait"} {
		for _, seed := range []uint64{0, 1, 2} {
			r, err := load(t, strings.Replace(pipelined, gone, "", 1))
			if err != nil {
				t.Fatal(err)
			}
			rep, err := r.try("k", d1(1), d1(96), Options{Checks: AllChecks, Seed: seed}, r.alloc(4*96, "out"))
			if rep == nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range rep.Findings {
				found = found || f.Check == Racecheck || strings.Contains(f.Msg, "no mbarrier is initialised")
			}
			if !found {
				t.Errorf("without %q, seed %d: %v, %v", gone, seed, rep.Findings, err)
			}
		}
	}
}

// elected has a producing warp, of which one lane arrives for all, and a consuming one, of which one lane waits for all.
const elected = `.visible .entry k(.param .u64 out)
{
	.reg .b64 %o, %d, %state; .reg .b32 %i, %a, %b, %v; .reg .pred %p, %q, %w;
	.shared .align 8 .b8 bar[8]; .shared .b32 s[32];
	ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 4; add.u64 %o, %o, %d;
	and.b32 %b, %i, 31; shl.b32 %b, %b, 2; mov.u32 %a, s; add.u32 %a, %a, %b;
	setp.eq.u32 %p, %i, 0;
	@%p mbarrier.init.shared.b64 [bar], 1;
	bar.sync 0;
	setp.lt.u32 %w, %i, 32; setp.eq.u32 %p, %b, 0;
	mov.u32 %v, %i;
	@!%w bra CONSUME;
	st.shared.u32 [%a], %v;
	bar.warp.sync -1; // before the arrival
	@%p mbarrier.arrive.shared.b64 %state, [bar];
	bra DONE;
CONSUME:
	@!%p bra WAITED;
WAIT:
	mbarrier.test_wait.parity.shared.b64 %q, [bar], 0;
	@!%q bra WAIT;
WAITED:
	bar.warp.sync -1; // behind the wait
	ld.shared.u32 %v, [%a];
DONE:
	st.global.u32 [%o], %v;
	ret;
}
`

// TestMbarrierByThread: an arrival tells what its own thread did and knew, and a wait tells it to its own thread alone.
func TestMbarrierByThread(t *testing.T) {
	relaxed := strings.NewReplacer("arrive.shared", "arrive.relaxed.cta.shared", "parity.shared", "parity.relaxed.cta.shared").Replace(elected)
	fenced := strings.NewReplacer("	@%p mbarrier.arrive", "	fence.acq_rel.cta;\n	@%p mbarrier.arrive", "WAITED:", "	fence.acq_rel.cta;\nWAITED:").Replace(relaxed)
	for _, c := range []struct {
		name, src string
		race      bool
	}{
		{"as it should be", elected, false},
		{"no sync before the arrival", strings.Replace(elected, "bar.warp.sync -1; // before", "//", 1), true},
		{"no sync behind the wait", strings.Replace(elected, "bar.warp.sync -1; // behind", "//", 1), true},
		{"relaxed", relaxed, true},
		{"relaxed, with fences", fenced, false},
	} {
		for _, o := range []Options{{}, {Seed: 3}, {Seed: 4, Schedule: Independent}} {
			r := newRig(t, ".version 7.4\n.target sm_80\n.address_size 64\n"+c.src, false)
			o.Checks = AllChecks
			rep, err := r.try("k", d1(1), d1(64), o, r.alloc(4*64, "out"))
			if err != nil {
				t.Fatal(err)
			}
			race := slices.ContainsFunc(rep.Findings, func(f Finding) bool { return f.Check == Racecheck })
			if race != c.race || !race && len(rep.Findings) > 0 {
				t.Errorf("%s, %+v: %v", c.name, o, rep.Findings)
			}
		}
	}
}

// TestMbarrierStates checks counts, dropping and what cp.async.mbarrier.arrive adds, in one thread.
func TestMbarrierStates(t *testing.T) {
	r, err := load(t, `.visible .entry k(.param .u64 in, .param .u64 out)
{
	.reg .b64 %o, %in, %s<9>, %g; .reg .b32 %r<16>; .reg .pred %p, %q;
	.shared .align 8 .b8 bar[16]; .shared .align 16 .b8 data[16];
	ld.param.u64 %in, [in]; ld.param.u64 %o, [out];
	mov.u64 %g, bar; cvta.shared.u64 %g, %g;
	mbarrier.init.shared.b64 [bar], 5;
	mbarrier.arrive.noComplete.shared.b64 %s0, [bar], 2; // 5 were pending
	mbarrier.arrive_drop.b64 %s1, [%g]; // 3
	mbarrier.pending_count.b64 %r0, %s0; mbarrier.pending_count.b64 %r1, %s1;
	mbarrier.test_wait.shared.b64 %p, [bar], %s1; selp.u32 %r2, 1, 0, %p;
	cp.async.ca.shared.global [data], [%in], 16;
	cp.async.mbarrier.arrive.shared.b64 [bar]; // counts for nothing
	cp.async.mbarrier.arrive.noinc.b64 [%g]; // 2, of which 1 is left
	mbarrier.arrive.shared.b64 %s2, [bar]; // 1
	mbarrier.pending_count.b64 %r3, %s2;
	mbarrier.test_wait.shared.b64 %p, [bar], %s1; selp.u32 %r4, 1, 0, %p;
	mbarrier.arrive.noComplete.shared.b64 %s3, [bar], 3; // 4 in the next phase: one was dropped
	mbarrier.pending_count.b64 %r5, %s3;
	mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; selp.u32 %r6, 1, 0, %p;
	mbarrier.test_wait.parity.shared.b64 %p, [bar], 1; selp.u32 %r7, 1, 0, %p;
	ld.shared.u32 %r8, [data+12];
	mbarrier.inval.shared.b64 [bar];
	mbarrier.init.shared.b64 [bar], 1;
	mbarrier.arrive.shared.b64 %s4, [bar]; mbarrier.pending_count.b64 %r9, %s4;
	st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%o+16], {%r4, %r5, %r6, %r7}; st.global.v2.u32 [%o+32], {%r8, %r9};
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range mbarrierOptions {
		in, out := r.upload([]uint32{1, 2, 3, 77}, "in"), r.alloc(40, "out")
		r.launch("k", d1(1), d1(1), o, in, out)
		if got, want := download[[10]uint32](r, out, 1)[0], [10]uint32{5, 3, 0, 1, 1, 4, 1, 0, 77, 1}; got != want {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
	}
}

// TestMbarrierMisuse: what the manual forbids stops the kernel, or is a finding.
func TestMbarrierMisuse(t *testing.T) {
	for body, want := range map[string]string{
		"mbarrier.arrive.shared.b64 _, [bar];":                                                                 "no mbarrier is initialised",
		"mbarrier.init.shared.b64 [bar], 0;":                                                                   "an mbarrier for 0 arrivals",
		"mbarrier.init.shared.b64 [bar], 1048576;":                                                             "an mbarrier for 1048576 arrivals",
		"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 %s, [bar], 2;":               "2 arrivals at an mbarrier whose phase waits for 1 more of 1",
		"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.noComplete.shared.b64 %s, [bar], 1;":               ".noComplete ends the phase",
		"mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [bar], 1;":                                "initialised that is in use",
		"mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; mbarrier.inval.shared.b64 [bar];": "no mbarrier is initialised",
		"mbarrier.init.shared.b64 [bar+4], 1;":                                                                 "misaligned",
		"mbarrier.init.shared.b64 [bar+8], 1;":                                                                 "out-of-bounds",
		"mov.u64 %s, g; cvta.global.u64 %s, %s; mbarrier.init.b64 [%s], 1;":                                    "outside shared memory",
	} {
		r, err := load(t, ".global .align 8 .b8 g[8];\n.visible .entry k()\n{\n.reg .b64 %s; .shared .align 8 .b8 bar[8];\n"+body+"\nret;\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		rep, err := r.try("k", d1(1), d1(1), Options{Checks: AllChecks})
		var f *Fault
		if rep == nil || err != nil && !errors.As(err, &f) {
			t.Fatal(err)
		}
		if len(rep.Findings) != 1 || !strings.Contains(rep.Findings[0].Msg, want) {
			t.Errorf("%s: %v, want %q", body, rep.Findings, want)
		}
	}
}
