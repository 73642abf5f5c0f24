// Command vae learns to draw digits (Kingma & Welling, 2014); vae.py is the same in PyTorch. The loss on what is held
// out is 127.7 here and 127.6 there, of the same digits: those of data/digits, there as files of MNIST's form. By itself the script
// fetches MNIST.
package main

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"log"
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

func main() {
	env := tensor.Best().Seed(1)
	learn, held := digits.Split(10_000, 1_000)
	encoder := nn.Sequential{nn.Flatten{}, nn.NewLinear(env, 784, 256), nn.ReLU{}, nn.NewLinear(env, 256, 32)}
	decoder := nn.Sequential{nn.NewLinear(env, 16, 256), nn.ReLU{}, nn.NewLinear(env, 256, 784)}
	model := nn.Sequential{encoder, decoder}
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 2e-3})
	loop := train.Loop{Env: env, Model: model, Optimizer: opt, Data: data.Config{Size: 64, Shuffle: true}, Epochs: 5}
	result, err := train.Fit(context.Background(), loop, learn, held, func(b *data.Pair, _ *metric.Meters) *tensor.Tensor {
		code := encoder.Forward(b.X).Chunk(1, 2)
		mean, logvar := code[0], code[1]
		z := mean.Add(b.Env.Randn(mean.Shape()...).Mul(logvar.Scale(0.5).Exp()))
		prior := mean.Square().Add(logvar.Exp()).Sub(logvar).AddScalar(-1).Sum().Scale(0.5)
		return nn.BCEWithLogits(decoder.Forward(z), b.X.Flatten(1), nn.Summed()).Add(prior).Scale(1 / float64(b.Size()))
	})
	check(err)
	fmt.Printf("loss %.1f on what is held out\n", *result.ValLoss)

	samples := decoder.Forward(env.NoGrad().Eval().Randn(8, 16)).Sigmoid().Scale(255).Cast(dtype.U8)
	f, err := os.Create("vae.png")
	check(err)
	check(png.Encode(f, &image.Gray{Pix: tensor.Data[uint8](samples), Stride: 28, Rect: image.Rect(0, 0, 28, 8*28)}))
	check(f.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
