package tensor

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// leaf is what a graph ends in: a parameter, or a value of RequireGrad. It may be used by one training loop at a time.
type leaf struct {
	value  *Tensor
	grad   *Tensor
	buffer *Tensor // where gradients are written, when the caller gave one
	frozen atomic.Bool
	name   atomic.Pointer[[1]string]
	hooks  []func(*Tensor) *Tensor
	after  []func(*Tensor)
	busy   atomic.Pointer[pass] // the Backward that adds to its gradient now
	aheads aheads
}

// idle refuses a leaf that a Backward of another goroutine adds to; hooks of that Backward are within it.
func (l *leaf) idle(op string) {
	if p := l.busy.Load(); p != nil && p.calling.Load() != callsite.Goroutine() {
		raise(op, "let one goroutine at a time train a model; each of several needs a copy: nn.Clone, env.Replica",
			"two goroutines train one model: another one is in Backward, and adds to the gradient of %s", l.title())
	}
}

// title is l's path, or its type where it has none.
func (l *leaf) title() string { return cmp.Or(l.path(), l.value.typ.String()) }

func (l *leaf) path() string {
	if s := l.name.Load(); s != nil {
		return s[0]
	}
	return ""
}

// NewParam makes t's value a parameter: it lives in the device's root scope and records wherever recording is on.
// Layers call it through nn.NewParam.
func NewParam(t *Tensor) *Tensor {
	if !t.DType().IsFloat() {
		raise("NewParam", "parameters are floating; tag other state as a buffer", "%s has no gradient", t.typ)
	}
	p := t.copyToRoot()
	p.param, p.leaf = true, &leaf{value: p}
	p.relabel()
	return p
}

// NewBuffer copies t into the root scope as state that no gradient reaches: running statistics, masks.
func NewBuffer(t *Tensor) *Tensor {
	t.present()
	b := t.copyToRoot()
	b.param = true
	b.relabel()
	return b
}

// relabel tells what the memory of a parameter or buffer serves for.
func (t *Tensor) relabel() {
	if t.leaf != nil {
		t.Label(device.LabelParameter, t.leaf.path())
	} else {
		t.Label(device.LabelBuffer, "")
	}
}

// leafOf is t's leaf, or nil.
func (t *Tensor) leafOf() *leaf {
	t.present()
	return t.leaf
}

// IsParam tells whether t was made by NewParam.
func (t *Tensor) IsParam() bool { return t.leafOf() != nil && t.param }

// IsBuffer tells whether t was made by NewBuffer.
func (t *Tensor) IsBuffer() bool { return t.leafOf() == nil && t.param }

// SetPath names a parameter by its place in a model: launches that read it are attributed to the path.
func (t *Tensor) SetPath(path string) {
	if l := t.leafOf(); l != nil && l.path() != path {
		l.name.Store(&[1]string{path})
		if t.param {
			t.relabel()
		}
	}
}

// Path is what SetPath set.
func (t *Tensor) Path() string {
	if t.leafOf() == nil {
		return ""
	}
	return t.leaf.path()
}

// Freeze makes a parameter a constant, or lets it learn again.
func (t *Tensor) Freeze(frozen bool) {
	if t.leafOf() == nil {
		raise("Freeze", "only parameters and leaves learn", "%s is neither", t.typ)
	}
	t.leaf.frozen.Store(frozen)
}

// Frozen tells whether a parameter is a constant.
func (t *Tensor) Frozen() bool { return t.leafOf() != nil && t.leaf.frozen.Load() }

// Grad returns the gradient of a parameter or leaf that Backward left, or nil.
func (t *Tensor) Grad() *Tensor {
	if t.leafOf() == nil {
		return nil
	}
	t.leaf.idle("Grad")
	return t.leaf.grad
}

// DropGrad lets go of a gradient.
func (t *Tensor) DropGrad() {
	if t.leafOf() == nil || t.leaf.grad == nil {
		return
	}
	if t.leaf.grad.st != bufferStorage(t.leaf) {
		t.leaf.grad.drop(stepped)
	}
	t.leaf.grad = nil
}

func bufferStorage(l *leaf) *heap.Ref {
	if l.buffer == nil {
		return nil
	}
	return l.buffer.st
}

// GradInto makes Backward write a parameter's gradient into buf, a row-major value of its shape and dtype in the root
// scope, such as a slice of a communication bucket; nil takes that back.
func (t *Tensor) GradInto(buf *Tensor) {
	if t.leafOf() == nil {
		raise("GradInto", "only parameters and leaves have gradients", "%s is neither", t.typ)
	}
	if buf != nil && (buf.typ != t.typ.AsDense() || buf.env.dev != t.env.dev) {
		raise("GradInto", "the buffer has the parameter's shape, dtype and device", "buffer %s for %s", buf.typ, t.typ)
	}
	t.DropGrad()
	t.leaf.buffer = buf
}

