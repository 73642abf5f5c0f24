package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// The files of a run folder.
const (
	configFile    = "config.json"
	tokenizerFile = "tokenizer.json"
	modelFile     = "model.safetensors"
	logFile       = "log.jsonl"
	curveFile     = "loss.svg"
)

// kinds are the models of the tasks, as config.json names them.
var kinds = map[string]string{"digits": "convnet", "mlp": "mlp", "gpt": "gpt2", "resnet18": "resnet"}

// taskOf is the inverse of kinds.
func taskOf(kind string) string {
	for task, k := range kinds {
		if k == kind {
			return task
		}
	}
	return ""
}

// arch describes a model: what config.json holds but for the run's settings. For a GPT it is what transformers writes
// and reads.
type arch struct {
	Kind          string   `json:"model_type"`
	Architectures []string `json:"architectures,omitempty"`
	Activation    string   `json:"activation_function,omitempty"`
	*model.GPTConfig

	*model.ImageConfig
	Hidden int     `json:"hidden,omitempty"` // of an mlp
	Blocks *[4]int `json:"blocks,omitempty"` // of a resnet, with Planes
	Planes int     `json:"planes,omitempty"`
}

// file is config.json.
type file struct {
	arch
	Run *settings `json:"warpline,omitempty"`
}

// settings are the part of config.json that other programs do not know.
type settings struct {
	Version int             `json:"version"`
	Config  json.RawMessage `json:"config"`
	Text    string          `json:"text,omitempty"` // size and checksum of what a gpt learns from
}

const settingsVersion = 1

// hiddenSize is the hidden layer of an mlp.
const hiddenSize = 128

// gptArch describes a GPT as transformers does.
func gptArch(c model.GPTConfig) arch {
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	return arch{Kind: kinds["gpt"], Architectures: []string{"GPT2LMHeadModel"}, Activation: "gelu_new", GPTConfig: &c}
}

// imageArch describes the task's classifier of pictures.
func imageArch(task string, c model.ImageConfig) arch {
	a := arch{Kind: kinds[task], ImageConfig: &c}
	switch task {
	case "mlp":
		a.Hidden = hiddenSize
	case "resnet18":
		r := model.ResNet18(c.Classes)
		a.Blocks, a.Planes = &r.Blocks, r.Planes
	}
	return a
}

// check refuses descriptions that no model can be made from.
func (a *arch) check() error {
	if a.Kind == kinds["gpt"] {
		if a.GPTConfig == nil {
			return errors.New("vocab_size, n_positions, n_layer, n_head and n_embd are missing")
		}
		if a.Activation != "" && a.Activation != "gelu_new" {
			return fmt.Errorf("activation_function is %q, GPT-2 has \"gelu_new\"", a.Activation)
		}
		return a.GPTConfig.Check()
	}
	c := a.ImageConfig
	switch {
	case taskOf(a.Kind) == "":
		return fmt.Errorf("model_type %q is none that this program has", a.Kind)
	case c == nil || min(c.Channels, c.Height, c.Width, c.Classes) < 1 || max(c.Channels, c.Height, c.Width, c.Classes) > 1<<16:
		return errors.New("channels, height, width and classes must be from 1 to 65536")
	case a.Kind == "convnet" && min(c.Height, c.Width) < 4:
		return fmt.Errorf("pictures of %d×%d are too small for two poolings", c.Height, c.Width)
	case a.Kind == "mlp" && (a.Hidden < 1 || a.Hidden > 1<<20):
		return fmt.Errorf("hidden is %d", a.Hidden)
	case a.Kind == "resnet" && (a.Blocks == nil || min(a.Blocks[0], a.Blocks[1], a.Blocks[2], a.Blocks[3], a.Planes) < 1 || a.Planes > 1<<12):
		return fmt.Errorf("blocks %v and planes %d describe no residual network", a.Blocks, a.Planes)
	}
	return nil
}

// make draws a new model.
func (a *arch) make(env *tensor.Env) nn.Module {
	switch a.Kind {
	case "gpt2":
		return model.NewGPT(env, *a.GPTConfig)
	case "mlp":
		return model.NewMLP(env, *a.ImageConfig, a.Hidden)
	case "resnet":
		return model.NewResNet(env, model.ResNetConfig{Blocks: *a.Blocks, Planes: a.Planes, Channels: a.Channels, Classes: a.Classes})
	}
	return model.NewConvnet(env, *a.ImageConfig)
}

