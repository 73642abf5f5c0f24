// Package zoo has the models of the command: how each is described, made, told by the shapes of its weights and trained
// unless somebody says otherwise. One more is a file with its [Kind], and a row of [Kinds].
package zoo

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Kinds are the models, in the order in which people are told of the tasks that train them.
var Kinds = []*Kind{&convnet, &mlp, &gpt, &resnet, &resnet50}

// Kind is all that is particular to a model of this program.
type Kind struct {
	Name     string // in config.json
	Task     string // that trains it
	Help     string // what the task is, for people
	Text     bool   // it writes: it learns from a text or from tokens. Others tell pictures apart
	Defaults Defaults

	Check func(a *Arch) error
	Make  func(env *tensor.Env, a *Arch) nn.Module
	Begin func(a *Arch)        // completes the description of a new one, which has the sizes of the data; nil: it has all
	Title func(a *Arch) string // for people
	Sizes func(a *Arch) string // of the shapes of weights, to compare descriptions by

	// Recognise describes the model that has tensors of these shapes, if it is of this kind. What shapes do not tell is
	// like's, or usual.
	Recognise func(s Shapes, like *Arch) (Arch, bool)

	// The following are of classifiers of pictures.
	First string            // weight of the first linear layer; empty: it takes pictures of any height and width
	Gives func(a *Arch) int // values that pictures give it
	Norms bool              // it has batch norms: one sample has no variance to normalise by
}

// Defaults are settings of a task that are not those of most: 0 stands for these.
type Defaults struct {
	Steps, Batch int
	LR, Average  float64
}

// AnySize tells a model that takes pictures of any height and width.
func (k *Kind) AnySize() bool { return k.First == "" }

// Named is the kind with that name, or nil.
func Named(name string) *Kind { return find(func(k *Kind) bool { return k.Name == name }) }

// TrainedBy is the kind that a task trains, or nil.
func TrainedBy(task string) *Kind { return find(func(k *Kind) bool { return k.Task == task }) }

func find(is func(k *Kind) bool) *Kind {
	if i := slices.IndexFunc(Kinds, is); i >= 0 {
		return Kinds[i]
	}
	return nil
}

// Tasks are the names of tasks; writing asks for those whose models write.
func Tasks(writing bool) (names []string) {
	for _, k := range Kinds {
		if k.Text || !writing {
			names = append(names, k.Task)
		}
	}
	return names
}

// Author is a model that writes.
type Author interface {
	nn.Module

	// Loss is that of Forward's scores against the tokens that follow.
	Loss(tokens, labels *tensor.Tensor, opts ...nn.CrossEntropyOption) *tensor.Tensor

	// Generate goes on with a prompt, token by token.
	Generate(env *tensor.Env, prompt []int64, n int, c model.SampleConfig) iter.Seq[int64]
}

// Arch describes a model: what config.json holds but for a run's settings. For a GPT it is what transformers writes and
// reads.
type Arch struct {
	Kind          string   `json:"model_type"`
	Architectures []string `json:"architectures,omitempty"`
	Activation    string   `json:"activation_function,omitempty"`
	*model.GPTConfig

	*model.ImageConfig
	Hidden int     `json:"hidden,omitempty"` // of an mlp
	Blocks *[4]int `json:"blocks,omitempty"` // of a resnet, with Planes
	Planes int     `json:"planes,omitempty"`
}

// Writer describes the task's new language model.
func Writer(task string, c model.GPTConfig) Arch { return begun(task, Arch{GPTConfig: &c}) }

// Classifier describes the task's new classifier of pictures.
func Classifier(task string, c model.ImageConfig) Arch { return begun(task, Arch{ImageConfig: &c}) }

func begun(task string, a Arch) Arch {
	k := TrainedBy(task)
	a.Kind = k.Name
	if k.Begin != nil {
		k.Begin(&a)
	}
	return a
}

// Of is what is particular to the model. It is there once Check is passed.
func (a *Arch) Of() *Kind { return Named(a.Kind) }

// Writes tells a language model.
func (a *Arch) Writes() bool {
	k := a.Of()
	return k != nil && k.Text
}

// Units are what a data set of the model is counted in, for people.
func (a *Arch) Units() string {
	if a.Writes() {
		return "tokens"
	}
	return "samples"
}

// Check refuses descriptions that no model can be made from.
func (a *Arch) Check() error {
	if k := a.Of(); k != nil {
		return k.Check(a)
	}
	return fmt.Errorf("model_type %q is none that this program has", a.Kind)
}

// Make draws a new model.
func (a *Arch) Make(env *tensor.Env) nn.Module { return a.Of().Make(env, a) }

// Title names the model for people.
func (a *Arch) Title() string { return a.Of().Title(a) }

// Sizes is what the shapes of weights tell.
func (a *Arch) Sizes() string { return a.Of().Sizes(a) }

// Recognise tells a model by its tensors.
func Recognise(s Shapes, like *Arch) (Arch, error) {
	for _, k := range Kinds {
		a, ok := k.Recognise(s, like)
		if !ok {
			continue
		}
		if k.AnySize() {
			return a, a.Check()
		}
		if gives, takes := k.Gives(&a), s[k.First][1]; gives != takes {
			return a, fmt.Errorf("%s takes %d values, and pictures of %d×%d×%d give %d", k.First, takes, a.Channels, a.Height, a.ImageConfig.Width, gives)
		}
		return a, a.Check()
	}
	return Arch{}, fmt.Errorf("its %d tensors are those of no model that this program has", len(s))
}

// Shapes are those of a model's tensors by name.
type Shapes map[string][]int

// rank tells whether there is a tensor with so many dimensions.
func (s Shapes) rank(name string, n int) bool { return len(s[name]) == n }

// count is the number of consecutive names that exist.
func (s Shapes) count(format string) int {
	n := 0
	for s[fmt.Sprintf(format, n)] != nil {
		n++
	}
	return n
}

// pictures checks what all classifiers of pictures have, and then a kind's own.
func pictures(own func(a *Arch) error) func(a *Arch) error {
	return func(a *Arch) error {
		c := a.ImageConfig
		if c == nil || min(c.Channels, c.Height, c.Width, c.Classes) < 1 || max(c.Channels, c.Height, c.Width, c.Classes) > 1<<16 {
			return errors.New("channels, height, width and classes must be from 1 to 65536")
		}
		return own(a)
	}
}

// ends are the sizes of a classifier's first and last layer.
func (a *Arch) ends() string {
	return fmt.Sprintf("%s of channels %d, classes %d", a.Kind, a.Channels, a.Classes)
}

// sized takes the size of pictures, which weights do not tell, from the data.
func (a Arch) sized(like *Arch) Arch {
	if like.ImageConfig != nil {
		a.Height, a.ImageConfig.Width = like.Height, like.ImageConfig.Width
	}
	return a
}
