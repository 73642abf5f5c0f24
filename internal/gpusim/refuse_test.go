package gpusim

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestLoadRefusesForms: what is not simulated is an error of Load with the instruction and its line, never of a launch.
func TestLoadRefusesForms(t *testing.T) {
	const regs = ".reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .pred %x;"
	for _, body := range []string{
		"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2,%r3}, {%f0,%f1,%f2,%f3}, %r4, 0;",
		"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, {%r0,%r1}, {%r2,%r3}, {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7};",
		"mbarrier.arrive.expect_tx.shared.b64 %rd0, [%lane], 16;",
		"wgmma.fence.sync.aligned;",
		"wgmma.commit_group.sync.aligned;",
		"wgmma.wait_group.sync.aligned 0;",
		"setmaxnreg.inc.sync.aligned.u32 64;",
		"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%lane], {%lane};",
		"tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0}];",
		"tld4.r.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd0, {%f0,%f1}];",
		"txq.width.b32 %r0, [%rd0];",
		"suld.b.1d.b32.trap {%r0}, [%rd0, {%r1}];",
		"sust.b.1d.b32.trap [%rd0, {%r1}], {%r0};",
		"suq.width.b32 %r0, [%rd0];",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0], 16, [%r1];",
		"cp.async.bulk.commit_group;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r0], 16;",
		"barrier.cluster.arrive;",
		"mapa.shared::cluster.u32 %r0, %r1, 0;",
		"getctarank.shared::cluster.u32 %r0, %r1;",
		"griddepcontrol.wait;",
		"multimem.ld_reduce.global.add.f32 %f0, [%rd0];",
		"cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;",
		"cvt.rs.f16x2.f32 %r0, %f0, %f1, %r1;",
		"add.u16x2 %r0, %r1, %r2;",
		"vadd.s32.s32.s32 %r0, %r1, %r2;",
		"vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;",
		"call (%r0), %rd0, (%r1), proto;",
		"istypep.texref %x, %rd0;",
		"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd0], [%r0], 128;",
		"redux.sync.min.f32 %f0, %f1, -1;",
		"fma.rn.f32x2 %rd0, %rd1, %rd2, %rd3;",
		"min.f32 %f0, %f1, %f2, %f3;",
		"ld.global.b128 %rd0, [%rd1];",
		"ld.global.v8.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd0];",
		"atom.global.add.v2.f32 {%f0,%f1}, [%rd0], {%f2,%f3};",
		"atom.global.cas.b128 %rd0, [%rd1], %rd2, %rd3;",
		"mov.u32 %r0, %clusterid.x;",
		"mov.u32 %r0, %warpspeed;",
		"frobnicate.u32 %r0, %r1;",
		"add.frob.u32 %r0, %r1, %r2;",
		"tcgen05.fence::before_thread_sync;",
		"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0], [%r1];",
	} {
		m, err := ptx.Parse(wrap(regs, "mov.u32 %r1, 1;\n"+body))
		if err == nil {
			_, err = NewDevice(NewCard("Hopper", 1<<30, 4, [2]int{9, 0}), false).Load(m)
		}
		if err == nil {
			t.Errorf("%s is taken", body)
			continue
		}
		op, _, _ := strings.Cut(body, ".")
		op, _, _ = strings.Cut(op, " ")
		if msg := err.Error(); !strings.Contains(msg, "line 11:") && !strings.Contains(msg, "ptx:11:") || !strings.Contains(msg, op) && !strings.Contains(msg, "expected") && !strings.Contains(msg, "proto") {
			t.Errorf("%s: %v", body, err)
		}
	}
	for name, c := range map[string]struct{ src, says string }{
		"sparse": {"\n.visible .entry k()\n{\n.reg .b32 %r<9>; .reg .f32 %f<4>;\n" +
			"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2,%r3}, {%f0,%f1,%f2,%f3}, %r4, 0;\nret;\n}\n", "zeros written out"},
		"pointer":   {"\n.func f()\n{\nret;\n}\n.visible .entry k()\n{\n.reg .b64 %rd; mov.u64 %rd, f;\nret;\n}\n", "address of f, a function"},
		"table":     {"\n.func f()\n{\nret;\n}\n.global .u64 t[1] = {f};\n.visible .entry k()\n{\nret;\n}\n", "address of f, a function"},
		"indirect":  {"\n.visible .entry k()\n{\n.reg .b64 %rd; mov.u64 %rd, 0;\nproto: .callprototype _ ();\ncall %rd, (), proto;\nret;\n}\n", "switch over what may be called"},
		"recursion": {"\n.func f(.param .u32 n);\n.func f(.param .u32 n)\n{\n.reg .b32 %r; .param .b32 p;\nld.param.u32 %r, [n]; st.param.b32 [p], %r; call f, (p);\nret;\n}\n.visible .entry k()\n{\n.reg .b32 %r; .param .b32 p; mov.u32 %r, 1; st.param.b32 [p], %r; call f, (p);\nret;\n}\n", "function f calls itself; a loop"},
		"extern":    {"\n.extern .func g();\n.visible .entry k()\n{\ncall g;\nret;\n}\n", "function g has no body in this file"},
		"texture":   {"\n.global .texref tex;\n.visible .entry k()\n{\nret;\n}\n", ""},
		"sampler":   {"\n.global .samplerref s;\n.visible .entry k()\n{\nret;\n}\n", ""},
	} {
		m, err := ptx.Parse(".version 7.4\n.target sm_80\n.address_size 64\n" + c.src)
		if err == nil {
			_, err = NewDevice(A100(), false).Load(m)
		}
		if err == nil || !strings.ContainsAny(err.Error(), "456789") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