// title names the model for people.
func (a *arch) title() string {
	switch a.Kind {
	case "gpt2":
		return fmt.Sprintf("GPT-2 of %d layers, %d heads, width %d, context %d, vocabulary %d", a.Layers, a.Heads, a.GPTConfig.Width, a.Context, a.Vocab)
	case "mlp":
		return fmt.Sprintf("classifier with one hidden layer of %d", a.Hidden)
	case "resnet":
		return fmt.Sprintf("residual network of %d layers", 2+2*(a.Blocks[0]+a.Blocks[1]+a.Blocks[2]+a.Blocks[3]))
	}
	return "convolutional network"
}

// readConfig reads config.json of a folder.
func readConfig(dir string) (*file, error) {
	path := filepath.Join(dir, configFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail("give the folder of a run", "%s has no %s", dir, configFile)
	}
	if err != nil {
		return nil, explain(err, "give the folder of a run")
	}
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fail("give the folder of a run or of a published model", "%s: %v", path, err)
	}
	if f.Run != nil && f.Run.Version != settingsVersion {
		return nil, fail("use the program that wrote it", "%s is of version %d, this program reads %d", path, f.Run.Version, settingsVersion)
	}
	if err := unsupported(raw); err != nil {
		return nil, fail("choose a model without it", "%s: %v", path, err)
	}
	if err := f.check(); err != nil {
		return nil, fail("give a model that this program has: "+strings.Join(Tasks, ", "), "%s: %v", path, err)
	}
	return &f, nil
}

