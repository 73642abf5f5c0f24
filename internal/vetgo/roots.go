package vetgo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Roots are the folders from which ./... names the packages of a folder, whose programs are given: the folder itself, where it
// belongs to a module, and modules within it that have to do with Warpline: what others import need not be there. Loose tells that
// some belong to no module.
func Roots(dir string, programs []string) (roots []string, loose bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, false
	}
	modules := map[string]string{} // of folders
	for _, name := range programs {
		at := filepath.Dir(name)
		rel, err := filepath.Rel(dir, at)
		if err != nil || hidden(rel) {
			continue
		}
		if _, ok := modules[at]; !ok {
			modules[at] = moduleOf(filepath.Join(abs, rel))
		}
		root := filepath.Clean(dir)
		if in, err := filepath.Rel(abs, modules[at]); modules[at] != "" && err == nil && filepath.IsLocal(in) {
			root = filepath.Join(dir, in)
		}
		switch {
		case modules[at] == "":
			loose = true
		case !slices.Contains(roots, root) && (root == filepath.Clean(dir) || mentions(name)):
			roots = append(roots, root)
		}
	}
	return roots, loose
}

// hidden tells whether ./... passes over a folder within another.
func hidden(rel string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return strings.HasPrefix(part, "_") })
}

// moduleOf is the folder of the module to which an absolute folder belongs, or empty.
func moduleOf(dir string) string {
	if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
		return dir
	}
	if up := filepath.Dir(dir); up != dir {
		return moduleOf(up)
	}
	return ""
}

// mentions tells whether a program has to do with Warpline.
func mentions(name string) bool {
	data, err := os.ReadFile(name)
	return err == nil && bytes.Contains(data, []byte(strings.TrimSuffix(module, "/")))
}
