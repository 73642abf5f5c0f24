package gpusim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// tileMask gives each lane the mask of its half of the warp in %m.
const tileMask = "and.b32 %y, %lane, 16; mov.u32 %z, 0xffff; shl.b32 %m, %z, %y; "

// TestTiles: lanes that name different masks at one place are companies of their own, as those of a cooperative tile are.
func TestTiles(t *testing.T) {
	in := func(i int) bool { return i < 16 }
	for _, c := range []struct {
		name, body string
		want       func(i int) uint64
	}{
		{"ballot", "setp.ne.u32 %p, %lane, 99; vote.sync.ballot.b32 %y, %p, %m; cvt.u64.u32 %d, %y;", func(i int) uint64 { return uint64(0xffff) << (i & 16) }},
		{"any", "setp.eq.u32 %p, %lane, 3; vote.sync.any.pred %q, %p, %m; selp.u64 %d, 1, 0, %q;", func(i int) uint64 { return simt.Bit(in(i)) }},
		{"all", "setp.lt.u32 %p, %lane, 16; vote.sync.all.pred %q, %p, %m; selp.u64 %d, 1, 0, %q;", func(i int) uint64 { return simt.Bit(in(i)) }},
		{"uni", "setp.lt.u32 %p, %lane, 3; vote.sync.uni.pred %q, %p, %m; selp.u64 %d, 1, 0, %q;", func(i int) uint64 { return simt.Bit(!in(i)) }},
		{"redux", "redux.sync.add.u32 %y, %lane, %m; cvt.u64.u32 %d, %y;", func(i int) uint64 { return 120 + 256*simt.Bit(!in(i)) }},
		{"match any", "and.b32 %z, %lane, 1; match.any.sync.b32 %y, %z, %m; cvt.u64.u32 %d, %y;", func(i int) uint64 { return uint64(0x5555) << (i&16 + i&1) }},
		{"match all", "shr.u32 %z, %lane, 4; match.all.sync.b32 %y|%p, %z, %m; cvt.u64.u32 %d, %y;", func(i int) uint64 { return uint64(0xffff) << (i & 16) }},
		{"shuffle", "shfl.sync.bfly.b32 %y, %lane, 8, 31, %m; cvt.u64.u32 %d, %y;", func(i int) uint64 { return uint64(i ^ 8) }},
	} {
		for _, o := range schedules {
			_, d := runBody(t, 32, o, tileMask+c.body)
			for i, got := range d {
				if got != c.want(i) {
					t.Fatalf("%s, %+v: lane %d has %x, want %x", c.name, o, i, got, c.want(i))
				}
			}
		}
	}
}

// schedules are the natural order, and others.
var schedules = []Options{{}, {Seed: 1}, {Seed: 2, Schedule: Independent}, {Seed: 3, Schedule: Independent}}

// runBody runs a body for one block as runWarp does, under all checks.
func runBody(t *testing.T, threads int, o Options, body string) (*Report, []uint64) {
	t.Helper()
	r := newRig(t, wrap(".reg .b32 %x, %y, %z, %m, %r<30>; .reg .b64 %d, %rd<9>; .reg .pred %c<9>; .shared .align 16 .b8 s[4096];",
		"mov.u64 %d, 0;\n"+body+"\nst.global.u64 [%out], %d;"), true)
	o.Checks = AllChecks
	out := r.alloc(8*threads, "out")
	rep := r.launch("k", d1(1), d1(threads), o, r.upload(make([]uint64, 4*threads), "in"), out)
	return rep, download[uint64](r, out, threads)
}

// TestTilesApart: quarters of a warp come at different times, and wait for the other quarter of their half only.
func TestTilesApart(t *testing.T) {
	quarter := func(name string, delay int) string {
		loop := ""
		if delay > 0 {
			loop = fmt.Sprintf("mov.u32 %%r20, 0; D%s: add.u32 %%r20, %%r20, 1; setp.lt.u32 %%p, %%r20, %d; @%%p bra D%s; ", name, delay, name)
		}
		return name + ": " + loop + "st.shared.u32 [%r3], %lane; bar.warp.sync %m; ld.shared.u32 %y, [%r4]; bra E; "
	}
	for _, delays := range [][4]int{{0, 0, 0, 3000}, {20000, 0, 60000, 0}, {0, 60000, 0, 20000}} {
		body := tileMask + "mov.u32 %r9, s; shl.b32 %r1, %lane, 2; add.u32 %r3, %r9, %r1; xor.b32 %r4, %lane, 8; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r9; " +
			"shr.u32 %r5, %lane, 3; ts: .branchtargets A, B, C, F; brx.idx %r5, ts; "
		for i, name := range []string{"A", "B", "C", "F"} {
			body += quarter(name, delays[i])
		}
		for _, o := range schedules {
			_, d := runBody(t, 32, o, body+"E: cvt.u64.u32 %d, %y;")
			for i, got := range d {
				if got != uint64(i^8) {
					t.Fatalf("%v, %+v: lane %d has %d", delays, o, i, got)
				}
			}
		}
	}
}

// findingsOf runs a body under all checks and returns what they find, as text.
func findingsOf(t *testing.T, threads int, o Options, body string) string {
	t.Helper()
	r := newRig(t, wrap(".reg .b32 %x, %y, %z, %m, %r<30>; .reg .b64 %d, %rd<9>; .reg .pred %c<9>; .shared .align 16 .b8 s[4096]; .local .align 16 .b8 l[64];",
		"mov.u64 %d, 0;\n"+body+"\nst.global.u64 [%out], %d;"), true)
	o.Checks = AllChecks
	rep, err := r.try("k", d1(1), d1(threads), o, r.upload(make([]uint64, 4*threads), "in"), r.alloc(8*threads, "out"))
	if rep == nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range rep.Findings {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// TestTilesUnordered: bar.warp.sync of the tileMask puts nothing in order between them.
func TestTilesUnordered(t *testing.T) {
	const body = tileMask + "mov.u32 %r9, s; shl.b32 %r1, %lane, 2; add.u32 %r3, %r9, %r1; xor.b32 %r4, %r1, 64; add.u32 %r4, %r4, %r9; " +
		"st.shared.u32 [%r3], %lane; bar.warp.sync %m; ld.shared.u32 %y, [%r4]; cvt.u64.u32 %d, %y;"
	for _, o := range schedules {
		if got := findingsOf(t, 32, o, body); !strings.Contains(got, "racecheck") {
			t.Errorf("%+v: %q", o, got)
		}
		if got := findingsOf(t, 32, o, strings.Replace(body, "sync %m", "sync -1", 1)); got != "" {
			t.Errorf("%+v: %q", o, got)
		}
	}
}
