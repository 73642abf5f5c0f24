package kineto

import (
	"fmt"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

// pageableCopies: copies from and to memory that the system may move are made through a buffer, and stop the host.
func pageableCopies(a *analysis) *finding.Finding {
	pick := func(e *event) bool { return e.kind == copying && isPageable(a.Name(e)) }
	rows := a.totals(pick)
	if len(rows) == 0 {
		return nil
	}
	free := map[*event]bool{}
	n, bytes := 0, int64(0)
	for i := a.first; i < a.last; i++ {
		if e := &a.device[i]; pick(e) {
			n++
			bytes += a.bytes[e.aux]
			if l := a.launched(i); l != nil {
				free[l] = true
			}
		}
	}
	gain := a.gain(change{free: func(c *event) bool { return free[c] }, scale: func(i int) float64 {
		if pick(&a.device[i]) && a.bytes[a.device[i].aux] > tinyCopy {
			return pageableToPinned
		}
		return 1
	}})
	if !a.worth(gain) && bytes < leastPageable {
		return nil
	}
	f := &finding.Finding{
		Title:       fmt.Sprintf("%d copies %s go from or to pageable memory", (n+max(a.steps, 1)-1)/max(a.steps, 1), a.each()),
		Fix:         "pin the host's memory and do not wait: DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True); values read back go to pinned memory, or stay on the device",
		Gain:        a.saves(gain, "copies that the host does not wait for, at twice the rate, by a replay of the timeline"),
		Confidence:  finding.High,
		DisprovedBy: "the same step with pinned memory and non_blocking=True, no shorter",
	}
	for _, r := range rows {
		f.Evidence = append(f.Evidence, counted("copies", r.count, "%s: %d in %s, %s at %s", a.names.names[r.name], r.count, a.windowText(),
			render.Bytes(r.bytes), rate(r.bytes, r.ns)))
	}
	if all := a.pageable; all > n {
		f.Evidence = append(f.Evidence, counted("copies_pageable", all, "%d in the whole file", all))
	}
	return f
}

// leastPageable are the bytes in a trace that are said whatever they cost: elsewhere in the program there may be more.
const leastPageable = 1 << 20

// pageableToPinned is how long a copy takes of pinned memory, as a part of what it takes of pageable: the links of servers
// give 12 to 25 GB/s to the one, and 5 to 10 to the other.
const pageableToPinned = 0.5

func (a *analysis) windowText() string {
	if a.steps > 0 {
		return fmt.Sprintf("%d steps", a.steps)
	}
	return "the trace"
}

func rate(bytes, ns int64) string {
	if ns <= 0 {
		return "no measurable rate"
	}
	return fmt.Sprintf("%.1f GB/s", float64(bytes)/float64(ns))
}

// smallCopies: each copy costs some 10 µs, whatever it carries.
func smallCopies(a *analysis) *finding.Finding {
	var sizes []int64
	var ns, host int64
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		if e.kind != copying {
			continue
		}
		sizes = append(sizes, a.bytes[e.aux])
		ns += e.dur
		if l := a.launched(i); l != nil {
			host += l.dur
		}
	}
	n := len(sizes) / a.steps
	if n <= tinyCopies {
		return nil
	}
	typical := medianNS(sizes)
	gain := a.gain(change{free: func(c *event) bool { return isCopy(a.Name(c)) }, scale: func(i int) float64 {
		if a.device[i].kind == copying {
			return 1 / float64(n)
		}
		return 1
	}})
	if typical >= tinyCopy || !a.worth(gain) {
		return nil
	}
	f := &finding.Finding{
		Title: fmt.Sprintf("%d copies a step, of %s at the median, cost more in launches than in bytes", n, render.Bytes(typical)),
		Evidence: []finding.Evidence{
			counted("copies", n, "%d copies a step: %s on the device, %s of the host's in the calls", n, duration(a.perStep(ns)), duration(a.perStep(host))),
		},
		Fix:         "put them into one buffer and copy that once: torch._foreach_copy_, flattened parameters, or one tensor for all small inputs of a batch",
		Gain:        a.saves(gain, "one copy in place of all, by a replay of the timeline"),
		Confidence:  finding.Medium,
		DisprovedBy: "a step in which they are packed, no shorter",
	}
	for _, r := range a.totals(func(e *event) bool { return e.kind == copying })[:1] {
		f.Evidence = append(f.Evidence, counted("kind", r.count/a.steps, "most are %s, %d a step", a.names.names[r.name], r.count/a.steps))
	}
	return f
}

// exposedCopies: batches come while the device could compute.
func exposedCopies(a *analysis) *finding.Finding {
	in := union(a.device, func(e *event) bool { return e.kind == copying && strings.Contains(a.Name(e), "HtoD") }).in(a.window)
	alone := in.without(a.compute).total()
	if 2*alone <= in.total() || a.share(alone) <= copyShare {
		return nil
	}
	return &finding.Finding{
		Title: fmt.Sprintf("Copies to the GPU take %s %s in which it computes nothing", duration(a.perStep(alone)), a.each()),
		Evidence: []finding.Evidence{
			timing("copies", a.perStep(in.total()), "%s %s of copies from the host", duration(a.perStep(in.total())), a.each()),
			part("exposed", float64(alone)/float64(in.total()), "%s of that overlaps no kernel", percent(float64(alone)/float64(in.total()))),
		},
		Fix:         "copy the next batch while this one is computed: a stream of its own, pinned memory, non_blocking=True, two buffers",
		Gain:        a.saves(time.Duration(a.perStep(alone)), "at most: all copies behind kernels"),
		Confidence:  finding.Medium,
		DisprovedBy: "a step with a batch that is on the device already, no shorter",
	}
}
