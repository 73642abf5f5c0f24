package gpusim

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
)

// runLanes runs an instruction "…" with operands %a, %b, %c into %d over triples of operands, in one launch of blocks of
// one kernel per instruction.
func runLanes(t *testing.T, inst, dst string, src [3]string, in [][3]uint64) []uint64 {
	t.Helper()
	load := func(name, class string, at int) string {
		if class == "pred" {
			return fmt.Sprintf("ld.global.u64 %%t, [%%in+%d]; setp.ne.u64 %%%s, %%t, 0;", at, name)
		}
		return fmt.Sprintf("ld.global.b%s %%%s, [%%in+%d];", strings.TrimLeft(class, "bfsu"), name, at)
	}
	body := load("a", src[0], 0) + load("b", src[1], 8) + load("c", src[2], 16) + "\n" + inst + "\n"
	if dst == "pred" {
		body += "selp.u64 %t, 1, 0, %d; st.global.u64 [%out], %t;"
	} else {
		body += fmt.Sprintf("mov.u64 %%t, 0; st.global.u64 [%%out], %%t; st.global.b%s [%%out], %%d;", strings.TrimLeft(dst, "bfsu"))
	}
	r := newRig(t, wrap(fmt.Sprintf(".reg .%s %%d; .reg .%s %%a; .reg .%s %%b; .reg .%s %%c; .reg .b64 %%t;", dst, src[0], src[1], src[2]), body), false)
	out := make([]uint64, 0, len(in))
	const most = 1024
	for lo := 0; lo < len(in); lo += most {
		part := in[lo:min(lo+most, len(in))]
		flat := make([]uint64, 4*len(part))
		for i, v := range part {
			copy(flat[4*i:], v[:])
		}
		pin, pout := r.upload(flat, "in"), r.alloc(8*len(part), "out")
		r.launch("k", d1(1), d1(len(part)), Options{}, pin, pout)
		out = append(out, download[uint64](r, pout, len(part))...)
	}
	return out
}

// triples combines edges; for one or two operands the others are fixed.
func triples(edges []uint64, operands int) [][3]uint64 {
	var out [][3]uint64
	for i, a := range edges {
		for j, b := range edges {
			if operands < 2 && j > 0 {
				break
			}
			for k, c := range edges {
				if operands < 3 && k > 0 || operands == 3 && (i*7+j*3+k)%5 != 0 {
					continue
				}
				out = append(out, [3]uint64{a, b, c})
			}
		}
	}
	return out
}

func TestFloatArithmetic(t *testing.T) {
	type op struct {
		name string
		n    int
		ref  func(f oracle.Format, v [3]uint64, mode string) uint64
	}
	ops := []op{
		{"add", 2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], f.One(), v[1], m) }},
		{"sub", 2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], f.One(), f.Negate(v[1]), m) }},
		{"mul", 2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Mul(v[0], v[1], m) }},
		{"fma", 3, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], v[1], v[2], m) }},
		{"div", 2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Div(v[0], v[1], m) }},
		{"rcp", 1, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Div(f.One(), v[0], m) }},
		{"sqrt", 1, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Sqrt(v[0], m) }},
	}
	operands := []string{"", "%a", "%a, %b", "%a, %b, %c"}
	for _, o := range ops {
		for _, typ := range []string{"f32", "f64", "f16", "bf16"} {
			f := oracle.Formats[typ]
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				half := f.Width() == 16
				if half && (mode != "rn" || o.name != "fma" && typ == "bf16" || o.n < 2 || o.name == "div") {
					continue
				}
				inst := fmt.Sprintf("%s.%s.%s %%d, %s;", o.name, mode, typ, operands[o.n])
				in := triples(f.Edges(), o.n)
				for i, got := range runLanes(t, inst, f.Reg, [3]string{f.Reg, f.Reg, f.Reg}, in) {
					if want := o.ref(f, in[i], mode); got != want {
						t.Fatalf("%s of %x is %x, want %x", inst, in[i], got, want)
					}
				}
			}
		}
	}
}

