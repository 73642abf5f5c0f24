package ptx

import (
	"strings"
	"testing"
)

// TestPipe compares with what ptxas makes of the instructions.
func TestPipe(t *testing.T) {
	for _, c := range []struct {
		text string
		pipe Pipe
		n    uint32
	}{
		{"fma.rn.f32 %f, %f, %f, %f", PipeFloat32, 1}, {"add.s64 %l, %l, %l", PipeInteger, 2}, {"mad.lo.s32 %r, %r, %r, %r", PipeInteger, 1},
		{"mul.wide.s32 %l, %r, %r", PipeInteger, 1}, {"mul.lo.s64 %l, %l, %l", PipeInteger, 4}, {"mov.u32 %r, %tid.x", PipeNone, 0},
		{"cvta.to.global.u64 %l, %l", PipeNone, 0}, {"ld.param.u64 %l, [p]", PipeNone, 0}, {"ld.global.v4.f32 {%f,%f,%f,%f}, [%l]", PipeMemory, 1},
		{"ex2.approx.ftz.f32 %f, %f", PipeSpecial, 1}, {"sqrt.approx.f32 %f, %f", PipeSpecial, 1}, {"sqrt.rn.f32 %f, %f", PipeFloat32, 8},
		{"div.rn.f32 %f, %f, %f", PipeFloat32, 10}, {"rem.s32 %r, %r, %r", PipeInteger, 22}, {"cvt.s64.s32 %l, %r", PipeInteger, 1},
		{"cvt.rn.f32.s32 %f, %r", PipeConvert, 1}, {"cvt.rn.bf16x2.f32 %r, %f, %f", PipeInteger, 1}, {"cvt.f64.f32 %d, %f", PipeFloat64, 1},
		{"setp.lt.f32 %p, %f, %f", PipeInteger, 1}, {"fma.rn.f64 %d, %d, %d, %d", PipeFloat64, 1}, {"neg.f32 %f, %f", PipeNone, 0},
		{"shfl.sync.bfly.b32 %r, %r, 1, 31, -1", PipeShuffle, 1}, {"bar.sync 0", PipeControl, 1}, {"popc.b32 %r, %r", PipeSpecial, 1},
		{"cp.async.wait_group 1", PipeControl, 1}, {"cp.async.cg.shared.global [%l], [%l], 16", PipeMemory, 1},
		{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f,%f,%f,%f}, {%r,%r,%r,%r}, {%r,%r}, {%f,%f,%f,%f}", PipeTensor, 1},
	} {
		in := instOf(t, c.text)
		if p, n := in.Pipe(); p != c.pipe || n != c.n {
			t.Errorf("%s: %v, %d; want %v, %d", c.text, p, n, c.pipe, c.n)
		}
		if ops, of := in.Tensor(); (ops != 0) != (c.pipe == PipeTensor) || ops != 0 && (ops != 4096 || of != BF16) {
			t.Errorf("%s: %d operations of %v", c.text, ops, of)
		}
	}
}

// instOf is the one instruction of a kernel.
func instOf(t *testing.T, text string) *Inst {
	t.Helper()
	m, err := Parse(strings.Join([]string{".version 7.4", ".target sm_80", ".address_size 64", ".visible .entry k(.param .u64 p)", "{",
		".reg .pred %p; .reg .b32 %r; .reg .b64 %l; .reg .f32 %f; .reg .f64 %d;", text + ";", "}"}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	for f := range m.Funcs() {
		for in := range f.Insts() {
			return in
		}
	}
	t.Fatal("no instruction")
	return nil
}
