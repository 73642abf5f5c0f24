package cpu

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() { // without keys the indices are the first operand
	offer(inF32(byNumber{lastOf[float32], lastOf[float64], lastOf[int64], lastOf[int32], lastOf[uint8]}.prepare), ir.LastAt)
}

// lasting is LastAt: one pass over the indices, in which a later one takes the place of one that it does not lose to.
type lasting[T number] struct {
	lines
	chunks *loop[indexCall]
	total  int // places
	keyed  bool
	least  bool
}

func lastOf[T number](k *device.Kernel) run {
	n := k.Op.NumIn()
	g := &lasting[T]{lines: linesOf(&k.Op, k.Out[0], k.Op.In(n-1)), total: k.Out[0].Size(), keyed: n == 2, least: k.Op.Attr.Flag&ir.Descending != 0}
	g.at = 1 + n
	g.chunks = newLoop(g.cover)
	return func(args []device.Arg, _ *device.Params) error {
		clear(values[int64](args[0], g.total))
		clear(values[bool](args[1], g.total))
		return g.launch(g.chunks, args)
	}
}

func (g *lasting[T]) cover(c *indexCall, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	n := g.idx.Size()
	places, hit, idx := values[int64](c.args[0], g.total), values[bool](c.args[1], g.total), values[int64](c.args[g.at], n)
	var keys []T
	if g.keyed {
		keys = values[T](c.args[2], n)
	}
	g.each(lo, hi, func(i, l, n int) {
		starts := slot[int](s, slotC, n)
		g.starts(starts, i, l)
		if g.whole() {
			from, to := i*g.n, starts[0]
			line := idx[from:][:g.n]
			if keys == nil {
				lastLine(c, places[to:][:g.size], hit[to:][:g.size], line, from)
			} else {
				g.bestLine(c, places[to:][:g.size], hit[to:][:g.size], keys[from:][:g.n], line, from)
			}
			return
		}
		for j := range g.n {
			row := (i*g.n+j)*g.inner + l
			for t, v := range idx[row : row+n] {
				if uint64(v) >= uint64(g.size) {
					c.bad.at(row + t)
					continue
				}
				at := starts[t] + int(v)*g.stride
				if keys != nil && hit[at] && g.loses(keys[row+t], keys[(i*g.n+int(places[at]))*g.inner+l+t]) {
					continue
				}
				places[at], hit[at] = int64(j), true
			}
		}
	})
}

// lastLine notes a line of indices; first is the place of the first of these.
func lastLine(c *indexCall, places []int64, hit []bool, idx []int64, first int) {
	hit = hit[:len(places)]
	for j, v := range idx {
		if uint64(v) >= uint64(len(places)) {
			c.bad.at(first + j)
			continue
		}
		places[v], hit[v] = int64(j), true
	}
}

// bestLine is lastLine with keys.
func (g *lasting[T]) bestLine(c *indexCall, places []int64, hit []bool, keys []T, idx []int64, first int) {
	hit = hit[:len(places)]
	for j, v := range idx {
		if uint64(v) >= uint64(len(places)) {
			c.bad.at(first + j)
			continue
		}
		if hit[v] && g.loses(keys[j], keys[places[v]]) {
			continue
		}
		places[v], hit[v] = int64(j), true
	}
}

// loses compares keys: NaN loses to none.
func (g *lasting[T]) loses(key, old T) bool {
	switch {
	case key != key:
		return false
	case old != old:
		return true
	case g.least:
		return key > old
	}
	return key < old
}
