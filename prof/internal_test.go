package prof

import (
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// TestSchedule has the vectors of torch.profiler.schedule.
func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want []phase
	}{
		{Config{Wait: 1, Warmup: 1, Active: 2, Repeat: 1}, []phase{idle, warmup, active, last, idle, idle, idle, idle, idle}},
		{Config{Wait: 1, Warmup: 1, Active: 1}, []phase{idle, warmup, last, idle, warmup, last, idle}},
		{Config{Skip: 2, Active: 2, Repeat: 2}, []phase{idle, idle, active, last, active, last, idle, idle}},
		{Config{Active: 1}, []phase{last, last, last}},
		{Config{}, []phase{active, active, active}},
	} {
		var got []phase
		for i := range c.want {
			got = append(got, c.cfg.phase(i))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.cfg, got, c.want)
		}
	}
}

// TestMemory: a million events take less than 200 MB.
func TestMemory(t *testing.T) {
	const n = 1_000_000
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := newRecorder(n, 0)
	r.observe(env.Device())
	e := device.Event{Kind: device.KindLaunch, Kernel: &device.Kernel{Op: ir.New(ir.Exp, ir.Attr{})}, Start: env.Device().Now(), Took: time.Microsecond}
	e.Site = new(callsite.Site)
	for i := range n {
		e.Site[0], e.Seq = uintptr(i%1000), uint64(i)
		r.lanes[0].add(&e)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 200_000_000 {
		t.Errorf("%d bytes for %d events", got, n)
	}
	runtime.KeepAlive(r)
}

// BenchmarkEager is an operation without a profiler, and with one whose window is open.
func BenchmarkEager(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(map[bool]string{true: "on", false: "off"}[on], func(b *testing.B) {
			env, err := tensor.Fresh("cpu")
			if err != nil {
				b.Fatal(err)
			}
			x := env.Ones(4)
			p := New(Config{Events: 1 << 27})
			if on {
				env.Profiled(p)
			}
			b.ResetTimer()
			for range b.N / 100 {
				env.Do(func(env *tensor.Env) *tensor.Tensor {
					y := x.In(env)
					for range 100 {
						y.Add(y)
					}
					return nil
				})
			}
			b.StopTimer()
			p.Stop()
		})
	}
}

// TestLateEvents: what other goroutines do while a window is being closed is of no window.
func TestLateEvents(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(10, 0)
	r.observe(env.Device())
	_, end := env.Range("late")
	env.Ones(1)
	p := r.profile()
	end()
	env.Ones(1)
	if e := p.at(0); len(p.all) != 2 || e.took <= 0 || time.Duration(e.start+e.took) != p.Took {
		t.Errorf("%d events, the range of %d from %d, the window of %v", len(p.all), e.took, e.start, p.Took)
	}
}

// TestFormatIsDescribed: the guide names each key of profile.json.
func TestFormatIsDescribed(t *testing.T) {
	raw, err := os.ReadFile("../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "**profile.json**")
	text, _, _ = strings.Cut(text, "\n## ")
	of := reflect.TypeFor[stored]()
	for i := range of.NumField() {
		if key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); !strings.Contains(text, "`"+key+"`") {
			t.Errorf("%s is not described", key)
		}
	}
}
