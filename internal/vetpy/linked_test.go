package vetpy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// TestLinked: what a program and the modules beside it do wrong together is found, where it is; and nothing where they do it right.
func TestLinked(t *testing.T) {
	dirs := must(filepath.Glob("testdata/linked/*"))
	if len(dirs) < 11 {
		t.Fatalf("%d programs", len(dirs))
	}
	for _, dir := range dirs {
		var want []string
		must(0, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				for _, w := range vettest.Wanted(string(must(os.ReadFile(name)))) {
					want = append(want, filepath.Base(name)+":"+w)
				}
			}
			return err
		}))
		var found []string
		for _, f := range must(CheckFile(filepath.Join(dir, "train.py"))) {
			file := f.File
			if file == "" {
				file = "train.py"
			}
			if !strings.HasSuffix(f.Finding.Line, fmt.Sprintf("%s:%d", filepath.Base(file), f.Line)) {
				t.Errorf("%s: %q", dir, f.Finding.Line)
			}
			found = append(found, fmt.Sprintf("%s:%d %s", filepath.Base(file), f.Line, f.Rule))
		}
		slices.Sort(want)
		slices.Sort(found)
		if d := vettest.Unlike(want, found); d != "" {
			t.Errorf("%s: wanted, got:\n%s", dir, d)
		}
	}
}

// TestResolve: a module is looked for beside the program, in its package and in the folders above; PyTorch itself is never read.
func TestResolve(t *testing.T) {
	const dir = "testdata/linked/pack"
	for path, want := range map[string]string{
		".lib.data": dir + "/lib/data.py", ".lib": dir + "/lib/__init__.py", "lib.steps": dir + "/lib/steps.py", "pack.lib": dir + "/lib/__init__.py", "..engine.engine": "testdata/linked/engine/engine.py",
		"torch.nn": "", "nowhere": "", "....nowhere": "",
	} {
		if got := resolve(dir+"/train.py", path); filepath.ToSlash(got) != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
