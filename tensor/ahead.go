package tensor

import (
	"sync/atomic"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// aheads are a parameter's casts for precision policies, which an optimizer makes for all parameters at once when it has
// written them: one by one, where they are used, they are a launch for each.
type aheads struct {
	wanted atomic.Uint32 // the dtype that a policy has asked for since the last CastAhead; 0: none
	cast   atomic.Pointer[ahead]
}

// ahead is a cast in the root scope, good for one version of one storage.
type ahead struct {
	value   *Tensor
	of      *heap.Ref
	version atomic.Uint32
}

// good tells whether a cast is of t as it is now.
func (a *ahead) good(t *Tensor) bool { return a.of == t.st && a.version.Load() == t.st.Version() }

// renew makes a cast again where t was written since, by others than the captured step that takes it.
func (a *ahead) renew(t *Tensor) {
	if !a.good(t) {
		t.env.NoGrad().into(ir.Cast, ir.Attr{DType: a.value.DType()}, noParams, a.value, t)
		a.value.st.Written()
		a.version.Store(t.st.Version())
	}
}

// policyCast is t, an operand in e, in the dtype of e's policy, and whether that was made for this operation. A cast that was
// made ahead is recorded as if it were made now.
func (t *Tensor) policyCast(e *Env, to dtype.DType) (c *Tensor, own bool) {
	t = t.inside(e)
	if t.leaf == nil || !t.param || e.program.recording() { // which is to read the parameter in each run
		return t.Cast(to), true
	}
	l := &t.leaf.aheads
	l.wanted.Store(uint32(to))
	a := l.cast.Load()
	if a == nil || a.value.DType() != to {
		return t.Cast(to), true
	}
	if !a.good(t) {
		l.forget(a)
		return t.Cast(to), true
	}
	if step := recordings.step(); step != nil && !step.casts[a] {
		p := t.leaf.value
		step.casts[a] = true
		step.before = append(step.before, func() { a.renew(p) })
	}
	c = &Tensor{st: a.value.st, typ: a.value.typ, env: e}
	op := ir.New(ir.Cast, ir.Attr{DType: to}, t.typ)
	in, out := [1]*Tensor{t}, [1]*Tensor{c}
	recordOp(e.dev.plan(&op, in[:]), &noParams, e, in[:], out[:], 0)
	return c, false
}

// forget lets go of a cast: at once, or when no graph needs it any more.
func (l *aheads) forget(a *ahead) {
	if a != nil && l.cast.CompareAndSwap(a, nil) {
		a.value.env.dev.heap.Orphan(a.value.st.Storage, replaced)
	}
}

// castGroup is what one launch converts.
type castGroup struct {
	to      dtype.DType
	in, out []*Tensor
}

// CastAhead makes room for the casts of parameters that precision policies have asked for since the last time, and lets go
// of older ones. An optimizer calls it before it writes parameters, and then what it returns: that converts them as they are
// now, by one launch for those of a device and dtype, and operations take the results until a parameter is written again.
func CastAhead(params []*Tensor) (cast func()) {
	var groups []*castGroup
	for _, p := range params {
		l := &p.leaf.aheads
		to := dtype.DType(l.wanted.Swap(0))
		if to == dtype.Invalid || to == p.DType() || !p.typ.IsDense() {
			l.forget(l.cast.Load())
			continue
		}
		g := groupFor(&groups, p, to)
		g.in, g.out = append(g.in, p), append(g.out, p.room(to))
	}
	return func() {
		for _, g := range groups {
			g.run()
			AfterRun(g.made)
		}
	}
}

// made notes that a group's casts are those of its parameters as they are now.
func (g *castGroup) made() {
	for i, p := range g.in {
		l, to := &p.leaf.aheads, g.out[i]
		a := l.cast.Load()
		if a == nil || a.value.st != to.st || a.of != p.st {
			a = &ahead{value: to, of: p.st}
		}
		a.version.Store(p.st.Version())
		l.cast.Store(a)
	}
}

// room is for a parameter's cast: the root scope has it until it is let go of, whatever graphs use it. It is that of the
// cast before, where no graph needs that any more: a captured step finds it at the same place in each run.
func (t *Tensor) room(to dtype.DType) *Tensor {
	l := &t.leaf.aheads
	if a := l.cast.Load(); a != nil && a.value.typ == ir.Dense(to, t.Shape()...) && a.value.env.dev == t.env.dev && !a.value.st.Held() {
		a.value.st.Written()
		return a.value
	}
	l.forget(l.cast.Load())
	c := t.env.make(ir.CastAll, ir.Dense(to, t.Shape()...), 0, nil, nil)
	c.st.MarkPerishable()
	t.env.dev.heap.Exempt(c.st.Storage)
	c.Label(device.LabelParameter, t.leaf.path())
	return c
}

// groupFor is where a parameter's cast belongs: those of a launch share device and dtypes.
func groupFor(groups *[]*castGroup, p *Tensor, to dtype.DType) *castGroup {
	for _, g := range *groups {
		if first := g.in[0]; g.to == to && first.env.dev == p.env.dev && first.DType() == p.DType() {
			return g
		}
	}
	g := &castGroup{to: to}
	*groups = append(*groups, g)
	return g
}

// run makes a group's casts in one launch where the engine can, else one by one.
func (g *castGroup) run() {
	e, attr := g.in[0].env.NoGrad(), ir.Attr{DType: g.to}
	types := make([]*ir.Type, len(g.in))
	for i, t := range g.in {
		types[i] = t.typ
	}
	op := ir.New(ir.CastAll, attr, types...)
	if pl := e.dev.plan(&op, g.in); pl.kernel != nil {
		e.launch(pl, &noParams, nil, g.in, g.out, e.originOf(g.in))
		return
	}
	for i, t := range g.in {
		e.into(ir.Cast, attr, noParams, g.out[i], t)
	}
}
