package zoo

import (
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// hiddenSize is the hidden layer of a new mlp.
const hiddenSize = 128

var mlp = Kind{
	Name: "mlp", Task: "mlp",
	Help: "a classifier with one hidden layer, on the same data",
	Check: pictures(func(a *Arch) error {
		if a.Hidden < 1 || a.Hidden > 1<<20 {
			return fmt.Errorf("hidden is %d", a.Hidden)
		}
		return nil
	}),
	Make:  func(env *tensor.Env, a *Arch) nn.Module { return model.NewMLP(env, *a.ImageConfig, a.Hidden) },
	Title: func(a *Arch) string { return fmt.Sprintf("classifier with one hidden layer of %d", a.Hidden) },
	Sizes: func(a *Arch) string { return fmt.Sprintf("%s, hidden %d", a.ends(), a.Hidden) },
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("1.weight", 2) || !s.rank("3.weight", 2) {
			return Arch{}, false
		}
		c := model.Digits
		c.Classes = s["3.weight"][0]
		if like.ImageConfig != nil { // a matrix does not tell channels apart
			c.Channels = like.Channels
		}
		return Arch{Kind: "mlp", ImageConfig: &c, Hidden: s["1.weight"][0]}.sized(like), true
	},
	Begin: func(a *Arch) { a.Hidden = hiddenSize },
	First: "1.weight",
	Gives: func(a *Arch) int { return a.Channels * a.Height * a.ImageConfig.Width },
}
