// Package examples holds the programs that decide the design: each is what a user would write, in tiny form. Tests run
// them to their expected output, for thousands of turns on poisoned memory, and on every kind of device.
package examples

import (
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Program runs steps turns in env and says on w what it saw.
type Program func(env *tensor.Env, steps int, w io.Writer) error

// Programs are all the examples by name.
var Programs = map[string]Program{
	"readme":          Readme,
	"gan":             GAN,
	"distillation":    Distillation,
	"frozen_backbone": FrozenBackbone,
	"ema":             EMA,
	"recurrent":       Recurrent,
	"penalty":         GradientPenalty,
	"microbatches":    Microbatches,
	"metric":          MetricAfterStep,
	"loaders":         Loaders,
	"replicas":        Replicas,
	"own_operation":   OwnOperation,
	"any_device":      AnyDevice,
	"queues":          Queues,
	"two_devices":     TwoDevices,
	"split_model":     SplitModel,
	"captured":        Captured,
}

// blobs is a set of n points around three centres in four dimensions, with the centre's number as the label.
func blobs(n int) data.Source[data.Pair] {
	var x []float32
	y := make([]int64, n)
	r := uint64(1)
	for i := range n {
		y[i] = int64(i % 3)
		for k := range 4 {
			r = r*6364136223846793005 + 1442695040888963407
			v := float32(r>>40)/float32(1<<24) - 0.5
			if k == i%3 {
				v += 1.5
			}
			x = append(x, v)
		}
	}
	return data.InMemory(x, []int{4}, y)
}

func mlp(env *tensor.Env, in, hidden, out int) nn.Sequential {
	return nn.Sequential{nn.NewLinear(env, in, hidden), nn.ReLU{}, nn.NewLinear(env, hidden, out)}
}

// squares is the mean squared distance of x from v.
func squares(x *tensor.Tensor, v float64) *tensor.Tensor { return x.AddScalar(-v).Square().Mean() }
