package tensor

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
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
	return t.inPlace(ir.Affine, ir.Scalars(f, 0), nil)
}

// ClampInPlace limits values to [lo, hi].
func (t *Tensor) ClampInPlace(lo, hi float64) *Tensor {
	t.takes("clamp in place", lo)
	t.takes("clamp in place", hi)
	return t.inPlace(ir.Clamp, ir.Scalars(lo, hi), nil)
}

// takes refuses a fraction among integers, which would be cut off in silence.
func (t *Tensor) takes(op string, f float64) {
	if !whole(f) && !t.DType().IsFloat() {
		raise(op, "convert with Cast", "the number %v with %s", f, t.typ)
	}
}

// CopyInPlace writes u's values, broadcast to t's shape and converted to its dtype. A recorded u continues its graph.
func (t *Tensor) CopyInPlace(u *Tensor) *Tensor { return t.inPlace(ir.Copy, ir.Params{}, u) }

// FillInPlace writes v everywhere.
func (t *Tensor) FillInPlace(v float64) *Tensor {
	number := t.env.full(ir.Dense(t.DType()), v)
	defer t.env.dev.drop(number.st.rec, internal)
	return t.CopyInPlace(number)
}

// inPlace writes code(t, u) into t; Copy writes u. It continues a graph but never starts one: parameters among the
// operands count as constants.
func (t *Tensor) inPlace(code ir.Code, p ir.Params, u *Tensor) *Tensor {
	op := code.String() + " in place"
	t.alive(op)
	var given *storage
	in := make([]*Tensor, 0, 2)
	if code != ir.Copy {
		in = append(in, t.constant())
	}
	if u != nil {
		given = u.st
		u = t.fitted(op, u)
		in = append(in, u)
	}
	t.mayWrite(op, u)
	attr := ir.Attr{}
	if code == ir.Copy {
		attr.Out = t.typ
	}
	pl := t.planOf(code, attr, in)
	t.keepOld(pl, in)
	t.env.into(code, attr, p, t.quiet(), quietAll(in)...)
	t.st.rec.version.Add(1)
	t.continueGraph(pl, p, in)
	if u != nil && u.st != given && t.node == nil {
		t.env.dev.drop(u.st.rec, internal)
	}
	return t
}

func (t *Tensor) planOf(code ir.Code, attr ir.Attr, in []*Tensor) *opPlan {
	var types [2]*ir.Type
	for i, u := range in {
		types[i] = u.typ
	}
	op := ir.New(code, attr, types[:len(in)]...)
	return t.env.dev.plan(&op)
}

// keepOld puts a copy in place of operands that the write destroys and the gradient rule needs.
func (t *Tensor) keepOld(pl *opPlan, in []*Tensor) {
	var want uint64
	for i, u := range in {
		if u.node != nil {
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
			old.st.rec.made = true
		}
		c := *u
		c.st, c.typ, c.off, c.ver = old.st, old.typ, old.off, old.ver
		in[i] = &c
	}
}

