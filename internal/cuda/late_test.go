package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// broken is a queue with an addition whose second operand was freed: a kernel that accesses nobody's memory.
func broken(t *testing.T, o cuda.Options) (d *cuda.Device, q device.Queue, launch func(module string) error) {
	t.Helper()
	s, err := simcuda.New(simcuda.Config{LateEffects: true})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = cuda.New(s.API(), 0, "sim:0", o); err != nil {
		t.Fatal(err)
	}
	if q, err = d.NewQueue(); err != nil {
		t.Fatal(err)
	}
	typ := ir.Dense(dtype.F32, 100)
	add, err := d.Prepare(ir.New(ir.Add, ir.Attr{}, typ, typ))
	if err != nil {
		t.Fatal(err)
	}
	var args []device.Arg
	for range 3 {
		m, err := d.Alloc(400)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, device.Arg{Mem: m})
	}
	d.Free(args[2].Mem)
	return d, q, func(module string) error {
		var site callsite.Site
		callsite.Capture(0, &site)
		return q.Launch(add, args, &device.Params{Origin: device.Origin{Site: &site, Paths: []string{module}}})
	}
}

// TestLateError lets a kernel fault while the host is ahead: the error shows at the Sync and names the launches it may
// have been; later calls refer to it.
func TestLateError(t *testing.T) {
	_, q, launch := broken(t, cuda.Options{})
	if err := errors.Join(launch("first.weight"), launch("second.weight")); err != nil {
		t.Fatalf("a launch waited: %v", err)
	}
	err := q.Sync()
	var late *cuda.LateError
	var cause *driver.Error
	if !errors.As(err, &late) || !errors.As(err, &cause) || cause.Result != driver.IllegalAddress {
		t.Fatalf("got %v", err)
	}
	if late.Pending != 2 || !strings.Contains(err.Error(), "late_test.go:") || !strings.Contains(err.Error(), "second.weight") {
		t.Errorf("the error does not say where it may come from: %v", err)
	}
	if cause.Detail == "" {
		t.Errorf("the simulated GPU has nothing to say: %v", err)
	}
	if again := launch(""); !errors.Is(again, late) || strings.HasPrefix(again.Error(), err.Error()) {
		t.Errorf("the next call says %v", again)
	}
	if err := q.Close(); err != nil {
		t.Errorf("closing a queue whose error was reported: %v", err)
	}
}

// TestLateErrorAtClose reports what no Sync has.
func TestLateErrorAtClose(t *testing.T) {
	_, q, launch := broken(t, cuda.Options{})
	if err := launch("only.weight"); err != nil {
		t.Fatal(err)
	}
	var late *cuda.LateError
	if err := q.Close(); !errors.As(err, &late) || !strings.HasPrefix(err.Error(), "add of only.weight at late_test.go:") {
		t.Errorf("got %v", err)
	}
}

// TestLostToAllQueues: the error of one queue's launch is not taken for another's, which refers to it.
func TestLostToAllQueues(t *testing.T) {
	d, q, launch := broken(t, cuda.Options{})
	other, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(launch("only.weight"), q.Sync())
	var late *cuda.LateError
	if !errors.As(err, &late) {
		t.Fatalf("got %v", err)
	}
	if again := other.Sync(); !errors.Is(again, late) || !strings.HasPrefix(again.Error(), "sim:0 is out of use since an earlier error: ") {
		t.Errorf("the other queue says %v", again)
	}
	if _, again := d.Alloc(1); !errors.Is(again, late) {
		t.Errorf("an allocation says %v", again)
	}
	if err := errors.Join(q.Close(), other.Close(), d.Close()); err != nil {
		t.Errorf("closing queues of a device whose error was reported: %v", err)
	}
}

