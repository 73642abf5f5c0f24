package gpusim

import (
	"math"
)

// The operations that kernels spend their time in, as loops over whole warps. Lanes that are not active are computed as
// well and dropped. Each does what the lane function of its form does; a test compares the two.

type (
	func32 func(d, a, b, c *vec32)
	func64 func(d, a, b, c *vec64)
	widen  func(d *vec64, a, b *vec32, c *vec64)
	test32 func(a, b *vec32) uint32
	test64 func(a, b *vec64) uint32
)

// alu32 runs f on the whole registers, by way of a copy when some lanes are off.
func alu32(d, a, b, c slot, f func32) op {
	return func(w *warp) {
		if w.mask == full {
			f(&w.r[d.i], &w.r[a.i], &w.r[b.i], &w.r[c.i])
			return
		}
		f(&w.t32, &w.r[a.i], &w.r[b.i], &w.r[c.i])
		blend32(&w.r[d.i], &w.t32, &w.t32, full, w.mask)
	}
}

func alu64(d, a, b, c slot, f func64) op {
	return func(w *warp) {
		if w.mask == full {
			f(&w.q[d.i], &w.q[a.i], &w.q[b.i], &w.q[c.i])
			return
		}
		f(&w.t64, &w.q[a.i], &w.q[b.i], &w.q[c.i])
		blend64(&w.q[d.i], &w.t64, &w.t64, full, w.mask)
	}
}

// fast returns a whole-warp operation for the instruction, or nil.
func (e *emitter) fast(d slot, s [4]slot, n int) op {
	name := e.in.Name()
	all := func(b bankID, s []slot) bool {
		for _, x := range s {
			if x.bank != b || b == bank32 && x.bits != 32 && x.bits != 64 {
				return false
			}
		}
		return true
	}
	if f := fast32[name]; f != nil && d.bank == bank32 && d.bits >= 32 && all(bank32, s[:n]) {
		return alu32(d, s[0], s[1], s[2], f)
	}
	if f := fast64[name]; f != nil && d.bank == bank64 && all(bank64, s[:n]) {
		return alu64(d, s[0], s[1], s[2], f)
	}
	if f := fastWiden[name]; f != nil && d.bank == bank64 && all(bank32, s[:min(n, 2)]) && (n < 3 || s[2].bank == bank64) {
		c := s[2]
		if n < 3 {
			c = d
		}
		return func(w *warp) {
			if w.mask == full {
				f(&w.q[d.i], &w.r[s[0].i], &w.r[s[1].i], &w.q[c.i])
				return
			}
			f(&w.t64, &w.r[s[0].i], &w.r[s[1].i], &w.q[c.i])
			blend64(&w.q[d.i], &w.t64, &w.t64, full, w.mask)
		}
	}
	return nil
}

// fastCompare returns a whole-warp comparison, or nil.
func (e *emitter) fastCompare(a, b slot) func(w *warp) uint32 {
	if len(e.in.Args) != 3 {
		return nil
	}
	name := e.in.Name()
	if f := fastTest32[name]; f != nil && a.bank == bank32 && b.bank == bank32 {
		return func(w *warp) uint32 { return f(&w.r[a.i], &w.r[b.i]) }
	}
	if f := fastTest64[name]; f != nil && a.bank == bank64 && b.bank == bank64 {
		return func(w *warp) uint32 { return f(&w.q[a.i], &w.q[b.i]) }
	}
	return nil
}

func canon32(f float32) uint32 {
	if f != f {
		return 0x7fffffff
	}
	return math.Float32bits(f)
}

func f32(b uint32) float32 { return math.Float32frombits(b) }

