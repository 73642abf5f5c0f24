package nn_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// keeper is a module of a program, which keeps what it is given and what it makes.
type keeper struct {
	nn.Linear
	kept []*tensor.Tensor
}

func (k *keeper) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := k.Linear.Forward(x)
	z := y.Tanh()
	k.kept = append(k.kept, x, y, z)
	return z
}

// TestKeptByAModule: what a program's module can still name stays valid until its batch ends, wherever the module is.
func TestKeptByAModule(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{Linear: *nn.NewLinear(env, 4, 4)}
	for name, m := range map[string]nn.Module{
		"sequential": nn.Sequential{nn.NewLinear(env, 4, 4), nn.ReLU{}, k, nn.Tanh{}, nn.NewLinear(env, 4, 4)},
		"nested":     nn.Sequential{nn.Tanh{}, nn.Sequential{nn.ReLU{}, nn.Sequential{k}, nn.Tanh{}}, nn.Tanh{}},
		"in blocks":  nn.Sequential{nn.Tanh{}, nn.EvalMode(nn.Sequential{nn.Tanh{}, nn.Recompute(nn.Sequential{nn.Tanh{}, k})})},
	} {
		for _, e := range []*tensor.Env{env, env.NoGrad().Eval()} {
			k.kept = nil
			e, scope := e.Scope()
			chained := m.Forward(e.Rand(3, 4)).Floats()
			if len(chained) != 12 || len(k.kept) == 0 {
				t.Fatalf("%s: %d values, %d kept", name, len(chained), len(k.kept))
			}
			if name != "in blocks" { // whose ends release, as those of any Do
				for _, v := range k.kept {
					v.Floats()
				}
			}
			scope.End()
		}
	}
}

// layers are one of each that has values of its own on the way, with an input's shape.
func layers(env *tensor.Env) map[string]struct {
	m     nn.Module
	shape []int
} {
	same := nn.ConvConfig{Padding: 1}
	width := func() nn.Module { return nn.NewLinear(env, 16, 16) }
	attention := func(dropout float64) nn.Module {
		return nn.NewAttention(env, 16, nn.AttentionConfig{Heads: 2, Causal: true, Dropout: dropout})
	}
	return map[string]struct {
		m     nn.Module
		shape []int
	}{
		"linear":    {nn.Sequential{width(), nn.Tanh{}, width(), nn.GELU{}, width(), nn.SiLU{}, width(), nn.Softmax{}}, []int{300, 16}},
		"norms":     {nn.Sequential{nn.NewLayerNorm(env, 16), nn.NewRMSNorm(env, 16), nn.NewBatchNorm(env, 300), nn.Sigmoid{}}, []int{2, 300, 16}},
		"attention": {nn.Sequential{attention(0), nn.Dropout{P: 0.5}, attention(0.1), nn.GELUTanh{}}, []int{2, 64, 16}},
		"pictures": {nn.Sequential{nn.NewConv2d(env, 3, 8, 3, same), nn.ReLU{}, nn.MaxPool2d{Kernel: 2}, nn.NewConv2d(env, 8, 8, 3, same),
			nn.AvgPool2d{Kernel: 3, Padding: 1, ExcludePadding: true, Stride: 1}, nn.NewBatchNorm(env, 8), nn.GlobalAvgPool{}, nn.Flatten{}}, []int{4, 3, 16, 16}},
		"recurrent": {nn.Sequential{nn.NewLSTM(env, 16, 16, nn.RecurrentConfig{Layers: 2}), nn.NewGRU(env, 16, 16, nn.RecurrentConfig{}), nn.NewRNN(env, 16, 16, nn.RecurrentConfig{})}, []int{5, 3, 16}},
		"wrapped":   {nn.Sequential{nn.Frozen(width()), nn.EvalMode(nn.Sequential{width(), nn.Dropout{P: 0.5}, width()}), nn.Recompute(nn.Sequential{width(), nn.Tanh{}, width()})}, []int{300, 16}},
	}
}

