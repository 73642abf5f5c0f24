package gpusim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// hopper is a device of compute capability 9.0 with a module, which remembers what was written.
func hopper(t testing.TB, src string) *rig {
	t.Helper()
	return onHopper(t, src, true)
}

func onHopper(t testing.TB, src string, track bool) *rig {
	t.Helper()
	m, err := ptx.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDevice(NewCard("Hopper", 1<<30, 4, [2]int{9, 0}), track)
	p, err := d.Load(m)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return &rig{t, d, p}
}

const hopperHead = ".version 8.8\n.target sm_90a\n.address_size 64\n"

// productCase is a wgmma with its operands.
type productCase struct {
	name         string // the opcode with modifiers
	n, k         int
	ta, tb, acc  ptx.Type
	sat          bool
	fromRegs     bool
	major        [2]bool // A and B lie by columns of A and rows of B
	swizzle      [2]int  // units of 16 bytes: 1 without
	adds         bool
	signs        [2]int
	a, b, c      []uint64 // bits: A by rows, B by columns, C by rows
	lead, stride [2]int   // bytes
	at           [2]int   // in shared memory
	shared       []byte
	r            *rand.Rand
}

// productOf reads a form of the table: "mma_async.sync.aligned.m64n8k16.f32.f16.f16".
func productOf(key string, r *rand.Rand) *productCase {
	c := &productCase{name: "wgmma." + key, r: r, signs: [2]int{1, 1}}
	var ts []ptx.Type
	for w := range strings.SplitSeq(key, ".") {
		if t := ptx.ParseType(w); t != ptx.NoType {
			ts = append(ts, t)
		}
		if strings.HasPrefix(w, "m64n") {
			if _, err := fmt.Sscanf(w, "m64n%dk%d", &c.n, &c.k); err != nil {
				return nil
			}
		}
		c.sat = c.sat || w == "satfinite"
	}
	if len(ts) != 3 || ts[1] == ptx.B1 {
		return nil
	}
	c.acc, c.ta, c.tb = ts[0], ts[1], ts[2]
	return c
}

func (c *productCase) choose(fromRegs bool, swizzle [2]int, major [2]bool) {
	c.fromRegs, c.swizzle, c.major = fromRegs, swizzle, major
	c.adds = c.r.IntN(4) > 0
	if c.ta.Kind() == ptx.KindFloat {
		c.signs = [2]int{1 - 2*c.r.IntN(2), 1 - 2*c.r.IntN(2)}
	}
	if c.ta.Bits() != 16 {
		c.major = [2]bool{}
	}
	if fromRegs {
		c.major[0] = false
	}
	c.a, c.b, c.c = c.matrix(c.ta, 64*c.k), c.matrix(c.tb, c.n*c.k), c.matrix(c.acc, 64*c.n)
	c.shared = make([]byte, 1024)
	for i, rows := range []int{64, c.n} {
		if i == 0 && fromRegs {
			continue
		}
		c.place(i, rows)
	}
}

// matrix is random bits of numbers that are small, and mostly sum exactly.
func (c *productCase) matrix(t ptx.Type, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		if f := arith.FormatOf(t); f != nil && t.Bits() > 8 {
			list[i] = f.Round(float64(c.r.IntN(65)-32)/8, arith.RN)
			if t == ptx.TF32 {
				list[i] |= uint64(c.r.IntN(1 << 13)) // bits that do not count
			}
		} else if f != nil {
			list[i] = uint64(c.r.IntN(0x58) | c.r.IntN(2)<<7)
		} else {
			list[i] = c.r.Uint64() >> (64 - t.Bits())
		}
	}
	return list
}

