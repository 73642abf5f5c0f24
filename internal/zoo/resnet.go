package zoo

import (
	"fmt"

	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

var (
	resnet   = residual("resnet", "resnet18", "torchvision's ResNet-18 on pictures", model.ResNet18)
	resnet50 = residual("resnet50", "resnet50", "torchvision's ResNet-50 on pictures", model.ResNet50)
)

// residual is the kind of networks like one of published size, with any planes and numbers of blocks.
func residual(name, task, help string, published func(classes int) model.ResNetConfig) Kind {
	bottleneck := published(1).Bottleneck
	return Kind{
		Name: name, Task: task, Norms: true, Defaults: Defaults{Steps: 300, Batch: 32}, Help: help,
		Check: pictures(func(a *Arch) error {
			if b := a.Blocks; b == nil || min(b[0], b[1], b[2], b[3], a.Planes) < 1 || a.Planes > 1<<12 {
				return fmt.Errorf("blocks %v and planes %d describe no residual network", b, a.Planes)
			}
			return nil
		}),
		Make: func(env *tensor.Env, a *Arch) nn.Module {
			return model.NewResNet(env, model.ResNetConfig{Blocks: *a.Blocks, Bottleneck: bottleneck, Planes: a.Planes, Channels: a.Channels, Classes: a.Classes})
		},
		Title: func(a *Arch) string {
			return fmt.Sprintf("residual network of %d layers", 2+depth(bottleneck)*(a.Blocks[0]+a.Blocks[1]+a.Blocks[2]+a.Blocks[3]))
		},
		Sizes: func(a *Arch) string { return fmt.Sprintf("%s, planes %d, blocks %v", a.ends(), a.Planes, *a.Blocks) },
		Recognise: func(s Shapes, like *Arch) (Arch, bool) {
			if s.rank("layer1.0.conv3.weight", 4) != bottleneck {
				return Arch{}, false
			}
			return s.residual(name, like)
		},
		Begin: func(a *Arch) {
			r := published(a.Classes)
			a.Blocks, a.Planes = &r.Blocks, r.Planes
		},
	}
}

// depth is the number of convolutions of a block.
func depth(bottleneck bool) int {
	if bottleneck {
		return 3
	}
	return 2
}

// residual describes a residual network by its tensors.
func (s Shapes) residual(name string, like *Arch) (Arch, bool) {
	if !s.rank("layer1.0.conv1.weight", 4) || !s.rank("conv1.weight", 4) || !s.rank("fc.weight", 2) {
		return Arch{}, false
	}
	c := model.ImageConfig{Channels: s["conv1.weight"][1], Height: 224, Width: 224, Classes: s["fc.weight"][0]}
	a := Arch{Kind: name, ImageConfig: &c, Blocks: &[4]int{}, Planes: s["conv1.weight"][0]}
	for i := range a.Blocks {
		a.Blocks[i] = s.count(fmt.Sprintf("layer%d.%%d.conv1.weight", i+1))
	}
	return a.sized(like), true
}
