package explore

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/render"
)

// Run is steps that a host launches and a device carries out.
type Run struct {
	Launch, Device float64 // milliseconds of a step, of each
	Steps          int
	Every          int // the host reads a result each so many steps, as Item and printing do; 0: never
}

// Timeline is who works when, in milliseconds.
type Timeline struct {
	Host   []Span `json:"host"`
	Device []Span `json:"device"`

	Timer float64 `json:"timer_ms"` // what a timer tells that does not wait for the device
	True  float64 `json:"true_ms"`  // what one tells that does
	Idle  float64 `json:"device_idle_ms"`
	Waits float64 `json:"host_waits_ms"`
	Ahead float64 `json:"host_ahead_ms"` // at most: work that is queued
	Step  float64 `json:"step_ms"`       // of the true time
	Bound string  `json:"bound"`         // which of both a step is as long as
	Note  string  `json:"note"`
}

// Span is one of their doings.
type Span struct {
	What  string  `json:"what"` // "launch", "wait", "compute"
	Step  int     `json:"step"`
	Start float64 `json:"start_ms"`
	End   float64 `json:"end_ms"`
}

// mostSteps is what a picture shows.
const mostSteps = 200

// NewTimeline plays a run.
func NewTimeline(r Run) (*Timeline, error) {
	for _, b := range []struct {
		name           string
		v, least, most float64
	}{{"launch", r.Launch, 0.001, 1e6}, {"device", r.Device, 0.001, 1e6}, {"steps", float64(r.Steps), 1, mostSteps}, {"every", float64(r.Every), 0, mostSteps}} {
		if err := within(b.name, b.v, b.least, b.most); err != nil {
			return nil, err
		}
	}
	x := &Timeline{Bound: "host", Note: "a step's work reaches the device when all of it is launched"}
	now, free := 0.0, 0.0 // of the host; when the device has done all it has
	for n := 1; n <= r.Steps; n++ {
		x.Host = append(x.Host, Span{"launch", n, now, now + r.Launch})
		now += r.Launch
		start := max(now, free)
		x.Idle += start - free
		free = start + r.Device
		x.Device = append(x.Device, Span{"compute", n, start, free})
		x.Ahead = max(x.Ahead, free-now)
		if r.Every > 0 && n%r.Every == 0 {
			x.Host = append(x.Host, Span{"wait", n, now, free})
			x.Waits += free - now
			now = free
		}
	}
	x.Timer, x.True, x.Step = now, free, free/float64(r.Steps)
	switch {
	case r.Every == 1:
		x.Bound = "host and device, one after the other"
	case r.Device > r.Launch:
		x.Bound = "device"
	}
	return x, nil
}

// Text is the same for people.
func (x *Timeline) Text(width int) string {
	t := render.Table{Header: []string{"who", "what", "step", "from ms", "to ms"}, Right: []bool{false, false, true, true, true}}
	for _, lane := range []struct {
		who   string
		spans []Span
	}{{"host", x.Host}, {"device", x.Device}} {
		for _, s := range lane.spans {
			t.Rows = append(t.Rows, []string{lane.who, s.What, fmt.Sprint(s.Step), fmt.Sprintf("%.4g", s.Start), fmt.Sprintf("%.4g", s.End)})
		}
	}
	return fmt.Sprintf("%s\na timer that does not wait: %.4g ms; one that does: %.4g ms, %.4g ms a step\nthe device is idle %.4g ms, the host waits %.4g ms, and is at most %.4g ms ahead; bound by: %s\n%s\n",
		t.String(width), x.Timer, x.True, x.Step, x.Idle, x.Waits, x.Ahead, x.Bound, x.Note)
}
