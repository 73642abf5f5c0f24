package model

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// ResNet is a residual network (He et al., "Deep Residual Learning for Image Recognition", 2015) in torchvision's layout:
// pictures [n, channels, h, w] to class scores [n, classes]. Its stages are of [BasicBlock] or of [Bottleneck].
type ResNet struct {
	Conv1  *nn.Conv2d    `nn:"conv1"`
	BN1    *nn.BatchNorm `nn:"bn1"`
	Layer1 []nn.Module   `nn:"layer1"`
	Layer2 []nn.Module   `nn:"layer2"`
	Layer3 []nn.Module   `nn:"layer3"`
	Layer4 []nn.Module   `nn:"layer4"`
	FC     *nn.Linear    `nn:"fc"`
}

// ResNetConfig describes a residual network.
type ResNetConfig struct {
	Blocks     [4]int `json:"blocks"`     // per stage: 2, 2, 2, 2 for ResNet-18
	Bottleneck bool   `json:"bottleneck"` // blocks are of three convolutions, and stages four times as wide
	Planes     int    `json:"planes"`     // channels of the first stage, or of its 3×3 convolutions: 64
	Channels   int    `json:"channels"`   // of the pictures
	Classes    int    `json:"classes"`
}

// ResNet18 is the configuration of torchvision's resnet18 for so many classes.
func ResNet18(classes int) ResNetConfig {
	return ResNetConfig{Blocks: [4]int{2, 2, 2, 2}, Planes: 64, Channels: 3, Classes: classes}
}

// ResNet50 is the configuration of torchvision's resnet50 for so many classes: strides are those of its 3×3 convolutions
// ("v1.5").
func ResNet50(classes int) ResNetConfig {
	return ResNetConfig{Blocks: [4]int{3, 4, 6, 3}, Bottleneck: true, Planes: 64, Channels: 3, Classes: classes}
}

// BasicBlock adds two convolutions of 3×3 to its input.
type BasicBlock struct {
	Conv1      *nn.Conv2d    `nn:"conv1"`
	BN1        *nn.BatchNorm `nn:"bn1"`
	Conv2      *nn.Conv2d    `nn:"conv2"`
	BN2        *nn.BatchNorm `nn:"bn2"`
	Downsample nn.Sequential `nn:"downsample"` // of the input, where shapes change
}

// Bottleneck adds to its input a convolution of 3×3 between two of 1×1, which narrow and widen it four times.
type Bottleneck struct {
	Conv1      *nn.Conv2d    `nn:"conv1"`
	BN1        *nn.BatchNorm `nn:"bn1"`
	Conv2      *nn.Conv2d    `nn:"conv2"`
	BN2        *nn.BatchNorm `nn:"bn2"`
	Conv3      *nn.Conv2d    `nn:"conv3"`
	BN3        *nn.BatchNorm `nn:"bn3"`
	Downsample nn.Sequential `nn:"downsample"` // of the input, where shapes change
}

// expansion is the width of a bottleneck's result in its planes.
const expansion = 4

// NewResNet draws convolutions from N(0, 2/(out·kernel²)), as torchvision does; norms are the identity.
func NewResNet(env *tensor.Env, c ResNetConfig) *ResNet {
	if slices.Min(c.Blocks[:]) < 0 {
		tensor.Raise("model.NewResNet", "give each stage 0 blocks or more", "the blocks of the stages are %v", c.Blocks)
	}
	block, wider := newBasicBlock, 1
	if c.Bottleneck {
		block, wider = newBottleneck, expansion
	}
	in := c.Planes
	stage := func(n, planes, stride int) []nn.Module {
		blocks := make([]nn.Module, n)
		for i := range blocks {
			blocks[i] = block(env, in, planes, stride)
			in, stride = wider*planes, 1
		}
		return blocks
	}
	r := &ResNet{Conv1: conv(env, c.Channels, c.Planes, 7, 2), BN1: normReLU(env, c.Planes)}
	r.Layer1 = stage(c.Blocks[0], c.Planes, 1)
	r.Layer2 = stage(c.Blocks[1], 2*c.Planes, 2)
	r.Layer3 = stage(c.Blocks[2], 4*c.Planes, 2)
	r.Layer4 = stage(c.Blocks[3], 8*c.Planes, 2)
	r.FC = nn.NewLinear(env, in, c.Classes)
	return r
}

