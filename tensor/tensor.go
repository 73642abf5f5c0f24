// Package tensor has n-dimensional values that carry where and how they are computed, with automatic gradients.
//
// A [Tensor] is a handle: it owns nothing. Storages are owned by scopes (a batch, a block, the root), by the graph that
// Backward will walk, and by operations in flight. Every operation is an op described as data that the env's device
// runs; the rules are in docs/architecture.md.
package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Tensor is a handle on a value. Reading is safe from several goroutines, operations in place are not.
type Tensor struct {
	st    *heap.Ref
	typ   *ir.Type
	off   int // of the first element, in elements
	env   *Env
	node  *node  // the graph behind it, if any
	leaf  *leaf  // where its gradient goes, if it is a leaf
	out   int8   // which result of node this is
	param bool   // joins as a parameter: sets only device and root scope
	apart bool   // detached: what is written through other handles is not in its graph, nor the other way round
	ver   uint32 // of the storage when node made this value
	named *leaf  // the parameter that this is a view, a cast or a copy of, for messages and observers
}

// make allocates a row-major value in e, of operands. Its site begins skip calls above make; o is nil unless somebody observes
// it.
func (e *Env) make(code ir.Code, t *ir.Type, skip int, in []*Tensor, o *device.Origin) *Tensor {
	s := e.scope
	if s.Closed() != nil {
		s = e.live()
		e = e.inScope(s)
	}
	return &Tensor{st: s.storage(e, t.Bytes(), code, skip+1, in, o), typ: t, env: e}
}

func checkShape(op string, shape []int) {
	if err := ir.CheckShape(shape); err != nil {
		raise(op, "check the sizes", "%v", err)
	}
}

// From copies data into a new tensor of the given shape.
func From[T dtype.Element](e *Env, data []T, shape ...int) *Tensor {
	e.present("From")
	checkShape("From", shape)
	typ := ir.Dense(dtype.Of[T](), shape...)
	if typ.Size() != len(data) {
		raise("From", "give as many values as the shape has", "%d values for shape %v", len(data), shape)
	}
	t := e.make(ir.Copy, typ, 0, nil, nil)
	write(t, data)
	return t
}

// Zeros makes a float32 tensor of zeros.
func (e *Env) Zeros(shape ...int) *Tensor { return e.Full(0, shape...) }

// Ones makes a float32 tensor of ones.
func (e *Env) Ones(shape ...int) *Tensor { return e.Full(1, shape...) }

// Full makes a float32 tensor of one value.
func (e *Env) Full(v float64, shape ...int) *Tensor { return e.FullOf(dtype.F32, v, shape...) }

// FullOf makes a tensor of one value, of any dtype.
func (e *Env) FullOf(dt dtype.DType, v float64, shape ...int) *Tensor {
	checkShape("Full", shape)
	return e.full(ir.Dense(dt, shape...), v)
}

func (e *Env) full(t *ir.Type, v float64) *Tensor {
	return e.create(ir.Full, t, ir.Scalars(v))
}

// Arange makes the int64 numbers 0 … n-1.
func (e *Env) Arange(n int) *Tensor {
	checkShape("Arange", []int{n})
	return e.create(ir.Iota, ir.Dense(dtype.I64, n), ir.Scalars(0, 1))
}

// Rand makes float32 numbers uniform in [0, 1).
func (e *Env) Rand(shape ...int) *Tensor {
	return e.random("Rand", ir.Uniform, dtype.F32, shape, ir.Scalars(0, 1))
}

// Randn makes float32 numbers of the standard normal distribution.
func (e *Env) Randn(shape ...int) *Tensor {
	return e.random("Randn", ir.Normal, dtype.F32, shape, ir.Scalars(0, 1))
}

// RandInt makes int64 numbers uniform in [lo, hi).
func (e *Env) RandInt(lo, hi int, shape ...int) *Tensor {
	if hi <= lo {
		raise("RandInt", "give lo < hi", "no integers in [%d, %d)", lo, hi)
	}
	return e.random("RandInt", ir.RandInt, dtype.I64, shape, ir.Integers(int64(lo), int64(hi)))
}

// random draws by two parameters and a key.
func (e *Env) random(op string, code ir.Code, dt dtype.DType, shape []int, p ir.Params) *Tensor {
	checkShape(op, shape)
	p.Value[2], p.N = uint64(e.number()), 3
	return e.create(code, ir.Dense(dt, shape...), p)
}

// ZerosLike makes zeros in t's env, shape and dtype.
func (t *Tensor) ZerosLike() *Tensor { return t.Env().full(t.typ.AsDense(), 0) }

// FullLike makes a tensor of one value in t's env, shape and dtype.
func (t *Tensor) FullLike(v float64) *Tensor { return t.Env().full(t.typ.AsDense(), v) }

// Env tells where t lives and in which modes.
func (t *Tensor) Env() *Env {
	t.present()
	return t.env
}

