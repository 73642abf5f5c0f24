package data

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

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
	Shape []int   // the first may be [Any]: samples differ in it, and are padded to the longest of their batch
	Pad   float64 // what stands behind the end of a shorter sample
	Name  string  // in a batch's map of tensors
}

// Any is a first dimension in which samples differ: see [Ragged].
const Any = -1

// Row is the place of one sample in a batch.
type Row struct {
	columns []column
	at      int
	key     rng.Key // of the epoch
	number  uint64  // what tells the sample apart there
}

// Values is the row's part of a tensor field, by the field's number in the order of declaration; of a field of [Any] length
// what [Ragged] has made. It panics when T is not the field's element type, or there is no such field.
func Values[T dtype.Element](r Row, field int) []T {
	switch c := r.columns[field].(type) {
	case *columnOf[T]:
		return c.row(r.at)
	case *raggedOf[T]:
		return c.rows[r.at]
	}
	panic(fmt.Sprintf("data.Values[%s] of field %d, which is %s", dtype.Of[T](), field, r.columns[field].field().DType))
}

// Rand draws numbers for the row's sample in this epoch, for augmentation: the same whatever the number of workers, the order of
// the samples and the size of batches. Where an epoch may have a sample several times (Draw, Wrap, samplers that take it again)
// its place in the epoch decides in its stead. What is kept by a [Cache] is drawn once for each sample.
func (r Row) Rand() *rand.Rand {
	return rand.New(&rng.Stream{Key: rng.Fold(rng.Fold(r.key, rowPath), r.number)})
}

// rowPath keeps the keys of rows apart from those of an epoch's batches, byPlace those of places from those of samples.
const (
	rowPath = 1 << 62
	byPlace = 1 << 62
)

// column is host memory for one tensor field of a batch, used again for batch after batch.
type column interface {
	field() Field
	clear(rows int)
	stage(env *tensor.Env, rows int) // copies the rows to where env's device uploads from, on a worker
	upload(env *tensor.Env, rows int) *tensor.Tensor
	drop() // gives back what is staged and was not uploaded

	appendRow(b []byte, at int) []byte              // a row as bytes, for caches
	setRow(b []byte, at int) (left []byte, ok bool) // a row of such bytes; not ok: they are of another field
}

type columnOf[T dtype.Element] struct {
	f     Field
	data  []T
	width int          // elements of a row
	used  atomic.Int64 // rows up to the last one that somebody may have written
	shape []int
	ahead *tensor.Staged // nil: upload copies
}

func (c *columnOf[T]) field() Field { return c.f }

// row is for whoever writes; a source may ask for one from goroutines of its own.
func (c *columnOf[T]) row(at int) []T {
	if n := int64(at + 1); c.used.Load() < n {
		c.used.Store(n)
	}
	return c.data[at*c.width:][:c.width:c.width]
}

// clear leaves alone what nobody has written: of a dry run's batch the system then has no memory to find.
func (c *columnOf[T]) clear(rows int) {
	used := int(c.used.Load())
	if clear(c.data[:min(rows, used)*c.width]); used <= rows {
		c.used.Store(0)
	}
}

func (c *columnOf[T]) stage(env *tensor.Env, rows int) {
	c.shape[0] = rows
	c.ahead = tensor.Stage(env, c.data[:rows*c.width], c.shape...)
}

func (c *columnOf[T]) upload(env *tensor.Env, rows int) *tensor.Tensor {
	if c.ahead != nil {
		t := c.ahead.In(env)
		c.ahead = nil
		return t
	}
	c.shape[0] = rows
	return tensor.From(env, c.data[:rows*c.width], c.shape...)
}

func (c *columnOf[T]) drop() {
	if c.ahead != nil {
		c.ahead.Drop()
		c.ahead = nil
	}
}

func (c *columnOf[T]) appendRow(b []byte, at int) []byte {
	b, err := binary.Append(b, binary.LittleEndian, c.data[at*c.width:][:c.width])
	if err != nil {
		panic(err) // elements have a size
	}
	return b
}

func (c *columnOf[T]) setRow(b []byte, at int) ([]byte, bool) {
	return decode(b, c.row(at))
}

