package gpusim

import (
	"errors"
	"strings"
	"testing"
)

// TestCopyIgnored: copies that read less than they write, or nothing, look at no more of their source, and count no more.
func TestCopyIgnored(t *testing.T) {
	for _, c := range []struct {
		copies  string
		want    [4]uint32
		sectors uint64 // with that of the store
	}{
		{"cp.async.cg.shared.global [s], [%in], 16;", [4]uint32{1, 2, 3, 4}, 2},
		{"cp.async.cg.shared.global [s], [%in], 16, 4;", [4]uint32{1, 0, 0, 0}, 2},
		{"cp.async.cg.shared.global [s], [%far], 16, 0;", [4]uint32{}, 1},
		{"mov.u32 %r0, 0; cp.async.cg.shared.global [s], [%far], 16, %r0;", [4]uint32{}, 1},
		{"cp.async.ca.shared.global [s], [%far], 8, %p; cp.async.ca.shared.global [s+8], [%in+8], 8, !%p;", [4]uint32{0, 0, 3, 4}, 2},
	} {
		src := strings.Replace(wrap(".reg .b32 %r<4>; .reg .b64 %far; .shared .align 16 .b8 s[16];",
			"setp.eq.u32 %p, 0, 0; add.u64 %far, %in, 1048576;\n"+c.copies+"\ncp.async.wait_all;\n"+
				"ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [s]; st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};"), "7.4", "7.5", 1)
		for _, o := range []Options{{Counters: true}, {Checks: AllChecks, Counters: true}, {Checks: AllChecks, Seed: 7, Counters: true}} {
			r := newRig(t, src, true)
			in, out := r.upload([]uint32{1, 2, 3, 4}, "in"), r.alloc(16, "out")
			rep := r.launch("k", d1(1), d1(1), o, in, out)
			if got := download[[4]uint32](r, out, 1)[0]; got != c.want || rep.Counters.GlobalSectors != c.sectors {
				t.Errorf("%s, %+v: %v and %d sectors, want %v and %d", c.copies, o, got, rep.Counters.GlobalSectors, c.want, c.sectors)
			}
		}
	}
}

// TestNothingAfterFault: that a copy failed is all there is to say, not what its destination lacks.
func TestNothingAfterFault(t *testing.T) {
	r := newRig(t, wrap(".reg .b32 %r; .shared .align 16 .b8 s[16];",
		"cp.async.cg.shared.global [s], [%in+1048576], 16; cp.async.wait_all; ld.shared.u32 %r, [s]; st.global.u32 [%out], %r;"), true)
	rep, err := r.try("k", d1(1), d1(1), Options{Checks: AllChecks}, r.upload([]uint32{1, 2, 3, 4}, "in"), r.alloc(16, "out"))
	var f *Fault
	if !errors.As(err, &f) || f.Code != IllegalAddress || len(rep.Findings) != 1 {
		t.Errorf("%v, %v", err, rep.Findings)
	}
}
