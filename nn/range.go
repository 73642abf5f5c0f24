package nn

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// call is one use of a layer, in a range of its own. Observers of ranges find it as what opened them.
type call struct {
	key   any // identifies the layer
	layer any
	x, y  *tensor.Tensor
	own   bool // the layer is one of this package
	inner *tensor.Tensor
	end   func(y, z *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor)
}

// enter begins a layer's Forward. Without an observer of ranges it does nothing; in.x is the input to use.
func enter(layer any, x *tensor.Tensor) (in entered) {
	if x == nil {
		missing(layer, "input")
	}
	if !x.Env().Device().Ranged() {
		return entered{x: x}
	}
	if c, ok := x.Env().Opener().(*call); ok && c.key == layer && c.inner == x {
		c.own = true // the container has opened its range
		return entered{x: x}
	}
	c := &call{key: layer, layer: layer, x: x, own: true}
	return c.enter(place(layer))
}

// missing says whose value is nil: the layer's path in its model, if it is known.
func missing(layer any, what string) {
	at := ""
	if path, ok := placed(layer); ok && path != "" {
		at = " of " + path
	}
	tensor.Raise("nn."+Kind(layer), "make layers with nn.New"+Kind(layer)+"; an optional value may be missing", "the %s%s is nil", what, at)
}

// needs refuses a layer without a tensor that it cannot do without.
func needs(layer any, what string, t *tensor.Tensor) {
	if t == nil {
		missing(layer, what)
	}
}

// entered is a Forward under way.
type entered struct {
	x    *tensor.Tensor
	call *call // nil when nobody observes, or the container does
}

func (c *call) enter(name string) entered {
	c.inner, c.end = c.x.EnterPair(name, c)
	return entered{c.inner, c}
}

// leave ends the Forward and returns its result.
func (in entered) leave(y *tensor.Tensor) *tensor.Tensor {
	if in.call == nil {
		return y
	}
	in.call.y = y
	y, _ = in.call.end(y, nil)
	return y
}

// leavePair ends the Forward of a layer that hands on a value beside its result, which it returns last.
func (in entered) leavePair(y, beside *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
	if in.call == nil {
		return beside, y
	}
	in.call.y = y
	y, beside = in.call.end(y, beside)
	return beside, y
}

// enter is enter for an element, which may be a plain value without an identity of its own, such as ReLU{}, or a module of
// the program's own.
func (s Sequential) enter(i int, x *tensor.Tensor) entered {
	if x == nil || !x.Env().Device().Ranged() {
		return entered{x: x}
	}
	c := &call{key: s[i], layer: s[i], x: x}
	if reflect.TypeOf(s[i]).Kind() != reflect.Pointer {
		c.key, c.own = &s[i], true
	}
	return c.enter(s.place(i))
}

// place is the path of an element: its own, or what follows from that of another.
func (s Sequential) place(i int) string {
	for j, m := range s {
		if path, ok := placed(m); ok {
			if prefix, ok := strings.CutSuffix(path, strconv.Itoa(j)); ok {
				return prefix + strconv.Itoa(i)
			}
		}
	}
	return place(s[i])
}

// place is the path of a layer in its model, as its parameters know it; of one without, its kind.
func place(layer any) string {
	if path, ok := placed(layer); ok {
		return path
	}
	return Kind(layer)
}

func placed(layer any) (path string, ok bool) {
	for _, e := range walk("nn", layer).each(isParameter) {
		if path, ok = strings.CutSuffix(e.t.Path(), e.path); ok {
			return strings.TrimSuffix(path, "."), true
		}
	}
	return "", false
}

// Forward runs f as the Forward of a layer of one's own: [Summary] has a row of it, observers of modules see its result, and
// profiles its name, as of the layers here. Layers inside have rows of their own.
//
//	func (l *Gate) Forward(x *tensor.Tensor) *tensor.Tensor {
//		return nn.Forward(l, x, func(x *tensor.Tensor) *tensor.Tensor { return x.Mul(l.Inner.Forward(x).Sigmoid()) })
//	}
func Forward(layer Module, x *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	in := enter(layer, x)
	return in.leave(f(in.x))
}
