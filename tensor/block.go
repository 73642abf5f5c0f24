package tensor

import (
	"reflect"

	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Do opens a scope in e's modes and runs f in it. What f returns gets e's scope and modes; the rest is released. A nil
// result is allowed.
func (e *Env) Do(f func(*Env) *Tensor) *Tensor { return Do(e, f) }

// Try is Do with an error in place of a panic about tensors ([*Error]) or memory ([*OOMError]). It does not undo
// gradients (opt.Discard does) or writes to buffers.
func (e *Env) Try(f func(*Env) *Tensor) (*Tensor, error) { return Try(e, f) }

// Do is [Env.Do] for any pointer, struct, slice or map of tensors.
func Do[T any](e *Env, f func(*Env) T) T {
	s := newScope(e.dev, e.live(), e.block())
	inner := *e
	inner.seeded = nil
	return doIn(s, e, &inner, f)
}

// doIn is Do for e in s, a new scope, and in inner's modes.
func doIn[T any](s *scope, e, inner *Env, f func(*Env) T) T {
	s.block = true
	defer s.End(blockEnd)
	inner.scope = s
	out := f(inner)
	outer := e.inScope(s.parent)
	seen := map[*node]bool{}
	eachTensor(reflect.ValueOf(out), map[any]bool{}, func(t *Tensor) { s.handOver(t, outer, seen) })
	return out
}

// Try is [Env.Try] for any pointer, struct, slice or map of tensors.
func Try[T any](e *Env, f func(*Env) T) (out T, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			err = p
		case *OOMError:
			err = p
		default:
			panic(p)
		}
	}()
	return Do(e, f), nil
}

// handOver gives a returned value, and what its graph needs, to the enclosing scope.
func (s *scope) handOver(t *Tensor, outer *Env, seen map[*node]bool) {
	t.present()
	// One that was written through a detached handle is left to who uses its graph.
	if a := t.alias(); t.st.Gone() == nil && a != nil && a.ver == t.st.Version() {
		t.follow("Do")
	}
	l := s.dev.heap.Lock()
	defer l.Unlock()
	if t.env.scope == s {
		t.env = outer
	}
	if l.Owner(t.st.Storage) == &s.Scope {
		l.Inherit(&outer.scope.Scope, t.st.Storage)
	}
	s.handGraph(l, t.node, outer.scope, seen)
}

// handGraph hands over the nodes of s that lead to n. On their way they may leave s for another device and come back:
// seen has the nodes of other scopes that were passed. None that is older than s leads to a node of s.
func (s *scope) handGraph(l heap.Locked, n *node, to *scope, seen map[*node]bool) {
	switch {
	case n == nil:
		return
	case n.scope == s:
		s.handNode(l, n, to)
	case n.seq <= s.begun || seen[n]:
		return
	default:
		seen[n] = true
	}
	for _, e := range n.in {
		s.handGraph(l, e.node, to, seen)
	}
}

func (s *scope) handNode(l heap.Locked, n *node, to *scope) {
	n.scope = to.home
	if r := n.odds().region; r != nil {
		r.moveTo(l, s, to)
	}
	for i := range n.keep {
		k := &n.keep[i]
		if k.st != nil {
			l.InheritHeld(&to.Scope, &s.Scope, k.st.Storage)
		}
		l.MoveHold(k.away, &to.Scope)
	}
}

var tensorType = reflect.TypeFor[*Tensor]()

// eachTensor finds the tensors in pointers, structs, slices and maps.
func eachTensor(v reflect.Value, seen map[any]bool, f func(*Tensor)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Interface()] {
			return
		}
		seen[v.Interface()] = true
		if v.Type() == tensorType {
			f(v.Interface().(*Tensor))
			return
		}
		eachTensor(v.Elem(), seen, f)
	case reflect.Interface:
		eachTensor(v.Elem(), seen, f)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachTensor(v.Field(i), seen, f)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachTensor(v.Index(i), seen, f)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			eachTensor(v.MapIndex(k), seen, f)
		}
	}
}
