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
	add(c.broken, "%s no JSON and passed over", count(c.broken, "event was", "events were"))
	add(c.large, "%s passed over for more than %d MiB", count(c.large, "event was", "events were"), windowLimit>>20)
	add(c.garbage, "%s left out, with times that are no numbers, or of more than a week", count(c.garbage, "event was", "events were"))
	add(c.negative, "%s below zero, taken as 0", count(c.negative, "event has a duration", "events have durations"))
	for k, n := range c.beyond {
		add(n, "%d %s beyond the first %d were not kept", n, kindNames[k], limits[k])
	}
	add(int(t.control), "%s within strings", count(t.control, "control character", "control characters"))
	add(int(t.badUTF8), "%s with bytes that are not UTF-8", count(t.badUTF8, "string", "strings"))
	if c.processes > 1 {
		add(c.processes, "%d processes launch work in this file: it was merged, and is looked at as one", c.processes)
	}
	add(t.early, "%s before the launch returned: the clocks of host and device are a little apart, and delays below zero stand as they are", count(t.early, "kernel began", "kernels began"))
	return notes
}

// count is a number of things, in the singular or the plural.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

var kindNames = [kinds]string{op: "operators", call: "calls", kernel: "kernels", copying: "copies", setting: "memory sets",
	annotation: "annotations", function: "Python functions", syncing: "waits"}

// lost says which time a file that breaks off has no events of the device for.
func (t *Trace) lost() string {
	s := ", behind " + count(t.counts.events, "event", "events")
	if len(t.device) == 0 {
		return s + "; no event of the device lies before the cut"
	}
	if missing := t.Span.End - extent(t.device).End; missing > 0 {
		s += fmt.Sprintf("; of the host's %.3f ms, the last %.3f ms have no events of the device and are lost", us(t.Span.Dur())/1000, us(missing)/1000)
	}
	return s
}
