package ledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// module makes a probe's PTX of the body of its kernel. The body finds in %in and %out the addresses of the buffers, in
// %id the thread's number in its block, and in %mine the address of the thread's 8 bytes of output.
func module(regs, body string) string {
	return ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry probe(.param .u64 in, .param .u64 out)\n{\n" +
		"\t.reg .b64 %in, %out, %mine, %at;\n\t.reg .b32 %id;\n\t.reg .pred %p, %q;\n\t" + regs + "\n" +
		"\tld.param.u64 %in, [in];\n\tld.param.u64 %out, [out];\n\tcvta.to.global.u64 %in, %in;\n\tcvta.to.global.u64 %out, %out;\n" +
		"\tmov.u32 %id, %tid.x;\n\tmul.wide.u32 %at, %id, 8;\n\tadd.s64 %mine, %out, %at;\n" + body + "\n\tret;\n}\n"
}

// operands is what one thread gets: a, b and c.
type operands [3]uint64

// lanes probes an instruction "%d, %a, …": each thread runs it on operands of its own. Types are those of registers.
func lanes(id, assumes, inst, dst, src string, in []operands) *Probe {
	width := func(t string) string { return strings.TrimLeft(t, "fbsu") }
	var body strings.Builder
	fmt.Fprintf(&body, "\tmul.wide.u32 %%at, %%id, 24;\n\tadd.s64 %%at, %%in, %%at;\n")
	for i, r := range []string{"a", "b", "c"} {
		fmt.Fprintf(&body, "\tld.global.b%s %%%s, [%%at+%d];\n", width(src), r, 8*i)
	}
	fmt.Fprintf(&body, "\t%s\n\tst.global.b%s [%%mine], %%d;", inst, width(dst))
	var data []byte
	for _, v := range in {
		for _, x := range v {
			data = binary.LittleEndian.AppendUint64(data, x)
		}
	}
	regs := fmt.Sprintf(".reg .%s %%d; .reg .%s %%a, %%b, %%c;", dst, src)
	return &Probe{ID: id, Assumes: assumes, PTX: module(regs, body.String()), Blocks: 1, Threads: len(in), In: data, Out: 8 * len(in)}
}

// kernel probes a body of its own. out is the number of words of output.
func kernel(id, assumes, regs, body string, threads int, in []byte, out int) *Probe {
	return &Probe{ID: id, Assumes: assumes, PTX: module(regs, "\t"+body), Blocks: 1, Threads: threads, In: in, Out: 4 * out}
}

func singles(v []uint64) (out []operands) {
	for _, x := range v {
		out = append(out, operands{x})
	}
	return out
}

func pairs(v []uint64) (out []operands) {
	for _, x := range v {
		for _, y := range v {
			out = append(out, operands{x, y})
		}
	}
	return out
}

func triples(v []uint64) (out []operands) {
	for i, x := range v {
		for j, y := range v {
			out = append(out, operands{x, y, v[(i+2*j+1)%len(v)]})
		}
	}
	return out
}

// Edges of the formats: zeros, the least and the greatest subnormal, one, the greatest number, infinities, quiet and
// signalling NaN with payloads.
var (
	edges32 = []uint64{0, 1 << 31, 1, 1<<31 | 1, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0x7f800000, 0xff800000,
		0x7fc00000, 0x7fc12345, 0xffc00001, 0x7f812345, 0xffa00000}
	edges64 = []uint64{0, 1 << 63, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x7ff8000012345678, 0xfff8000000000001, 0x7ff0000000012345}
	edges16  = []uint64{0, 1 << 15, 1, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7e55, 0xfe01, 0x7d23}
	edgesB16 = []uint64{0, 1 << 15, 1, 0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x7fd5, 0xffc1, 0x7fa3}
)

// packedEdges puts each edge beside another.
func packedEdges(v []uint64) (out []uint64) {
	for i, x := range v {
		out = append(out, x|v[(i+5)%len(v)]<<16)
	}
	return out
}

// f32s are bits of floats.
func f32s(v ...float32) (out []uint64) {
	for _, x := range v {
		out = append(out, uint64(math.Float32bits(x)))
	}
	return out
}

// words are bytes of 32-bit words.
func words(v ...uint32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, x)
	}
	return out
}
