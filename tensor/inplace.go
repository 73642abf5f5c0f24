package tensor

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// AddInPlace adds u, broadcast to t's shape. It keeps t's env and storage and returns t.
func (t *Tensor) AddInPlace(u *Tensor) *Tensor { return t.inPlace(ir.Add, ir.Params{}, u) }

// SubInPlace subtracts u.
func (t *Tensor) SubInPlace(u *Tensor) *Tensor { return t.inPlace(ir.Sub, ir.Params{}, u) }

// MulInPlace multiplies by u.
func (t *Tensor) MulInPlace(u *Tensor) *Tensor { return t.inPlace(ir.Mul, ir.Params{}, u) }

// DivInPlace divides by u. Integers, whose quotients are f32, are refused.
func (t *Tensor) DivInPlace(u *Tensor) *Tensor {
	if !t.DType().IsFloat() {
		raise("div in place", "use Div, whose result is f32", "quotients into %s", t.typ)
	}
	return t.inPlace(ir.Div, ir.Params{}, u)
}

// LerpInPlace moves t towards u by f.
func (t *Tensor) LerpInPlace(u *Tensor, f float64) *Tensor {
	if fromFar(f) {
		return t.inPlace(ir.Lerp, ir.Scalars(1-f), u, true)
	}
	return t.inPlace(ir.Lerp, ir.Scalars(f), u)
}

// AddScaledInPlace adds f·u.
func (t *Tensor) AddScaledInPlace(u *Tensor, f float64) *Tensor {
	t.takes("axpy in place", f)
	return t.inPlace(ir.Axpy, ir.Scalars(f), u)
}

// ScaleInPlace multiplies by f.
func (t *Tensor) ScaleInPlace(f float64) *Tensor {
	t.takes("affine in place", f)
	return t.inPlace(ir.Affine, ir.Scalars(f, math.Copysign(0, -1)), nil)
}

// ClampInPlace limits values to [lo, hi], as [Tensor.Clamp].
func (t *Tensor) ClampInPlace(lo, hi float64) *Tensor {
	for _, f := range []float64{lo, hi} {
		if f != math.Trunc(f) {
			t.takes("clamp in place", f)
		}
	}
	return t.inPlace(ir.Clamp, ir.Scalars(lo, hi), nil)
}

// takes refuses a fraction among integers, which would be cut off in silence.
func (t *Tensor) takes(op string, f float64) {
	if !whole(f) && !t.DType().IsFloat() {
		raise(op, "convert with Cast", "the number %v with %s", f, t.typ)
	}
}

// CopyInPlace writes u's values, broadcast to t's shape and converted to its dtype. What is recorded of u goes on.
func (t *Tensor) CopyInPlace(u *Tensor) *Tensor { return t.inPlace(ir.Copy, ir.Params{}, u) }

// FillInPlace writes v everywhere.
func (t *Tensor) FillInPlace(v float64) *Tensor {
	number := t.env.full(ir.Dense(t.DType()), v)
	defer number.drop(internal)
	return t.CopyInPlace(number)
}

// inPlace writes code(t, u) into t; Copy writes u. It is recorded as the operation out of place would be, and the graph of
// the whole value and of its views follows. Nothing is recorded into what outlives graphs: a parameter, a leaf, a buffer.
// There operands that are leaves count as constants. Swapped, the operation is code(u, t).
func (t *Tensor) inPlace(code ir.Code, p ir.Params, u *Tensor, swapped ...bool) *Tensor {
	op := code.String() + " in place"
	t.alive(op)
	t.follow(op)
	e := t.recording(u)
	var given *heap.Ref
	in := make([]*Tensor, 0, 2)
	if code != ir.Copy {
		in = append(in, t.constant())
	}
	if u != nil {
		given = u.st
		u = t.fitted(op, u, e)
		in = append(in, u)
	}
	if len(swapped) > 0 {
		slices.Reverse(in)
	}
	base := t.mayWrite(op, u, e)
	attr := ir.Attr{}
	if code == ir.Copy {
		attr.Out = t.typ
	}
	pl := t.planOf(code, attr, in)
	t.keepOld(pl, in, e)
	var o *device.Origin
	seq := uint64(0)
	if e.dev.stream.WantsWork() {
		var origin device.Origin
		seq = e.traced(pl, in, &origin)
		o = &origin
	}
	t.env.intoFor(o, code, attr, p, t.quiet(), quietAll(in))
	t.st.Written()
	t.continueGraph(pl, p, in, e, seq)
	t.wrote(base, e)
	if u != nil && u.st != given && t.node == nil {
		u.drop(internal)
	}
	return t
}

// persists tells whether t outlives graphs.
func (t *Tensor) persists() bool { return t.param || t.leaf != nil }

// recording is t's env with the mode in which a write of u is recorded: as in a join, one without gradients wins, unless t
// carries a graph.
func (t *Tensor) recording(u *Tensor) *Env {
	e := t.env
	if t.persists() {
		return e.NoGrad()
	}
	if u != nil && !u.param && t.node == nil && u.env.grad > e.grad {
		c := *e
		c.grad = u.env.grad
		return &c
	}
	return e
}

