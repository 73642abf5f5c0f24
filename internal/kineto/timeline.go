package kineto

import "github.com/warpline-ml/warpline/internal/sorting"

// spans are stretches of time in order that do not touch: the union of what they were made of.
type spans []Window

// union is the union of the windows of events in the order of their starts, of those that pick picks.
func union(events []event, pick func(*event) bool) spans {
	var s spans
	for i := range events {
		if e := &events[i]; pick == nil || pick(e) {
			s = s.add(e.start, e.end())
		}
	}
	return s
}

// add adds a window that begins no earlier than the last one did.
func (s spans) add(start, end int64) spans {
	if n := len(s); n > 0 && start <= s[n-1].End {
		s[n-1].End = max(s[n-1].End, end)
		return s
	}
	if end <= start {
		return s
	}
	return append(s, Window{start, end})
}

// unionOf is the union of windows in any order.
func unionOf(windows []Window) spans {
	sorting.By(windows, func(a, b Window) int {
		if a.Start < b.Start {
			return -1
		}
		if a.Start > b.Start {
			return 1
		}
		return 0
	})
	var s spans
	for _, w := range windows {
		s = s.add(w.Start, w.End)
	}
	return s
}

// total is how long they are together, in nanoseconds.
func (s spans) total() (ns int64) {
	for _, w := range s {
		ns += w.Dur()
	}
	return ns
}

// both is what is in s and in o.
func (s spans) both(o spans) spans {
	var r spans
	for i, j := 0, 0; i < len(s) && j < len(o); {
		start, end := max(s[i].Start, o[j].Start), min(s[i].End, o[j].End)
		if start < end {
			r = append(r, Window{start, end})
		}
		if s[i].End < o[j].End {
			i++
		} else {
			j++
		}
	}
	return r
}

// without is what is in s and not in o.
func (s spans) without(o spans) spans {
	var r spans
	j := 0
	for _, w := range s {
		for j < len(o) && o[j].End <= w.Start {
			j++
		}
		start := w.Start
		for k := j; k < len(o) && o[k].Start < w.End; k++ {
			if o[k].Start > start {
				r = append(r, Window{start, o[k].Start})
			}
			start = max(start, o[k].End)
		}
		if start < w.End {
			r = append(r, Window{start, w.End})
		}
	}
	return r
}

// in is what of s lies within w.
func (s spans) in(w Window) spans { return s.both(spans{w}) }
