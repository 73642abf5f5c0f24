package litmus

import "slices"

// meeting is one use of a barrier: the k-th of each thread that comes there.
type meeting struct {
	arrivals []int // events
	count    int64 // how many are needed; 0: one of each thread that names the barrier
}

// barrierKey is a barrier of a CTA: which instance of the text, and which number, if it has one.
type barrierKey struct {
	gpu, cta int
	instance string
	number   int64
	numbered bool
}

// joins are the ways in which barriers can order an execution whose values are known; none, if a thread waits for ever.
// A barrier without a count is for all threads of the CTA that name it in their code; with a count, as many let everybody
// go on, and those that come later do not wait: so tests write what in PTX is a number of threads.
func (x *orders) joins(value func(*expr, int) int64) []relation {
	keys := map[int]barrierKey{}
	counts := map[int]int64{}
	for i, e := range x.events {
		if e.class != waiting {
			continue
		}
		k := barrierKey{x.test.Threads[e.thread].GPU, x.test.Threads[e.thread].CTA, e.in.bar, 0, false}
		if args := x.paths[e.thread].events[e.local].args; args[0] != nil {
			k.number, k.numbered = value(args[0], e.thread), true
			if args[1] != nil {
				counts[i] = max(1, value(args[1], e.thread))
			}
		}
		keys[i] = k
	}
	if len(keys) == 0 {
		return []relation{newRelation(len(x.events))}
	}
	uses := x.uses(keys, counts)
	if x.hangs(keys, uses) {
		return nil
	}
	ways := []relation{newRelation(len(x.events))}
	for _, ms := range uses {
		for _, m := range ms {
			ways = x.meet(ways, m)
		}
	}
	return ways
}

// uses are the meetings at each barrier.
func (x *orders) uses(keys map[int]barrierKey, counts map[int]int64) map[barrierKey][]meeting {
	uses := map[barrierKey][]meeting{}
	for t := range x.test.Threads {
		seen := map[barrierKey]int{}
		for i, e := range x.events {
			if e.thread != t || e.class != waiting {
				continue
			}
			k := keys[i]
			n := seen[k]
			seen[k]++
			if n == len(uses[k]) {
				uses[k] = append(uses[k], meeting{})
			}
			uses[k][n].arrivals = append(uses[k][n].arrivals, i)
			uses[k][n].count = max(uses[k][n].count, counts[i])
		}
	}
	return uses
}

// parties is how many threads name a barrier in their code: by a constant, or by a value that this execution gave it.
func (x *orders) parties(k barrierKey, m meeting) int64 {
	if m.count > 0 {
		return m.count
	}
	n := int64(0)
	for t := range x.test.Threads {
		th := &x.test.Threads[t]
		if th.GPU != k.gpu || th.CTA != k.cta {
			continue
		}
		named := slices.ContainsFunc(th.Code, func(in Instruction) bool {
			return in.op == opBarrier && in.bar == k.instance && (len(in.args) > 0) == k.numbered &&
				(!k.numbered || in.args[0].reg < 0 && in.args[0].constant == k.number)
		})
		if named || slices.ContainsFunc(m.arrivals, func(e int) bool { return x.events[e].thread == t }) {
			n++
		}
	}
	return n
}

// hangs lets the threads run from barrier to barrier. It reports whether some wait for ever.
func (x *orders) hangs(keys map[int]barrierKey, uses map[barrierKey][]meeting) bool {
	at := make([]int, len(x.paths)) // how many barriers a thread has passed
	stops := make([][]int, len(x.paths))
	for i, e := range x.events {
		if e.class == waiting {
			stops[e.thread] = append(stops[e.thread], i)
		}
	}
	for moved := true; moved; {
		moved = false
		for t := range stops {
			for at[t] < len(stops[t]) && (x.events[stops[t][at[t]]].in.arrive || x.full(stops[t][at[t]], keys, uses, stops, at)) {
				at[t]++
				moved = true
			}
		}
	}
	for t := range stops {
		if at[t] < len(stops[t]) {
			return true
		}
	}
	return false
}

// full is whether enough threads have come to the meeting of an event.
func (x *orders) full(e int, keys map[int]barrierKey, uses map[barrierKey][]meeting, stops [][]int, at []int) bool {
	for _, m := range uses[keys[e]] {
		if !slices.Contains(m.arrivals, e) {
			continue
		}
		n := int64(0)
		for _, a := range m.arrivals {
			t := x.events[a].thread
			if slices.Index(stops[t], a) <= at[t] {
				n++
			}
		}
		return n >= x.parties(keys[e], m)
	}
	return false
}

// meet adds the orders of one meeting: who is among those that are needed comes before whoever waits.
func (x *orders) meet(ways []relation, m meeting) []relation {
	need := len(m.arrivals)
	if m.count > 0 {
		need = int(min(m.count, int64(need)))
	}
	var out []relation
	for _, some := range choose(m.arrivals, need) {
		for _, w := range ways {
			w = w.clone()
			for _, a := range some {
				for _, b := range m.arrivals {
					if a != b && !x.events[b].in.arrive {
						w.add(a, b)
					}
				}
			}
			out = append(out, w)
		}
	}
	return out
}

// choose is all choices of k of the elements.
func choose(from []int, k int) [][]int {
	if k == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for i := 0; i+k <= len(from); i++ {
		for _, rest := range choose(from[i+1:], k-1) {
			out = append(out, append([]int{from[i]}, rest...))
		}
	}
	return out
}
