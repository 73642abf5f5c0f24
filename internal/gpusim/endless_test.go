package gpusim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// TestEndless runs loops that nothing can end, under the usual limit, and long ones that do end.
func TestEndless(t *testing.T) {
	const one, all = "the block is where it was", "all blocks that run are where they were"
	const same = "ld.param.u64 %at, [in];" // one place for all threads
	for _, c := range []struct {
		name, body string
		blocks     int
		want       string // of the error; empty for none
	}{
		{"nothing", "L: bra L;", 1, one},
		{"nothing, many blocks", "L: bra L;", 5, one},
		{"values that come back", "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; and.b32 %r1, %r1, 7; setp.ne.u32 %p, %r1, 9; @%p bra L;", 1, one},
		{"some lanes", "setp.lt.u32 %p, %lane, 5; L: @%p bra L; bar.sync 0;", 1, one},
		{"lanes that part", "mov.u32 %r1, 0; L: xor.b32 %r1, %r1, %lane; and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; @%p bra A; add.u32 %r1, %r1, 0; A: bra L;", 1, one},
		{"barriers", "L: bar.sync 0; bra L;", 1, one},
		{"a flag in shared memory", "st.volatile.shared.u32 [s], 0; L: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p, %r1, 0; @%p bra L;", 2, one},
		{"a flag in global memory", "L: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p, %r1, 0; @%p bra L;", 1, one},
		{"a flag of other blocks", "L: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p, %r1, 0; @%p bra L;", 5, all},
		{"a barrier of the grid that counts too far", "atom.global.add.u32 %r2, [%in], 1; L: ld.volatile.global.u32 %r1, [%in]; setp.lt.u32 %p, %r1, 6; @%p bra L;", 5, all},
		{"a lock that nobody releases, by exchange", same + "L: atom.global.exch.b32 %r1, [%at], 1; setp.ne.u32 %p, %r1, 0; @%p bra L;", 1, one},
		{"a lock that a block keeps", same + "L: atom.global.cas.b32 %r1, [%at], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L;", 5, all},
		{"a lock in shared memory", same + "L: atom.shared.cas.b32 %r1, [s], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L;", 3, one},
		{"a flag that an addition of nothing reads", same + "L: atom.global.add.u32 %r1, [%at], 0; setp.eq.u32 %p, %r1, 0; @%p bra L;", 5, all},
		{"a flag that red does not raise", same + "L: red.global.max.u32 [%at], 0; ld.relaxed.gpu.global.u32 %r1, [%at]; setp.eq.u32 %p, %r1, 0; @%p bra L;", 5, all},
		{"a lock behind a pause", same + "L: atom.global.cas.b32 %r1, [%at], 0, 1; setp.eq.u32 %p, %r1, 0; @%p bra E; nanosleep.u32 20; bra L; E:", 5, all},
		{"a lock that is released", same + "and.b32 %r3, %lane, 31; setp.ne.u32 %p, %r3, 0; @%p bra E; L: atom.global.cas.b32 %r1, [%at], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L; ld.volatile.global.u32 %r2, [%at+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%at+4], %r2; membar.gl; atom.global.exch.b32 %r1, [%at], 0; E:", 5, ""},
		{"a flag that comes late, read by an atomic", same + `mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0; @!%p bra W;
			L: atom.global.add.u32 %r1, [%at], 0; setp.eq.u32 %p, %r1, 0; @%p bra L; bra E;
			W: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 20000; @%p bra W; atom.global.exch.b32 %r1, [%at], 1; E:`, 2, ""},
		{"a barrier of the grid", "atom.global.add.u32 %r2, [%in], 1; L: ld.volatile.global.u32 %r1, [%in]; setp.lt.u32 %p, %r1, 5; @%p bra L;", 5, ""},
		{"a flag that comes late", `mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0; @!%p bra W;
			L: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p, %r1, 0; @%p bra L; bra E;
			W: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 200000; @%p bra W; st.volatile.global.u32 [%in], 1; E:`, 2, ""},
		{"a long count", "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 200000; @%p bra L;", 2, ""},
		{"a count in memory", "L: atom.shared.add.u32 %r1, [s], 1; mov.u32 %r2, 0; setp.lt.u32 %p, %r1, 200000; mov.u32 %r1, 0; @%p bra L;", 1, ""},
	} {
		for _, l := range cpufeat.Levels() {
			for _, o := range []Options{{}, {Seed: 3}, {Schedule: Independent}, {Seed: 5, Schedule: Independent}, {Checks: AllChecks}} {
				t.Run(fmt.Sprintf("%s/%s/%v", c.name, l, o), func(t *testing.T) {
					defer cpufeat.Set(l)()
					r := newRig(t, wrap(".reg .b32 %r<9>; .shared .b32 s[32];", c.body), false)
					if o.Schedule == Independent && c.want == "" {
						o.StepLimit = 1e8
					}
					_, err := r.try("k", d1(c.blocks), d1(64), o, r.upload(make([]uint64, 4*64), "in"), r.alloc(8*64, "out"))
					var f *Fault
					switch {
					case c.want == "" && err != nil:
						t.Error(err)
					case c.want != "" && (!errors.As(err, &f) || f.Code != LaunchTimeout || !strings.Contains(err.Error(), c.want)):
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestLivelock: what waits for a lock that nobody releases is told with the lock, the line and the blocks.
func TestLivelock(t *testing.T) {
	for _, o := range []Options{{}, {Schedule: Independent, Seed: 2}} {
		src := strings.Replace(wrap(".reg .b32 %r<9>;", "\nL: atom.global.cas.b32 %r1, [%in+8], 0, 7;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra L;\n"), "add.s64 %in, %in, %at;", "", 1)
		r := newRig(t, src, false)
		in := r.upload(make([]uint64, 4*64), "lock.go:12")
		_, err := r.try("k", d1(6), d1(1), o, in, r.alloc(8*64, "out"))
		var f *Fault
		if !errors.As(err, &f) {
			t.Fatal(err)
		}
		x := f.Finding
		line := 1 + strings.Count(src[:strings.Index(src, "atom.")], "\n")
		if x.Line != line || x.Space != "global" || x.Addr != in+8 || x.Size != 4 || !strings.Contains(x.Alloc, "lock.go:12") || x.Inst != "atom.global.cas.b32" ||
			!strings.Contains(x.Msg, "finds 0x7 each time") || !strings.Contains(x.Msg, "wait: ") || strings.Count(x.Msg, ",0,0") != 5 {
			t.Errorf("%+v", x)
		}
	}
}

// TestStepLimit: the loop that took the steps is named, with how often warps went through it.
func TestStepLimit(t *testing.T) {
	const body = "mov.u32 %r1, 0;\nO: mov.u32 %r2, 0;\nI: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p, %r2, 50;\n@%p bra I;\nadd.u32 %r1, %r1, 1;\natom.shared.add.u32 %r3, [s], 1;\nbra O;"
	for _, l := range cpufeat.Levels() {
		defer cpufeat.Set(l)()
		r := newRig(t, wrap(".reg .b32 %r<9>; .shared .b32 s[1];", body), false)
		_, err := r.try("k", d1(1), d1(64), Options{StepLimit: 10000}, r.upload(make([]uint64, 4*64), "in"), r.alloc(8*64, "out"))
		var f *Fault
		if !errors.As(err, &f) || f.StepLimit != 10000 || f.Finding.Line != 14 {
			t.Fatalf("%v: %+v", l, err)
		}
		var n, times int
		if _, err := fmt.Sscanf(f.Finding.Msg, "the block executed more than %d instructions of warps, its step limit; warps were %d times at the end of this loop", &n, &times); err != nil || n != 10000 || times < 10000/4 || times > 2*10000 {
			t.Errorf("%v: %q, %v", l, f.Finding.Msg, err)
		}
	}
}
