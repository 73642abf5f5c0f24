package zoo

import (
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

var convnet = Kind{
	Name: "convnet", Task: "digits", Defaults: Defaults{Steps: 750, LR: 3e-3, Average: 0.99},
	Help: "a small convnet on handwritten-like digits drawn on the fly (the default)",
	Check: pictures(func(a *Arch) error {
		if c := a.ImageConfig; min(c.Height, c.Width) < 4 {
			return fmt.Errorf("pictures of %d×%d are too small for two poolings", c.Height, c.Width)
		}
		return nil
	}),
	Make:  func(env *tensor.Env, a *Arch) nn.Module { return model.NewConvnet(env, *a.ImageConfig) },
	Title: func(*Arch) string { return "convolutional network" },
	Sizes: (*Arch).ends,
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("0.weight", 4) || !s.rank("7.weight", 2) || !s.rank("9.weight", 2) {
			return Arch{}, false
		}
		c := model.ImageConfig{Channels: s["0.weight"][1], Height: 28, Width: 28, Classes: s["9.weight"][0]}
		return Arch{Kind: "convnet", ImageConfig: &c}.sized(like), true
	},
	First: "7.weight",
	Gives: func(a *Arch) int { return 32 * (a.Height / 4) * (a.ImageConfig.Width / 4) },
}
