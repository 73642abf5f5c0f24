package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// here is the line of its caller.
func here() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

// planted are programs in which one operation makes the first number that is none. They note its line.
var planted = []struct {
	name, op       string
	gradient, nans bool
	f              func(e *tensor.Env, line *int)
}{
	{"log of 0", "log", false, false, func(e *tensor.Env, line *int) { *line = here(); e.Zeros(3).Log() }},
	{"division by 0", "div", false, false, func(e *tensor.Env, line *int) { *line = here(); e.Ones(3).Div(e.Zeros(3)) }},
	{"0 by 0", "div", false, true, func(e *tensor.Env, line *int) { *line = here(); e.Zeros(3).Div(e.Zeros(3)) }},
	{"root of a negative", "sqrt", false, true, func(e *tensor.Env, line *int) { *line = here(); e.Full(-1, 3).Sqrt() }},
	{"exp of much", "exp", false, false, func(e *tensor.Env, line *int) { *line = here(); e.Full(1000, 3).Exp() }},
	{"softmax of infinities", "softmax", false, true, func(e *tensor.Env, line *int) { *line = here(); e.Full(math.Inf(1), 2, 3).Softmax(-1) }},
	{"infinity from infinity", "sub", false, true, func(e *tensor.Env, line *int) { *line = here(); e.Full(math.Inf(1), 3).Sub(e.Full(math.Inf(1), 3)) }},
	{"float16 overflow", "matmul", false, false, func(e *tensor.Env, line *int) {
		w := e.Full(300, 4, 4)
		*line = here() + 1
		w.In(e.Autocast(dtype.F16)).MatMul(w)
	}},
	{"float32 too large for float16", "cast", false, false, func(e *tensor.Env, line *int) { *line = here(); e.Full(1e5, 3).Cast(dtype.F16) }},
	{"root at 0, backward", "sqrt", true, false, func(e *tensor.Env, line *int) {
		x := e.Zeros(3).RequireGrad()
		*line = here() + 1
		y := x.Sqrt()
		y.Sum().Backward()
	}},
	{"log of next to nothing, backward", "log", true, false, func(e *tensor.Env, line *int) {
		x := e.Full(1e-38, 3).RequireGrad()
		*line = here() + 1
		y := x.Log()
		y.Scale(100).Sum().Backward()
	}},
	{"float16 overflow, backward", "matmul", true, false, func(e *tensor.Env, line *int) {
		w := nn.NewParam(e.Ones(4, 4))
		*line = here() + 1
		y := e.Ones(4, 4).In(e.Autocast(dtype.F16)).MatMul(w)
		y.Cast(dtype.F32).Scale(3e4).Sum().Backward()
	}},
	{"bad learning rate", "sgd", false, false, func(e *tensor.Env, line *int) {
		w := nn.NewParam(e.Full(1e5, 4))
		opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.SGDConfig{LR: 1e35})
		w.Square().Sum().Backward()
		*line = here() + 1
		opt.Step()
	}},
	{"bad learning rate, adamw", "adamw", false, false, func(e *tensor.Env, line *int) {
		w := nn.NewParam(e.Full(-3e38, 1))
		opt := optim.NewAdam(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.AdamWConfig{LR: 3e38})
		w.Sum().Backward()
		*line = here() + 1
		opt.Step()
	}},
	{"bad learning rate, seen in the product after it", "linear", false, false, func(e *tensor.Env, line *int) {
		w := nn.NewParam(e.Ones(4, 4))
		opt := optim.NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), optim.SGDConfig{LR: 1e38})
		for range 2 {
			*line = here() + 1
			y := e.Ones(1, 4).Linear(w, nil)
			y.Sum().Backward()
			opt.Step()
		}
	}},
	{"own op's gradient", "div", false, false, func(e *tensor.Env, line *int) {
		own := tensor.Func{
			Forward: func(c *tensor.Call, in []*tensor.Tensor) []*tensor.Tensor {
				c.Save(in[0])
				return []*tensor.Tensor{in[0].Scale(2)}
			},
			Backward: func(c *tensor.Call, g []*tensor.Tensor) []*tensor.Tensor {
				*line = here() + 1
				return []*tensor.Tensor{g[0].Div(c.Saved()[0])}
			},
		}
		x := e.Zeros(3).RequireGrad()
		own.Apply(x)[0].Sum().Backward()
	}},
	{"in place", "affine", false, false, func(e *tensor.Env, line *int) {
		x := e.Full(1e30, 3)
		*line = here() + 1
		x.ScaleInPlace(1e30)
	}},
	{"square of much", "mul", false, false, func(e *tensor.Env, line *int) { *line = here(); e.Full(1e30, 3).Square() }},
	{"in a layer", "pow_scalar", false, false, func(e *tensor.Env, line *int) {
		layer := nn.NewLinear(e, 4, 4)
		y := layer.Forward(e.Ones(2, 4)).Sub(e.Full(1e20, 2, 4))
		*line = here() + 1
		y.PowScalar(2)
	}},
}

