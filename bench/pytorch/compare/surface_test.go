package main

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// apart are calls that give tensors, or write into them, and are not compared here, and why.
var apart = map[string]string{
	"Dropout": "random", "Bernoulli": "random", "Multinomial": "random", "Rand": "random", "Randn": "random", "RandInt": "random", "RandPerm": "random",
	"Ones": "Full of 1", "Zeros": "Full of 0", "Full": "FullOf f32", "FullLike": "constant", "ZerosLike": "constant", "Unwritten": "memory that holds anything",
	"From": "makes every operand", "FromMatrix": "another's numbers", "NewParam": "a value that learns", "NewBuffer": "a value that is state", "NewCell": "a number",
	"RequireGrad": "used by every case", "Grad": "used by every case", "GradGraph": "used by every case",
	"JVP": "TestJVP, and tensor's goldens", "Jacobian": "tensor's goldens (jacobian_reference.py)", "VJP": "tensor's goldens", "HVP": "tensor's goldens", "Hessian": "tensor's goldens",
	"Detach": "no values of its own", "Contiguous": "its values are its operand's; layouts use it", "To": "another device", "In": "modes", "Keep": "ownership", "Join": "ownership", "Surface": "ownership",
	"Enter": "a module's name", "EnterPair": "a module's name", "AutoWide": "a policy", "Do": "a block", "Try": "a block", "Tidy": "a block", "Chain": "a block", "ChainPair": "a block",
	"Recompute": "the values of the function that it is given", "Offload": "likewise", "RunPart": "likewise", "Record": "likewise",
	"LSTMStep": "nn's goldens of LSTM and LSTMCell (nn_reference.py)", "LSTMStepGrad": "likewise", "LSTMGradRoom": "memory that holds anything", "LSTMStateRoom": "likewise",
	"Resample":   "nn.Upsample is compared, which gives it its operands",
	"SGDInPlace": "optim's goldens (optim_reference.py)", "AdamWInPlace": "optim's goldens", "RuleInPlace": "optim's goldens (rules_reference.py)",
	"Adam8bitInPlace": "not in PyTorch: internal/conform compares with its formula", "GradNormInPlace": "optim's goldens, of clipping", "LossScaleInPlace": "optim's goldens, of loss scaling",
	"TrackMomentsInPlace": "nn's goldens of BatchNorm (nn_reference.py)",
}

// exported are package tensor's calls on values: functions and methods of Tensor and Env that give tensors or write into them.
func exported(t *testing.T) (calls []string) {
	for _, f := range testutil.Source(t, "../../../tensor", false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || !slices.Contains([]string{"", "Tensor", "Env"}, testutil.Receiver(fn)) {
				continue
			}
			if testutil.HasTensor(fn.Type.Results) || strings.HasSuffix(fn.Name.Name, "InPlace") {
				calls = append(calls, fn.Name.Name)
			}
		}
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// callsByOp are the names in each row of the table, by way of this package's functions too, and of a file's own variables that
// are functions.
func callsByOp(t *testing.T) map[string]map[string]bool {
	files, calls := testutil.Source(t, ".", false), map[string]map[string]bool{}
	functions := testutil.Functions(files)
	for _, f := range files {
		known, rows := maps.Clone(functions), testutil.Rows(f)
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.AssignStmt); ok {
				id, named := x.Lhs[0].(*ast.Ident)
				if fn, ok := x.Rhs[0].(*ast.FuncLit); ok && named {
					known[id.Name] = fn.Body
				}
			}
			return true
		})
		for _, name := range names {
			for _, row := range rows[name] {
				if calls[name] == nil {
					calls[name] = map[string]bool{}
				}
				testutil.Names(row, known, calls[name])
			}
		}
	}
	return calls
}

// TestEveryCallIsCompared holds the table against what package tensor exports: a call that gives a tensor is in a row, whose
// golden cases TestGoldenShapes counts, or among those apart.
func TestEveryCallIsCompared(t *testing.T) {
	compared, byOp := map[string]bool{}, callsByOp(t)
	for _, op := range names {
		if len(byOp[op]) == 0 {
			t.Errorf("the row of %s is not found", op)
		}
		maps.Copy(compared, byOp[op])
	}
	all := exported(t)
	if len(all) < 200 {
		t.Fatalf("%d calls", len(all))
	}
	for _, name := range all {
		if !compared[name] && apart[name] == "" {
			t.Errorf("%s is neither in the table nor among those apart: give it a row there and in compare.py, and make the golden cases again: %s", name, remake)
		}
	}
	for name := range apart {
		if !slices.Contains(all, name) {
			t.Errorf("%s is listed as apart, and gives no tensor", name)
		}
		if compared[name] && !slices.Contains(incidental, name) {
			t.Errorf("%s is listed as apart, and is in the table", name)
		}
	}
}

// incidental are names of calls apart that rows have beside what they compare.
var incidental = strings.Fields("ZerosLike FullLike Recompute In")
