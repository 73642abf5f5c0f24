package kernels_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestLint holds the PTX to what the engine promises: it needs sm_80 and PTX 7.4 only, and leaves ptxas no product and
// sum to fuse, so that every card gives the same bits.
func TestLint(t *testing.T) {
	names := map[string]string{}
	for _, m := range kernels.Modules() {
		text, err := kernels.PTX(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		module, err := ptx.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if v := (ptx.Version{Major: 7, Minor: 4}); module.Version != v || module.Target.SM != 80 {
			t.Errorf("%s is PTX %v for %v", m.Name, module.Version, module.Target)
		}
		for f := range module.Funcs() {
			if f.Entry && names[f.Name] != "" {
				t.Errorf("kernel %s is in %s and %s", f.Name, names[f.Name], m.Name)
			}
			names[f.Name] = m.Name
			for in := range f.Insts() {
				if why := forbidden(in); why != "" {
					t.Errorf("%s.ptx:%d: %s: %s", m.Name, in.Pos.Line, in, why)
				}
			}
		}
	}
	if len(names) < 100 {
		t.Errorf("only %d kernels", len(names))
	}
}

// forbidden says what is wrong with an instruction.
func forbidden(in *ptx.Inst) string {
	switch in.Op {
	case "add", "sub", "mul":
		if t := in.Type(); (t == ptx.F32 || t == ptx.F64) && !in.Has("rn") && !in.Has("rz") && !in.Has("rm") && !in.Has("rp") {
			return "ptxas may fuse it"
		}
	case "atom", "red":
		if in.Type().Kind() == ptx.KindFloat {
			return "the order of additions depends on the schedule"
		}
	case "brx":
		return "a jump table, which -fno-jump-tables avoids"
	}
	return ""
}
