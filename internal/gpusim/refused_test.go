package gpusim

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestRefusedKernel: a kernel that is not supported is refused for itself, with its instruction, also where that is in a
// function that it calls; the others of its module run. Where there are no others, the module is refused.
func TestRefusedKernel(t *testing.T) {
	const good = ".visible .entry good(.param .u64 p)\n{\n.reg .b64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 7;\nret;\n}\n"
	for _, c := range []struct{ name, version, bad, says string }{
		{"not simulated", "7.4", ".visible .entry bad()\n{\n.reg .b32 %r<2>; vadd.s32.s32.s32 %r0, %r1, %r1;\nret;\n}\n", "vadd.s32.s32.s32"},
		{"in a function", "7.4", ".func f()\n{\n.reg .b32 %r<2>; vadd.s32.s32.s32 %r0, %r1, %r1;\nret;\n}\n.visible .entry bad()\n{\ncall f;\nret;\n}\n", "vadd.s32.s32.s32"},
		{"of a later version", "9.5", ".visible .entry bad()\n{\n.reg .b32 %r<2>; frob.b32 %r0, %r1;\nret;\n}\n", "unknown instruction \"frob\", expected what PTX 8.8 has: the module is of 9.5"},
		{"in a function, of a later version", "9.5", ".func f()\n{\n.reg .b32 %r<2>; add.frob.u32 %r0, %r1, %r1;\nret;\n}\n.visible .entry bad()\n{\ncall f;\nret;\n}\n", "unknown modifier of add \".frob\""},
		{"recursion", "7.4", ".func f()\n{\ncall f;\nret;\n}\n.visible .entry bad()\n{\ncall f;\nret;\n}\n", "calls itself"},
	} {
		head := ".version " + c.version + "\n.target sm_80\n.address_size 64\n"
		for _, src := range []string{good + c.bad, c.bad + good} {
			m, err := ptx.Parse(head + src)
			if err != nil {
				t.Fatal(c.name, err)
			}
			d := NewDevice(A100(), false)
			p, err := d.Load(m)
			if err != nil || len(p.Kernels()) != 2 {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			bad := p.Kernel("bad")
			if err := bad.Refused(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
			if _, err := d.Launch(bad, d1(1), d1(1), 0, nil, Options{}); !errors.Is(err, bad.Refused()) && err.Error() != bad.Refused().Error() {
				t.Errorf("%s: launched: %v", c.name, err)
			}
			at, _ := d.Alloc(4, "")
			if _, err := d.Launch(p.Kernel("good"), d1(1), d1(1), 0, pack(p.Kernel("good"), at), Options{}); err != nil || p.Kernel("good").Refused() != nil {
				t.Errorf("%s: the other kernel: %v", c.name, err)
			}
		}
		m, err := ptx.Parse(head + c.bad)
		if err == nil {
			_, err = NewDevice(A100(), false).Load(m)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s alone: %v", c.name, err)
		}
	}
	m, err := ptx.Parse(".version 7.4\n.target sm_80\n.address_size 64\n.func unused()\n{\n.reg .b32 %r<2>; vadd.s32.s32.s32 %r0, %r1, %r1;\nret;\n}\n" + good)
	if err == nil {
		_, err = NewDevice(A100(), false).Load(m)
	}
	if err != nil {
		t.Errorf("a function that nobody calls: %v", err)
	}
}
