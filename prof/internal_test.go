package prof

import (
	"runtime"
	"slices"
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
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := newRecorder(n, 0)
	e := device.Event{Kind: device.KindLaunch, Kernel: &device.Kernel{Op: ir.New(ir.Exp, ir.Attr{})}, Start: time.Now(), Took: time.Microsecond}
	e.Site = new(callsite.Site)
	for i := range n {
		e.Site[0], e.Seq = uintptr(i%1000), uint64(i)
		r.add(0, &e)
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
				p.rec.all = make([]record, 0, b.N+1000)
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
	w := &watched{dev: env.Device()}
	r := newRecorder(10, 0)
	e := device.Event{Kind: device.KindRange, Start: time.Now()}
	e.Range = &device.Range{Name: "late", Number: 7}
	r.add(0, &e)
	p := r.profile([]*watched{w})
	e.End = true
	r.add(0, &e)
	if len(p.all) != 1 {
		t.Errorf("%d events", len(p.all))
	}
	e.End, e.Range = false, &device.Range{Number: 8}
	if r.add(0, &e); len(r.all) != 1 {
		t.Errorf("%d events after the end", len(r.all))
	}
}
