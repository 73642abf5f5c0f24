package kineto

import (
	"slices"
	"strings"
)

// us is nanoseconds as microseconds.
func us(ns int64) float64 { return float64(ns) / 1000 }

// figures are what is counted and measured of the whole file, by their documented names. Shares of nothing are null, and so
// is what the file does not say.
func (t *Trace) figures() map[string]any {
	f := map[string]any{
		"events": t.counts.events, "phases": t.counts.phases, "categories": t.counts.categories, "top_keys": t.counts.keys,
		"device": nil, "dist": t.dist(), "steps": t.counts.steps, "step_avg_us": nil, "loader_share": nil,
	}
	if len(t.Devices) > 0 {
		f["device"] = t.Devices[0].Name
	}
	if n := t.counts.steps; n > 0 {
		f["step_avg_us"] = us(t.counts.stepTime) / float64(n)
		f["loader_share"] = share(t.counts.loader, t.counts.stepTime)
	}
	t.deviceFigures(f)
	t.hostFigures(f)
	return f
}

func share(part, whole int64) any {
	if whole <= 0 {
		return nil
	}
	return float64(part) / float64(whole)
}

func (t *Trace) dist() map[string]any {
	d := map[string]any{}
	if t.Rank >= 0 {
		d["rank"] = t.Rank
	}
	if t.World > 0 {
		d["world_size"] = t.World
	}
	if t.Backend != "" {
		d["backend"] = t.Backend
	}
	if t.NCCL != "" {
		d["nccl_version"] = t.NCCL
	}
	return d
}

func (t *Trace) deviceFigures(f map[string]any) {
	var kernels, copies, pageable, memsets, comm int
	streams := map[uint16]bool{}
	var durations []int64
	for i := range t.device {
		switch e := &t.device[i]; e.kind {
		case kernel:
			kernels++
			streams[e.track] = true
			durations = append(durations, e.dur)
			if t.class(e)&isComm != 0 {
				comm++
			}
		case copying:
			copies++
			if isPageable(t.Name(e)) {
				pageable++
			}
		case setting:
			memsets++
		}
	}
	busy := union(t.device, nil)
	span := extent(t.device).Dur()
	talk := t.union(isComm)
	f["kernels"], f["copies"], f["copies_pageable"], f["memsets"] = kernels, copies, pageable, memsets
	f["comm_kernels"], f["streams"] = comm, len(streams)
	f["span_us"], f["busy_us"], f["busy_share"] = us(span), us(busy.total()), share(busy.total(), span)
	f["comm_us"], f["comm_exposed_us"] = us(talk.total()), us(talk.without(t.computation()).total())
	f["kernel_median_us"] = median(durations)
}

// extent is from the first start to the last end of events.
func extent(events []event) Window {
	if len(events) == 0 {
		return Window{}
	}
	w := Window{events[0].start, events[0].end()}
	for i := range events {
		w = Window{min(w.Start, events[i].start), max(w.End, events[i].end())}
	}
	return w
}

// union is the time of kernels of a class.
func (t *Trace) union(c class) spans {
	return union(t.device, func(e *event) bool { return e.kind == kernel && t.class(e)&c != 0 })
}

// computation is the time of kernels that do not communicate.
func (t *Trace) computation() spans {
	return union(t.device, func(e *event) bool { return e.kind == kernel && t.class(e)&isComm == 0 })
}

func (t *Trace) hostFigures(f map[string]any) {
	linked, short := 0, 0
	var delays []int64
	for i := range t.device {
		e := &t.device[i]
		l := t.launched(i)
		if e.kind != kernel || l == nil {
			continue
		}
		linked++
		if e.dur < l.dur {
			short++
		}
		delays = append(delays, e.start-l.end())
		if e.start < l.end() {
			t.early++
		}
	}
	if 10*t.early < linked {
		t.early = 0 // a launch returns behind the beginning of its kernel now and then
	}
	calls, waited := 0, int64(0)
	for i := range t.host {
		if e := &t.host[i]; t.class(e)&isWait != 0 {
			calls++
			waited += e.dur
		}
	}
	f["kernels_with_launch"], f["short_kernels"], f["launch_delay_median_us"] = linked, short, median(delays)
	f["sync_calls"], f["sync_us"] = calls, us(waited)
}

// median is the median of nanoseconds in microseconds, or nil of none.
func median(ns []int64) any {
	if len(ns) == 0 {
		return nil
	}
	return medianOf(ns)
}

// medianOf is the median of nanoseconds, of which there is one at least, in microseconds. It sorts them.
func medianOf(ns []int64) float64 {
	slices.Sort(ns)
	n := len(ns)
	return us(ns[(n-1)/2]+ns[n/2]) / 2
}

// isPageable tells a copy from or to memory that the system may move.
func isPageable(name string) bool { return strings.Contains(name, "Pageable") }
