package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

var vit = Kind{
	Name: "vit", Task: "vit", Defaults: Defaults{Steps: 1000, Batch: 64, Average: 0.99},
	Help: "a vision transformer on pictures",
	Check: pictures(func(a *Arch) error {
		v, c := a.ViTConfig, a.ImageConfig
		if v == nil || min(v.Patch, v.Model, v.Depth, v.AttentionHeads) < 1 || max(v.Patch, v.Model, v.Depth) > 1<<14 || v.Model%v.AttentionHeads != 0 {
			return errors.New("patch, model_size, depth and num_heads describe no vision transformer")
		}
		if c.Height%v.Patch != 0 || c.Width%v.Patch != 0 {
			return fmt.Errorf("pictures of %d×%d have no whole patches of %d", c.Height, c.Width, v.Patch)
		}
		return nil
	}),
	Make: func(env *tensor.Env, a *Arch) nn.Module { return model.NewViT(env, *a.ImageConfig, *a.ViTConfig) },
	Begin: func(a *Arch) {
		a.ViTConfig = &model.ViTConfig{Patch: patchOf(a.Height, a.ImageConfig.Width), Model: 64, Depth: 4, AttentionHeads: 4}
	},
	Title: func(a *Arch) string {
		return fmt.Sprintf("vision transformer of %d layers, %d heads, width %d, patches of %d×%d", a.Depth, a.AttentionHeads, a.Model, a.Patch, a.Patch)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("%s, patches of %d, width %d, layers %d", a.ends(), a.Patch, a.Model, a.Depth)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("conv_proj.weight", 4) || !s.rank("pos_embedding", 3) || !s.rank("head.weight", 2) {
			return Arch{}, false
		}
		patch := s["conv_proj.weight"]
		v := model.ViTConfig{Patch: patch[2], Model: patch[0], Depth: s.count("layers.%d.ln_1.weight"), AttentionHeads: max(patch[0]/16, 1)}
		if like.ViTConfig != nil {
			v.AttentionHeads = like.AttentionHeads
		}
		c := model.ImageConfig{Channels: patch[1], Height: 28, Width: 28, Classes: s["head.weight"][0]}
		return Arch{Kind: "vit", ImageConfig: &c, ViTConfig: &v}.sized(like), true
	},
	First: "pos_embedding",
	Gives: func(a *Arch) int { return a.Height/a.Patch*(a.ImageConfig.Width/a.Patch) + 1 },
}

// patchOf is the side of patches for pictures of a size: the largest divisor of both that leaves 49 patches or more, as few as that
// allows.
func patchOf(height, width int) int {
	best := 1
	for p := 1; p <= min(height, width); p++ {
		if height%p == 0 && width%p == 0 && height/p*(width/p) >= 49 {
			best = p
		}
	}
	return best
}
