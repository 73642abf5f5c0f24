package data

import (
	"fmt"
	"math/rand/v2"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor"
)

// Source is a data set whose samples make batches of type B. Its methods are called from several goroutines at once.
//
// A source that also has the method InMemory() bool, and returns true, is cheap to read: a loader reads it without
// workers unless told otherwise.
type Source[B any] interface {
	// Len is the number of samples.
	Len() int
	// Fields says what one sample holds of each tensor field of B, in the order of their declaration.
	Fields() []Field
	// Fill writes sample i, 0 ≤ i < Len, into a row of b. A row is zero before. The tensors of b are not made yet; other
	// fields may be set: the rows of a batch are filled in order and by one goroutine.
	Fill(b *B, row Row, i int) error
}

// Field is the dtype and shape of one sample's part of a tensor. The batch's tensor has the rows in front.
type Field struct {
	DType dtype.DType
	Shape []int
}

// Row is the place of one sample in a batch.
type Row struct {
	columns []column
	at      int
	key     rng.Key // of the batch
}

// Values is the row's part of a tensor field, by the field's number in the order of declaration. It panics when T is
// not the field's element type.
func Values[T dtype.Element](r Row, field int) []T {
	c, ok := r.columns[field].(*columnOf[T])
	if !ok {
		panic(fmt.Sprintf("data.Values[%s] of field %d, which is %s", dtype.Of[T](), field, r.columns[field].field().DType))
	}
	return c.data[r.at*c.width:][:c.width:c.width]
}

// Rand draws numbers for the row's sample in this batch, for augmentation: the same whichever worker asks.
func (r Row) Rand() *rand.Rand {
	return rand.New(&rng.Stream{Key: rng.Fold(rng.Fold(r.key, rowPath), uint64(r.at))})
}

// rowPath keeps the keys of rows apart from those of microbatches.
const rowPath = 1 << 34

// column is host memory for one tensor field of a batch, used again for batch after batch.
type column interface {
	field() Field
	clear(rows int)
	upload(env *tensor.Env, rows int) *tensor.Tensor
}

type columnOf[T dtype.Element] struct {
	f     Field
	data  []T
	width int // elements of a row
	shape []int
}

func (c *columnOf[T]) field() Field   { return c.f }
func (c *columnOf[T]) clear(rows int) { clear(c.data[:rows*c.width]) }

func (c *columnOf[T]) upload(env *tensor.Env, rows int) *tensor.Tensor {
	c.shape[0] = rows
	return tensor.From(env, c.data[:rows*c.width], c.shape...)
}

func newColumnOf[T dtype.Element](f Field, rows int) column {
	width := 1
	for _, d := range f.Shape {
		width *= d
	}
	return &columnOf[T]{f: f, data: make([]T, rows*width), width: width, shape: append([]int{rows}, f.Shape...)}
}

func newColumn(f Field, rows int) column {
	switch f.DType {
	case dtype.F32:
		return newColumnOf[float32](f, rows)
	case dtype.F64:
		return newColumnOf[float64](f, rows)
	case dtype.F16:
		return newColumnOf[dtype.Float16](f, rows)
	case dtype.BF16:
		return newColumnOf[dtype.BFloat16](f, rows)
	case dtype.I64:
		return newColumnOf[int64](f, rows)
	case dtype.I32:
		return newColumnOf[int32](f, rows)
	case dtype.U8:
		return newColumnOf[uint8](f, rows)
	}
	return newColumnOf[bool](f, rows)
}

// inMemory tells whether a source says that it is.
func inMemory(src any) bool {
	m, ok := src.(interface{ InMemory() bool })
	return ok && m.InMemory()
}

// memory is the source of [InMemory].
type memory struct {
	x     []float32
	y     []int64
	shape []int
	width int
}

// InMemory is a set of samples in Go slices: x holds len(y) samples of the given shape one after another, y their
// labels. The slices are not copied. A length that does not fit is an error of the first batch.
func InMemory(x []float32, shape []int, y []int64) Source[Pair] {
	width := 1
	for _, d := range shape {
		width *= d
	}
	return &memory{x, y, shape, width}
}

func (m *memory) Len() int       { return len(m.y) }
func (m *memory) InMemory() bool { return true }

func (m *memory) Fields() []Field { return PairFields(m.shape) }

func (m *memory) Fill(_ *Pair, row Row, i int) error {
	if len(m.x) != len(m.y)*m.width {
		return fmt.Errorf("%d values for %d labels and samples of shape %v; give %d", len(m.x), len(m.y), m.shape, len(m.y)*m.width)
	}
	copy(Values[float32](row, 0), m.x[i*m.width:])
	Values[int64](row, 1)[0] = m.y[i]
	return nil
}

// PairFields is the usual [Pair]: inputs of float32 with the given shape, and one int64 as the label.
func PairFields(shape []int) []Field { return []Field{{dtype.F32, shape}, {dtype.I64, nil}} }

// subset is the source of [Subset].
type subset[B any] struct {
	Source[B]
	lo, hi int
}

// Subset is the samples lo to hi-1 of a source, as far as it has them.
func Subset[B any](src Source[B], lo, hi int) Source[B] {
	n := src.Len()
	lo = min(max(lo, 0), n)
	return &subset[B]{src, lo, max(lo, min(hi, n))}
}

func (s *subset[B]) Len() int                        { return s.hi - s.lo }
func (s *subset[B]) InMemory() bool                  { return inMemory(s.Source) }
func (s *subset[B]) Fill(b *B, row Row, i int) error { return s.Source.Fill(b, row, s.lo+i) }

// mapped is the source of [Map].
type mapped[B any] struct {
	Source[B]
	change func(b *B, row Row) error
}

// Map is src with each sample changed in place when it is read, by several goroutines at once. Random changes draw from
// row.Rand.
func Map[B any](src Source[B], change func(b *B, row Row) error) Source[B] {
	return &mapped[B]{src, change}
}

func (m *mapped[B]) Fill(b *B, row Row, i int) error {
	if err := m.Source.Fill(b, row, i); err != nil {
		return err
	}
	return m.change(b, row)
}
