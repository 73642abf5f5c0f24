package gpusim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// banksOfRegisters are registers for the assembly to work on.
type banksOfRegisters struct {
	r []vec32
	q []vec64
	p []uint32
}

func randomRegisters(rnd *rand.Rand) *banksOfRegisters {
	b := &banksOfRegisters{aligned[vec32](4), aligned[vec64](4), make([]uint32, 4)}
	for i := range b.r {
		b.r[i], b.q[i], b.p[i] = words(rnd), longs(rnd), rnd.Uint32()
	}
	b.r[1][3], b.q[1][3] = b.r[2][3], b.q[2][3]
	for i := range 8 {
		b.r[2][8+i] = uint32(rnd.IntN(70)) // counts of shifts
	}
	return b
}

func (b *banksOfRegisters) clone() *banksOfRegisters {
	c := &banksOfRegisters{aligned[vec32](4), aligned[vec64](4), slices.Clone(b.p)}
	copy(c.r, b.r)
	copy(c.q, b.q)
	return c
}

func (b *banksOfRegisters) run(t *testing.T, eng *engine, x inst) {
	t.Helper()
	if !eng.has[x[0]] {
		return
	}
	prog := []inst{x, {uint32(lanesLeave)}}
	f := &laneFrame{r: address(&b.r[0]), q: address(&b.q[0]), p: address(&b.p[0])}
	eng.run(f, &prog[0])
	if f.pc != uintptr(unsafe.Pointer(&prog[1])) {
		t.Fatalf("instruction %v was left to Go", x)
	}
}

func (b *banksOfRegisters) get(s slot, lane int) uint64 {
	if s.bank == bank64 {
		return b.q[s.i][lane]
	}
	return uint64(b.r[s.i][lane])
}

// onEngines runs f with the assembly of each level that this machine has.
func onEngines(t *testing.T, f func(t *testing.T, eng *engine, rnd *rand.Rand)) {
	for _, l := range cpufeat.Levels() {
		if eng := engineOf(l); eng != nil {
			t.Run(l.String(), func(t *testing.T) { f(t, eng, testutil.Rand(t)) })
		}
	}
}

func wholeSlot(t ptx.Type, i int32) slot { return slot{bankOf(t), i, uint8(max(t.Bits(), 32))} }

// TestVectorForms compares the handlers of arithmetic with the lane functions of their forms; the destination is a
// register of its own, or the first operand's.
func TestVectorForms(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *engine, rnd *rand.Rand) {
		for name, op := range vectorNames {
			fm, err := formOf(instOf(name))
			if err != nil {
				t.Fatal(err)
			}
			for round := range 40 {
				before := randomRegisters(rnd)
				d := wholeSlot(fm.dst, 3*int32(round&1))
				x := inst{uint32(op), d.offset()}
				var s [3]slot
				for i, st := range fm.src {
					s[i] = wholeSlot(st, int32(i))
					x[atA+i] = s[i].offset()
				}
				after := before.clone()
				if eng.has[op] {
					after.run(t, eng, x)
				} else {
					continue
				}
				for lane := range warpSize {
					a, b, c := before.get(s[0], lane), before.get(s[1], lane), before.get(s[2], lane)
					want := fm.f(a, b, c, 0)
					if name == "ex2.approx.f32" { // TestApproximations bounds the form in Go
						want = uint64(canon32(float32(exp2(float64(f32(uint32(a)))))))
					}
					if d.bank == bank32 {
						want &= full64 >> 32
					}
					if got := after.get(d, lane); got != want {
						t.Fatalf("%s of %x %x %x is %x, want %x", name, a, b, c, got, want)
					}
				}
			}
		}
	})
}

const full64 = ^uint64(0)

func TestVectorTests(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *engine, rnd *rand.Rand) {
		for name, test := range vectorTests {
			cmp, typ, err := comparison(instOf(name))
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				if !eng.has[test.op] {
					continue
				}
				b := randomRegisters(rnd)
				e := &emitter{engine: eng, in: &finst{Inst: instOf(name)}}
				e.encodeTest(2, wholeSlot(typ, 1), wholeSlot(typ, 2))
				b.run(t, eng, e.vector[0])
				for lane := range warpSize {
					x, y := b.get(wholeSlot(typ, 1), lane), b.get(wholeSlot(typ, 2), lane)
					if (b.p[2]>>lane&1 == 1) != cmp(x, y) {
						t.Fatalf("%s of %x %x", name, x, y)
					}
				}
			}
		}
	})
}