// fitted is u in t's dtype and shape, a copy when it overlaps t. A leaf counts as a constant.
func (t *Tensor) fitted(op string, u *Tensor) *Tensor {
	u.alive(op)
	u = u.constant()
	if u.env.dev != t.env.dev {
		raise(op, twoDevices, "operands on two devices: %s on %s, %s on %s", t.typ, t.env.dev.name, u.typ, u.env.dev.name)
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

// mayWrite refuses writes that would lose or outlive a graph.
func (t *Tensor) mayWrite(op string, u *Tensor) {
	for i, s := range t.typ.Strides() {
		if s == 0 && t.Shape()[i] > 1 {
			raise(op, "write into a Clone", "%s repeats its elements", t.typ)
		}
	}
	r := t.st.rec
	t.fresh(op)
	if t.node != nil && t.Bytes() != r.bytes {
		raise(op, "work on the whole value, or on a copy", "a recorded view of shape %v", t.Shape())
	}
	if u == nil || u.node == nil {
		return
	}
	if t.leaf != nil || t.param {
		raise(op, "use u.Detach()", "a recorded value would be written into a leaf")
	}
	if t.node == nil && t.Bytes() != r.bytes {
		raise(op, "build the value with Cat, Stack or Where", "a recorded value would be written into a part of a value that carries no graph")
	}
	if t.node == nil && r.scope.Load().opened < u.node.scope.opened {
		raise(op, "use u.Detach()", "a recorded value would be written into a value that outlives its graph")
	}
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
func (t *Tensor) continueGraph(pl *opPlan, p ir.Params, in []*Tensor) {
	t.node = nil
	if !slices.ContainsFunc(in, func(u *Tensor) bool { return u.node != nil }) {
		return
	}
	for i, u := range in {
		if u.st == t.st && u.node != nil {
			c := *u
			c.ver = t.st.rec.version.Load()
			in[i] = &c
		}
	}
	out := [1]*Tensor{t}
	recordOp(pl, &p, t.env, in, out[:])
	t.st.rec.made = true
}

// AdamWStep describes an AdamW update: the rates of one step and its number, from 1.
type AdamWStep struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Coupled                            bool // Adam: the decay is added to the gradient
	Step                               int
}

// SGDStep describes an SGD update.
type SGDStep struct {
	LR, Momentum, WeightDecay float64
	Nesterov                  bool
	First                     bool // the momentum buffers become the gradients
}

// checkUpdate panics unless lists agree; gradients are multiplied by scale, one number.
func checkUpdate(op string, scale *Tensor, p []*Tensor, others ...[]*Tensor) {
	scale.alive(op)
	for _, list := range others {
		if len(list) != len(p) {
			raise(op, "give one of each per parameter", "%d parameters with %d other values", len(p), len(list))
		}
	}
	for _, t := range p {
		t.alive(op)
	}
}

// AdamWInPlace updates parameters and their two moments by one fused op. Gradients are multiplied by scale first.
func AdamWInPlace(s AdamWStep, scale *Tensor, p, g, m, v []*Tensor) {
	checkUpdate("AdamW", scale, p, g, m, v)
	var attr ir.Attr
	if s.Coupled {
		attr.Flag = ir.Coupled
	}
	params := ir.Scalars(s.LR, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, 1-power(s.Beta1, s.Step), 1-power(s.Beta2, s.Step))
	update(ir.AdamW, attr, params, scale, p, g, m, v)
}

// SGDInPlace updates parameters, and their momentum buffers unless buf is nil. Gradients are multiplied by scale first.
func SGDInPlace(s SGDStep, scale *Tensor, p, g, buf []*Tensor) {
	var attr ir.Attr
	if s.Nesterov {
		attr.Flag |= ir.Nesterov
	}
	if s.First {
		attr.Flag |= ir.First
	}
	params := ir.Scalars(s.LR, s.Momentum, s.WeightDecay)
	if buf == nil {
		checkUpdate("SGD", scale, p, g)
		update(ir.SGD, attr, params, scale, p, g)
		return
	}
	checkUpdate("SGD", scale, p, g, buf)
	attr.Flag |= ir.Momentum
	update(ir.SGD, attr, params, scale, p, g, buf)
}

// update runs a multi-tensor op; the lists are parameter, gradient and state, and all but the gradient are written.
func update(code ir.Code, attr ir.Attr, params ir.Params, scale *Tensor, lists ...[]*Tensor) {
	if len(lists[0]) == 0 {
		return
	}
	in, out := []*Tensor{scale.quiet()}, []*Tensor{}
	for i := range lists[0] {
		for j, list := range lists {
			t := list[i]
			t.alive(code.String())
			in = append(in, t)
			if j != 1 {
				out = append(out, t)
			}
		}
	}
	types := make([]*ir.Type, len(in))
	for i, t := range in {
		types[i] = t.typ
	}
	op := ir.New(code, attr, types...)
	e := lists[0][0].env
	pl := e.dev.plan(&op)
	if pl.kernel != nil {
		e.launch(pl, &params, in, out)
	} else {
		e.updateLowered(pl, &params, in, out)
	}
	for _, t := range out {
		t.st.rec.version.Add(1)
	}
}

// updateLowered runs the decomposition and copies its results into place.
func (e *Env) updateLowered(pl *opPlan, p *ir.Params, in, out []*Tensor) {
	e.NoGrad().Do(func(inner *Env) *Tensor {
		results := make([]*Tensor, len(out))
		inner.runLowered(pl, p, in, results)
		for i, t := range results {
			e.into(ir.Copy, ir.Attr{Out: out[i].typ}, ir.Params{}, out[i], t.quiet())
		}
		return nil
	})
}

func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
}

// SumSquares is the sum of squares over all elements of all tensors, f64 if one of them is, else f32, in one launch. The
// operands count as constants: a penalty that learns is t.Square().Sum().
func SumSquares(ts ...*Tensor) *Tensor {
	quiet := quietAll(ts)
	if len(quiet) == 0 {
		raise("SumSquares", "give at least one tensor", "no operands")
	}
	for _, t := range quiet {
		if !t.DType().IsFloat() {
			raise("SumSquares", "convert with Cast", "%s is not floating", t.typ)
		}
	}
	return apply(ir.SumSquares, ir.Attr{}, ir.Params{}, quiet...)[0]
}
