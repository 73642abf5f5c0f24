package tensor_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// driven is what the engine of this name opens next, each time under another number.
var driven struct {
	api   *driver.API
	cards int
}

func init() {
	device.Register("driven", device.Engine{Open: func(n device.Name) (device.Device, error) {
		return cuda.New(driven.api, 0, n.String(), cuda.Options{})
	}})
}

// openDriver opens the first card of a driver.
func openDriver(api *driver.API) (*tensor.Env, error) {
	driven.api = api
	driven.cards++
	return tensor.Fresh("driven:" + strconv.Itoa(driven.cards))
}

func simulated(t *testing.T, c simcuda.Config) *simcuda.System {
	t.Helper()
	s, err := simcuda.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDriverWithoutMemory lets the driver refuse each allocation of a first step in turn. The allocator gives back what
// is cached and asks again, so the step goes well; a device that cannot be opened says why and opens the next time.
func TestDriverWithoutMemory(t *testing.T) {
	data := make([]float64, 11<<17) // 11 MiB: each copy has a segment of its own
	data[1] = 3
	step := func(env *tensor.Env) (grad float64) {
		w := tensor.NewParam(env.FullOf(dtype.F64, 0.5, 1))
		turn(env, 0, func(e *tensor.Env) {
			x, y := tensor.From(e, data, len(data)), tensor.From(e, data, len(data))
			e.Ones(300_000) // from a segment that medium values share
			x.Slice(0, 0, 2).Mul(y.Slice(0, 1, 3)).Add(x.Slice(0, 1, 2).Mul(w)).Sum().Backward()
			grad = w.Grad().Item()
		})
		return grad
	}
	for k := 1; ; k++ {
		s := simulated(t, simcuda.Config{})
		s.FailAllocation(k)
		env, err := openDriver(s.API())
		if k == 1 {
			if !errors.Is(err, device.ErrOutOfMemory) {
				t.Fatalf("a card without memory: %v", err)
			}
			if env, err = openDriver(s.API()); err != nil {
				t.Fatalf("once there is memory: %v", err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if got := step(env); got != 6 {
			t.Errorf("gradient %v after failure %d", got, k)
		}
		m := env.Device().Memory()
		if m.Scopes != 1 || m.Used > 64 {
			t.Errorf("after failure %d: %v", k, m)
		}
		if retries := strings.Contains(env.Device().MemorySummary(), "alloc retries: 1"); retries != (k > 1) {
			if k < 5 {
				t.Errorf("only %d allocations of the driver in a step", k-1)
			}
			return
		}
	}
}

// TestWaitsHoldNobodyUp: while one goroutine waits for a value, others use the queue.
func TestWaitsHoldNobodyUp(t *testing.T) {
	api := simulated(t, simcuda.Config{}).API()
	waiting, on, synchronize := make(chan bool), make(chan bool), api.EventSynchronize
	var once sync.Once
	api.EventSynchronize = func(e driver.Event) driver.Result {
		once.Do(func() {
			waiting <- true
			select {
			case <-on:
			case <-time.After(time.Minute): // the others never came
			}
		})
		return synchronize(e)
	}
	env, err := openDriver(api)
	if err != nil {
		t.Fatal(err)
	}
	x, got := env.Ones(3), make(chan []float64)
	for name, wait := range map[string]func(){
		"read": func() { got <- x.Floats() },
		"sync": func() { env.Sync(); got <- []float64{1, 1, 1} },
	} {
		once = sync.Once{}
		go wait()
		<-waiting
		begin := time.Now()
		y := x.Scale(2)
		on <- true
		if v := <-got; !slices.Equal(v, []float64{1, 1, 1}) || time.Since(begin) > 50*time.Second {
			t.Errorf("%s: %v after %v", name, v, time.Since(begin))
		}
		equal(t, "computed meanwhile", y, 2, 2, 2)
	}
}

// TestWaitsAreCounted: every wait of the host is booked to the line of the program, however deep in libraries.
func TestWaitsAreCounted(t *testing.T) {
	env, err := openDriver(simulated(t, simcuda.Config{LateEffects: true}).API())
	if err != nil {
		t.Fatal(err)
	}
	d, host := env.Device(), fresh(t, "cpu")
	x := env.Ones(2)
	_, _, line, _ := runtime.Caller(0)
	tensor.Move(host, [][][][]*tensor.Tensor{{{{x}}}})
	_ = fmt.Sprintln(x)
	big := tensor.From(env, make([]float32, 18<<20), 18<<20)
	env.Sync() // asked for
	if err := d.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range d.Syncs() {
		got = append(got, p.What+" "+p.Line)
	}
	slices.Sort(got)
	var want []string
	for i, what := range []string{"copy", "read", "upload"} {
		want = append(want, fmt.Sprintf("%s driver_test.go:%d", what, line+1+i))
	}
	want = slices.Insert(want, 1, fmt.Sprintf("memory driver_test.go:%d", line+5))
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	d.OnWait(tensor.FailWaits)
	fails(t, env, func() { tensor.From(env, make([]float32, 18<<20), 18<<20) }, "upload", "would wait", "driver_test.go")
	d.OnWait(tensor.AllowWaits)
	equal(t, "uploaded", big.Slice(0, -2, 18<<20), 0, 0)
}

// TestLargeReads copies more than one stage both ways.
func TestLargeReads(t *testing.T) {
	env, err := openDriver(simulated(t, simcuda.Config{LateEffects: true, Seed: 3}).API())
	if err != nil {
		t.Fatal(err)
	}
	v := make([]int32, 5*device.Stage/4+3)
	for i := range v {
		v[i] = int32(i)
	}
	x := tensor.From(env, v, len(v))
	clear(v) // the slice may change at once
	moved := tensor.Data[int32](x.To(fresh(t, "cpu")))
	for i, f := range x.Floats() {
		if f != float64(i) || moved[i] != int32(i) {
			t.Fatalf("element %d is %v, moved %d", i, f, moved[i])
		}
	}
}

// TestLostDevice: the error that takes a device along names the launch, once; what is asked of the device later is an
// error of its own that refers to it, and other devices work on.
func TestLostDevice(t *testing.T) {
	s := simulated(t, simcuda.Config{LateEffects: true, StepLimit: 400})
	env, err := openDriver(s.API())
	if err != nil {
		t.Fatal(err)
	}
	sum := env.Ones(300_000).Sum() // takes more steps
	later := sum.Later()
	fails(t, env, func() { sum.Item() }, "one of ", "LAUNCH_TIMEOUT", "it showed at driver_test.go:")
	for op, f := range map[string]func(){
		"add":   func() { sum.Add(sum) },
		"copy":  func() { tensor.From(env, []float32{1}, 1) },
		"Value": func() { later.Value() },
		"Sync":  env.Sync,
	} {
		fails(t, env, f, op+": ", " is out of use since an earlier error", "LAUNCH_TIMEOUT", "driver_test.go:")
	}
	equal(t, "elsewhere", fresh(t, "cpu").Ones(2).Sum(), 2)
}

// TestOutOfMemoryAsksTheDriver: what is free is what the driver says, which knows of other processes.
func TestOutOfMemoryAsksTheDriver(t *testing.T) {
	api := *simulated(t, simcuda.Config{}).API()
	alloc := api.MemAlloc
	api.MemGetInfo = func() (int64, int64, driver.Result) { return 3 << 20, 80 << 30, driver.Success }
	api.MemAlloc = func(n int64) (driver.Ptr, driver.Result) {
		if n > 3<<20 {
			return 0, driver.OutOfMemory
		}
		return alloc(n)
	}
	env, err := openDriver(&api)
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1 << 20) })
	var oom *tensor.OOMError
	if !errors.As(err, &oom) || oom.Free != 3<<20 || !strings.Contains(err.Error(), " of 79.1 GiB, 3.00 MiB free; ") {
		t.Errorf("got %v", err)
	}
}
