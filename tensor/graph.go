package tensor

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/autograd"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// node is one recorded op. It holds storages, never handles, so a dead handle keeps nothing alive through it.
type node struct {
	plan      *opPlan // nil for a Func, a To and a part
	params    *ir.Params
	seq       uint64 // creation order: a topological order
	scope     *scope // the graph ends with it
	queue     *queue
	part      *device.Range // in which it was called
	in        []edge
	keep      []kept
	outs      []*heap.Storage // not Refs: an output that no rule needs may be collected
	odd       *odd            // nil: nothing of it
	fed       bool            // has a parameter among its operands, or a value computed from parameters only
	paramOnly bool            // all its operands are such
	ran       bool

	// during one Backward
	wanted         bool // beside the other truth values: a node is 192 bytes
	pass, headPass uint64
	grads          []*Tensor

	outBuf  [1]*heap.Storage
	gradBuf [1]*Tensor
}

// odd is what few nodes have.
type odd struct {
	hooks  []hook
	call   *Call   // of a Func
	from   *Env    // of a To: the operand's, on another device
	blind  bool    // of a value that a Func computed and saved
	splice *splice // of what follows from a write in place
	region *region // of a Recompute whose kept values were dropped
	block  *block  // of an Offload
}

var usual odd

// odds are n's, to be read.
func (n *node) odds() *odd {
	if n.odd == nil {
		return &usual
	}
	return n.odd
}

// oddly are n's odds, to be written.
func (n *node) oddly() *odd {
	if n.odd == nil {
		n.odd = new(odd)
	}
	return n.odd
}

// node1, node2 and node3 are nodes with room for their operands and for what most of them keep: sums keep nothing.
type (
	node1 struct {
		node
		in   [1]edge
		keep [1]kept
	}
	node2 struct {
		node
		in [2]edge
	}
	node3 struct {
		node
		in   [3]edge
		keep [2]kept
	}
)

// blank is a node with room for a number of operands, and perhaps for what it keeps.
func blank(operands int, keeps bool) *node {
	switch {
	case operands == 1:
		n := new(node1)
		n.node.in, n.node.keep = n.in[:0], n.keep[:0]
		return &n.node
	case operands == 2 && !keeps:
		n := new(node2)
		n.node.in = n.in[:0]
		return &n.node
	}
	n := new(node3)
	n.node.in, n.node.keep = n.in[:0], n.keep[:0]
	return &n.node
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
	st      *heap.Ref
	typ     *ir.Type
	off     int
	version uint32
	from    int16      // i: operand i; fromOut+i: result i; fromFunc: a Func's own
	held    bool       // a hold was taken: always, but for parameters
	away    *heap.Hold // that hold, when the storage belongs to an outer scope
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
	if t.leaf == nil || e.grad == off {
		return edge{}, false
	}
	if step := recordings.step(); step != nil {
		step.asks(t.leaf)
	}
	if t.leaf.frozen.Load() {
		return edge{}, false
	}
	return edge{leaf: t.leaf}, true
}

func (t *Tensor) ofParams() bool {
	return t.param || t.node != nil && t.node.paramOnly
}

// fresh refuses a recorded value that was written through a handle that shares no graph with it.
func (t *Tensor) fresh(op string) {
	if t.node != nil && t.ver != t.st.Version() {
		t.stale(op)
	}
}

func (t *Tensor) stale(op string) {
	raise(op, "write through a handle that is not detached, or into a Clone",
		"the result of %s at %s was changed in place through a detached handle", t.st.What(), t.st.Site.String())
}

// recordOp appends an op to the graph, if an operand has one or starts one. One without a gradient rule is recorded too, so
// that a gradient through it is an error and not a wrong number.
//
// seq is the operation's number if it was given one before it ran; else 0.
func recordOp(pl *opPlan, p *ir.Params, e *Env, in, out []*Tensor, seq uint64) {
	for _, t := range in {
		if t.node != nil && t.st.Tag == nil {
			t.fresh(pl.op.Code.String())
		}
	}
	want := pl.wants(e, in)
	if want == 0 {
		return
	}
	var saves autograd.Saves
	if pl.rule != nil && pl.rule.Save != nil {
		saves = pl.rule.Save(&pl.op, want)
	}
	n := newNode(e, in, seq, saves != autograd.Saves{})
	n.plan = pl
	if p.N > 0 {
		c := *p
		n.params = &c
	}
	n.saveFor(saves, in, out)
	n.attach(in, out)
}

// wants are the operands that a recorded op would have gradients of, a bit each; none: it is not recorded.
func (pl *opPlan) wants(e *Env, in []*Tensor) (want uint64) {
	if !pl.out[0].DType.IsFloat() {
		return 0
	}
	for i, t := range in {
		if t.node == nil && t.leaf == nil {
			continue
		}
		if _, ok := t.edge(e); ok && t.DType().IsFloat() {
			want |= 1 << min(i, 63)
		}
	}
	return want
}

// recordMove makes dst, a copy of t on another device, continue t's graph.
func (t *Tensor) recordMove(dst *Tensor) {
	if t.env.grad == off && !t.carriesGraph() || !t.DType().IsFloat() {
		return
	}
	t = t.current("To", dst.env)
	if _, ok := t.edge(dst.env); !ok {
		return
	}
	in := [1]*Tensor{t}
	n := newNode(dst.env, in[:], 0, false)
	n.oddly().from = t.env
	n.attach(in[:], []*Tensor{dst})
}

