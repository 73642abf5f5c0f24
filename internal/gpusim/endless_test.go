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
		{"a barrier of the grid", "atom.global.add.u32 %r2, [%in], 1; L: ld.volatile.global.u32 %r1, [%in]; setp.lt.u32 %p, %r1, 5; @%p bra L;", 5, ""},
		{"a flag that comes late", `mov.u32 %r1, %ctaid.x; setp.eq.u32 %p, %r1, 0; @!%p bra W;
			L: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p, %r1, 0; @%p bra L; bra E;
			W: add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 200000; @%p bra W; st.volatile.global.u32 [%in], 1; E:`, 2, ""},
		{"a long count", "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 200000; @%p bra L;", 2, ""},
		{"a count in memory", "L: atom.shared.add.u32 %r1, [s], 1; mov.u32 %r2, 0; setp.lt.u32 %p, %r1, 200000; mov.u32 %r1, 0; @%p bra L;", 1, ""},
	} {
		for _, l := range cpufeat.Levels() {
			t.Run(c.name+"/"+l.String(), func(t *testing.T) {
				defer cpufeat.Set(l)()
				r := newRig(t, wrap(".reg .b32 %r<9>; .shared .b32 s[32];", c.body), false)
				_, err := r.try("k", d1(c.blocks), d1(64), Options{}, r.upload(make([]uint64, 4*64), "in"), r.alloc(8*64, "out"))
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
