package prof

import (
	"errors"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// failing and whole are the devices of these names.
var failing, whole = &devicetest.Failing{Device: cpu.New()}, &devicetest.Failing{Device: cpu.New()}

func init() {
	device.Register("whole", device.Engine{Open: func(device.Name) (device.Device, error) { return whole, nil }})
	device.Register("failing", device.Engine{Open: func(device.Name) (device.Device, error) { return failing, nil }})
}

var errFailed = errors.New("an illegal address")

// onFailing is an env of the failing device, which does not fail yet.
func onFailing(t *testing.T) *tensor.Env {
	t.Helper()
	failing.Fail(nil)
	env, err := tensor.Fresh("failing")
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// try is what f panics with on a device.
func try(env *tensor.Env, f func()) error {
	_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
	return err
}

// TestDeviceFails: wherever a device's failure comes to light in a profiler, it is told, nobody observes any more, and the profiler
// can be ended as always.
func TestDeviceFails(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		call func(p *Profiler)
	}{
		{"the end of a round", Config{Active: 1}, (*Profiler).Step},
		{"the end of the last round", Config{Active: 1, Repeat: 1}, (*Profiler).Step},
		{"the end of warming up", Config{Warmup: 1, Active: 2, Memory: true}, (*Profiler).Step},
		{"the end of waiting", Config{Wait: 1, Active: 2}, (*Profiler).Step},
		{"the end of the program", Config{}, (*Profiler).Stop},
	} {
		env := onFailing(t)
		p := New(c.cfg)
		env.Profiled(p).Ones(2).Add(env.Ones(2))
		failing.Fail(func() error { return errFailed })
		if err := try(env, func() { c.call(p) }); !errors.Is(err, errFailed) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !p.mu.TryLock() {
			t.Errorf("%s: the profiler is locked", c.name)
			continue
		}
		p.mu.Unlock()
		if failing.Observed() {
			t.Errorf("%s: the device is observed", c.name)
		}
		if err := try(env, func() { p.Stop(); p.Step() }); err != nil || p.Last() != nil || failing.Observed() {
			t.Errorf("%s: then %v, %v, observed %v", c.name, err, p.Last(), failing.Observed())
		}
	}
}

// TestDeviceFailsFirst: of two devices the second fails as a window opens; the first is observed no more.
func TestDeviceFailsFirst(t *testing.T) {
	env := onFailing(t)
	other, err := tensor.Fresh("whole")
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Wait: 1, Active: 2})
	other.Profiled(p)
	env.Profiled(p)
	failing.Fail(func() error { return errFailed })
	if err := try(env, p.Step); !errors.Is(err, errFailed) || whole.Observed() || p.rec != nil {
		t.Errorf("%v, observed %v, window %v", err, whole.Observed(), p.rec)
	}
}

// TestDiscard: a window is thrown away without waiting for the device, whatever it comes to; nothing is recorded any more.
func TestDiscard(t *testing.T) {
	for _, cfg := range []Config{{}, {Active: 1}, {Warmup: 1, Active: 1, Memory: true}, {Wait: 1, Active: 1}} {
		env, told := onFailing(t), false
		cfg.Ready = func(*Profile) { told = true }
		p := New(cfg)
		env.Profiled(p).Ones(2).Add(env.Ones(2))
		if cfg.Wait == 0 && !failing.Observed() {
			t.Errorf("%+v: nobody observes", cfg)
		}
		failing.Fail(func() error { return errFailed })
		if err := try(env, func() { p.Discard(); p.Step(); p.Stop(); p.Discard() }); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
		if p.Last() != nil || told || failing.Observed() {
			t.Errorf("%+v: recorded %v, told %v, observed %v", cfg, p.Last(), told, failing.Observed())
		}
	}
}

// panicking is a model with a mistake, behind a layer.
type panicking struct {
	*nn.Linear
}

func (m panicking) Forward(x *tensor.Tensor) *tensor.Tensor { return m.Linear.Forward(x).Reshape(7) }

// TestPanics: what panics in a model leaves neither observers nor gradients behind.
func TestPanics(t *testing.T) {
	env := onFailing(t)
	layer := nn.NewLinear(env, 3, 2)
	sum := func(y *tensor.Tensor) *tensor.Tensor { return y.Sum() }
	failsIn := func(turn int) func(*tensor.Tensor) *tensor.Tensor {
		turns := 0
		return func(y *tensor.Tensor) *tensor.Tensor {
			if turns++; turns == turn {
				y.Sum().Backward()
				y.Reshape(7)
			}
			return y.Sum()
		}
	}
	for name, f := range map[string]func(){
		"a model":         func() { Precision(panicking{layer}, env.Ones(1, 3), sum) },
		"a loss":          func() { Precision(layer, env.Ones(1, 3), failsIn(1)) },
		"the second loss": func() { Precision(layer, env.Ones(1, 3), failsIn(2)) },
		"a timer":         func() { Timer{Warmup: 1, Runs: 1}.Time(env, func(*tensor.Env) { env.Ones(2).Reshape(7) }) },
	} {
		if err := try(env, f); err == nil {
			t.Errorf("%s: no error", name)
		}
		if failing.Observed() {
			t.Errorf("%s: the device is observed", name)
		}
		for path, w := range nn.Params(layer) {
			if w.Grad() != nil {
				t.Errorf("%s: %s has a gradient", name, path)
			}
		}
	}
}
