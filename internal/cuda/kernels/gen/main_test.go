package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestFresh demands that the committed modules belong to the sources, and the index to the modules; a run reads a fifth of
// these, and makes the edits of a fifth of their families anew.
func TestFresh(t *testing.T) {
	t.Chdir("..")
	ix, _ := committed()
	units, err := wanted(ix)
	if err != nil {
		t.Fatal(err)
	}
	if len(units) == 0 || len(units) != len(ix.Modules) {
		t.Errorf("%d modules in the sources, %d in the index", len(units), len(ix.Modules))
	}
	texts, spread := make([]string, len(units)), testutil.NewSpread(t, testutil.Seed(t), 5)
	const again = "run go generate ./internal/cuda/kernels"
	for i, u := range units {
		hash, err := u.hash(ix.Compiler)
		if err != nil {
			t.Fatal(err)
		}
		m := find(ix, u, hash)
		if m == nil || m != ix.Modules[i] || !slices.Equal(ix.Flags[u.target], flags(u.target)) {
			t.Errorf("%s is not what its sources say; %s", u.path(".ptx"), again)
			continue
		}
		if texts[i], err = u.text(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(texts[i], u.head(hash)) {
			t.Errorf("%s is of other sources; %s", u.path(".ptx"), again)
		}
		if !spread.Takes(u.path("")) {
			continue
		}
		got, err := u.describe(texts[i], hash)
		if err != nil {
			t.Errorf("%v; %s", err, again)
			continue
		}
		keep(got, m)
		if !reflect.DeepEqual(got, m) {
			t.Errorf("the index has another %s; %s", u.path(".ptx"), again)
		}
	}
	stored(t, units, texts, spread)
	files, err := filepath.Glob("ptx/*/*")
	if err != nil || len(files) != 2*len(units) {
		t.Errorf("%d files for %d modules, error %v; %s", len(files), len(units), err, again)
	}
}

// wanted is the units that the sources name, and before them those for older cards, which the kernels' own tests compare with
// what the base's text allows.
func wanted(ix *kernels.Index) ([]unit, error) {
	units, err := collect()
	if err != nil {
		return nil, err
	}
	modules, texts := make([]*kernels.Module, len(units)), make([]string, len(units))
	for i, u := range units {
		for _, m := range ix.Modules {
			if m.Name == u.name && m.Target == u.target {
				modules[i], texts[i] = m, "as it was"
			}
		}
	}
	return append(older(units, modules, texts, ix), units...), nil
}

// TestClang compiles one module of each target, where the compiler of the committed ones is, and compares instruction by
// instruction. CI has gen compile those of the last commits, and .ci/walk all.
func TestClang(t *testing.T) {
	t.Chdir("..")
	ix, _ := committed()
	if version, err := exec.Command(compiler, "-dumpversion").Output(); err != nil || "clang "+strings.TrimSpace(string(version)) != ix.Compiler {
		t.Skipf("%s of the committed modules, %s, is not here", compiler, ix.Compiler)
	}
	units, err := wanted(ix)
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, u := range units {
		if tried[u.target] || !strings.HasPrefix(u.name, "softmax_f32") && !strings.HasPrefix(u.name, "softmax_bf16") {
			continue
		}
		tried[u.target] = true
		made, err := u.clang()
		if err != nil {
			t.Fatal(err)
		}
		text, err := u.text()
		if err != nil {
			t.Fatal(err)
		}
		lines, err := os.ReadFile(u.path(".lines"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ptx.Same(string(made), text+string(lines)); err != nil {
			t.Errorf("%s: %v", u.path(".ptx"), err)
		}
	}
	if len(tried) != len(ix.Flags) {
		t.Errorf("tried for %v, the targets are %v", tried, ix.Flags)
	}
}

// TestIncludes: a header counts for those who include it, and for nobody else.
func TestIncludes(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("src", 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile("src/"+name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("a.cu", "#include \"x.cuh\"\n")
	put("b.cu", "#include \"y.cuh\"\n")
	put("x.cuh", "#include \"z.cuh\"\n")
	put("y.cuh", "\n")
	put("z.cuh", "#include \"x.cuh\"\n")
	hashes := func() (a, b string) {
		t.Helper()
		var err [2]error
		a, err[0] = unit{source: "src/a.cu", target: "sm_80"}.hash("clang")
		b, err[1] = unit{source: "src/b.cu", target: "sm_80"}.hash("clang")
		if err != [2]error{} {
			t.Fatal(err)
		}
		return a, b
	}
	a, b := hashes()
	put("z.cuh", "#include \"x.cuh\"\n\n")
	if a2, b2 := hashes(); a2 == a || b2 != b {
		t.Errorf("after a change of z.cuh: a.cu %s and %s, b.cu %s and %s", a, a2, b, b2)
	}
	if _, err := (unit{source: "src/none.cu"}).hash("clang"); err == nil {
		t.Error("a source that is not there has a hash")
	}
}

// TestSalvage: of an index with the marks of a merge every line that is whole counts, of both sides.
func TestSalvage(t *testing.T) {
	t.Chdir("..")
	ix, whole := committed()
	text, err := os.ReadFile("index.json")
	if err != nil || !whole || ix.String() != string(text) {
		t.Fatalf("the index is not as it is written, error %v", err)
	}
	if bare, err := os.ReadFile("kernels.json"); err != nil || ix.Bare().String() != string(bare) {
		t.Errorf("kernels.json is not the index without what only readers want, error %v", err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"Name": "copy_4"`) })
	if at < 0 {
		t.Fatal("no module copy_4")
	}
	theirs := strings.Replace(lines[at], `"Hash": "`, `"Hash": "0`, 1)
	torn := strings.Join(slices.Concat(lines[:at], []string{"<<<<<<< HEAD\n", theirs, "=======\n"}, lines[at:at+2], []string{">>>>>>> them\n"}, lines[at+2:]), "")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("index.json", []byte(torn), 0o666); err != nil {
		t.Fatal(err)
	}
	got, whole := committed()
	if whole || len(got.Modules) != len(ix.Modules)+1 {
		t.Fatalf("%d modules of %d, whole %v", len(got.Modules), len(ix.Modules)+1, whole)
	}
	for _, m := range ix.Modules {
		if found := find(got, unit{name: m.Name, target: m.Target}, m.Hash); !reflect.DeepEqual(found, m) {
			t.Errorf("%s is lost", m.Path(""))
		}
	}
}

// TestDifferences: the comparison of two commits names what changed, by class, and what came and went.
func TestDifferences(t *testing.T) {
	index := func(names string, of ...map[string]int) *kernels.Index {
		m := &kernels.Module{Name: "m", Target: "sm_80"}
		for i, n := range strings.Fields(names) {
			m.Kernels = append(m.Kernels, &kernels.Kernel{Name: n, Instructions: of[i]})
		}
		return &kernels.Index{Modules: []*kernels.Module{m}}
	}
	var b strings.Builder
	before := index("same less gone", map[string]int{"load": 3}, map[string]int{"load": 3, "move": 5, "sync": 1}, map[string]int{"move": 2})
	after := index("same less new", map[string]int{"load": 3}, map[string]int{"load": 4, "move": 2, "sync": 1}, map[string]int{"load": 7})
	differences(&b, counts(before), counts(after))
	const want = `sm_80 m gone: 2 → 0 instructions; move -2
sm_80 m less: 9 → 7 instructions; load +1, move -3
sm_80 m new: 0 → 7 instructions; load +7
3 of 3 kernels have other numbers of instructions, +3 in all
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