// OnGrad calls f with the gradient of t's value, once per Backward when it is complete and before it flows on. What f
// returns takes its place; nil leaves it. On a leaf it runs before accumulation. Hooks run in order of registration.
func (t *Tensor) OnGrad(f func(g *Tensor) *Tensor) {
	if !t.Recorded() && t.leaf == nil {
		raise("OnGrad", "only recorded values and leaves have gradients", "%s%s carries no graph", t.typ, t.elsewhere())
	}
	if f == nil {
		raise("OnGrad", "give a function; its result may be nil", "the hook is nil")
	}
	if t.leaf == nil {
		t.follow("OnGrad")
	}
	if t.node != nil {
		o := t.node.oddly()
		o.hooks = append(o.hooks, hook{t.out, f})
	} else {
		t.leaf.hooks = append(t.leaf.hooks, f)
	}
}

// AfterGrad calls f with the parameter after Backward has added to its gradient, once per Backward.
func (t *Tensor) AfterGrad(f func(p *Tensor)) {
	if t.leafOf() == nil {
		raise("AfterGrad", "only parameters and leaves accumulate gradients", "%s is neither", t.typ)
	}
	if f == nil {
		raise("AfterGrad", "give a function", "the hook is nil")
	}
	t.leaf.after = append(t.leaf.after, f)
}

// Replace puts u's value behind the handle of a parameter or buffer, which keeps its identity: optimizers and modules
// that hold it see the new value. It serves moving a model and loading weights. Shapes must agree. A gradient is
// dropped.
func (t *Tensor) Replace(u *Tensor) {
	t.present()
	if !t.param {
		raise("Replace", "use CopyInPlace on other values", "%s is neither parameter nor buffer", t.typ)
	}
	if !slices.Equal(t.Shape(), u.Shape()) {
		raise("Replace", "the shapes must agree", "shape %v in place of %v", u.Shape(), t.Shape())
	}
	t.DropGrad()
	if t.leaf != nil {
		t.leaf.aheads.forget(t.leaf.aheads.cast.Load())
	}
	fresh := u.copyTo(u.env.dev.base)
	old := *t
	t.st, t.typ, t.off, t.env = fresh.st, fresh.typ, fresh.off, fresh.env
	old.drop(replaced)
	t.relabel()
}

// Slot holds a value from turn to turn. Set it before Backward. It may be used by one training loop at a time.
type Slot struct{ cur *Tensor }

// Get returns the value in e, the batch's env, or nil. Without e, what is computed from it and parameters would stay in
// the root scope.
func (s *Slot) Get(e *Env) *Tensor {
	if s.cur == nil {
		return nil
	}
	return s.cur.In(e)
}

// Set keeps t and lets the old value go, once no live graph holds it.
func (s *Slot) Set(t *Tensor) {
	old := s.cur
	s.cur = t.keep()
	if old == nil || old.st.Storage == s.cur.st.Storage {
		return
	}
	old.env.dev.heap.Orphan(old.st.Storage, slotSet)
}

// into launches an op whose result is written into dst.
func (e *Env) into(code ir.Code, attr ir.Attr, p ir.Params, dst *Tensor, in ...*Tensor) {
	e.intoFor(e.originOf(in), code, attr, p, dst, in)
}

// intoFor is into for an operation with an origin; nil: nobody observes work.
func (e *Env) intoFor(o *device.Origin, code ir.Code, attr ir.Attr, p ir.Params, dst *Tensor, in []*Tensor) {
	var types [4]*ir.Type
	list := types[:0]
	dst.alive(code.String())
	for _, t := range in {
		t.alive(code.String())
		list = append(list, t.typ)
	}
	op := ir.New(code, attr, list...)
	pl := e.dev.plan(&op, in)
	if pl.kernel == nil || pl.out[0] != dst.typ {
		var out [1]*Tensor
		exec(e, code, &attr, &p, in, out[:])
		e.into(ir.Copy, ir.Attr{Out: dst.typ}, ir.Params{}, dst, out[0].quiet())
		out[0].drop(internal)
		return
	}
	out := [1]*Tensor{dst}
	w := e.looks()
	if w == nil || len(in) == 0 {
		e.launch(pl, &p, nil, in, out[:], o)
		return
	}
	was := healthOf(in)
	e.launch(pl, &p, nil, in, out[:], o)
	w.looked(e, code.String(), "", was, nil, out[:])
}
