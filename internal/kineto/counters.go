package kineto

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Annotate copies a trace from r, which t was read from by Read, to w, with two kinds of counters added that viewers draw as
// areas: for each stream how much was launched and has not begun, and for each device whether it does anything. It is an
// error if the file breaks off or the device does nothing in it.
func (t *Trace) Annotate(w io.Writer, r io.Reader) error {
	switch {
	case t.counts.cut != "":
		return errors.New(t.counts.cut + ": the file is not whole")
	case len(t.device) == 0:
		return errors.New("no events of a device, whose queues might be counted")
	}
	if _, err := io.CopyN(w, r, t.eventsAt); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for _, c := range t.counters() {
		fmt.Fprintf(out, "\n{\"ph\":\"C\",\"cat\":\"warpline\",\"name\":%q,\"pid\":%d,\"tid\":0,\"ts\":%s,\"args\":{%q:%d}},", c.name, c.device, stamp(c.at), c.unit, c.value)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

// stamp writes nanoseconds as a file has them.
func stamp(ns int64) string {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000)
}

// counter is a value from a time on.
type counter struct {
	device     int
	name, unit string
	at         int64
	value      int
}

// counters are all, by device, name and time.
func (t *Trace) counters() []counter {
	all := append(t.queues(), t.activity()...)
	sorting.By(all, func(a, b counter) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.name, b.name), cmp.Compare(a.at, b.at))
	})
	return all
}

// queues are how many events of each stream were launched and had not begun, at each change.
func (t *Trace) queues() (all []counter) {
	type change struct {
		at int64
		by int
	}
	by := map[uint16][]change{}
	for i := range t.device {
		e := &t.device[i]
		if l := t.launched(i); l != nil {
			by[e.track] = append(by[e.track], change{l.start, 1}, change{max(e.start, l.start), -1})
		}
	}
	for n, changes := range by {
		sorting.By(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
		row, length := t.tracks[n], 0
		for i, c := range changes {
			if length += c.by; i+1 < len(changes) && changes[i+1].at == c.at {
				continue
			}
			all = append(all, counter{row.device, fmt.Sprintf("queue of stream %d", row.stream), "launched", c.at, length})
		}
	}
	return all
}

// activity is whether each device does anything.
func (t *Trace) activity() (all []counter) {
	by := map[int][]Window{}
	for i := range t.device {
		e := &t.device[i]
		d := t.tracks[e.track].device
		by[d] = append(by[d], Window{e.start, e.end()})
	}
	for d, w := range by {
		for _, s := range unionOf(w) {
			all = append(all, counter{d, "busy", "busy", s.Start, 1}, counter{d, "busy", "busy", s.End, 0})
		}
	}
	return all
}
