package gpusim

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
)

// halvesOf applies a function to both halves.
func halvesOf(f func(v [3]uint64) uint64) func(v [3]uint64) uint64 {
	return func(v [3]uint64) uint64 {
		lo := f([3]uint64{v[0] & 0xffff, v[1] & 0xffff, v[2] & 0xffff})
		return lo | f([3]uint64{v[0] >> 16 & 0xffff, v[1] >> 16 & 0xffff, v[2] >> 16 & 0xffff})<<16
	}
}

// packTriples puts other operands of the list into the upper halves.
func packTriples(in [][3]uint64) [][3]uint64 {
	out := make([][3]uint64, len(in))
	for i := range in {
		j := (i*31 + 7) % len(in)
		for k := range 3 {
			out[i][k] = in[i][k]&0xffff | in[j][k]<<16&0xffff0000
		}
	}
	return out
}

// compareLanes runs an instruction and compares each result with a reference.
func compareLanes(t *testing.T, inst, dst, src string, in [][3]uint64, ref func(v [3]uint64) uint64) {
	t.Helper()
	for i, got := range runLanes(t, inst, dst, [3]string{src, src, src}, in) {
		if want := ref(in[i]); got != want {
			t.Fatalf("%s of %#x is %#x, want %#x", inst, in[i], got, want)
		}
	}
}

// TestFloatModifiers goes through every combination of rounding, .ftz, .sat and .relu of the arithmetic.
func TestFloatModifiers(t *testing.T) {
	type op struct {
		n   int
		ref func(f oracle.Format, v [3]uint64, mode string) uint64
	}
	ops := map[string]op{
		"add":  {2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], f.One(), v[1], m) }},
		"sub":  {2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], f.One(), f.Negate(v[1]), m) }},
		"mul":  {2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Mul(v[0], v[1], m) }},
		"fma":  {3, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Fma(v[0], v[1], v[2], m) }},
		"div":  {2, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Div(v[0], v[1], m) }},
		"rcp":  {1, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Div(f.One(), v[0], m) }},
		"sqrt": {1, func(f oracle.Format, v [3]uint64, m string) uint64 { return f.Sqrt(v[0], m) }},
	}
	args := []string{"", "%a", "%a, %b", "%a, %b, %c"}
	for name, o := range ops {
		short := name == "add" || name == "sub" || name == "mul" || name == "fma"
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			for _, mods := range []string{".ftz", ".sat", ".ftz.sat"} {
				if !short && mods != ".ftz" {
					continue
				}
				f := oracle.Formats["f32"]
				inst := fmt.Sprintf("%s.%s%s.f32 %%d, %s;", name, mode, mods, args[o.n])
				compareLanes(t, inst, "f32", "f32", triples(f.Edges(), o.n), f.Modified(mods, func(v [3]uint64) uint64 { return o.ref(f, v, mode) }))
			}
		}
		for _, mods := range []string{"", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"} {
			for _, typ := range []string{"f16", "bf16"} {
				f := oracle.Formats[typ]
				relu := strings.Contains(mods, "relu")
				if !short || relu && name != "fma" || typ == "bf16" && (name != "fma" || mods != "" && mods != ".relu") {
					continue
				}
				ref := f.Modified(mods, func(v [3]uint64) uint64 { return o.ref(f, v, "rn") })
				in := triples(f.Edges(), o.n)
				compareLanes(t, fmt.Sprintf("%s.rn%s.%s %%d, %s;", name, mods, typ, args[o.n]), "b16", "b16", in, ref)
				compareLanes(t, fmt.Sprintf("%s.rn%s.%sx2 %%d, %s;", name, mods, typ, args[o.n]), "b32", "b32", packTriples(in), halvesOf(ref))
			}
		}
	}
}

func TestMinMaxModifiers(t *testing.T) {
	for _, typ := range []string{"f32", "f64", "f16", "bf16"} {
		f := oracle.Formats[typ]
		in := triples(f.Edges(), 2)
		for _, mods := range []string{"", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN.xorsign.abs"} {
			if typ == "f64" && mods != "" || typ == "bf16" && strings.Contains(mods, "ftz") {
				continue
			}
			for _, name := range []string{"min", "max"} {
				ref := f.Modified(mods, func(v [3]uint64) uint64 {
					sign := uint64(1) << (f.Width() - 1)
					if !strings.Contains(mods, "xorsign") {
						return f.Least(v[0], v[1], name == "max", strings.Contains(mods, "NaN"))
					}
					r := f.Least(v[0]&^sign, v[1]&^sign, name == "max", strings.Contains(mods, "NaN"))
					if _, _, nan := f.Class(r); nan {
						return r
					}
					return r | (v[0]^v[1])&sign
				})
				compareLanes(t, name+mods+"."+typ+" %d, %a, %b;", f.Reg, f.Reg, in, ref)
				if f.Width() == 16 {
					compareLanes(t, name+mods+"."+typ+"x2 %d, %a, %b;", "b32", "b32", packTriples(in), halvesOf(ref))
				}
			}
		}
	}
}

// convert is a float in another format.
func convert(from, to oracle.Format, b uint64, mode string) uint64 {
	neg, inf, nan := from.Class(b)
	switch v, ok := from.Value(b); {
	case ok && v.Sign() != 0:
		return to.Round(v, mode)
	case nan:
		return to.Nan
	case inf:
		return to.Signed(uint64(2*to.Bias+1)<<to.Mant, neg)
	}
	return to.Signed(0, neg)
}

