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

// isa is the PTX that a target's modules may need.
var isa = map[string]ptx.Version{"sm_75": {Major: 7, Minor: 4}, "sm_80": {Major: 7, Minor: 4}, "sm_90a": {Major: 8, Minor: 0}}

// TestLint holds the PTX to what the engine promises: it needs its target and PTX 7.4 only, where the target has been there
// for so long, and leaves ptxas no product and sum to fuse, so that every card gives the same bits.
func TestLint(t *testing.T) {
	names := map[string]string{}
	for _, m := range library(t).Modules() {
		text, err := m.PTX()
		if err != nil {
			t.Fatal(err)
		}
		module, err := ptx.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", m.Path(".ptx"), err)
		}
		if v := isa[m.Target]; module.Version != v || module.Target.String() != m.Target {
			t.Errorf("%s is PTX %v for %v", m.Path(".ptx"), module.Version, module.Target)
		}
		for f := range module.Funcs() {
			if home := names[m.Target+f.Name]; f.Entry && home != "" {
				t.Errorf("kernel %s is in %s and %s", f.Name, home, m.Name)
			}
			names[m.Target+f.Name] = m.Name
			for in := range f.Insts() {
				if why := forbidden(in); why != "" {
					t.Errorf("%s:%d: %s: %s", m.Path(".ptx"), in.Pos.Line, in, why)
				}
			}
			if in := early(f); in != nil {
				t.Errorf("%s:%d: %s: %s", m.Path(".ptx"), in.Pos.Line, in, tooEarly)
			}
		}
		canonical(t, m, text, module)
	}
	if len(names) < 100 {
		t.Errorf("only %d kernels", len(names))
	}
}

// library is the modules of all targets.
func library(t *testing.T) *kernels.Library {
	t.Helper()
	l, err := kernels.Open(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// canonical wants the text in the form that gen prints, and the table of its lines that of its sources.
func canonical(t *testing.T, m *kernels.Module, text []byte, module *ptx.Module) {
	t.Helper()
	lines, err := m.Lines()
	if err == nil {
		err = ptx.AddLines(module, string(lines))
	}
	if err != nil || ptx.Lines(module) != string(lines) {
		t.Errorf("%s is not the table of lines of the module beside it, error %v", m.Path(".lines"), err)
	}
	if _, body, _ := strings.Cut(string(text), "\n"); ptx.Canonical(module) != body {
		t.Errorf("%s is not in canonical form: run go generate ./internal/cuda/kernels", m.Path(".ptx"))
	}
}

// ofTriton is the PTX that Triton wrote, which must stay as it is.
var ofTriton = []string{"internal/simrun/testdata/triton/", "bench/clock/testdata/triton/", "examples/sim/softmax.ptx"}

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

// tooEarly is what is wrong with a block that says that it is done before all its threads are: another block may then add
// parts that are not there yet. Races between blocks are not followed by the simulated GPU.
const tooEarly = "no barrier stands between what the block's threads have stored and this sign that they have"

// early finds an atomic operation that releases what a block has stored before its threads have met.
func early(f *ptx.Func) *ptx.Inst {
	met := false // since the last store
	for in := range f.Insts() {
		switch {
		case in.Op == "bar" && in.Has("sync"):
			met = true
		case in.Op == "st" && in.Space() != ptx.Shared && in.Space() != ptx.Local && in.Space() != ptx.Param:
			met = false
		case in.Op == "atom" && in.Has("acq_rel") && !met:
			return in
		}
	}
	return nil
}

// TestEarly: without the first barrier of the kernels that add parts in their last block, each is found.
func TestEarly(t *testing.T) {
	n := 0
	for _, m := range library(t).Modules() {
		text, err := m.PTX()
		if err != nil {
			t.Fatal(err)
		}
		head, rest, takes := strings.Cut(string(text), "atom.acq_rel")
		if !takes {
			continue
		}
		n++
		const barrier = "bar.sync 0;\n"
		at := strings.LastIndex(head, barrier)
		module, err := ptx.Parse(head[:at] + head[at+len(barrier):] + "atom.acq_rel" + rest)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for f := range module.Funcs() {
			found = found || early(f) != nil
		}
		if !found {
			t.Errorf("%s: a ticket without a barrier passes", m.Path(".ptx"))
		}
	}
	if n == 0 {
		t.Error("no kernel takes a ticket")
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
