package kineto

import "fmt"

// Notes are what should be known of the file itself: where it breaks off, and what was left out.
func (t *Trace) Notes() []string {
	var notes []string
	add := func(n int, format string, args ...any) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	c := &t.counts
	if c.cut != "" {
		notes = append(notes, c.cut+t.lost())
	}
	add(c.broken, "%d events are not JSON and were passed over", c.broken)
	add(c.large, "%d events are larger than %d MiB and were passed over", c.large, windowLimit>>20)
	add(c.garbage, "%d events have times that are no numbers, or last more than a week, and were left out", c.garbage)
	add(c.negative, "%d events have durations below zero, taken as 0", c.negative)
	for k, n := range c.beyond {
		add(n, "%d %s beyond the first %d were not kept", n, kindNames[k], limits[k])
	}
	add(int(t.control), "%d control characters within strings", t.control)
	add(int(t.badUTF8), "%d strings with bytes that are not UTF-8", t.badUTF8)
	if c.processes > 1 {
		add(c.processes, "%d processes launch work in this file: it was merged, and is looked at as one", c.processes)
	}
	add(t.early, "%d kernels began before the call that launched them returned: the clocks of host and device are a little apart, and delays below zero stand as they are", t.early)
	return notes
}

var kindNames = [kinds]string{op: "operators", call: "calls", kernel: "kernels", copying: "copies", setting: "memory sets",
	annotation: "annotations", function: "Python functions", syncing: "waits"}

// lost says which time a file that breaks off has no events of the device for.
func (t *Trace) lost() string {
	s := fmt.Sprintf(", behind %d events", t.counts.events)
	if len(t.device) == 0 {
		return s + "; no event of the device lies before the cut"
	}
	if missing := t.Span.End - extent(t.device).End; missing > 0 {
		s += fmt.Sprintf("; of the host's %.3f ms, the last %.3f ms have no events of the device and are lost", us(t.Span.Dur())/1000, us(missing)/1000)
	}
	return s
}
