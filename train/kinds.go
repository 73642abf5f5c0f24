package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// kind is all that is particular to a model of this program.
type kind struct {
	name  string // in config.json
	task  string // that trains it
	check func(a *arch) error
	make  func(env *tensor.Env, a *arch) nn.Module
	title func(a *arch) string // for people
	sizes func(a *arch) string // of the shapes of weights, to compare descriptions by

	// recognise describes the model that has tensors of these shapes, if it is of this kind. What shapes do not tell is
	// like's, or usual.
	recognise func(s shapes, like *arch) (arch, bool)

	// The following are of classifiers of pictures.
	begin func(a *arch)     // sets the sizes of a new one that the data does not give; nil: there are none
	first string            // weight of the first linear layer; empty: it takes pictures of any height and width
	gives func(a *arch) int // values that pictures give it
	norms bool              // it has batch norms: one sample has no variance to normalise by
}

// anySize tells a model that takes pictures of any height and width.
func (k *kind) anySize() bool { return k.first == "" }

// kinds are in the order in which weights are compared with them.
var kinds = []*kind{&gpt, &resnet, &convnet, &mlp}

// kindOf is the kind with that name, or nil.
func kindOf(name string) *kind {
	if i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name }); i >= 0 {
		return kinds[i]
	}
	return nil
}

// kindFor is the kind that a task trains.
func kindFor(task string) *kind {
	return kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.task == task })]
}

// shapes are those of a model's tensors by name.
type shapes map[string][]int

// rank tells whether there is a tensor with so many dimensions.
func (s shapes) rank(name string, n int) bool { return len(s[name]) == n }

// count is the number of consecutive names that exist.
func (s shapes) count(format string) int {
	n := 0
	for s[fmt.Sprintf(format, n)] != nil {
		n++
	}
	return n
}

// gptName is what transformers calls GPT-2.
const gptName = "gpt2"

var gpt = kind{
	name: gptName, task: "gpt",
	check: func(a *arch) error {
		if a.GPTConfig == nil {
			return errors.New("vocab_size, n_positions, n_layer, n_head and n_embd are missing")
		}
		if a.Activation != "" && a.Activation != "gelu_new" {
			return fmt.Errorf("activation_function is %q, GPT-2 has \"gelu_new\"", a.Activation)
		}
		return a.GPTConfig.Check()
	},
	make: func(env *tensor.Env, a *arch) nn.Module { return model.NewGPT(env, *a.GPTConfig) },
	title: func(a *arch) string {
		return fmt.Sprintf("GPT-2 of %d layers, %d heads, width %d, context %d, vocabulary %d", a.Layers, a.Heads, a.GPTConfig.Width, a.Context, a.Vocab)
	},
	sizes: func(a *arch) string {
		return fmt.Sprintf("gpt2 of vocabulary %d, context %d, layers %d, width %d", a.Vocab, a.Context, a.Layers, a.GPTConfig.Width)
	},
	recognise: func(s shapes, like *arch) (arch, bool) {
		if !s.rank("wte.weight", 2) || !s.rank("wpe.weight", 2) {
			return arch{}, false
		}
		c := model.GPTConfig{Vocab: s["wte.weight"][0], Width: s["wte.weight"][1], Context: s["wpe.weight"][0], Layers: s.count("h.%d.ln_1.weight")}
		c.Heads = max(c.Width/64, 1) // as in published models
		if like.GPTConfig != nil {
			c.Heads, c.Eps = like.Heads, like.Eps
		}
		return gptArch(c), true
	},
}

