package nn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestCast: a model of every layer with parameters computes and learns in each dtype, near what it computes in float64;
// norms of batches keep float32 in 16 bits, integers stay, and ties hold.
func TestCast(t *testing.T) {
	for dt, far := range map[dtype.DType]float64{dtype.F64: 1e-12, dtype.F32: 1e-4, dtype.F16: 0.05, dtype.BF16: 0.3} {
		t.Run(fmt.Sprint(dt), func(t *testing.T) {
			env, err := tensor.Fresh("cpu")
			if err != nil {
				t.Fatal(err)
			}
			tied := nn.NewLinear(env, 4, 4)
			model := nn.Sequential{
				nn.NewConv2d(env, 3, 4, 3, nn.ConvConfig{}), nn.NewBatchNorm(env, 4), nn.NewGroupNorm(env, 2, 4),
				nn.NewInstanceNorm(env, 4, nn.InstanceNormConfig{Affine: true, Track: true}), nn.NewPReLU(env, 4),
				nn.GlobalAvgPool{}, nn.Flatten{}, tied, nn.NewLayerNorm(env, 4), nn.NewRMSNorm(env, 4), tied,
			}
			exact := nn.Clone(model)
			nn.Cast(exact, dtype.F64)
			nn.Cast(model, dt)
			types := map[dtype.DType]int{}
			for _, p := range nn.State(model) {
				types[p.DType()]++
			}
			if types[dtype.I64] != 2 || types[dt] < 12 || dt.Size() == 2 && types[dtype.F32] != 8 {
				t.Errorf("dtypes of tensors: %v", types)
			}
			x := env.Seed(3).Randn(2, 3, 6, 6)
			y, want := model.Forward(x.Cast(dt)), exact.Forward(x.Cast(dtype.F64))
			if d := y.Cast(dtype.F64).Sub(want).Abs().Max().Item(); y.DType() != dt || !(d <= far) {
				t.Errorf("%s values are %v off", y.DType(), d)
			}
			opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
			y.Square().Sum().Backward()
			opt.Step()
			for path, p := range nn.Params(model) {
				for _, v := range p.Floats() {
					if math.IsNaN(v) {
						t.Errorf("%s is NaN after a step", path)
						break
					}
				}
			}
		})
	}
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []dtype.DType{dtype.I64, dtype.Bool, dtype.F8E4M3} {
		raises(t, env, func() { nn.Cast(nn.NewLinear(env, 2, 2), dt) })
	}
}
