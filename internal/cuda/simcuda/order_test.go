package simcuda

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// TestStreamRaces is two streams that touch the same memory, with and without what puts them in order.
func TestStreamRaces(t *testing.T) {
	const n = 256
	type streams struct {
		*rig
		a, b  driver.Stream
		ev    driver.Event
		x, y  driver.Ptr
		scale driver.Function
	}
	fill := func(s streams, on driver.Stream) {
		s.do(0, func() driver.Result { return s.api.MemsetD32Async(s.x, 1, n, on) })
	}
	record := func(s streams) { s.do(0, func() driver.Result { return s.api.EventRecord(s.ev, s.a) }) }
	scale := func(s streams, at driver.Ptr, on driver.Stream) {
		s.do(0, func() driver.Result {
			return s.api.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{n / 32, 1, 1}, Block: [3]uint32{32, 1, 1}, Stream: on}, s.scale, pack(at, uint32(n)))
		})
	}
	for name, c := range map[string]struct {
		f    func(s streams)
		want string
	}{
		"no event":  {func(s streams) { fill(s, s.a); scale(s, s.x, s.b) }, "in another stream writes"},
		"two fills": {func(s streams) { fill(s, s.a); fill(s, s.b) }, "in another stream writes"},
		"copy and kernel": {func(s streams) {
			fill(s, s.a)
			s.do(0, func() driver.Result { return s.api.StreamSynchronize(s.a) })
			scale(s, s.x, s.a)
			s.do(0, func() driver.Result { return s.api.MemcpyDtoDAsync(s.y, s.x, 4*n, s.b) })
		}, "read of what a kernel scale in another stream writes"},
		"wrong order": {func(s streams) {
			record(s)
			fill(s, s.a)
			s.do(0, func() driver.Result { return s.api.StreamWaitEvent(s.b, s.ev) })
			scale(s, s.x, s.b)
		}, "in another stream writes"},
		"event": {func(s streams) {
			fill(s, s.a)
			record(s)
			s.do(0, func() driver.Result { return s.api.StreamWaitEvent(s.b, s.ev) })
			scale(s, s.x, s.b)
		}, ""},
		"the host waits": {func(s streams) {
			fill(s, s.a)
			s.do(0, func() driver.Result { return s.api.StreamSynchronize(s.a) })
			scale(s, s.x, s.b)
		}, ""},
		"one stream": {func(s streams) { fill(s, s.a); scale(s, s.x, s.a) }, ""},
		"other memory": {func(s streams) {
			fill(s, s.a)
			s.do(0, func() driver.Result { return s.api.MemsetD32Async(s.y, 1, n, s.b) })
		}, ""},
		"the legacy stream": {func(s streams) { fill(s, s.a); scale(s, s.x, driver.StreamLegacy) }, "in another stream writes"},
	} {
		for _, late := range []bool{false, true} {
			r := newRig(t, Config{Checks: gpusim.Globalcheck, Collect: true, LateEffects: late, Seed: 3})
			s := streams{r, r.stream(0, driver.StreamNonBlocking), r.stream(0, driver.StreamNonBlocking), r.event(0, 0), r.alloc(0, 4*n), r.alloc(0, 4*n), r.kernel(0, "scale")}
			c.f(s)
			r.do(0, func() driver.Result { return r.api.CtxSynchronize() })
			found := r.sys.Findings()
			if len(found) > 0 != (c.want != "") || len(found) > 0 && !strings.Contains(found[0].Message(), c.want) {
				t.Errorf("%s, late %v: %v", name, late, found)
			}
		}
	}
}

// TestStreamRacesForgotten: what is forgotten is told, and only that.
func TestStreamRacesForgotten(t *testing.T) {
	defer func(n int) { maxSpans = n }(maxSpans)
	for most, want := range map[int]string{1 << 18: "", 8: "what 12 earlier kernels, copies or fills had touched was forgotten"} {
		maxSpans = most
		r := newRig(t, Config{Checks: gpusim.Globalcheck, Collect: true})
		a, b := r.stream(0, driver.StreamNonBlocking), r.stream(0, driver.StreamNonBlocking)
		for _, s := range []driver.Stream{a, b} {
			for range 10 {
				x := r.alloc(0, 64)
				r.do(0, func() driver.Result { return r.api.MemsetD32Async(x, 1, 16, s) })
			}
		}
		r.do(0, func() driver.Result { return r.api.CtxSynchronize() })
		if got := strings.Join(r.sys.Notes(), "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
}