// conv is a convolution without bias that keeps the size but for its stride.
func conv(env *tensor.Env, in, out, kernel, stride int) *nn.Conv2d {
	l := nn.NewConv2d(env, in, out, kernel, nn.ConvConfig{Stride: stride, Padding: kernel / 2, NoBias: true})
	env.NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor {
		return l.Weight.CopyInPlace(e.Randn(l.Weight.Shape()...).Scale(math.Sqrt(2 / float64(out*kernel*kernel))))
	})
	return l
}

// normReLU is a batch norm with ReLU in the same pass.
func normReLU(env *tensor.Env, planes int) *nn.BatchNorm {
	n := nn.NewBatchNorm(env, planes)
	n.Act = tensor.ActReLU
	return n
}

// downsample brings a block's input to the shape of its result, where they differ.
func downsample(env *tensor.Env, in, out, stride int) nn.Sequential {
	if stride == 1 && in == out {
		return nil
	}
	return nn.Sequential{conv(env, in, out, 1, stride), nn.NewBatchNorm(env, out)}
}

func newBasicBlock(env *tensor.Env, in, planes, stride int) nn.Module {
	return &BasicBlock{
		Conv1: conv(env, in, planes, 3, stride), BN1: normReLU(env, planes),
		Conv2: conv(env, planes, planes, 3, 1), BN2: normReLU(env, planes),
		Downsample: downsample(env, in, planes, stride),
	}
}

func newBottleneck(env *tensor.Env, in, planes, stride int) nn.Module {
	return &Bottleneck{
		Conv1: conv(env, in, planes, 1, 1), BN1: normReLU(env, planes),
		Conv2: conv(env, planes, planes, 3, stride), BN2: normReLU(env, planes),
		Conv3: conv(env, planes, expansion*planes, 1, 1), BN3: normReLU(env, expansion*planes),
		Downsample: downsample(env, in, expansion*planes, stride),
	}
}

// Forward is relu(x + f(x)).
func (b *BasicBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		y := tensor.Chain(x, b.Conv1.Forward, b.BN1.Forward, b.Conv2.Forward)
		return b.BN2.ForwardAdd(y, b.Downsample.Forward(x))
	})
}

// Forward is relu(x + f(x)).
func (b *Bottleneck) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		y := tensor.Chain(x, b.Conv1.Forward, b.BN1.Forward, b.Conv2.Forward, b.BN2.Forward, b.Conv3.Forward)
		return b.BN3.ForwardAdd(y, b.Downsample.Forward(x))
	})
}

// Forward gives class scores.
func (r *ResNet) Forward(x *tensor.Tensor) *tensor.Tensor {
	steps := []func(*tensor.Tensor) *tensor.Tensor{r.stem}
	for _, b := range slices.Concat(r.Layer1, r.Layer2, r.Layer3, r.Layer4) {
		steps = append(steps, func(x *tensor.Tensor) *tensor.Tensor { return nn.Block(b, x) })
	}
	return tensor.Chain(x, append(steps, nn.GlobalAvgPool{}.Forward, nn.Flatten{}.Forward, r.FC.Forward)...)
}

// stem is what comes before the stages.
func (r *ResNet) stem(x *tensor.Tensor) *tensor.Tensor {
	return nn.Sequential{r.Conv1, r.BN1, nn.MaxPool2d{Kernel: 3, Stride: 2, Padding: 1}}.Forward(x)
}
