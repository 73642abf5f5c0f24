package gpusim

import (
	"strings"
	"testing"
)

// TestWaits: a loop that nobody ends names who holds the lock, and blocks for which the card has no room.
func TestWaits(t *testing.T) {
	lock := "L: atom.global.acquire.gpu.cas.b32 %r1, [%flag], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra L;"
	r := newRig(t, talker(alone+lock, alone+strings.ReplaceAll(lock, "L", "M")), false)
	_, err := r.try("k", d1(2), d1(64), Options{Checks: AllChecks}, r.upload(make([]uint32, 64), "data"), r.upload(make([]uint32, 64), "flag"))
	if err == nil || !strings.Contains(err.Error(), "thread 0,0,0 of block 0,0,0 put it there, by atom.global.acquire.gpu.cas.b32") {
		t.Error(err)
	}
	count := "red.global.add.u32 [%flag], 1; mov.u32 %r2, %nctaid.x; W: ld.relaxed.gpu.global.u32 %r1, [%flag]; setp.lo.u32 %p, %r1, %r2; @%p bra W;"
	r = newRig(t, talker(alone+count, alone+strings.ReplaceAll(count, "W", "V")), false)
	k := r.prog.Kernel("k")
	const shared = 48 << 10 // three blocks a multiprocessor
	_, err = r.dev.Launch(k, d1(3*108+5), d1(64), shared-256, pack(k, r.upload(make([]uint32, 64), "data"), r.upload(make([]uint32, 64), "flag")), Options{})
	if err == nil || !strings.Contains(err.Error(), "5 blocks have not begun: the card has room for 324 at once") {
		t.Error(err)
	}
}
