package device

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/hostclock"
)

// Stream is where the events of a device pass: who emits them asks Wants first, so that nothing is made that nobody
// observes. The zero Stream is ready. It may be used by several goroutines at once.
type Stream struct {
	wanted atomic.Uint32 // kinds, a bit each
	all    atomic.Pointer[[]*observer]
	mu     sync.Mutex // guards changes of the two
	timed  atomic.Int32

	// Clock is the host's time, where that is not the machine's. It is set before the first event.
	Clock func() time.Duration
}

// Now is the host's time, by which events are told: it goes on steadily, from some moment before the first.
func (s *Stream) Now() time.Duration {
	if s != nil && s.Clock != nil {
		return s.Clock()
	}
	return hostclock.Now()
}

type observer struct {
	f     func(*Event)
	kinds uint32
	calls sync.Mutex // held while f runs
	gone  bool
}

// Source is a [Device] with events of its own, beside those of the work that it is given: of the compilation of kernels.
type Source interface {
	Events() *Stream
}

// Observe calls f with each event of some kinds, or of all if none are given, until stop is called; after stop has
// returned, f is not running and will not be called. f runs on the goroutine that asked for the work, of one event at a
// time and with locks of the device held: it must be quick, and call neither stop nor the device. Of ranges alone it is told
// without locks of the device, and may give that work.
func (s *Stream) Observe(f func(*Event), kinds ...Kind) (stop func()) {
	o := &observer{f: f}
	for _, k := range kinds {
		o.kinds |= 1 << k
	}
	if len(kinds) == 0 {
		o.kinds = 1<<kindCount - 1
	}
	s.change(func(all []*observer) []*observer { return append(slices.Clone(all), o) })
	return sync.OnceFunc(func() {
		s.change(func(all []*observer) []*observer {
			return slices.DeleteFunc(slices.Clone(all), func(p *observer) bool { return p == o })
		})
		o.calls.Lock()
		o.gone = true
		o.calls.Unlock()
	})
}

func (s *Stream) change(f func([]*observer) []*observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*observer
	if old := s.all.Load(); old != nil {
		all = *old
	}
	all = f(all)
	wanted := uint32(0)
	for _, o := range all {
		wanted |= o.kinds
	}
	s.all.Store(&all)
	s.wanted.Store(wanted)
}

// Wants tells whether somebody observes events of a kind. A nil Stream has no observers.
func (s *Stream) Wants(k Kind) bool { return s != nil && s.wanted.Load()>>k&1 != 0 }

// Time makes those who emit work note when the device begins and ends it, until stop is called. It costs the device some
// hundred nanoseconds for each piece.
func (s *Stream) Time() (stop func()) {
	s.timed.Add(1)
	return sync.OnceFunc(func() { s.timed.Add(-1) })
}

// Timed tells whether somebody wants times.
func (s *Stream) Timed() bool { return s.timed.Load() > 0 }

// WantsWork tells whether somebody observes launches, fills or memory, for whom operations note their origin.
func (s *Stream) WantsWork() bool { return s.wanted.Load()&work != 0 }

const work = 1<<KindLaunch | 1<<KindFill | 1<<KindAlloc | 1<<KindSegmentAlloc | 1<<KindOutOfMemory | 1<<KindRelabel | 1<<KindBackward

// events are those under way, which observers get by address.
var events = sync.Pool{New: func() any { return new(underway) }}

type underway struct {
	Event
	site callsite.Site
}

// Emit tells the observers of e's kind of it. An event without a site gets that of the program's call.
func (s *Stream) Emit(e Event) {
	if !s.Wants(e.Kind) {
		return
	}
	u := events.Get().(*underway)
	u.Event = e
	if e.Site == nil {
		callsite.User(&u.site)
		u.Site = &u.site
	}
	s.Tell(&u.Event)
	*u = underway{}
	events.Put(u)
}

// Tell is Emit of an event that has a site and lies in memory of the caller's, for what happens often.
func (s *Stream) Tell(e *Event) {
	all := s.all.Load()
	if all == nil {
		return
	}
	for _, o := range *all {
		if o.kinds>>e.Kind&1 != 0 {
			o.tell(e)
		}
	}
}

func (o *observer) tell(e *Event) {
	o.calls.Lock()
	defer o.calls.Unlock()
	if !o.gone {
		o.f(e)
	}
}