// TestModifiers checks .ftz, .sat and packed halves against the plain forms of the oracle.
func TestModifiers(t *testing.T) {
	f := oracle.Formats["f32"]
	flush := func(b uint64) uint64 {
		if b>>23&255 == 0 {
			return b & (1 << 31)
		}
		return b
	}
	sat := func(b uint64) uint64 {
		switch v := math.Float32frombits(uint32(b)); {
		case !(v > 0):
			return 0
		case v > 1:
			return 0x3f800000
		}
		return b
	}
	in := triples(f.Edges(), 3)
	check := func(inst, reg string, ref func(v [3]uint64) uint64, in [][3]uint64) {
		t.Helper()
		for i, got := range runLanes(t, inst, reg, [3]string{reg, reg, reg}, in) {
			if want := ref(in[i]); got != want {
				t.Fatalf("%s of %x is %x, want %x", inst, in[i], got, want)
			}
		}
	}
	check("fma.rn.ftz.f32 %d, %a, %b, %c;", "f32", func(v [3]uint64) uint64 { return flush(f.Fma(flush(v[0]), flush(v[1]), flush(v[2]), "rn")) }, in)
	check("fma.rz.sat.f32 %d, %a, %b, %c;", "f32", func(v [3]uint64) uint64 { return sat(f.Fma(v[0], v[1], v[2], "rz")) }, in)
	check("add.ftz.sat.f32 %d, %a, %b;", "f32", func(v [3]uint64) uint64 { return sat(flush(f.Fma(flush(v[0]), f.One(), flush(v[1]), "rn"))) }, in)
	for typ, h := range map[string]oracle.Format{"f16": oracle.Formats["f16"], "bf16": oracle.Formats["bf16"]} {
		in := triples(h.Edges(), 3)
		for i := range in {
			j := (i*31 + 7) % len(in)
			for k := range 3 {
				in[i][k] = in[i][k]&0xffff | in[j][k]<<16&0xffff0000
			}
		}
		check("fma.rn."+typ+"x2 %d, %a, %b, %c;", "b32", func(v [3]uint64) uint64 {
			lo := h.Fma(v[0]&0xffff, v[1]&0xffff, v[2]&0xffff, "rn")
			return lo | h.Fma(v[0]>>16, v[1]>>16, v[2]>>16, "rn")<<16
		}, in)
	}
}

func TestConversions(t *testing.T) {
	names := []string{"f16", "bf16", "f32", "f64"}
	for _, from := range names {
		for _, to := range names {
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				f, g := oracle.Formats[from], oracle.Formats[to]
				if g.Mant >= f.Mant || from == "f16" || to == "bf16" && mode != "rn" && mode != "rz" || from == "f64" && to == "bf16" || to == "f16" && mode != "rn" && from == "f64" {
					continue
				}
				inst := fmt.Sprintf("cvt.%s.%s.%s %%d, %%a;", mode, to, from)
				in := triples(f.Edges(), 1)
				for i, got := range runLanes(t, inst, g.Reg, [3]string{f.Reg, f.Reg, f.Reg}, in) {
					neg, inf, nan := f.Class(in[i][0])
					want := g.Signed(0, neg)
					if v, ok := f.Value(in[i][0]); ok && v.Sign() != 0 {
						want = g.Round(v, mode)
					} else if nan {
						want = g.Nan
					} else if inf {
						want = g.Signed(uint64(2*g.Bias+1)<<g.Mant, neg)
					}
					if got != want {
						t.Fatalf("%s of %x is %x, want %x", inst, in[i][0], got, want)
					}
				}
			}
		}
	}
}

