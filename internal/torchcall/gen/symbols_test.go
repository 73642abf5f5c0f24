package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/torchcall"
)

// exported is what the packages of the library export: by package the names of functions, types, constants and variables, by
// "package.Type" those of methods and fields.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	add := func(of, name string) {
		if all[of] == nil {
			all[of] = map[string]bool{}
		}
		if ast.IsExported(name) {
			all[of][name] = true
		}
	}
	for _, dir := range []string{"ckpt", "data", "dtype", "metric", "model", "nn", "optim", "prof", "tensor", "train", "data/augment", "data/table"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				exportedOf(d, f.Name.Name, add)
			}
		}
	}
	return all
}

func exportedOf(d ast.Decl, pkg string, add func(of, name string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(pkg, d.Name.Name)
			return
		}
		of := d.Recv.List[0].Type
		if p, ok := of.(*ast.StarExpr); ok {
			of = p.X
		}
		if id, ok := of.(*ast.Ident); ok {
			add(pkg+"."+id.Name, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(pkg, n.Name)
				}
			case *ast.TypeSpec:
				add(pkg, s.Name.Name)
				ast.Inspect(s.Type, func(n ast.Node) bool {
					if f, ok := n.(*ast.Field); ok {
						for _, n := range f.Names {
							add(pkg+"."+s.Name.Name, n.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// variables are what the prose calls values of our types.
var variables = map[string]string{
	"x": "tensor.Tensor", "y": "tensor.Tensor", "w": "tensor.Tensor", "p": "tensor.Tensor", "env": "tensor.Env",
	"opt": "optim.Optimizer", "scaler": "optim.LossScaler", "row": "data.Row",
}

var (
	symbol   = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)
	ofDevice = regexp.MustCompile(`Device\(\)\.([A-Z]\w*)`)
	alone    = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)(\(|$)`)
)

// TestSymbols looks for every symbol of ours that notes, reasons and differences name.
func TestSymbols(t *testing.T) {
	api, table := exported(t), table(t)
	everywhere := map[string]bool{}
	for names := range maps.Values(api) {
		maps.Copy(everywhere, names)
	}
	var prose []string
	for _, r := range table.Rows {
		prose = append(prose, r.Note)
	}
	prose = append(prose, table.Reasons...)
	for _, d := range table.Differences {
		prose = append(prose, d.Here)
	}
	seen := 0
	for _, text := range prose {
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			if s := alone.FindStringSubmatch(m[1]); s != nil && !everywhere[s[1]] {
				t.Errorf("%q: nothing here is called %s", text, s[1])
			}
			for _, s := range symbol.FindAllStringSubmatch(m[1], -1) {
				of := s[1]
				if v, ok := variables[of]; ok {
					of = v
				}
				if names, ok := api[of]; ok {
					seen++
					if !names[s[2]] {
						t.Errorf("%q: %s has no %s", text, of, s[2])
					}
				}
			}
			for _, s := range ofDevice.FindAllStringSubmatch(m[1], -1) {
				if !api["tensor.Device"][s[1]] {
					t.Errorf("%q: tensor.Device has no %s", text, s[1])
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d symbols in the prose", seen)
	}
}

// homes are where the names of a package of PyTorch are, if they are here.
var homes = map[string][]string{
	"torch": {"tensor.Tensor", "tensor", "tensor.Env"}, "torch.Tensor": {"tensor.Tensor"}, "torch.nn.functional": {"tensor.Tensor", "nn"},
	"torch.nn": {"nn"}, "torch.nn.utils": {"nn", "optim"}, "torch.nn.init": {"nn"},
	"torch.optim": {"optim"}, "torch.optim.lr_scheduler": {"optim"}, "torch.optim.swa_utils": {"optim"}, "torch.utils.data": {"data"},
}

// otherwise are names that are ours, too, for something else.
var otherwise = []string{
	"torch.Tensor.data", "torch.Tensor.type", "torch.Tensor.stride", "torch.Tensor.values", "torch.Tensor.indices", "torch.range",
	"torch.nn.functional.Tensor", "torch.optim.Optimizer", "torch.Tensor.name", "torch.seed", "torch.fork",
}

// TestNotStale says what is told as not here, or by another way, and has come.
func TestNotStale(t *testing.T) {
	api, table := exported(t), table(t)
	for name, n := range table.Names {
		dot := strings.LastIndexByte(name, '.')
		if table.State(name) == torchcall.Here || n.As != "" || slices.Contains(otherwise, name) {
			continue
		}
		for _, home := range homes[name[:dot]] {
			for ours := range api[home] {
				bare := strings.TrimPrefix(strings.TrimPrefix(ours, "New"), "Init")
				if letters(bare) != letters(strings.TrimSuffix(name[dot+1:], "LR")) && letters(bare) != letters(strings.TrimSuffix(name[dot+1:], "Loss")) {
					continue
				}
				if n.Why > 0 && strings.Contains(table.Reasons[n.Why-1], ours) {
					continue
				}
				t.Errorf("%s is told as %q, and %s.%s is here: give it a row in examples/pytorch, take it out of reasons.txt, and go generate ./internal/torchcall", name, table.State(name), home, ours)
			}
		}
	}
}

// letters are those of a name, in lower case.
func letters(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// TestTextFilesAreUsed knows that what stands in the files has names.
func TestTextFilesAreUsed(t *testing.T) {
	table := table(t)
	used := make([]bool, len(table.Reasons))
	for _, n := range table.Names {
		if n.Why > 0 {
			used[n.Why-1] = true
		}
	}
	for i, u := range used {
		if !u {
			t.Errorf("no name has the reason %q", table.Reasons[i])
		}
	}
	names, err := os.ReadFile("../names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(names)) {
		if name := strings.TrimSpace(line); name[0] != '#' && len(table.Names[name].Rows)+table.Names[name].Why == 0 && table.Names[name].As == "" {
			t.Errorf("%s has no answer", name)
		}
	}
}
