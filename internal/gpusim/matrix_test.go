package gpusim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// braced is "{%r0,%r1,…}" of n names.
func braced(name string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%%%s%d", name, i)
	}
	return "{" + strings.Join(list, ",") + "}"
}

func b01(b bool) int { return int(simt.Bit(b)) }

// smallPlace is the manual's place of element i of lane l in A, or in B where its rows are k: "Matrix Fragments for
// mma.m8n8k16" and those after it.
func smallPlace(shape string, a bool, l, i int) (row, col int) {
	group, thread := l/4, l%4
	switch {
	case !a && shape == "m16n8k64" && i >= 8:
		return thread*8 + i&7 + 32, group
	case !a && shape == "m16n8k256" && i >= 32:
		return thread*32 + i&31 + 128, group
	case !a:
		per := map[string]int{"m8n8k16": 4, "m8n8k32": 8, "m16n8k32": 8, "m16n8k64": 8}[shape]
		if per == 0 {
			per = 32
		}
		return thread*per + i, group
	}
	switch shape {
	case "m8n8k16":
		return group, thread*4 + i
	case "m8n8k32":
		return group, thread*8 + i
	case "m8n8k128":
		return group, thread*32 + i
	case "m16n8k32":
		return group + 8*b01(i >= 8), thread*8 + i&7
	case "m16n8k64":
		return group + 8*b01(!(i < 8 || i >= 16 && i < 24)), thread*8 + i&7 + 32*b01(i >= 16)
	case "m16n8k128":
		return group + 8*b01(i >= 32), thread*32 + i&31
	}
	return group + 8*b01(!(i < 32 || i >= 64 && i < 96)), thread*32 + i&31 + 128*b01(i >= 64)
}

// smallProduct is a form of mma.sync, with the registers of A and B.
type smallProduct struct {
	shape, a, b, mods, after string
	m, k, bits, ra, rb       int
}

// TestSmallMMA compares mma.sync of integers of 8, 4 and 1 bits with sums over the manual's places of their elements.
func TestSmallMMA(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, c := range []smallProduct{
		{"m8n8k16", "s8", "u8", "", "", 8, 16, 8, 1, 1}, {"m8n8k16", "u8", "u8", "satfinite.", "", 8, 16, 8, 1, 1},
		{"m8n8k32", "s4", "u4", "", "", 8, 32, 4, 1, 1}, {"m16n8k32", "u4", "s4", "", "", 16, 32, 4, 2, 1},
		{"m16n8k64", "s4", "s4", "satfinite.", "", 16, 64, 4, 4, 2}, {"m8n8k128", "b1", "b1", "", ".xor.popc", 8, 128, 1, 1, 1},
		{"m16n8k128", "b1", "b1", "", ".and.popc", 16, 128, 1, 2, 1}, {"m16n8k256", "b1", "b1", "", ".xor.popc", 16, 256, 1, 4, 2},
	} {
		in := make([]uint32, 32*(c.ra+c.rb+c.m/4))
		for i := range in {
			in[i] = rnd.Uint32()
		}
		got := c.run(t, in)
		for i, want := range c.want(t, in) {
			if got[i] != want {
				t.Fatalf("%s of %s and %s: element %d of lane %d is %d, want %d", c.shape, c.a, c.b, i/32, i%32, got[i], want)
			}
		}
	}
}

func (c *smallProduct) run(t *testing.T, in []uint32) []int32 {
	t.Helper()
	rc := c.m / 4
	var loads, stores strings.Builder
	names := strings.Split(strings.Trim(braced("r", c.ra+c.rb+rc), "{}"), ",")
	for i, name := range names {
		fmt.Fprintf(&loads, "ld.global.u32 %s, [%%a+%d];\n", name, 128*i)
	}
	for i := range rc {
		fmt.Fprintf(&stores, "st.global.u32 [%%o+%d], %%d%d;\n", 128*i, i)
	}
	part := func(lo, n int) string { return "{" + strings.Join(names[lo:lo+n], ",") + "}" }
	inst := fmt.Sprintf("mma.sync.aligned.%s.row.col.%ss32.%s.%s.s32%s %s, %s, %s, %s;\n", c.shape, c.mods, c.a, c.b, c.after,
		braced("d", rc), part(0, c.ra), part(c.ra, c.rb), part(c.ra+c.rb, rc))
	r, err := load(t, `.visible .entry k(.param .u64 in, .param .u64 out)
{
	.reg .b64 %a, %o, %l; .reg .b32 %r<12>, %d<4>, %t;
	ld.param.u64 %a, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %laneid; mul.wide.u32 %l, %t, 4; add.u64 %a, %a, %l; add.u64 %o, %o, %l;
`+loads.String()+inst+stores.String()+"ret;\n}\n")
	if err != nil {
		t.Fatal(inst, err)
	}
	out := r.alloc(128*rc, "out")
	r.launch("k", d1(1), d1(32), Options{}, r.upload(in, "in"), out)
	return download[int32](r, out, 32*rc)
}

