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
	"github.com/warpline-ml/warpline/internal/cpufeat"
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

// point is a stamp as the engine for cards has it: two words, and a cleanup that gives the driver's event back.
type point struct{ at, now *int64 }

func (p *point) Done() (bool, error) { return *p.at <= *p.now, nil }

func (p *point) Since(from device.Stamp) (time.Duration, error) {
	return time.Duration(*p.at - *from.(*point).at), nil
}

func newPoint(at, now *int64) device.Stamp {
	p := &point{at, now}
	runtime.AddCleanup(p, func(uintptr) {}, 1)
	return p
}

// TestSettled: times that are read while a window is open are those that are read at its end, and those of work to which the device has
// not come wait for it.
func TestSettled(t *testing.T) {
	const n = (unsettled + 4) * chunk
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var whole [2][]interval
	for i, stepping := range []bool{false, true} {
		var zero, now int64
		clock := make([]int64, 2*n)
		r := newRecorder(1, 0)
		r.observe(env.Device())
		l := r.lanes[0]
		l.epoch = newPoint(&zero, &now)
		for j := range n {
			clock[2*j], clock[2*j+1] = int64(7*j), int64(7*j+j%5)
			l.spans.add(device.Span{Began: newPoint(&clock[2*j], &now), Ended: newPoint(&clock[2*j+1], &now)})
			if now = 7 * int64(j-chunk); stepping && j%1000 == 0 {
				r.step(j)
			}
		}
		if got := len(l.spans.settled); stepping != (got > 0) || got > 4 {
			t.Errorf("stepping %v: %d chunks are settled", stepping, got)
		}
		r.close()
		l.base, l.at = 0, 0
		if whole[i], err = l.times(l.epoch, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(whole[0]) != n || !slices.Equal(whole[0], whole[1]) || whole[0][8] != (interval{56, 59}) {
		t.Errorf("%d and %d times, the ninth %v and %v", len(whole[0]), len(whole[1]), whole[0][8], whole[1][8])
	}
}

// TestMemory: a million events take less than 200 MB, with a card's times too, in steps of ten thousand.
func TestMemory(t *testing.T) {
	for _, stamped := range []bool{false, true} {
		got := memoryOf(t, 1_000_000, stamped)
		t.Logf("stamped %v: %d bytes", stamped, got)
		if got > 200_000_000 {
			t.Errorf("stamped %v: %d bytes for a million events", stamped, got)
		}
	}
}

// memoryOf is what n events take of the process's memory.
func memoryOf(t *testing.T, n int, stamped bool) int64 {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	before := inUse()
	r := newRecorder(n, 0)
	r.observe(env.Device())
	e := device.Event{Kind: device.KindLaunch, Kernel: &device.Kernel{Op: ir.New(ir.Exp, ir.Attr{})}, Start: env.Device().Now(), Took: time.Microsecond}
	e.Site = new(callsite.Site)
	var now int64
	r.lanes[0].epoch = newPoint(&now, &now)
	for i := range n {
		e.Site[0], e.Seq = uintptr(i%1000), uint64(i)
		if stamped {
			e.Span = device.Span{Began: newPoint(&now, &now), Ended: newPoint(&now, &now)}
		}
		r.lanes[0].add(&e)
		if i%10_000 == 0 {
			r.step(i)
		}
	}
	got := inUse() - before
	runtime.KeepAlive(r)
	return got
}

// inUse are the bytes of the heap in use, and of what the runtime keeps about it.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.OtherSys)
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

// TestHostLimits: the highest clock is the table's where the processor is in it, and threads count.
func TestHostLimits(t *testing.T) {
	for _, c := range []struct {
		p    cpufeat.Processor
		want float64
	}{
		{cpufeat.Processor{Model: "Intel(R) Xeon(R) Platinum 8480+", Threads: 2}, 2 * 3800e6 * widestCore},
		{cpufeat.Processor{Model: "AMD EPYC 9654 96-Core Processor", Threads: 1}, 3700e6 * widestCore},
		{cpufeat.Processor{Model: "AMD EPYC 9654P", Threads: 1}, 6200e6 * widestCore},
		{cpufeat.Processor{}, 6200e6 * widestCore},
		{cpufeat.Processor{ID: cpufeat.ID{Maker: "AuthenticAMD", Family: 23, Model: 49}, Threads: 4}, 4 * 6200e6 * 32},
	} {
		if got := hostLimits(c.p).flops; got != c.want {
			t.Errorf("%+v: %g FLOP/s, want %g", c.p, got, c.want)
		}
	}
}