func newNode(e *Env, in []*Tensor, seq uint64, keeps bool) *node {
	if seq == 0 {
		seq = nodeSeq.Add(1)
	}
	n := blank(len(in), keeps)
	n.seq, n.scope, n.queue, n.part, n.paramOnly, n.outs = seq, e.live().home, e.onQueue(), e.part, true, n.outBuf[:0]
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
			t.st.MarkPerishable()
		}
		n.outs = append(n.outs, t.st.Storage)
		if t.DType().IsFloat() {
			t.node, t.out, t.ver = n, int8(i), t.st.Version()
		}
	}
}

func (n *node) saveFor(s autograd.Saves, in, out []*Tensor) {
	if s == (autograd.Saves{}) {
		return
	}
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
	k := kept{st: t.st, typ: t.typ, off: t.off, version: t.st.Version(), from: from}
	if !t.param { // parameters outlive every graph
		k.held, k.away = true, n.scope.Hold(t.st.Storage)
		if t.st.MarkSaved() {
			t.tellUse(device.LabelSaved, "")
		}
	}
	n.keep = append(n.keep, k)
}

func (n *node) name() string {
	switch o := n.odds(); {
	case o.from != nil:
		return "To"
	case o.splice != nil && o.splice.put:
		return "a write into a view"
	case o.splice != nil:
		return "a view of what was written"
	case n.plan == nil:
		return "Func"
	}
	return n.plan.op.Code.String()
}

// parameter is the one that an edge leads to, directly or by way of views, casts and copies; nil if it does not.
func (e edge) parameter() *leaf {
	for e.leaf == nil && e.node != nil && e.node.plan != nil && len(e.node.in) == 1 {
		if g := e.node.plan.op.Code.Row().Group; g != ir.Views && g != ir.Movement {
			return nil
		}
		e = e.node.in[0]
	}
	if e.leaf != nil && e.leaf.value.param {
		return e.leaf
	}
	return nil
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
	for r := n.odds().region; r != nil && k.st == nil; r = n.odds().region {
		if r.refill(); r == n.odds().region {
			break // filled; otherwise a region within this one is next
		}
	}
	for b := n.odds().block; b != nil; b = b.next {
		if b.reach(); k.st != nil {
			break
		}
	}
	t := &Tensor{st: k.st, typ: k.typ, off: k.off, env: e, ver: k.version, apart: true}
	t.alive("Backward of " + n.name())
	if k.from < fromOut {
		t.named = n.in[k.from].parameter()
	}
	if v := k.st.Version(); v != k.version {
		what := fmt.Sprintf("the result of %s at %s", k.st.What(), k.st.Site.String())
		if l := t.named; l != nil && l.path() != "" {
			what = "the parameter " + l.path()
		}
		raise("Backward", "change a copy, or call Backward first; one goroutine at a time trains a model",
			"a value that %s needs, %s, was changed in place after it was used: it is at version %d, saved at %d",
			n.name(), what, v, k.version)
	}
	if e.grad == on {
		switch {
		case k.from >= fromFunc && t.DType().IsFloat():
			t.node = n.unknown(k)
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

// unknown stands for what made a value that a Func's Forward computed and saved: nobody recorded how it hangs on the
// operands, so a derivative through it is an error.
func (n *node) unknown(k *kept) *node {
	u := &node{seq: nodeSeq.Add(1), scope: n.scope, queue: n.queue, odd: &odd{blind: true}, paramOnly: n.paramOnly, fed: n.fed}
	u.in, u.outs = slices.Clone(n.in), []*heap.Storage{k.st.Storage}
	return u
}

// finish ends the node's ownership and releases what it made, and what it was the last to want.
func (n *node) finish() {
	l := n.scope.dev.heap.Lock()
	for i := range n.keep {
		if k := &n.keep[i]; k.st != nil && k.held {
			l.EndHold(k.st.Storage, k.away, ranBack)
		}
	}
	for _, st := range n.outs {
		l.Expire(st, ranBack)
	}
	l.Unlock()
	if n.odd != nil {
		n.odd.region.left()
		*n.odd = odd{region: n.odd.region}
	}
	n.ran, n.in, n.keep = true, nil, nil
}

// nodeCall is a node as its rule sees it during one pass.
type nodeCall struct {
	n *node
	e *Env
}

func (c *nodeCall) Op() *ir.Op { return &c.n.plan.op }

func (c *nodeCall) Params() *ir.Params {
	if c.n.params == nil {
		return &noParams
	}
	return c.n.params
}

func (c *nodeCall) In(i int) ir.Value  { return c.n.open(c.n.find(int16(i)), c.e) }
func (c *nodeCall) Out(i int) ir.Value { return c.n.open(c.n.find(int16(fromOut+i)), c.e) }
func (c *nodeCall) Want(i int) bool    { return c.n.in[i].want }

// Wider reports whether operand i is a cast from its wide dtype that nobody has a hook on.
func (c *nodeCall) Wider(i int) bool {
	n := c.n.in[i].node
	if n == nil || n.plan == nil || n.plan.op.Code != ir.Cast || len(n.odds().hooks) > 0 {
		return false
	}
	from, to := n.plan.op.In(0).DType, n.plan.op.Attr.DType
	return from != to && from == ir.Wide(to)
}

func (c *nodeCall) Grad(i int) ir.Value {
	if g := c.n.grads[i]; g != nil {
		return g
	}
	return nil
}