// present refuses a nil tensor, and a handle that no env made, with a typed error: every way into an operation passes it.
func (t *Tensor) present() {
	if t == nil || t.typ == nil {
		t.absent(calledAs(), "an operand")
	}
}

// given is present for an operand with a name.
func (t *Tensor) given(op, name string) {
	if t == nil || t.typ == nil {
		t.absent(op, name)
	}
}

// givenAll is given for several; the names are in their order.
func givenAll(op string, names []string, in ...*Tensor) {
	for i, t := range in {
		t.given(op, names[i])
	}
}

var operandNames = []string{"the first operand", "the second operand"}

func (t *Tensor) absent(op, name string) {
	if t != nil {
		raise(op, "make values by an env or by operations, and pass them as *tensor.Tensor", "%s is a zero Tensor, which holds nothing", name)
	}
	raise(op, "an optional layer or a map entry may be missing", "%s is nil", name)
}

// parameter is the one that t is, or is made of without arithmetic; nil for other values.
func (t *Tensor) parameter() *leaf {
	if t.leaf != nil && t.param {
		return t.leaf
	}
	return t.named
}

// title is t's type, with the path of the parameter that it is.
func (t *Tensor) title() string {
	if l := t.parameter(); l != nil && l.path() != "" {
		return t.typ.String() + " " + l.path()
	}
	return t.typ.String()
}

// Shape returns the sizes, outermost first; do not change it.
func (t *Tensor) Shape() []int { return t.Type().Shape() }

// Rank is the number of dimensions.
func (t *Tensor) Rank() int { return t.Type().Rank() }

// Dim is the size of dimension i; negative i counts from the last.
func (t *Tensor) Dim(i int) int { return t.typ.Dim(t.axis("Dim", i)) }

// Size is the number of elements.
func (t *Tensor) Size() int { return t.Type().Size() }

// Bytes is the number of bytes of the elements.
func (t *Tensor) Bytes() int64 { return t.Type().Bytes() }

// DType is the element type.
func (t *Tensor) DType() dtype.DType { return t.Type().DType }

// Type describes dtype, shape and strides; gradient rules and lowerings read it.
func (t *Tensor) Type() *ir.Type {
	t.present()
	return t.typ
}

// Recorded tells whether t carries a graph.
func (t *Tensor) Recorded() bool {
	t.present()
	return t.carriesGraph()
}

// axis resolves a dimension that may count from the last.
func (t *Tensor) axis(op string, i int) int {
	n := t.Rank()
	if i < -n || i >= n {
		raise(op, "dimensions count from 0, or from -1 at the end", "dimension %d of shape %v", i, t.Shape())
	}
	if i < 0 {
		i += n
	}
	return i
}

// In returns the same value, with the same graph, in e's set modes and in the later-opened of both scopes.
func (t *Tensor) In(e *Env) *Tensor {
	t.present()
	c := *t
	c.env, c.param = t.env.overlay(e), false
	return &c
}

// Detach returns the same value without its graph. Backward then leaves the value to its scope.
func (t *Tensor) Detach() *Tensor {
	t.alive("Detach")
	c := *t
	c.node, c.leaf, c.param, c.apart = nil, nil, false, true
	if t.carriesGraph() {
		t.env.dev.heap.Exempt(t.st.Storage)
	}
	return &c
}

// keptWhole is the size from which Keep moves a value instead of copying it: a moved one takes along the run of storages
// that its batch made it in, some 6 KB of Go's memory.
const keptWhole = 4 << 10

// Keep returns a detached handle in the root scope, so that the value outlives its batch. A small value, a view, and a value
// that is there already, is copied. Call it before Backward.
func (t *Tensor) Keep() *Tensor {
	c := t.keep()
	c.env.dev.heap.MarkKept(c.st.Storage)
	return c
}

// keep is Keep of what the program cannot release.
func (t *Tensor) keep() *Tensor {
	t.alive("Keep")
	base := t.env.dev.base
	if base.scope.owns(t.st.Storage) || t.Bytes() != t.st.Bytes() {
		return t.copyToRoot()
	}
	if t.Bytes() < keptWhole {
		t.env.dev.heap.Exempt(t.st.Storage)
		return t.copyToRoot()
	}
	t.env.dev.heap.Keep(t.st.Storage, &base.scope.Scope)
	t.place()
	c := *t
	c.node, c.leaf, c.param, c.apart, c.env = nil, nil, false, true, base
	return &c
}

// Release lets go of a value that Keep has returned, which otherwise stays until no handle reaches it and memory is short; a live graph
// that holds it has it for as long. Its handles are of no use after that.
func (t *Tensor) Release() {
	t.alive("Release")
	whole := int64(t.typ.Span()*t.DType().Size()) == t.st.Bytes()
	if !whole || !t.env.dev.heap.LetGo(t.st.Storage, released) {
		raise("Release", "values of a batch go with it, a parameter or buffer with its module, a view with what it is of", "%s is no value that Keep has returned", t.title())
	}
}

