package cuda

import (
	"slices"
	"strconv"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareCopy, ir.Copy)
	offer(prepareCast, ir.Cast)
}

// bySize is the name of a kernel for elements of some bytes: "copy_4".
func bySize(name string, size int) string { return name + "_" + strconv.Itoa(size) }

func prepareCopy(b *builder) error {
	b.copy(b.out(0), b.outs[0], b.in(0), b.op.In(0))
	return b.err
}

// prepareCast converts; to the same dtype it copies.
func prepareCast(b *builder) error {
	from, to := b.op.In(0).DType, b.outs[0].DType
	if from == to {
		return prepareCopy(b)
	}
	width := vectorOf(max(from.Size(), to.Size()))
	return b.elementwise("cast_"+to.String()+"_from_"+from.String(), width)
}

// copy plans a copy between two places of types of one dtype and shape. It writes in the order of the result's memory.
func (b *builder) copy(to ref, y *ir.Type, from ref, x *ir.Type) {
	if y.Size() == 0 {
		return
	}
	l := layoutFor(y, x)
	turn, turned := l.turn()
	size := y.DType.Size()
	for _, p := range l.parts(mostElements) {
		to, from := pointer(to.at(bytesOf(y, p.at[0]))), pointer(from.at(bytesOf(x, p.at[1])))
		if turned && min(p.sizes[turn], p.sizes[p.inner()]) >= leastTurn {
			s := p.squares(turn)
			b.run(bySize("transpose", size), [3]int{min(s.count(), maxBlocks), 1, 1}, [3]int{256, 1, 1}, 0, to, from, s.param())
			continue
		}
		width := 16 / size
		chunks, _ := p.chunks(width)
		b.linear(bySize("copy", size), chunks, 256, to, from, p.param(width))
	}
}

// leastTurn is the size from which on both dimensions of a transposition fill enough of a square.
const leastTurn = 8

// turnOf tells along which dimension of their layout x is contiguous, or nearly so, if that is not the one in which y is.
func turnOf(y, x *ir.Type) (dim int, ok bool) {
	l := layoutFor(y, x)
	return l.turn()
}

// turn is turnOf for a layout of two operands.
func (l *layout) turn() (dim int, ok bool) {
	inner := l.inner()
	best := inner
	for d, s := range l.strides[1][:inner] {
		if s > 0 && s < l.strides[1][best] && l.sizes[d] >= leastTurn {
			best = d
		}
	}
	return best, best != inner && l.sizes[inner] >= leastTurn
}

// squares is a transposition: the innermost dimension against another one, which the last two of the layout now are.
type squares struct{ layout }

// side is that of a square, in elements.
const side = 32

// squares moves dimension turn inwards.
func (l *layout) squares(turn int) *squares {
	move := func(v []int) []int {
		n := len(v) - 1
		return append(slices.Concat(v[:turn], v[turn+1:n]), v[turn], v[n])
	}
	s := &squares{layout{sizes: move(l.sizes)}}
	for _, v := range l.strides {
		s.strides = append(s.strides, move(v))
	}
	return s
}

func (s *squares) across() int { return ceilDiv(s.sizes[s.inner()], side) }
func (s *squares) down() int   { return ceilDiv(s.sizes[s.inner()-1], side) }

// count is the number of squares.
func (s *squares) count() int {
	n := s.across() * s.down()
	for _, d := range s.sizes[:s.inner()-1] {
		n *= d
	}
	return n
}

// param is the kernels' Squares.
func (s *squares) param() param {
	column := s.inner()
	row := column - 1
	words := slices.Concat([]uint32{uint32(s.count()), uint32(s.sizes[row]), uint32(s.sizes[column]), uint32(row)},
		divide32(s.across()).words(), divide32(s.down()).words(),
		words64(s.strides[0][row]), words64(s.strides[1][row]), words64(s.strides[0][column]), words64(s.strides[1][column]))
	return blob(s.appendDims(words, maxOuter-1, row))
}