// TestLayersLeaveNothing walks layers on every engine, in training and in evaluation, in two precisions: the peak of values
// is the same on each, and nothing but the result is left once a scope knows of no graph.
func TestLayersLeaveNothing(t *testing.T) {
	peaks := map[string]int64{}
	for _, device := range []string{"cpu", "null:a100-80", "sim:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		dev := env.Device()
		for name, l := range layers(env) {
			for way, e := range map[string]*tensor.Env{"training": env, "evaluation": env.NoGrad().Eval(), "training in bf16": env.Autocast(dtype.BF16),
				"evaluation in bf16": env.NoGrad().Eval().Autocast(dtype.BF16)} {
				name := name + ", " + way
				e, scope := e.Scope()
				x := e.Rand(l.shape...)
				dev.ResetPeak()
				before := dev.Memory().Used
				y := l.m.Forward(x)
				if used := dev.Memory().Used - before; !y.Recorded() && used != y.Bytes() {
					t.Errorf("%s on %s: %d bytes are left, the result has %d", name, device, used, y.Bytes())
				}
				if y.Recorded() {
					y.Square().Mean().Backward()
				}
				m := dev.Memory()
				if peak, known := peaks[name]; known && peak != m.ValuesPeak-before {
					t.Errorf("%s: a peak of %d on %s, %d on the CPU", name, m.ValuesPeak-before, device, peak)
				} else if !known {
					peaks[name] = m.ValuesPeak - before
				}
				scope.End()
				for _, p := range nn.Params(l.m) {
					p.DropGrad()
				}
			}
		}
	}
	if len(peaks) < 20 {
		t.Errorf("%d cases", len(peaks))
	}
}

// TestConstructorsLeaveNothing but parameters and buffers.
func TestConstructorsLeaveNothing(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, l := range layers(env) {
		for _, p := range nn.State(l.m) {
			want += p.Bytes()
		}
	}
	if got := env.Device().Memory().Used; got != want {
		t.Errorf("%d bytes are in use, parameters and buffers have %d", got, want)
	}
}

// made are layers with state of their own, by the functions that make them.
var made = map[string]func(env *tensor.Env) []any{
	"PReLU":     func(env *tensor.Env) []any { return []any{nn.NewPReLU(env, 6)} },
	"Attention": func(env *tensor.Env) []any { return []any{nn.NewAttention(env, 8, nn.AttentionConfig{Heads: 2})} },
	"EMA":       func(env *tensor.Env) []any { return averaged(env, func(m *nn.Linear) any { return nn.NewEMA(m, 0.9) }) },
	"SWA":       func(env *tensor.Env) []any { return averaged(env, func(m *nn.Linear) any { return nn.NewSWA(m) }) },
	"Conv2d":    func(env *tensor.Env) []any { return []any{nn.NewConv2d(env, 3, 8, 3, nn.ConvConfig{})} },
	"Conv1d":    func(env *tensor.Env) []any { return []any{nn.NewConv1d(env, 3, 8, 3, nn.ConvConfig{})} },
	"ConvTranspose2d": func(env *tensor.Env) []any {
		return []any{nn.NewConvTranspose2d(env, 3, 8, 3, nn.ConvTransposeConfig{})}
	},
	"ConvTranspose1d": func(env *tensor.Env) []any {
		return []any{nn.NewConvTranspose1d(env, 3, 8, 3, nn.ConvTransposeConfig{})}
	},
	"Linear":       func(env *tensor.Env) []any { return []any{nn.NewLinear(env, 30, 20)} },
	"LinearNoBias": func(env *tensor.Env) []any { return []any{nn.NewLinearNoBias(env, 30, 20)} },
	"Embedding":    func(env *tensor.Env) []any { return []any{nn.NewEmbedding(env, 30, 20)} },
	"MultiheadAttention": func(env *tensor.Env) []any {
		return []any{nn.NewMultiheadAttention(env, 8, nn.MultiheadConfig{Heads: 2})}
	},
	"LayerNorm": func(env *tensor.Env) []any { return []any{nn.NewLayerNorm(env, 9)} },
	"RMSNorm":   func(env *tensor.Env) []any { return []any{nn.NewRMSNorm(env, 9)} },
	"BatchNorm": func(env *tensor.Env) []any { return []any{nn.NewBatchNorm(env, 9)} },
	"GroupNorm": func(env *tensor.Env) []any { return []any{nn.NewGroupNorm(env, 3, 9)} },
	"InstanceNorm": func(env *tensor.Env) []any {
		return []any{nn.NewInstanceNorm(env, 9, nn.InstanceNormConfig{Affine: true, Track: true})}
	},
	"LSTM": func(env *tensor.Env) []any {
		return []any{nn.NewLSTM(env, 9, 7, nn.RecurrentConfig{Layers: 2, Proj: 5})}
	},
	"GRU": func(env *tensor.Env) []any {
		return []any{nn.NewGRU(env, 9, 7, nn.RecurrentConfig{Bidirectional: true})}
	},
	"RNN":      func(env *tensor.Env) []any { return []any{nn.NewRNN(env, 9, 7, nn.RecurrentConfig{})} },
	"LSTMCell": func(env *tensor.Env) []any { return []any{nn.NewLSTMCell(env, 9, 7, nn.CellConfig{})} },
	"GRUCell":  func(env *tensor.Env) []any { return []any{nn.NewGRUCell(env, 9, 7, nn.CellConfig{})} },
	"RNNCell":  func(env *tensor.Env) []any { return []any{nn.NewRNNCell(env, 9, 7, nn.CellConfig{})} },
	"TransformerEncoderLayer": func(env *tensor.Env) []any {
		return []any{nn.NewTransformerEncoderLayer(env, 8, nn.TransformerConfig{Heads: 2})}
	},
	"TransformerDecoderLayer": func(env *tensor.Env) []any {
		return []any{nn.NewTransformerDecoderLayer(env, 8, nn.TransformerConfig{Heads: 2})}
	},
	"TransformerEncoder": func(env *tensor.Env) []any {
		return []any{nn.NewTransformerEncoder(env, 2, 8, nn.TransformerConfig{Heads: 2})}
	},
	"TransformerDecoder": func(env *tensor.Env) []any {
		return []any{nn.NewTransformerDecoder(env, 2, 8, nn.TransformerConfig{Heads: 2})}
	},
	"WeightNorm": func(env *tensor.Env) []any { return []any{nn.NewWeightNorm(nn.NewLinear(env, 9, 7), 0)} },
	"LoRA": func(env *tensor.Env) []any {
		m := nn.Sequential{nn.NewLinear(env, 9, 7)}
		nn.AddLoRA(m, nn.LoRAConfig{Rank: 2})
		return []any{m}
	},
}

