package device

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/ir"
)

func TestStream(t *testing.T) {
	var s Stream
	var first, second []Kind
	stop := s.Observe(func(e *Event) { first = append(first, e.Kind) })
	s.Observe(func(e *Event) { second = append(second, e.Kind) }, KindCopy, KindWait)
	s.Emit(Event{Kind: KindLaunch})
	s.Emit(Event{Kind: KindCopy})
	stop()
	stop() // a second time is as good as once
	for _, k := range []Kind{KindLaunch, KindWait} {
		if got, want := s.Wants(k), k == KindWait; got != want {
			t.Errorf("wants %v: %v", k, got)
		}
		s.Emit(Event{Kind: k})
	}
	if want := []Kind{KindLaunch, KindCopy}; !slices.Equal(first, want) {
		t.Errorf("the first saw %v, want %v", first, want)
	}
	if want := []Kind{KindCopy, KindWait}; !slices.Equal(second, want) {
		t.Errorf("the second saw %v, want %v", second, want)
	}
	var none *Stream
	if none.Wants(KindAlloc) {
		t.Error("no stream has observers")
	}
	none.Emit(Event{Kind: KindAlloc})
}

// TestSiteOfEvents: an event without a site gets the line that led to it; what an observer asks for itself is that of the
// goroutine that asked.
func TestSiteOfEvents(t *testing.T) {
	var s Stream
	var kept *Event
	var stack []uintptr
	var goroutine uint64
	s.Observe(func(e *Event) { kept, stack, goroutine = e.Clone(), e.Stack(), e.Goroutine() })
	s.Emit(Event{Kind: KindMark, Origin: Origin{Paths: []string{"w"}}})
	if line := kept.Site.String(); !strings.HasPrefix(line, "stream_test.go:") {
		t.Errorf("the event is of %s", line)
	}
	if len(stack) < 3 || goroutine == 0 {
		t.Errorf("%d frames on goroutine %d", len(stack), goroutine)
	}
	site := kept.Site
	s.Emit(Event{Kind: KindMark})
	if site == kept.Site {
		t.Error("a clone's site is another event's")
	}
}

// TestStopWhileEmitting: an observer is never called after its stop has returned.
func TestStopWhileEmitting(t *testing.T) {
	var s Stream
	var end atomic.Bool
	var emitters sync.WaitGroup
	for range 4 {
		emitters.Go(func() {
			for !end.Load() {
				s.Emit(Event{Kind: KindLaunch, Origin: Origin{Site: nowhere}})
			}
		})
	}
	var stoppers sync.WaitGroup
	for range 4 {
		stoppers.Go(func() {
			for range 200 {
				var stopped atomic.Bool
				stop := s.Observe(func(*Event) {
					if stopped.Load() {
						t.Error("called after stop")
					}
				})
				time.Sleep(time.Microsecond)
				stop()
				stopped.Store(true)
			}
		})
	}
	stoppers.Wait()
	end.Store(true)
	emitters.Wait()
	if s.Wants(KindLaunch) {
		t.Error("observers are left")
	}
}

var nowhere = new(callsite.Site)

func TestEventKinds(t *testing.T) {
	names := map[string]bool{}
	for i, k := range EventKinds() {
		if int(k.Kind) != i || k.Name == "" || names[k.Name] || k.Kind.String() != k.Name {
			t.Errorf("kind %d is %+v", i, k)
		}
		names[k.Name] = true
	}
}

// TestNothingIsMade: what nobody observes allocates nothing, and neither does making and passing on an event.
func TestNothingIsMade(t *testing.T) {
	var s Stream
	emit := func() { s.Emit(Event{Kind: KindLaunch, Origin: Origin{Site: nowhere}}) }
	if n := testing.AllocsPerRun(100, emit); n != 0 {
		t.Errorf("%v allocations without an observer", n)
	}
	seen := 0
	s.Observe(func(*Event) { seen++ })
	if n := testing.AllocsPerRun(100, emit); n > 0.5 { // the pool may be emptied meanwhile
		t.Errorf("%v allocations with one", n)
	}
	if seen < 100 {
		t.Errorf("%d events", seen)
	}
}

// TestTally counts a launch of two steps, one of none and one on a device that computes in the caller.
func TestTally(t *testing.T) {
	x := ir.Dense(dtype.F32, 10)
	k := Kernel{Op: ir.New(ir.Add, ir.Attr{}, x, x), Out: []*ir.Type{x}, FLOPs: 10, Bytes: 120}
	two := k
	two.Steps = []Step{{Fill: 40}, {Name: "add", Grid: [3]int{2, 3, 4}}}
	var tally Tally
	for _, e := range []Event{
		{Kind: KindLaunch, Kernel: &k, Bytes: 120},
		{Kind: KindFill, Kernel: &two, Bytes: 40},
		{Kind: KindLaunch, Kernel: &two, Step: 1, Bytes: 120},
		{Kind: KindCopy, Bytes: 7},
		{Kind: KindWait, What: WaitQueue},
		{Kind: KindWait, What: WaitRead},
		{Kind: KindAlloc},
	} {
		tally.Observe(&e)
	}
	want := Work{Kernels: 2, Blocks: 24, FLOPs: 20, Read: 160, Written: 80, Fills: 1, Filled: 40, Copies: 1, Copied: 7, Waits: 1, Allocs: 1}
	all, ops := tally.Work()
	if all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
	want.Copies, want.Copied, want.Waits, want.Allocs = 0, 0, 0, 0
	if len(ops) != 1 || ops["add"] != want {
		t.Errorf("by operation %+v", ops)
	}
}
