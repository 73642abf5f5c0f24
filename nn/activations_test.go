package nn

import (
	"maps"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

func init() { maps.Copy(forwards, activations) }

// activations are the cases of the families of activations and of norms by channel.
var activations = map[string]forward{
	"leaky_relu":  one(func(c *goldenCase) Module { return LeakyReLU{c.Attrs.number("negative_slope", 0)} }),
	"elu":         one(func(c *goldenCase) Module { return ELU{c.Attrs.number("alpha", 0)} }),
	"celu":        one(func(c *goldenCase) Module { return CELU{c.Attrs.number("alpha", 0)} }),
	"selu":        value(SELU{}),
	"softplus":    one(func(c *goldenCase) Module { return Softplus{c.Attrs.number("beta", 0), c.Attrs.number("threshold", 0)} }),
	"logsigmoid":  value(LogSigmoid{}),
	"mish":        value(Mish{}),
	"softsign":    value(Softsign{}),
	"tanhshrink":  value(Tanhshrink{}),
	"relu6":       value(ReLU6{}),
	"hardsigmoid": value(Hardsigmoid{}),
	"hardswish":   value(Hardswish{}),
	"hardshrink":  one(func(c *goldenCase) Module { return Hardshrink{c.Attrs.number("lambd", 0)} }),
	"softshrink":  one(func(c *goldenCase) Module { return Softshrink{c.Attrs.number("lambd", 0)} }),
	"hardtanh": one(func(c *goldenCase) Module {
		return Hardtanh{c.Attrs.number("min_val", 0), c.Attrs.number("max_val", 0)}
	}),
	"threshold": one(func(c *goldenCase) Module {
		return Threshold{c.Attrs.number("threshold", 0), c.Attrs.number("value", 0)}
	}),
	"log_softmax_last": value(LogSoftmax{}),
	"softmin":          value(Softmin{}),
	"glu": one(func(c *goldenCase) Module {
		gates := map[string]Module{"silu": SiLU{}, "gelu": GELU{}, "relu": ReLU{}, "identity": Identity{}}
		return GLU{c.Attrs.int("dim", 0), gates[c.Attrs.text("gate")]}
	}),
	"PReLU": one(func(c *goldenCase) Module { return &PReLU{c.param("weight")} }),
	"GroupNorm": one(func(c *goldenCase) Module {
		return &GroupNorm{c.param("weight"), c.param("bias"), c.Attrs.int("groups", 0), c.Attrs.number("eps", 0)}
	}),
	"InstanceNorm": one(func(c *goldenCase) Module {
		return &InstanceNorm{Weight: c.param("weight"), Bias: c.param("bias"), Eps: c.Attrs.number("eps", 0)}
	}),
	"InstanceNormTracked": func(c *goldenCase, in map[string]*tensor.Tensor) []*tensor.Tensor {
		env := in["x1"].Env()
		l := NewInstanceNorm(env, in["x1"].Dim(1), InstanceNormConfig{Affine: true, Track: true})
		l.Weight, l.Bias, l.Momentum = c.param("weight"), c.param("bias"), c.Attrs.number("momentum", 0)
		y := l.Forward(in["x1"])
		c.t["got.running_mean"], c.t["got.running_var"] = l.RunningMean, l.RunningVar
		return []*tensor.Tensor{y, l.Forward(in["x2"].In(env.Eval()))}
	},
}

// TestChannelDropout: whole channels go, the rest is scaled, about as many as asked for; evaluation changes nothing.
func TestChannelDropout(t *testing.T) {
	env := freshEnv(t)
	for _, shape := range [][]int{{40, 50, 3}, {50, 40, 2, 3}, {20, 100, 1, 2, 2}} {
		x := env.Ones(shape...)
		y := Dropout2d{0.3}.Forward(x)
		v, gone := y.Floats(), 0
		per := y.Size() / shape[0] / shape[1]
		for i := 0; i < len(v); i += per {
			if v[i] == 0 {
				gone++
			}
			for _, u := range v[i : i+per] {
				if u != v[i] || u != 0 && math.Abs(u-1/0.7) > 1e-6 {
					t.Fatalf("%v: a channel has %v", shape, v[i:i+per])
				}
			}
		}
		if share := float64(gone) / 2000; math.Abs(share-0.3) > 0.05 {
			t.Errorf("%v: %v of the channels are gone", shape, share)
		}
		if d := (Dropout2d{0.3}).Forward(x.In(env.Eval())).Sub(x).Abs().Max().Item(); d != 0 {
			t.Errorf("evaluation changes values by %v", d)
		}
	}
}

// TestAlphaDropout keeps mean and variance of normal values.
func TestAlphaDropout(t *testing.T) {
	env := freshEnv(t)
	y := AlphaDropout{0.4}.Forward(env.Randn(200, 1000))
	if mean, v := y.Mean().Item(), y.Var(0).Item(); math.Abs(mean) > 0.02 || math.Abs(v-1) > 0.03 {
		t.Errorf("mean %v, variance %v", mean, v)
	}
}

// TestChannelErrors: shapes that do not fit are told.
func TestChannelErrors(t *testing.T) {
	env := freshEnv(t)
	for name, f := range map[string]func(){
		"groups":    func() { NewGroupNorm(env, 3, 4) },
		"channels":  func() { NewGroupNorm(env, 2, 4).Forward(env.Ones(2, 3, 5)) },
		"instance":  func() { NewInstanceNorm(env, 4, InstanceNormConfig{}).Forward(env.Ones(2, 4)) },
		"one value": func() { NewInstanceNorm(env, 4, InstanceNormConfig{}).Forward(env.Ones(2, 4, 1)) },
		"slopes":    func() { NewPReLU(env, 3).Forward(env.Ones(2, 4)) },
		"odd":       func() { GLU{}.Forward(env.Ones(2, 3)) },
		"limits":    func() { Hardtanh{2, 1}.Forward(env.Ones(2)) },
		"share":     func() { AlphaDropout{1}.Forward(env.Ones(2)) },
		"rank":      func() { Dropout2d{0.5}.Forward(env.Ones(2, 3)) },
	} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
