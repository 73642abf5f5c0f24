package nn_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// raises runs f and returns the text of the error that it raises.
func raises(t *testing.T, env *tensor.Env, f func()) string {
	t.Helper()
	_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
	if err == nil {
		t.Error("no error")
		return ""
	}
	return err.Error()
}

// parametric is a model with one of each layer that has parameters, by path, with an input that fits and one that does not.
func parametric(env *tensor.Env) map[string]struct {
	m         nn.Module
	fits, not []int
} {
	return map[string]struct {
		m         nn.Module
		fits, not []int
	}{
		"linear":    {nn.NewLinear(env, 4, 4), []int{2, 4}, nil},
		"conv":      {nn.NewConv2d(env, 4, 4, 3, nn.ConvConfig{}), []int{1, 4, 5, 5}, nil},
		"layernorm": {nn.NewLayerNorm(env, 4), []int{2, 4}, []int{2, 3}},
		"wide":      {nn.NewLayerNorm(env, 2, 4), []int{3, 2, 4}, []int{3, 2, 3}},
		"rmsnorm":   {nn.NewRMSNorm(env, 4), []int{2, 4}, []int{2, 3}},
		"batchnorm": {nn.NewBatchNorm(env, 4), []int{2, 4}, []int{2, 3}},
		"attention": {nn.NewAttention(env, 4, nn.AttentionConfig{Heads: 2}), []int{1, 2, 4}, nil},
	}
}

// TestLayersNameTheirParameters: by path, in errors about shapes and dtypes, in those about a parameter that was written
// between forward and backward, and to those who observe launches, forward and backward.
func TestLayersNameTheirParameters(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	layers := parametric(env)
	model := map[string]nn.Module{}
	for name, l := range layers {
		model[name] = l.m
	}
	for range nn.Params(model) { // which tells them their paths
	}
	for name, l := range layers {
		if l.not != nil {
			for _, x := range []*tensor.Tensor{env.Ones(l.not...), env.Ones(l.fits...).Cast(dtype.F64)} {
				if s := raises(t, env, func() { l.m.Forward(x) }); !strings.Contains(s, "operand 1 is "+name+".weight") {
					t.Errorf("%s: %s", name, s)
				}
			}
		}
		for _, e := range []*tensor.Env{env, env.Autocast(dtype.BF16)} {
			seen := map[string]int{}
			stop := env.Device().Observe(func(e *device.Event) {
				for _, p := range e.Paths {
					seen[p]++
				}
			}, device.KindLaunch)
			y := l.m.Forward(env.Ones(l.fits...).RequireGrad().In(e))
			forward := len(seen)
			stop()
			loss := y.Square().Sum()
			written := 0
			for path, p := range nn.Params(l.m) {
				if seen[name+"."+path] == 0 {
					t.Errorf("%s: no launch of the forward pass names %s; %v", name, path, seen)
				}
				if strings.HasSuffix(path, "weight") {
					p.ScaleInPlace(2)
					written++
				}
			}
			if forward < 1 || written == 0 {
				t.Errorf("%s: %d paths, %d parameters", name, forward, written)
			}
			for range nn.Params(model) {
			}
			if e == env { // casts are of the weight as it was
				s := raises(t, env, func() { loss.Backward() })
				if !strings.Contains(s, "the parameter "+name+".") || !strings.Contains(s, "was changed in place after it was used") || !strings.Contains(s, "one goroutine at a time") {
					t.Errorf("%s: %s", name, s)
				}
			}
		}
	}
}

