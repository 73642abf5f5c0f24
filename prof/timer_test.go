package prof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// product is an env and work for a timer.
func product(t *testing.T, name string) (*tensor.Env, func(*tensor.Env)) {
	t.Helper()
	env, err := tensor.Fresh(name)
	if err != nil {
		t.Fatal(err)
	}
	x := env.Ones(64, 64)
	return env, func(env *tensor.Env) { x.In(env).MatMul(x.In(env)) }
}

// TestTimer: what is measured has all its parts, on a device that computes in the call and on one that does not.
func TestTimer(t *testing.T) {
	for _, name := range []string{"cpu", "sim:h100-80:5"} {
		env, f := product(t, name)
		got, err := prof.Timer{Runs: 9}.Time(env, f)
		if err != nil {
			t.Fatal(err)
		}
		s := slices.Sorted(slices.Values(got.Runs))
		if len(s) != 9 || s[0] <= 0 || got.Lower != s[2] || got.Median != s[4] || got.Upper != s[6] {
			t.Errorf("%s: %+v", name, got)
		}
		if got.FLOPs != 2*64*64*64 || got.Bytes != 3*64*64*4 {
			t.Errorf("%s: %d FLOPs, %d bytes", name, got.FLOPs, got.Bytes)
		}
		onHost := name == "cpu"
		if got.Hosted != onHost || got.Modelled == onHost || (got.Enqueue > 0) == onHost || strings.Contains(got.String(), "the host") == onHost {
			t.Errorf("%s: %+v\n%s", name, got, got)
		}
	}
}

// TestTimerIsModelled: a simulated GPU takes the same time in every run of the program, which is that of its kernels with the gaps that
// the marks themselves make.
func TestTimerIsModelled(t *testing.T) {
	var all []prof.Timing
	for range 2 {
		env, f := product(t, "sim:h100-80:5")
		got, err := prof.Timer{}.Time(env, f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *got)
	}
	if all[0].Median != all[1].Median || all[0].Enqueue != all[1].Enqueue || !slices.Equal(all[0].Runs, all[1].Runs) {
		t.Errorf("%v, then %v", all[0].Runs, all[1].Runs)
	}
	env, f := product(t, "sim:h100-80:5")
	p := prof.New(prof.Config{})
	env.Profiled(p)
	f(env)
	p.Stop()
	kernels := p.Last().Summary().Sum
	if all[0].Median < kernels || all[0].Median > kernels+20*time.Microsecond {
		t.Errorf("the timer says %v, the kernels take %v", all[0].Median, kernels)
	}
}

// TestTimerRefuses what cannot be.
func TestTimerRefuses(t *testing.T) {
	for _, c := range []struct {
		device string
		timer  prof.Timer
		want   string
	}{
		{"null:h100-80", prof.Timer{}, "computes nothing"},
		{"sim:h100-80:5", prof.Timer{FLOPs: 1e15}, "FLOP/s"},
		{"sim:h100-80:5", prof.Timer{Bytes: 1e12}, "B/s"},
		{"cpu", prof.Timer{FLOPs: 1e15}, "FLOP/s"},
		{"cpu", prof.Timer{Bytes: 1e15}, "B/s"},
		{"cpu", prof.Timer{Runs: -1}, "-1 runs"},
	} {
		env, f := product(t, c.device)
		c.timer.Runs = min(c.timer.Runs, 1)
		_, err := c.timer.Time(env, f)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: error %v", c.device, c.timer, err)
		}
		if c.timer.Runs == 0 && advice.HintOf(err) == "" {
			t.Errorf("%s, %+v: nothing says what to do", c.device, c.timer)
		}
	}
}
