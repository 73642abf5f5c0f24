package nn

import (
	"reflect"

	"github.com/warpline-ml/warpline/tensor"
)

// Clone copies a model: fresh parameters and buffers with the same values, tied where they were tied. Unexported fields
// and those tagged nn:"-" are copied as they are, so what they point to is shared with the original.
func Clone[T any](model T) T {
	walk("nn.Clone", model)
	c := cloner{}
	out, _ := c.copy(reflect.ValueOf(&model).Elem()).Interface().(T) // a nil interface stays one
	return out
}

// cloner maps what was copied to its copy.
type cloner map[visit]reflect.Value

func (c cloner) copy(v reflect.Value) reflect.Value {
	if !holds(v.Type()) {
		return v
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(c.copy(v.Elem()))
		}
	case reflect.Struct:
		c.fields(out)
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(c.copy(v.Index(i)))
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return c.shared(v)
	}
	return out
}

// fields replaces the walked fields of a shallow copy by deep copies.
func (c cloner) fields(out reflect.Value) {
	for i := range out.NumField() {
		f := out.Type().Field(i)
		switch {
		case f.Tag.Get("nn") == "-":
		case f.IsExported():
			out.Field(i).Set(c.copy(out.Field(i)))
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			c.fields(out.Field(i))
		}
	}
}

// shared copies what may be reached on several ways, once.
func (c cloner) shared(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	id := visit{typ: v.Type(), at: v.Pointer()}
	if v.Kind() == reflect.Slice {
		id.n = v.Len()
	}
	if done, ok := c[id]; ok {
		return done
	}
	switch {
	case v.Type() == tensorType:
		c[id] = reflect.ValueOf(fresh(v.Interface().(*tensor.Tensor)))
	case v.Kind() == reflect.Pointer:
		c[id] = reflect.New(v.Type().Elem())
		c[id].Elem().Set(c.copy(v.Elem()))
	case v.Kind() == reflect.Slice:
		c[id] = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c[id].Index(i).Set(c.copy(v.Index(i)))
		}
	default:
		c[id] = reflect.MakeMap(v.Type())
		for k, e := range v.Seq2() {
			c[id].SetMapIndex(k, c.copy(e))
		}
	}
	return c[id]
}

// fresh copies one tensor in its role.
func fresh(t *tensor.Tensor) *tensor.Tensor {
	if !t.IsParam() {
		return tensor.NewBuffer(t)
	}
	p := NewParam(t)
	p.Freeze(t.Frozen())
	p.SetPath(t.Path())
	return p
}
