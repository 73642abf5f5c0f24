package arith

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// The operations that kernels spend their time in, as loops over whole warps. Lanes that are not active are computed as
// well and dropped. Each does what the lane function of its form does; a test compares the two.

// Loops over the lanes of a warp: from registers a, b and c to d, or to a mask of the lanes for which a relation holds.
type (
	Loop32 func(d, a, b, c *simt.Vec32)
	Loop64 func(d, a, b, c *simt.Vec64)
	widen  func(d *simt.Vec64, a, b *simt.Vec32, c *simt.Vec64)
	test32 func(a, b *simt.Vec32) uint32
	test64 func(a, b *simt.Vec64) uint32
)

// Canon32 is the bits of f, of a NaN those that hardware gives.
func Canon32(f float32) uint32 {
	if f != f {
		return 0x7fffffff
	}
	return math.Float32bits(f)
}

// FromBits is the float32 with these bits.
func FromBits(b uint32) float32 { return math.Float32frombits(b) }

// fmaFloats is a·b+c rounded once. The product is exact in float64; the sum there is rounded, which matters only when the
// result falls on the middle between two float32 or below their normal range: then the exact way is taken.
func fmaFloats(d, a, b, c *simt.Vec32) {
	for i := range d {
		s := float64(FromBits(a[i]))*float64(FromBits(b[i])) + float64(FromBits(c[i]))
		u := math.Float64bits(s)
		if u&(1<<29-1) == 1<<28 || u&(1<<63-1)-1 < (1023-126)<<52-1 || s != s {
			d[i] = uint32(F32.fma(float64(FromBits(a[i])), float64(FromBits(b[i])), float64(FromBits(c[i])), RN))
			continue
		}
		d[i] = math.Float32bits(float32(s))
	}
}

func flush32(b uint32) uint32 {
	if b&0x7f800000 == 0 {
		return b & 0x80000000
	}
	return b
}

// Loops32 is by instruction, where all registers have 32 bits.
var Loops32 = map[string]Loop32{}

// Loops64 is by instruction, where all registers have 64 bits.
var Loops64 = map[string]Loop64{
	"add.s64": func(d, a, b, _ *simt.Vec64) {
		for i := 0; i < simt.WarpSize; i += 4 { // addresses: the most frequent of all
			x, y, z := (*[4]uint64)(a[i:]), (*[4]uint64)(b[i:]), (*[4]uint64)(d[i:])
			z[0], z[1], z[2], z[3] = x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		}
	},
	"sub.s64": func(d, a, b, _ *simt.Vec64) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"and.b64": func(d, a, b, _ *simt.Vec64) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or.b64": func(d, a, b, _ *simt.Vec64) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"mul.lo.s64": func(d, a, b, _ *simt.Vec64) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
}

func init() {
	Loops64["add.u64"], Loops64["sub.u64"], Loops64["mul.lo.u64"] = Loops64["add.s64"], Loops64["sub.s64"], Loops64["mul.lo.s64"]
	for _, name := range []string{"add", "sub", "mul.lo", "mad.lo"} {
		Loops32[name+".u32"] = integer32[name]
		Loops32[name+".s32"] = integer32[name]
	}
	for _, m := range []map[string]Loop32{logic32, float32s} {
		for name, f := range m {
			Loops32[name] = f
		}
	}
}

var integer32 = map[string]Loop32{
	"add": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] + b[i]
		}
	},
	"sub": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"mul.lo": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
	"mad.lo": func(d, a, b, c *simt.Vec32) {
		for i := range d {
			d[i] = a[i]*b[i] + c[i]
		}
	},
}

var logic32 = map[string]Loop32{
	"and.b32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or.b32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"xor.b32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	},
	"shl.b32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] << b[i]
		}
	},
	"shr.u32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] >> b[i]
		}
	},
	"shr.s32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = uint32(int32(a[i]) >> b[i])
		}
	},
	"min.s32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = uint32(min(int32(a[i]), int32(b[i])))
		}
	},
	"max.s32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = uint32(max(int32(a[i]), int32(b[i])))
		}
	},
}

var float32s = map[string]Loop32{
	"add.f32": addFloats, "add.rn.f32": addFloats, "sub.f32": subFloats, "sub.rn.f32": subFloats, "mul.f32": mulFloats, "mul.rn.f32": mulFloats,
	"fma.rn.f32": fmaFloats,
	"fma.rn.ftz.f32": func(d, a, b, c *simt.Vec32) {
		var x, y, z simt.Vec32
		for i := range d {
			x[i], y[i], z[i] = flush32(a[i]), flush32(b[i]), flush32(c[i])
		}
		fmaFloats(d, &x, &y, &z)
		for i := range d {
			d[i] = flush32(d[i])
		}
	},
	"neg.f32": func(d, a, _, _ *simt.Vec32) {
		for i := range d {
			d[i] = a[i] ^ 0x80000000
		}
	},
	"div.rn.f32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = Canon32(FromBits(a[i]) / FromBits(b[i]))
		}
	},
	"sqrt.rn.f32": func(d, a, _, _ *simt.Vec32) {
		for i := range d {
			d[i] = Canon32(float32(math.Sqrt(float64(FromBits(a[i])))))
		}
	},
	"ex2.approx.f32": func(d, a, _, _ *simt.Vec32) {
		for i := range d {
			d[i] = Canon32(float32(Exp2(float64(FromBits(a[i])))))
		}
	},
	"cvt.rn.bf16x2.f32": func(d, a, b, _ *simt.Vec32) {
		for i := range d {
			d[i] = roundBF16(a[i])<<16 | roundBF16(b[i])
		}
	},
	"cvt.rn.f32.s32": func(d, a, _, _ *simt.Vec32) {
		for i := range d {
			d[i] = math.Float32bits(float32(int32(a[i])))
		}
	},
	"cvt.rn.f32.u32": func(d, a, _, _ *simt.Vec32) {
		for i := range d {
			d[i] = math.Float32bits(float32(a[i]))
		}
	},
}

