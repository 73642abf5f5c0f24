package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

// A write in place changes the value of every handle on the storage: of the one that wrote, of the whole value and of other
// views. Their graph follows, as in PyTorch: what was written last is noted at the storage, and a handle from before the
// write is a view of that when it is next used. Detached handles, and those on parameters and leaves, do not take part.

// layout is how a value lies in its storage.
type layout struct {
	typ *ir.Type
	off int // of the first element
}

// alias is the value that a storage holds since it was written: what made it, and how it lies. No node: a constant.
type alias struct {
	node *node
	out  int8
	layout
	ver uint32
}

// splice is a node that has no op: a handle from before a write as a view of the value that the write left; or a write into a
// view, which replaces a part of the whole value. The whole value of n elements counts as one row.
type splice struct {
	put      bool
	from, to layout // of the whole value, and of the view
	n        int
}

// alias is what was noted of the storage, or nil for a handle that takes no part.
func (t *Tensor) alias() *alias {
	if t.st.Tag == nil || t.apart || t.leaf != nil {
		return nil
	}
	return (*t.st.Tag).(*alias)
}

// carriesGraph tells whether t is recorded, on its own or by a write through another handle.
func (t *Tensor) carriesGraph() bool {
	if a := t.alias(); a != nil && t.ver != t.st.Version() {
		return a.node != nil
	}
	return t.node != nil
}

// current is t with the graph of the value that its storage holds now. What leads there is recorded in e. A value that was
// written through a detached handle has none: that is an error.
func (t *Tensor) current(op string, e *Env) *Tensor {
	a, v := t.alias(), t.st.Version()
	switch {
	case a == nil:
		t.fresh(op)
		return t
	case t.node != nil && t.ver == v || t.node == nil && a.node == nil:
		return t
	case a.ver != v:
		t.stale(op)
	}
	c := *t
	if c.node, c.out, c.ver = a.node, a.out, v; a.node == nil || a.typ == t.typ && a.off == t.off {
		return &c
	}
	whole := c
	whole.typ, whole.off = a.typ, a.off
	in := [1]*Tensor{&whole}
	n := newNode(e, in[:], 0, false)
	n.oddly().splice = &splice{from: a.layout, to: layout{t.typ, t.off}, n: t.elements()}
	n.attach(in[:], []*Tensor{&c})
	return &c
}

// follow makes t current, for those who may change the handle.
func (t *Tensor) follow(op string) {
	if c := t.current(op, t.env); c != t {
		*t = *c
	}
}

// elements is how many the storage has.
func (t *Tensor) elements() int { return int(t.st.Bytes()) / t.DType().Size() }

// whole tells whether t has every element of its storage.
func (t *Tensor) whole() bool { return t.Bytes() == t.st.Bytes() }

// base is the value of which t is a view, or t itself, and whether that is a leaf.
func (t *Tensor) base() (b alias, leaf bool) {
	if a := t.alias(); a != nil {
		return *a, false
	}
	b = alias{node: t.node, out: t.out, layout: layout{t.typ, t.off}}
	for b.node != nil && !b.node.ran && b.node.plan != nil && b.node.plan.op.Code.View() {
		view := b.node
		b.node, b.out = view.in[0].node, view.in[0].out
		b.layout = layout{view.plan.op.In(0), b.off - view.plan.offset}
		if view.in[0].leaf != nil {
			return b, true
		}
	}
	return b, false
}

// wrote notes that t was written, with the graph that t carries now; b is the value of which t is a view, from before.
func (t *Tensor) wrote(b alias, e *Env) {
	noted := t.alias()
	if t.apart || t.leaf != nil || t.node == nil && b.node == nil {
		if noted != nil {
			noted.ver = t.st.Version()
		}
		return
	}
	a := alias{node: t.node, out: t.out, layout: layout{t.typ, t.off}, ver: t.st.Version()}
	if !t.whole() {
		a = t.putInto(b, e)
	}
	if noted != nil {
		*noted = a
		return
	}
	tag := any(&a)
	t.st.Tag = &tag
}

// putInto records that t, a view, replaced a part of the value b.
func (t *Tensor) putInto(b alias, e *Env) alias {
	flat := layout{typ: ir.Dense(t.DType(), t.elements())}
	old, row := *t, *t
	old.typ, old.off, old.node, old.out = b.typ, b.off, b.node, b.out
	row.typ, row.off, row.node = flat.typ, 0, nil
	in := [2]*Tensor{&old, t}
	n := newNode(e, in[:], 0, false)
	n.oddly().splice = &splice{put: true, from: b.layout, to: layout{t.typ, t.off}, n: t.elements()}
	n.attach(in[:], []*Tensor{&row})
	return alias{node: n, layout: flat, ver: t.st.Version()}
}

