package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// gpt is GPT-2, described as transformers does.
var gpt = Kind{
	Name: "gpt2", Task: "gpt", Data: Text, Defaults: Defaults{Steps: 1500, Batch: 24},
	Help: "GPT-2 on a text or on a file of tokens",
	Check: func(a *Arch) error {
		if a.GPTConfig == nil {
			return errors.New("vocab_size, n_positions, n_layer, n_head and n_embd are missing")
		}
		if a.Activation != "" && a.Activation != "gelu_new" {
			return fmt.Errorf("activation_function is %q, GPT-2 has \"gelu_new\"", a.Activation)
		}
		return a.GPTConfig.Check()
	},
	Make: func(env *tensor.Env, a *Arch) nn.Module { return model.NewGPT(env, *a.GPTConfig) },
	Title: func(a *Arch) string {
		return fmt.Sprintf("GPT-2 of %d layers, %d heads, width %d, context %d, vocabulary %d", a.Layers, a.Heads, a.GPTConfig.Width, a.Context, a.Vocab)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("gpt2 of vocabulary %d, context %d, layers %d, width %d", a.Vocab, a.Context, a.Layers, a.GPTConfig.Width)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("wte.weight", 2) || !s.rank("wpe.weight", 2) {
			return Arch{}, false
		}
		c := model.GPTConfig{Vocab: s["wte.weight"][0], Width: s["wte.weight"][1], Context: s["wpe.weight"][0], Layers: s.count("h.%d.ln_1.weight")}
		c.Heads = max(c.Width/64, 1) // as in published models
		if like.GPTConfig != nil {
			c.Heads, c.Eps = like.Heads, like.Eps
		}
		a := Arch{Kind: "gpt2", GPTConfig: &c}
		beginGPT(&a)
		return a, true
	},
	Begin: beginGPT,
	Reads: func(a *Arch) Writing {
		c := a.GPTConfig
		return Writing{Vocab: c.Vocab, Context: c.Context, Layers: c.Layers, Heads: c.Heads, Width: c.Width, Dropout: c.Dropout}
	},
	Write: func(a *Arch, w Writing) {
		c := model.GPTConfig{Vocab: w.Vocab, Context: w.Context, Layers: w.Layers, Heads: w.Heads, Width: w.Width, Dropout: w.Dropout}
		if a.GPTConfig != nil {
			c.Eps = a.Eps
		}
		a.GPTConfig = &c
	},
}

// beginGPT adds what transformers writes.
func beginGPT(a *Arch) {
	a.Architectures, a.Activation = []string{"GPT2LMHeadModel"}, "gelu_new"
	if a.Eps == 0 {
		a.Eps = 1e-5
	}
}
