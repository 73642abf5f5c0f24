package tensor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// batch is what a step finds in what it is given: its tensors, each once and in order, and all else that its Go code could
// look at. Its room is kept from run to run.
type batch struct {
	tensors []*Tensor
	env     *Env   // of the later-opened scope
	form    []byte // how the rest is, and how the tensors lie in it
	met     []uintptr
}

// modes are what of an env a step depends on, beside its scope.
type modes struct {
	queue       *queue
	grad, train mode
	policy      dtype.DType
	again       bool
	cpuLists    bool
	products    Precision
}

func (e *Env) modes() modes {
	return modes{e.queue, e.grad, e.train, e.policy, e.again, e.cpuLists, e.products}
}

// read walks v. What it does not know how to look at is not looked at.
func (b *batch) read(root *Env, v reflect.Value) {
	clear(b.tensors)
	b.tensors, b.form, b.met, b.env = b.tensors[:0], b.form[:0], b.met[:0], root
	b.walk(v)
	for _, t := range b.tensors {
		b.operand(t)
	}
}

// operand refuses what later runs could not take the place of.
func (b *batch) operand(t *Tensor) {
	t.alive("Run")
	switch {
	case t.env.dev != b.env.dev:
		raise("Run", "x.To(env) copies it", "the batch has %s on %s, the step was captured for %s", t.title(), t.env.dev.name, b.env.dev.name)
	case t.param:
		raise("Run", "use it in the step itself", "the batch has %s, a parameter or buffer", t.title())
	case t.carriesGraph() || t.leaf != nil:
		raise("Run", "x.Detach()", "the batch has %s, which carries a graph or is a leaf", t.title())
	}
}

func (b *batch) note(words ...uint64) {
	for _, w := range words {
		b.form = binary.LittleEndian.AppendUint64(b.form, w)
	}
}

func (b *batch) enter(e *Env) {
	if e.dev == b.env.dev && later(b.env.scope, e.scope) == e.scope {
		b.env = e
	}
}

func (b *batch) walk(v reflect.Value) {
	switch b.form = append(b.form, byte(v.Kind())); v.Kind() {
	case reflect.Pointer:
		b.pointer(v)
	case reflect.Interface:
		if !v.IsNil() {
			b.form = append(b.form, v.Elem().Type().String()...)
			b.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // it is exported
				b.walk(f)
			}
		}
	case reflect.Slice, reflect.Array:
		b.note(uint64(v.Len()))
		for i := range v.Len() {
			b.walk(v.Index(i))
		}
	case reflect.Map:
		b.entries(v)
	default:
		b.plain(v)
	}
}

func (b *batch) plain(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		b.note(uint64(v.Len()))
		b.form = append(b.form, v.String()...)
	case v.Kind() == reflect.Bool && v.Bool():
		b.note(1)
	case v.CanInt():
		b.note(uint64(v.Int()))
	case v.CanUint():
		b.note(v.Uint())
	case v.CanFloat():
		b.note(math.Float64bits(v.Float()))
	case v.CanComplex():
		b.note(math.Float64bits(real(v.Complex())), math.Float64bits(imag(v.Complex())))
	}
}

// entries walks a map in the order of its keys as they print.
func (b *batch) entries(v reflect.Value) {
	keys := v.MapKeys()
	sorting.By(keys, func(k, l reflect.Value) int {
		return cmp.Compare(fmt.Sprint(k.Interface()), fmt.Sprint(l.Interface()))
	})
	b.note(uint64(len(keys)))
	for _, k := range keys {
		b.walk(k)
		b.walk(v.MapIndex(k))
	}
}

func (b *batch) pointer(v reflect.Value) {
	if v.IsNil() {
		b.note(0)
		return
	}
	at := v.Pointer()
	if i := slices.Index(b.met, at); i >= 0 {
		b.note(uint64(i) + 1)
		return
	}
	b.met = append(b.met, at)
	b.note(uint64(len(b.met)))
	switch p := v.Interface().(type) {
	case *Tensor:
		p.present()
		b.tensors = append(b.tensors, p)
		b.enter(p.env)
	case *Env:
		b.enter(p)
	case *Device, *Queue:
	default:
		b.walk(v.Elem())
	}
}

// kind is what all batches have that one captured form of a step serves.
type kind struct {
	form  []byte
	types []*ir.Type
	modes []modes
}

func (b *batch) kind() kind {
	k := kind{form: slices.Clone(b.form), modes: []modes{b.env.modes()}}
	for _, t := range b.tensors {
		k.types, k.modes = append(k.types, t.typ), append(k.modes, t.env.modes())
	}
	return k
}

// is tells whether b is of the kind.
func (k *kind) is(b *batch) bool {
	if len(b.tensors) != len(k.types) || string(b.form) != string(k.form) || b.env.modes() != k.modes[0] {
		return false
	}
	for i, t := range b.tensors {
		if t.typ != k.types[i] || t.env.modes() != k.modes[i+1] {
			return false
		}
	}
	return true
}
