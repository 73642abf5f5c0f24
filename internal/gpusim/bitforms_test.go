package gpusim

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

var bitEdges = []uint64{0, 1, 2, 5, 8, 31, 32, 33, 40, 63, 64, 70, 0xff, 0x1234, 0x5410, 0x80000000, 0xffffffff, 0xdeadbeef, 0x7fffffff, 0x00ff00ff,
	0xfedcba98, 1 << 63, math.MaxUint64, 0x0123456789abcdef}

func lowBits(n int) uint64 { return math.MaxUint64 >> (64 - n) }

// TestShifts compares shifts of all widths, and the four funnel shifts, with big integers.
func TestShifts(t *testing.T) {
	for _, n := range []int{16, 32, 64} {
		reg := fmt.Sprintf("b%d", n)
		amount := func(v [3]uint64) uint { return uint(min(v[1]&lowBits(min(n, 32)), 99)) }
		body := "{.reg .b32 x; cvt.u32.u%d x, %%b; %s %%d, %%a, x;}"
		if n == 32 {
			body = "{.reg .b%d x; %s %%d, %%a, %%b;}"
		}
		in := triples(bitEdges, 2)
		compareLanes(t, fmt.Sprintf(body, n, "shl."+reg), reg, reg, in, func(v [3]uint64) uint64 {
			r := new(big.Int).Lsh(wordOf(v[0], n, false), amount(v))
			return r.And(r, new(big.Int).SetUint64(lowBits(n))).Uint64()
		})
		for _, kind := range []string{"u", "s", "b"} {
			compareLanes(t, fmt.Sprintf(body, n, fmt.Sprintf("shr.%s%d", kind, n)), reg, reg, in, func(v [3]uint64) uint64 {
				r := new(big.Int).Rsh(wordOf(v[0], n, kind == "s"), amount(v))
				return r.And(r, new(big.Int).SetUint64(lowBits(n))).Uint64()
			})
		}
	}
	for _, dir := range []string{"l", "r"} {
		for _, mode := range []string{"clamp", "wrap"} {
			compareLanes(t, "shf."+dir+"."+mode+".b32 %d, %a, %b, %c;", "b32", "b32", triples(bitEdges, 3), func(v [3]uint64) uint64 {
				c := v[2] & lowBits(32)
				if c = min(c, 32); mode == "wrap" {
					c = v[2] & 31
				}
				both := v[1]<<32 | v[0]&lowBits(32)
				if dir == "l" {
					hi, lo := new(big.Int), new(big.Int).SetUint64(both)
					hi.Rsh(lo.Lsh(lo, uint(c)), 32)
					return hi.Uint64() & lowBits(32)
				}
				return new(big.Int).Rsh(new(big.Int).SetUint64(both), uint(c)).Uint64() & lowBits(32)
			})
		}
	}
}

// TestLogic goes through the bit operations of all widths, every table of lop3, and lop3 with a predicate.
func TestLogic(t *testing.T) {
	for _, n := range []int{16, 32, 64} {
		reg := fmt.Sprintf("b%d", n)
		for name, f := range map[string]func(a, b uint64) uint64{"and": func(a, b uint64) uint64 { return a & b }, "or": func(a, b uint64) uint64 { return a | b },
			"xor": func(a, b uint64) uint64 { return a ^ b }} {
			compareLanes(t, name+"."+reg+" %d, %a, %b;", reg, reg, triples(bitEdges, 2), func(v [3]uint64) uint64 { return f(v[0], v[1]) & lowBits(n) })
		}
		compareLanes(t, "not."+reg+" %d, %a;", reg, reg, triples(bitEdges, 1), func(v [3]uint64) uint64 { return ^v[0] & lowBits(n) })
		compareLanes(t, "cnot."+reg+" %d, %a;", reg, reg, triples(bitEdges, 1), func(v [3]uint64) uint64 { return simt.Bit(v[0]&lowBits(n) == 0) })
	}
	lop := func(table int, v [3]uint64) (r uint64) {
		for i := range 32 {
			r |= uint64(table) >> (v[0]>>i&1<<2 | v[1]>>i&1<<1 | v[2]>>i&1) & 1 << i
		}
		return r
	}
	few := [][3]uint64{{0xff00ff00, 0xf0f0f0f0, 0xcccccccc}, {0, math.MaxUint32, 0x12345678}, {0x0f0f3355, 0x55aa55aa, 0xdeadbeef}, {0, 0, 0}}
	for table := range 256 {
		compareLanes(t, fmt.Sprintf("lop3.b32 %%d, %%a, %%b, %%c, %d;", table), "b32", "b32", few, func(v [3]uint64) uint64 { return lop(table, v) })
		if table%16 != 0 {
			continue
		}
		for _, name := range []string{"or", "and"} {
			compareLanes(t, fmt.Sprintf("lop3.%s.b32 %%d|%%p, %%a, %%b, %%c, %d, %%q; @%%p xor.b32 %%d, %%d, 0x5a5a5a5a;", name, table), "b32", "b32", few, func(v [3]uint64) uint64 {
				if r := lop(table, v); r == 0 || name == "and" { // %q holds nowhere
					return r
				}
				return lop(table, v) ^ 0x5a5a5a5a
			})
		}
	}
}

