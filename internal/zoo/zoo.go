// Package zoo has the models of the command: how each is described, made, told by the shapes of its weights and trained
// unless somebody says otherwise. One more is a file with its [Kind], and a row of [Kinds].
package zoo

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Kinds are the models, in the order in which people are told of the tasks that train them.
var Kinds = []*Kind{&convnet, &mlp, &gpt, &resnet, &resnet50, &tabular, &triage, &vit, &lstm, &unet, &vae}

// Kind is all that is particular to a model of this program.
type Kind struct {
	Name     string // in config.json
	Task     string // that trains it
	Help     string // what the task is, for people
	Data     Data   // that it learns from
	Defaults Defaults

	// Loss is the mean loss of a batch, and the result that is measured; nil: the cross entropy of Forward's.
	Loss    func(a *Arch, m nn.Module, x, y *tensor.Tensor) (loss, out *tensor.Tensor)
	Measure func(a *Arch, m *metric.Meters, out, y *tensor.Tensor) // nil: accuracy; of one that writes it is not asked
	Input   func(a *Arch) []int                                    // the shape of a sample; nil: that of its pictures

	Classes []string // names of classes that do not come from the data; nil: numbers
	Areas   bool     // each pixel of a picture has a class
	Unit    bool     // a Painter, of pictures whose values are from 0 to 1

	// Show gives what people look at of samples x that are held out, with labels y; nil: whole pictures and their classes, if it tells
	// these apart.
	Show func(a *Arch, m nn.Module, x, y *tensor.Tensor) []View

	Check func(a *Arch) error
	Make  func(env *tensor.Env, a *Arch) nn.Module
	Begin func(a *Arch)        // completes the description of a new one, which has the sizes of the data; nil: it has all
	Title func(a *Arch) string // for people
	Sizes func(a *Arch) string // of the shapes of weights, to compare descriptions by

	// The following are of models that write.
	Reads func(a *Arch) Writing    // their sizes
	Write func(a *Arch, w Writing) // gives a description, which may be new, other sizes, and no other one that shares them
	Row   int                      // tokens that a row has at least that is scored, where that is not what a run learns from

	// Recognise describes the model that has tensors of these shapes, if it is of this kind. What shapes do not tell is
	// like's, or usual.
	Recognise func(s Shapes, like *Arch) (Arch, bool)

	// The following are of classifiers of pictures.
	First string            // weight of the first linear layer; empty: it takes pictures of any height and width
	Gives func(a *Arch) int // values that pictures give it
	Norms bool              // it has batch norms: one sample has no variance to normalise by
}

// View is grey pictures [n, height, width], values from 0 to 1, with what they show.
type View struct {
	Caption string
	Greys   *tensor.Tensor
}

// Defaults are settings of a task that are not those of most: 0 stands for these.
type Defaults struct {
	Steps, Epochs, Batch int // Epochs win over Steps
	LR, Average          float64
	Decay                float64 // 0: the optimizer's
	Patience             int     // scores without a better one that end a run; 0: it does not end early

	Context, Layers, Width int // of models that write
}

// Data is what a model learns from.
type Data int

// The kinds of data.
const (
	Pictures Data = iota // with labels
	Text                 // or tokens
	Table                // rows of numbers and categories
	Drawn                // what is drawn from a seed, and has no other form
)

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
		if k.Data == Text || !writing {
			names = append(names, k.Task)
		}
	}
	return names
}

