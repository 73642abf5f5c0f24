package cuda_test

import (
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// TestStampsServeAgain: a driver's event keeps its time as long as somebody may ask for it, and serves again after.
func TestStampsServeAgain(t *testing.T) {
	var c counting
	api := c.api()
	recorded := map[driver.Event]int{}
	api.EventRecord = func(e driver.Event, _ driver.Stream) driver.Result {
		recorded[e]++
		return c.ok("record")
	}
	l := newLauncher(t, api)
	timer, ok := device.As[device.Timer](l.q)
	if !ok {
		t.Fatal("the queue tells no times")
	}
	const n = 5
	take := func() (stamps [n]device.Stamp) {
		for i := range stamps {
			var err error
			if stamps[i], err = timer.Stamp(); err != nil {
				t.Fatal(err)
			}
		}
		return stamps
	}
	kept := take()
	held := slices.Collect(maps.Keys(recorded))
	take()
	if len(recorded) != 2*n {
		t.Fatalf("%d events for %d stamps", len(recorded), 2*n)
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.GC() {
		before := len(recorded)
		if take(); len(recorded) == before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events, and none serves again", len(recorded))
		}
	}
	for _, e := range held {
		if recorded[e] != 1 {
			t.Errorf("the event of a stamp that is in use was recorded %d times", recorded[e])
		}
	}
	runtime.KeepAlive(kept)
}

// TestTimesOfAFailure: a timed launch that fails leaves nothing to the next, timed or not.
func TestTimesOfAFailure(t *testing.T) {
	var c counting
	api := c.api()
	launch, fails := api.LaunchKernelEx, true
	api.LaunchKernelEx = func(shape *driver.LaunchConfig, f driver.Function, params []byte) driver.Result {
		if fails {
			return driver.OutOfResources
		}
		return launch(shape, f, params)
	}
	l := newLauncher(t, api)
	var times []device.Span
	l.p.Times = &times
	if err := l.q.Launch(l.k, l.args, &l.p); err == nil || len(times) > 0 {
		t.Fatalf("error %v, %d times", err, len(times))
	}
	fails, l.p.Times = false, nil
	if err := l.q.Launch(l.k, l.args, &l.p); err != nil {
		t.Fatal(err)
	}
	l.p.Times = &times
	if err := l.q.Launch(l.k, l.args, &l.p); err != nil || len(times) != len(l.k.Steps) {
		t.Errorf("error %v, %d times of %d steps", err, len(times), len(l.k.Steps))
	}
}
