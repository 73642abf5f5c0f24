package tensor

import (
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/ir"
)

// node is one recorded op. It holds storages, never handles, so a dead handle keeps nothing alive through it.
type node struct {
	plan      *opPlan // nil for a Func and a To
	params    *ir.Params
	seq       uint64 // creation order: a topological order
	scope     *scope // the graph ends with it
	queue     *queue
	in        []edge
	keep      []kept
	outs      []*record // records, not storages: an output that no rule needs may be collected
	hooks     []hook
	fed       bool // has a parameter among its operands, or a value computed from parameters only
	paramOnly bool // all its operands are such
	ran       bool
	call      *Call   // of a Func
	from      *Env    // of a To: the operand's, on another device
	region    *region // of a Recompute whose kept values were dropped

	// during one Backward
	pass, headPass uint64
	wanted         bool
	grads          []*Tensor

	inBuf   [3]edge
	keepBuf [2]kept
	outBuf  [1]*record
	gradBuf [1]*Tensor
}

// edge leads to what made an operand: a node's output, or a leaf. A zero edge is a constant.
type edge struct {
	node *node
	leaf *leaf
	out  int8
	want bool // during one Backward
}

// kept is a storage that a node's rule needs.
type kept struct {
	st      *storage
	typ     *ir.Type
	off     int
	version uint32
	from    int16 // i: operand i; fromOut+i: result i; fromFunc: a Func's own
	held    bool  // a hold was taken: always, but for parameters
	outer   *hold // that hold, when the storage belongs to an outer scope
}

const (
	fromOut  = 1 << 12
	fromFunc = 1 << 13
)

// hook is a function on the gradient of one result.
type hook struct {
	out int8
	f   func(*Tensor) *Tensor
}

var nodeSeq, passes atomic.Uint64

func (t *Tensor) edge(e *Env) (edge, bool) {
	if t.node != nil {
		return edge{node: t.node, out: t.out}, true
	}
	if t.leaf != nil && e.grad != off && !t.leaf.frozen.Load() {
		return edge{leaf: t.leaf}, true
	}
	return edge{}, false
}

func (t *Tensor) ofParams() bool {
	return t.param || t.node != nil && t.node.paramOnly
}

// fresh refuses a recorded value that was written through another handle or view: t's graph does not know of the write.
func (t *Tensor) fresh(op string) {
	if t.node != nil && t.ver != t.st.rec.version.Load() {
		raise(op, "use the handle that the write returned, or write into a Clone",
			"the result of %s at %s was changed in place through another handle or view", t.st.rec.code, t.st.rec.site.String())
	}
}

// recordOp appends an op to the graph, if an operand has one or starts one.
func recordOp(pl *opPlan, p *ir.Params, e *Env, in, out []*Tensor) {
	var want uint64
	for i, t := range in {
		if t.node == nil && t.leaf == nil {
			continue
		}
		t.fresh(pl.op.Code.String())
		if _, ok := t.edge(e); ok && t.DType().IsFloat() {
			want |= 1 << min(i, 63)
		}
	}
	if want == 0 || !out[0].DType().IsFloat() {
		return
	}
	n := newNode(e, in)
	n.plan = pl
	if p.N > 0 {
		c := *p
		n.params = &c
	}
	if pl.rule.Save != nil {
		n.saveFor(pl.rule.Save(&pl.op, want), in, out)
	}
	n.attach(in, out)
}

// recordMove makes dst, a copy of t on another device, continue t's graph.
func (t *Tensor) recordMove(dst *Tensor) {
	if t.env.grad == off && t.node == nil || !t.DType().IsFloat() {
		return
	}
	t.fresh("To")
	if _, ok := t.edge(dst.env); !ok {
		return
	}
	in := [1]*Tensor{t}
	n := newNode(dst.env, in[:])
	n.from = t.env
	n.attach(in[:], []*Tensor{dst})
}

func newNode(e *Env, in []*Tensor) *node {
	n := &node{seq: nodeSeq.Add(1), scope: e.live(), queue: e.onQueue(), paramOnly: true}
	n.in, n.keep, n.outs = n.inBuf[:0], n.keepBuf[:0], n.outBuf[:0]
	for _, t := range in {
		ed, _ := t.edge(e)
		n.in = append(n.in, ed)
		if t.ofParams() {
			n.fed = true
		} else {
			n.paramOnly = false
		}
	}
	return n
}

