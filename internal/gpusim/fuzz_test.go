package gpusim

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
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
	f.Fuzz(func(t *testing.T, src string, seed uint64) {
		m, err := ptx.Parse(src)
		if err != nil {
			return
		}
		d := NewDevice(NewCard("small", 1<<22, 2, [2]int{8, 0}), seed&1 == 1)
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
						simt.Encode(params[k.Offsets[i]:], 8, a)
					} else if k.Sizes[i] == 4 {
						simt.Encode(params[k.Offsets[i]:], 4, seed%100)
					}
				}
			}
			o := Options{Checks: Check(seed) & AllChecks, Seed: seed >> 8, Schedule: Schedule(seed >> 5 & 1), StepLimit: 20000, Counters: true, Cores: 1}
			if _, err := d.Launch(k, d1(2), d1(40), int(seed%3*64), params, o); err != nil {
				return
			}
		}
	})
}