func (t *Tensor) planOf(code ir.Code, attr ir.Attr, in []*Tensor) *opPlan {
	var types [2]*ir.Type
	for i, u := range in {
		types[i] = u.typ
	}
	op := ir.New(code, attr, types[:len(in)]...)
	return t.env.dev.plan(&op, in)
}

// keepOld puts a copy in place of operands that the write destroys and the gradient rule needs.
func (t *Tensor) keepOld(pl *opPlan, in []*Tensor, e *Env) {
	var want uint64
	for i, u := range in {
		if _, ok := u.edge(e); ok {
			want |= 1 << i
		}
	}
	if want == 0 || pl.rule == nil || pl.rule.Save == nil {
		return
	}
	needed := pl.rule.Save(&pl.op, want).In
	var old *Tensor
	for i, u := range in {
		if needed>>i&1 == 0 || u.st != t.st || u.typ != t.typ || u.off != t.off {
			continue
		}
		if old == nil {
			old = t.quiet().Clone()
			old.st.MarkPerishable()
		}
		c := *u
		c.st, c.typ, c.off, c.ver = old.st, old.typ, old.off, old.ver
		in[i] = &c
	}
}

// fitted is u in t's dtype and shape, a copy when it overlaps t. What a leaf becomes on the way is recorded in e.
func (t *Tensor) fitted(op string, u *Tensor, e *Env) *Tensor {
	u.alive(op)
	if u.env.dev != t.env.dev {
		raise(op, twoDevices, "operands on two devices: %s on %s, %s on %s", t.title(), t.env.dev.name, u.title(), u.env.dev.name)
	}
	if u = u.current(op, e); u.leaf != nil {
		if _, ok := u.edge(e); ok {
			u = u.inside(e)
		} else {
			u = u.constant()
		}
	}
	if category(u.DType()) > category(t.DType()) {
		raise(op, "convert with Cast", "%s into %s", u.typ, t.typ)
	}
	shape, err := ir.Broadcast(t.Shape(), u.Shape())
	if err != nil || !slices.Equal(shape, t.Shape()) {
		raise(op, "the operand must broadcast to the receiver's shape", "shape %v into %v", u.Shape(), t.Shape())
	}
	if u.overlaps(t) {
		u = u.Clone()
	}
	return u.Cast(t.DType()).expand(t.Shape())
}

// overlaps reports whether t and u share memory in another way than element by element.
func (t *Tensor) overlaps(u *Tensor) bool {
	if t.st != u.st || t.typ == u.typ && t.off == u.off {
		return false
	}
	return t.off < u.off+u.typ.Span() && u.off < t.off+t.typ.Span()
}

// mayWrite refuses writes that would lose or outlive a graph. It returns the value of which t is a view.
func (t *Tensor) mayWrite(op string, u *Tensor, e *Env) (base alias) {
	for i, s := range t.typ.Strides() {
		if s == 0 && t.Shape()[i] > 1 {
			raise(op, "write into a Clone", "%s repeats its elements", t.typ)
		}
	}
	base, leaf := t.base()
	if leaf {
		raise(op, "write into p.In(env.NoGrad()), or into a Clone", "a view of a parameter or leaf would be written while it records")
	}
	if t.node != nil && t.apart && !t.whole() {
		raise(op, "write into a Clone", "a view of a detached value that carries a graph")
	}
	if u == nil {
		return base
	}
	ed, ok := u.edge(e)
	switch {
	case !ok:
	case t.persists():
		raise(op, "use u.Detach()", "a recorded value would be written into a leaf")
	case t.apart && !t.whole():
		raise(op, "write into a Clone", "a recorded value would be written into a part of a detached value")
	case t.node == nil && t.outlives(e.live().home), t.node == nil && ed.node != nil && t.outlives(ed.node.scope):
		raise(op, "use u.Detach()", "a recorded value would be written into a value that outlives its graph")
	}
	return base
}

// outlives tells whether t is there longer than a graph in s. A chain's values count as those of the scope around it, as its
// graph does.
func (t *Tensor) outlives(s *scope) bool {
	return t.env.dev.heap.Owner(t.st.Storage).Home().Opened() < s.Opened()
}

// constant drops a leaf, but not a graph.
func (t *Tensor) constant() *Tensor {
	c := *t
	c.leaf, c.param = nil, false
	return &c
}

func quietAll(in []*Tensor) []*Tensor {
	out := make([]*Tensor, len(in))
	for i, t := range in {
		out[i] = t.quiet()
	}
	return out
}

// continueGraph records a write in place when t or the operand carries a graph.
func (t *Tensor) continueGraph(pl *opPlan, p ir.Params, in []*Tensor, e *Env, seq uint64) {
	t.node = nil
	for i, u := range in {
		if u.st == t.st && u.node != nil {
			c := *u
			c.ver = t.st.Version()
			in[i] = &c
		}
	}
	out := [1]*Tensor{t}
	if recordOp(pl, &p, e, in, out[:], seq); t.node != nil && t.whole() {
		t.st.MarkPerishable()
	}
}