func (c *smallProduct) want(t *testing.T, in []uint32) []int32 {
	t.Helper()
	element := func(first, l, i int, typ string) int64 {
		v := in[32*(first+i*c.bits/32)+l] >> (i * c.bits % 32) & (1<<c.bits - 1)
		if typ[0] == 's' {
			return int64(int32(v<<(32-c.bits))) >> (32 - c.bits)
		}
		return int64(v)
	}
	a, b := map[[2]int]int64{}, map[[2]int]int64{}
	for l := range 32 {
		for i := range 32 / c.bits * c.ra {
			row, col := smallPlace(c.shape, true, l, i)
			a[[2]int{row, col}] = element(0, l, i, c.a)
		}
		for i := range 32 / c.bits * c.rb {
			row, col := smallPlace(c.shape, false, l, i)
			b[[2]int{row, col}] = element(c.ra, l, i, c.b)
		}
	}
	if len(a) != c.m*c.k || len(b) != 8*c.k {
		t.Fatal(c.shape, len(a), len(b))
	}
	var out []int32
	for i := range c.m / 4 {
		for l := range 32 {
			row, col := l/4+8*(i/2), l%4*2+i%2
			sum := int64(int32(in[32*(c.ra+c.rb+i)+l]))
			for k := range c.k {
				x, y := a[[2]int{row, k}], b[[2]int{k, col}]
				if c.after == ".xor.popc" {
					sum += x ^ y
				} else {
					sum += x * y
				}
			}
			if c.mods != "" {
				sum = min(max(sum, math.MinInt32), math.MaxInt32)
			}
			out = append(out, int32(sum))
		}
	}
	return out
}

// wmmaForm is types of a wmma: of A and B, the accumulator and the result, and the registers of A and B.
type wmmaForm struct {
	ab, c, d string
	shapes   []string
}

// TestWMMA multiplies by wmma in every shape, type and layout of memory, and compares with sums of whole numbers, which
// are exact in each type.
func TestWMMA(t *testing.T) {
	rnd := testutil.Rand(t)
	big := []string{"m16n16k16", "m8n32k16", "m32n8k16"}
	for _, f := range []wmmaForm{
		{"f16", "f32", "f32", big}, {"f16", "f16", "f16", big}, {"f16", "f16", "f32", big[:1]}, {"bf16", "f32", "f32", big},
		{"s8", "s32", "s32", big}, {"u8", "s32", "s32", big}, {"tf32", "f32", "f32", []string{"m16n16k8"}}, {"f64", "f64", "f64", []string{"m8n8k4"}},
		{"s4", "s32", "s32", []string{"m8n8k32"}}, {"u4", "s32", "s32", []string{"m8n8k32"}}, {"b1", "s32", "s32", []string{"m8n8k128"}},
	} {
		for _, shape := range f.shapes {
			for _, layouts := range []string{"row.col", "col.row", "row.row", "col.col"} {
				if ptx.ParseType(f.ab).Bits() >= 8 || layouts == "row.col" {
					newWMMACase(f, shape, layouts).test(t, rnd.IntN)
				}
			}
		}
	}
}

// wmmaCase is a product. Rows in memory are 16 bytes longer than they need be.
type wmmaCase struct {
	wmmaForm
	shape, layouts, la, lb    string
	m, n, k                   int
	strideA, strideB, strideC int
}

func newWMMACase(f wmmaForm, shape, layouts string) *wmmaCase {
	c := &wmmaCase{wmmaForm: f, shape: shape, layouts: layouts}
	part := strings.FieldsFunc(shape, func(r rune) bool { return r == 'm' || r == 'n' || r == 'k' })
	for i, p := range []*int{&c.m, &c.n, &c.k} {
		*p, _ = strconv.Atoi(part[i])
	}
	c.la, c.lb, _ = strings.Cut(layouts, ".")
	pad := 128 / ptx.ParseType(f.ab).Bits()
	c.strideA, c.strideB, c.strideC = c.k+pad, c.n+pad, c.n+4
	if c.la == "col" {
		c.strideA = c.m + pad
	}
	if c.lb == "col" {
		c.strideB = c.k + pad
	}
	return c
}

// class is the type and the number of registers for rows×cols elements.
func (c *wmmaCase) class(typ string, rows, cols int, factor bool) (string, int) {
	bits := ptx.ParseType(typ).Bits()
	switch {
	case typ == "f16" && factor:
		return "b32", 8
	case typ == "f64", typ == "f32":
		return typ, rows * cols / 32
	}
	return "b32", max(1, rows*cols*bits/1024)
}

