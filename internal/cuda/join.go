package cuda

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareCat, ir.Cat)
	offer(preparePad, ir.Pad)
}

// joined is the kernels' Joined.
type joined struct{ part [joinSize]joinPart }

type joinPart struct {
	in    uint64
	begin int64
	width divisor64
}

const joinSize = 64 // operands of a launch

// piece is an operand's rows in the rows of a result.
type piece struct {
	from         ref
	begin, width int
}

func prepareCat(b *builder) error {
	var list []piece
	begin := 0
	for i, t := range b.op.Ins() {
		v := splitAt(t, b.op.Attr.Axis)
		if t.Size() > 0 {
			list = append(list, piece{b.in(i), begin, v.n * v.inner})
		}
		begin += v.n * v.inner
	}
	b.join(b.out(0), b.outs[0], splitAt(b.outs[0], b.op.Attr.Axis).outer, begin, list)
	return nil
}

// copyAll plans a copy of a row-major operand.
func (b *builder) copyAll(to, from ref, t *ir.Type) {
	b.join(to, t, 1, t.Size(), []piece{{from, 0, t.Size()}})
}

// join plans the copies of pieces into rows of a result of type t.
func (b *builder) join(to ref, t *ir.Type, rows, width int, list []piece) {
	for len(list) > 0 {
		n := min(len(list), joinSize)
		var j joined
		widest := 0
		for i, p := range list[:n] {
			j.part[i] = joinPart{begin: int64(p.begin), width: divideBy(p.width)}
			widest = max(widest, p.width)
		}
		table := blob(j)
		for i, p := range list[:n] {
			at := i*int(unsafe.Sizeof(j.part[0])) + int(unsafe.Offsetof(j.part[0].in))
			table = table.placing(at, p.from)
		}
		vectors := ceilDiv(rows*widest*t.DType.Size(), 16)
		b.run(bitwise("cat", t.DType), [3]int{blocksFor(vectors, 256), n, 1}, [3]int{256, 1, 1}, 0, pointer(to), table, i64(rows), i64(width))
		list = list[n:]
	}
}

// padPlan is the kernels' Padding.
type padPlan struct {
	n                   int64
	inner, along, every divisor64
	before, size        int64
}

func preparePad(b *builder) error {
	y, a := b.outs[0], &b.op.Attr
	in, out := splitAt(b.op.In(0), a.Axis), splitAt(y, a.Axis)
	p := padPlan{int64(y.Size()), divideBy(out.inner), divideBy(out.n), divideBy(int(a.Dims[2]) + 1), int64(a.Dims[0]), int64(in.n)}
	b.linear(bitwise("pad", y.DType), y.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), element(0, y.DType), blob(p))
	return nil
}