// TestIntegerConversions checks float to integer in every mode and size, integer to float, and saturation.
func TestIntegerConversions(t *testing.T) {
	f := oracle.Formats["f32"]
	edges := append(f.Edges(), 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x5f000000, 0x5f800000, 0x3f000000, 0x3fc00000, 0xbf000000, 0xbfc00000, 0x47000000, 0x42fe0000)
	for _, bitsOf := range []int{16, 32, 64} {
		for _, kind := range []string{"s", "u"} {
			for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
				typ := fmt.Sprintf("%s%d", kind, bitsOf)
				inst := fmt.Sprintf("cvt.%s.%s.f32 %%d, %%a;", mode, typ)
				in := triples(edges, 1)
				for i, got := range runLanes(t, inst, fmt.Sprintf("b%d", bitsOf), [3]string{"f32", "f32", "f32"}, in) {
					if want := floatToInt(f, in[i][0], mode, bitsOf, kind == "s"); got != want {
						t.Fatalf("%s of %x is %x, want %x", inst, in[i][0], got, want)
					}
				}
			}
		}
	}
	ints := []uint64{0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 1<<24 + 1, 1<<25 + 3, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64, math.MaxUint64 - 1023, 0x8000000000000400, 1<<54 + 3}
	for _, to := range []string{"f32", "f64"} {
		g := oracle.Formats[to]
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			for _, from := range []string{"s64", "u64", "s32", "u32", "s16"} {
				in := triples(ints, 1)
				var n int
				fmt.Sscan(from[1:], &n)
				reg := fmt.Sprintf("b%d", n)
				for i, got := range runLanes(t, "cvt."+mode+"."+to+"."+from+" %d, %a;", g.Reg, [3]string{reg, reg, reg}, in) {
					v := wordOf(in[i][0], n, from[0] == 's')
					var want uint64
					if v.Sign() != 0 {
						want = g.Round(new(big.Rat).SetInt(v), mode)
					}
					if got != want {
						t.Fatalf("cvt.%s.%s.%s of %x is %x, want %x", mode, to, from, in[i][0], got, want)
					}
				}
			}
		}
	}
	for _, to := range []string{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"} {
		for _, from := range []string{"s16", "u16", "s32", "u32", "s64", "u64"} {
			for _, sat := range []string{"", "sat."} {
				var n, m int
				fmt.Sscan(from[1:], &n)
				fmt.Sscan(to[1:], &m)
				in := triples(ints, 1)
				reg := fmt.Sprintf("b%d", n)
				for i, got := range runLanes(t, "cvt."+sat+to+"."+from+" %d, %a;", fmt.Sprintf("b%d", max(m, 16)), [3]string{reg, reg, reg}, in) {
					v := wordOf(in[i][0], n, from[0] == 's')
					if sat != "" {
						lo, hi := bounds(m, to[0] == 's')
						v = clampBig(v, lo, hi)
					}
					w := wordOf(new(big.Int).And(v, big.NewInt(0).SetUint64(math.MaxUint64)).Uint64(), m, to[0] == 's')
					want := new(big.Int).And(w, new(big.Int).SetUint64(math.MaxUint64>>(64-max(m, 16)))).Uint64()
					if got != want {
						t.Fatalf("cvt.%s%s.%s of %x is %x, want %x", sat, to, from, in[i][0], got, want)
					}
				}
			}
		}
	}
}

func wordOf(v uint64, n int, signed bool) *big.Int {
	v &= math.MaxUint64 >> (64 - n)
	r := new(big.Int).SetUint64(v)
	if signed && v>>(n-1) == 1 {
		r.Sub(r, new(big.Int).Lsh(big.NewInt(1), uint(n)))
	}
	return r
}

func bounds(n int, signed bool) (lo, hi *big.Int) {
	one := big.NewInt(1)
	if signed {
		hi = new(big.Int).Lsh(one, uint(n-1))
		return new(big.Int).Neg(hi), new(big.Int).Sub(hi, one)
	}
	return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(n)), one)
}

func clampBig(v, lo, hi *big.Int) *big.Int {
	if v.Cmp(lo) < 0 {
		return lo
	}
	if v.Cmp(hi) > 0 {
		return hi
	}
	return v
}

func floatToInt(f oracle.Format, b uint64, mode string, n int, signed bool) uint64 {
	neg, _, nan := f.Class(b)
	lo, hi := bounds(n, signed)
	mask := new(big.Int).SetUint64(math.MaxUint64 >> (64 - n))
	v, ok := f.Value(b)
	switch {
	case nan && (n == 64 || f.Width() == 64):
		return 1 << (n - 1)
	case nan:
		return 0
	case !ok && neg:
		return new(big.Int).And(lo, mask).Uint64()
	case !ok:
		return hi.Uint64()
	}
	q := new(big.Int).Div(v.Num(), v.Denom()) // floor
	rest := new(big.Rat).Sub(v, new(big.Rat).SetInt(q))
	half := rest.Cmp(big.NewRat(1, 2))
	if mode == "rpi" && rest.Sign() > 0 || mode == "rzi" && neg && rest.Sign() > 0 || mode == "rni" && (half > 0 || half == 0 && q.Bit(0) == 1) {
		q.Add(q, big.NewInt(1))
	}
	return new(big.Int).And(clampBig(q, lo, hi), mask).Uint64()
}