// RequireGrad returns a new handle on t's value that is a leaf: gradients can be taken with respect to it.
func (t *Tensor) RequireGrad() *Tensor {
	if !t.DType().IsFloat() {
		raise("RequireGrad", "convert it with Cast", "%s has no gradient", t.typ)
	}
	c := t.Detach()
	c.leaf = &leaf{value: c}
	return c
}

// copyToRoot copies t into a new row-major value of its device's root env, without recording.
func (t *Tensor) copyToRoot() *Tensor {
	e := *t.env.dev.base
	if e.site = t.env.site; e.site == nil {
		e.site = callsite.At(1) // here, before more calls hide the program's
	}
	c := t.copyTo(&e)
	c.env = t.env.dev.base
	return c
}

// copyTo copies t into a new row-major value of e, which is on t's device, without recording.
func (t *Tensor) copyTo(e *Env) *Tensor {
	quiet := *t
	quiet.node, quiet.leaf, quiet.param, quiet.apart, quiet.env = nil, nil, false, true, e
	return quiet.apply1(ir.Copy, ir.Attr{}, ir.Params{})
}

// To copies t to e's device, in e's scope and modes, and its gradient flows back to t's. On t's own device it is In.
func (t *Tensor) To(e *Env) *Tensor {
	t.alive("To")
	e.present("To")
	if t.env.dev == e.dev {
		return t.In(e)
	}
	uncapturable("To", "copy it before Run, or after", "a copy to another device, "+e.dev.name+", cannot be captured")
	if t.env.program.recording() || e.program.recording() {
		raise("Record", "copy it before, or after", "To %s: a copy to another device cannot be recorded", e.dev.name)
	}
	src := t.quiet().Contiguous()
	dst := e.make(ir.Copy, src.typ, 0, nil, nil)
	src.transfer(dst)
	t.dropCopy(src)
	t.recordMove(dst)
	return dst
}

// Data copies the values out into a Go slice. It is a sync point. The element type must be t's dtype, and t must be in
// host memory: y.To(cpu) moves it there. Floats reads any dtype from any device.
func Data[T dtype.Element](t *Tensor) []T {
	t.alive("Data")
	if dtype.Of[T]() != t.DType() {
		raise("Data", "name its element type, or convert with Cast", "%s read as %s", t.typ, dtype.Of[T]())
	}
	if !t.env.dev.info.Host {
		raise("Data", "move it first: y.To(cpu)", "%s is on %s, not in host memory", t.typ, t.env.dev.name)
	}
	return read[T](t)
}

// quiet is t as a constant for reading: unlike Detach it does not take the value out of Backward's reach.
func (t *Tensor) quiet() *Tensor {
	t.present()
	c := *t
	c.node, c.leaf, c.param, c.apart = nil, nil, false, true
	return &c
}

// Item returns the only value as a float64. It is a sync point. Integers beyond 2⁵³ are rounded: Data[int64](t.To(cpu))
// has every int64 as it is, and so has String. On a device without arithmetic it is 0, and the device remembers that the
// program saw a value that nothing computed.
func (t *Tensor) Item() float64 {
	t.alive("Item")
	if t.Size() != 1 {
		raise("Item", "reduce it first, or read it with Data", "shape %v has %d values", t.Shape(), t.Size())
	}
	return t.floats()[0]
}

// floats reads any dtype as float64.
func (t *Tensor) floats() []float64 {
	switch t.DType() {
	case dtype.F32:
		return widen(read[float32](t))
	case dtype.F64:
		return read[float64](t)
	case dtype.F16:
		return widen(read[dtype.Float16](t))
	case dtype.BF16:
		return widen(read[dtype.BFloat16](t))
	case dtype.I64:
		return widen(read[int64](t))
	case dtype.I32:
		return widen(read[int32](t))
	case dtype.U8:
		return widen(read[uint8](t))
	case dtype.Bool:
		return widen(read[bool](t))
	case dtype.F8E4M3:
		return widen(read[dtype.Float8E4M3](t))
	case dtype.F8E5M2:
		return widen(read[dtype.Float8E5M2](t))
	}
	panic("BUG: there are values of " + t.DType().String())
}

func widen[T dtype.Element](s []T) []float64 {
	out := make([]float64, len(s))
	dtype.Convert(out, s)
	return out
}

// Floats copies the values out as float64, whatever the dtype and wherever t lives; integers beyond 2⁵³ are rounded, unlike
// by [Data]. It is a sync point.
func (t *Tensor) Floats() []float64 {
	t.alive("Floats")
	return t.floats()
}

// SameShape reports whether t and u have equal sizes.
func (t *Tensor) SameShape(u *Tensor) bool { return slices.Equal(t.Shape(), u.Shape()) }