// grads are the gradients of the node's operands from that of its result. Only where they are recorded are they made of
// operations; else elements are copied.
func (p *splice) grads(e *Env, n *node) []*Tensor {
	b := new(builder).in(e)
	g := n.grads[0].inside(e)
	if !p.put {
		return []*Tensor{p.take(b, e, p.scatter(b, e, g), p.from)}
	}
	out := make([]*Tensor, 2)
	if n.in[0].want {
		out[0] = p.take(b, e, p.cleared(b, e, g), p.from)
	}
	if n.in[1].want {
		out[1] = p.take(b, e, g, p.to)
	}
	return out
}

// take is the elements of row that lie in l.
func (p *splice) take(b ir.B, e *Env, row *Tensor, l layout) *Tensor {
	switch {
	case l.typ.IsDense() && l.typ.Size() == p.n:
		return b.Reshape(row, l.typ.Shape()...).(*Tensor)
	case e.grad == on || l.typ.Size() == 0:
		return b.Reshape(b.Gather(row, 0, l.index(b)), l.typ.Shape()...).(*Tensor)
	}
	return lying(row, l)
}

// scatter puts the elements of g, a gradient of the view, to their places in a row of zeros. Elements that the view repeats
// add up.
func (p *splice) scatter(b ir.B, e *Env, g *Tensor) *Tensor {
	shape := slices.Clone(p.to.typ.Shape())
	for i, stride := range p.to.typ.Strides() {
		if stride == 0 {
			shape[i] = min(shape[i], 1)
		}
	}
	to := layout{ir.Strided(g.DType(), shape, p.to.typ.Strides()), p.to.off}
	sum := b.SumTo(g, shape)
	row := b.Full(ir.Dense(g.DType(), p.n), 0)
	switch {
	case to.typ.Size() == 0:
	case e.grad == on:
		row = b.Emit(ir.ScatterAdd, ir.Attr{}, ir.Params{}, row, to.index(b), b.Reshape(sum, to.typ.Size()))[0]
	default:
		copyInto(e, lying(row.(*Tensor), to), sum.(*Tensor))
	}
	return row.(*Tensor)
}

// cleared is g, a gradient of the whole value, with zeros in the place of the view.
func (p *splice) cleared(b ir.B, e *Env, g *Tensor) *Tensor {
	dt := g.DType()
	switch {
	case p.to.typ.Size() == 0:
		return g
	case e.grad == on:
		hits := b.Emit(ir.ScatterAdd, ir.Attr{}, ir.Params{}, b.Full(ir.Dense(dt, p.n), 0), p.to.index(b), b.Full(ir.Dense(dt, p.to.typ.Size()), 1))[0]
		return b.Mask(b.Binary(ir.Eq, hits, b.Number(dt, 0)), g).(*Tensor)
	}
	row := b.Emit(ir.Copy, ir.Attr{}, ir.Params{}, g)[0].(*Tensor)
	copyInto(e, lying(row, p.to), b.Zeros(p.to.typ.As(dt)).(*Tensor))
	return row
}

// lying is the elements of row that lie in l, as a view that is not recorded.
func lying(row *Tensor, l layout) *Tensor {
	v := row.quiet()
	v.typ, v.off = ir.Strided(row.DType(), l.typ.Shape(), l.typ.Strides()), row.off+l.off
	return v
}

func copyInto(e *Env, dst, src *Tensor) {
	e.into(ir.Copy, ir.Attr{Out: dst.typ}, ir.Params{}, dst, src.quiet())
}

// index is the places of the layout's elements, in row-major order.
func (l layout) index(b ir.B) ir.Value {
	at := b.Affine(b.Count(), 1, float64(l.off))
	for i, d := range l.typ.Shape() {
		along := make([]int, l.typ.Rank())
		for j := range along {
			along[j] = 1
		}
		along[i] = d
		at = b.Add(at, b.Scale(b.Count(along...), float64(l.typ.Strides()[i])))
	}
	return b.Reshape(b.Expand(at, l.typ.Shape()), l.typ.Size())
}
