package kineto

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// streamIdle is the idle time of one stream between its first and last event, by HolisticTraceAnalysis' causes.
type streamIdle struct {
	Device int     `json:"device"`
	Stream int64   `json:"stream"`
	Host   float64 `json:"host_wait_us"`   // the next was launched after the one before had ended
	Kernel float64 `json:"kernel_wait_us"` // it began within 30 µs
	Other  float64 `json:"other_us"`
}

// idleByStream are the streams' idle times, of the whole file.
func (t *Trace) idleByStream() []streamIdle {
	last := map[uint16]int64{}
	by := map[uint16]*streamIdle{}
	for i := range t.device {
		e := &t.device[i]
		s := by[e.track]
		if s == nil {
			row := t.tracks[e.track]
			s = &streamIdle{Device: row.device, Stream: row.stream}
			by[e.track] = s
		} else if gap := e.start - last[e.track]; gap > 0 {
			*s.part(t.launched(i), last[e.track], gap) += us(gap)
		}
		last[e.track] = max(last[e.track], e.end())
	}
	all := make([]streamIdle, 0, len(by))
	for _, s := range by {
		all = append(all, *s)
	}
	sorting.By(all, func(a, b streamIdle) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Stream, b.Stream))
	})
	return all[:min(len(all), streamsLimit)]
}

// streamsLimit is how many streams are looked at one by one.
const streamsLimit = 64

// part is the part of the idle time that a gap belongs to.
func (s *streamIdle) part(launch *event, since, gap int64) *float64 {
	switch {
	case launch != nil && launch.start > since:
		return &s.Host
	case gap < kernelDelay:
		return &s.Kernel
	}
	return &s.Other
}