// TestLateErrorElsewhere: a call that belongs to no queue may be the first to meet an error, and so may one of a queue that
// did nothing wrong: a launch that is refused for it, a question for an event. They name what was under way.
func TestLateErrorElsewhere(t *testing.T) {
	for name, first := range map[string]func(*cuda.Device, device.Queue, device.Mark, func(device.Queue) error) error{
		"alloc": func(d *cuda.Device, _ device.Queue, _ device.Mark, _ func(device.Queue) error) error {
			_, err := d.Alloc(1)
			return err
		},
		"launch": func(_ *cuda.Device, other device.Queue, _ device.Mark, innocent func(device.Queue) error) error {
			return innocent(other)
		},
		"event": func(_ *cuda.Device, _ device.Queue, e device.Mark, _ func(device.Queue) error) error {
			_, err := e.Done()
			return err
		},
		"sync": func(_ *cuda.Device, other device.Queue, _ device.Mark, _ func(device.Queue) error) error {
			return other.Sync()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, q, launch := broken(t, cuda.Options{})
			other, err := d.NewQueue()
			if err != nil {
				t.Fatal(err)
			}
			innocent := healthy(t, d)
			if err := errors.Join(innocent(other), other.Sync()); err != nil {
				t.Fatal(err)
			}
			m, err := d.Alloc(1)
			if err = errors.Join(err, launch("only.weight")); err != nil {
				t.Fatal(err)
			}
			e, err := q.Record()
			if err != nil {
				t.Fatal(err)
			}
			d.Free(m) // waits
			var late *cuda.LateError
			if err := first(d, other, e, innocent); !errors.As(err, &late) || !strings.HasPrefix(err.Error(), "add of only.weight at late_test.go:") {
				t.Errorf("got %v", err)
			}
			if err := q.Sync(); !errors.Is(err, late) || !strings.HasPrefix(err.Error(), "sim:0 is out of use since an earlier error: ") {
				t.Errorf("the launch's queue says %v", err)
			}
		})
	}
}

// healthy is a launch that does nothing wrong.
func healthy(t *testing.T, d *cuda.Device) func(device.Queue) error {
	t.Helper()
	typ := ir.Dense(dtype.F32, 4)
	exp, err := d.Prepare(ir.New(ir.Exp, ir.Attr{}, typ))
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	zeros := ir.Scalars(0)
	var p device.Params
	p.Set(&zeros)
	full, err := d.Prepare(ir.New(ir.Full, ir.Attr{Out: typ}))
	if err != nil {
		t.Fatal(err)
	}
	return func(q device.Queue) error {
		x := device.Arg{Mem: m}
		return errors.Join(q.Launch(full, []device.Arg{x}, &p), q.Launch(exp, []device.Arg{x, x}, &device.Params{Origin: device.Origin{Paths: []string{"innocent"}}}))
	}
}

// TestLateErrorOfQueues: what two queues have under way is all under suspicion, whichever meets the error.
func TestLateErrorOfQueues(t *testing.T) {
	d, q, launch := broken(t, cuda.Options{})
	other, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	innocent := healthy(t, d)
	if err := errors.Join(launch("guilty.weight"), innocent(other)); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(q.Sync())
	var late *cuda.LateError
	if !errors.As(err, &late) || late.Pending != 3 || len(late.Last) != 2 || !strings.HasPrefix(err.Error(), "one of 3 launches on 2 queues, the last of each add of guilty.weight at late_test.go:") || !strings.Contains(err.Error(), " and exp of innocent: ") {
		t.Errorf("got %v", err)
	}
}

// TestBlocking finds the very launch.
func TestBlocking(t *testing.T) {
	_, _, launch := broken(t, cuda.Options{Blocking: true})
	err := launch("only.weight")
	var late *cuda.LateError
	if !errors.As(err, &late) || late.Pending != 1 || !strings.HasPrefix(err.Error(), "add of only.weight at late_test.go:") {
		t.Errorf("got %v", err)
	}
}

// TestIndexError skips what is out of range, tells the first of it at the next Sync, and goes on.
func TestIndexError(t *testing.T) {
	d := opener(t, simcuda.Config{})()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	gather, err := d.Prepare(ir.New(ir.Embedding, ir.Attr{}, ir.Dense(dtype.F32, 10, 4), ir.Dense(dtype.I64, 3)))
	if err != nil {
		t.Fatal(err)
	}
	fill, err := d.Prepare(ir.New(ir.Full, ir.Attr{Out: ir.Dense(dtype.I64, 3)}))
	if err != nil {
		t.Fatal(err)
	}
	var args []device.Arg
	for _, n := range []int64{48, 160, 24} {
		m, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, device.Arg{Mem: m})
	}
	rows := func(index float64) error {
		values := ir.Scalars(index)
		var p device.Params
		p.Set(&values)
		return errors.Join(q.Launch(fill, args[2:], &p), q.Launch(gather, args, &device.Params{Origin: device.Origin{Paths: []string{"table"}}}))
	}
	for _, bad := range []float64{10, -1} {
		if err := errors.Join(rows(bad), rows(3)); err != nil {
			t.Fatal(err)
		}
		err := q.Sync()
		var index *cuda.IndexError
		if !errors.As(err, &index) || index.Index != int64(bad) || index.Bound != 10 || !strings.HasPrefix(err.Error(), "embedding of table: index ") {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(rows(9), q.Sync()); err != nil {
			t.Errorf("after the error: %v", err)
		}
	}
}