// TestNilValuesSayWhose names layer, role and path of a value that is not there.
func TestNilValuesSayWhose(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	l, n := nn.NewLinear(env, 2, 2), nn.NewBatchNorm(env, 2)
	for range nn.Params(map[string]any{"head": l, "norm": n}) {
	}
	l.Weight, n.RunningMean = nil, nil
	x := env.Ones(2, 2)
	for want, f := range map[string]func(){
		"nn.Linear: the weight of head is nil":                  func() { l.Forward(x) },
		"nn.BatchNorm: the running mean of norm is nil":         func() { n.Forward(x) },
		"nn.BatchNorm: the input of norm is nil":                func() { n.Forward(nil) },
		"nn.LayerNorm: the weight is nil":                       func() { new(nn.LayerNorm).Forward(x) },
		"nn.RMSNorm: the weight is nil":                         func() { new(nn.RMSNorm).Forward(x) },
		"nn.Conv2d: the weight is nil":                          func() { new(nn.Conv2d).Forward(x) },
		"nn.Embedding: the input is nil":                        func() { new(nn.Embedding).Forward(nil) },
		"ReLU.Forward: an operand is nil":                       func() { nn.ReLU{}.Forward(nil) },
		"MSE: an operand is nil":                                func() { nn.MSE(x, nil) },
		"CrossEntropy: an operand is nil":                       func() { nn.CrossEntropy(nil, x) },
		"add: the second operand is nil":                        func() { x.Add(nil) },
		"MatMul: the first operand is nil":                      func() { (*tensor.Tensor)(nil).MatMul(x) },
		"Tensor.Tanh: an operand is nil":                        func() { (*tensor.Tensor)(nil).Tanh() },
		"LayerNorm: the weight is nil":                          func() { x.LayerNorm(nil, nil, 0) },
		"Attention: the key is nil":                             func() { tensor.Attention(env.Ones(1, 1, 1, 1), nil, nil, tensor.Mask{}) },
		"where: the condition is nil":                           func() { tensor.Where(nil, x, x) },
		"Embedding: the indices is nil":                         func() { x.Embedding(nil) },
		"Sequential.Forward: an operand is nil":                 func() { nn.Sequential{nn.Tanh{}}.Forward(nil) },
		"nn.Sequential: module 1 of 2 is nil at errors_test.go": func() { nn.Sequential{nn.Tanh{}, nil}.Forward(x) },
	} {
		if s := raises(t, env, f); !strings.HasPrefix(s, want) {
			t.Errorf("%q, want %q", s, want)
		}
	}
}

// TestTwoGoroutinesAreTold: while one is in Backward or Step of a model, another that trains it, or takes its gradients,
// gets an error; functions of the program that the first one runs there do not.
func TestTwoGoroutinesAreTold(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	l := nn.NewLinear(env, 2, 2)
	opt := optim.NewSGD(nn.Params(l), optim.SGDConfig{LR: 0.1})
	loss := func() *tensor.Tensor { return l.Forward(env.Ones(1, 2)).Square().Sum() }
	inside, goOn := make(chan bool), make(chan bool)
	var first sync.Once
	wait := func() {
		first.Do(func() {
			inside <- true
			<-goOn
		})
	}
	l.Weight.AfterGrad(func(p *tensor.Tensor) {
		p.Grad()
		wait()
	})
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		loss().Backward()
	}()
	<-inside
	for name, f := range map[string]func(){
		"Backward": func() { loss().Backward() },
		"Grad":     func() { l.Weight.Grad() },
		"Step":     func() { opt.Step() },
	} {
		if s := raises(t, env, f); !strings.Contains(s, "two goroutines train one model") || !strings.Contains(s, "weight") && !strings.Contains(s, "bias") {
			t.Errorf("%s beside a Backward: %s", name, s)
		}
	}
	goOn <- true
	if p := <-done; p != nil {
		t.Errorf("the first goroutine: %v", p)
	}
	if g := l.Weight.Grad(); g == nil {
		t.Error("no gradient")
	}

	first = sync.Once{}
	stop := env.Device().Observe(func(*device.Event) { wait() }, device.KindLaunch)
	go func() {
		defer func() { done <- recover() }()
		opt.Step()
	}()
	<-inside
	if s := raises(t, env, func() { opt.Step() }); !strings.Contains(s, "two goroutines train one model") {
		t.Errorf("Step beside a Step: %s", s)
	}
	goOn <- true
	if p := <-done; p != nil {
		t.Errorf("the first goroutine: %v", p)
	}
	stop()
	loss().Backward()
	opt.Step()
}