func TestFloatConversionModifiers(t *testing.T) {
	for _, typ := range []string{"f16", "f32", "f64"} {
		f := oracle.Formats[typ]
		in := triples(f.Fractions(), 1)
		for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
			for _, mods := range []string{"", ".ftz", ".sat", ".ftz.sat"} {
				if typ != "f32" && strings.Contains(mods, "ftz") {
					continue
				}
				compareLanes(t, fmt.Sprintf("cvt.%s%s.%s.%s %%d, %%a;", mode, mods, typ, typ), f.Reg, f.Reg, in,
					f.Modified(mods, func(v [3]uint64) uint64 { return f.Integral(v[0], mode) }))
			}
		}
	}
	h, b, f, d := oracle.Formats["f16"], oracle.Formats["bf16"], oracle.Formats["f32"], oracle.Formats["f64"]
	all := triples(f.Edges(), 1)
	for _, c := range []struct {
		mods     string
		from, to oracle.Format
	}{{"rn.sat.f16.f32", f, h}, {"rn.ftz.f16.f32", f, h}, {"rn.relu.f16.f32", f, h}, {"rz.relu.f16.f32", f, h}, {"rn.relu.bf16.f32", f, b}, {"rz.bf16.f32", f, b},
		{"f32.f16", h, f}, {"ftz.f32.f16", h, f}, {"sat.f32.f16", h, f}, {"f64.f16", h, d}, {"rz.sat.f32.f64", d, f}, {"rp.ftz.f32.f64", d, f}, {"sat.f64.f32", f, d}} {
		mode := "rn"
		if c.mods[0] == 'r' {
			mode = c.mods[:2]
		}
		compareLanes(t, "cvt."+c.mods+" %d, %a;", c.to.Reg, c.from.Reg, triples(c.from.Edges(), 1), func(v [3]uint64) uint64 {
			if strings.Contains(c.mods, "ftz") && c.from.Reg == "f32" {
				v[0] = c.from.Flush(v[0])
			}
			r := convert(c.from, c.to, v[0], mode)
			if strings.Contains(c.mods, "ftz") && c.to.Reg == "f32" {
				r = c.to.Flush(r)
			}
			return c.to.Modified(strings.ReplaceAll(c.mods, "ftz", ""), func([3]uint64) uint64 { return r })([3]uint64{})
		})
	}
	for _, mods := range []string{"rn.f16x2", "rz.f16x2", "rn.relu.f16x2", "rn.bf16x2", "rz.bf16x2", "rn.relu.bf16x2"} {
		to := h
		if strings.Contains(mods, "bf16") {
			to = b
		}
		compareLanes(t, "cvt."+mods+".f32 %d, %a, %b;", "b32", "f32", triples(f.Edges(), 2), func(v [3]uint64) uint64 {
			one := func(x uint64) uint64 {
				return to.Modified(mods, func([3]uint64) uint64 { return convert(f, to, x, mods[:2]) })([3]uint64{})
			}
			return one(v[0])<<16 | one(v[1])
		})
	}
	compareLanes(t, "cvt.rna.tf32.f32 %d, %a;", "b32", "f32", append(all, triples([]uint64{0x3f801000, 0x3f800fff, 0xbf801000, 0x1000, 0xfff, 0x7f7ff000}, 1)...), func(v [3]uint64) uint64 {
		if _, inf, nan := f.Class(v[0]); nan {
			return f.Nan
		} else if inf {
			return v[0]
		}
		r := (v[0]&0x7fffffff + 0x1000) &^ 0x1fff // the carry goes into the exponent, as it must
		return r | v[0]&(1<<31)
	})
}

// TestConversionsToIntegers goes through the sources and sizes that TestIntegerConversions leaves out.
func TestConversionsToIntegers(t *testing.T) {
	for _, from := range []string{"f16", "f32", "f64"} {
		f := oracle.Formats[from]
		in := triples(f.Fractions(), 1)
		for _, n := range []int{8, 16, 32, 64} {
			for _, kind := range []string{"s", "u"} {
				for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
					ftz := ""
					if from == "f32" && n == 32 {
						ftz = ".ftz"
					}
					compareLanes(t, fmt.Sprintf("cvt.%s%s.%s%d.%s %%d, %%a;", mode, ftz, kind, n, from), fmt.Sprintf("b%d", max(n, 16)), f.Reg, in, func(v [3]uint64) uint64 {
						if ftz != "" {
							v[0] = f.Flush(v[0])
						}
						r := floatToInt(f, v[0], mode, n, kind == "s")
						if n == 8 && kind == "s" {
							r = uint64(uint16(int8(r)))
						}
						return r
					})
				}
			}
		}
	}
	for _, to := range []string{"f16", "bf16"} {
		f := oracle.Formats[to]
		for _, from := range []string{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"} {
			if to == "bf16" {
				continue // sm_90
			}
			var n int
			if _, err := fmt.Sscan(from[1:], &n); err != nil {
				t.Fatal(err)
			}
			in := triples([]uint64{0, 1, 2, 127, 128, 255, 2047, 2049, 2051, 4097, 32767, 32768, 65503, 65504, 65519, 65520, 65535, 1 << 20, 1<<31 - 1, 1 << 31, math.MaxUint32, 1 << 63, math.MaxUint64}, 1)
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				compareLanes(t, fmt.Sprintf("cvt.%s.%s.%s %%d, %%a;", mode, to, from), f.Reg, fmt.Sprintf("b%d", max(n, 16)), in, func(v [3]uint64) uint64 {
					if x := wordOf(v[0], n, from[0] == 's'); x.Sign() != 0 {
						return f.Round(new(big.Rat).SetInt(x), mode)
					}
					return 0
				})
			}
		}
	}
}