// TestDetectAnomaly finds each of them, and nothing once it is stopped.
func TestDetectAnomaly(t *testing.T) {
	for _, device := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(device)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range planted {
			t.Run(device+"/"+c.name, func(t *testing.T) {
				line := 0
				run := func() error {
					_, err := env.Try(func(e *tensor.Env) *tensor.Tensor { c.f(e, &line); return nil })
					return err
				}
				stop := env.DetectAnomaly(nil)
				err := run()
				stop()
				var a *tensor.Anomaly
				if !errors.As(err, &a) {
					t.Fatalf("error %v", err)
				}
				if want := fmt.Sprintf("anomaly_test.go:%d", line); a.Op != c.op || a.Gradient != c.gradient || a.Line != want || (a.NaNs > 0) != c.nans || a.NaNs+a.Infs == 0 || a.Hint == "" {
					t.Errorf("%+v, want %s at %s, a gradient %v", a, c.op, want, c.gradient)
				}
				for _, word := range []string{c.op, a.Line, a.Hint, " in ["} {
					if word != " in [" && !strings.Contains(err.Error(), word) {
						t.Errorf("%v: no %q", err, word)
					}
				}
				if err := run(); err != nil {
					t.Errorf("after stop: %v", err)
				}
			})
		}
	}
}

// TestDetectAnomalyTolerates: what is let go on does, and what the program means by an infinity is no anomaly.
func TestDetectAnomalyTolerates(t *testing.T) {
	env := open(t)
	var seen []string
	defer env.DetectAnomaly(func(a *tensor.Anomaly) bool { seen = append(seen, a.Op); return true })()
	env.Zeros(3).Log().Sub(env.Zeros(3).Log()).Scale(2) // -∞, -∞, NaN, NaN
	if got := strings.Join(seen, " "); got != "log log sub" {
		t.Error(got)
	}
	seen = nil
	lower := tensor.Where(env.Arange(3).Gt(env.FullOf(dtype.I64, 1, 3)), env.Full(math.Inf(-1), 3), env.Zeros(3))
	env.Ones(2, 3).RequireGrad().Add(lower).Softmax(-1).Sum().Backward()
	tensor.Attention(env.Rand(1, 1, 3, 4), env.Rand(1, 1, 3, 4), env.Rand(1, 1, 3, 4), tensor.Mask{Keys: lower.Reshape(1, 1, 1, 3), Causal: true})
	env.Full(math.NaN(), 3).Scale(2).Sum()
	env.Ones(3).Norm().RequireGrad().Mul(env.Zeros(3).RequireGrad().Norm()).Backward()
	if len(seen) > 0 {
		t.Error(seen)
	}
}

// TestDetectAnomalyChangesNothing: neither numbers nor random draws, and memory goes back to what it was.
func TestDetectAnomalyChangesNothing(t *testing.T) {
	run := func(detect bool) (loss []float64) {
		env, err := tensor.Fresh("cpu")
		if err != nil {
			t.Fatal(err)
		}
		if detect {
			defer env.DetectAnomaly(nil)()
		}
		model := nn.Sequential{nn.NewLinear(env, 8, 8), nn.ReLU{}, nn.Dropout{P: 0.5}, nn.NewLinear(env, 8, 3)}
		opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 0.01, Clip: 1})
		used := int64(0)
		for i := range 4 {
			e, scope := env.Scope(uint64(i))
			l := nn.CrossEntropy(model.Forward(e.Randn(5, 8)), e.RandInt(0, 3, 5))
			l.Backward()
			opt.Step()
			loss = append(loss, l.Item())
			scope.End()
			if now := env.Device().Memory().Used; i > 1 && now != used {
				t.Errorf("%d bytes, then %d", used, now)
			} else {
				used = now
			}
		}
		return loss
	}
	if got, want := run(true), run(false); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("losses %v, without %v", got, want)
	}
}

// TestDetectAnomalyElsewhere: captured steps are refused, and a device without arithmetic has nothing to look at.
func TestDetectAnomalyElsewhere(t *testing.T) {
	env := open(t)
	stop := env.DetectAnomaly(nil)
	captured := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor { return x.Exp().Sum() })
	_, err := env.Try(func(e *tensor.Env) *tensor.Tensor {
		for range 3 {
			captured.Run(e.Ones(3))
		}
		return nil
	})
	stop()
	if err == nil || !strings.Contains(err.Error(), "DetectAnomaly") {
		t.Errorf("captured: %v", err)
	}
	null, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	defer null.DetectAnomaly(nil)()
	null.Zeros(3).Log()
	if n := null.Device().Unknown(); len(n) > 0 {
		t.Error(n)
	}
}