// fmaFloats is a·b+c rounded once. The product is exact in float64; the sum there is rounded, which matters only when the
// result falls on the middle between two float32 or below their normal range: then the exact way is taken.
func fmaFloats(d, a, b, c *vec32) {
	for i := range d {
		s := float64(f32(a[i]))*float64(f32(b[i])) + float64(f32(c[i]))
		u := math.Float64bits(s)
		if u&(1<<29-1) == 1<<28 || u&(1<<63-1)-1 < (1023-126)<<52-1 || s != s {
			d[i] = uint32(fmtF32.fma(float64(f32(a[i])), float64(f32(b[i])), float64(f32(c[i])), rn))
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

var fast32 = map[string]func32{}

var fast64 = map[string]func64{
	"add.s64": func(d, a, b, _ *vec64) {
		for i := 0; i < warpSize; i += 4 { // addresses: the most frequent of all
			x, y, z := (*[4]uint64)(a[i:]), (*[4]uint64)(b[i:]), (*[4]uint64)(d[i:])
			z[0], z[1], z[2], z[3] = x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		}
	},
	"sub.s64": func(d, a, b, _ *vec64) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"and.b64": func(d, a, b, _ *vec64) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or.b64": func(d, a, b, _ *vec64) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"mul.lo.s64": func(d, a, b, _ *vec64) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
}

func init() {
	fast64["add.u64"], fast64["sub.u64"], fast64["mul.lo.u64"] = fast64["add.s64"], fast64["sub.s64"], fast64["mul.lo.s64"]
	for _, name := range []string{"add", "sub", "mul.lo", "mad.lo"} {
		fast32[name+".u32"] = integer32[name]
		fast32[name+".s32"] = integer32[name]
	}
	for _, m := range []map[string]func32{logic32, float32s} {
		for name, f := range m {
			fast32[name] = f
		}
	}
}

var integer32 = map[string]func32{
	"add": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] + b[i]
		}
	},
	"sub": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"mul.lo": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
	"mad.lo": func(d, a, b, c *vec32) {
		for i := range d {
			d[i] = a[i]*b[i] + c[i]
		}
	},
}

var logic32 = map[string]func32{
	"and.b32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or.b32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"xor.b32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	},
	"shl.b32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] << b[i]
		}
	},
	"shr.u32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = a[i] >> b[i]
		}
	},
	"shr.s32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = uint32(int32(a[i]) >> b[i])
		}
	},
	"min.s32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = uint32(min(int32(a[i]), int32(b[i])))
		}
	},
	"max.s32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = uint32(max(int32(a[i]), int32(b[i])))
		}
	},
}

var float32s = map[string]func32{
	"add.f32": addFloats, "add.rn.f32": addFloats, "sub.f32": subFloats, "sub.rn.f32": subFloats, "mul.f32": mulFloats, "mul.rn.f32": mulFloats,
	"fma.rn.f32": fmaFloats,
	"fma.rn.ftz.f32": func(d, a, b, c *vec32) {
		var x, y, z vec32
		for i := range d {
			x[i], y[i], z[i] = flush32(a[i]), flush32(b[i]), flush32(c[i])
		}
		fmaFloats(d, &x, &y, &z)
		for i := range d {
			d[i] = flush32(d[i])
		}
	},
	"neg.f32": func(d, a, _, _ *vec32) {
		for i := range d {
			d[i] = a[i] ^ 0x80000000
		}
	},
	"div.rn.f32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = canon32(f32(a[i]) / f32(b[i]))
		}
	},
	"sqrt.rn.f32": func(d, a, _, _ *vec32) {
		for i := range d {
			d[i] = canon32(float32(math.Sqrt(float64(f32(a[i])))))
		}
	},
	"ex2.approx.f32": func(d, a, _, _ *vec32) {
		for i := range d {
			d[i] = canon32(float32(exp2(float64(f32(a[i])))))
		}
	},
	"cvt.rn.bf16x2.f32": func(d, a, b, _ *vec32) {
		for i := range d {
			d[i] = roundBF16(a[i])<<16 | roundBF16(b[i])
		}
	},
	"cvt.rn.f32.s32": func(d, a, _, _ *vec32) {
		for i := range d {
			d[i] = math.Float32bits(float32(int32(a[i])))
		}
	},
	"cvt.rn.f32.u32": func(d, a, _, _ *vec32) {
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

func addFloats(d, a, b, _ *vec32) {
	for i := range d {
		d[i] = canon32(f32(a[i]) + f32(b[i]))
	}
}

func subFloats(d, a, b, _ *vec32) {
	for i := range d {
		d[i] = canon32(f32(a[i]) - f32(b[i]))
	}
}

func mulFloats(d, a, b, _ *vec32) {
	for i := range d {
		d[i] = canon32(f32(a[i]) * f32(b[i]))
	}
}

var fastWiden = map[string]widen{
	"mul.wide.s32": func(d *vec64, a, b *vec32, _ *vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
		}
	},
	"mul.wide.u32": func(d *vec64, a, b *vec32, _ *vec64) {
		for i := range d {
			d[i] = uint64(a[i]) * uint64(b[i])
		}
	},
	"mad.wide.s32": func(d *vec64, a, b *vec32, c *vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
		}
	},
	"mad.wide.u32": func(d *vec64, a, b *vec32, c *vec64) {
		for i := range d {
			d[i] = uint64(a[i])*uint64(b[i]) + c[i]
		}
	},
	"cvt.s64.s32": func(d *vec64, a, _ *vec32, _ *vec64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])))
		}
	},
	"cvt.u64.u32": func(d *vec64, a, _ *vec32, _ *vec64) {
		for i := range d {
			d[i] = uint64(a[i])
		}
	},
}

