package tensor_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/text"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// public are the packages that programs import.
var public = []string{"ckpt", "data", "dtype", "metric", "model", "nn", "optim", "tensor", "train"}

// opaque are the struct types of a package's files that programs get and that have unexported fields: exported ones, and
// sources of samples. text are those with a String method, their own or one of an embedded type of the package.
func opaque(t *testing.T, dir string) (all []string, text map[string]bool) {
	t.Helper()
	text = map[string]bool{}
	embedded := map[string][]string{}
	var sources, structs []string
	for _, f := range testutil.Source(t, dir, false) {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				switch d.Name.Name {
				case "String", "Error":
					text[testutil.Receiver(d)] = true
				case "Fill":
					sources = append(sources, testutil.Receiver(d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					st, ok := ts.Type.(*ast.StructType)
					if !ok {
						continue
					}
					hidden := false
					for _, field := range st.Fields.List {
						if len(field.Names) == 0 {
							embedded[ts.Name.Name] = append(embedded[ts.Name.Name], base(field.Type))
						}
						hidden = hidden || slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return !n.IsExported() && n.Name != "_" }) ||
							len(field.Names) == 0 && !ast.IsExported(base(field.Type))
					}
					if hidden && ts.Name.IsExported() {
						all = append(all, ts.Name.Name)
					} else if hidden {
						structs = append(structs, ts.Name.Name)
					}
				}
			}
		}
	}
	for _, name := range structs {
		if slices.Contains(sources, name) {
			all = append(all, name)
		}
	}
	for name, inner := range embedded {
		text[name] = text[name] || slices.ContainsFunc(inner, func(n string) bool { return text[n] })
	}
	return all, text
}

// base is the name of a type, without pointer and type parameters.
func base(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.IndexListExpr:
		return base(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestHandlesHaveText walks the exported types of every public package: one with unexported fields, which fmt would print
// with all that they hold, has a String.
func TestHandlesHaveText(t *testing.T) {
	found := 0
	for _, pkg := range public {
		err := filepath.WalkDir(filepath.Join("..", pkg), func(dir string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if name := d.Name(); name == "internal" || name == "testdata" {
				return filepath.SkipDir
			}
			all, text := opaque(t, dir)
			for _, name := range all {
				if found++; !text[name] {
					t.Errorf("%s.%s has unexported fields and no String", filepath.Base(dir), name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("%d types", found)
	}
}

// TestHandlesAreShort prints one of each handle.
func TestHandlesAreShort(t *testing.T) {
	env := open(t)
	x := env.Rand(100, 100)
	var slot tensor.Slot
	slot.Set(x)
	e, scope := env.NoGrad().Eval().Autocast(dtype.BF16).On(env.NewQueue()).Scope()
	set := data.InMemory(make([]float32, 4000), []int{4}, make([]int64, 1000))
	text, err := text.NewTokenizer(strings.Repeat("hello, world", 100), text.Characters)
	if err != nil {
		t.Fatal(err)
	}
	ids := tokens.New("ids", make([]uint16, 1000), 7)
	windows, err := ids.Windows(8)
	if err != nil {
		t.Fatal(err)
	}
	g := model.NewGPT(env, model.GPTConfig{Vocab: 7, Context: 8, Layers: 2, Heads: 2, Width: 8})
	var mean metric.Mean
	mean.Add(x.Mean(), 3)
	arrived := x.Mean().Later()
	arrived.Value()
	handles := map[any]string{
		env.Device(): env.Device().Name(), env: env.Device().Name(), e: env.Device().Name() + ", no gradients, evaluation, bf16, queue 1",
		scope: "scope of", env.NewQueue(): "queue 2 of", &slot: "slot of f32[100,100]", new(tensor.Slot): "empty slot", arrived: "0.",
		optim.NewAdamW(nn.Params(g), optim.AdamWConfig{}): "optimizer of 28 parameters, learning rate 0.001, after 0 steps",
		optim.NewLossScaler(optim.LossScalerConfig{}):     "loss scale 65536", &mean: "mean over 3 samples", text: "9 characters", ids: "ids, 1000 tokens",
		windows: "992 samples of 8 tokens from", set: "in memory", data.Subset(set, 10, 20): "samples 10 to 19 of (in memory",
		data.Map(set, func(*data.Pair, data.Row) error { return nil }): "1000 samples), changed", g.Transformer: "transformer of 2 blocks, width 8", g.Transformer.H[0].MLP: "MLP of 8, 32, 8",
	}
	for b, err := range data.Batches(env, set, data.Config{Size: 50}) {
		if err != nil {
			t.Fatal(err)
		}
		handles[b] = "batch of 50, then epoch 0, batch 1"
		break
	}
	scope.End()
	for h, want := range handles {
		if s := fmt.Sprint(h); len(s) > 120 || strings.Contains(s, "\n") || !strings.Contains(s, want) {
			t.Errorf("%T prints as %.200q, want %q", h, s, want)
		}
	}
}
