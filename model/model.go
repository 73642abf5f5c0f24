// Package model has models that people know, ready to train: a classifier of two layers, a small convolutional network,
// residual networks, GPT-2, a U-Net, a variational auto-encoder. Each is a plain struct of nn layers; the names of its parameters are those of the
// published weights.
package model

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// ImageConfig describes the pictures that a classifier takes and the classes it tells apart.
type ImageConfig struct {
	Channels int `json:"channels"`
	Height   int `json:"height"`
	Width    int `json:"width"`
	Classes  int `json:"classes"`
}

// Digits describes handwritten digits: one channel of 28×28, ten classes.
var Digits = ImageConfig{Channels: 1, Height: 28, Width: 28, Classes: 10}

// NewMLP is a classifier of pictures [n, channels, height, width] with one hidden layer.
func NewMLP(env *tensor.Env, c ImageConfig, hidden int) nn.Sequential {
	return nn.Sequential{
		nn.Flatten{}, nn.NewLinear(env, c.Channels*c.Height*c.Width, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, c.Classes),
	}
}

// NewConvnet is a small convolutional classifier: two convolutions of 3×3 (16 and 32 channels), each halved by pooling,
// and two linear layers.
func NewConvnet(env *tensor.Env, c ImageConfig) nn.Sequential {
	same := nn.ConvConfig{Padding: 1}
	return nn.Sequential{
		nn.NewConv2d(env, c.Channels, 16, 3, same), nn.ReLU{}, nn.MaxPool2d{Kernel: 2},
		nn.NewConv2d(env, 16, 32, 3, same), nn.ReLU{}, nn.MaxPool2d{Kernel: 2},
		nn.Flatten{}, nn.NewLinear(env, 32*(c.Height/4)*(c.Width/4), 128), nn.ReLU{}, nn.NewLinear(env, 128, c.Classes),
	}
}
