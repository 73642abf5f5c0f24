package nn

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// role is what a tensor of a model is there for.
type role uint8

const (
	parameter role = iota
	buffer         // state that is saved
	transient      // state that is not
)

// entry is a tensor of a model under one of its names.
type entry struct {
	path string
	t    *tensor.Tensor
	role role
}

// mistake is what is wrong with a model, without a place.
type mistake struct{ text, hint string }

// walker collects the tensors of a model.
type walker struct {
	loose   bool // batches: every tensor counts, whatever its role
	entries []entry
	modules map[any]string // paths of pointers and of elements of slices, for Summary
	names   map[string]bool
	open    map[visit]bool // what encloses the current value
	wrong   *mistake       // the first
}

// visit identifies a pointer, map or slice.
type visit struct {
	typ reflect.Type
	at  uintptr
	n   int
}

// walk collects the tensors of a model, every name of each.
func walk(op string, model any) *walker { return run(op, model, false) }

func run(op string, model any, loose bool) *walker {
	w := &walker{loose: loose, modules: map[any]string{}, names: map[string]bool{}, open: map[visit]bool{}}
	w.value(reflect.ValueOf(model), "", parameter)
	if w.wrong != nil {
		tensor.Raise(op, w.wrong.hint, "%s", w.wrong.text)
	}
	return w
}

func (w *walker) fail(hint, format string, args ...any) {
	if w.wrong == nil {
		w.wrong = &mistake{fmt.Sprintf(format, args...), hint}
	}
}

var tensorType = reflect.TypeFor[*tensor.Tensor]()

func (w *walker) value(v reflect.Value, path string, r role) {
	switch v.Kind() {
	case reflect.Interface:
		w.value(v.Elem(), path, r)
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Type() == tensorType {
			w.tensor(v.Interface().(*tensor.Tensor), path, r)
			return
		}
		w.once(v, 0, func() {
			if v.CanInterface() {
				w.name(v.Interface(), path)
			}
			w.value(v.Elem(), path, r)
		})
	case reflect.Struct:
		w.fields(v, path, r)
	case reflect.Slice:
		w.once(v, v.Len(), func() { w.elements(v, path, r) })
	case reflect.Array:
		w.elements(v, path, r)
	case reflect.Map:
		w.once(v, 0, func() { w.mapped(v, path, r) })
	}
}

// once runs f unless v encloses itself.
func (w *walker) once(v reflect.Value, n int, f func()) {
	if v.IsNil() {
		return
	}
	id := visit{v.Type(), v.Pointer(), n}
	if w.open[id] {
		return
	}
	w.open[id] = true
	f()
	delete(w.open, id)
}

// name notes the first path of a module.
func (w *walker) name(m any, path string) {
	if _, ok := w.modules[m]; !ok {
		w.modules[m] = path
	}
}

func (w *walker) fields(v reflect.Value, path string, r role) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, tagged := f.Tag.Lookup("nn")
		if tag == "-" {
			continue
		}
		if !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct) {
			w.hidden(v.Field(i), v.Type(), f)
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		if !tagged && !f.Anonymous {
			name = f.Name
		}
		w.value(v.Field(i), join(path, name), w.role(option, r, join(path, name)))
	}
}

// hidden refuses an unexported field that leads straight to tensors: its parameters would neither train nor be saved.
func (w *walker) hidden(v reflect.Value, owner reflect.Type, f reflect.StructField) {
	if w.loose || v.Kind() == reflect.Pointer && v.IsNil() {
		return
	}
	if t := f.Type; t == tensorType || t.Kind() == reflect.Pointer && leads(t.Elem()) || leads(t) {
		w.fail("export it, or tag it nn:\"-\" if it is no part of the model", "the field %s of %s is not exported: what it holds would neither train nor be saved", f.Name, owner)
	}
}

// leads tells whether a struct has an exported field that is a tensor.
func leads(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Type == tensorType {
			return true
		}
	}
	return false
}

func (w *walker) role(option string, outer role, path string) role {
	switch option {
	case "":
		return outer
	case "buffer":
		return max(buffer, outer)
	case "transient":
		return transient
	}
	w.fail("the options are buffer and transient", "the tag of %s has the option %q", path, option)
	return outer
}

func (w *walker) elements(v reflect.Value, path string, r role) {
	if !holds(v.Type().Elem()) {
		return
	}
	for i := range v.Len() {
		at := join(path, strconv.Itoa(i))
		if m, ok := v.Index(i).Interface().(Module); ok && v.Index(i).CanAddr() && m != nil {
			w.name(v.Index(i).Addr().Interface(), at)
		}
		w.value(v.Index(i), at, r)
	}
}

func (w *walker) mapped(v reflect.Value, path string, r role) {
	if !holds(v.Type().Elem()) {
		return
	}
	type item struct {
		name  string
		value reflect.Value
	}
	var items []item
	for k, e := range v.Seq2() {
		items = append(items, item{fmt.Sprint(k.Interface()), e})
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].name < items[j].name })
	for _, it := range items {
		w.value(it.value, join(path, it.name), r)
	}
}

// holds tells whether values of type t may lead to a tensor.
func holds(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}

func (w *walker) tensor(t *tensor.Tensor, path string, r role) {
	if path == "" {
		path = "value"
	}
	switch {
	case w.loose:
	case w.names[path]:
		w.fail("give them different names by tags", "two tensors have the name %s", path)
	case t.IsParam() && r != parameter:
		w.fail("drop the tag's option", "%s is tagged as a buffer but is a parameter", path)
	case !t.IsParam() && !t.IsBuffer():
		w.fail("make it with nn.NewParam or tensor.NewBuffer, or tag the field nn:\"-\"", "%s is a tensor that is neither parameter nor buffer", path)
	case t.IsBuffer():
		r = max(r, buffer)
	}
	w.names[path] = true
	w.entries = append(w.entries, entry{path, t, r})
}

// each yields the entries that want accepts, each tensor once, under its first name.
func (w *walker) each(want func(entry) bool) []entry {
	seen := map[*tensor.Tensor]bool{}
	return slices.DeleteFunc(slices.Clone(w.entries), func(e entry) bool {
		again := seen[e.t]
		seen[e.t] = true
		return again || !want(e)
	})
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