func lessInts(a, b *vec32) (r uint32) {
	for i := range a {
		if int32(a[i]) < int32(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

func lessUints(a, b *vec32) (r uint32) {
	for i := range a {
		if a[i] < b[i] {
			r |= 1 << i
		}
	}
	return r
}

func equalWords(a, b *vec32) (r uint32) {
	for i := range a {
		if a[i] == b[i] {
			r |= 1 << i
		}
	}
	return r
}

func lessFloats(a, b *vec32) (r uint32) {
	for i := range a {
		if f32(a[i]) < f32(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

func lessLongs(a, b *vec64) (r uint32) {
	for i := range a {
		if int64(a[i]) < int64(b[i]) {
			r |= 1 << i
		}
	}
	return r
}

var fastTest32 = map[string]test32{
	"setp.lt.s32": lessInts, "setp.gt.s32": func(a, b *vec32) uint32 { return lessInts(b, a) },
	"setp.ge.s32": func(a, b *vec32) uint32 { return ^lessInts(a, b) }, "setp.le.s32": func(a, b *vec32) uint32 { return ^lessInts(b, a) },
	"setp.lt.u32": lessUints, "setp.gt.u32": func(a, b *vec32) uint32 { return lessUints(b, a) },
	"setp.ge.u32": func(a, b *vec32) uint32 { return ^lessUints(a, b) }, "setp.le.u32": func(a, b *vec32) uint32 { return ^lessUints(b, a) },
	"setp.eq.s32": equalWords, "setp.eq.u32": equalWords, "setp.eq.b32": equalWords,
	"setp.ne.s32": func(a, b *vec32) uint32 { return ^equalWords(a, b) }, "setp.ne.u32": func(a, b *vec32) uint32 { return ^equalWords(a, b) },
	"setp.ne.b32": func(a, b *vec32) uint32 { return ^equalWords(a, b) },
	"setp.lt.f32": lessFloats, "setp.gt.f32": func(a, b *vec32) uint32 { return lessFloats(b, a) },
	"setp.geu.f32": func(a, b *vec32) uint32 { return ^lessFloats(a, b) }, "setp.leu.f32": func(a, b *vec32) uint32 { return ^lessFloats(b, a) },
}

var fastTest64 = map[string]test64{
	"setp.lt.s64": lessLongs, "setp.gt.s64": func(a, b *vec64) uint32 { return lessLongs(b, a) },
	"setp.ge.s64": func(a, b *vec64) uint32 { return ^lessLongs(a, b) }, "setp.le.s64": func(a, b *vec64) uint32 { return ^lessLongs(b, a) },
}
