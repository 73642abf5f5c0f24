package data

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/warpline-ml/warpline/tensor"
)

// Named is a batch whose tensors have names, as a dictionary has in PyTorch: those of the source's [Field]s.
type Named struct {
	Turn
	Tensors map[string]*tensor.Tensor
}

// tensorFields are the places of a batch type's tensors, found once.
type tensorFields struct {
	names []string
	index [][]int
	named []int // of the map that takes what has no place of its own; nil: there is none
}

var (
	layouts    sync.Map // reflect.Type to *tensorFields
	tensorType = reflect.TypeFor[*tensor.Tensor]()
	namedType  = reflect.TypeFor[map[string]*tensor.Tensor]()
	turnType   = reflect.TypeFor[Turn]()
)

func fieldsOf(t reflect.Type) *tensorFields {
	if l, ok := layouts.Load(t); ok {
		return l.(*tensorFields)
	}
	l := &tensorFields{}
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case !f.IsExported():
		case f.Type == tensorType:
			l.names, l.index = append(l.names, f.Name), append(l.index, f.Index)
		case f.Type == namedType && l.named == nil:
			l.named = f.Index
		}
	}
	layouts.Store(t, l)
	return l
}

// set puts tensor i of a source where a batch has it.
func (l *tensorFields) set(batch reflect.Value, i int, name string, x *tensor.Tensor) {
	if i < len(l.index) {
		batch.FieldByIndex(l.index[i]).Set(reflect.ValueOf(x))
		return
	}
	m := batch.FieldByIndex(l.named)
	if m.IsNil() {
		m.Set(reflect.MakeMap(namedType))
	}
	m.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(x))
}

// maxElements bounds a tensor of a batch, 32 GiB of float32: beyond it a size is a mistake.
const maxElements = 1 << 33

// check compares what a source offers with the batch's fields.
func (l *tensorFields) check(batch reflect.Type, fields []Field, rows int) error {
	if len(fields) != len(l.names) && (l.named == nil || len(fields) < len(l.names)) {
		return fmt.Errorf("data: the source fills %d tensors, %v has %d %v", len(fields), batch, len(l.names), l.names)
	}
	seen := map[string]bool{}
	for i, f := range fields {
		where := f.Name
		if i < len(l.names) {
			where = l.names[i]
		} else if f.Name == "" || seen[f.Name] {
			return fmt.Errorf("data: tensor %d of the source has the name %q, which is none or has come before; give Field.Name for %v", i, f.Name, batch)
		}
		seen[f.Name] = true
		if err := f.check(fmt.Sprintf("%v.%s", batch, where), rows); err != nil {
			return err
		}
	}
	return nil
}

// check refuses what no tensor can be; where is the place in the batch.
func (f Field) check(where string, rows int) error {
	if !f.DType.Valid() {
		return fmt.Errorf("data: the source names no dtype for %s", where)
	}
	left := maxElements / max(rows, 1)
	for i, d := range f.Shape {
		if d < 0 && (i > 0 || d != Any) {
			return fmt.Errorf("data: the source gives %s the shape %v", where, f.Shape)
		}
		left /= max(d, 1)
	}
	if left == 0 {
		return fmt.Errorf("data: %d samples of shape %v are too many for a batch; give a smaller size", rows, f.Shape)
	}
	return nil
}
