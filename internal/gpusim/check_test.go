package gpusim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// runMutant launches a kernel of a mutated source with arguments that the original takes.
func runMutant(t *testing.T, src, kernel string, o Options) (*Report, error) {
	r := newRig(t, src, true)
	switch kernel {
	case "add":
		x := r.upload(randoms(128, 1), "a")
		return r.try("add", d1(1), d1(128), o, x, x, r.alloc(4*100, "c"), int32(100))
	case "reduce":
		return r.try("reduce", d1(1), d1(256), o, r.upload(randoms(999, 1), "x"), r.alloc(4, "out"), int32(999))
	case "scan":
		return r.try("scan", d1(1), d1(256), o, r.upload(make([]uint32, 256), "x"), r.alloc(4*256, "y"))
	case "transpose":
		return r.try("transpose", d2(2, 2), d2(32, 8), o, r.upload(randoms(50*37, 1), "x"), r.alloc(4*50*37, "y"), int32(50), int32(37))
	case "gemm_bf16":
		x := r.upload(make([]uint16, 96*128), "x")
		return r.try("gemm_bf16", d2(1, 1), d1(128), o, x, x, r.alloc(4*64*64, "c"), int32(64), int32(64), int32(128))
	}
	t.Fatalf("no arguments for %s", kernel)
	return nil, nil
}

// TestMutants breaks correct kernels: each check must see what was done. Package mutate does so at large.
func TestMutants(t *testing.T) {
	src := source(t)
	for _, m := range []struct {
		kernel, old, new string
		nth              int
		check            Check
	}{
		{"reduce", "bar.sync \t0;", "", 1, Racecheck},
		{"transpose", "bar.sync \t0;", "", 1, Racecheck},
		{"gemm_bf16", "cp.async.wait_group 1;", "", 1, Racecheck},
		{"add", "setp.ge.s32", "setp.gt.s32", 1, Memcheck},
		{"reduce", "st.shared.f32", "//", 1, Initcheck},
		{"scan", "st.shared.u32", "//", 1, Initcheck},
		{"add", "mov.u32 \t%r2", "//", 1, Initcheck},
	} {
		mutant, _ := mutate(t, src, m.kernel, m.old, m.new, m.nth)
		rep, err := runMutant(t, mutant, m.kernel, Options{Checks: AllChecks})
		if rep == nil {
			t.Fatalf("%s without %q: %v", m.kernel, m.old, err)
		}
		found := false
		for _, f := range rep.Findings {
			found = found || f.Check == m.check
		}
		if !found {
			t.Errorf("%s, occurrence %d of %q turned into %q: no finding of %v, but %v (%v)", m.kernel, m.nth, m.old, m.new, m.check, rep.Findings, err)
		}
	}
}

// TestFindingNames checks everything that a finding says.
func TestFindingNames(t *testing.T) {
	src := source(t)
	mutant, _ := mutate(t, src, "add", "setp.ge.s32", "setp.gt.s32", 1)
	_, line := mutate(t, src, "add", "ld.global.f32", "", 1)
	_, stLine := mutate(t, src, "add", "st.global.f32", "", 1)
	_ = line
	r := newRig(t, mutant, true)
	x := r.upload(randoms(128, 1), "a")
	c := r.alloc(400, "engine.go:17")
	rep, err := r.try("add", d1(2), d1(64), Options{Checks: AllChecks}, x, x, c, int32(100))
	var f *Fault
	if !errors.As(err, &f) || f.Code != IllegalAddress || rep == nil {
		t.Fatal(err)
	}
	g := f.Finding
	if g.Check != Memcheck || g.Kernel != "add" || g.Block != [3]uint32{1, 0, 0} || g.Thread != [3]uint32{36, 0, 0} || g.Line != stLine ||
		g.Source != "./kernels.cu:6" || g.Addr != c+400 || g.Size != 4 || g.Space != "global" || g.Inst != "st.global.f32" ||
		!strings.Contains(g.Alloc, "0 bytes past the end of the allocation of 400 bytes") || !strings.Contains(g.Alloc, "engine.go:17") {
		t.Errorf("%+v", g)
	}
	// The fault is sticky.
	if _, err := r.dev.Alloc(4, ""); !errors.Is(err, f) {
		t.Error(err)
	}
	if err := r.dev.Write(x, []byte{1}); !errors.Is(err, f) {
		t.Error(err)
	}
	if err := r.dev.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.dev.Alloc(4, ""); err != nil {
		t.Error(err)
	}
}

