package nn

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
)

// apart are layers and functions that give tensors and have no golden cases, and why.
var apart = map[string]string{
	"Dropout": "random: its share and scale are tested", "Dropout2d": "random: TestChannelDropout", "AlphaDropout": "random: TestAlphaDropout",
	"Sequential": "the values of its modules", "Func": "a function of one's own", "AddAll": "the values of its modules", "Block": "the values of its modules", "Forward": "the values of a function",
	"KVCache": "values that are kept: compared with the whole sequence at once", "NewParam": "a value that learns",
}

// once are those without golden second derivatives, and why.
var once = map[string]string{
	"Hardsigmoid": "PyTorch derives it once", "MultiMargin": "PyTorch derives it once", "ALiBi": "it is added: there is none",
}

// beside are layers that cases of a kind have beside what they are cases of.
var beside = map[string][]string{
	"weight_norm": {"Linear", "Conv1d", "Conv2d"}, "lora": {"Linear", "Conv2d"}, "glu": {"SiLU", "GELU", "ReLU", "Identity"},
	"MultiheadAttention": {"Linear"}, "MultiheadLayer": {"Linear", "Attention"}, "TransformerEncoder": {"LayerNorm"}, "TransformerDecoder": {"LayerNorm"},
	"attention": {"Attention", "GELUTanh"}, "scaled_dot_product_attention": {"Attention"}, // the operation
}

// exported are the package's layers and functions of tensors, and its initialisers.
func exported(t *testing.T) (calls, initialisers []string) {
	for _, f := range testutil.Source(t, ".", false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			typ, takes := testutil.Receiver(fn), testutil.HasTensor(fn.Type.Params)
			switch {
			case typ == "" && takes && strings.HasPrefix(fn.Name.Name, "Init"):
				initialisers = append(initialisers, fn.Name.Name)
			case typ == "" && takes && testutil.HasTensor(fn.Type.Results):
				calls = append(calls, fn.Name.Name)
			case ast.IsExported(typ) && testutil.HasTensor(fn.Type.Results):
				calls = append(calls, typ)
			}
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls), initialisers
}

// goldenShapes are, of each kind of golden cases and what they compare, the shapes that have it.
func goldenShapes(t *testing.T) map[string]map[string]map[string]bool {
	all := map[string]map[string]map[string]bool{}
	for _, c := range everyGolden(t) {
		var operands []string
		parts := map[string]bool{"result": true}
		for _, name := range slices.Sorted(maps.Keys(c.shapes)) {
			switch what, _, _ := strings.Cut(name, "."); what {
			case "in", "param":
				operands = append(operands, fmt.Sprint(name, c.shapes[name]))
			case "grad":
				parts["gradient"] = true
			case "second":
				parts["second derivative"] = true
			}
		}
		if all[c.Layer] == nil {
			all[c.Layer] = map[string]map[string]bool{"result": {}, "gradient": {}, "second derivative": {}}
		}
		for part := range parts {
			all[c.Layer][part][strings.Join(operands, " ")] = true
		}
	}
	return all
}

// shapedCase is a golden case with the shapes of its tensors in place of these.
type shapedCase struct {
	goldenCase
	shapes map[string][]int
}

// everyGolden are all golden cases.
func everyGolden(t *testing.T) (all []shapedCase) {
	var index struct{ Cases []goldenCase }
	golden.JSON(t, "testdata/index.json", &index)
	for _, c := range index.Cases {
		all = append(all, shapedCase{c, golden.Shapes(t, "testdata/"+c.Name+".safetensors")})
	}
	for family := range families {
		var index struct{ Cases []goldenCase }
		golden.JSON(t, "testdata/"+family+".json", &index)
		of := map[string]map[string][]int{}
		for path, shape := range golden.Shapes(t, "testdata/"+family+".safetensors") {
			name, short, _ := strings.Cut(path, ":")
			if of[name] == nil {
				of[name] = map[string][]int{}
			}
			of[name][short] = shape
		}
		for _, c := range index.Cases {
			all = append(all, shapedCase{c, of[c.Name]})
		}
	}
	return all
}

// kindsOf are the kinds of golden cases that are cases of each layer and function: those whose forward makes or calls it.
func kindsOf(t *testing.T) map[string][]string {
	files, kinds := testutil.Source(t, ".", true), map[string][]string{}
	functions := testutil.Functions(files)
	for _, f := range files {
		rows := testutil.Rows(f)
		for kind := range forwards {
			names := map[string]bool{}
			for _, row := range rows[kind] {
				testutil.Names(row, functions, names)
			}
			for name := range names {
				name = strings.TrimPrefix(name, "New")
				if !slices.Contains(kinds[name], kind) && !slices.Contains(beside[kind], name) {
					kinds[name] = append(kinds[name], kind)
				}
			}
		}
	}
	return kinds
}

// TestEveryLayerIsCompared: each layer and each function of tensors that the package exports has golden cases of PyTorch of five
// shapes at least, with gradients and second derivatives, or stands apart with a reason.
func TestEveryLayerIsCompared(t *testing.T) {
	const least = 5
	calls, _ := exported(t)
	if len(calls) < 90 {
		t.Fatalf("%d layers and functions", len(calls))
	}
	kinds, shapes := kindsOf(t), goldenShapes(t)
	for _, name := range calls {
		if apart[name] != "" {
			continue
		}
		for _, part := range []string{"result", "gradient", "second derivative"} {
			if part == "second derivative" && once[name] != "" {
				continue
			}
			have := map[string]bool{}
			for _, kind := range kinds[name] {
				maps.Copy(have, shapes[kind][part])
			}
			if len(have) < least {
				t.Errorf("%s: golden cases (kinds %v) of %d shapes have a %s, of %d at least: add cases to bench/pytorch/layers_*.py, run layers_reference.py, and give their kind a forward", name, kinds[name], len(have), part, least)
			}
		}
	}
	for list, reasons := range map[string]map[string]string{"apart": apart, "once": once} {
		for name := range reasons {
			if !slices.Contains(calls, name) {
				t.Errorf("%s is listed in %s, and is no layer or function of tensors", name, list)
			}
		}
	}
}