// TestIntegers compares integer instructions with big integers or bit loops.
func TestIntegers(t *testing.T) {
	edges := []uint64{0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, 255, 0x7fff, 0x8000, 0xffff, 0x12345678, 0x7fffffff, 0x80000000, 0xffffffff, 0xdeadbeefcafebabe, 1<<63 - 1, 1 << 63, math.MaxUint64}
	for _, c := range []struct {
		inst     string
		operands int
		ref      func(v [3]*big.Int, n int, signed bool) *big.Int
	}{
		{"add.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int { return v[0].Add(v[0], v[1]) }},
		{"sub.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int { return v[0].Sub(v[0], v[1]) }},
		{"mul.lo.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int { return v[0].Mul(v[0], v[1]) }},
		{"mul.hi.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, n int, _ bool) *big.Int { return v[0].Rsh(v[0].Mul(v[0], v[1]), uint(n)) }},
		{"mad.lo.%s %%d, %%a, %%b, %%c;", 3, func(v [3]*big.Int, _ int, _ bool) *big.Int { return v[0].Add(v[0].Mul(v[0], v[1]), v[2]) }},
		{"mad.hi.%s %%d, %%a, %%b, %%c;", 3, func(v [3]*big.Int, n int, _ bool) *big.Int {
			return v[0].Add(v[0].Rsh(v[0].Mul(v[0], v[1]), uint(n)), v[2])
		}},
		{"min.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int { return clampBig(v[0], v[0], v[1]) }},
		{"max.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int { return clampBig(v[0], v[1], v[0]) }},
		{"sad.%s %%d, %%a, %%b, %%c;", 3, func(v [3]*big.Int, _ int, _ bool) *big.Int {
			return v[2].Add(v[2], v[0].Abs(v[0].Sub(v[0], v[1])))
		}},
		{"div.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int {
			if v[1].Sign() == 0 {
				return big.NewInt(-1)
			}
			return v[0].Quo(v[0], v[1])
		}},
		{"rem.%s %%d, %%a, %%b;", 2, func(v [3]*big.Int, _ int, _ bool) *big.Int {
			if v[1].Sign() == 0 {
				return v[0]
			}
			return v[0].Rem(v[0], v[1])
		}},
	} {
		for _, typ := range []string{"u16", "s16", "u32", "s32", "u64", "s64"} {
			var n int
			fmt.Sscan(typ[1:], &n)
			in := triples(edges, c.operands)
			reg := fmt.Sprintf("b%d", n)
			inst := fmt.Sprintf(c.inst, typ)
			for i, got := range runLanes(t, inst, reg, [3]string{reg, reg, reg}, in) {
				var v [3]*big.Int
				for k := range v {
					v[k] = wordOf(in[i][k], n, typ[0] == 's')
				}
				mask := new(big.Int).SetUint64(math.MaxUint64 >> (64 - n))
				if want := new(big.Int).And(c.ref(v, n, typ[0] == 's'), mask).Uint64(); got != want {
					t.Fatalf("%s of %x is %x, want %x", inst, in[i], got, want)
				}
			}
		}
	}
}

// TestBits compares bit instructions with loops over bits, as the manual writes them.
func TestBits(t *testing.T) {
	edges := []uint64{0, 1, 2, 5, 8, 31, 32, 40, 0xff, 0x1234, 0x5410, 0x80000000, 0xffffffff, 0xdeadbeef, 0x7fffffff, 0x00ff00ff, 0xfedcba98}
	bit := func(v uint64, i int) uint64 {
		if i > 63 {
			return 0
		}
		return v >> i & 1
	}
	for inst, ref := range map[string]func(a, b, c uint64) uint64{
		"bfe.u32 %d, %a, %b, %c;": func(a, b, c uint64) uint64 {
			var r uint64
			for i := range int(c & 255) {
				if p := i + int(b&255); i < 32 && p < 32 {
					r |= bit(a, p) << i
				}
			}
			return r
		},
		"bfe.s32 %d, %a, %b, %c;": func(a, b, c uint64) uint64 {
			pos, n := int(b&255), int(c&255)
			if n == 0 {
				return 0
			}
			sign := bit(a, min(pos+n-1, 31))
			var r uint64
			for i := range 32 {
				if x := sign; i < n && pos+i <= 31 {
					r |= bit(a, pos+i) << i
				} else {
					r |= x << i
				}
			}
			return r
		},
		"bfi.b32 %d, %a, %b, %c, 7;": func(a, b, c uint64) uint64 {
			r := b
			for i := range 7 {
				if p := i + int(c&255); p < 32 {
					r = r&^(1<<p) | bit(a, i)<<p
				}
			}
			return r
		},
		"popc.b32 %d, %a;": func(a, _, _ uint64) uint64 {
			n := uint64(0)
			for i := range 32 {
				n += bit(a, i)
			}
			return n
		},
		"clz.b32 %d, %a;": func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) },
		"brev.b32 %d, %a;": func(a, _, _ uint64) uint64 {
			var r uint64
			for i := range 32 {
				r |= bit(a, i) << (31 - i)
			}
			return r
		},
		"shl.b32 %d, %a, %b;": func(a, b, _ uint64) uint64 {
			return new(big.Int).And(new(big.Int).Lsh(big.NewInt(int64(a)), uint(min(b, 99))), big.NewInt(math.MaxUint32)).Uint64()
		},
		"lop3.b32 %d, %a, %b, %c, 0xe8;": func(a, b, c uint64) uint64 { return a&b | a&c | b&c },
		"lop3.b32 %d, %a, %b, %c, 0x1b;": func(a, b, c uint64) uint64 {
			var r uint64
			for i := range 32 {
				r |= bit(0x1b, int(bit(a, i)<<2|bit(b, i)<<1|bit(c, i))) << i
			}
			return r
		},
		"prmt.b32 %d, %a, %b, %c;": func(a, b, c uint64) uint64 {
			pool := [8]byte{byte(a), byte(a >> 8), byte(a >> 16), byte(a >> 24), byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}
			var r uint64
			for i := range 4 {
				s := c >> (4 * i) & 15
				x := pool[s&7]
				if s > 7 {
					x = byte(int8(x) >> 7)
				}
				r |= uint64(x) << (8 * i)
			}
			return r
		},
		"shf.l.wrap.b32 %d, %a, %b, %c;":  func(a, b, c uint64) uint64 { return (b<<32 | a) << (c % 32) >> 32 & math.MaxUint32 },
		"shf.r.clamp.b32 %d, %a, %b, %c;": func(a, b, c uint64) uint64 { return (b<<32 | a) >> min(c, 32) & math.MaxUint32 },
		"dp4a.s32.u32 %d, %a, %b, %c;": func(a, b, c uint64) uint64 {
			r := int64(int32(c))
			for i := range 4 {
				r += int64(int8(a>>(8*i))) * int64(uint8(b>>(8*i)))
			}
			return uint64(uint32(r))
		},
		"bfind.s32 %d, %a;": func(a, _, _ uint64) uint64 {
			for i := 30; i >= 0; i-- {
				if bit(a, i) != bit(a, 31) {
					return uint64(i)
				}
			}
			return math.MaxUint32
		},
	} {
		in := triples(edges, 3)
		for i, got := range runLanes(t, inst, "b32", [3]string{"b32", "b32", "b32"}, in) {
			if want := ref(in[i][0], in[i][1], in[i][2]); got != want {
				t.Fatalf("%s of %x is %x, want %x", inst, in[i], got, want)
			}
		}
	}
}

// TestComparisons checks setp for floats and integers in all relations.
func TestComparisons(t *testing.T) {
	f := oracle.Formats["f32"]
	in := triples(f.Edges(), 2)
	for _, rel := range []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
		for i, got := range runLanes(t, "setp."+rel+".f32 %d, %a, %b;", "pred", [3]string{"f32", "f32", "f32"}, in) {
			_, _, na := f.Class(in[i][0])
			_, _, nb := f.Class(in[i][1])
			x, y := float64(math.Float32frombits(uint32(in[i][0]))), float64(math.Float32frombits(uint32(in[i][1])))
			holds := map[string]bool{"eq": x == y, "ne": x < y || x > y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "num": !na && !nb}[strings.TrimSuffix(rel, "u")]
			if rel == "nan" {
				holds = na || nb
			} else if len(rel) == 3 && rel != "num" {
				holds = holds || na || nb
			}
			if (got == 1) != holds {
				t.Fatalf("setp.%s of %x is %d", rel, in[i], got)
			}
		}
	}
}

// TestApproximations bounds the error of the approximate instructions by what the manual states.
func TestApproximations(t *testing.T) {
	var in [][3]uint64
	for i := range 1000 {
		in = append(in, [3]uint64{uint64(math.Float32bits(float32(i-500) * 0.01737))})
	}
	for inst, c := range map[string]struct {
		ref func(float64) float64
		rel float64
		abs float64
	}{
		"ex2.approx.f32":   {math.Exp2, 0x1p-22, 0},
		"lg2.approx.f32":   {math.Log2, 0x1p-22, 0x1p-22},
		"rcp.approx.f32":   {func(x float64) float64 { return 1 / x }, 0x1p-23, 0},
		"rsqrt.approx.f32": {func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-22, 0},
		"sqrt.approx.f32":  {math.Sqrt, 0x1p-22, 0},
		"sin.approx.f32":   {math.Sin, 0, 0x1p-20},
		"cos.approx.f32":   {math.Cos, 0, 0x1p-20},
		"tanh.approx.f32":  {math.Tanh, 0x1p-11, 0},
	} {
		for i, got := range runLanes(t, inst+" %d, %a;", "f32", [3]string{"f32", "f32", "f32"}, in) {
			x, g := float64(math.Float32frombits(uint32(in[i][0]))), float64(math.Float32frombits(uint32(got)))
			w := c.ref(x)
			if w != w && g != g || g == w {
				continue
			}
			if !(math.Abs(g-w) <= c.abs+c.rel*math.Abs(w)) {
				t.Fatalf("%s of %v is %v, want %v", inst, x, g, w)
			}
		}
	}
}
