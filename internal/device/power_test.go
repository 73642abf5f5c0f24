package device

import (
	"cmp"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestInterfaces: the core stays what it is, and each other interface that an engine may fill is in the list of powers.
func TestInterfaces(t *testing.T) {
	core := map[string]reflect.Type{"Device": reflect.TypeFor[Device](), "Queue": reflect.TypeFor[Queue](), "Mark": reflect.TypeFor[Mark]()}
	for name, n := range map[string]int{"Device": 6, "Queue": 6, "Mark": 1} {
		if got := core[name].NumMethod(); got != n {
			t.Errorf("%s has %d methods, the documents say %d", name, got, n)
		}
	}
	others := []string{"Fetch", "Graph", "Module", "Staged", "Stamp", "Lost", "Blamed"} // what powers return; errors
	listed := map[string]bool{}
	for _, p := range Powers() {
		listed[p.Name] = true
	}
	for name := range interfaces(t) {
		if core[name] == nil && !listed[name] && !slices.Contains(others, name) {
			t.Errorf("%s is neither of the core nor in Powers", name)
		}
		delete(listed, name)
	}
	if len(listed) > 0 {
		t.Errorf("powers that are no interfaces: %v", slices.Collect(maps.Keys(listed)))
	}
}

// interfaces are the exported interface types of the package, by name.
func interfaces(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, file := range testutil.Source(t, ".", false) {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
				if _, ok := s.Type.(*ast.InterfaceType); ok {
					names[s.Name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// TestNoAssertions: powers are asked for by As alone, which sees through wrappers.
func TestNoAssertions(t *testing.T) {
	var names []string
	for _, p := range Powers() {
		names = append(names, p.Name)
	}
	assertion := regexp.MustCompile(`\.\((device\.)?(` + strings.Join(names, "|") + `)\)`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != "../.." {
			return cmp.Or(err, fs.SkipDir)
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if assertion.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, error %v", files, err)
	}
}

// shell wraps a device and can nothing itself; gauge has a power of its own.
type shell struct{ Device }

func (s shell) Unwrap() Device { return s.Device }

type gauge struct {
	shell
	left int64
}

func (g gauge) Unused() (int64, bool) { return g.left, true }

// TestAs: what has the power itself comes before what it wraps, and what wraps nothing ends the search.
func TestAs(t *testing.T) {
	inner := &metered{newFake(mib), 1, true}
	for i, c := range []struct {
		v    any
		want int64
	}{
		{inner, 1}, {shell{inner}, 1}, {shell{shell{inner}}, 1}, {gauge{shell{inner}, 2}, 2}, {shell{gauge{shell{inner}, 2}}, 2},
		{nil, 0}, {newFake(mib), 0}, {shell{shell{newFake(mib)}}, 0}, {shell{}, 0},
	} {
		m, ok := As[Meter](c.v)
		if ok != (c.want != 0) {
			t.Fatalf("case %d: found %v", i, ok)
		}
		if !ok {
			continue
		}
		if n, _ := m.Unused(); n != c.want {
			t.Errorf("case %d: the Meter says %d, want %d", i, n, c.want)
		}
	}
}
