package data

import (
	"fmt"
	"sync"
)

// mappedTo is the source of [MapTo].
type mappedTo[B any] struct {
	src    Source[B]
	fields []Field
	change func(from, to Row) error
	rows   sync.Pool // of *slot[B], each of one sample of src
}

// MapTo is [Map] to samples of other fields, such as pictures of another size: change reads a sample of src and writes its own, by several
// goroutines at once.
func MapTo[B any](src Source[B], fields []Field, change func(from, to Row) error) Source[B] {
	m := &mappedTo[B]{src: src, fields: fields, change: change}
	m.rows.New = func() any { return newSlot[B](src.Fields(), 1) }
	return m
}

func (m *mappedTo[B]) Len() int        { return m.src.Len() }
func (m *mappedTo[B]) Fields() []Field { return m.fields }

func (m *mappedTo[B]) Fill(b *B, row Row, i int) error {
	one := m.rows.Get().(*slot[B])
	defer m.rows.Put(one)
	columns := one.columns
	for _, c := range columns {
		c.clear(1)
	}
	from := Row{columns, 0, row.key, row.number}
	if err := m.src.Fill(b, from, i); err != nil {
		return err
	}
	return m.change(from, row)
}

func (m *mappedTo[B]) String() string { return fmt.Sprintf("(%v), changed", m.src) }

// Copy takes a field of another row as it is. It panics when the two fields differ.
func (r Row) Copy(field int, from Row) {
	to, f := r.columns[field], from.columns[field]
	if left, ok := to.setRow(f.appendRow(nil, from.at), r.at); !ok || len(left) > 0 || to.field().DType != f.field().DType {
		panic(fmt.Sprintf("data: field %d of a row is %s%v, that of the other %s%v", field, to.field().DType, to.field().Shape, f.field().DType, f.field().Shape))
	}
}
