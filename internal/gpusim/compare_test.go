package gpusim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

var (
	floatRelations = []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}
	intRelations   = []string{"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}
)

// TestFloatRelations goes through setp and set of all float types, packed ones too, with their results.
func TestFloatRelations(t *testing.T) {
	for _, typ := range []string{"f16", "bf16", "f32", "f64"} {
		f := oracle.Formats[typ]
		in := triples(f.Edges(), 2)
		for _, rel := range floatRelations {
			for _, ftz := range []string{"", ".ftz"} {
				if ftz != "" && (typ == "bf16" || typ == "f64") {
					continue
				}
				holds := func(v [3]uint64) bool {
					if ftz != "" {
						v[0], v[1] = f.Flush(v[0]), f.Flush(v[1])
					}
					h, _ := f.Holds(rel, v[0], v[1])
					return h
				}
				yes := func(bits uint64) func(v [3]uint64) uint64 {
					return func(v [3]uint64) uint64 {
						if holds(v) {
							return bits
						}
						return 0
					}
				}
				compareLanes(t, fmt.Sprintf("setp.%s%s.%s %%d, %%a, %%b;", rel, ftz, typ), "pred", f.Reg, in, yes(1))
				compareLanes(t, fmt.Sprintf("set.%s%s.u32.%s %%d, %%a, %%b;", rel, ftz, typ), "b32", f.Reg, in, yes(math.MaxUint32))
				if f.Width() > 16 {
					compareLanes(t, fmt.Sprintf("set.%s%s.f32.%s %%d, %%a, %%b;", rel, ftz, typ), "f32", f.Reg, in, yes(0x3f800000))
					continue
				}
				compareLanes(t, fmt.Sprintf("set.%s%s.%s.%s %%d, %%a, %%b;", rel, ftz, typ, typ), "b16", "b16", in, yes(f.One()))
				two := packTriples(in)
				compareLanes(t, fmt.Sprintf("set.%s%s.%sx2.%sx2 %%d, %%a, %%b;", rel, ftz, typ, typ), "b32", "b32", two, halvesOf(yes(f.One())))
				compareLanes(t, fmt.Sprintf("set.%s%s.u32.%sx2 %%d, %%a, %%b;", rel, ftz, typ), "b32", "b32", two, halvesOf(yes(0xffff)))
				compareLanes(t, fmt.Sprintf("{.reg .pred p, q; .reg .b32 x; setp.%s%s.%sx2 p|q, %%a, %%b; selp.b32 %%d, 1, 0, p; selp.b32 x, 0x10000, 0, q; or.b32 %%d, %%d, x;}", rel, ftz, typ),
					"b32", "b32", two, halvesOf(yes(1)))
			}
		}
	}
}

// TestIntegerRelations goes through setp of all integer types, and what a third predicate and a second result do.
func TestIntegerRelations(t *testing.T) {
	edges := []uint64{0, 1, 2, 0x7f, 0x7fff, 0x8000, 0xffff, 1<<31 - 1, 1 << 31, math.MaxUint32, 1<<63 - 1, 1 << 63, math.MaxUint64}
	in := triples(edges, 2)
	for _, typ := range []string{"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"} {
		var n int
		if _, err := fmt.Sscan(typ[1:], &n); err != nil {
			t.Fatal(err)
		}
		for _, rel := range intRelations {
			if typ[0] == 's' && strings.Contains("lo ls hi hs", rel) || typ[0] == 'b' && rel != "eq" && rel != "ne" {
				continue
			}
			reg := fmt.Sprintf("b%d", n)
			ref := func(v [3]uint64) uint64 {
				h, _ := oracle.Relates(rel, wordOf(v[0], n, typ[0] == 's').Cmp(wordOf(v[1], n, typ[0] == 's')))
				return simt.Bit(h)
			}
			compareLanes(t, "setp."+rel+"."+typ+" %d, %a, %b;", "pred", reg, in, ref)
			if typ[0] != 'b' {
				compareLanes(t, "set."+rel+".s32."+typ+" %d, %a, %b;", "b32", reg, in, func(v [3]uint64) uint64 { return ref(v) * math.MaxUint32 })
			}
		}
	}
	for name, f := range map[string]func(a, b bool) bool{"and": func(a, b bool) bool { return a && b }, "or": func(a, b bool) bool { return a || b }, "xor": func(a, b bool) bool { return a != b }} {
		for _, not := range []string{"", "!"} {
			inst := "{.reg .pred p, q, c; .reg .b32 x; setp.ne.u32 c, %c, 0; setp.lt." + name + ".s32 p|q, %a, %b, " + not + "c; selp.b32 %d, 1, 0, p; selp.b32 x, 2, 0, q; or.b32 %d, %d, x;}"
			compareLanes(t, inst, "b32", "b32", triples(edges[:10], 3), func(v [3]uint64) uint64 {
				less, c := int32(v[0]) < int32(v[1]), (uint32(v[2]) != 0) != (not == "!")
				return simt.Bit(f(less, c)) | simt.Bit(f(!less, c))<<1
			})
		}
	}
}

func TestSelections(t *testing.T) {
	edges := oracle.Formats["f32"].Edges()
	in := triples(edges, 3)
	compareLanes(t, "slct.b32.s32 %d, %a, %b, %c;", "b32", "b32", in, func(v [3]uint64) uint64 {
		if int32(v[2]) >= 0 {
			return v[0]
		}
		return v[1]
	})
	compareLanes(t, "slct.ftz.b32.f32 %d, %a, %b, %c;", "f32", "f32", in, func(v [3]uint64) uint64 {
		if x := math.Float32frombits(uint32(oracle.Formats["f32"].Flush(v[2]))); x >= 0 {
			return v[0]
		}
		return v[1]
	})
	for _, typ := range []string{"f32", "f64"} {
		f := oracle.Formats[typ]
		sign := uint64(1) << (f.Width() - 1)
		compareLanes(t, "copysign."+typ+" %d, %a, %b;", f.Reg, f.Reg, triples(f.Edges(), 2), func(v [3]uint64) uint64 { return v[0]&sign | v[1]&^sign })
		for name, ref := range map[string]func(neg, inf, nan, zero, sub bool) bool{
			"finite":     func(_, inf, nan, _, _ bool) bool { return !inf && !nan },
			"infinite":   func(_, inf, _, _, _ bool) bool { return inf },
			"number":     func(_, _, nan, _, _ bool) bool { return !nan },
			"notanumber": func(_, _, nan, _, _ bool) bool { return nan },
			"normal":     func(_, inf, nan, zero, sub bool) bool { return !inf && !nan && !zero && !sub },
			"subnormal":  func(_, _, _, _, sub bool) bool { return sub },
		} {
			compareLanes(t, "testp."+name+"."+typ+" %d, %a;", "pred", f.Reg, triples(f.Edges(), 1), func(v [3]uint64) uint64 {
				neg, inf, nan := f.Class(v[0])
				rest := v[0] &^ sign
				return simt.Bit(ref(neg, inf, nan, rest == 0, rest != 0 && rest < 1<<f.Mant))
			})
		}
		for _, name := range []string{"neg", "abs"} {
			compareLanes(t, name+"."+typ+" %d, %a;", f.Reg, f.Reg, triples(f.Edges(), 1), func(v [3]uint64) uint64 {
				if name == "neg" {
					return v[0] ^ sign
				}
				return v[0] &^ sign
			})
		}
	}
}
