package kernels_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// ofTriton is the PTX that Triton wrote, which must stay as it is.
var ofTriton = []string{"internal/simrun/testdata/triton/", "examples/sim/softmax.ptx"}

// TestLintElsewhere holds all other PTX of the repository to explicit roundings.
func TestLintElsewhere(t *testing.T) {
	const root = "../../../"
	n := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		of := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
		if err != nil || filepath.Ext(path) != ".ptx" || of("internal/cuda/kernels/") || slices.ContainsFunc(ofTriton, of) {
			return err
		}
		text, err := os.ReadFile(root + path)
		if err != nil {
			return err
		}
		module, err := ptx.Parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for f := range module.Funcs() {
			for in := range f.Insts() {
				if forbidden(in) == fusible {
					t.Errorf("%s:%d: %s: %s", path, in.Pos.Line, in, fusible)
				}
			}
		}
		n++
		return nil
	})
	if err != nil || n < 5 {
		t.Errorf("%d files, error %v", n, err)
	}
}

// fusible is what is wrong with a sum or product without a rounding.
const fusible = "ptxas may fuse it"

// forbidden says what is wrong with an instruction.
func forbidden(in *ptx.Inst) string {
	switch in.Op {
	case "add", "sub", "mul":
		if t := in.Type(); (t == ptx.F32 || t == ptx.F64) && !in.Has("rn") && !in.Has("rz") && !in.Has("rm") && !in.Has("rp") {
			return fusible
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