func (c *wmmaCase) source() string {
	ac, an := c.class(c.ab, c.m, c.k, true)
	_, bn := c.class(c.ab, c.n, c.k, true)
	cc, cn := c.class(c.c, c.m, c.n, false)
	dc, dn := c.class(c.d, c.m, c.n, false)
	mma := fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s", c.layouts, c.shape, c.d, c.c)
	switch c.ab {
	case "f16":
	case "b1":
		mma = "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"
	case "f64":
		mma = fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.rn.f64.f64.f64.f64", c.layouts, c.shape)
	default:
		mma = fmt.Sprintf("wmma.mma.sync.aligned.%s.%s.%s.%s.%s.%s", c.layouts, c.shape, c.d, c.ab, c.ab, c.c)
	}
	return fmt.Sprintf(`.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
	.reg .b64 %%a, %%b, %%c, %%d; .reg .%s %%x<8>, %%y<8>; .reg .%s %%z<8>; .reg .%s %%w<8>;
	ld.param.u64 %%a, [a]; ld.param.u64 %%b, [b]; ld.param.u64 %%c, [c]; ld.param.u64 %%d, [d];
	wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%a], %d;
	wmma.load.b.sync.aligned.%s.%s.%s %s, [%%b], %d;
	wmma.load.c.sync.aligned.row.%s.global.%s %s, [%%c], %d;
	%s %s, %s, %s, %s;
	wmma.store.d.sync.aligned.col.%s.global.%s [%%d], %s;
	ret;
}
`, ac, cc, dc, c.la, c.shape, c.ab, braced("x", an), c.strideA, c.lb, c.shape, c.ab, braced("y", bn), c.strideB,
		c.shape, c.c, braced("z", cn), c.strideC, mma, braced("w", dn), braced("x", an), braced("y", bn), braced("z", cn),
		c.shape, c.d, braced("w", dn))
}

// fill makes a matrix of small whole numbers, and its bytes.
func (c *wmmaCase) fill(rows, cols, stride int, across bool, typ string, intN func(n int) int) ([]int64, []byte) {
	lo, hi := -4, 4
	switch c.ab {
	case "u8", "u4":
		lo, hi = 0, 15
	case "b1":
		lo, hi = 0, 2
	}
	v, height := make([]int64, rows*cols), rows
	if across {
		height = cols
	}
	mem := make([]byte, (height*stride*ptx.ParseType(typ).Bits()+7)/8)
	for i := range v {
		v[i] = int64(lo + intN(hi-lo))
		at := i/cols*stride + i%cols
		if across {
			at = i%cols*stride + i/cols
		}
		putElement(mem, at, typ, v[i])
	}
	return v, mem
}

func (c *wmmaCase) test(t *testing.T, intN func(n int) int) {
	t.Helper()
	r, err := load(t, c.source())
	if err != nil {
		t.Fatal(err, "\n", c.source())
	}
	a, ma := c.fill(c.m, c.k, c.strideA, c.la == "col", c.ab, intN)
	b, mb := c.fill(c.k, c.n, c.strideB, c.lb == "col", c.ab, intN)
	acc, mc := c.fill(c.m, c.n, c.strideC, false, c.c, intN)
	size := ptx.ParseType(c.d).Size()
	d := r.alloc(c.m*c.n*size, "d")
	r.launch("k", d1(1), d1(32), Options{Checks: AllChecks}, r.upload(ma, "a"), r.upload(mb, "b"), r.upload(mc, "c"), d)
	got := download[byte](r, d, c.m*c.n*size)
	for i := range c.m {
		for j := range c.n {
			sum := acc[i*c.n+j]
			for x := range c.k {
				if p, q := a[i*c.k+x], b[x*c.n+j]; c.ab == "b1" {
					sum += p ^ q
				} else {
					sum += p * q
				}
			}
			want := make([]byte, size)
			putElement(want, 0, c.d, sum)
			if g := got[(j*c.m+i)*size:][:size]; string(g) != string(want) {
				t.Fatalf("%s of %s into %s with %s: element %d,%d is %x, want %d, %x", c.shape, c.ab, c.d, c.layouts, i, j, g, sum, want)
			}
		}
	}
}

// putElement writes a whole number as element at of a type.
func putElement(mem []byte, at int, typ string, v int64) {
	t := ptx.ParseType(typ)
	switch {
	case t.Bits() < 8:
		bit := at * t.Bits()
		mem[bit/8] |= byte(v) & (1<<t.Bits() - 1) << (bit % 8)
	case t == ptx.TF32:
		numbers.Put(mem[4*at:], 4, uint64(math.Float32bits(float32(v))))
	case t.Kind() == ptx.KindFloat:
		numbers.Put(mem[t.Size()*at:], t.Size(), arith.FormatOf(t).Round(float64(v), arith.RN))
	default:
		numbers.Put(mem[t.Size()*at:], t.Size(), uint64(v))
	}
}

// TestWMMABounds: a fragment beyond an allocation is found like any access.
func TestWMMABounds(t *testing.T) {
	r, err := load(t, `.visible .entry k(.param .u64 a)
{
	.reg .b64 %a; .reg .b32 %x<8>;
	ld.param.u64 %a, [a];
	wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%x0,%x1,%x2,%x3,%x4,%x5,%x6,%x7}, [%a], 16;
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.try("k", d1(1), d1(32), Options{}, r.alloc(510, "a")); err == nil || !strings.Contains(err.Error(), "out-of-bounds read") {
		t.Error(err)
	}
}
