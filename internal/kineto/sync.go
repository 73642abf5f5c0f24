package kineto

import (
	"cmp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// syncSite is a place of the program that waits for the device.
type syncSite struct {
	call  string // cudaStreamSynchronize
	op    string // the innermost operator around it; "" where none is
	stack string // the program's line, where it was recorded
	count int    // within the window
	ns    int64  // in the calls
	idle  int64  // of the device behind them
}

// reads are operators that bring values to the host, or whose result has a size that only the device knows.
var reads = []string{"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::masked_select", "aten::unique",
	"aten::_unique2", "aten::to", "aten::_to_copy", "aten::copy_", "aten::equal", "aten::index", "aten::bincount", "aten::repeat_interleave"}

// isRead tells that a wait is a program's that reads a value.
func (s *syncSite) isRead() bool { return slices.Contains(reads, s.op) }

// findSyncs finds who waits, by the operator around a wait and the program's line, and the device's idle time behind it.
func (a *analysis) findSyncs() {
	var calls []*event
	for i := range a.host {
		e := &a.host[i]
		if a.class(e)&isWait != 0 && e.start >= a.marked.Start && e.start < a.marked.End {
			calls = append(calls, e)
		}
	}
	if len(calls) == 0 {
		return
	}
	around := a.around(calls)
	by := map[[3]string]*syncSite{}
	for i, c := range calls {
		s := syncSite{call: a.Name(c), op: around[i].op, stack: around[i].stack}
		key := [3]string{s.call, s.op, s.stack}
		if by[key] == nil {
			by[key] = &s
		}
		site := by[key]
		site.count++
		site.ns += c.dur
		site.idle += a.idleBehind(c)
	}
	for _, s := range by {
		a.syncs = append(a.syncs, *s)
	}
	sorting.By(a.syncs, func(x, y syncSite) int {
		return cmp.Or(cmp.Compare(y.idle, x.idle), cmp.Compare(y.ns, x.ns), cmp.Compare(y.count, x.count), cmp.Compare(x.call+x.op+x.stack, y.call+y.op+y.stack))
	})
}

// idleBehind is how long the device did nothing because the host had waited for it: the gap that begins within the wait, up
// to the next launch, but for what the host spent in the loader or on memory.
func (a *analysis) idleBehind(c *event) int64 {
	i, _ := slices.BinarySearchFunc(a.gaps, c.end(), func(g gap, at int64) int { return cmp.Compare(g.End, at) })
	if i == len(a.gaps) {
		return 0
	}
	g := &a.gaps[i]
	if !g.hosted || g.Start < c.start || g.Start > c.end() {
		return 0
	}
	part := spans{g.Window}
	return part.without(touching(a.loader, g.Window)).without(touching(a.memory, g.Window)).total()
}

// place is where on the host a call was made.
type place struct {
	op, stack string
	shaped    *event // the innermost operator with shapes
}

// around finds the innermost operator around each call, and the line of the program where the trace has stacks: that of the
// innermost operator that has one.
func (a *analysis) around(calls []*event) []place {
	type query struct {
		*event
		n int
	}
	queries := make([]query, len(calls))
	for i, c := range calls {
		queries[i] = query{c, i}
	}
	sorting.By(queries, func(x, y query) int { return cmp.Or(cmp.Compare(x.track, y.track), cmp.Compare(x.start, y.start)) })
	order := a.opOrder()
	places := make([]place, len(calls))
	var stack []*event
	next := 0
	for _, q := range queries {
		for ; next < len(order); next++ {
			o := &a.ops[order[next]]
			if o.track > q.track || o.track == q.track && o.start > q.start {
				break
			}
			stack = append(enclosing(stack, o.track, o.start), o)
		}
		stack = enclosing(stack, q.track, q.start)
		places[q.n] = a.placeOf(stack)
		if places[q.n].stack == "" {
			places[q.n].stack = a.functionAt(q.event)
		}
	}
	return places
}

// opOrder are the operators in the order of their threads and starts, outer ones first.
func (a *analysis) opOrder() []int32 {
	if a.order != nil {
		return a.order
	}
	order := make([]int32, len(a.ops))
	for i := range order {
		order[i] = int32(i)
	}
	sorting.By(order, func(x, y int32) int {
		if a.ops[x].track != a.ops[y].track {
			return cmp.Compare(a.ops[x].track, a.ops[y].track)
		}
		return byStart(&a.ops[x], &a.ops[y])
	})
	a.order = order
	return order
}

// enclosing drops from a stack of operators what is over at a time of a thread.
func enclosing(stack []*event, track uint16, at int64) []*event {
	for len(stack) > 0 {
		if top := stack[len(stack)-1]; top.track == track && top.end() > at {
			break
		}
		stack = stack[:len(stack)-1]
	}
	return stack
}

func (a *analysis) placeOf(stack []*event) (p place) {
	for i := len(stack) - 1; i >= 0; i-- {
		e := stack[i]
		if p.op == "" && e.kind == op && a.class(e)&isStep == 0 {
			p.op = a.Name(e)
		}
		if p.shaped == nil && e.kind == op && e.id != 0 {
			p.shaped = e
		}
		if p.stack == "" && e.flags&hasStack != 0 {
			p.stack = line(a.names.names[e.aux])
		}
	}
	return p
}

// functionsLimit is how many calls are looked for among the functions of Python.
const functionsLimit = 64

// functionAt is the innermost function of Python around a call, that is not of a library.
func (a *analysis) functionAt(c *event) string {
	if len(a.functions) == 0 || a.asked >= functionsLimit {
		return ""
	}
	a.asked++
	best, own := "", int64(-1)
	for i := range a.functions {
		f := &a.functions[i]
		if f.start <= c.start && c.start < f.end() && f.start > own && f.track == c.track {
			if n := a.Name(f); strings.Contains(n, ".py(") && !isLibrary(n) {
				best, own = n, f.start
			}
		}
	}
	return best
}

// line is the program's own line of a stack, innermost first, whose frames are parted by semicolons; the innermost frame
// where all are of libraries.
func line(stack string) string {
	frames := strings.Split(stack, ";")
	for _, f := range frames {
		if !isLibrary(f) {
			return f
		}
	}
	return frames[0]
}

func isLibrary(frame string) bool {
	for _, s := range []string{"site-packages", "dist-packages", "lib/python", "<built-in", "torch/", "nn.Module:"} {
		if strings.Contains(frame, s) {
			return true
		}
	}
	return false
}
