package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// The files of a run folder.
const (
	configFile    = "config.json"
	tokenizerFile = "tokenizer.json"
	logFile       = "log.jsonl"
	curveFile     = "loss.svg"
)

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

// gptArch describes a GPT as transformers does.
func gptArch(c model.GPTConfig) arch {
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	return arch{Kind: gptName, Architectures: []string{"GPT2LMHeadModel"}, Activation: "gelu_new", GPTConfig: &c}
}

// imageArch describes the task's classifier of pictures.
func imageArch(task string, c model.ImageConfig) arch {
	k := kindFor(task)
	a := arch{Kind: k.name, ImageConfig: &c}
	if k.begin != nil {
		k.begin(&a)
	}
	return a
}

// kind is what is particular to the model. It is there once check is passed.
func (a *arch) kind() *kind { return kindOf(a.Kind) }

// writes tells a language model.
func (a *arch) writes() bool { return a.Kind == gptName }

// units are what a data set of the model is counted in, for people.
func (a *arch) units() string {
	if a.writes() {
		return "tokens"
	}
	return "samples"
}

// check refuses descriptions that no model can be made from.
func (a *arch) check() error {
	if k := a.kind(); k != nil {
		return k.check(a)
	}
	return fmt.Errorf("model_type %q is none that this program has", a.Kind)
}

// make draws a new model.
func (a *arch) make(env *tensor.Env) nn.Module { return a.kind().make(env, a) }

// title names the model for people.
func (a *arch) title() string { return a.kind().title(a) }

// sizes is what the shapes of weights tell.
func (a *arch) sizes() string { return a.kind().sizes(a) }

// runIn names a run's folder that may be meant by dir, if there is one: of a checkpoint the run, of runs the newest.
func runIn(dir string) string {
	if run := filepath.Dir(filepath.Clean(dir)); strings.HasPrefix(filepath.Base(dir), "checkpoint-") && isFile(filepath.Join(run, configFile)) {
		return ", such as " + run
	}
	var found string
	var newest time.Time
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(filepath.Join(path, configFile)); err == nil && info.ModTime().After(newest) {
			found, newest = ", such as "+path, info.ModTime()
		}
	}
	return found
}

// readConfig reads config.json of a folder.
func readConfig(dir string) (*file, error) {
	path := filepath.Join(dir, configFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail("give the folder of a run"+runIn(dir), "%s has no %s", dir, configFile)
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

// found is a model in a file or a folder.
type found struct {
	arch
	weights string // where they are
	file    *file  // config.json of the folder; nil: a bare file of weights
}

// readArch finds out what model a folder or a file of weights holds, and where the weights are. What a bare file does
// not tell is taken from like.
func readArch(path string, like arch) (*found, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fail("give a safetensors file, or a folder with "+configFile+" and "+ckpt.ModelFile, "cannot read %s: %v", path, cause(err))
	}
	if !info.IsDir() {
		a, err := inspect(path, like)
		return &found{a, path, nil}, err
	}
	f, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	if f.writes() {
		f.Dropout = 0 // unless this run says otherwise
	}
	weights := filepath.Join(path, ckpt.ModelFile)
	return &found{f.arch, weights, f}, agree(path, weights, f.arch)
}

// cause is what the system says, without the call and the path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// agree compares a folder's description with its weights, so that no model of a size that somebody made up is built. The
// folder of a run that was cut off has checkpoints and no such file.
func agree(dir, weights string, a arch) error {
	if !isFile(weights) {
		if saved(dir) {
			return nil
		}
		return fail("give a finished run, or go on with --resume", "%s has no %s", dir, ckpt.ModelFile)
	}
	b, err := inspect(weights, a)
	if err != nil {
		return err
	}
	if said, is := a.sizes(), b.sizes(); said != is {
		return fail("give a folder whose files belong together", "%s describes %s, and %s holds %s", filepath.Join(dir, configFile), said, ckpt.ModelFile, is)
	}
	return nil
}

// inspect reads the sizes of a model from the shapes in a safetensors file. What like does not say about a GPT is taken
// from the description beside the file, if there is one.
func inspect(path string, like arch) (arch, error) {
	found, err := ckpt.Shapes(path)
	if err != nil {
		return arch{}, explain(err, "give a safetensors file")
	}
	s := shapes{}
	for name, shape := range found {
		s[strings.TrimPrefix(strings.TrimPrefix(name, "module."), "transformer.")] = shape
	}
	if like.GPTConfig == nil && filepath.Base(path) == ckpt.ModelFile {
		if f, err := readConfig(filepath.Dir(path)); err == nil {
			like.GPTConfig = f.GPTConfig
		}
	}
	a, err := recognise(s, &like)
	if err != nil {
		return arch{}, fail("give weights of one of "+strings.Join(Tasks, ", "), "%s: %v", path, err)
	}
	return a, nil
}

// recognise tells a model by its tensors.
func recognise(s shapes, like *arch) (arch, error) {
	for _, k := range kinds {
		a, ok := k.recognise(s, like)
		if !ok {
			continue
		}
		if k.anySize() {
			return a, a.check()
		}
		if gives, takes := k.gives(&a), s[k.first][1]; gives != takes {
			return a, fmt.Errorf("%s takes %d values, and pictures of %d×%d×%d give %d", k.first, takes, a.Channels, a.Height, a.ImageConfig.Width, gives)
		}
		return a, a.check()
	}
	return arch{}, fmt.Errorf("its %d tensors are those of no model that this program has", len(s))
}