// place lays a matrix out in shared memory as the canonical layouts of CUTLASS have it, element by element.
func (c *productCase) place(i, rows int) {
	t, data := [2]ptx.Type{c.ta, c.tb}[i], [2][]uint64{c.a, c.b}[i]
	w, size := c.swizzle[i], t.Size()
	per := 16 / size
	start := (len(c.shared) + 1023) / 1024 * 1024
	atom := 128 * w // bytes of 8 rows
	var address func(r, k int) int
	pad := 1024 * c.r.IntN(2)
	switch {
	case !c.major[i] && w == 1:
		c.lead[i], c.stride[i] = 128, 256+pad
		if c.r.IntN(2) == 0 {
			c.lead[i], c.stride[i] = rows*16+pad, 128
		}
		address = func(r, k int) int { return r/8*c.stride[i] + r%8*16 + k/per*c.lead[i] + k%per*size }
	case !c.major[i]:
		c.lead[i], c.stride[i] = 16*c.r.IntN(5), atom+pad
		start += 32 * c.r.IntN(max(w/2, 1)) // a later step of k of a wider tile
		address = func(r, k int) int { return r/8*c.stride[i] + r%8*16*w + k/per*16 + k%per*size }
	case w == 1:
		c.lead[i], c.stride[i] = 128, 256+pad
		address = func(r, k int) int { return r/per*c.stride[i] + k%8*16 + k/8*c.lead[i] + r%per*size }
	default:
		c.stride[i], c.lead[i] = atom, 2*atom+pad
		address = func(r, k int) int { return r/(per*w)*c.lead[i] + r/per%w*16 + k%8*16*w + k/8*c.stride[i] + r%per*size }
	}
	c.at[i] = start
	for r := range rows {
		for k := range c.k {
			a := start + address(r, k)
			bit := map[int]int{1: 0, 2: 1, 4: 3, 8: 7}[w]
			a ^= a >> 7 & bit << 4
			for len(c.shared) < a+size {
				c.shared = append(c.shared, 0)
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], data[r*c.k+k])
			copy(c.shared[a:a+size], b[:])
		}
	}
	c.shared = append(c.shared, make([]byte, (1024-len(c.shared)%1024)%1024)...)
}

func (c *productCase) descriptor(i int) uint64 {
	layout := map[int]uint64{1: 0, 8: 1, 4: 2, 2: 3}[c.swizzle[i]]
	return uint64(c.at[i])>>4 | uint64(c.lead[i])>>4<<16 | uint64(c.stride[i])>>4<<32 | layout<<62
}

// registers is how many each thread has of D.
func (c *productCase) registers() int {
	if c.acc == ptx.F16 {
		return c.n / 4
	}
	return c.n / 2
}

// source is a kernel that fills shared memory, multiplies and stores D, a register of all threads after the other.
func (c *productCase) source() string {
	var b strings.Builder
	d := c.registers()
	fmt.Fprintf(&b, hopperHead+".extern .shared .align 1024 .b8 s[];\n.visible .entry k(.param .u64 shared, .param .u64 a, .param .u64 c, .param .u64 d)\n{\n"+
		".reg .b32 %%d<%d>, %%a<4>, %%t, %%i, %%v<4>, %%s; .reg .b64 %%p, %%q, %%x<2>; .reg .pred %%z, %%adds;\n"+
		"mov.u32 %%t, %%tid.x; shl.b32 %%i, %%t, 4; cvt.u64.u32 %%q, %%i; ld.param.u64 %%p, [shared]; add.u64 %%p, %%p, %%q; mov.u32 %%s, s; add.u32 %%s, %%s, %%i;\n"+
		"FILL: setp.ge.u32 %%z, %%i, %d; @%%z bra FILLED;\nld.global.v4.b32 {%%v0,%%v1,%%v2,%%v3}, [%%p]; st.shared.v4.b32 [%%s], {%%v0,%%v1,%%v2,%%v3};\n"+
		"add.u32 %%i, %%i, 2048; add.u32 %%s, %%s, 2048; add.u64 %%p, %%p, 2048; bra FILL;\nFILLED: fence.proxy.async.shared::cta; bar.sync 0;\n"+
		"mul.wide.u32 %%q, %%t, 4; ld.param.u64 %%p, [a]; add.u64 %%p, %%p, %%q;\n", d, len(c.shared))
	for i := range 4 {
		fmt.Fprintf(&b, "ld.global.b32 %%a%d, [%%p+%d];\n", i, 512*i)
	}
	b.WriteString("ld.param.u64 %p, [c]; add.u64 %p, %p, %q;\n")
	list := make([]string, d)
	for i := range d {
		list[i] = fmt.Sprintf("%%d%d", i)
		if c.adds {
			fmt.Fprintf(&b, "ld.global.b32 %%d%d, [%%p+%d];\n", i, 512*i)
		}
	}
	a := "%x0"
	if c.fromRegs {
		a = "{%a0,%a1,%a2,%a3}"
	}
	tail := ""
	if c.ta.Kind() == ptx.KindFloat {
		tail = fmt.Sprintf(", %d, %d", c.signs[0], c.signs[1])
	}
	if c.ta.Bits() == 16 {
		for i := range 2 {
			if i > 0 || !c.fromRegs {
				tail += map[bool]string{false: ", 0", true: ", 1"}[c.major[i]]
			}
		}
	}
	fmt.Fprintf(&b, "mov.b64 %%x0, %d; mov.b64 %%x1, %d; setp.eq.u32 %%adds, %d, 1;\nwgmma.fence.sync.aligned;\n%s {%s}, %s, %%x1, %%adds%s;\n",
		c.descriptor(0), c.descriptor(1), map[bool]int{true: 1}[c.adds], c.name, strings.Join(list, ","), a, tail)
	b.WriteString("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nld.param.u64 %p, [d]; add.u64 %p, %p, %q;\n")
	for i := range d {
		fmt.Fprintf(&b, "st.global.b32 [%%p+%d], %%d%d;\n", 512*i, i)
	}
	return b.String() + "ret;\n}\n"
}