func averaged(env *tensor.Env, mean func(m *nn.Linear) any) []any {
	m := nn.NewLinear(env, 4, 4)
	return []any{m, mean(m)}
}

// TestMadeLayersHaveTheirStateAlone: what makes a layer, casts it or moves it leaves nothing but its state, without a collection.
func TestMadeLayersHaveTheirStateAlone(t *testing.T) {
	for _, name := range makers(t) {
		if made[name] == nil {
			t.Errorf("New%s takes an Env and is not made here", name)
		}
	}
	for name, f := range made {
		env, err := tensor.Fresh(testutil.Device())
		if err != nil {
			t.Fatal(err)
		}
		other, err := tensor.Fresh("null:h100-80")
		if err != nil {
			t.Fatal(err)
		}
		all := f(env)
		alone := func(does string) {
			t.Helper()
			want := stateBytes(all)
			if got := env.Device().Memory().Used + other.Device().Memory().Used; got != want || want == 0 {
				t.Errorf("%s, %s: %d bytes are held, and its state is %d", name, does, got, want)
			}
		}
		alone("made")
		for _, m := range all {
			nn.Cast(m, dtype.BF16)
		}
		alone("cast")
		for _, m := range all {
			nn.To(other, m)
		}
		alone("moved")
	}
}

// stateBytes is how much memory parameters and buffers take, tied ones once.
func stateBytes(all []any) (n int64) {
	seen := map[*tensor.Tensor]bool{}
	for _, m := range all {
		for _, v := range nn.State(m) {
			if !seen[v] {
				n += v.Bytes()
			}
			seen[v] = true
		}
	}
	return n
}

// makers are what the package exports that makes something in an Env, without New.
func makers(t *testing.T) (names []string) {
	for _, f := range testutil.Source(t, ".", false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			name, makes := strings.CutPrefix(fn.Name.Name, "New")
			if !makes || len(fn.Type.Params.List) == 0 || name == "KVCache" { // which has no state before its first use
				continue
			}
			if p, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr); ok {
				if s, ok := p.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Env" {
					names = append(names, name)
				}
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("found %v", names)
	}
	return names
}
