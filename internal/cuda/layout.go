package cuda

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// layout is how an elementwise kernel walks its operands: dimensions, the outermost first, and the strides of each
// operand. Dimensions of size 1 are dropped, neighbours merged where the strides of every operand run on, so that
// row-major operands have one dimension.
type layout struct {
	sizes   []int
	strides [][]int // per operand, then per dimension
}

// layoutOf is the layout of operands of one shape, in the order of its elements.
func layoutOf(operands ...*ir.Type) layout {
	return layoutIn(nil, operands)
}

// layoutFor is the layout of operands in the order in which the first one's elements lie in memory.
func layoutFor(operands ...*ir.Type) layout {
	order := make([]int, operands[0].Rank())
	for i := range order {
		order[i] = i
	}
	strides := operands[0].Strides()
	sorting.By(order, func(a, b int) int { return cmp.Compare(strides[b], strides[a]) })
	return layoutIn(order, operands)
}

// layoutIn takes dimensions in an order; nil is that of the shape.
func layoutIn(order []int, operands []*ir.Type) layout {
	l := layout{strides: make([][]int, len(operands))}
	for i, size := range operands[0].Shape() {
		d := i
		if order != nil {
			d = order[i]
			size = operands[0].Dim(d)
		}
		if size != 1 {
			l.append(size, d, operands)
		}
	}
	if len(l.sizes) == 0 {
		l.sizes = []int{1}
		for k := range l.strides {
			l.strides[k] = []int{1}
		}
	}
	return l
}

// append adds dimension d of the operands inside those before, as part of the last one if it runs on.
func (l *layout) append(size, d int, operands []*ir.Type) {
	last := len(l.sizes) - 1
	runsOn := last >= 0
	for k, t := range operands {
		runsOn = runsOn && l.strides[k][last] == size*t.Strides()[d]
	}
	if !runsOn {
		l.sizes = append(l.sizes, 1)
		last++
	}
	l.sizes[last] *= size
	for k, t := range operands {
		l.strides[k] = append(l.strides[k][:last], t.Strides()[d])
	}
}

// size is the number of elements.
func (l *layout) size() int {
	n := 1
	for _, d := range l.sizes {
		n *= d
	}
	return n
}

// inner is the innermost dimension.
func (l *layout) inner() int { return len(l.sizes) - 1 }

// part is a piece of a layout that one launch covers, and where it begins: in each operand, and in a row-major result.
type part struct {
	layout
	at  []int
	out int
}

// parts cuts a layout into pieces of at most some elements, so that kernels count in 32 bits: along the outermost
// dimension if that is enough, else along those inside too.
func (l *layout) parts(most int) []part {
	return part{layout: *l, at: make([]int, len(l.strides))}.cut(0, most)
}

// cut cuts a part along dimension d and those inside.
func (p part) cut(d, most int) []part {
	total := p.size()
	if total <= most {
		return []part{p}
	}
	each := total / p.sizes[d] // elements of one step along d
	step := max(1, most/each)
	var all []part
	for lo := 0; lo < p.sizes[d]; lo += step {
		q := part{layout{slices.Clone(p.sizes), p.strides}, slices.Clone(p.at), p.out + lo*each}
		q.sizes[d] = min(step, p.sizes[d]-lo)
		for k := range q.at {
			q.at[k] += lo * p.strides[k][d]
		}
		all = append(all, q.cut(d+1, most)...)
	}
	return all
}

// divisor is the kernels' Divisor.
type divisor struct{ by, mul, shift, unused uint32 }

// divide32 returns the divisor by n, from 1 to 2^31: ⌊i/n⌋ is (⌊i·mul/2^32⌋ + i) >> shift for i below 2^31, with
// shift = ⌈log₂ n⌉ and mul = ⌊2^32·(2^shift - n)/n⌋ + 1.
func divide32(n int) divisor {
	shift := bits.Len(uint(n - 1))
	return divisor{by: uint32(n), mul: uint32(uint64(1<<shift-n)<<32/uint64(n) + 1), shift: uint32(shift)}
}

// Limits of the kernels' structs.
const (
	maxOuter     = ir.MaxRank - 1
	mostElements = 1 << 30 // of a launch
)

// chunks is the number of chunks of width elements in all rows, and in one.
func (l *layout) chunks(width int) (all, perRow int) {
	row := l.sizes[l.inner()]
	perRow = ceilDiv(row, width)
	return l.size() / row * perRow, perRow
}

// param is the kernels' Layout for chunks of some width.
func (l *layout) param(width int) param {
	all, perRow := l.chunks(width)
	inner := l.inner()
	words := slices.Concat([]uint32{uint32(all), uint32(l.sizes[inner]), uint32(inner), 0}, divide32(perRow).words())
	for _, s := range l.strides {
		words = append(words, words64(s[inner])...)
	}
	return blob(l.appendDims(words, maxOuter, inner))
}

// appendDims appends n Dims, the last of which are empty, for the dimensions before the given one.
func (l *layout) appendDims(words []uint32, n, before int) []uint32 {
	for i := range n {
		var v divisor
		d := before - 1 - i
		if d >= 0 {
			v = divide32(l.sizes[d])
		}
		words = append(words, v.words()...)
		for _, s := range l.strides {
			stride := 0
			if d >= 0 {
				stride = s[d]
			}
			words = append(words, words64(stride)...)
		}
	}
	return words
}

func (v divisor) words() []uint32 { return []uint32{v.by, v.mul, v.shift, v.unused} }

// words64 is a 64-bit integer in memory.
func words64(v int) []uint32 { return []uint32{uint32(v), uint32(uint64(v) >> 32)} }