// TestFields compares bit fields, permutations and counts of both widths with loops over bits.
func TestFields(t *testing.T) {
	in := triples(bitEdges, 3)
	for _, n := range []int{32, 64} {
		reg := fmt.Sprintf("b%d", n)
		narrow := "{.reg .b32 x, y; cvt.u32.u%d x, %%b; cvt.u32.u%d y, %%c; %s %%d, %%a, x, y;}"
		if n == 32 {
			narrow = "{.reg .b%d x; .reg .b%d y; %s %%d, %%a, %%b, %%c;}"
		}
		for _, kind := range []string{"u", "s"} {
			compareLanes(t, fmt.Sprintf(narrow, n, n, fmt.Sprintf("bfe.%s%d", kind, n)), reg, reg, in, func(v [3]uint64) (r uint64) {
				pos, length := int(v[1]&255), int(v[2]&255)
				if length == 0 {
					return 0
				}
				var fill uint64
				if kind == "s" {
					fill = v[0] >> min(pos+length-1, n-1) & 1
				}
				for i := range n {
					b := fill
					if i < length && pos+i < n {
						b = v[0] >> (pos + i) & 1
					}
					r |= b << i
				}
				return r
			})
		}
		for inst, ref := range map[string]func(v uint64) uint64{
			"popc.b%d %%d, %%a;": func(v uint64) uint64 { return uint64(bits.OnesCount64(v)) },
			"clz.b%d %%d, %%a;":  func(v uint64) uint64 { return uint64(bits.LeadingZeros64(v) - 64 + n) },
			"bfind.u%d %%d, %%a;": func(v uint64) uint64 {
				return uint64(bits.Len64(v)-1) & lowBits(32)
			},
			"bfind.shiftamt.u%d %%d, %%a;": func(v uint64) uint64 {
				if v == 0 {
					return lowBits(32)
				}
				return uint64(n - bits.Len64(v))
			},
			"bfind.s%d %%d, %%a;": func(v uint64) uint64 {
				if v>>(n-1) == 1 {
					v = ^v & lowBits(n)
				}
				return uint64(bits.Len64(v)-1) & lowBits(32)
			},
		} {
			compareLanes(t, fmt.Sprintf(inst, n), "b32", reg, in, func(v [3]uint64) uint64 { return ref(v[0] & lowBits(n)) })
		}
		compareLanes(t, fmt.Sprintf("brev.b%d %%d, %%a;", n), reg, reg, in, func(v [3]uint64) uint64 { return bits.Reverse64(v[0]) >> (64 - n) })
		compareLanes(t, fmt.Sprintf("{.reg .b32 x; cvt.u32.u%d x, %%c; bfi.b%d %%d, %%a, %%b, x, 9;}", n, n), reg, reg, in, func(v [3]uint64) uint64 {
			r := v[1]
			for i := range 9 {
				if p := i + int(v[2]&255); p < n {
					r = r&^(1<<p) | v[0]>>i&1<<p
				}
			}
			return r & lowBits(n)
		})
	}
	pool := func(v [3]uint64, i uint64) uint64 { return (v[1]<<32 | v[0]&lowBits(32)) >> (8 * (i & 7)) & 255 }
	for mode, pick := range map[string]func(c uint64) [4]uint64{
		"f4e":  func(c uint64) [4]uint64 { return [4]uint64{c, c + 1, c + 2, c + 3} },
		"b4e":  func(c uint64) [4]uint64 { return [4]uint64{c, c - 1, c - 2, c - 3} },
		"rc8":  func(c uint64) [4]uint64 { return [4]uint64{c, c, c, c} },
		"ecl":  func(c uint64) [4]uint64 { return [4]uint64{c, max(c, 1), max(c, 2), 3} },
		"ecr":  func(c uint64) [4]uint64 { return [4]uint64{0, min(c, 1), min(c, 2), c} },
		"rc16": func(c uint64) [4]uint64 { h := c & 1 * 2; return [4]uint64{h, h + 1, h, h + 1} },
	} {
		compareLanes(t, "prmt.b32."+mode+" %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) (r uint64) {
			for i, s := range pick(v[2] & 3) {
				r |= pool(v, s) << (8 * i)
			}
			return r
		})
	}
}