// decode fills dst from the front of b.
func decode[T dtype.Element](b []byte, dst []T) (left []byte, ok bool) {
	size := len(dst) * dtype.Of[T]().Size()
	if len(b) < size {
		return b, false
	}
	_, err := binary.Decode(b[:size], binary.LittleEndian, dst) // of booleans it reads all that it is given
	return b[size:], err == nil
}

func newColumnOf[T dtype.Element](f Field, rows int) column {
	if f.ragged() {
		return newRagged[T](f, rows)
	}
	width := elements(f.Shape)
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
	case dtype.Bool:
		return newColumnOf[bool](f, rows)
	case dtype.F8E4M3:
		return newColumnOf[dtype.Float8E4M3](f, rows)
	case dtype.F8E5M2:
		return newColumnOf[dtype.Float8E5M2](f, rows)
	}
	panic("data: a field of dtype " + f.DType.String())
}

// inMemory tells whether a source says that it is.
func inMemory(src any) bool {
	m, ok := src.(interface{ InMemory() bool })
	return ok && m.InMemory()
}

// memory is the source of [InMemory].
type memory[X, Y dtype.Element] struct {
	x      []X
	y      []Y
	fields []Field
	sizes  [2]int // values of a sample in x and in y
	n      int
}

// InMemory is a set of samples in Go slices, as PyTorch's TensorDataset: x holds inputs of the given shape one after
// another, y as many targets. A target has its own shape; without one it is a number, such as a label of int64. The
// slices are not copied. Lengths that do not fit are a mistake, which panics with a [tensor.Error].
func InMemory[X, Y dtype.Element](x []X, shape []int, y []Y, target ...int) Source[Pair] {
	m := &memory[X, Y]{x: x, y: y, fields: []Field{{DType: dtype.Of[X](), Shape: shape}, {DType: dtype.Of[Y](), Shape: target}}, sizes: [2]int{elements(shape), elements(target)}}
	if m.sizes[1] > 0 {
		m.n = len(y) / m.sizes[1]
	}
	if len(y) != m.n*m.sizes[1] || len(x) != m.n*m.sizes[0] {
		tensor.Raise("data.InMemory", fmt.Sprintf("%d samples have %d and %d values", m.n, m.n*m.sizes[0], m.n*m.sizes[1]),
			"%d values for inputs of shape %v, and %d for targets of shape %v", len(x), shape, len(y), target)
	}
	return m
}

// elements is the number of values of a shape.
func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func (m *memory[X, Y]) Len() int        { return m.n }
func (m *memory[X, Y]) InMemory() bool  { return true }
func (m *memory[X, Y]) Fields() []Field { return m.fields }

func (m *memory[X, Y]) Fill(_ *Pair, row Row, i int) error {
	copy(Values[X](row, 0), m.x[i*m.sizes[0]:])
	copy(Values[Y](row, 1), m.y[i*m.sizes[1]:])
	return nil
}

// PairFields is the usual [Pair]: inputs of float32 with the given shape, and one int64 as the label.
func PairFields(shape []int) []Field {
	return []Field{{DType: dtype.F32, Shape: shape}, {DType: dtype.I64}}
}

// subset is the source of [Subset].
type subset[B any] struct {
	Source[B]
	lo, hi int
}

// Subset is the samples lo to hi-1 of a source. Others than it has are a mistake, which panics with a [tensor.Error].
func Subset[B any](src Source[B], lo, hi int) Source[B] {
	if n := src.Len(); lo < 0 || hi < lo || hi > n {
		tensor.Raise("data.Subset", fmt.Sprintf("give 0 ≤ lo ≤ hi ≤ %d", n), "samples %d to %d of a set of %d", lo, hi, n)
	}
	return &subset[B]{src, lo, hi}
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

// String tells which row of a batch this is.
func (r Row) String() string { return fmt.Sprint("row ", r.at) }

// describe is a source without its samples.
func describe(what string, n int, fields []Field) string {
	for _, f := range fields {
		what += fmt.Sprintf(" %s%v", f.DType, f.Shape)
	}
	return fmt.Sprintf("%s, %d samples", what, n)
}

func (m *memory[X, Y]) String() string { return describe("in memory", m.n, m.fields) }
func (s *subset[B]) String() string {
	return fmt.Sprintf("samples %d to %d of (%v)", s.lo, s.hi-1, s.Source)
}
func (m *mapped[B]) String() string { return fmt.Sprintf("(%v), changed", m.Source) }
