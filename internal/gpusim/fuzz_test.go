package gpusim

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// FuzzRun feeds sources to parser, loader and executor: whatever they are, the answer is a report or an error.
func FuzzRun(f *testing.F) {
	src := source(f)
	head := src[:strings.Index(src, ".visible .entry")]
	for i, k := range strings.Split(src, ".visible .entry ")[1:] {
		f.Add(head+".visible .entry "+k[:strings.LastIndex(k, "}")+1], uint64(i))
	}
	f.Add(wrap(".reg .b32 %x, %y; .shared .b8 s[64];", "ld.shared.u32 %x, [s]; bar.sync 0; brx.idx %x, t; t: .branchtargets A, B; A: B: atom.shared.add.u32 %y, [s], 1;"), uint64(3))
	const version = ".version 7.4\n.target sm_80\n.address_size 64\n"
	f.Add(version+pipelined, uint64(15))
	f.Add(version+stacked, uint64(1))
	f.Add(wrap(".reg .b32 %x<8>, %z<8>;", "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%x0,%x1,%x2,%x3,%x4,%x5,%x6,%x7}, [%in], %lane; "+
		"mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32 {%z0,%z1}, {%x2}, {%x3}, {%z0,%z1};"), uint64(8))
	f.Add(hopperKernel("", initBarrier(1)+"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;\n"+
		"@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], 256, [%bar];\n"+waitFor("W", "%bar", 0)+
		"mapa.shared::cluster.u32 %j, %s, 1; barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %v, [%j];"), uint64(1<<10+15))
	f.Add(hopperHead+".visible .entry k(.param .u64 in)\n{\n.reg .b32 %d<4>; .reg .b64 %x, %m; ld.param.u64 %m, [in]; mov.b64 %x, 0x4000004000010000;\n"+
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0,%d1,%d2,%d3}, %x, %x, 1, 1, 1, 0, 1;\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"+
		"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {%d0,%d1}], [%d2]; cp.async.bulk.wait_group 0; ret;\n}\n", uint64(1<<10+14))
	f.Fuzz(func(t *testing.T, src string, seed uint64) {
		m, err := ptx.Parse(src)
		if err != nil {
			return
		}
		capability := [2]int{8, 0}
		if seed>>10&1 == 1 {
			capability = [2]int{9, 0}
		}
		d := NewDevice(NewCard("small", 1<<22, 2, capability), seed&1 == 1)
		p, err := d.Load(m)
		if err != nil {
			return
		}
		for _, name := range p.Kernels() {
			k := p.Kernel(name)
			params := make([]byte, k.Params)
			if a, err := d.Alloc(4096, "buffer"); err == nil {
				for i := range k.Offsets {
					if k.Sizes[i] == 8 {
						numbers.Put(params[k.Offsets[i]:], 8, a)
					} else if k.Sizes[i] == 4 {
						numbers.Put(params[k.Offsets[i]:], 4, seed%100)
					}
				}
			}
			o := Options{Checks: Check(seed) & AllChecks, Seed: seed >> 8, Schedule: Schedule(seed >> 5 & 1), StepLimit: 20000, Counters: true, Cores: 1}
			if capability[0] == 9 {
				o.Cluster = [3]int{1 + int(seed>>11&1), 1, 1}
			}
			if _, err := d.Launch(k, d1(2), d1(40), int(seed%3*64), params, o); err != nil {
				return
			}
		}
	})
}
