package source

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/torchcall"
)

// homes are where the names of a package of PyTorch are, if they are here.
var homes = map[string][]string{
	"torch": {"tensor.Tensor", "tensor", "tensor.Env"}, "torch.linalg": {"tensor.Tensor", "tensor"}, "torch.special": {"tensor.Tensor"},
	"torch.fft": {"tensor.Tensor"}, "torch.Tensor": {"tensor.Tensor"}, "torch.nn.functional": {"tensor.Tensor", "nn"},
	"torch.nn": {"nn"}, "torch.nn.utils": {"nn", "optim"}, "torch.nn.init": {"nn"},
	"torch.optim": {"optim"}, "torch.optim.lr_scheduler": {"optim"}, "torch.optim.swa_utils": {"optim"}, "torch.utils.data": {"data"},
}

// otherwise are names that are ours, too, for something else.
var otherwise = []string{
	"torch.Tensor.data", "torch.Tensor.type", "torch.Tensor.stride", "torch.Tensor.values", "torch.Tensor.indices", "torch.range",
	"torch.optim.Optimizer", "torch.Tensor.name", "torch.seed", "torch.fork",
}

// checkStale says what is told as not here, or by another way, and has come.
func checkStale(t *torchcall.Table, root string) error {
	api, err := exported(root)
	if err != nil {
		return err
	}
	var come []string
	for _, name := range slices.Sorted(maps.Keys(t.Names)) {
		n := t.Names[name]
		dot := strings.LastIndexByte(name, '.')
		if t.State(name) == torchcall.Here || n.As != "" || slices.Contains(otherwise, name) {
			continue
		}
		for _, home := range homes[name[:dot]] {
			for ours := range api[home] {
				if alike(ours, name[dot+1:]) && (n.Why == 0 || !strings.Contains(t.Reasons[n.Why-1], ours)) {
					come = append(come, name+", by "+home+"."+ours)
				}
			}
		}
	}
	if len(come) > 0 {
		return fmt.Errorf("told as not here, and come: give each a row in examples/pytorch, and take it out of reasons.txt:\n%s", strings.Join(come, "\n"))
	}
	return nil
}

// alike says whether a name of ours is what one of PyTorch's would be here.
func alike(ours, name string) bool {
	ours = letters(strings.TrimPrefix(strings.TrimPrefix(ours, "New"), "Init"))
	return ours == letters(strings.TrimSuffix(name, "LR")) || ours == letters(strings.TrimSuffix(name, "Loss"))
}

// letters are those of a name, in lower case.
func letters(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// exported is what the packages of the library export: by package the names of functions, types, constants and variables, by
// "package.Type" those of methods and fields.
func exported(root string) (map[string]map[string]bool, error) {
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
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range f.Decls {
				exportedOf(d, f.Name.Name, add)
			}
		}
	}
	return all, nil
}

// exportedOf adds what a declaration exports.
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
