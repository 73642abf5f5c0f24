package nn_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
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
