package model

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// UNetConfig describes a U-Net beside its pictures.
type UNetConfig struct {
	Base     int `json:"base_planes"` // channels at the pictures' size, which double at each halving
	Halvings int `json:"halvings"`    // 2 to this power divides height and width
}

// UNet tells what each pixel of a picture is (Ronneberger et al., 2015): pictures are halved again and again, and the result is doubled
// as often, each time beside what was there on the way down. Convolutions keep the size, and each is followed by a batch norm and a ReLU.
type UNet struct {
	Down  []nn.Sequential       `nn:"down"` // two convolutions at each size, the largest first
	Grow  []*nn.ConvTranspose2d `nn:"grow"` // to each size but the smallest from half of it
	Up    []nn.Sequential       `nn:"up"`   // two convolutions of what was there and what has grown
	Score *nn.Conv2d            `nn:"score"`
}

// NewUNet draws weights of the convolutions that keep the size as [NewResNet] does.
func NewUNet(env *tensor.Env, c ImageConfig, u UNetConfig) *UNet {
	m := &UNet{}
	in, planes := c.Channels, u.Base
	for i := range u.Halvings + 1 {
		m.Down = append(m.Down, twice(env, in, planes))
		if i < u.Halvings {
			m.Grow = append(m.Grow, nn.NewConvTranspose2d(env, 2*planes, planes, 2, nn.ConvTransposeConfig{Stride: 2}))
			m.Up = append(m.Up, twice(env, 2*planes, planes))
		}
		in, planes = planes, 2*planes
	}
	m.Score = nn.NewConv2d(env, u.Base, c.Classes, 1, nn.ConvConfig{})
	return m
}

// twice is a convolution of 3×3 with its norm, two times.
func twice(env *tensor.Env, in, out int) nn.Sequential {
	return nn.Sequential{conv(env, in, out, 3, 1), normReLU(env, out), conv(env, out, out, 3, 1), normReLU(env, out)}
}

// Forward gives scores [n, height, width, classes] of pictures [n, channels, height, width].
func (m *UNet) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor { return m.at(0, x) }, m.Score.Forward,
		func(y *tensor.Tensor) *tensor.Tensor { return y.Permute(0, 2, 3, 1) })
}

// at goes down and up again from the size that was halved i times.
func (m *UNet) at(i int, x *tensor.Tensor) *tensor.Tensor {
	down := func(x *tensor.Tensor) *tensor.Tensor { return nn.Block(m.Down[i], x) }
	if i == len(m.Grow) {
		return down(x)
	}
	below := func(x *tensor.Tensor) *tensor.Tensor { return m.at(i+1, x) }
	return tensor.Chain(x, down, func(x *tensor.Tensor) *tensor.Tensor {
		return tensor.Cat(1, x, tensor.Chain(x, nn.MaxPool2d{Kernel: 2}.Forward, below, m.Grow[i].Forward))
	}, func(x *tensor.Tensor) *tensor.Tensor { return nn.Block(m.Up[i], x) })
}
