package data

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func (f Field) ragged() bool { return len(f.Shape) > 0 && f.Shape[0] == Any }

// raggedOf is the column of a field whose samples differ in length.
type raggedOf[T dtype.Element] struct {
	f     Field
	width int   // elements of an item
	rows  [][]T // cut from slab
	slab  []T
	block []T // the padded rows, used again
	ahead *tensor.Staged
}

func newRagged[T dtype.Element](f Field, rows int) column {
	return &raggedOf[T]{f: f, width: elements(f.Shape[1:]), rows: make([][]T, rows)}
}

// Ragged makes room for n items in the row's part of a field whose first dimension is [Any], all 0, in place of what it had. The
// batch's tensor is as long as the longest of its rows; behind the others it holds the field's Pad. Like [Values] it panics when
// the field is another one.
func Ragged[T dtype.Element](r Row, field, n int) []T {
	c, ok := r.columns[field].(*raggedOf[T])
	if !ok {
		panic(fmt.Sprintf("data.Ragged[%s] of field %d, which is %s%v", dtype.Of[T](), field, r.columns[field].field().DType, r.columns[field].field().Shape))
	}
	return c.take(r.at, n*c.width)
}

// take gives row at n elements.
func (c *raggedOf[T]) take(at, n int) []T {
	if cap(c.slab)-len(c.slab) < n {
		c.slab = make([]T, 0, max(2*cap(c.slab), n)) // rows made before keep theirs
	}
	from := len(c.slab)
	c.slab = c.slab[:from+n]
	c.rows[at] = c.slab[from : from+n : from+n]
	clear(c.rows[at])
	return c.rows[at]
}

func (c *raggedOf[T]) field() Field { return c.f }

func (c *raggedOf[T]) clear(rows int) {
	clear(c.rows[:rows])
	c.slab = c.slab[:0]
}

// pad is the rows one after another, each as long as the longest, and their shape.
func (c *raggedOf[T]) pad(rows int) ([]T, []int) {
	longest := 0
	for _, r := range c.rows[:rows] {
		longest = max(longest, len(r))
	}
	pad := make([]T, 1)
	dtype.Convert(pad, []float64{c.f.Pad})
	c.block = slices.Grow(c.block[:0], rows*longest)
	for _, r := range c.rows[:rows] {
		c.block = append(c.block, r...)
		for range longest - len(r) {
			c.block = append(c.block, pad[0])
		}
	}
	items := 0
	if c.width > 0 {
		items = longest / c.width
	}
	return c.block, append([]int{rows, items}, c.f.Shape[1:]...)
}

func (c *raggedOf[T]) stage(env *tensor.Env, rows int) {
	data, shape := c.pad(rows)
	c.ahead = tensor.Stage(env, data, shape...)
}

func (c *raggedOf[T]) upload(env *tensor.Env, rows int) *tensor.Tensor {
	if c.ahead != nil {
		t := c.ahead.In(env)
		c.ahead = nil
		return t
	}
	data, shape := c.pad(rows)
	return tensor.From(env, data, shape...)
}

func (c *raggedOf[T]) drop() {
	if c.ahead != nil {
		c.ahead.Drop()
		c.ahead = nil
	}
}

func (c *raggedOf[T]) appendRow(b []byte, at int) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(c.rows[at])))
	b, err := binary.Append(b, binary.LittleEndian, c.rows[at])
	if err != nil {
		panic(err) // elements have a size
	}
	return b
}

func (c *raggedOf[T]) setRow(b []byte, at int) ([]byte, bool) {
	if len(b) < 8 {
		return b, false
	}
	n, b := binary.LittleEndian.Uint64(b), b[8:]
	if n > uint64(len(b)/c.f.DType.Size()) || c.width == 0 && n > 0 || c.width > 0 && n%uint64(c.width) != 0 {
		return b, false
	}
	return decode(b, c.take(at, int(n)))
}

// Padded is a batch of sequences that differ in length.
type Padded struct {
	Turn
	X       *tensor.Tensor // [rows, longest, …]: behind a sequence's end the pad
	Mask    *tensor.Tensor // bool [rows, longest]: true where the sequence has an item
	Lengths *tensor.Tensor // int64 [rows]
	Y       *tensor.Tensor // [rows, …]
}

// sequences is the source of [Sequences].
type sequences[X, Y dtype.Element] struct {
	x       [][]X
	y       []Y
	fields  []Field
	item, w int // elements of an item, of a target
}

// Sequences is a set of sequences in memory: x[i] holds the items of sample i, each of the given shape, one after another; y the
// targets, each of shape target. A batch is padded to its longest, which [Bucketed] keeps near the others. The slices are not copied.
// Lengths that do not fit are a mistake, which panics with a [tensor.Error].
func Sequences[X, Y dtype.Element](x [][]X, shape []int, pad float64, y []Y, target ...int) Source[Padded] {
	s := &sequences[X, Y]{x: x, y: y, item: elements(shape), w: elements(target)}
	if s.item < 1 || s.w < 1 || len(y) != len(x)*s.w {
		tensor.Raise("data.Sequences", fmt.Sprintf("give %d values as targets, and shapes without 0", len(x)*s.w), "%d targets of shape %v for %d sequences of items of shape %v", len(y), target, len(x), shape)
	}
	for i, v := range x {
		if len(v)%s.item != 0 {
			tensor.Raise("data.Sequences", fmt.Sprintf("give a multiple of %d", s.item), "sequence %d has %d values, for items of shape %v", i, len(v), shape)
		}
	}
	s.fields = []Field{{DType: dtype.Of[X](), Shape: append([]int{Any}, shape...), Pad: pad}, {DType: dtype.Bool, Shape: []int{Any}}, {DType: dtype.I64}, {DType: dtype.Of[Y](), Shape: target}}
	return s
}

func (s *sequences[X, Y]) Len() int        { return len(s.x) }
func (s *sequences[X, Y]) InMemory() bool  { return true }
func (s *sequences[X, Y]) Fields() []Field { return s.fields }

func (s *sequences[X, Y]) Fill(_ *Padded, row Row, i int) error {
	n := len(s.x[i]) / s.item
	copy(Ragged[X](row, 0, n), s.x[i])
	mask := Ragged[bool](row, 1, n)
	for k := range mask {
		mask[k] = true
	}
	Values[int64](row, 2)[0] = int64(n)
	copy(Values[Y](row, 3), s.y[i*s.w:])
	return nil
}

func (s *sequences[X, Y]) String() string { return describe("sequences", len(s.x), s.fields) }