// TestSmallProducts compares products of parts of registers and carry chains with wider integers.
func TestSmallProducts(t *testing.T) {
	in := triples(bitEdges, 3)
	byteOf := func(v uint64, i int, signed bool) int64 {
		if signed {
			return int64(int8(v >> (8 * i)))
		}
		return int64(uint8(v >> (8 * i)))
	}
	word := func(v uint64, i int, signed bool) int64 {
		if signed {
			return int64(int16(v >> (16 * i)))
		}
		return int64(uint16(v >> (16 * i)))
	}
	for _, a := range []string{"u32", "s32"} {
		for _, b := range []string{"u32", "s32"} {
			compareLanes(t, "dp4a."+a+"."+b+" %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) uint64 {
				r := int64(v[2])
				for i := range 4 {
					r += byteOf(v[0], i, a == "s32") * byteOf(v[1], i, b == "s32")
				}
				return uint64(r) & lowBits(32)
			})
			for half, name := range []string{"lo", "hi"} {
				compareLanes(t, "dp2a."+name+"."+a+"."+b+" %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) uint64 {
					r := int64(v[2])
					for i := range 2 {
						r += word(v[0], i, a == "s32") * byteOf(v[1], 2*half+i, b == "s32")
					}
					return uint64(r) & lowBits(32)
				})
			}
		}
		part := func(v uint64) int64 {
			if a == "s32" {
				return int64(int32(v<<8) >> 8)
			}
			return int64(v & 0xffffff)
		}
		for shift, name := range map[int]string{0: "lo", 16: "hi"} {
			compareLanes(t, "mul24."+name+"."+a+" %d, %a, %b;", "b32", "b32", in, func(v [3]uint64) uint64 { return uint64(part(v[0])*part(v[1])>>shift) & lowBits(32) })
			compareLanes(t, "mad24."+name+"."+a+" %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) uint64 {
				return (uint64(part(v[0])*part(v[1])>>shift) + v[2]) & lowBits(32)
			})
		}
	}
	wide := func(v uint64) *big.Int { return wordOf(v, 32, true) }
	clamp := func(v *big.Int) uint64 {
		lo, hi := bounds(32, true)
		return uint64(clampBig(v, lo, hi).Int64()) & lowBits(32)
	}
	compareLanes(t, "add.sat.s32 %d, %a, %b;", "b32", "b32", in, func(v [3]uint64) uint64 { return clamp(new(big.Int).Add(wide(v[0]), wide(v[1]))) })
	compareLanes(t, "sub.sat.s32 %d, %a, %b;", "b32", "b32", in, func(v [3]uint64) uint64 { return clamp(new(big.Int).Sub(wide(v[0]), wide(v[1]))) })
	compareLanes(t, "mad.hi.sat.s32 %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) uint64 {
		p := new(big.Int).Mul(wide(v[0]), wide(v[1]))
		return clamp(p.Add(p.Rsh(p, 32), wide(v[2])))
	})
	for _, typ := range []string{"u16", "s16", "u32", "s32"} {
		n := 16 * (1 + int(simt.Bit(typ[1] == '3')))
		signed := typ[0] == 's'
		compareLanes(t, "mul.wide."+typ+" %d, %a, %b;", fmt.Sprintf("b%d", 2*n), fmt.Sprintf("b%d", n), in, func(v [3]uint64) uint64 {
			r := new(big.Int).Mul(wordOf(v[0], n, signed), wordOf(v[1], n, signed))
			return r.And(r, new(big.Int).SetUint64(lowBits(2*n))).Uint64()
		})
	}
	// a:b + b:c and the carry beyond, in 32-bit steps.
	compareLanes(t, "{.reg .b32 l, h, x; cvt.u32.u64 x, %a; cvt.u32.u64 l, %b; add.cc.u32 l, x, l; shr.u64 %a, %a, 32; shr.u64 %b, %b, 32; cvt.u32.u64 x, %a; cvt.u32.u64 h, %b; "+
		"addc.cc.u32 h, x, h; addc.u32 x, 0, 0; xor.b32 l, l, x; mov.b64 %d, {l, h};}", "b64", "b64", in, func(v [3]uint64) uint64 {
		s, carry := bits.Add64(v[0], v[1], 0)
		return s ^ carry
	})
	compareLanes(t, "{.reg .b32 l, h, x; cvt.u32.u64 x, %a; cvt.u32.u64 l, %b; sub.cc.u32 l, x, l; shr.u64 %a, %a, 32; shr.u64 %b, %b, 32; cvt.u32.u64 x, %a; cvt.u32.u64 h, %b; "+
		"subc.u32 h, x, h; mov.b64 %d, {l, h};}", "b64", "b64", in, func(v [3]uint64) uint64 { return v[0] - v[1] })
}
