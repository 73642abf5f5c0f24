package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/data/shapes"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// unet tells what each pixel of a drawn picture is.
var unet = Kind{
	Name: "unet", Task: "unet", Data: Drawn, Norms: true, Areas: true, Defaults: Defaults{Steps: 300, Batch: 16, LR: 3e-3, Average: 0.97},
	Help: "segmentation: which pixels are of textured shapes, in pictures drawn on the fly",
	Check: pictures(func(a *Arch) error {
		u, c := a.UNetConfig, a.ImageConfig
		if c.Classes > 256 {
			return fmt.Errorf("%d classes, of at most the 256 that a mask can have", c.Classes)
		}
		if u == nil || min(u.Base, u.Halvings) < 1 || u.Halvings > 8 || u.Base > 1<<12 {
			return errors.New("base_planes and halvings describe no U-Net")
		}
		if side := 1 << u.Halvings; c.Height%side != 0 || c.Width%side != 0 {
			return fmt.Errorf("pictures of %d×%d cannot be halved %d times", c.Height, c.Width, u.Halvings)
		}
		return nil
	}),
	Make: func(env *tensor.Env, a *Arch) nn.Module { return model.NewUNet(env, *a.ImageConfig, *a.UNetConfig) },
	Begin: func(a *Arch) {
		a.ImageConfig = &model.ImageConfig{Channels: 1, Height: shapes.Side, Width: shapes.Side, Classes: len(shapes.Classes)}
		a.UNetConfig = &model.UNetConfig{Base: 8, Halvings: 3}
	},
	Title: func(a *Arch) string {
		return fmt.Sprintf("U-Net of %d halvings, from %d channels to %d", a.Halvings, a.Base, a.Base<<a.Halvings)
	},
	Sizes: func(a *Arch) string { return fmt.Sprintf("%s, planes %d, halvings %d", a.ends(), a.Base, a.Halvings) },
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		first, last := s["down.0.0.weight"], s["score.weight"]
		if len(first) != 4 || len(last) != 4 {
			return Arch{}, false
		}
		c := model.ImageConfig{Channels: first[1], Height: shapes.Side, Width: shapes.Side, Classes: last[0]}
		return Arch{Kind: "unet", ImageConfig: &c, UNetConfig: &model.UNetConfig{Base: first[0], Halvings: s.count("grow.%d.weight")}}.sized(like), true
	},
	Measure: func(_ *Arch, m *metric.Meters, out, y *tensor.Tensor) { m.Classes(out, y) },
	Classes: shapes.Classes,
	Show: func(a *Arch, m nn.Module, x, y *tensor.Tensor) []View {
		return []View{{"picture", x.Select(1, 0)}, {"is", a.greys(y)}, {"foretold", a.greys(m.Forward(x).ArgMax(-1))}}
	},
}

// greys has classes from black to white.
func (a *Arch) greys(classes *tensor.Tensor) *tensor.Tensor {
	return classes.Cast(dtype.F32).Scale(1 / float64(a.Classes-1))
}
