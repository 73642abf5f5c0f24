package nn

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// Wrap puts other modules in place of those of a model, by path: f gets each module that stands in an interface, such as an element
// of a [Sequential] or a field of type [Module], those inside before those around them, and returns it or another one. A field
// of a type of its own, such as *Linear, can only take that type. It returns the paths of what it has replaced, in order.
func Wrap(model any, f func(path string, m Module) Module) (paths []string) {
	walk("nn.Wrap", model) // refuses what no model is
	w := &wrapper{f: f, seen: map[visit]bool{}}
	w.value(reflect.ValueOf(model), "")
	slices.Sort(w.paths)
	for range Params(model) { // which tells parameters their paths
	}
	return w.paths
}

// wrapper goes through a model for [Wrap].
type wrapper struct {
	f     func(path string, m Module) Module
	seen  map[visit]bool
	paths []string
}

func (w *wrapper) value(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Interface:
		w.value(v.Elem(), path)
		w.slot(v, path, v.CanSet(), v.Set)
	case reflect.Pointer:
		if v.IsNil() || v.Type() == tensorType {
			return
		}
		if !w.again(v) {
			w.value(v.Elem(), path)
		}
		w.slot(v, path, v.CanSet(), v.Set)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			tag, tagged := f.Tag.Lookup("nn")
			if name, _, _ := strings.Cut(tag, ","); tag != "-" && f.IsExported() {
				if !tagged && !f.Anonymous {
					name = f.Name
				}
				w.value(v.Field(i), join(path, name))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.value(v.Index(i), join(path, strconv.Itoa(i)))
		}
	case reflect.Map:
		for k, e := range v.Seq2() {
			w.value(e, join(path, fmt.Sprint(k.Interface())))
			w.slot(e, join(path, fmt.Sprint(k.Interface())), true, func(m reflect.Value) { v.SetMapIndex(k, m) })
		}
	}
}

// again tells whether a pointer was met before.
func (w *wrapper) again(v reflect.Value) bool {
	id := visit{v.Type(), v.Pointer(), 0}
	was := w.seen[id]
	w.seen[id] = true
	return was
}

// slot asks for what stands in a place, if it is a module that can be replaced.
func (w *wrapper) slot(v reflect.Value, path string, settable bool, set func(reflect.Value)) {
	if !settable || v.IsZero() {
		return
	}
	m, ok := v.Interface().(Module)
	if !ok {
		return
	}
	n := w.f(path, m)
	if n == nil {
		tensor.Raise("nn.Wrap", "return the module that f is given where none comes in its place", "f gives nothing for %s", path)
	}
	if sameModule(m, n) {
		return
	}
	if t := reflect.TypeOf(n); !t.AssignableTo(v.Type()) {
		tensor.Raise("nn.Wrap", "declare the field as nn.Module", "%s is a %s, in which no %s can stand", path, v.Type(), t)
	}
	set(reflect.ValueOf(n))
	w.paths = append(w.paths, path)
}

// sameModule tells whether two modules are one.
func sameModule(m, n Module) bool {
	v, u := reflect.ValueOf(m), reflect.ValueOf(n)
	if v.Type() != u.Type() {
		return false
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Pointer() == u.Pointer() && v.Len() == u.Len()
	}
	return v.Comparable() && v.Equal(u)
}
