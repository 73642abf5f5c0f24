package model

import (
	"fmt"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// VAEConfig describes a variational auto-encoder beside its pictures.
type VAEConfig struct {
	Hidden int `json:"hidden_units"`
	Code   int `json:"code_size"` // numbers that stand for a picture
}

// VAE learns to draw pictures whose values are from 0 to 1 (Kingma and Welling, 2014): an encoder foretells of a picture the normal
// distribution of a code, and a decoder of a code the picture. Its layers have the names of PyTorch's example.
type VAE struct {
	Encoder  *nn.Linear `nn:"fc1"`
	Mean     *nn.Linear `nn:"fc21"`
	LogVar   *nn.Linear `nn:"fc22"`
	Decoder  *nn.Linear `nn:"fc3"`
	Pixels   *nn.Linear `nn:"fc4"`
	pictures ImageConfig
}

// String tells the sizes of a VAE.
func (m *VAE) String() string {
	p := m.pictures
	return fmt.Sprintf("VAE of pictures of %d×%d×%d, codes of %d", p.Channels, p.Height, p.Width, m.Mean.Weight.Dim(0))
}

// NewVAE makes a model of pictures of c's size; classes are none of its business.
func NewVAE(env *tensor.Env, c ImageConfig, v VAEConfig) *VAE {
	pixels := c.Channels * c.Height * c.Width
	return &VAE{
		nn.NewLinear(env, pixels, v.Hidden), nn.NewLinear(env, v.Hidden, v.Code), nn.NewLinear(env, v.Hidden, v.Code),
		nn.NewLinear(env, v.Code, v.Hidden), nn.NewLinear(env, v.Hidden, pixels), c,
	}
}

// Encode gives mean and logarithm of the variance [n, code] of the codes of pictures [n, channels, height, width].
func (m *VAE) Encode(x *tensor.Tensor) (mean, logvar *tensor.Tensor) {
	h := tensor.Chain(x, nn.Flatten{}.Forward, m.Encoder.Forward, nn.ReLU{}.Forward)
	return m.Mean.Forward(h), m.LogVar.Forward(h)
}

// Decode gives the logits [n, channels, height, width] of pixels for codes [n, code].
func (m *VAE) Decode(z *tensor.Tensor) *tensor.Tensor {
	c := m.pictures
	return tensor.Chain(z, m.Decoder.Forward, nn.ReLU{}.Forward, m.Pixels.Forward, func(y *tensor.Tensor) *tensor.Tensor {
		return y.Reshape(y.Dim(0), c.Channels, c.Height, c.Width)
	})
}

// Forward gives the logits of what the mean code of each picture stands for.
func (m *VAE) Forward(x *tensor.Tensor) *tensor.Tensor {
	mean, _ := m.Encode(x)
	return m.Decode(mean)
}

// Bound has two terms, in nats, means over pictures, whose sum is an upper bound of -log p(x), the negative ELBO: what it costs to tell
// pictures by a code that is drawn, the binary cross entropy of pixels, and to tell the codes, KL(N(mean, var) ‖ N(0, 1)). Outside of
// training the same codes are drawn each time.
func (m *VAE) Bound(x *tensor.Tensor) (reconstruction, codes *tensor.Tensor) {
	env := x.Env()
	if !env.Training() {
		env = env.Seed(0)
	}
	each := 1 / float64(x.Dim(0))
	mean, logvar := m.Encode(x)
	z := tensor.Chain(logvar, func(v *tensor.Tensor) *tensor.Tensor {
		return v.Scale(0.5).Exp().Mul(env.Randn(mean.Shape()...)).Add(mean)
	})
	codes = tensor.Chain(mean, func(u *tensor.Tensor) *tensor.Tensor {
		return u.Square().Add(logvar.Exp()).Sub(logvar).AddScalar(-1).Sum().Scale(each / 2)
	})
	return nn.BCEWithLogits(m.Decode(z), x, nn.Summed()).Scale(each), codes
}

// Draw gives n pictures [n, channels, height, width] of codes from the normal distribution.
func (m *VAE) Draw(env *tensor.Env, n int) *tensor.Tensor {
	return m.Decode(env.Randn(n, m.LogVar.Weight.Dim(0))).Sigmoid()
}
