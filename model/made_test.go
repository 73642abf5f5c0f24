package model_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

var picture = model.ImageConfig{Channels: 2, Height: 8, Width: 8, Classes: 3}

// made are small models, by the functions that make them.
var made = map[string]func(env *tensor.Env) any{
	"GPT": func(env *tensor.Env) any {
		return model.NewGPT(env, model.GPTConfig{Vocab: 11, Context: 4, Layers: 2, Heads: 2, Width: 8})
	},
	"LSTM": func(env *tensor.Env) any {
		return model.NewLSTM(env, model.LSTMConfig{Vocab: 11, Embedding: 4, Layers: 2, Width: 8})
	},
	"MLP":     func(env *tensor.Env) any { return model.NewMLP(env, picture, 8) },
	"Convnet": func(env *tensor.Env) any { return model.NewConvnet(env, picture) },
	"ResNet": func(env *tensor.Env) any {
		return model.NewResNet(env, model.ResNetConfig{Blocks: [4]int{1, 1, 1, 1}, Bottleneck: true, Planes: 2, Channels: 2, Classes: 3})
	},
	"Table": func(env *tensor.Env) any { return model.NewTable(env, model.TableConfig{Inputs: 5, Outputs: 2}, 8) },
	"Triage": func(env *tensor.Env) any {
		return model.NewTriage(env, model.TriageConfig{Tokens: 4, Features: 6, Outcomes: 3}, 8)
	},
	"UNet": func(env *tensor.Env) any { return model.NewUNet(env, picture, model.UNetConfig{Base: 3, Halvings: 2}) },
	"VAE":  func(env *tensor.Env) any { return model.NewVAE(env, picture, model.VAEConfig{Hidden: 7, Code: 3}) },
	"ViT": func(env *tensor.Env) any {
		return model.NewViT(env, picture, model.ViTConfig{Patch: 4, Model: 8, Depth: 2, AttentionHeads: 2})
	},
}

// TestMadeModelsHaveTheirStateAlone: what makes a model leaves nothing but its state, without a collection.
func TestMadeModelsHaveTheirStateAlone(t *testing.T) {
	for _, f := range testutil.Source(t, ".", false) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				if name, makes := strings.CutPrefix(fn.Name.Name, "New"); makes && made[name] == nil {
					t.Errorf("New%s is not made here", name)
				}
			}
		}
	}
	for name, f := range made {
		env := open(t)
		want, seen := int64(0), map[*tensor.Tensor]bool{} // tied ones are there once
		for _, v := range nn.State(f(env)) {
			if !seen[v] {
				want += v.Bytes()
			}
			seen[v] = true
		}
		if got := env.Device().Memory().Used; got != want || want == 0 {
			t.Errorf("%s: %d bytes are held, and its state is %d", name, got, want)
		}
	}
}
