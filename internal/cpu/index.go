package cpu

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(bySize{gathered[uint8], gathered[uint16], gathered[uint32], gathered[uint64]}.prepare, ir.Gather)
	offer(inF32(byNumber{scattered[float32], scattered[float64], scattered[int64], scattered[int32], scattered[uint8]}.prepare), ir.ScatterAdd)
}

// indexCall is a launch of an op with indices.
type indexCall struct {
	args []device.Arg
	bad  fault // the first index out of range
}

// outOfRange is the error for the index at a place of a row-major tensor of indices.
func outOfRange(idx *ir.Type, values []int64, place, axis, size int) error {
	at := make([]int, idx.Rank())
	for d, rest := idx.Rank()-1, place; d >= 0; d-- {
		at[d] = rest % idx.Dim(d)
		rest /= idx.Dim(d)
	}
	return fmt.Errorf("index %d at %v is out of range: dimension %d has %d entries, 0 to %d", values[place], at, axis, size, size-1)
}

// lines are the lines of a tensor of indices along the axis. Different lines meet different elements of the indexed
// tensor, so that strips of lines are independent of each other.
type lines struct {
	strips
	op     ir.Op
	idx    *ir.Type
	start  layout // of the indexed tensor's elements at index 0, in the order of idx
	size   int    // of the indexed tensor along the axis
	stride int
	at     int // of the indices among the arguments
}

func linesOf(op *ir.Op, x, idx *ir.Type) lines {
	axis := int(op.Attr.Axis)
	l := lines{strips: stripsOf(alongOf(idx, op.Attr.Axis)), op: *op, idx: idx, size: x.Dim(axis), at: 2}
	steps := x.AsDense().Strides()
	l.stride = steps[axis]
	for d, n := range idx.Shape() {
		switch {
		case n == 1:
		case d == axis:
			l.start.append(n, 0)
		default:
			l.start.append(n, steps[d])
		}
	}
	return l
}

// starts writes the places, at index 0, of n neighbouring lines.
func (v *lines) starts(dst []int, i, l int) {
	if v.start.rank == 0 {
		dst[0] = 0
		return
	}
	c := v.start.seek(i*v.n*v.inner + l)
	for t := range dst {
		dst[t] = c.off
		v.start.advance(&c, v.start.rank-1)
	}
}

// whole reports whether the elements of a line lie side by side, and those that its indices name: a line then needs no steps. Lines of
// nothing have no places that begin within the tensor.
func (v *lines) whole() bool { return v.inner == 1 && v.stride == 1 && v.size > 0 }

// launch runs the chunks over all strips and reports the first index out of range.
func (v *lines) launch(chunks *loop[indexCall], args []device.Arg) error {
	if v.idx.Size() == 0 {
		return nil
	}
	c := chunks.run(v.outer*v.perRow, v.grain(), indexCall{args: args})
	if place, ok := c.bad.first(); ok {
		return outOfRange(v.idx, elems[int64](args[v.at], v.idx), place, int(v.op.Attr.Axis), v.size)
	}
	return nil
}

// gathering is Gather.
type gathering[T any] struct {
	lines
	chunks *loop[indexCall]
	total  int // elements of the indexed tensor
}

func gathered[T any](k *device.Kernel) run {
	g := &gathering[T]{lines: linesOf(&k.Op, k.Op.In(0), k.Op.In(1)), total: k.Op.In(0).Size()}
	g.chunks = newLoop(g.cover)
	return func(args []device.Arg, _ *device.Params) error {
		return g.launch(g.chunks, args)
	}
}

func (g *gathering[T]) cover(c *indexCall, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	n := g.idx.Size()
	out, x, idx := values[T](c.args[0], n), values[T](c.args[1], g.total), values[int64](c.args[2], n)
	g.each(lo, hi, func(i, l, n int) {
		starts := slot[int](s, slotC, n)
		g.starts(starts, i, l)
		if g.whole() {
			gatherLine(c, out[i*g.n:][:g.n], x[starts[0]:][:g.size], idx[i*g.n:][:g.n], i*g.n)
			return
		}
		for j := range g.n {
			row := (i*g.n+j)*g.inner + l
			for t, v := range idx[row : row+n] {
				if uint64(v) >= uint64(g.size) {
					c.bad.at(row + t)
					continue
				}
				out[row+t] = x[starts[t]+int(v)*g.stride]
			}
		}
	})
}

// gatherLine gathers the elements of x that a line of indices names; first is the place of the first of these.
func gatherLine[T any](c *indexCall, out, x []T, idx []int64, first int) {
	for j, v := range idx {
		if uint64(v) >= uint64(len(x)) {
			c.bad.at(first + j)
			continue
		}
		out[j] = x[v]
	}
}

// scattering is ScatterAdd: each element of the result takes its additions in the order of the indices.
type scattering[T number] struct {
	lines
	chunks *loop[indexCall]
	total  int // elements of the indexed tensor
}

func scattered[T number](k *device.Kernel) run {
	g := &scattering[T]{lines: linesOf(&k.Op, k.Op.In(0), k.Op.In(1)), total: k.Op.In(0).Size()}
	g.chunks = newLoop(g.cover)
	return func(args []device.Arg, _ *device.Params) error {
		copy(values[T](args[0], g.total), values[T](args[1], g.total))
		return g.launch(g.chunks, args)
	}
}

func (g *scattering[T]) cover(c *indexCall, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	n := g.idx.Size()
	out, idx, src := values[T](c.args[0], g.total), values[int64](c.args[2], n), values[T](c.args[3], n)
	g.each(lo, hi, func(i, l, n int) {
		starts := slot[int](s, slotC, n)
		g.starts(starts, i, l)
		if g.whole() {
			addLine(c, out[starts[0]:][:g.size], src[i*g.n:][:g.n], idx[i*g.n:][:g.n], i*g.n)
			return
		}
		for j := range g.n {
			row := (i*g.n+j)*g.inner + l
			for t, v := range idx[row : row+n] {
				if uint64(v) >= uint64(g.size) {
					c.bad.at(row + t)
					continue
				}
				out[starts[t]+int(v)*g.stride] += src[row+t]
			}
		}
	})
}

// addLine adds to the elements of out that a line of indices names; first is the place of the first of these.
func addLine[T number](c *indexCall, out, src []T, idx []int64, first int) {
	for j, v := range idx {
		if uint64(v) >= uint64(len(out)) {
			c.bad.at(first + j)
			continue
		}
		out[v] += src[j]
	}
}
