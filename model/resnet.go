package model

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// ResNet is a residual network of basic blocks (He et al., "Deep Residual Learning for Image Recognition", 2015) in
// torchvision's layout: pictures [n, channels, h, w] to class scores [n, classes].
type ResNet struct {
	Conv1  *nn.Conv2d    `nn:"conv1"`
	BN1    *nn.BatchNorm `nn:"bn1"`
	Layer1 []*BasicBlock `nn:"layer1"`
	Layer2 []*BasicBlock `nn:"layer2"`
	Layer3 []*BasicBlock `nn:"layer3"`
	Layer4 []*BasicBlock `nn:"layer4"`
	FC     *nn.Linear    `nn:"fc"`
}

// ResNetConfig describes a residual network.
type ResNetConfig struct {
	Blocks   [4]int `json:"blocks"`   // per stage: 2, 2, 2, 2 for ResNet-18
	Planes   int    `json:"planes"`   // channels of the first stage: 64
	Channels int    `json:"channels"` // of the pictures
	Classes  int    `json:"classes"`
}

// ResNet18 is the configuration of torchvision's resnet18 for so many classes.
func ResNet18(classes int) ResNetConfig {
	return ResNetConfig{Blocks: [4]int{2, 2, 2, 2}, Planes: 64, Channels: 3, Classes: classes}
}

// BasicBlock adds two convolutions of 3×3 to its input.
type BasicBlock struct {
	Conv1      *nn.Conv2d    `nn:"conv1"`
	BN1        *nn.BatchNorm `nn:"bn1"`
	Conv2      *nn.Conv2d    `nn:"conv2"`
	BN2        *nn.BatchNorm `nn:"bn2"`
	Downsample nn.Sequential `nn:"downsample"` // of the input, where shapes change
}

// NewResNet draws convolutions from N(0, 2/(out·kernel²)), as torchvision does; norms are the identity.
func NewResNet(env *tensor.Env, c ResNetConfig) *ResNet {
	if slices.Min(c.Blocks[:]) < 0 {
		tensor.Raise("model.NewResNet", "give each stage 0 blocks or more", "the blocks of the stages are %v", c.Blocks)
	}
	in := c.Planes
	stage := func(n, planes, stride int) []*BasicBlock {
		blocks := make([]*BasicBlock, n)
		for i := range blocks {
			blocks[i] = newBasicBlock(env, in, planes, stride)
			in, stride = planes, 1
		}
		return blocks
	}
	r := &ResNet{Conv1: conv(env, c.Channels, c.Planes, 7, 2), BN1: nn.NewBatchNorm(env, c.Planes)}
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
	l.Weight = nn.NewParam(env.Randn(l.Weight.Shape()...).In(env.NoGrad()).Scale(math.Sqrt(2 / float64(out*kernel*kernel))))
	return l
}

func newBasicBlock(env *tensor.Env, in, planes, stride int) *BasicBlock {
	b := &BasicBlock{
		Conv1: conv(env, in, planes, 3, stride), BN1: nn.NewBatchNorm(env, planes),
		Conv2: conv(env, planes, planes, 3, 1), BN2: nn.NewBatchNorm(env, planes),
	}
	if stride != 1 || in != planes {
		b.Downsample = nn.Sequential{conv(env, in, planes, 1, stride), nn.NewBatchNorm(env, planes)}
	}
	return b
}

// Forward is relu(x + f(x)).
func (b *BasicBlock) Forward(x *tensor.Tensor) *tensor.Tensor {
	y := b.BN1.Forward(b.Conv1.Forward(x)).ReLU()
	y = b.BN2.Forward(b.Conv2.Forward(y))
	if b.Downsample != nil {
		x = b.Downsample.Forward(x)
	}
	return y.Add(x).ReLU()
}

// Forward gives class scores.
func (r *ResNet) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = r.BN1.Forward(r.Conv1.Forward(x)).ReLU()
	x = nn.MaxPool2d{Kernel: 3, Stride: 2, Padding: 1}.Forward(x)
	for _, stage := range [][]*BasicBlock{r.Layer1, r.Layer2, r.Layer3, r.Layer4} {
		for _, b := range stage {
			x = b.Forward(x)
		}
	}
	return r.FC.Forward(nn.GlobalAvgPool{}.Forward(x).Flatten(1))
}