// pack puts a matrix into the registers of 128 threads, a register of all threads after the other.
func (c *productCase) pack(data []uint64, cols, registers int, t ptx.Type, at func(w, g, q, i int) (row, col int)) []uint32 {
	out := make([]uint32, registers*128)
	per := 32 / t.Bits()
	for thread := range 128 {
		w, l := thread/32, thread%32
		for i := range registers * per {
			row, col := at(w, l/4, l%4, i)
			out[i/per*128+thread] |= uint32(data[row*cols+col]) << (i % per * t.Bits())
		}
	}
	return out
}

// The layouts of the manual: thread 32w+4g+q has element i at these places.
func accumulatorAt(w, g, q, i int) (int, int) { return 16*w + g + 8*(i>>1&1), 2*q + i&1 + 8*(i>>2) }

func (c *productCase) factorAt(w, g, q, i int) (int, int) {
	switch c.ta.Bits() {
	case 16:
		return 16*w + g + 8*(i>>1&1), 2*q + i&1 + 8*(i>>2)
	case 32:
		return 16*w + g + 8*(i&1), q + 4*(i>>1)
	}
	return 16*w + g + 8*(i>>2&1), 4*q + i&3 + 16*(i>>3)
}

func numberOf(t ptx.Type, bits uint64) float64 {
	if f := arith.FormatOf(t); f != nil {
		return f.Float(bits)
	}
	return float64(int64(arith.Extend(t)(bits)))
}

// check compares with float64, or with integers that wrap around or saturate.
func (c *productCase) check(t *testing.T, got []uint32, loose float64) {
	t.Helper()
	d := make([]uint64, 64*c.n)
	per := 32 / c.acc.Bits()
	for thread := range 128 {
		w, l := thread/32, thread%32
		for i := range c.registers() * per {
			row, col := accumulatorAt(w, l/4, l%4, i)
			d[row*c.n+col] = uint64(got[i/per*128+thread]) >> (i % per * c.acc.Bits()) & (1<<c.acc.Bits() - 1)
		}
	}
	for row := range 64 {
		for col := range c.n {
			want, size := 0.0, 0.0
			if c.adds {
				want = numberOf(c.acc, c.c[row*c.n+col])
				size = math.Abs(want)
			}
			for k := range c.k {
				p := float64(c.signs[0]*c.signs[1]) * numberOf(c.ta, c.a[row*c.k+k]) * numberOf(c.tb, c.b[col*c.k+k])
				want, size = want+p, size+math.Abs(p)
			}
			v := numberOf(c.acc, d[row*c.n+col])
			if c.acc == ptx.S32 {
				w := int64(want)
				if c.sat {
					w = min(max(w, math.MinInt32), math.MaxInt32)
				}
				want, size = float64(int32(w)), 0
			}
			allow := size*float64(c.k+1)*0x1p-24 + size*loose
			if c.acc == ptx.F16 {
				allow += math.Abs(want)*0x1p-11 + 0x1p-24
			}
			if !(math.Abs(v-want) <= allow) {
				t.Fatalf("%s, A in registers %v, swizzles %v, transposed %v, adds %v, signs %v: row %d, column %d is %g, want %g ± %g", c.name, c.fromRegs, c.swizzle, c.major, c.adds, c.signs, row, col, v, want, allow)
			}
		}
	}
}