func TestVectorMoves(t *testing.T) {
	onEngines(t, func(t *testing.T, eng *engine, rnd *rand.Rand) {
		for range 20 {
			for size, typ := range map[int]ptx.Type{32: ptx.B32, 64: ptx.B64} {
				b := randomRegisters(rnd)
				was := b.clone()
				e := &emitter{engine: eng, in: &finst{Inst: instOf("mov.b32")}}
				d, s, u := wholeSlot(typ, 0), wholeSlot(typ, 1), wholeSlot(typ, 2)
				e.copy(d, s)
				b.run(t, eng, e.vector[0])
				sel, not := lanesSel32, rnd.IntN(2) == 1
				if size == 64 {
					sel = lanesSel64
				}
				e.encode(sel, wholeSlot(typ, 3), s, u, slot{bankPred, 1, 1})[atImm] = mask(not)
				b.run(t, eng, e.vector[0])
				for lane := range warpSize {
					want := was.get(u, lane)
					if (was.p[1]>>lane&1 == 1) != not {
						want = was.get(s, lane)
					}
					if b.get(d, lane) != was.get(s, lane) || b.get(wholeSlot(typ, 3), lane) != want {
						t.Fatalf("a move or selection of %d bits", size)
					}
				}
			}
			b := randomRegisters(rnd)
			for name, f := range maskLogic {
				e := &emitter{engine: eng, in: &finst{Inst: instOf(name + ".pred")}}
				other := int32(2)
				if name == "not" {
					other = 1
				}
				e.encodeLogic(0, 1, other, true, other == 1)
				b.run(t, eng, e.vector[0])
				if want := f(^b.p[1], b.p[other]); b.p[0] != want {
					t.Fatalf("%s of %x %x is %x, want %x", name, ^b.p[1], b.p[other], b.p[0], want)
				}
			}
		}
	})
}

// accessKernel copies through shared memory, by addresses that the host gives, with loads and stores of a type.
func accessKernel(typ string, n int) string {
	size := map[string]int{"b16": 2, "b32": 4, "f32": 4, "b64": 8}[typ] * n
	regs, list := ".reg ."+typ+" %v<4>; .reg .b64 %from, %to; .reg .b32 %mid;\n.shared .align 16 .b8 tile[4096];\n", "%v0"
	vec := ""
	if n > 1 {
		list, vec = "{%v0, %v1", fmt.Sprintf(".v%d", n)
		for i := 2; i < n; i++ {
			list += fmt.Sprintf(", %%v%d", i)
		}
		list += "}"
	}
	ld := func(space, addr string) string {
		return fmt.Sprintf("ld.%s%s.%s %s, [%s];\n", space, vec, typ, list, addr)
	}
	st := func(space, addr string) string {
		return fmt.Sprintf("st.%s%s.%s [%s], %s;\n", space, vec, typ, addr, list)
	}
	body := "ld.global.u64 %from, [%in]; ld.global.u64 %to, [%in+8]; ld.global.u32 %mid, [%in+16];\n" +
		ld("global", fmt.Sprintf("%%from+%d", size)) + st("shared", "%mid") + "bar.sync 0;\n" + ld("shared", fmt.Sprintf("%%mid+%d", -size)) +
		"bar.sync 0;\ncvt.u64.u32 %from, %mid;\n" + st("shared", fmt.Sprintf("%%from+%d", size)) + ld("shared", "%from") + st("global", "%to")
	return wrap(regs, body)
}

// TestVectorAccess runs loads and stores with addresses in a row, all the same, or at random, with and without assembly.
func TestVectorAccess(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, typ := range []string{"b16", "b32", "f32", "b64"} {
		for _, n := range []int{1, 2, 4} {
			size := map[string]int{"b16": 2, "b32": 4, "f32": 4, "b64": 8}[typ] * n
			if size > 16 {
				continue
			}
			_, whole := loadOps[[2]int{8 * size / n, n}]
			for pattern := range 6 {
				place := func(lane int, rnd *rand.Rand) int {
					switch pattern {
					case 0:
						return size * (lane + 2)
					case 1:
						return size * 5
					case 2:
						return size * (3 + lane/16 + 4*(lane&1))
					case 3:
						return size * (2 + rnd.IntN(60))
					case 4:
						return size*(lane+2) + lane/31*size/2 // one of them misaligned
					}
					return 3000 + size*rnd.IntN(4000/size-3000/size+lane/31*4096) // one may be outside
				}
				seed := rnd.Uint64()
				sameOnAllLevels(t, rnd, whole, fmt.Sprintf("%s, %d values, pattern %d", typ, n, pattern), accessKernel(typ, n), 8192, func(r *rig, data uint64) []byte {
					rnd := rand.New(rand.NewPCG(seed, 3))
					var in []uint64
					for lane := range warpSize {
						in = append(in, data+uint64(place(lane, rnd)), data+4096+uint64(place(lane, rnd)), uint64(place(lane, rnd)), 0)
					}
					return pack(r.prog.Kernel("k"), r.upload(in, "in"), data)
				})
			}
		}
	}
}