// roundBF16 is the nearest bfloat16 of a float32.
func roundBF16(b uint32) uint32 {
	if b&0x7fffffff > 0x7f800000 {
		return 0x7fff
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

func addFloats(d, a, b, _ *simt.Vec32) {
	for i := range d {
		d[i] = Canon32(FromBits(a[i]) + FromBits(b[i]))
	}
}

func subFloats(d, a, b, _ *simt.Vec32) {
	for i := range d {
		d[i] = Canon32(FromBits(a[i]) - FromBits(b[i]))
	}
}

func mulFloats(d, a, b, _ *simt.Vec32) {
	for i := range d {
		d[i] = Canon32(FromBits(a[i]) * FromBits(b[i]))
	}
}

// LoopsWiden is by instruction, where a and b have 32 bits, and c and d 64.
var LoopsWiden = map[string]widen{
	"mul.wide.s32": func(d *simt.Vec64, a, b *simt.Vec32, _ *simt.Vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
		}
	},
	"mul.wide.u32": func(d *simt.Vec64, a, b *simt.Vec32, _ *simt.Vec64) {
		for i := range d {
			d[i] = uint64(a[i]) * uint64(b[i])
		}
	},
	"mad.wide.s32": func(d *simt.Vec64, a, b *simt.Vec32, c *simt.Vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
		}
	},
	"mad.wide.u32": func(d *simt.Vec64, a, b *simt.Vec32, c *simt.Vec64) {
		for i := range d {
			d[i] = uint64(a[i])*uint64(b[i]) + c[i]
		}
	},
	"cvt.s64.s32": func(d *simt.Vec64, a, _ *simt.Vec32, _ *simt.Vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])))
		}
	},
	"cvt.u64.u32": func(d *simt.Vec64, a, _ *simt.Vec32, _ *simt.Vec64) {
		for i := range d {
			d[i] = uint64(a[i])
		}
	},
}

func lessInts(a, b *simt.Vec32) (r uint32) {
	for i := range a {
		if int32(a[i]) < int32(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

func lessUints(a, b *simt.Vec32) (r uint32) {
	for i := range a {
		if a[i] < b[i] {
			r |= 1 << i
		}
	}
	return r
}

func equalWords(a, b *simt.Vec32) (r uint32) {
	for i := range a {
		if a[i] == b[i] {
			r |= 1 << i
		}
	}
	return r
}

func lessFloats(a, b *simt.Vec32) (r uint32) {
	for i := range a {
		if FromBits(a[i]) < FromBits(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

func lessLongs(a, b *simt.Vec64) (r uint32) {
	for i := range a {
		if int64(a[i]) < int64(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

// Tests32 is the comparisons of registers of 32 bits.
var Tests32 = map[string]test32{
	"setp.lt.s32": lessInts, "setp.gt.s32": func(a, b *simt.Vec32) uint32 { return lessInts(b, a) },
	"setp.ge.s32": func(a, b *simt.Vec32) uint32 { return ^lessInts(a, b) }, "setp.le.s32": func(a, b *simt.Vec32) uint32 { return ^lessInts(b, a) },
	"setp.lt.u32": lessUints, "setp.gt.u32": func(a, b *simt.Vec32) uint32 { return lessUints(b, a) },
	"setp.ge.u32": func(a, b *simt.Vec32) uint32 { return ^lessUints(a, b) }, "setp.le.u32": func(a, b *simt.Vec32) uint32 { return ^lessUints(b, a) },
	"setp.eq.s32": equalWords, "setp.eq.u32": equalWords, "setp.eq.b32": equalWords,
	"setp.ne.s32": func(a, b *simt.Vec32) uint32 { return ^equalWords(a, b) }, "setp.ne.u32": func(a, b *simt.Vec32) uint32 { return ^equalWords(a, b) },
	"setp.ne.b32": func(a, b *simt.Vec32) uint32 { return ^equalWords(a, b) },
	"setp.lt.f32": lessFloats, "setp.gt.f32": func(a, b *simt.Vec32) uint32 { return lessFloats(b, a) },
	"setp.geu.f32": func(a, b *simt.Vec32) uint32 { return ^lessFloats(a, b) }, "setp.leu.f32": func(a, b *simt.Vec32) uint32 { return ^lessFloats(b, a) },
}

// Tests64 is the comparisons of registers of 64 bits.
var Tests64 = map[string]test64{
	"setp.lt.s64": lessLongs, "setp.gt.s64": func(a, b *simt.Vec64) uint32 { return lessLongs(b, a) },
	"setp.ge.s64": func(a, b *simt.Vec64) uint32 { return ^lessLongs(a, b) }, "setp.le.s64": func(a, b *simt.Vec64) uint32 { return ^lessLongs(b, a) },
}
