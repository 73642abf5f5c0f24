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
	m := mover{tensor: func(t *Tensor) *Tensor { return t.To(e) }, env: func(e *Env) *Env { return e }}
	return move(&m, v)
}

// mover says what takes the place of tensors and envs.
type mover struct {
	tensor func(*Tensor) *Tensor
	env    func(*Env) *Env
	seen   map[any]reflect.Value
}

// move is v with what m puts in the place of its tensors and envs.
func move[T any](m *mover, v T) T {
	m.seen = map[any]reflect.Value{}
	out, _ := m.moved(reflect.ValueOf(&v).Elem()).Interface().(T) // a nil interface stays one
	return out
}

// moved rebuilds containers of tensors; what holds no tensor is copied as it is.
func (m *mover) moved(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		m.pointer(v, out)
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(m.moved(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(m.moved(v.Field(i)))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(m.moved(v.Index(i)))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(m.moved(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, m.moved(v.MapIndex(k)))
			}
		}
	}
	return out
}

func (m *mover) pointer(v, out reflect.Value) {
	if v.IsNil() {
		return
	}
	if old, ok := m.seen[v.Interface()]; ok {
		out.Set(old)
		return
	}
	switch p := v.Interface().(type) {
	case *Tensor:
		out.Set(reflect.ValueOf(m.tensor(p)))
	case *Env:
		out.Set(reflect.ValueOf(m.env(p)))
	case *Device, *Queue:
	default:
		out.Set(reflect.New(v.Type().Elem()))
		m.seen[v.Interface()] = out
		out.Elem().Set(m.moved(v.Elem()))
		return
	}
	m.seen[v.Interface()] = out
}