func (c *productCase) run(t *testing.T, o Options) []uint32 {
	t.Helper()
	r := hopper(t, c.source())
	a := c.pack(c.a, c.k, 4, c.ta, c.factorAt)
	acc := c.pack(c.c, c.n, c.registers(), c.acc, accumulatorAt)
	out := r.alloc(4*len(acc), "d")
	k := r.prog.Kernel("k")
	rep, err := r.dev.Launch(k, d1(1), d1(128), len(c.shared), pack(k, r.upload(c.shared, "shared"), r.upload(a, "a"), r.upload(acc, "c"), out), o)
	if err != nil || len(rep.Findings) > 0 {
		t.Fatal(err, rep)
	}
	return download[uint32](r, out, len(acc))
}

// productForms are the keys of the table's forms of wgmma.mma_async.
func productForms() (keys []string) {
	for c := range ptx.Candidates() {
		if strings.HasPrefix(c.Family, "wgmma#") && strings.HasPrefix(c.Key, "mma_async") && !strings.Contains(c.Key, "b1") {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// TestProducts: each form of wgmma in the table against float64, with operands from registers and from shared memory in each
// layout, exact, in the order of k and truncating; a third of them at a time.
func TestProducts(t *testing.T) {
	r := testutil.Rand(t)
	keys := productForms()
	if len(keys) < 500 {
		t.Fatalf("%d forms", len(keys))
	}
	widths, offset := []int{1, 2, 4, 8}, r.IntN(3)
	for i, key := range keys {
		if (i+offset)%3 != 0 {
			continue
		}
		c := productOf(key, r)
		c.choose(r.IntN(3) == 0, [2]int{widths[i%4], widths[i/4%4]}, [2]bool{r.IntN(2) == 0, r.IntN(2) == 0})
		o := Options{Numerics: []Numerics{Float32, Exact, Truncating}[i%3]}
		if i%5 == 0 {
			o.Checks = AllChecks
		}
		loose := 0.0
		if o.Numerics == Truncating {
			if loose = 0x1p-20; c.ta.Bits() == 8 {
				loose = 0x1p-9
			}
		}
		c.check(t, c.run(t, o), loose)
	}
}

// TestProductLayouts: each layout of both operands, for each width of elements.
func TestProductLayouts(t *testing.T) {
	r := testutil.Rand(t)
	for _, types := range []string{"k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.s32.s8.u8", "k32.f32.e4m3.e5m2"} {
		for _, a := range []int{0, 1, 2, 4, 8} {
			for _, b := range []int{1, 2, 4, 8} {
				for m := range 4 {
					if m > 0 && !strings.Contains(types, "16.") {
						continue
					}
					c := productOf(fmt.Sprintf("mma_async.sync.aligned.m64n%d%s", 8*(1+r.IntN(9)), types), r)
					if c.ta == ptx.S8 && c.n > 24 {
						c = productOf("mma_async.sync.aligned.m64n48"+types, r)
					}
					c.choose(a == 0, [2]int{max(a, 1), b}, [2]bool{m&1 == 1, m&2 == 2})
					c.check(t, c.run(t, Options{}), 0)
				}
			}
		}
	}
}
