package cpu

import (
	"cmp"
	"slices"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// copying is Copy between any strides. Its dimensions are ordered by the result's strides and merged where those of
// both sides run on.
type copying[T bits] struct {
	chunks       *loop[[]device.Arg] // over elements, or over strips
	n            int
	dst, src     layout // of the same sizes
	spanD, spanS int
	turn         int  // the dimension along which src runs, if that is not the innermost; else -1
	side         int  // of the squares that a transposition goes by
	words        bool // it is one of elements of 32 bits that lie together on both sides
}

func copied[T bits](k *device.Kernel) run {
	y, x := k.Out[0], k.Op.In(0)
	c := &copying[T]{n: y.Size(), spanD: y.Span(), spanS: x.Span(), turn: -1}
	c.dst, c.src = paired(y, x)
	if r := c.src.rank; r > 1 && c.n > 0 {
		c.turn = c.turned()
	}
	if c.side = block; c.turn >= 0 && c.src.stride[c.turn] == 1 && c.dst.stride[c.dst.rank-1] == 1 {
		if _, c.words = any(T(0)).(uint32); c.words {
			c.side = wordBlock
		}
	}
	if c.turn >= 0 {
		c.chunks = newLoop(c.strips)
		return c.transpose
	}
	c.chunks = newLoop(c.span)
	return c.run
}

// paired returns the layouts of two types of the same shape under the same order of dimensions.
func paired(y, x *ir.Type) (dst, src layout) {
	var order []int
	for i, d := range y.Shape() {
		if d != 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(y.Strides()[b], y.Strides()[a]) })
	for _, d := range order {
		size, sd, ss := y.Dim(d), y.Strides()[d], x.Strides()[d]
		if i := dst.rank - 1; i >= 0 && dst.stride[i] == size*sd && src.stride[i] == size*ss {
			dst.size[i] *= size
			dst.stride[i], src.stride[i] = sd, ss
		} else {
			i = dst.rank
			dst.size[i], dst.stride[i], src.stride[i] = size, sd, ss
			dst.rank++
		}
	}
	if dst.rank == 0 {
		dst.rank, dst.size[0], dst.stride[0], src.stride[0] = 1, 1, 1, 1
	}
	src.rank, src.size = dst.rank, dst.size
	return dst, src
}

// turned returns the dimension of src's smallest stride, or -1 if the innermost is as good.
func (c *copying[T]) turned() int {
	inner := c.src.rank - 1
	best := inner
	for d := range inner {
		if s := c.src.stride[d]; s > 0 && s < c.src.stride[best] {
			best = d
		}
	}
	if best == inner {
		return -1
	}
	return best
}

func (c *copying[T]) run(args []device.Arg, _ *device.Params) error {
	switch {
	case c.n == 0:
	case c.n <= grainCheap:
		c.span(&args, 0, c.n)
	default:
		c.chunks.run(c.n, grainCheap, args)
	}
	return nil
}

// span copies elements [lo, hi) in the order of the layouts.
func (c *copying[T]) span(a *[]device.Arg, lo, hi int) {
	dst, src := values[T]((*a)[0], c.spanD), values[T]((*a)[1], c.spanS)
	inner := c.dst.rank - 1
	size, sd, ss := c.dst.size[inner], c.dst.stride[inner], c.src.stride[inner]
	at, from := c.dst.seek(lo), c.src.seek(lo)
	for lo < hi {
		n := min(size-at.at[inner], hi-lo)
		strided(dst[at.off:], src[from.off:], n, sd, ss)
		lo += n
		c.dst.row(&at)
		c.src.row(&from)
	}
}

// strided copies n elements.
func strided[T any](dst, src []T, n, sd, ss int) {
	switch {
	case sd == 1:
		pick(dst[:n], src, ss)
	case ss == 1:
		place(dst, src[:n], sd)
	default:
		for i := range n {
			dst[i*sd] = src[i*ss]
		}
	}
}

// Sides of the squares that a transposition goes by, so that a cache line is used whole before it leaves.
const (
	block     = 16
	wordBlock = 64 // rows of the result for loops in assembly: pieces of four lines suit the memory
)

// transpose copies squares of the innermost dimension and the turned one.
func (c *copying[T]) transpose(args []device.Arg, _ *device.Params) error {
	strips := c.n / c.dst.size[c.turn] / c.dst.size[c.dst.rank-1] * c.blocks()
	perStrip := c.side * c.dst.size[c.dst.rank-1]
	if c.n <= grainCheap {
		c.strips(&args, 0, strips)
	} else {
		c.chunks.run(strips, 1+grainCheap/perStrip, args)
	}
	return nil
}

// blocks is in how many squares the turned dimension is cut.
func (c *copying[T]) blocks() int { return (c.dst.size[c.turn] + c.side - 1) / c.side }

// strips copies strips [lo, hi): block indices of the turned dimension, all of the innermost.
func (c *copying[T]) strips(a *[]device.Arg, lo, hi int) {
	dst, src := values[T]((*a)[0], c.spanD), values[T]((*a)[1], c.spanS)
	to, _ := any(dst).([]uint32)
	of, _ := any(src).([]uint32)
	inner, n := c.dst.rank-1, c.dst.size[c.turn]
	width := c.dst.size[inner]
	// Strips are numbered by layouts in which the two dimensions are one of blocks and one of size 1.
	d, s := c.dst, c.src
	for _, l := range []*layout{&d, &s} {
		l.size[c.turn], l.size[inner] = c.blocks(), 1
		l.stride[c.turn] *= c.side
	}
	at, from := d.seek(lo), s.seek(lo)
	for ; lo < hi; lo++ {
		rows := min(c.side, n-at.at[c.turn]*c.side)
		if c.words {
			kernels.Turn(to[at.off:], of[from.off:], rows, width, c.dst.stride[c.turn], c.src.stride[inner])
		} else {
			c.square(dst[at.off:], src[from.off:], rows, width)
		}
		d.row(&at)
		s.row(&from)
	}
}

// square copies rows of the turned dimension, a square after another.
func (c *copying[T]) square(dst, src []T, rows, width int) {
	inner := c.dst.rank - 1
	for i := 0; i < width; i += block {
		cols := min(block, width-i)
		for r := range rows {
			strided(dst[r*c.dst.stride[c.turn]+i*c.dst.stride[inner]:], src[r*c.src.stride[c.turn]+i*c.src.stride[inner]:],
				cols, c.dst.stride[inner], c.src.stride[inner])
		}
	}
}