// sameOnAllLevels runs kernel k on a warp with n random bytes and compares the bytes and the fault afterwards. If it is to
// be whole, the assembly must have a form of every instruction.
func sameOnAllLevels(t *testing.T, seeds *rand.Rand, whole bool, what, src string, n int, args func(r *rig, data uint64) []byte) {
	t.Helper()
	seed := seeds.Uint64()
	var want string
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		r := newRig(t, src, false)
		bytes, rnd := make([]byte, n), rand.New(rand.NewPCG(seed, 4))
		for i := range bytes {
			bytes[i] = byte(rnd.Uint32())
		}
		data := r.upload(bytes, "data")
		k := r.prog.Kernel("k")
		rep, err := r.dev.Launch(k, d1(2), d1(32), 0, args(r, data), Options{Cores: 1})
		got := fmt.Sprint(err, rep.Counters)
		if err == nil {
			got += fmt.Sprint(download[byte](r, data, n))
			if eng := engineOf(l); eng != nil && whole {
				wholly(t, what, k, eng)
			}
		}
		restore()
		if want == "" {
			want = got
		} else if got != want {
			t.Fatalf("%s: %s and %s differ:\n%.400s\n%.400s", what, cpufeat.Levels()[0], l, want, got)
		}
	}
}

// wholly checks that a kernel has a form in assembly.
func wholly(t *testing.T, what string, k *Kernel, eng *engine) {
	t.Helper()
	for v, c := range k.code {
		if engineOf(v.level) != eng {
			continue
		}
		left := 0
		for i, s := range c.steps {
			if op := lanesOp(c.prog[i][0]); s.run != nil && op == lanesLeave {
				left++
			}
		}
		if left > 0 {
			t.Errorf("%s: %d instructions are left to Go", what, left)
		}
	}
}

func TestVectorMatrices(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, form := range []string{"m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k16.row.col.f32.f16.f16.f32", "m16n8k8.row.col.f32.tf32.tf32.f32"} {
		src := wrap(".reg .b32 %a<4>, %b<2>; .reg .f32 %c<4>;\n", `
ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%in];
ld.global.v2.b32 {%b0, %b1}, [%in+1024];
ld.global.v4.f32 {%c0, %c1, %c2, %c3}, [%in+2048];
mma.sync.aligned.`+form+` {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};
mma.sync.aligned.`+form+` {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b1, %b0}, {%c0, %c1, %c2, %c3};
st.global.v4.f32 [%out], {%c0, %c1, %c2, %c3};`)
		src = strings.Replace(src, "add.s64 %out, %out, %at;", "add.s64 %out, %out, %at; add.s64 %out, %out, %at;", 1)
		for range 20 {
			sameOnAllLevels(t, rnd, true, form, src, 8192, func(r *rig, data uint64) []byte {
				return pack(r.prog.Kernel("k"), data, data+4096)
			})
		}
	}
	for _, x := range []string{"x2", "x4", "x2.trans", "x4.trans"} {
		list := "{%v0, %v1}"
		if x[1] == '4' {
			list = "{%v0, %v1, %v2, %v3}"
		}
		src := wrap(".reg .b32 %v<4>, %row, %to; .reg .b64 %s; .shared .align 16 .b8 tile[2048];\n", `
ld.global.u32 %row, [%in]; ld.global.u32 %to, [%in+4]; cvt.u64.u32 %s, %to;
ld.global.u64 %at, [%in+8];
cp.async.cg.shared.global [%row], [%at], 16;
cp.async.cg.shared.global [%s+16], [%at+32], 16;
cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
mov.b32 %v2, 0; mov.b32 %v3, 0;
ldmatrix.sync.aligned.m8n8.`+x+`.shared.b16 `+list+`, [%row];
st.global.v2.b32 [%out], {%v0, %v1};
ldmatrix.sync.aligned.m8n8.`+x+`.shared.b16 `+list+`, [%s];
st.global.v2.b32 [%out+256], {%v0, %v1};
st.global.v2.b32 [%out+512], {%v2, %v3};`)
		for range 10 {
			seed := rnd.Uint64()
			sameOnAllLevels(t, rnd, true, "ldmatrix."+x, src, 8192, func(r *rig, data uint64) []byte {
				rnd := rand.New(rand.NewPCG(seed, 6))
				var in []uint64
				for range warpSize {
					in = append(in, uint64(16*rnd.IntN(126))|uint64(16*rnd.IntN(126))<<32, data+uint64(16*rnd.IntN(250)), 0, 0)
				}
				return pack(r.prog.Kernel("k"), r.upload(in, "in"), data+4096)
			})
		}
	}
}