// Painters are the names of tasks whose models draw.
func Painters() (names []string) {
	for _, k := range Kinds {
		if k.Unit {
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

// Reader is an author that reads a text piece by piece, and goes on from the state that the piece before has left.
type Reader interface {
	Author

	Begin(env *tensor.Env, rows int) nn.RecurrentState
	ForwardFrom(tokens *tensor.Tensor, s nn.RecurrentState) (scores *tensor.Tensor, end nn.RecurrentState)
	LossFrom(tokens, labels *tensor.Tensor, s nn.RecurrentState, opts ...nn.CrossEntropyOption) (loss *tensor.Tensor, end nn.RecurrentState)
}

// Painter is a model that draws pictures, values from 0 to 1.
type Painter interface {
	nn.Module // from a picture to the logits of what it makes of it

	// Bound has the two terms of an upper bound of -log p(x), in nats, means over pictures: of pixels and of codes.
	Bound(x *tensor.Tensor) (reconstruction, codes *tensor.Tensor)

	// Draw gives pictures [n, channels, height, width].
	Draw(env *tensor.Env, n int) *tensor.Tensor
}

// Writing are the sizes of a model that writes.
type Writing struct {
	Vocab, Layers, Width int
	Context              int // tokens that it sees at most; 0: any number
	Heads                int // of attention; 0: it has none
	Dropout              float64
}

// Arch describes a model: what config.json holds but for a run's settings. For a GPT it is what transformers writes and
// reads.
type Arch struct {
	Kind          string   `json:"model_type"`
	Architectures []string `json:"architectures,omitempty"`
	Activation    string   `json:"activation_function,omitempty"`
	*model.GPTConfig

	*model.ImageConfig
	*model.TableConfig
	*model.TriageConfig
	*model.ViTConfig
	*model.UNetConfig
	*model.VAEConfig
	LSTM *model.LSTMConfig `json:"lstm,omitempty"`

	Hidden int     `json:"hidden,omitempty"` // of an mlp
	Blocks *[4]int `json:"blocks,omitempty"` // of a resnet, with Planes
	Planes int     `json:"planes,omitempty"`
}

// Begun describes the task's new model of what is drawn for it.
func Begun(task string) Arch { return begun(task, Arch{}) }

// Tabular describes the task's new model of rows.
func Tabular(task string, c model.TableConfig) Arch { return begun(task, Arch{TableConfig: &c}) }

// Writer describes the task's new language model.
func Writer(task string, w Writing) Arch {
	var a Arch
	TrainedBy(task).Write(&a, w)
	return begun(task, a)
}

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
	return k != nil && k.Data == Text
}

// Attends tells a language model that has attention.
func (a *Arch) Attends() bool { return a.Writing().Heads > 0 }

// Writing are the sizes of a model that writes, of others zeros.
func (a *Arch) Writing() Writing {
	if !a.Writes() {
		return Writing{}
	}
	return a.Of().Reads(a)
}

// Resize gives a model that writes other sizes; copies of the description keep theirs.
func (a *Arch) Resize(w Writing) { a.Of().Write(a, w) }

// Scored is how many tokens a row has that is scored, of a model that learns from rows of context.
func (a *Arch) Scored(context int) int { return max(context, a.Of().Row) }

// Units are what a data set of the model is counted in, for people.
func (a *Arch) Units() string {
	switch k := a.Of(); {
	case k != nil && k.Data == Text:
		return "tokens"
	case k != nil && k.Data == Table:
		return "rows"
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

// Input is the shape of a sample; of a model that writes there is none.
func (a *Arch) Input() []int {
	switch k := a.Of(); {
	case k.Input != nil:
		return k.Input(a)
	case a.ImageConfig != nil:
		return []int{a.Channels, a.Height, a.ImageConfig.Width}
	}
	return nil
}

// Loss is the mean loss of a batch, and the result that is measured.
func (a *Arch) Loss(m nn.Module, x, y *tensor.Tensor) (loss, out *tensor.Tensor) {
	if k := a.Of(); k.Loss != nil {
		return k.Loss(a, m, x, y)
	}
	out = m.Forward(x)
	return nn.CrossEntropy(out, y), out
}

// Measure adds what the model makes of a batch that is held out to its figures.
func (a *Arch) Measure(m *metric.Meters, out, y *tensor.Tensor) {
	if k := a.Of(); k.Measure != nil {
		k.Measure(a, m, out, y)
		return
	}
	m.Accuracy(out, y)
}

// Pictured tells a model whose results are classes of whole pictures.
func (a *Arch) Pictured() bool {
	k := a.Of()
	return k.Data == Pictures && k.Show == nil
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
