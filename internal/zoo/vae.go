package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// vae learns to draw pictures, whose labels it does not read.
var vae = Kind{
	Name: "vae", Task: "vae", Defaults: Defaults{Steps: 3000, Batch: 128, Average: 0.99},
	Help: "a variational auto-encoder, which learns to draw pictures",
	Check: pictures(func(a *Arch) error {
		if v := a.VAEConfig; v == nil || min(v.Hidden, v.Code) < 1 || max(v.Hidden, v.Code) > 1<<16 {
			return errors.New("hidden_units and code_size must be from 1 to 65536")
		}
		return nil
	}),
	Make:  func(env *tensor.Env, a *Arch) nn.Module { return model.NewVAE(env, *a.ImageConfig, *a.VAEConfig) },
	Begin: func(a *Arch) { a.VAEConfig = &model.VAEConfig{Hidden: 400, Code: 20} },
	Title: func(a *Arch) string {
		return fmt.Sprintf("variational auto-encoder of %d×%d pixels, %d units and codes of %d", a.Height, a.ImageConfig.Width, a.VAEConfig.Hidden, a.Code)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("vae of %d pixels, units %d, codes of %d", a.Channels*a.Height*a.ImageConfig.Width, a.VAEConfig.Hidden, a.Code)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("fc21.weight", 2) || !s.rank("fc1.weight", 2) || !s.rank("fc4.weight", 2) {
			return Arch{}, false
		}
		c := model.ImageConfig{Channels: 1, Height: 28, Width: 28, Classes: 10}
		if like.ImageConfig != nil {
			c = *like.ImageConfig
		}
		return Arch{Kind: "vae", ImageConfig: &c, VAEConfig: &model.VAEConfig{Hidden: s["fc21.weight"][1], Code: s["fc21.weight"][0]}}, true
	},
	First: "fc1.weight",
	Gives: func(a *Arch) int { return a.Channels * a.Height * a.ImageConfig.Width },
	Unit:  true,
	Loss: func(_ *Arch, m nn.Module, x, _ *tensor.Tensor) (loss, out *tensor.Tensor) {
		reconstruction, codes := m.(Painter).Bound(x)
		return reconstruction.Add(codes), tensor.Stack(0, reconstruction.Detach(), codes.Detach())
	},
	Measure: func(_ *Arch, m *metric.Meters, out, y *tensor.Tensor) {
		n := y.Dim(0)
		m.Mean("elbo", out.Sum().Neg(), n)
		m.Mean("reconstruction", out.Select(0, 0), n)
		m.Mean("kl", out.Select(0, 1), n)
	},
	Show: func(_ *Arch, m nn.Module, x, _ *tensor.Tensor) []View {
		return []View{{"picture", x.Mean(1)}, {"from its code", m.Forward(x).Sigmoid().Mean(1)}}
	},
}