// attach makes out the node's results. A view of an operand's storage is not made by the node.
func (n *node) attach(in, out []*Tensor) {
	for i, t := range out {
		own := true
		for _, u := range in {
			own = own && u.st != t.st
		}
		if own {
			t.st.rec.made = true
		}
		n.outs = append(n.outs, t.st.rec)
		if t.DType().IsFloat() {
			t.node, t.out, t.ver = n, int8(i), t.st.rec.version.Load()
		}
	}
}

func (n *node) saveFor(s autograd.Saves, in, out []*Tensor) {
	for i, t := range in {
		if s.In>>i&1 == 1 {
			n.save(t, int16(i))
		}
	}
	for i, t := range out {
		if s.Out>>i&1 == 1 {
			n.save(t, int16(fromOut+i))
		}
	}
}

// save lets the node's rule find t again, and makes the graph an owner of it.
func (n *node) save(t *Tensor, from int16) {
	r := t.st.rec
	k := kept{st: t.st, typ: t.typ, off: t.off, version: r.version.Load(), from: from}
	if !t.param { // parameters outlive every graph
		k.held = true
		n.scope.dev.hold(r)
		if r.home.Load() == n.scope {
			r.homely.Add(1)
		} else {
			k.outer = &hold{rec: r, scope: n.scope}
			n.scope.dev.mu.Lock()
			n.scope.holds(k.outer)
			n.scope.dev.mu.Unlock()
		}
	}
	n.keep = append(n.keep, k)
}

// letGo ends the hold on a kept value, unless its scope's end did; dev.mu is held.
func (k *kept) letGo(d *Device, why *cause) {
	switch {
	case k.outer == nil:
		k.st.rec.homely.Add(-1)
	case k.outer.done:
		return
	default:
		k.outer.done = true
	}
	d.unhold(k.st.rec, why)
}

func (n *node) name() string {
	switch {
	case n.from != nil:
		return "To"
	case n.plan == nil:
		return "Func"
	}
	return n.plan.op.Code.String()
}

// find returns the kept value with an origin.
func (n *node) find(from int16) *kept {
	for i := range n.keep {
		if n.keep[i].from == from {
			return &n.keep[i]
		}
	}
	panic("BUG: " + n.name() + " did not save what its rule needs")
}

// open makes a handle on a kept value in env e; when Backward records, with its graph.
func (n *node) open(k *kept, e *Env) *Tensor {
	for r := n.region; r != nil && k.st == nil; r = n.region {
		if r.refill(); r == n.region {
			break // filled; otherwise a region within this one is next
		}
	}
	t := &Tensor{st: k.st, typ: k.typ, off: k.off, env: e, ver: k.version}
	t.alive("Backward of " + n.name())
	if v := k.st.rec.version.Load(); v != k.version {
		raise("Backward", "change a copy, or call Backward first",
			"a value that %s needs, the result of %s at %s, was changed in place after it was used: it is at version %d, saved at %d",
			n.name(), k.st.rec.code, k.st.rec.site.String(), v, k.version)
	}
	if e.grad == on {
		switch {
		case k.from >= fromFunc:
		case k.from >= fromOut:
			t.node, t.out = n, int8(k.from-fromOut)
		default:
			ed := n.in[k.from]
			t.node, t.leaf, t.out = ed.node, ed.leaf, ed.out
		}
	}
	return t
}

// finish ends the node's ownership and releases what it made, and what it was the last to want.
func (n *node) finish() {
	d := n.scope.dev
	d.mu.Lock()
	for i := range n.keep {
		k := &n.keep[i]
		if k.st != nil && k.held {
			k.letGo(d, ranBack)
		}
	}
	for _, r := range n.outs {
		d.dropMade(r, ranBack)
	}
	d.mu.Unlock()
	if n.region != nil {
		n.region.left()
	}
	n.ran, n.in, n.keep, n.call, n.from, n.hooks = true, nil, nil, nil, nil, nil
}

// nodeCall is a node as its rule sees it during one pass.
type nodeCall struct {
	n *node
	e *Env
}

func (c *nodeCall) Op() *ir.Op { return &c.n.plan.op }

func (c *nodeCall) Params() *ir.Params {
	if c.n.params == nil {
		return &ir.Params{}
	}
	return c.n.params
}

func (c *nodeCall) In(i int) ir.Value  { return c.n.open(c.n.find(int16(i)), c.e) }
func (c *nodeCall) Out(i int) ir.Value { return c.n.open(c.n.find(int16(fromOut+i)), c.e) }
func (c *nodeCall) Want(i int) bool    { return c.n.in[i].want }

func (c *nodeCall) Grad(i int) ir.Value {
	if g := c.n.grads[i]; g != nil {
		return g
	}
	return nil
}
