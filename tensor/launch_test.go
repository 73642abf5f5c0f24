package tensor_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// spy is a CPU that has no kernel for one code and notes what is launched. The registry opens it once.
type spy struct {
	device.Device
	lacks    ir.Code
	fails    error // of Alloc
	launches []string
	missing  map[ir.Code]bool // codes that it was asked for and has no kernel of
	queues   atomic.Int64     // open ones
}

// last is the spy that the engine of this name opens.
var last *spy

func init() {
	device.Register("spy", device.Engine{Open: func(device.Name) (device.Device, error) {
		last = &spy{Device: cpu.New(), missing: map[ir.Code]bool{}}
		return last, nil
	}})
}

func (s *spy) Prepare(op ir.Op) (*device.Kernel, error) {
	if op.Code == s.lacks {
		return nil, device.ErrUnsupported
	}
	k, err := s.Device.Prepare(op)
	if errors.Is(err, device.ErrUnsupported) {
		s.missing[op.Code] = true
	}
	return k, err
}

func (s *spy) Alloc(n int64) (device.Mem, error) {
	if s.fails != nil {
		return device.Mem{}, s.fails
	}
	return s.Device.Alloc(n)
}

func (s *spy) NewQueue() (device.Queue, error) {
	q, err := s.Device.NewQueue()
	s.queues.Add(1)
	return spyQueue{q, s}, err
}

type spyQueue struct {
	device.Queue
	spy *spy
}

func (q spyQueue) Close() error {
	q.spy.queues.Add(-1)
	return q.Queue.Close()
}

func (q spyQueue) Launch(k *device.Kernel, args []device.Arg, p *device.Params) error {
	q.spy.launches = append(q.spy.launches, k.Op.Code.String()+" "+strings.Join(p.Paths, ",")+" "+p.Site.String())
	return q.Queue.Launch(k, args, p)
}

// Every goroutine may open queues; there are never more than a record's set of readers can tell apart.
func TestQueuesOfManyGoroutines(t *testing.T) {
	env, err := tensor.Fresh("spy")
	if err != nil {
		t.Fatal(err)
	}
	already := last.queues.Load() - 1 // of other tests, on the same engine
	var wg sync.WaitGroup
	for range 130 {
		wg.Go(func() { env.NewQueue() })
	}
	wg.Wait()
	if n := last.queues.Load() - already; n != 64 {
		t.Errorf("%d queues are open", n)
	}
}

// TestLaunches checks that a launch carries its call site and the path of the parameter among its operands, and that an
// op without a kernel runs as its lowering on the same device.
func TestLaunches(t *testing.T) {
	env, err := tensor.Fresh("spy")
	if err != nil {
		t.Fatal(err)
	}
	last.lacks = ir.GELU
	w := tensor.NewParam(env.Ones(2))
	w.SetPath("layer.weight")
	last.launches = nil
	x := env.Ones(2).Mul(w)
	if len(last.launches) != 2 || !strings.HasPrefix(last.launches[0], "full  launch_test.go:") || !strings.HasPrefix(last.launches[1], "mul layer.weight launch_test.go:") {
		t.Errorf("launches %q", last.launches)
	}
	last.launches = nil
	y := x.GELU()
	if len(last.launches) < 3 {
		t.Errorf("the lowering of gelu launched %q", last.launches)
	}
	for _, l := range last.launches {
		if !strings.Contains(l, "launch_test.go:") {
			t.Errorf("launch %q has no line of the program", l)
		}
	}
	equal(t, "gelu(1)", y, 0.8413447, 0.8413447)
	if env.Device().Memory().Scopes != 1 {
		t.Error("the lowering left a scope")
	}
	y.Sum().Backward()
	equal(t, "gradient", w.Grad(), 1.0833155, 1.0833155)
}

// TestFailedDeviceIsNotOutOfMemory: an allocation that fails for another reason than a lack of memory says which.
func TestFailedDeviceIsNotOutOfMemory(t *testing.T) {
	env, err := tensor.Fresh("spy")
	if err != nil {
		t.Fatal(err)
	}
	last.fails = errors.New("an earlier kernel took the device along")
	defer func() { last.fails = nil }()
	_, err = env.Try(func(e *tensor.Env) *tensor.Tensor { return e.Ones(1 << 20) })
	var wrong *tensor.Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), last.fails.Error()) {
		t.Errorf("got %T: %v", err, err)
	}
}
