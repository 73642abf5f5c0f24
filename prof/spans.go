package prof

import (
	"cmp"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
)

// spans are when a device worked, as stamps: a card's keep events of its driver, and 100 bytes each of ours. Of a window that has
// many they become times while it is open.
type spans struct {
	n      int           // in all
	latest []device.Span // the observer's, at most a chunk

	mu      sync.Mutex
	filled  [][]device.Span // chunks before
	settled [][]interval    // chunks before those, as measured gives them
}

// unsettled is how many chunks of stamps stay: a window with fewer asks the driver for no time before its end.
const unsettled = 16

func (s *spans) add(v device.Span) {
	if len(s.latest) == chunk {
		s.mu.Lock()
		s.filled = append(s.filled, s.latest)
		s.mu.Unlock()
		s.latest = nil
	}
	if s.latest == nil {
		s.latest = make([]device.Span, 0, chunk)
	}
	s.latest = append(s.latest, v)
	s.n++
}

// settle makes times of the oldest chunks, as far as the device has come. One call goes at a time; work may be added meanwhile.
func (s *spans) settle(epoch device.Stamp) {
	for {
		s.mu.Lock()
		if len(s.filled) <= unsettled {
			s.mu.Unlock()
			return
		}
		oldest := s.filled[0]
		s.mu.Unlock()
		times, ok := reached(oldest, epoch)
		if !ok {
			return
		}
		s.mu.Lock()
		s.filled = slices.Delete(s.filled, 0, 1)
		s.settled = append(s.settled, times)
		s.mu.Unlock()
	}
}

// reached are the times of stamps; false unless the device has come to all of them, and tells.
func reached(of []device.Span, epoch device.Stamp) (times []interval, ok bool) {
	times = make([]interval, len(of))
	for i := range of {
		done, err := of[i].Ended.Done()
		if !done || err != nil {
			return nil, false
		}
		if times[i], err = measured(&of[i], epoch); err != nil {
			return nil, false
		}
	}
	return times, true
}

// measured is when work began since an epoch, and ended, by the device's clock.
func measured(s *device.Span, epoch device.Stamp) (interval, error) {
	since, err := s.Began.Since(epoch)
	took, err2 := s.Ended.Since(s.Began)
	return interval{int64(since), int64(since + max(took, 0))}, cmp.Or(err, err2)
}
