package tensor

import "reflect"

// Matrix is what a matrix of gonum's package mat offers; any of them can be given to FromMatrix.
type Matrix interface {
	Dims() (rows, columns int)
	At(row, column int) float64
}

// FromMatrix copies a matrix into a float64 tensor [rows, columns]. The way back is mat.NewDense(r, c, t.Floats()).
func FromMatrix(e *Env, m Matrix) *Tensor {
	r, c := m.Dims()
	checkShape("FromMatrix", []int{r, c})
	v := make([]float64, 0, r*c)
	for i := range r {
		for j := range c {
			v = append(v, m.At(i, j))
		}
	}
	return From(e, v, r, c)
}

// Move copies every tensor of a struct, slice, map or pointer to one of these to e's device, and returns a value of the
// same kind that holds the copies. A batch moves in one call. Models move by nn.To, which keeps their handles.
func Move[T any](e *Env, v T) T {
	seen := map[any]reflect.Value{}
	out, _ := moved(reflect.ValueOf(&v).Elem(), seen, func(t *Tensor) *Tensor { return t.To(e) }).Interface().(T) // a nil interface stays one
	return out
}

// moved rebuilds containers of tensors; what holds no tensor is copied as it is.
func moved(v reflect.Value, seen map[any]reflect.Value, f func(*Tensor) *Tensor) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		movePointer(v, out, seen, f)
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(moved(v.Elem(), seen, f))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(moved(v.Field(i), seen, f))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(moved(v.Index(i), seen, f))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(moved(v.Index(i), seen, f))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, moved(v.MapIndex(k), seen, f))
			}
		}
	}
	return out
}

func movePointer(v, out reflect.Value, seen map[any]reflect.Value, f func(*Tensor) *Tensor) {
	if v.IsNil() {
		return
	}
	if old, ok := seen[v.Interface()]; ok {
		out.Set(old)
		return
	}
	switch p := v.Interface().(type) {
	case *Tensor:
		out.Set(reflect.ValueOf(f(p)))
	case *Env, *Device, *Queue:
	default:
		out.Set(reflect.New(v.Type().Elem()))
		seen[v.Interface()] = out
		out.Elem().Set(moved(v.Elem(), seen, f))
		return
	}
	seen[v.Interface()] = out
}