// unsupported refuses variants of GPT-2 that transformers knows and this program does not.
func unsupported(raw []byte) error {
	var v struct {
		Inner    *int  `json:"n_inner"`
		Width    int   `json:"n_embd"`
		Inverse  bool  `json:"scale_attn_by_inverse_layer_idx"`
		Unscaled *bool `json:"scale_attn_weights"`
		Tied     *bool `json:"tie_word_embeddings"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	switch {
	case v.Inner != nil && *v.Inner != 4*v.Width:
		return fmt.Errorf("n_inner is %d, not 4 × n_embd", *v.Inner)
	case v.Inverse:
		return errors.New("scale_attn_by_inverse_layer_idx is not supported")
	case v.Unscaled != nil && !*v.Unscaled:
		return errors.New("scale_attn_weights false is not supported")
	case v.Tied != nil && !*v.Tied:
		return errors.New("tie_word_embeddings false is not supported")
	}
	return nil
}

// readArch finds out what model a folder or a file of weights holds, and where the weights are. What a bare file does
// not tell is taken from like.
func readArch(path string, like arch) (arch, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return arch{}, "", fail("give a safetensors file, or a folder with "+configFile+" and "+modelFile, "%v", err)
	}
	if !info.IsDir() {
		a, err := inspect(path, like)
		return a, path, err
	}
	f, err := readConfig(path)
	if err != nil {
		return arch{}, "", err
	}
	if f.GPTConfig != nil {
		f.Dropout = 0 // unless this run says otherwise
	}
	weights := filepath.Join(path, modelFile)
	return f.arch, weights, agree(path, weights, f.arch)
}

// agree compares a folder's description with its weights, so that no model of a size that somebody made up is built. The
// folder of a run that was cut off has checkpoints and no such file.
func agree(dir, weights string, a arch) error {
	if !isFile(weights) {
		if (&folder{dir: dir}).saved() {
			return nil
		}
		return fail("give a finished run, or go on with --resume", "%s has no %s", dir, modelFile)
	}
	b, err := inspect(weights, a)
	if err != nil {
		return err
	}
	if said, is := a.sizes(), b.sizes(); said != is {
		return fail("give a folder whose files belong together", "%s describes %s, and %s holds %s", filepath.Join(dir, configFile), said, modelFile, is)
	}
	return nil
}

// sizes is what the shapes of weights tell.
func (a *arch) sizes() string {
	if c := a.GPTConfig; c != nil {
		return fmt.Sprintf("gpt2 of vocabulary %d, context %d, layers %d, width %d", c.Vocab, c.Context, c.Layers, c.Width)
	}
	s := fmt.Sprintf("%s of channels %d, classes %d", a.Kind, a.Channels, a.Classes)
	if a.Blocks != nil {
		return fmt.Sprintf("%s, planes %d, blocks %v", s, a.Planes, *a.Blocks)
	}
	return fmt.Sprintf("%s, hidden %d", s, a.Hidden)
}

// inspect reads the sizes of a model from the shapes in a safetensors file. What like does not say about a GPT is taken
// from the description beside the file, if there is one.
func inspect(path string, like arch) (arch, error) {
	data, err := hostmem.MapFile(path)
	if err != nil {
		return arch{}, explain(err, "give a safetensors file")
	}
	defer data.Close()
	f, err := safetensors.Parse(data.Bytes())
	if err != nil {
		return arch{}, fail("give a safetensors file", "%s: %v", path, err)
	}
	shapes := map[string][]int{}
	for _, e := range f.Entries {
		shapes[strings.TrimPrefix(strings.TrimPrefix(e.Name, "module."), "transformer.")] = e.Shape
	}
	if like.GPTConfig == nil && filepath.Base(path) == modelFile {
		if f, err := readConfig(filepath.Dir(path)); err == nil {
			like.GPTConfig = f.GPTConfig
		}
	}
	a, err := recognise(shapes, like)
	if err == nil {
		err = a.takes(shapes)
	}
	if err == nil {
		err = a.check()
	}
	if err != nil {
		return arch{}, fail("give weights of one of "+strings.Join(Tasks, ", "), "%s: %v", path, err)
	}
	return a, nil
}

// takes compares the size of pictures with the first linear layer.
func (a *arch) takes(shapes map[string][]int) error {
	var want, has int
	name := "1.weight"
	switch a.Kind {
	case "mlp":
		want, has = a.Channels*a.Height*a.ImageConfig.Width, shapes[name][1]
	case "convnet":
		if name = "7.weight"; len(shapes[name]) != 2 {
			return fmt.Errorf("%s is no matrix", name)
		}
		want, has = 32*(a.Height/4)*(a.ImageConfig.Width/4), shapes[name][1]
	}
	if want != has {
		return fmt.Errorf("%s takes %d values, and pictures of %d×%d×%d give %d", name, has, a.Channels, a.Height, a.ImageConfig.Width, want)
	}
	return nil
}

// recognise tells a model by its tensors.
func recognise(shapes map[string][]int, like arch) (arch, error) {
	rank := func(name string, n int) bool { return len(shapes[name]) == n }
	switch {
	case rank("wte.weight", 2) && rank("wpe.weight", 2):
		return gptSizes(shapes, like), nil
	case rank("layer1.0.conv1.weight", 4) && rank("conv1.weight", 4) && rank("fc.weight", 2):
		c := model.ImageConfig{Channels: shapes["conv1.weight"][1], Height: 224, Width: 224, Classes: shapes["fc.weight"][0]}
		a := arch{Kind: "resnet", ImageConfig: &c, Blocks: &[4]int{}, Planes: shapes["conv1.weight"][0]}
		for i := range a.Blocks {
			a.Blocks[i] = count(shapes, fmt.Sprintf("layer%d.%%d.conv1.weight", i+1))
		}
		return a.sized(like), nil
	case rank("0.weight", 4) && rank("9.weight", 2):
		return arch{Kind: "convnet", ImageConfig: &model.ImageConfig{Channels: shapes["0.weight"][1], Height: 28, Width: 28, Classes: shapes["9.weight"][0]}}.sized(like), nil
	case rank("1.weight", 2) && rank("3.weight", 2):
		c := model.Digits
		c.Classes = shapes["3.weight"][0]
		return arch{Kind: "mlp", ImageConfig: &c, Hidden: shapes["1.weight"][0]}.sized(like), nil
	}
	return arch{}, fmt.Errorf("its %d tensors are those of no model that this program has", len(shapes))
}

// sized takes the size of pictures, which weights do not tell, from the data.
func (a arch) sized(like arch) arch {
	if like.ImageConfig != nil {
		a.Height, a.ImageConfig.Width = like.Height, like.ImageConfig.Width
		if a.Kind == "mlp" {
			a.Channels = like.Channels
		}
	}
	return a
}

// gptSizes reads GPT-2's sizes. What shapes do not tell is like's, or as in published models, whose heads are 64 wide.
func gptSizes(shapes map[string][]int, like arch) arch {
	c := model.GPTConfig{Vocab: shapes["wte.weight"][0], Width: shapes["wte.weight"][1], Context: shapes["wpe.weight"][0], Layers: count(shapes, "h.%d.ln_1.weight")}
	c.Heads = max(c.Width/64, 1)
	if like.GPTConfig != nil {
		c.Heads, c.Eps = like.Heads, like.Eps
	}
	return gptArch(c)
}

// count is the number of consecutive names that exist.
func count(shapes map[string][]int, format string) int {
	n := 0
	for shapes[fmt.Sprintf(format, n)] != nil {
		n++
	}
	return n
}
