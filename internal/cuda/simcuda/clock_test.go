package simcuda

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// TestHostTime: calls take the host what the model says, one after the other, and events lie on the same clock: a mark is reached when
// it arrives. Asking takes no time, and does not make late work happen.
func TestHostTime(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newRig(t, Config{Devices: 2, LateEffects: late})
		st, ev := r.stream(0, 0), r.event(0, 0)
		began := r.api.HostTime(r.ctx[0])
		r.do(0, func() driver.Result { return r.api.EventRecord(ev, st) })
		if got := r.api.HostTime(r.ctx[0]) - began; got != callTime {
			t.Errorf("late %v: an event takes the host %d ns, want %d", late, got, callTime)
		}
		if other := r.api.HostTime(r.ctx[1]); other != 0 {
			t.Errorf("late %v: the other device's host is at %d ns", late, other)
		}
		r.do(0, func() driver.Result { return r.api.EventSynchronize(ev) })
		var at, next int64
		r.do(0, func() (res driver.Result) { at, next, res = r.api.EventTime(ev); return res })
		if want := began + callTime + arrivalTime; at != want || next != at {
			t.Errorf("late %v: the event was reached at %d ns, and work went on at %d, want %d", late, at, next, want)
		}
		if now := r.api.HostTime(r.ctx[0]); now != at+syncTime {
			t.Errorf("late %v: the host has waited until %d ns, want %d", late, now, at+syncTime)
		}
		p := r.alloc(0, 64)
		idle := r.api.HostTime(r.ctx[0])
		r.do(0, func() driver.Result { return r.api.MemsetD8Async(p, 1, 64, st) })
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(st) })
		r.do(0, func() (res driver.Result) { at, next, res = r.api.EventTime(ev); return res })
		if want := idle + launchCall + arrivalTime; next != want || at != began+callTime+arrivalTime {
			t.Errorf("late %v: work behind the event began at %d ns, want %d", late, next, want)
		}
	}
	if at := newRig(t, Config{}).api.HostTime(12345); at != 0 {
		t.Errorf("of no context: %d ns", at)
	}
}
