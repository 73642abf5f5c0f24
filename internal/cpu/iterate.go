package cpu

import "github.com/warpline-ml/warpline/internal/ir"

// layout is the sizes and strides of a view, outermost first, with dimensions of size 1 dropped and neighbours that
// run on merged. Its elements are numbered in row-major order.
type layout struct {
	rank   int
	size   [ir.MaxRank]int
	stride [ir.MaxRank]int
	dense  bool // element i lies at i
}

func layoutOf(t *ir.Type) (l layout) {
	for i, d := range t.Shape() {
		if d != 1 {
			l.append(d, t.Strides()[i])
		}
	}
	l.dense = l.rank == 0 || l.rank == 1 && l.stride[0] == 1 || t.Size() == 0
	return l
}

// append adds an inner dimension.
func (l *layout) append(size, stride int) {
	if i := l.rank - 1; i >= 0 && l.stride[i] == size*stride {
		l.size[i] *= size
		l.stride[i] = stride
		return
	}
	l.size[l.rank], l.stride[l.rank] = size, stride
	l.rank++
}

// cursor is a place in a layout.
type cursor struct {
	at  [ir.MaxRank]int
	off int // of the element, from the view's first
}

// seek returns the place of element i.
func (l *layout) seek(i int) (c cursor) {
	for d := l.rank - 1; d >= 0; d-- {
		q := i / l.size[d]
		c.at[d] = i - q*l.size[d]
		c.off += c.at[d] * l.stride[d]
		i = q
	}
	return c
}

// row moves to the start of the next row: the next index of the dimensions above the innermost.
func (l *layout) row(c *cursor) {
	d := l.rank - 1
	c.off -= c.at[d] * l.stride[d]
	c.at[d] = 0
	l.advance(c, d-1)
}

// advance increments the index of dimensions d and above.
func (l *layout) advance(c *cursor, d int) {
	for ; d >= 0; d-- {
		c.at[d]++
		c.off += l.stride[d]
		if c.at[d] < l.size[d] {
			return
		}
		c.off -= c.at[d] * l.stride[d]
		c.at[d] = 0
	}
}

// gather copies elements lo, lo+1, … of a view into dst. The layout must not be dense.
func gather[T any](dst, src []T, l *layout, lo int) {
	inner := l.rank - 1
	size, stride := l.size[inner], l.stride[inner]
	for c := l.seek(lo); ; l.row(&c) {
		n := min(size-c.at[inner], len(dst))
		pick(dst[:n], src[c.off:], stride)
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
	}
}

// pick copies every stride-th element of src.
func pick[T any](dst, src []T, stride int) {
	switch stride {
	case 0:
		fill(dst, src[0])
	case 1:
		copy(dst, src)
	default:
		for i := range dst {
			dst[i] = src[i*stride]
		}
	}
}

// fill copies what is filled already: vectors at a time, whatever the type.
func fill[T any](dst []T, v T) {
	const few, block = 16, 1 << 11
	n := min(len(dst), few)
	for i := range n {
		dst[i] = v
	}
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, block)])
	}
}

// scatter is the inverse of gather.
func scatter[T any](dst, src []T, l *layout, lo int) {
	inner := l.rank - 1
	size, stride := l.size[inner], l.stride[inner]
	for c := l.seek(lo); ; l.row(&c) {
		n := min(size-c.at[inner], len(src))
		place(dst[c.off:], src[:n], stride)
		if src = src[n:]; len(src) == 0 {
			return
		}
	}
}

// place copies src to every stride-th element of dst.
func place[T any](dst, src []T, stride int) {
	if stride == 1 {
		copy(dst, src)
		return
	}
	for i, v := range src {
		dst[i*stride] = v
	}
}
