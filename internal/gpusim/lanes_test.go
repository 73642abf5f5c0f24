package gpusim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/testutil"
)

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
			whole := map[string][]int{"b16": {1}, "b32": {1, 2, 4}, "f32": {1, 2, 4}, "b64": {1}}[typ]
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
				sameOnAllLevels(t, rnd, slices.Contains(whole, n), fmt.Sprintf("%s, %d values, pattern %d", typ, n, pattern), accessKernel(typ, n), 8192, func(r *rig, data uint64) []byte {
					rnd := rand.New(rand.NewPCG(seed, 3))
					var in []uint64
					for lane := range simt.WarpSize {
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
			if eng := lanes.EngineOf(l); eng != nil && whole {
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
func wholly(t *testing.T, what string, k *Kernel, eng *lanes.Engine) {
	t.Helper()
	for v, c := range k.code {
		if lanes.EngineOf(v.Level) != eng {
			continue
		}
		left := 0
		for i, s := range c.Steps {
			if op := lanes.Op(c.Prog[i][0]); s.Run != nil && op == lanes.Leave {
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
				for range simt.WarpSize {
					in = append(in, uint64(16*rnd.IntN(126))|uint64(16*rnd.IntN(126))<<32, data+uint64(16*rnd.IntN(250)), 0, 0)
				}
				return pack(r.prog.Kernel("k"), r.upload(in, "in"), data+4096)
			})
		}
	}
}