var resnet = kind{
	name: "resnet", task: "resnet18", norms: true,
	check: pictures(func(a *arch) error {
		if b := a.Blocks; b == nil || min(b[0], b[1], b[2], b[3], a.Planes) < 1 || a.Planes > 1<<12 {
			return fmt.Errorf("blocks %v and planes %d describe no residual network", b, a.Planes)
		}
		return nil
	}),
	make: func(env *tensor.Env, a *arch) nn.Module {
		return model.NewResNet(env, model.ResNetConfig{Blocks: *a.Blocks, Planes: a.Planes, Channels: a.Channels, Classes: a.Classes})
	},
	title: func(a *arch) string {
		return fmt.Sprintf("residual network of %d layers", 2+2*(a.Blocks[0]+a.Blocks[1]+a.Blocks[2]+a.Blocks[3]))
	},
	sizes: func(a *arch) string { return fmt.Sprintf("%s, planes %d, blocks %v", a.ends(), a.Planes, *a.Blocks) },
	recognise: func(s shapes, like *arch) (arch, bool) {
		if !s.rank("layer1.0.conv1.weight", 4) || !s.rank("conv1.weight", 4) || !s.rank("fc.weight", 2) {
			return arch{}, false
		}
		c := model.ImageConfig{Channels: s["conv1.weight"][1], Height: 224, Width: 224, Classes: s["fc.weight"][0]}
		a := arch{Kind: "resnet", ImageConfig: &c, Blocks: &[4]int{}, Planes: s["conv1.weight"][0]}
		for i := range a.Blocks {
			a.Blocks[i] = s.count(fmt.Sprintf("layer%d.%%d.conv1.weight", i+1))
		}
		return a.sized(like), true
	},
	begin: func(a *arch) {
		r := model.ResNet18(a.Classes)
		a.Blocks, a.Planes = &r.Blocks, r.Planes
	},
}

var convnet = kind{
	name: "convnet", task: "digits",
	check: pictures(func(a *arch) error {
		if c := a.ImageConfig; min(c.Height, c.Width) < 4 {
			return fmt.Errorf("pictures of %d×%d are too small for two poolings", c.Height, c.Width)
		}
		return nil
	}),
	make:  func(env *tensor.Env, a *arch) nn.Module { return model.NewConvnet(env, *a.ImageConfig) },
	title: func(*arch) string { return "convolutional network" },
	sizes: (*arch).ends,
	recognise: func(s shapes, like *arch) (arch, bool) {
		if !s.rank("0.weight", 4) || !s.rank("7.weight", 2) || !s.rank("9.weight", 2) {
			return arch{}, false
		}
		c := model.ImageConfig{Channels: s["0.weight"][1], Height: 28, Width: 28, Classes: s["9.weight"][0]}
		return arch{Kind: "convnet", ImageConfig: &c}.sized(like), true
	},
	first: "7.weight",
	gives: func(a *arch) int { return 32 * (a.Height / 4) * (a.ImageConfig.Width / 4) },
}

// hiddenSize is the hidden layer of a new mlp.
const hiddenSize = 128

var mlp = kind{
	name: "mlp", task: "mlp",
	check: pictures(func(a *arch) error {
		if a.Hidden < 1 || a.Hidden > 1<<20 {
			return fmt.Errorf("hidden is %d", a.Hidden)
		}
		return nil
	}),
	make:  func(env *tensor.Env, a *arch) nn.Module { return model.NewMLP(env, *a.ImageConfig, a.Hidden) },
	title: func(a *arch) string { return fmt.Sprintf("classifier with one hidden layer of %d", a.Hidden) },
	sizes: func(a *arch) string { return fmt.Sprintf("%s, hidden %d", a.ends(), a.Hidden) },
	recognise: func(s shapes, like *arch) (arch, bool) {
		if !s.rank("1.weight", 2) || !s.rank("3.weight", 2) {
			return arch{}, false
		}
		c := model.Digits
		c.Classes = s["3.weight"][0]
		if like.ImageConfig != nil { // a matrix does not tell channels apart
			c.Channels = like.Channels
		}
		return arch{Kind: "mlp", ImageConfig: &c, Hidden: s["1.weight"][0]}.sized(like), true
	},
	begin: func(a *arch) { a.Hidden = hiddenSize },
	first: "1.weight",
	gives: func(a *arch) int { return a.Channels * a.Height * a.ImageConfig.Width },
}

// pictures checks what all classifiers of pictures have, and then a kind's own.
func pictures(own func(a *arch) error) func(a *arch) error {
	return func(a *arch) error {
		c := a.ImageConfig
		if c == nil || min(c.Channels, c.Height, c.Width, c.Classes) < 1 || max(c.Channels, c.Height, c.Width, c.Classes) > 1<<16 {
			return errors.New("channels, height, width and classes must be from 1 to 65536")
		}
		return own(a)
	}
}

// ends are the sizes of a classifier's first and last layer.
func (a *arch) ends() string {
	return fmt.Sprintf("%s of channels %d, classes %d", a.Kind, a.Channels, a.Classes)
}

// sized takes the size of pictures, which weights do not tell, from the data.
func (a arch) sized(like *arch) arch {
	if like.ImageConfig != nil {
		a.Height, a.ImageConfig.Width = like.Height, like.ImageConfig.Width
	}
	return a
}