func TestFaults(t *testing.T) {
	run := func(body string, o Options) (*Report, error) {
		r := newRig(t, wrap(".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .shared .b32 s[32]; .local .b32 l[2];", body), o.Checks&Initcheck != 0)
		return r.try("k", d1(1), d1(40), o, r.upload(make([]uint64, 4*40), "in"), r.alloc(8*40, "out"))
	}
	for _, c := range []struct {
		name, body string
		o          Options
		code       Code
		msg        string
	}{
		{"long loop", "L: add.u32 %r1, %r1, 1; bra L;", Options{StepLimit: 1000}, LaunchTimeout, "more than 1000 instructions"},
		{"trap", "trap;", Options{}, IllegalInstruction, "trap"},
		{"misaligned", "ld.global.u32 %r1, [%in+2];", Options{}, MisalignedAddress, "misaligned read"},
		{"misaligned vector", "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%in+8];", Options{}, MisalignedAddress, "misaligned read"},
		{"null", "mov.u64 %rd1, 0; st.global.u32 [%rd1], 1;", Options{}, IllegalAddress, "out-of-bounds write"},
		{"shared", "ld.shared.u32 %r1, [s+128];", Options{}, LaunchFailed, "out-of-bounds read"},
		{"generic shared", "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1; ld.u32 %r1, [%rd1+256];", Options{}, LaunchFailed, "out-of-bounds read"},
		{"barrier number", "bar.sync 16;", Options{}, IllegalInstruction, "barrier 16"},
		{"deadlock", "setp.lt.u32 %p, %lane, 32; @!%p bra W; bar.sync 1, 64; W: bar.sync 2, 64;", Options{}, LaunchTimeout, "deadlock"},
		{"branch table", "ts: .branchtargets A, B; mov.u32 %r1, 5; brx.idx %r1, ts; A: B:", Options{}, IllegalInstruction, "past the end"},
	} {
		_, err := run(c.body, c.o)
		var f *Fault
		if !errors.As(err, &f) || f.Code != c.code || !strings.Contains(err.Error(), c.msg) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range []struct {
		name, body string
		check      Check
		msg        string
	}{
		{"divergent barrier", "setp.lt.u32 %p, %lane, 16; @%p bra A; bar.sync 0; bra E; A: bar.sync 0; E:", Synccheck, "different bar"},
		{"mask without self", "vote.sync.ballot.b32 %r1, 1, %lane;", Synccheck, ""},
		{"shuffle from nobody", "setp.lt.u32 %p, %lane, 8; @!%p bra E; shfl.sync.idx.b32 %r1, %lane, 9, 31, 255; E:", Synccheck, "takes no part"},
		{"register", "st.global.u32 [%out], %r7;", Initcheck, "never written"},
		{"register by arithmetic", "add.u32 %r1, %r7, 1; st.global.u32 [%out], %r1;", Initcheck, "never written"},
		{"guarded store", "setp.lt.u32 %p, %lane, 8; @%p mov.u32 %r7, 1; setp.lt.u32 %p, %lane, 9; @%p st.global.u32 [%out], %r6;", Initcheck, "never written"},
		{"guard", "@%p st.global.u32 [%out], 1;", Initcheck, "never written"},
		{"local address", "mov.u32 %r1, 1; st.local.u32 [%r7], %r1;", Initcheck, "never written"},
		{"branch on nothing", "@%p bra E; E:", Initcheck, "never written"},
		{"shared read", "ld.shared.u32 %r1, [s];", Initcheck, "shared memory that was never written"},
		{"global read", "ld.global.u32 %r1, [%out];", Initcheck, "memory that was never written"},
		{"warp race", "and.b32 %r1, %lane, 31; shl.b32 %r1, %r1, 2; mov.u32 %r2, s; add.u32 %r3, %r2, %r1; xor.b32 %r1, %r1, 4; add.u32 %r4, %r2, %r1; " +
			"setp.lt.u32 %p, %lane, 32; @!%p bra E; st.shared.u32 [%r3], 1; ld.shared.u32 %r5, [%r4]; E:", Racecheck, "read after a write"},
		{"write race", "st.shared.u32 [s], %lane;", Racecheck, "write after a write"},
	} {
		if c.name == "mask without self" {
			c.body = "setp.lt.u32 %p, %lane, 2; @!%p bra E; setp.eq.u32 %q, %lane, 0; vote.sync.ballot.b32 %r1, %q, 2; E:"
		}
		rep, err := run(c.body, Options{Checks: AllChecks})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := false
		for _, f := range rep.Findings {
			found = found || f.Check == c.check && strings.Contains(f.Msg, c.msg)
		}
		if !found {
			t.Errorf("%s: not found, but %v", c.name, rep.Findings)
		}
	}
}

// TestWarpSync is the opposite of the warp race: with bar.warp.sync between, there is none.
func TestWarpSync(t *testing.T) {
	body := "shl.b32 %r1, %lane, 2; mov.u32 %r2, s; add.u32 %r3, %r2, %r1; xor.b32 %r1, %r1, 4; add.u32 %r4, %r2, %r1;" +
		"st.shared.u32 [%r3], %lane; bar.warp.sync -1; ld.shared.u32 %r5, [%r4]; bar.warp.sync -1; st.shared.u32 [%r4], 1; st.global.u32 [%out], %r5;"
	for seed := range uint64(5) {
		for _, s := range []Schedule{Reconverge, Independent} {
			r := newRig(t, wrap(".reg .b32 %r<9>; .shared .b32 s[32];", body), true)
			r.launch("k", d1(2), d1(32), Options{Checks: inBlock, Seed: seed, Schedule: s}, r.upload(make([]uint64, 128), "in"), r.alloc(256, "out"))
		}
	}
}

// TestSameValue: threads that all write the same value do not race; the reader after them needs a barrier still.
func TestSameValue(t *testing.T) {
	for body, want := range map[string]int{
		"st.shared.u32 [s], 7;": 0,
		"st.shared.u32 [s], 7; bar.sync 0; ld.shared.u32 %r, [s];":    0,
		"st.shared.u32 [s], 7; ld.shared.u32 %r, [s];":                2, // warp 0 reads, then warp 1 writes
		"st.shared.u32 [s], %lane; bar.sync 0; st.shared.u32 [s], 7;": 1,
	} {
		r := newRig(t, wrap(".reg .b32 %r; .shared .b32 s[4];", body), true)
		rep, err := r.try("k", d1(1), d1(64), Options{Checks: AllChecks}, r.upload(make([]uint64, 256), "in"), r.alloc(512, "out"))
		if err != nil || len(rep.Findings) != want {
			t.Errorf("%s: %v %v", body, rep, err)
		}
	}
}

func TestUseAfterFree(t *testing.T) {
	r := newRig(t, source(t), false)
	x := r.upload(randoms(32, 1), "x")
	y := r.alloc(128, "y.go:3")
	if err := r.dev.Free(y, "z.go:4"); err != nil {
		t.Fatal(err)
	}
	_, err := r.try("add", d1(1), d1(32), Options{}, x, x, y, int32(32))
	if err == nil || !strings.Contains(err.Error(), "write after free") || !strings.Contains(err.Error(), "y.go:3, freed by z.go:4") {
		t.Error(err)
	}
}

func TestTalk(t *testing.T) {
	r := newRig(t, source(t), false)
	rep := r.launch("talk", d1(1), d1(2), Options{}, int32(9))
	if want := "lane?\ni=-1 d=0.00 lane %\n"; !strings.Contains(string(rep.Output), "i=0 d=0.50 lane %\n") || !strings.Contains(string(rep.Output), "i=-1 d=0.00 lane %\n") {
		t.Errorf("%q, want %q", rep.Output, want)
	}
	_, err := r.try("talk", d1(1), d1(2), Options{}, int32(1))
	var f *Fault
	if !errors.As(err, &f) || f.Code != Assert || !strings.Contains(err.Error(), `kernels.cu:42: assertion "threadIdx.x != n" failed in talk`) {
		t.Error(err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for body, want := range map[string]string{
		"wgmma.fence.sync.aligned;":                                   "wgmma in this form needs PTX 8.0",
		"mov.u32 %lane, %warpspeed;":                                  "",
		"add.rn.f16 %lane, %lane, %lane;":                             "",
		"cvt.rn.satfinite.e4m3x2.f32 %lane, 0f00000000, 0f00000000;":  "needs PTX 8.1",
		"tex.1d.v4.f32.s32 {%lane,%lane,%lane,%lane}, [in, {%lane}];": "",
		"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%lane], {%lane};":  "stmatrix",
	} {
		m, err := ptx.Parse(wrap("", body))
		if err == nil {
			_, err = NewDevice(A100(), false).Load(m)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "10") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	r := newRig(t, source(t), false)
	k := r.prog.Kernel("add")
	args := pack(k, uint64(0), uint64(0), uint64(0), int32(0))
	for _, c := range []struct {
		grid, block [3]int
		shared      int
		params      []byte
	}{
		{d1(0), d1(32), 0, args}, {d1(1), d1(1025), 0, args}, {d1(1), [3]int{1, 1, 65}, 0, args}, {[3]int{1, 65536, 1}, d1(1), 0, args},
		{d1(1), d1(32), 164 << 10, args}, {d1(1), d1(32), -1, args}, {d1(1), d1(32), 0, args[:8]},
	} {
		_, err := r.dev.Launch(k, c.grid, c.block, c.shared, c.params, Options{})
		var e *Error
		if !errors.As(err, &e) || e.Code != InvalidValue {
			t.Errorf("%v: %v", c, err)
		}
	}
	if r.dev.Fault() != nil {
		t.Error("a refused launch left a fault")
	}
}

// TestUndefinedUnused: values that nobody wrote may stand in lanes that do not run, and in local memory that nobody reads.
func TestUndefinedUnused(t *testing.T) {
	for _, body := range []string{
		"setp.gt.u32 %p, %lane, 99; @%p st.global.u32 [%out], %r7;",
		"st.local.u32 [l], %r7; mov.u32 %r1, 1; st.local.u32 [l], %r1; ld.local.u32 %r2, [l]; st.global.u32 [%out], %r2;",
		"setp.lt.u32 %p, %lane, 8; selp.b32 %r1, %lane, %r7, %p; @%p st.global.u32 [%out], %lane;",
	} {
		r := newRig(t, wrap(".reg .b32 %r<9>; .local .b32 l[2];", body), true)
		r.launch("k", d1(1), d1(40), Options{Checks: AllChecks}, r.upload(make([]uint64, 4*40), "in"), r.alloc(8*40, "out"))
	}
}

// TestStop ends a kernel that counts on, on one core and where blocks wait for each other.
func TestStop(t *testing.T) {
	for name, body := range map[string]string{"apart": "", "together": "atom.global.add.u32 %lane, [%in], 1;"} {
		r := newRig(t, wrap(".reg .b64 %rd1;", "mov.u64 %rd1, 0; "+body+"L: add.u64 %rd1, %rd1, 1; bra L;"), false)
		stop := make(chan struct{})
		time.AfterFunc(100*time.Millisecond, func() { close(stop) })
		k := r.prog.Kernel("k")
		rep, err := r.dev.Launch(k, d1(4), d1(64), 0, pack(k, r.alloc(4096, "in"), r.alloc(4096, "out")), Options{Stop: stop})
		if !errors.Is(err, ErrStopped) || rep == nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.dev.Alloc(4, "after"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
