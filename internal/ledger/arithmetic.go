package ledger

import "math"

func floats() []*Probe {
	p32, p64, p16, pb16 := pairs(edges32), pairs(edges64), pairs(packedEdges(edges16)), pairs(packedEdges(edgesB16))
	return []*Probe{
		lanes("add-f32", "add.f32 gives the NaN 0x7fffffff whatever the operands' payloads and signs", "add.rn.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("mul-f32", "mul.f32 gives the NaN 0x7fffffff", "mul.rn.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("fma-f32", "fma.rn.f32 gives the NaN 0x7fffffff", "fma.rn.f32 %d, %a, %b, %c;", "f32", "f32", triples(edges32)),
		lanes("add-ftz-f32", ".ftz takes subnormals and gives results below the normal range as zeros of their sign", "add.rn.ftz.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("fma-sat-f32", ".sat turns NaN into +0 and gives +0 for -0", "fma.rn.sat.f32 %d, %a, %b, %c;", "f32", "f32", triples(edges32)),
		lanes("div-rn-f32", "div.rn.f32 gives the NaN 0x7fffffff", "div.rn.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("sqrt-rn-f32", "sqrt.rn.f32 of a negative number is the NaN 0x7fffffff", "sqrt.rn.f32 %d, %a;", "f32", "f32", singles(edges32)),
		lanes("min-f32", "min.f32 takes the number beside a NaN, the NaN 0x7fffffff for two, and -0 below +0", "min.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("max-f32", "max.f32 takes the number beside a NaN, the NaN 0x7fffffff for two, and +0 above -0", "max.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("min-nan-f32", "min.NaN.f32 gives 0x7fffffff as soon as one operand is a NaN", "min.NaN.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("min-ftz-f32", "min.ftz.f32 flushes its result as well", "min.ftz.f32 %d, %a, %b;", "f32", "f32", p32),
		lanes("neg-f32", "neg.f32 turns the sign bit of a NaN and keeps its payload", "neg.f32 %d, %a;", "f32", "f32", singles(edges32)),
		lanes("abs-f32", "abs.f32 clears the sign bit of a NaN and keeps its payload", "abs.f32 %d, %a;", "f32", "f32", singles(edges32)),
		lanes("add-f64", "add.f64 gives the NaN 0x7fffffffffffffff", "add.rn.f64 %d, %a, %b;", "f64", "f64", p64),
		lanes("mul-f64", "mul.f64 gives the NaN 0x7fffffffffffffff", "mul.rn.f64 %d, %a, %b;", "f64", "f64", p64),
		lanes("fma-f64", "fma.rn.f64 gives the NaN 0x7fffffffffffffff", "fma.rn.f64 %d, %a, %b, %c;", "f64", "f64", triples(edges64)),
		lanes("min-f64", "min.f64 takes the number beside a NaN, and -0 below +0", "min.f64 %d, %a, %b;", "f64", "f64", p64),
		lanes("add-f16x2", "add.f16x2 gives the NaN 0x7fff and keeps subnormals", "add.rn.f16x2 %d, %a, %b;", "b32", "b32", p16),
		lanes("fma-f16x2", "fma.rn.f16x2 rounds once and gives the NaN 0x7fff", "fma.rn.f16x2 %d, %a, %b, %c;", "b32", "b32", triples(packedEdges(edges16))),
		lanes("fma-relu-f16x2", ".relu gives +0 for negative results and -0, and the NaN 0x7fff for NaN", "fma.rn.relu.f16x2 %d, %a, %b, %c;", "b32", "b32", triples(packedEdges(edges16))),
		lanes("fma-bf16x2", "fma.rn.bf16x2 rounds once, keeps subnormals and gives the NaN 0x7fff", "fma.rn.bf16x2 %d, %a, %b, %c;", "b32", "b32", triples(packedEdges(edgesB16))),
		lanes("max-f16x2", "max.f16x2 takes the number beside a NaN, the NaN 0x7fff for two, and +0 above -0", "max.f16x2 %d, %a, %b;", "b32", "b32", p16),
		lanes("min-bf16x2", "min.bf16x2 takes the number beside a NaN, the NaN 0x7fff for two, and -0 below +0", "min.bf16x2 %d, %a, %b;", "b32", "b32", pb16),
		lanes("neg-bf16x2", "neg.bf16x2 turns the sign bits of NaN too", "neg.bf16x2 %d, %a;", "b32", "b32", singles(packedEdges(edgesB16))),
		lanes("set-f16x2", "set.lt.f16x2.f16x2 gives 1.0 or +0 in each half", "set.lt.f16x2.f16x2 %d, %a, %b;", "b32", "b32", p16),
		lanes("testp-subnormal", "testp.subnormal.f32 holds for subnormals only, not for zero", "testp.subnormal.f32 %p, %a; selp.f32 %d, 0f3F800000, 0f00000000, %p;", "f32", "f32", singles(edges32)),
	}
}

var floatsForInts = f32s(0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, 255.5, 256, -129, 32767.5, 65536, 2147483520, 2147483648, -2147483648, -2147483904,
	4294967040, 4294967296, 9.223372e18, 1.8446744e19, -1e19, 3e38)

func conversions() []*Probe {
	in := singles(append(append([]uint64{}, edges32...), floatsForInts...))
	return []*Probe{
		lanes("cvt-s32-f32", "cvt.rni.s32.f32 clamps what is out of range and gives 0 for NaN", "cvt.rni.s32.f32 %d, %a;", "b32", "f32", in),
		lanes("cvt-u32-f32", "cvt.rzi.u32.f32 clamps what is out of range, negative numbers to 0, and gives 0 for NaN", "cvt.rzi.u32.f32 %d, %a;", "b32", "f32", in),
		lanes("cvt-s64-f32", "cvt.rzi.s64.f32 clamps, and gives 0x8000000000000000 for NaN", "cvt.rzi.s64.f32 %d, %a;", "b64", "f32", in),
		lanes("cvt-u64-f32", "cvt.rzi.u64.f32 clamps, and gives 0x8000000000000000 for NaN", "cvt.rzi.u64.f32 %d, %a;", "b64", "f32", in),
		lanes("cvt-s16-f32", "cvt.rzi.s16.f32 clamps to 16 bits and gives 0 for NaN", "cvt.rzi.s16.f32 %d, %a;", "b16", "f32", in),
		lanes("cvt-u8-f32", "cvt.rzi.u8.f32 clamps to 8 bits and gives 0 for NaN", "cvt.rzi.u8.f32 %d, %a;", "b32", "f32", in),
		lanes("cvt-s32-f64", "cvt.rzi.s32.f64 clamps, and gives 0x80000000 for NaN", "cvt.rzi.s32.f64 %d, %a;", "b32", "f64", singles(edges64)),
		lanes("cvt-f16-f32", "cvt.rn.f16.f32 gives the NaN 0x7fff, and infinity beyond 65504 and a half step", "cvt.rn.f16.f32 %d, %a;", "b16", "f32", in),
		lanes("cvt-f32-f16", "cvt.f32.f16 gives the NaN 0x7fffffff whatever the payload", "cvt.f32.f16 %d, %a;", "f32", "b16", singles(edges16)),
		lanes("cvt-bf16-f32", "cvt.rn.bf16.f32 gives the NaN 0x7fff and keeps subnormals", "cvt.rn.bf16.f32 %d, %a;", "b16", "f32", in),
		lanes("cvt-relu-bf16x2", "cvt.rn.relu.bf16x2.f32 puts its first operand into the upper half, and gives the NaN 0x7fff for NaN", "cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "b32", "f32", pairs(edges32)),
		lanes("cvt-tf32", "cvt.rna.tf32.f32 rounds ties away from zero, clears the lower 13 bits, keeps subnormals, and gives the NaN 0x7fffffff", "cvt.rna.tf32.f32 %d, %a;", "b32", "f32",
			append(in, singles([]uint64{0x3f801000, 0x3f800fff, 0x3f803000, 0x7f7ff000, 0x7f7fefff, 0xbf801000, 0x00001000, 0x00000fff})...)),
		lanes("cvt-f32-f64", "cvt.rn.f32.f64 gives the NaN 0x7fffffff", "cvt.rn.f32.f64 %d, %a;", "f32", "f64", singles(edges64)),
		lanes("cvt-f64-f32", "cvt.f64.f32 gives the NaN 0x7fffffffffffffff", "cvt.f64.f32 %d, %a;", "f64", "f32", singles(edges32)),
		lanes("cvt-rni-f32", "cvt.rni.f32.f32 keeps the sign of a zero and gives the NaN 0x7fffffff", "cvt.rni.f32.f32 %d, %a;", "f32", "f32", in),
		lanes("cvt-sat-f32", "cvt.sat.f32.f32 gives +0 for NaN and -0", "cvt.sat.f32.f32 %d, %a;", "f32", "f32", in),
	}
}

func integers() []*Probe {
	v := []uint64{0, 1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 0xdeadbeef, 0x12345678}
	p := pairs(v)
	t := triples(v)
	return []*Probe{
		lanes("div-s32", "division by zero gives all ones, and -2^31 by -1 gives -2^31", "div.s32 %d, %a, %b;", "b32", "b32", p),
		lanes("div-u32", "division by zero gives all ones", "div.u32 %d, %a, %b;", "b32", "b32", p),
		lanes("rem-s32", "the rest of a division by zero is the dividend", "rem.s32 %d, %a, %b;", "b32", "b32", p),
		lanes("rem-u32", "the rest of a division by zero is the dividend", "rem.u32 %d, %a, %b;", "b32", "b32", p),
		lanes("div-s64", "division of 64 bits by zero gives all ones", "div.s64 %d, %a, %b;", "b64", "b64", p),
		lanes("shl-b32", "shl.b32 by 32 and more gives 0", "shl.b32 %d, %a, %b;", "b32", "b32", p),
		lanes("shr-s32", "shr.s32 by 32 and more gives the sign", "shr.s32 %d, %a, %b;", "b32", "b32", p),
		lanes("shl-b16", "shl.b16 by 16 and more gives 0; the amount has 32 bits", "cvt.u16.u32 %h, %a; shl.b16 %h, %h, %b; cvt.u32.u16 %d, %h;", "b32", "b32", p).with(".reg .b16 %h;"),
		lanes("shl-b64", "shl.b64 by 64 and more gives 0", "cvt.u32.u64 %w, %b; shl.b64 %d, %a, %w;", "b64", "b64", p).with(".reg .b32 %w;"),
		lanes("shf-l-clamp", "shf.l.clamp.b32 by 32 and more shifts by 32", "shf.l.clamp.b32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("shf-r-wrap", "shf.r.wrap.b32 takes the amount modulo 32", "shf.r.wrap.b32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("bfe-s32", "bfe.s32 takes 8 bits of position and length, repeats the sign beyond bit 31, and gives 0 for length 0", "bfe.s32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("bfe-u32", "bfe.u32 takes 8 bits of position and length and gives zeros beyond bit 31", "bfe.u32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("bfi-b32", "bfi.b32 takes 8 bits of position and length, and cuts what lies beyond bit 31", "bfi.b32 %d, %a, 0x55aa55aa, %b, %c;", "b32", "b32", t),
		lanes("bfind-u32", "bfind.u32 of 0 is all ones", "bfind.u32 %d, %a;", "b32", "b32", singles(v)),
		lanes("bfind-s32", "bfind.s32 of 0 and of -1 is all ones", "bfind.s32 %d, %a;", "b32", "b32", singles(v)),
		lanes("bfind-shiftamt", "bfind.shiftamt.u32 of 0 is all ones", "bfind.shiftamt.u32 %d, %a;", "b32", "b32", singles(v)),
		lanes("clz-b32", "clz.b32 of 0 is 32", "clz.b32 %d, %a;", "b32", "b32", singles(v)),
		lanes("fns-b32", "fns.b32 gives all ones where there is no such bit, and for a base beyond 31", "fns.b32 %d, %a, %b, 1;", "b32", "b32", p),
		lanes("fns-back", "fns.b32 with a negative offset looks downwards from the base", "fns.b32 %d, %a, %b, -2;", "b32", "b32", p),
		lanes("prmt-b32", "prmt.b32 repeats the sign of a byte where bit 3 of its selector is set", "prmt.b32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("prmt-f4e", "prmt.b32.f4e takes two bits of the selector", "prmt.b32.f4e %d, %a, %b, %c;", "b32", "b32", t),
		lanes("prmt-rc16", "prmt.b32.rc16 takes two bits of the selector", "prmt.b32.rc16 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("dp4a-s32", "dp4a.s32.s32 wraps around", "dp4a.s32.s32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("mul24-lo", "mul24.lo.u32 ignores the upper 8 bits of its operands", "mul24.lo.u32 %d, %a, %b;", "b32", "b32", p),
		lanes("mul24-hi", "mul24.hi.s32 gives bits 16 to 47 of the product", "mul24.hi.s32 %d, %a, %b;", "b32", "b32", p),
		lanes("sad-s32", "sad.s32 takes the difference without overflow", "sad.s32 %d, %a, %b, %c;", "b32", "b32", t),
		lanes("sub-cc-addc", "sub.cc sets the carry where nothing is borrowed, and addc adds it", "sub.cc.u32 %d, %a, %b; addc.u32 %d, %d, 0x100;", "b32", "b32", p),
		lanes("add-cc-subc", "subc adds the complement and the carry of add.cc", "add.cc.u32 %d, %a, %b; subc.u32 %d, %a, %b;", "b32", "b32", p),
		lanes("mad-cc-subc", "the carry of mad.lo.cc is that of its sum, not of its product", "mad.lo.cc.u32 %d, %a, %b, %c; subc.u32 %d, %a, %c;", "b32", "b32", t),
		lanes("sub-cc-addc-s64", "sub.cc.s64 sets the carry as the unsigned difference does", "sub.cc.s64 %d, %a, %b; addc.s64 %d, %d, 0x100;", "b64", "b64", p),
		lanes("add-sat-s32", "add.sat.s32 clamps", "add.sat.s32 %d, %a, %b;", "b32", "b32", p),
		lanes("abs-s32", "abs.s32 of -2^31 is -2^31", "abs.s32 %d, %a;", "b32", "b32", singles(v)),
	}
}

// with declares more registers.
func (p *Probe) with(regs string) *Probe {
	p.PTX = replaceOnce(p.PTX, "\t.reg .pred", "\t"+regs+"\n\t.reg .pred")
	return p
}

// spread is floats over the range in which functions do something, and edges.
func spread() []operands {
	v := append([]uint64{}, edges32...)
	for i := range 112 {
		x := math.Ldexp(1+float64(i*37%112)/113, i%24-12)
		if i%2 == 1 {
			x = -x
		}
		v = append(v, uint64(math.Float32bits(float32(x))))
	}
	return singles(v)
}

func approximations() []*Probe {
	in := spread()
	bits := "is the exact value rounded to nearest"
	var two []operands
	for i, v := range in {
		two = append(two, operands{v[0], in[(i*7+3)%len(in)][0]})
	}
	h := singles(packedEdges(append(append([]uint64{}, edges16...), 0x3800, 0x3e00, 0x4100, 0x4555, 0xc248, 0x2e66, 0xb4cd, 0x4900)))
	hb := singles(packedEdges(append(append([]uint64{}, edgesB16...), 0x3f00, 0x3fc0, 0x4020, 0x40a0, 0xc049, 0x3dcc, 0xbecd, 0x4120)))
	var d []operands
	for _, v := range in {
		d = append(d, operands{math.Float64bits(float64(math.Float32frombits(uint32(v[0]))) * 1.00000001)})
	}
	return []*Probe{
		lanes("ex2-approx", "ex2.approx.f32 "+bits, "ex2.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("ex2-approx-ftz", "ex2.approx.ftz.f32 "+bits+", below the normal range 0", "ex2.approx.ftz.f32 %d, %a;", "f32", "f32", in),
		lanes("lg2-approx", "lg2.approx.f32 "+bits, "lg2.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("lg2-approx-ftz", "lg2.approx.ftz.f32 takes subnormals as zero", "lg2.approx.ftz.f32 %d, %a;", "f32", "f32", in),
		lanes("sin-approx", "sin.approx.f32 "+bits+", NaN for infinities", "sin.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("cos-approx", "cos.approx.f32 "+bits+", NaN for infinities", "cos.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("rsqrt-approx", "rsqrt.approx.f32 "+bits, "rsqrt.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("rcp-approx", "rcp.approx.f32 "+bits, "rcp.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("rcp-approx-ftz", "rcp.approx.ftz.f32 "+bits+", flushed", "rcp.approx.ftz.f32 %d, %a;", "f32", "f32", in),
		lanes("sqrt-approx", "sqrt.approx.f32 "+bits, "sqrt.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("tanh-approx", "tanh.approx.f32 "+bits, "tanh.approx.f32 %d, %a;", "f32", "f32", in),
		lanes("div-approx", "div.approx.f32 "+bits+", and 0 for divisors above 2^126", "div.approx.f32 %d, %a, %b;", "f32", "f32", two),
		lanes("div-full", "div.full.f32 "+bits, "div.full.f32 %d, %a, %b;", "f32", "f32", two),
		lanes("div-full-ftz", "div.full.ftz.f32 "+bits+", flushed", "div.full.ftz.f32 %d, %a, %b;", "f32", "f32", two),
		lanes("ex2-f16x2", "ex2.approx.f16x2 "+bits, "ex2.approx.f16x2 %d, %a;", "b32", "b32", h),
		lanes("tanh-f16x2", "tanh.approx.f16x2 "+bits, "tanh.approx.f16x2 %d, %a;", "b32", "b32", h),
		lanes("rcp-f64", "rcp.approx.ftz.f64 "+bits+" and cut to the upper 32 bits", "rcp.approx.ftz.f64 %d, %a;", "f64", "f64", d),
		lanes("rsqrt-f64", "rsqrt.approx.ftz.f64 "+bits+" and cut to the upper 32 bits", "rsqrt.approx.ftz.f64 %d, %a;", "f64", "f64", d),
		lanes("tanh-f16", "tanh.approx.f16 "+bits, "tanh.approx.f16 %d, %a;", "b16", "b16", h),
		lanes("rcp-rn-subnormal", "rcp.rn.f32 of 2^-127 is the exact subnormal's reciprocal", "rcp.rn.f32 %d, %a;", "f32", "f32", in),
		lanes("ex2-bf16x2", "ex2.approx.ftz.bf16x2 "+bits, "ex2.approx.ftz.bf16x2 %d, %a;", "b32", "b32", hb).target("7.8", "90"),
	}
}

// target asks for a later version and architecture.
func (p *Probe) target(version, sm string) *Probe {
	p.PTX = replaceOnce(replaceOnce(p.PTX, ".version 7.4", ".version "+version), ".target sm_80", ".target sm_"+sm)
	return p
}
